"""Bytes of a file, or of a stream as they come, by their position."""

import os
import select
import sys
import threading
import time
from pathlib import Path
from typing import Any, BinaryIO, Self

SLAB = 1 << 18
"""Bytes read from a file at once."""

PIECE = 1 << 16
"""Most bytes read from a pipe at once."""


WRITER_S, LOOK_S = 1.0, 0.02
"""Time for a writer to open a named pipe, and between two looks."""


class SourceBytes:
    """Bytes by position.

    size: of a file; None for a stream
    total: all bytes, once they are known
    """

    size: int | None = None
    total: int | None = None

    def at(self, position: int, count: int) -> bytes:
        """`count` bytes, fewer only at the end; waits for them."""
        raise NotImplementedError

    def some(self, position: int, count: int, unit: int) -> bytes:
        """From one unit up to `count` bytes, in whole units; fewer only at the end."""
        return self.at(position, count)

    def forget(self, position: int) -> None:
        """Bytes before this position are not asked for again."""

    def grown(self) -> int:
        """Bytes that a file has gained since it was opened."""
        return 0

    def stop(self) -> None:
        """From now on, nothing more comes [any-thread]."""

    def close(self) -> None:
        """Close the file."""


class FileBytes(SourceBytes):
    """The bytes that a file had when it was opened. Raises OSError."""

    size: int

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb", buffering=0)
        self.size = self.total = os.fstat(self._file.fileno()).st_size
        self._begin, self._slab = 0, b""

    def at(self, position: int, count: int) -> bytes:
        count = min(count, self.size - position)
        if count <= 0:
            return b""
        offset = position - self._begin
        if not 0 <= offset <= len(self._slab) - count:
            self._file.seek(position)
            self._begin, self._slab = position, self._file.read(max(count, SLAB))
            offset = 0
        return self._slab[offset : offset + count]

    def grown(self) -> int:
        return os.fstat(self._file.fileno()).st_size - self.size

    def close(self) -> None:
        self._file.close()

    def __del__(self) -> None:
        if hasattr(self, "_file"):
            self._file.close()


class Zeros(SourceBytes):
    """A source of zeros, whose length is all that matters."""

    size: int

    def __init__(self, size: int) -> None:
        self.size = self.total = size

    def at(self, position: int, count: int) -> bytes:
        return bytes(max(0, min(count, self.size - position)))


class PipeBytes(SourceBytes):
    """The bytes of a binary stream that cannot go back; those not forgotten are in memory."""

    def __init__(self, stream: BinaryIO, begun: bytes = b"") -> None:
        self._stream: Any = stream
        self._begin, self._held = 0, bytearray(begun)
        self._owned = False
        self._stopping = threading.Event()

    @classmethod
    def of_path(cls, path: Path) -> Self:
        """The pipe of that name, read from its beginning.

        Raises OSError, and TimeoutError if no program writes into it.
        """
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        stream = os.fdopen(descriptor, "rb", buffering=0)
        try:
            begun = b"" if sys.platform == "win32" else _first_bytes(descriptor)
        except OSError:
            stream.close()
            raise
        made = cls(stream, begun)
        made._owned = True
        return made

    def at(self, position: int, count: int) -> bytes:
        self._wait(position + count)
        return self._piece(position, count)

    def some(self, position: int, count: int, unit: int) -> bytes:
        self._wait(position + unit)
        there = self._begin + len(self._held) - position
        return self._piece(position, min(count, max(unit, there // unit * unit)))

    def forget(self, position: int) -> None:
        done = position - self._begin
        if done >= PIECE:  # not at each read, which would move the rest each time
            del self._held[:done]
            self._begin = position

    def stop(self) -> None:
        self._stopping.set()

    def close(self) -> None:
        self.stop()
        if self._owned:
            self._stream.close()

    def __del__(self) -> None:
        self.close()

    def _piece(self, position: int, count: int) -> bytes:
        first = position - self._begin
        return bytes(self._held[first : first + count])

    def _wait(self, end: int) -> None:
        while self.total is None and self._begin + len(self._held) < end:
            data = self._read()
            self._held += data
            if not data:
                self.total = self._begin + len(self._held)

    def _read(self) -> bytes:
        """The next bytes, b"" at the end; returns soon after `stop` if select works here."""
        try:
            descriptor = self._stream.fileno()
        except (AttributeError, OSError):
            return self._stream.read(PIECE) or b""
        if sys.platform == "win32":  # select works only with sockets there
            return self._stream.read1(PIECE) or b""
        while not self._stopping.is_set():
            if select.select([descriptor], [], [], 0.1)[0]:
                return os.read(descriptor, PIECE)
        return b""


def _first_bytes(descriptor: int) -> bytes:
    """What is in a pipe that is open without blocking; b"" if its writer has written nothing yet.

    From now on it blocks. Raises TimeoutError if it has no writer.
    """
    for _ in range(round(WRITER_S / LOOK_S)):
        try:
            begun = os.read(descriptor, PIECE)
        except BlockingIOError:
            begun, is_written = b"", True
        else:
            is_written = bool(begun)
        if is_written:
            os.set_blocking(descriptor, True)
            return begun
        time.sleep(LOOK_S)
    raise TimeoutError(f"no program has opened it for writing within {WRITER_S:g} s")
