"""What the header of a FLAC stream says (RFC 9639)."""

import re
from functools import cache

from amt_stream.dsp.channel_layout import Layout, layout_of_mask
from amt_stream.engine.readers.file_layouts import FLAC, ordered
from amt_stream.engine.readers.source_bytes import SourceBytes

MAGIC = b"fLaC"
SIGNS = (MAGIC + b"\0\0\0\x22", MAGIC + b"\x80\0\0\x22")
"""How a stream begins: with its STREAMINFO, of 34 bytes, that is the last block or not."""

LONGEST_FRAME = 1 << 16
"""Bytes of a frame that is searched for at the end of a stream; those of encoders are shorter."""

MOST_SAMPLES = (1 << 36) - 1
_BITS, _COUNT = 20, 21
_COMMENT, _LAST, _BLOCKS = 4, 0x80, 1000
_MASK = re.compile(rb"WAVEFORMATEXTENSIBLE_CHANNEL_MASK=0x([0-9a-f]+)", re.I)


def is_flac(head: bytes) -> bool:
    """Whether a stream begins with these bytes."""
    return head.startswith(SIGNS)


class StreamInfo:
    """The header of a stream at a position.

    promised: samples that it says; None if it says none
    bits: bits of a sample
    """

    def __init__(self, source: SourceBytes, at: int) -> None:
        self._source, self._begin = source, at
        head = source.at(at, 42).ljust(42, b"\0")
        self._fields = int.from_bytes(head[_COUNT : _COUNT + 5], "big")
        self.promised = self._fields & MOST_SAMPLES or None
        self.bits = (int.from_bytes(head[_BITS : _BITS + 2], "big") >> 4 & 31) + 1

    def without_length(self) -> bytes:
        """Its first bytes, with the largest number of samples, so that nothing stops a decoder."""
        fields = self._fields | MOST_SAMPLES
        return self._source.at(self._begin, _COUNT) + fields.to_bytes(5, "big")

    def layout(self, channels: int) -> Layout | None:
        """The layout of its comment, or that of the format."""
        at = self._begin + len(MAGIC)
        for _ in range(_BLOCKS):
            head = self._source.at(at, 4)
            size = int.from_bytes(head[1:], "big")
            if len(head) < 4 or head[0] & ~_LAST == _COMMENT:
                return layout_in(self._source.at(at + 4, size), channels)
            if head[0] & _LAST:
                break
            at += 4 + size
        return ordered(FLAC, channels)


def layout_in(comment: bytes, channels: int) -> Layout | None:
    """The layout of a comment that says one, or that of the format."""
    mask = _MASK.search(comment)
    said = mask and layout_of_mask(int(mask[1], 16), channels)
    return said or ordered(FLAC, channels)


def ends_with_frame(data: bytes) -> bool:
    """Whether the last bytes are a whole frame, by its checksum, or a tag behind one."""
    if data[-_TAG:].startswith(b"TAG"):
        data = data[:-_TAG]
    at = len(data)
    while (at := data.rfind(b"\xff", 0, at)) >= 0:
        if data[at + 1 : at + 2] in (b"\xf8", b"\xf9") and not _checksum(data[at:]):
            return True
    return False


_TAG = 128


@cache
def _table() -> tuple[int, ...]:
    """Steps of the CRC with the polynomial 0x8005, not reflected, from 0 (RFC 9639, 9.3)."""
    steps = []
    for one in range(256):
        register = one << 8
        for _ in range(8):
            register = register << 1 ^ (0x8005 if register & 0x8000 else 0)
        steps.append(register & 0xFFFF)
    return tuple(steps)


def _checksum(data: bytes) -> int:
    register, table = 0, _table()
    for one in data:
        register = register << 8 & 0xFFFF ^ table[register >> 8 ^ one]
    return register
