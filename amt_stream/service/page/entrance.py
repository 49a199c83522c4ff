"""Access control of the page: by token, by origin and by host name."""

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
    """The page cannot be opened."""


def is_loopback(host: str) -> bool:
    """Whether an address can only be reached from this computer."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def token_in(path: str) -> str:
    """Read the token in a file. Raises PageError if it is invalid."""
    try:
        token = secret_text(Path(path)).strip()
    except (OSError, NotThatFile, UnicodeDecodeError) as error:
        raise PageError(f"the file of the token {path} {error}") from error
    if len(token) < SHORTEST_TOKEN or not token.isascii() or not token.isprintable():
        raise PageError(
            f"{path} has no token: write {SHORTEST_TOKEN} or more letters and digits into it, such "
            f"as by: openssl rand -hex 16 > {path}"
        )
    return token


class Right(IntEnum):
    """Permissions of a client; each includes those before it."""

    NONE = 0
    LOOK = 1
    COMMAND = 2


class Entrance:
    """Access control of one address.

    Pages of other sites in a browser here can reach this computer too, so a request with an origin
    must come from this page or from one of `origins`. Without a token, the host name must be one of
    this computer, against DNS rebinding.

    viewers: token of clients that may not send commands, None for no such clients
    """

    def __init__(
        self, host: str, token: str | None, origins: Sequence[str] = (), viewers: str | None = None
    ) -> None:
        if token is None and not is_loopback(host):
            raise PageError(
                f"other computers can reach {host}: add --token-file FILE, or leave out --listen"
            )
        if viewers is not None and token in (None, viewers):
            raise PageError(
                "--view-token-file needs --token-file, with another token: give two files"
            )
        self._token, self._viewers, self._origins = token, viewers, tuple(origins)

    def right_of(self, token: object) -> Right:
        """The permission of a token, compared in constant time."""
        if self._token is None:
            return Right.COMMAND
        encoded = (token if isinstance(token, str) else "").encode(errors="replace")
        commands = hmac.compare_digest(encoded, self._token.encode())
        looks = hmac.compare_digest(encoded, (self._viewers or "").encode())
        if commands:
            return Right.COMMAND
        return Right.LOOK if looks and self._viewers else Right.NONE

    def right_of_header(self, header: str | None) -> Right:
        """The permission of a header Authorization: Bearer TOKEN."""
        kind, _, token = (header or "").partition(" ")
        return self.right_of(token.strip() if kind.lower() == "bearer" else None)

    def admits(self, host: str | None, origin: str | None) -> bool:
        """Whether a request with these headers Host and Origin is allowed."""
        try:
            page = None if origin is None else urlsplit(origin).netloc.lower()
            asked = urlsplit(f"//{host or ''}").hostname or ""
        except ValueError:
            return False
        if page not in (None, (host or "").lower()) and origin not in self._origins:
            return False
        return self._token is not None or is_loopback(asked)
