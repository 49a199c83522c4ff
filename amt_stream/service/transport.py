"""What carries messages away, and brings commands."""

from typing import Protocol

from amt_stream.core.errors import Refusal
from amt_stream.service.message import Message


class ServiceError(Refusal):
    """A transport cannot be opened: an address in use, a library that is missing."""


def missing(needed: str, extra: str = "serve") -> ServiceError:
    """What is raised where a library is not there; `needed` is who needs which."""
    return ServiceError(f'{needed}, which is not installed: pip install "amt_stream[{extra}]"')


def host_and_port(host: str, port: int) -> str:
    """An address as it is typed: HOST:PORT, or [HOST]:PORT of one with colons."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


class Wire(Protocol):
    """What a transport sees of the station that it belongs to [loop-thread]."""

    async def answer(self, asked: object, looks_only: bool = False) -> Message:
        """Do what a command asks for; the reply says so, or in a sentence why it was not done.

        looks_only: whoever asks may have `status` alone
        """

    def specific(self) -> list[Message]:
        """Specific loudness of the newest frames, of each model that gives it."""

    @property
    def newest(self) -> tuple[Message, ...]:
        """The messages by which whoever comes now knows where things stand."""


class Transport(Protocol):
    """One way out. All of it runs in the thread of the station's event loop, and never waits.

    name: a word, by which its state is told, and where it leads, if there may be several
    note: one sentence of what troubles it, or ""
    missed: rows that were left out because whoever takes them is too slow
    """

    @property
    def name(self) -> str: ...

    @property
    def note(self) -> str: ...

    @property
    def missed(self) -> int: ...

    async def open(self, wire: Wire) -> None:
        """Be ready to send; raises ServiceError where it cannot."""

    def send(self, message: Message) -> None:
        """Carry one message away, or let it wait within bounds."""

    async def drain(self) -> None:
        """Wait until there is room for more: asked where the sound can wait."""

    async def close(self) -> None:
        """Bring what waits on its way, and end."""


class Unhindered:
    """The parts of a transport whose messages leave at once."""

    note = ""
    missed = 0

    async def drain(self) -> None:
        """Nothing waits here."""

    async def close(self) -> None:
        """Nothing is left to do."""
