"""A file for a decoder, put together from bytes and from ranges of a source."""

from bisect import bisect_right
from collections.abc import Iterable

from amt_stream.engine.readers.source_bytes import SourceBytes

Range = tuple[int, int]
"""Positions [begin, end) in a source."""

ENDLESS = 1 << 45
"""Size of a view whose end is not known yet."""

NEAR_END = 1 << 17
"""Within so many bytes of ENDLESS, decoders look for what a file has at its end."""

HELD = 1 << 16
"""Bytes of a stream that stay in memory: decoders go back by less."""


class View:
    """A file-like object for libsndfile, or another decoder.

    source: None if all parts are bytes
    parts: bytes, and ranges of the source, in order
    unit: if not 0, reads return what has come in whole units, and otherwise wait for all
    endless: the parts are laid out as they are read, and until then the view is ENDLESS, with zeros
        and `tail` at its end; always so of a stream
    ends: what the next sound of a source begins with, all of one length: a read ends before it

    `error` is what ended it early, as a decoder in C passes on no exception.
    """

    def __init__(
        self,
        source: SourceBytes | None,
        parts: Iterable[bytes | Range],
        unit: int = 0,
        endless: bool = False,
        tail: bytes = b"",
        ends: tuple[bytes, ...] = (),
    ) -> None:
        self._source, self._parts = source, iter(parts)
        self._unit, self._tail, self._ends = unit, tail, ends
        self._is_stream = source is not None and source.size is None
        self._begins: list[int] = []
        self._laid: list[bytes | Range] = []
        self._length, self._complete = 0, False
        self._position = self._reached = 0
        self.opened = False
        """Whether the decoder is made, and goes back by less than HELD."""
        self.error: Exception | None = None
        self._endless = endless or self._is_stream
        while not (self._endless or self._complete):
            self._lay()

    @property
    def size(self) -> int:
        return ENDLESS if self._endless else self._length

    def seek(self, offset: int, whence: int = 0) -> int:
        self._position = offset + (0, self._position, self.size)[whence]
        return self._position

    def tell(self) -> int:
        return self._position

    def readinto(self, buffer: memoryview) -> int:
        count, done = len(buffer), 0
        try:
            while done < count:
                piece = self._piece(self._position, count - done)
                if not piece:
                    break
                buffer[done : done + len(piece)] = piece
                done += len(piece)
                self._position += len(piece)
                if self._position < ENDLESS - NEAR_END:
                    self._reached = max(self._reached, self._position)
                if self._unit:
                    break
        except Exception as error:
            self.error = error
            return 0
        return done

    def read(self, count: int) -> bytes:
        buffer = bytearray(count)
        return bytes(buffer[: self.readinto(memoryview(buffer))])

    def _piece(self, position: int, count: int) -> bytes:
        if self._endless and position > ENDLESS - NEAR_END:
            end = bytes(NEAR_END - len(self._tail)) + self._tail
            first = position - (ENDLESS - NEAR_END)
            return end[first : first + count]
        if not self.opened and self._is_stream and position > self._reached + NEAR_END:
            return b""  # what lies far ahead in a stream is not there yet
        while position >= self._length:
            if self._complete:
                return b""
            self._lay()
        place = bisect_right(self._begins, position) - 1
        offset, part = position - self._begins[place], self._laid[place]
        if isinstance(part, bytes):
            return part[offset : offset + count]
        assert self._source is not None
        first = part[0] + offset
        count = min(count, part[1] - first)
        if self.opened:
            self._source.forget(first - HELD)
        if self._unit:
            # A decoder asks for as much as its buffer holds, which may end within a unit.
            torn = position % self._unit
            return self._source.some(first - torn, count + torn, self._unit)[torn:]
        return self._up_to_end(self._source, first, count)

    def _up_to_end(self, source: SourceBytes, first: int, count: int) -> bytes:
        data = source.at(first, count + len(max(self._ends, default=b"")))
        places = [place for place in map(data.find, self._ends) if place >= 0]
        return data[: min([count, *places])]

    def _lay(self) -> None:
        part = next(self._parts, None)
        if part is None:
            self._complete = True
            return
        last = self._laid[-1] if self._laid else b""
        if isinstance(part, tuple) and isinstance(last, tuple) and last[1] == part[0]:
            self._laid[-1] = last[0], part[1]
        else:
            self._begins.append(self._length)
            self._laid.append(part)
        self._length += len(part) if isinstance(part, bytes) else part[1] - part[0]
