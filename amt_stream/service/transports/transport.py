"""The interface of transports."""

import ssl
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol

from amt_stream.core.errors import Refusal
from amt_stream.core.files import NotThatFile, secret_text
from amt_stream.core.importing import install
from amt_stream.service.message import Message


class ServiceError(Refusal):
    """A transport cannot be opened: an address in use, or a missing library."""


def missing(needed: str, extra: str = "serve") -> ServiceError:
    """The error for a missing library; `needed` says who needs which."""
    return ServiceError(f"{needed}, which is not installed: {install(extra)}")


def secret_in(path: str) -> str:
    """The text of a small file that others cannot read. Raises ServiceError."""
    try:
        return secret_text(Path(path))
    except NotThatFile as error:
        raise ServiceError(f"{path} {error}") from error
    except UnicodeDecodeError as error:
        raise ServiceError(f"{path} is not UTF-8 text") from error


class Abandoned(ThreadPoolExecutor):
    """Looks up names of computers in threads that nobody waits for.

    A name server may be silent for half a minute, and the end of the program would wait for a
    usual executor.
    """

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()

        def run() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(fn(*args, **kwargs))
            except BaseException as error:
                future.set_exception(error)

        threading.Thread(target=run, name="names", daemon=True).start()
        return future


def refused_certificate(error: BaseException) -> str:
    """Why a certificate is refused, as the end of a sentence about its server; "" for other errors.

    Libraries raise errors of their own from that of the certificate.
    """
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, ssl.SSLCertVerificationError):
        cause = cause.__cause__ or cause.__context__
    if cause is None:
        return ""
    why = cause.verify_message.rstrip(".")
    return (
        f"has a certificate that is refused: {why}; correct it, or name the file of its authority "
        "in the variable SSL_CERT_FILE"
    )


def host_and_port(host: str, port: int) -> str:
    """An address as HOST:PORT, or [HOST]:PORT if the host has colons."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


class Wire(Protocol):
    """The interface of a station for its transports [loop-thread]."""

    async def answer(self, asked: object, looks_only: bool = False) -> Message:
        """Do a command and return the reply, with an error if it was not done.

        looks_only: whether the client may only send `status`
        """

    def specific(self) -> list[Message]:
        """Specific loudness of the newest frames of each model that computes it."""

    @property
    def newest(self) -> tuple[Message, ...]:
        """The newest header, rows and state, for a new client."""


class Transport(Protocol):
    """A transport. Its methods run in the thread of the station's event loop and never block.

    name: a word, with the address if there may be several
    note: its fault as one sentence, or ""
    missed: number of rows dropped because the receiver is too slow
    """

    @property
    def name(self) -> str: ...

    @property
    def note(self) -> str: ...

    @property
    def missed(self) -> int: ...

    async def open(self, wire: Wire) -> None:
        """Prepare to send. Raises ServiceError."""

    def send(self, message: Message) -> None:
        """Send a message, or queue it up to a limit."""

    async def drain(self) -> None:
        """Wait until there is room for more messages; called if the sound can wait."""

    async def close(self) -> None:
        """Send what is queued, and end."""


class Unhindered:
    """Base of transports that send messages immediately."""

    note = ""
    missed = 0

    async def drain(self) -> None:
        """Return immediately: nothing is queued."""

    async def close(self) -> None:
        """Do nothing."""
