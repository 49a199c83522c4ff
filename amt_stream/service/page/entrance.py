"""Who may come in: by token, by the page that asks, by the name that it asks for."""

import hmac
import ipaddress
from collections.abc import Sequence
from enum import IntEnum
from pathlib import Path
from urllib.parse import urlsplit

from amt_stream.core.errors import Refusal
from amt_stream.core.files import NotThatFile, secret_text

SHORTEST_TOKEN = 16


class PageError(Refusal):
    """The page cannot be opened as it was asked for."""


def is_loopback(host: str) -> bool:
    """Whether an address is of this computer alone."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def token_in(path: str) -> str:
    """The token that a file holds; raises PageError for one that is none."""
    try:
        token = secret_text(Path(path)).strip()
    except (OSError, NotThatFile, UnicodeDecodeError) as error:
        raise PageError(f"the file of the token {path} {error}") from error
    if len(token) < SHORTEST_TOKEN or not token.isascii() or not token.isprintable():
        raise PageError(
            f"{path} holds no token: write {SHORTEST_TOKEN} or more letters and digits into it, as "
            f"from: openssl rand -hex 16 > {path}"
        )
    return token


class Right(IntEnum):
    """What somebody may do; each may also do what stands before it."""

    NONE = 0
    LOOK = 1
    COMMAND = 2


class Entrance:
    """Who may come in at one address.

    A page of another site that somebody here looks at can reach this computer too, so whatever
    tells an origin has to be of this page, or among `origins`. Without a token, this computer has
    to be asked for by a name of its own: no other name may be made to lead here.

    viewers: the token of those who may look and not command, None for none
    """

    def __init__(
        self,
        host: str,
        token: str | None,
        origins: Sequence[str] = (),
        viewers: str | None = None,
    ) -> None:
        if token is None and not is_loopback(host):
            raise PageError(
                f"{host} can be reached from elsewhere: add --token-file FILE, or leave out "
                "--listen"
            )
        if viewers is not None and token in (None, viewers):
            raise PageError(
                "the token of viewers stands beside that of --token-file, and is another one: "
                "give two files"
            )
        self._token, self._viewers, self._origins = token, viewers, tuple(origins)

    def right_of(self, token: object) -> Right:
        """What whoever has this token may do, found in a time that tells nothing of it."""
        if self._token is None:
            return Right.COMMAND
        given = (token if isinstance(token, str) else "").encode(errors="replace")
        commands = hmac.compare_digest(given, self._token.encode())
        looks = hmac.compare_digest(given, (self._viewers or "").encode())
        if commands:
            return Right.COMMAND
        return Right.LOOK if looks and self._viewers else Right.NONE

    def right_of_header(self, header: str | None) -> Right:
        """The same of a header Authorization: Bearer TOKEN."""
        kind, _, token = (header or "").partition(" ")
        return self.right_of(token.strip() if kind.lower() == "bearer" else None)

    def admits(self, host: str | None, origin: str | None) -> bool:
        """Whether a request by these two headers is one of whom the door is for."""
        try:
            page = None if origin is None else urlsplit(origin).netloc.lower()
            asked = urlsplit(f"//{host or ''}").hostname or ""
        except ValueError:
            return False
        if page not in (None, (host or "").lower()) and origin not in self._origins:
            return False
        return self._token is not None or is_loopback(asked)
