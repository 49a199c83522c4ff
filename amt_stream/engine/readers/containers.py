"""The headers of WAVE, RF64, BW64, Wave64, AIFF, CAF, AU and SVX, as far as readers need them."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

from amt_stream.core.formats import WHOLE_COMMENT
from amt_stream.dsp.channel_layout import Layout, layout_of_mask
from amt_stream.engine.readers.chunks import (
    CAF,
    IFF,
    MOST_CHUNKS,
    RIFF,
    RIFX,
    SMALL,
    W64,
    ChunkHead,
    Grammar,
    chunk_at,
)
from amt_stream.engine.readers.file_layouts import layout_of_core_audio
from amt_stream.engine.readers.source_bytes import SourceBytes

_WAVE64 = b"riff" + bytes.fromhex("2e91cf11a5d628db04c10000")
_EXTENSIBLE = b"\xfe\xff"
_AU_HEAD = 24

LONGEST_COMMENT = 1 << 24
"""Bytes of a comment that are read."""


class Kind(NamedTuple):
    """A container: its name, grammar, first chunk, chunk of the sound, bytes before the sound."""

    name: str
    grammar: Grammar | None
    first: int = 12
    sound: bytes = b"data"
    skip: int = 0


def kind_of(head: bytes) -> Kind | None:
    """The container that begins with these bytes, 16 or more."""
    magic, form = head[:4], head[8:12]
    if form == b"WAVE" and magic in (b"RIFF", b"RIFX", b"RF64", b"BW64"):
        name = {b"RIFF": "WAV", b"RIFX": "WAV"}.get(magic, magic.decode())
        return Kind(name, RIFX if magic == b"RIFX" else RIFF)
    if magic == b"FORM" and form in (b"AIFF", b"AIFC"):
        return Kind("AIFF", IFF, sound=b"SSND", skip=8)
    if magic == b"FORM" and form in (b"8SVX", b"16SV"):
        return Kind("SVX", IFF, sound=b"BODY")
    if head.startswith(b"caff\0\1\0\0"):
        return Kind("CAF", CAF, 8, skip=4)
    if head.startswith(_WAVE64):
        return Kind("W64", W64, 40)
    if magic in _AU_ORDERS and _AU_HEAD <= _int(head[4:8], _AU_ORDERS[magic]) <= SMALL:
        return Kind("AU", None)
    return None


@dataclass(frozen=True)
class Header:
    """What the header of a container says.

    begin: where its sound begins
    said: bytes of sound; None if the length was not known
    frames: samples of sound, if the header says them apart
    bits: bits of a sample; 0 if it does not say
    field: position and size of the length of the sound
    extra: bytes that this length counts beside the sound
    comment: one that is too long for libsndfile
    """

    kind: Kind
    order: Literal["little", "big"]
    begin: int
    said: int | None
    field: tuple[int, int]
    extra: int = 0
    layout: Layout | None = None
    bits: int = 0
    frames: int | None = None
    comment: str = ""

    def patched(self, source: SourceBytes, at: int, size: int) -> bytes:
        """The bytes before the sound, with another length of it if its field can hold that."""
        head = bytearray(source.at(at, self.begin - at))
        if head.startswith(b"BW64"):
            head[:4] = b"RF64"
        place, count = self.field
        length = size + self.extra
        if length < 1 << 8 * count:
            head[place - at : place - at + count] = length.to_bytes(count, self.order)
        return bytes(head)


def is_unknown(said: int, size: int) -> bool:
    """Whether a length in a field of so many bytes stands for "not known".

    That is 0 and -1, and in 32 bits also what programs write into a pipe: about 2 GiB.
    """
    if size == 8:
        return said == 0 or said >= 1 << 62
    return said == 0 or 0x7F000000 <= said <= 0x80000100 or said >= 0xFFFF0000


class _Chunks:
    """The chunks of a container by name, up to that of the sound."""

    def __init__(self, source: SourceBytes, grammar: Grammar) -> None:
        self._source, self.grammar = source, grammar
        self._chunks: dict[bytes, ChunkHead] = {}

    def collect(self, at: int, last: bytes) -> None:
        """Take over chunks from a position on, until the last one and the format are there.

        Only in AIFF may the format come behind the sound, where only a file can be read.
        """
        for _ in range(MOST_CHUNKS):
            chunk = chunk_at(self._source, at, self.grammar)
            if chunk is None:
                return
            self._chunks.setdefault(chunk.name[:4].rstrip(), chunk)
            is_whole = last != b"SSND" or b"COMM" in self._chunks or self._source.size is None
            if last in self._chunks and is_whole:
                return
            at = chunk.end

    def get(self, name: bytes) -> ChunkHead | None:
        return self._chunks.get(name)

    def content(self, name: bytes, most: int = SMALL) -> bytes:
        """The content of a chunk; b"" if it is not there."""
        chunk = self.get(name)
        return b"" if chunk is None else self._source.at(chunk.begin, min(chunk.size, most))


def read_header(source: SourceBytes, at: int, kind: Kind) -> Header | None:
    """The header of a container at a position; None if it has no chunk of sound."""
    if kind.grammar is None:
        return _au(source, at, kind)
    chunks = _Chunks(source, kind.grammar)
    chunks.collect(at + kind.first, kind.sound)
    sound = chunks.get(kind.sound)
    return None if sound is None else _header(kind, kind.grammar, chunks, sound)


def _header(kind: Kind, grammar: Grammar, chunks: _Chunks, sound: ChunkHead) -> Header:
    skip, said, field = kind.skip, sound.size, (sound.begin - grammar.size, grammar.size)
    if kind.sound == b"SSND":
        skip += _int(chunks.content(b"SSND", 4), "big")
    ds64 = chunks.get(b"ds64")
    if ds64 is not None and said == 0xFFFFFFFF:
        said, field = _int(chunks.content(b"ds64")[8:16], "little"), (ds64.begin + 8, 8)
    length = None if is_unknown(said, field[1]) or said <= skip else said - skip
    extra = skip + (grammar.head if grammar.counts_head else 0)
    layout, bits, frames = _format(chunks)
    comment = chunks.content(WHOLE_COMMENT, LONGEST_COMMENT).decode(errors="replace")
    begin = sound.begin + skip
    return Header(kind, grammar.order, begin, length, field, extra, layout, bits, frames, comment)


def _format(chunks: _Chunks) -> tuple[Layout | None, int, int | None]:
    """Layout, bits of a sample and number of samples, as far as the header says them."""
    order = chunks.grammar.order
    if form := chunks.content(b"fmt"):
        bits, channels = _int(form[14:16], order), _int(form[2:4], order)
        if form[:2] not in (_EXTENSIBLE, _EXTENSIBLE[::-1]) or len(form) < 24:
            return None, bits, None
        return layout_of_mask(_int(form[20:24], order), channels), _int(form[18:20], order), None
    if form := chunks.content(b"COMM"):
        layout = layout_of_core_audio(chunks.content(b"CHAN"), _int(form[:2], "big"))
        frames = _int(form[2:6], "big")
        return layout, _int(form[6:8], "big"), None if is_unknown(frames, 4) else frames
    form = chunks.content(b"desc")
    layout = layout_of_core_audio(chunks.content(b"chan"), _int(form[24:28], "big"))
    return layout, _int(form[28:32], "big"), None


_AU_ORDERS: dict[bytes, Literal["little", "big"]] = {b".snd": "big", b"dns.": "little"}


def _au(source: SourceBytes, at: int, kind: Kind) -> Header:
    head = source.at(at, _AU_HEAD)
    order = _AU_ORDERS[head[:4]]
    said = _int(head[8:12], order)
    known = not is_unknown(said, 4)
    return Header(kind, order, at + _int(head[4:8], order), said if known else None, (at + 8, 4))


def _int(data: bytes, order: Literal["little", "big"]) -> int:
    return int.from_bytes(data, order)
