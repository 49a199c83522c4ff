"""What carries messages away, and brings commands."""

from typing import Protocol

from amt_stream.refusal import Refusal
from amt_stream.service.message import Message


class ServiceError(Refusal):
    """A transport cannot be opened: an address in use, a library that is missing."""


class Wire(Protocol):
    """What a transport sees of the station that it belongs to [loop-thread]."""

    async def answer(self, asked: object) -> Message:
        """Do what a command asks for; the reply says so, or in a sentence why it was not done."""

    @property
    def state(self) -> Message:
        """How it stands."""

    def specific(self) -> list[Message]:
        """Specific loudness of the newest frames, of each model that gives it."""

    def complaints(self) -> list[str]:
        """Why it is not well, in sentences."""

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
