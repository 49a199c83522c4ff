"""Links in containers such as WAVE, AIFF, CAF and AU, and samples without a header."""

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from amt_stream.core.words import counted
from amt_stream.dsp.channel_layout import Layout
from amt_stream.engine.readers.chunks import behind_chunks, chunks_follow, last_chunks
from amt_stream.engine.readers.containers import Header, kind_of
from amt_stream.engine.readers.encodings import ENCODINGS
from amt_stream.engine.readers.file_layouts import ALAC, ordered
from amt_stream.engine.readers.libsndfile import SndfileDecoder
from amt_stream.engine.readers.link import Link, beyond
from amt_stream.engine.readers.source_bytes import SourceBytes, Zeros
from amt_stream.engine.readers.view import ENDLESS, Range, View

PROBE = 1 << 12
"""Zeros behind a header that is read alone."""

LONGEST = 1 << 28
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
    """The sound in a container."""

    def __init__(
        self,
        source: SourceBytes,
        span: SoundSpan,
        header: Header,
        decoder: SndfileDecoder,
        samples: int | None,
        promised: int | None,
        layout: Layout | None,
    ) -> None:
        super().__init__(decoder, samples, promised, layout, header.bits)
        self._source, self._span, self._grammar = source, span, header.kind.grammar
        self.comment = header.comment or self.comment

    def end(self) -> int:
        if self._span.end is None:
            return beyond(self._span.begin, self._source.size)
        return behind_chunks(self._source, self._span.end, self._grammar)

    @property
    def _size(self) -> int | None:
        """Bytes of sound that are there, once that is known."""
        ends = [end for end in (self._span.end, self._source.total) if end is not None]
        return min(ends) - self._span.begin if ends else None


class PlainLink(ContainerLink):
    """Samples in a container, each of its own bytes."""

    def __init__(
        self, source: SourceBytes, span: SoundSpan, header: Header, probe: SndfileDecoder
    ) -> None:
        self._block = block = ENCODINGS[probe.subtype].size * probe.channels
        order = "BIG" if probe.big_endian else "LITTLE"
        decoder = raw_decoder(source, span, probe.fs, probe.channels, probe.subtype, order)
        samples = None if span.end is None else (span.end - span.begin) // block
        said = None if header.said is None else header.said // block
        promised = said if header.frames is None else header.frames
        super().__init__(source, span, header, decoder, samples, promised, header.layout)
        self.comment, self.software = self.comment or probe.comment, probe.software
        probe.close()

    @property
    def remark(self) -> str:
        return "" if self._size is None else torn_sample(self._size, self._block)


class CodecLink(ContainerLink):
    """Sound of another codec in a container, such as ADPCM or ALAC.

    In a stream, the decoder of some codecs goes on with silence behind the end, which is cut here.
    """

    overlap_s = None

    def __init__(
        self, source: SourceBytes, at: int, span: SoundSpan, header: Header, probe: SndfileDecoder
    ) -> None:
        self._patched = partial(header.patched, source, at)
        if span.end is None:
            probe.close()
            head: list[bytes | Range] = [self._patched(LONGEST)]
            probe = SndfileDecoder(View(source, chain(head, span)))
        whole = span.end is not None and span.end - span.begin == header.said
        layout, promised = header.layout, None
        # A table of packets says where ALAC ends.
        self._is_cut = span.end is None and not probe.subtype.startswith("ALAC")
        if probe.subtype.startswith("ALAC"):
            layout, promised = layout or ordered(ALAC, probe.channels), probe.frames
        elif header.said is not None:
            promised = self._samples_in(header.said)
        samples = probe.frames if whole else None
        super().__init__(source, span, header, probe, samples, promised, layout)
        self._came, self._said = 0, header.said

    def read(self, count: int) -> NDArray[np.float32]:
        block = super().read(count)
        if self._is_cut and self._size is not None:
            block = block[: max(0, self._samples_in(self._size) - self._came)]
        self._came += len(block)
        return block

    def problem(self, came: int) -> str:
        size = self._size
        if self._is_cut and size is None:
            return f"it is longer than {LONGEST} bytes of {self.encoding}: give it as a file"
        is_short = size is not None and self._said is not None and size < self._said
        if is_short and (self.promised is None or came >= self.promised):
            return f"its header says {self._said} bytes of sound, but there are {size}"
        return super().problem(came)

    def _samples_in(self, size: int) -> int:
        """The samples in so many bytes of sound."""
        decoder = SndfileDecoder(View(Zeros(size), [self._patched(size), (0, size)]))
        decoder.close()
        return decoder.frames


def container_link(source: SourceBytes, at: int, header: Header) -> ContainerLink:
    """The sound in a container at a position. Raises Undecodable."""
    span = SoundSpan(source, header)
    if span.end is None:
        probe = SndfileDecoder(View(None, [header.patched(source, at, PROBE), bytes(PROBE)]))
    else:
        head = header.patched(source, at, span.end - span.begin)
        rest = span.begin, behind_chunks(source, span.end, header.kind.grammar)
        probe = SndfileDecoder(View(source, [head, rest]))
    if ENCODINGS[probe.subtype].size:
        return PlainLink(source, span, header, probe)
    return CodecLink(source, at, span, header, probe)


class RawLink(Link):
    """Samples without a header, of one of libsndfile's encodings, to the end."""

    has_header = False

    def __init__(self, source: SourceBytes, fs: int, channels: int, subtype: str) -> None:
        self._source = source
        self._block = ENCODINGS[subtype].size * channels
        parts = [(0, beyond(0, source.size))]
        super().__init__(raw_decoder(source, parts, fs, channels, subtype, "LITTLE"))

    @property
    def remark(self) -> str:
        there = self._source.total
        return "" if there is None else torn_sample(there, self._block)

    def end(self) -> int:
        return beyond(0, self._source.size)


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
        f"it ends in the middle of a sample: left out at its end: {counted(left, 'byte')} (one "
        f"sample of all channels has {block})"
    )
