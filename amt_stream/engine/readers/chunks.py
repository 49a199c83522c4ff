"""Files of chunks (WAVE, RF64, BW64, W64, AIFF, CAF), and AU: where their sound begins and ends.

What a header says of the length is often wrong: unknown when it was written, as into a pipe; cut to
32 bits; 0 after a crash; or of the first of several files in a row. A length that fits, and that
valid chunks follow, is right. Otherwise all that is there is sound, but for chunks at the end.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple

from amt_stream.engine.readers.source_bytes import SourceBytes

SMALL = 1 << 20
"""Longest chunk that is read whole, and longest end of a file that is searched for chunks."""

MOST_CHUNKS = 4096

KNOWN = frozenset(
    b"LIST INFO fact cue plst smpl inst PEAK bext iXML axml chna _PMX aXML umid JUNK junk PAD FLLR "
    b"id3 ID3 DISP afsp cart levl acid strc link minf elm1 regn SyLp LGWV SAUR ANNO AUTH NAME COMT "
    b"MARK INST MIDI AESD APPL (c) CHAN SAXL COMM FVER info pakt strg mark uuid ovvw peak edct "
    b"midi free kuki chan ndat amts".split()
)
"""Chunks that programs write behind sound."""

TAGS = (b"TAG", b"APETAGEX", b"ID3", b"LYRICSBEGIN")
"""Texts that some programs append to any file."""

_GUID_END = bytes.fromhex("f3acd3118cd100c04f8edb8a")
"""What the names of Wave64 chunks end in."""


@dataclass(frozen=True)
class Grammar:
    """How a container writes chunks: sizes of name and length, and whether it counts both."""

    name: int
    size: int
    order: Literal["little", "big"]
    counts_head: bool = False
    align: int = 2

    @property
    def head(self) -> int:
        return self.name + self.size


RIFF, RIFX, IFF = (Grammar(4, 4, order) for order in ("little", "big", "big"))
CAF = Grammar(4, 8, "big", align=1)
W64 = Grammar(16, 8, "little", counts_head=True, align=8)


class ChunkHead(NamedTuple):
    """A chunk: its name, where its content begins, its length, and where the next chunk begins."""

    name: bytes
    begin: int
    size: int
    end: int


def chunk_at(source: SourceBytes, at: int, grammar: Grammar) -> ChunkHead | None:
    """The chunk whose head is at a position, if one can be there."""
    head = source.at(at, grammar.head)
    if len(head) < grammar.head:
        return None
    name = head[: grammar.name]
    size = int.from_bytes(head[grammar.name :], grammar.order)
    size -= grammar.head if grammar.counts_head else 0
    if size < 0 or not _is_name(name):
        return None
    begin = at + grammar.head
    end = begin + size
    return ChunkHead(
        name.rstrip(), begin, size, at + -(-(end - at) // grammar.align) * grammar.align
    )


def _is_name(name: bytes) -> bool:
    if len(name) == 16:
        return name.endswith(_GUID_END) or name.startswith(b"riff")
    return all(32 <= one < 127 or one == 0xA9 for one in name) and name != b"    "


def is_known(name: bytes) -> bool:
    is_another_file = name.startswith(b"riff")
    return (len(name) == 16 and not is_another_file) or name in KNOWN


def chunks_follow(source: SourceBytes, at: int, grammar: Grammar | None) -> bool:
    """Whether what is at a position is no sound: valid chunks up to the end, a tag, or nothing."""
    head = source.at(at, 12)
    if not head or head.startswith(TAGS):
        return True
    if grammar is None:
        return False
    for _ in range(MOST_CHUNKS):
        chunk = chunk_at(source, at, grammar)
        if chunk is None:
            return not source.at(at, 2)[1:]  # one byte may fill up the last chunk
        if is_known(chunk.name):
            return True
        if source.size is None and chunk.size > SMALL:
            return False
        if chunk.size and not source.at(chunk.begin + chunk.size - 1, 1):
            return False  # sound of 8 bits may look like the head of a chunk
        at = chunk.end
    return True


def behind_chunks(source: SourceBytes, at: int, grammar: Grammar | None) -> int:
    """Where the known chunks that begin at a position end."""
    for _ in range(MOST_CHUNKS):
        chunk = None if grammar is None else chunk_at(source, at, grammar)
        if chunk is None or not is_known(chunk.name):
            break
        at = chunk.end
    return at


def last_chunks(source: SourceBytes, begin: int, size: int, grammar: Grammar | None) -> int:
    """Where known chunks or a tag begin that reach the end of a file, or its size without any."""
    first = max(begin, size - SMALL)
    tail = source.at(first, size - first)
    if tail[-128:].startswith(b"TAG"):
        return size - 128
    if grammar is None:
        return size
    places = (first + at for at in _known_names(tail))
    return next((at for at in places if _reaches(source, at, size, grammar)), size)


def _known_names(data: bytes) -> list[int]:
    names = [name.ljust(4) for name in KNOWN]
    places = set()
    for name in names:
        at = data.find(name)
        while at >= 0:
            places.add(at)
            at = data.find(name, at + 1)
    at = data.find(_GUID_END)
    while at >= 0:
        places.add(at - 4)
        at = data.find(_GUID_END, at + 1)
    return sorted(place for place in places if place >= 0)


def _reaches(source: SourceBytes, at: int, size: int, grammar: Grammar) -> bool:
    for _ in range(MOST_CHUNKS):
        chunk = chunk_at(source, at, grammar)
        if chunk is None or not is_known(chunk.name):
            return False
        if size in (chunk.end, chunk.begin + chunk.size):
            return True
        at = chunk.end
    return False
