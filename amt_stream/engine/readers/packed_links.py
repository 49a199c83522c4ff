"""Links of codecs that find their end themselves: FLAC, Ogg and MPEG audio."""

from collections.abc import Iterator
from itertools import chain, islice

import numpy as np
from numpy.typing import NDArray

from amt_stream.dsp.channel_layout import Layout
from amt_stream.engine.readers import flac, ogg
from amt_stream.engine.readers.file_layouts import VORBIS, ordered
from amt_stream.engine.readers.libsndfile import SndfileDecoder
from amt_stream.engine.readers.link import OVERLAP_S, Link, beyond
from amt_stream.engine.readers.mpeg import MpegFrames, xing_of
from amt_stream.engine.readers.source_bytes import SourceBytes
from amt_stream.engine.readers.view import Range, View

READ_AHEAD = 1 << 15
"""Bytes that a decoder of FLAC has read at most beyond the sound that it gave."""

FLAC_IN_OGG = b"\x7fFLAC\x01\x00"
"""How the first packet of FLAC in Ogg begins, behind which the number of packets stands."""

MANY_FRAMES = (1 << 31) - 1
PADDING = 4096 + 2 * 1152
"""Most samples that an encoder of MP3 adds at the end."""


class FlacLink(Link):
    """A FLAC stream, decoded to its end whatever its header says. Raises Undecodable."""

    def __init__(self, source: SourceBytes, at: int) -> None:
        self._source, self._at = source, at
        info = flac.StreamInfo(source, at)
        samples = info.promised if self._is_as_long_as(info) else None
        decoder = self._opened(info)
        super().__init__(decoder, samples, info.promised, info.layout(decoder.channels), info.bits)
        self.encoding = f"FLAC {info.bits} bit"

    def _opened(self, info: flac.StreamInfo) -> SndfileDecoder:
        head = info.without_length()
        rest = self._at + len(head), beyond(self._at, self._source.size)
        self._view = View(self._source, [head, rest], ends=flac.SIGNS)
        return SndfileDecoder(self._view)

    def _is_as_long_as(self, info: flac.StreamInfo) -> bool:
        """Whether a file has the last sample that its header says, and none after it."""
        if self._source.size is None or info.promised is None:
            return False
        decoder = self._opened(info)
        found = decoder.seek(info.promised - 1) and len(decoder.read(2)) == 1
        decoder.close()
        return bool(found) and self.end() == self._source.size

    def end(self) -> int:
        """Where the decoder met another stream, or where all ends."""
        reached = self._at + self._view.tell()
        first = max(self._at + 1, reached - READ_AHEAD)
        near = self._source.at(first, reached - first + len(flac.SIGNS[0]))
        places = [place for place in map(near.find, flac.SIGNS) if place >= 0]
        return first + min(places) if places else beyond(self._at, self._source.size)

    def problem(self, came: int) -> str:
        total = self._source.total
        if self.end() < beyond(self._at, self._source.size) or came >= (self.promised or came + 1):
            return ""
        if total is None or self._at + self._view.tell() < total:
            return super().problem(came)
        if self.promised is not None:
            return ""  # that it is shorter than its header says is all there is to say
        first = max(self._at, total - flac.LONGEST_FRAME)
        is_whole = flac.ends_with_frame(self._source.at(first, total - first))
        return "" if is_whole else "its last frame is not complete"


class OggLink(Link):
    """A link of an Ogg stream: Vorbis or Opus, and FLAC as `FlacInOggLink`. Raises Undecodable."""

    overlap_s: float | None = OVERLAP_S

    def __init__(self, source: SourceBytes, at: int) -> None:
        self._source, self._pages = source, ogg.OggPages(source, at)
        self._describe(self._pages.first_pages())

    def _describe(self, first: bytes) -> None:
        """Make the decoder, by the first pages."""
        pages = self._pages
        tail = b"" if self._source.size is not None else ogg.last_page(pages.serial)
        decoder = SndfileDecoder(View(self._source, pages.ranges(), unit=1, tail=tail))
        samples = decoder.frames if self._is_whole else None
        super().__init__(decoder, samples, layout=_layout_in_ogg(first, decoder.channels))

    @property
    def _is_whole(self) -> bool:
        return self._source.size is not None and self._pages.is_complete

    def end(self) -> int:
        pages = self._pages
        pages.finish()
        return pages.end if pages.is_followed else beyond(pages.begin, self._source.size)

    def problem(self, came: int) -> str:
        self._pages.finish()
        whole = self._pages.is_complete or self._pages.is_followed
        return super().problem(came) or ("" if whole else "its last page is not there")


class FlacInOggLink(OggLink):
    """The FLAC stream that the pages of a link carry. Raises Undecodable."""

    overlap_s = 0.0

    def _describe(self, first: bytes) -> None:
        at = self._pages.begin + first.find(FLAC_IN_OGG) + len(FLAC_IN_OGG) + 2
        info = flac.StreamInfo(self._source, at)
        decoder = SndfileDecoder(View(self._source, self._parts(at, info)))
        samples = self._pages.samples if self._is_whole else None
        layout = flac.layout_in(first, decoder.channels)
        Link.__init__(self, decoder, samples, info.promised, layout, info.bits)
        self.encoding = f"FLAC {info.bits} bit"

    def _parts(self, at: int, info: flac.StreamInfo) -> Iterator[bytes | Range]:
        bodies, head = self._pages.bodies(), info.without_length()
        yield head
        for _, end in islice(bodies, 1):
            yield at + len(head), end
        yield from bodies


def ogg_link(source: SourceBytes, at: int) -> Link:
    """The link of an Ogg stream at a position. Raises Undecodable."""
    is_flac = FLAC_IN_OGG in ogg.OggPages(source, at).first_pages()
    return FlacInOggLink(source, at) if is_flac else OggLink(source, at)


def _layout_in_ogg(pages: bytes, channels: int) -> Layout | None:
    """The layout of a stream with these first pages."""
    if (at := pages.find(b"OpusHead")) >= 0:
        family = pages[at + 18]
        return ordered(VORBIS, channels) if family < 2 else Layout(("",) * channels)
    return ordered(VORBIS, channels) if b"\x01vorbis" in pages else None


class MpegLink(Link):
    """Frames of MPEG audio of one kind, from a position on. Raises Undecodable."""

    # Where the decoder begins in the middle, its sums have another order and other last bits.
    overlap_s = None

    def __init__(self, source: SourceBytes, at: int) -> None:
        self._frames = frames = MpegFrames(source, at)
        ranges = iter(frames) if source.size is None else iter([*frames])
        xing = xing_of(source, at, frames.first)
        is_whole, promised = source.size is not None, None
        if xing is None:
            decoder = SndfileDecoder(View(source, ranges, endless=True))
            samples = frames.count * frames.first.samples
        else:
            there = MANY_FRAMES if source.size is None else frames.count - 1
            # One frame more or less is a matter of counting.
            said = there if abs(there - xing.frames) <= 1 else xing.frames or there
            count, is_whole = max(there, said), is_whole and there >= said
            parts = chain([xing.saying(count)], islice(ranges, 1, None))
            decoder = SndfileDecoder(View(source, parts))
            samples = decoder.frames
            if xing.frames:
                promised = samples - (count - said) * frames.first.samples
        layout = ordered(VORBIS, decoder.channels)
        super().__init__(decoder, samples if is_whole else None, promised, layout)
        # In a stream it is seen only at its end that what the header leaves out is padding.
        self._waits = source.size is None and promised is not None
        self._came, self._waiting = 0, np.empty((0, self.channels), np.float32)

    def read(self, count: int) -> NDArray[np.float32]:
        while True:
            block = super().read(count)
            if not self._waits or not len(block):
                return block
            assert self.promised is not None
            self._came += len(block)
            inside = len(block) - min(len(block), max(0, self._came - self.promised))
            self._waiting = np.concatenate([self._waiting, block[inside:]])
            if len(self._waiting) > PADDING:
                self._waits = False
                return np.concatenate([block[:inside], self._waiting])
            if inside:
                return block[:inside]

    def end(self) -> int:
        return self._frames.end

    @property
    def remark(self) -> str:
        junk = self._frames.junk
        return f"{junk} bytes between its frames are no sound" if junk else ""

    def problem(self, came: int) -> str:
        if not self._frames.is_torn:
            return super().problem(came)
        is_short = self.promised is not None and came < self.promised
        return "" if is_short else "its last frame is not complete"
