"""Sends the messages of a station to its transports."""

import asyncio
import logging
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress

from amt_stream.core.json_types import JsonDict
from amt_stream.engine.thread_check import thread_checked
from amt_stream.service.message import LeftOut, Message
from amt_stream.service.transports.transport import Transport

log = logging.getLogger("amt_stream")

MOST_ON_WAY = 2000
"""The most messages waiting between the sink and the transports."""


@thread_checked
class Dispatcher:
    """Sends messages to transports, and holds the newest ones of a measurement.

    Unless stated otherwise, methods run in one event loop.

    named: name and labels of the station, which rows and events get

    live: whether the sound does not wait, so that rows are dropped if the loop is too slow
    heard_at: time.monotonic() of the last row
    """

    def __init__(self, transports: Sequence[Transport], named: Mapping[str, object]) -> None:
        self._transports, self._named = tuple(transports), named
        self.live = True
        self.heard_at = math.inf
        self._header: Message | None = None
        self._rows: dict[str, Message] = {}
        self._failed: dict[str, str] = {}
        # Each is counted by one thread only.
        self._posted = self._taken = 0
        self._left_out = LeftOut()

    def forget(self) -> None:
        """Forget the measurement before."""
        self._header, self._rows = None, {}

    def newest(self, state: Message) -> tuple[Message, ...]:
        """The header, the state and the newest rows."""
        header = () if self._header is None else (self._header,)
        return (*header, state, *self._rows.values())

    @property
    def notes(self) -> list[str]:
        """What is wrong with transports."""
        return [note for one in self._transports if (note := self._note_of(one))]

    @property
    def states(self) -> JsonDict:
        """The note of each transport, and how many rows it has missed."""
        return {
            one.name: {"note": self._note_of(one), "missed_rows": one.missed + self._left_out.count}
            for one in self._transports
        }

    def post(self, loop: asyncio.AbstractEventLoop, messages: Sequence[Message]) -> None:
        """Send messages in the loop; for a file, wait until there is room [sink-thread]."""
        waits = not self.live
        if not waits:
            messages = [*self._in_time(messages)]
        sent = asyncio.run_coroutine_threadsafe(self._take(messages, waits), loop)
        if waits:
            with suppress(CancelledError):
                sent.result()

    def send(self, message: Message) -> None:
        for transport in self._transports:
            try:
                transport.send(message)
            except Exception as error:  # the other transports continue
                if transport.name not in self._failed:
                    log.exception("%s cannot send", transport.name)
                self._failed[transport.name] = f"{transport.name} cannot send: {error}"

    def _note_of(self, transport: Transport) -> str:
        return self._failed.get(transport.name) or transport.note

    def _in_time(self, messages: Sequence[Message]) -> Iterator[Message]:
        """Drop rows if the loop is too slow, and mark the next one [sink-thread]."""
        for message in messages:
            if message.kind == "row":
                if self._posted - self._taken >= MOST_ON_WAY:
                    self._left_out.add()
                    continue
                message = self._left_out.before(message)
            self._posted += 1
            yield message

    async def _take(self, messages: Sequence[Message], drain: bool) -> None:
        for one in messages:
            message = one.with_fields(self._named) if one.kind in ("row", "event") else one
            if message.kind == "header":
                self._header = message
            elif message.kind == "row":
                self._rows[message.microphone] = message
                self.heard_at = time.monotonic()
            self.send(message)
            self._taken += 0 if drain else 1
            if drain:
                for transport in self._transports:
                    await transport.drain()
