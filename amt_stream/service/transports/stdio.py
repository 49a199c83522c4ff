"""Messages on standard output and commands on standard input, as JSON lines."""

import asyncio
import contextlib
import json
import queue
import threading
from typing import BinaryIO, TextIO

from amt_stream.service.message import LeftOut, Message
from amt_stream.service.transports.transport import Wire

ROWS_WAIT = 1000
ROOM_S = 0.005
LAST_S = 2.0
LONGEST_LINE = 1 << 16


class Stdio:
    """A transport for the program that started this one, in any language.

    Up to a thousand rows wait for a slow reader; further rows are dropped, and the next one is
    marked. `ended` is set at the end of standard input, or when the reader of the messages has
    left.
    """

    name = "stdio"
    note = ""

    def __init__(self, commands: BinaryIO, messages: TextIO) -> None:
        self.ended = threading.Event()
        self._commands, self._messages = commands, messages
        self._waiting: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._left_out = LeftOut()
        self._writer = threading.Thread(target=self._write, name="stdio out", daemon=True)

    @property
    def missed(self) -> int:
        return self._left_out.count

    async def open(self, wire: Wire) -> None:
        """Read and write in separate threads, as both may block for long."""
        loop = asyncio.get_running_loop()
        self._writer.start()
        reader = threading.Thread(
            target=self._read, args=(wire, loop), name="stdio in", daemon=True
        )
        reader.start()

    def send(self, message: Message) -> None:
        if message.kind == "row":
            if self._waiting.qsize() >= ROWS_WAIT:
                self._left_out.add()
                return
            message = self._left_out.before(message)
        self._waiting.put(message.text)

    async def drain(self) -> None:
        while self._waiting.qsize() > ROWS_WAIT // 2 and not self.ended.is_set():
            await asyncio.sleep(ROOM_S)

    async def close(self) -> None:
        self._waiting.put(None)
        await asyncio.to_thread(self._writer.join, LAST_S)

    def _write(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            while (text := self._waiting.get()) is not None:
                self._messages.write(text + "\n")
                if self._waiting.empty():
                    self._messages.flush()
            self._messages.flush()
            return
        self.ended.set()

    def _read(self, wire: Wire, loop: asyncio.AbstractEventLoop) -> None:
        with contextlib.suppress(OSError, ValueError, RuntimeError):  # or the loop is closed
            while line := self._commands.readline(LONGEST_LINE):
                if line.strip():
                    self._ask(wire, loop, line)
        self.ended.set()

    def _ask(self, wire: Wire, loop: asyncio.AbstractEventLoop, line: bytes) -> None:
        """Do one command, in the order of arrival. A loop that has ended makes no coroutine."""
        done, tasks = threading.Event(), list[asyncio.Task[None]]()

        async def answer() -> None:
            try:
                self.send(await wire.answer(asked_in(line)))
            finally:
                done.set()

        loop.call_soon_threadsafe(lambda: tasks.append(loop.create_task(answer())))
        done.wait()


def asked_in(text: str | bytes) -> object:
    """Parse a JSON line; an invalid one is returned as text, which is refused."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text if isinstance(text, str) else text.decode(errors="replace")
