"""Pages of Ogg streams (RFC 3533), and the links of which they are chained."""

import struct
from collections.abc import Iterator
from typing import NamedTuple

from amt_stream.engine.readers.source_bytes import SourceBytes

HEAD = 27
_FIRST, _LAST = 2, 4
_HEADERS = 3
_LONGEST = HEAD + 255 + 255 * 255

ENDLESS_SAMPLES = 1 << 60
"""Position of the last sample in a stream whose end is not known yet."""


def is_ogg(head: bytes) -> bool:
    """Whether the first page of a stream begins with these bytes."""
    return head.startswith(b"OggS\0") and bool(head[5:6] and head[5] & _FIRST)


class Page(NamedTuple):
    """A page: its flags and stream, the number of samples up to it, and its positions."""

    flags: int
    serial: bytes
    samples: int
    begin: int
    body: int
    end: int


class OggPages:
    """The pages of one link, from a position up to the first page of the next link.

    end: where the last page ends, or should end
    samples: what the last page says of the number of samples
    is_followed: whether another link follows it
    """

    def __init__(self, source: SourceBytes, at: int) -> None:
        self._source = source
        self.begin = self.end = at
        self.samples = 0
        self.is_followed = False
        self._open: set[bytes] = set()
        first = self._page(at)
        self.serial = b"" if first is None else first.serial
        self._left = self._pages()

    @property
    def is_complete(self) -> bool:
        """Whether the last page of each of its streams is there."""
        return not self._open and self.end > self.begin

    def first_pages(self) -> bytes:
        """Its first pages, with the headers of its streams."""
        at = self.begin
        for _ in range(_HEADERS):
            page = self._page(at)
            at = at if page is None else page.end
        return self._source.at(self.begin, at - self.begin)

    def ranges(self) -> Iterator[tuple[int, int]]:
        """The ranges of its pages."""
        return ((page.begin, page.end) for page in self._left)

    def bodies(self) -> Iterator[tuple[int, int]]:
        """The ranges of what the pages of its first stream carry."""
        return ((page.body, page.end) for page in self._left if page.serial == self.serial)

    def finish(self) -> None:
        """Pass over the pages that a decoder has left, so that the end is known."""
        for _ in self._left:
            pass

    def _pages(self) -> Iterator[Page]:
        heads = True
        while (page := self._page(self.end)) is not None:
            if page.flags & _FIRST and not heads:
                self.is_followed = True
                return
            if not self._source.at(page.end - 1, 1):
                return  # it is cut off within this page
            heads = bool(page.flags & _FIRST)
            (self._open.discard if page.flags & _LAST else self._open.add)(page.serial)
            self.samples = max(self.samples, page.samples)
            self.end = page.end
            yield page

    def _page(self, at: int) -> Page | None:
        """The next page, at a position or behind it."""
        while True:
            head = self._source.at(at, HEAD)
            if len(head) < HEAD:
                return None
            if head.startswith(b"OggS"):
                lacing = self._source.at(at + HEAD, head[26])
                body = at + HEAD + len(lacing)
                samples = int.from_bytes(head[6:14], "little", signed=True)
                return Page(head[5], head[14:18], samples, at, body, body + sum(lacing))
            more = self._source.at(at, _LONGEST)
            skip = more.find(b"OggS", 1)
            if skip < 0:
                if len(more) < _LONGEST:
                    return None
                skip = len(more) - 3
            at += skip


def last_page(serial: bytes) -> bytes:
    """A last page that says how long a stream is, for a decoder that asks before it is known."""
    page = struct.pack("<4sBBq4sIIB", b"OggS", 0, _LAST, ENDLESS_SAMPLES, serial, 0, 0, 0)
    return page[:22] + struct.pack("<I", _checksum(page)) + page[26:]


def _checksum(page: bytes) -> int:
    """CRC with the polynomial 0x04C11DB7, not reflected, from 0 (RFC 3533, 6)."""
    register = 0
    for one in page:
        register ^= one << 24
        for _ in range(8):
            register = register << 1 ^ (0x04C11DB7 if register & 0x80000000 else 0)
        register &= 0xFFFFFFFF
    return register
