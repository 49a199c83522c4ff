"""Links in containers such as WAVE, AIFF, CAF and AU, and samples without a header."""

from collections.abc import Iterable, Iterator
from itertools import chain

from amt_stream.engine.readers.chunks import (
    MOST_CHUNKS,
    chunk_at,
    chunks_follow,
    is_known,
    last_chunks,
)
from amt_stream.engine.readers.containers import Header, kind_of
from amt_stream.engine.readers.encodings import ENCODINGS
from amt_stream.engine.readers.file_layouts import ALAC, ordered
from amt_stream.engine.readers.libsndfile import SndfileDecoder
from amt_stream.engine.readers.link import Link, beyond
from amt_stream.engine.readers.source_bytes import SourceBytes
from amt_stream.engine.readers.view import ENDLESS, Range, View

PROBE = 1 << 12
"""Zeros behind a header that is read alone."""

LONGEST = (1 << 31) - (1 << 16)
"""Bytes of sound in the header of a stream whose decoder needs a length."""


class SoundSpan:
    """The ranges of the sound in a container; `end` is None until it is known.

    goes_on: whether there is more sound than the header says
    """

    def __init__(self, source: SourceBytes, header: Header) -> None:
        self._source, self._header = source, header
        self.begin = header.begin
        self.end = None if source.size is None else self._end_in_file(source.size)

    def __iter__(self) -> Iterator[Range]:
        if self.end is not None:
            yield self.begin, self.end
            return
        at = self.begin
        if self._header.said is not None:
            at += self._header.said
            yield self.begin, at
            if self._ends(at):
                self.end = at
                return
        yield at, at + ENDLESS

    def _end_in_file(self, size: int) -> int:
        grammar, said = self._header.kind.grammar, self._header.said
        if said is None:
            is_empty = chunks_follow(self._source, self.begin, grammar)
        elif self.begin + said >= size:
            return size
        elif self._ends(self.begin + said):
            return self.begin + said
        else:
            is_empty = False
        return self.begin if is_empty else last_chunks(self._source, self.begin, size, grammar)

    def _ends(self, at: int) -> bool:
        """Whether no more sound follows there: chunks, another file, or nothing."""
        grammar = self._header.kind.grammar
        even = at if grammar is None else at + -(at - self.begin) % grammar.align
        places = dict.fromkeys((even, at))
        return any(
            chunks_follow(self._source, place, grammar) or kind_of(self._source.at(place, 40))
            for place in places
        )


class ContainerLink(Link):
    """The sound in a container. Raises Undecodable."""

    def __init__(self, source: SourceBytes, at: int, header: Header) -> None:
        self._source, self._header = source, header
        self._span = span = SoundSpan(source, header)
        size = None if span.end is None else span.end - span.begin
        probe = self._probe(at, size)
        kind = ENCODINGS[probe.subtype]
        self._block = kind.size * probe.channels
        layout = header.layout
        if self._block:
            order = "BIG" if probe.big_endian else "LITTLE"
            decoder = raw_decoder(source, span, probe.fs, probe.channels, probe.subtype, order)
            samples = None if size is None else size // self._block
            said = None if header.said is None else header.said // self._block
        else:
            decoder = probe if size is not None else self._of_stream(at)
            samples = decoder.frames if size == header.said else None
            said = self._scaled(decoder.frames, size)
            layout = layout or (ordered(ALAC, probe.channels) if "ALAC" in kind.words else None)
        promised = said if header.frames is None or not self._block else header.frames
        super().__init__(decoder, samples, promised, layout, header.bits)
        self.comment, self.software = header.comment or probe.comment, probe.software
        if probe is not decoder:
            probe.close()

    def end(self) -> int:
        grammar = self._header.kind.grammar
        at = self._span.end
        if at is None:
            return beyond(self._header.begin, self._source.size)
        for _ in range(MOST_CHUNKS if grammar is not None else 0):
            assert grammar is not None
            chunk = chunk_at(self._source, at, grammar)
            if chunk is None or not is_known(chunk.name):
                break
            at = chunk.end
        return at

    @property
    def remark(self) -> str:
        there = self._source.total
        if not self._block or there is None:
            return ""
        end = there if self._span.end is None else min(there, self._span.end)
        return torn_sample(end - self._span.begin, self._block)

    def _probe(self, at: int, size: int | None) -> SndfileDecoder:
        """What libsndfile reads in the header, in a stream with zeros for its sound."""
        if size is None:
            head = self._header.patched(self._source, at, PROBE)
            return SndfileDecoder(View(None, [head, bytes(PROBE)]))
        head = self._header.patched(self._source, at, size)
        rest = self._header.begin, self.end()
        return SndfileDecoder(View(self._source, [head, rest]))

    def _of_stream(self, at: int) -> SndfileDecoder:
        head = self._header.patched(self._source, at, LONGEST)
        return SndfileDecoder(View(self._source, chain([head], self._span)))

    def _scaled(self, frames: int, size: int | None) -> int | None:
        """The samples in as many bytes as the header says."""
        said = self._header.said
        return None if said is None or not size else round(frames * said / size)


class RawLink(Link):
    """Samples without a header, of one of libsndfile's encodings, from a position to the end."""

    def __init__(
        self, source: SourceBytes, at: int, fs: int, channels: int, subtype: str, order: str
    ) -> None:
        self._source, self._begin = source, at
        self._block = ENCODINGS[subtype].size * channels
        parts = [(at, beyond(at, source.size))]
        super().__init__(raw_decoder(source, parts, fs, channels, subtype, order))

    @property
    def remark(self) -> str:
        there = self._source.total
        return "" if there is None else torn_sample(there - self._begin, self._block)

    def end(self) -> int:
        return beyond(self._begin, self._source.size)


def raw_decoder(
    source: SourceBytes, parts: Iterable[Range], fs: int, channels: int, subtype: str, order: str
) -> SndfileDecoder:
    """A decoder of samples without a header; it gives them as they come.

    order: "LITTLE" or "BIG"
    """
    view = View(source, parts, ENCODINGS[subtype].size * channels)
    form = {"format": "RAW", "subtype": subtype, "endian": order}
    return SndfileDecoder(view, **form, samplerate=fs, channels=channels)


def torn_sample(size: int, block: int) -> str:
    """A sentence on the bytes of an incomplete sample at the end, or ""."""
    left = size % block
    if not left:
        return ""
    return (
        f"it ends in the middle of a sample: its last {left} bytes were left out (one sample of "
        f"all channels has {block})"
    )
