"""A link of a file or stream: one sound, with its own header and decoder."""

import numpy as np
from numpy.typing import NDArray

from amt_stream.dsp.channel_layout import Layout
from amt_stream.engine.readers.encodings import ENCODINGS
from amt_stream.engine.readers.libsndfile import SndfileDecoder
from amt_stream.engine.readers.view import ENDLESS

OVERLAP_S = 1.0
"""Sound before a sample that lossy codecs decode again, so that they give the same samples."""


class Link:
    """One sound of a file or stream, decoded by libsndfile from its position on.

    samples: its length, if it is known for certain
    promised: samples that its header says; None if it says none
    layout: None if it does not say
    bits: bits of a sample as its header says, 0 of floating-point samples
    overlap_s: see OVERLAP_S; None if it can only be decoded from its beginning
    """

    overlap_s: float | None = 0.0
    has_header = True

    def __init__(
        self,
        decoder: SndfileDecoder,
        samples: int | None = None,
        promised: int | None = None,
        layout: Layout | None = None,
        bits: int = 0,
    ) -> None:
        self._decoder = decoder
        self.fs, self.channels = decoder.fs, decoder.channels
        self.samples, self.promised, self.layout = samples, promised, layout
        self.comment, self.software = decoder.comment, decoder.software
        kind = ENCODINGS[decoder.subtype]
        self.bits = kind.bits_of(bits)
        self.encoding, self.clips_at = kind.words.format(self.bits), kind.clips_at(self.bits)

    def read(self, count: int) -> NDArray[np.float32]:
        """Up to `count` samples (time, channel), none at the end."""
        return self._decoder.read(count)

    def seek(self, sample: int) -> bool:
        """Continue at a sample; False if that takes decoding from the beginning."""
        if self.overlap_s is None:
            return False
        again = min(sample, round(self.overlap_s * self.fs))
        if not self._decoder.seek(sample - again):
            return False
        while again and len(block := self.read(again)):
            again -= len(block)
        return not again

    def end(self) -> int:
        """Where another link may begin, once all has been read."""
        raise NotImplementedError

    @property
    def remark(self) -> str:
        """What is to be said of its end, though no sound is missing, or ""."""
        return ""

    def problem(self, came: int) -> str:
        """What is wrong with its end after so many samples, in words or ""."""
        if self._decoder.fault:
            return f"it is damaged after {came} samples: {self._decoder.fault}"
        return ""

    def close(self) -> None:
        self._decoder.close()


def beyond(begin: int, size: int | None) -> int:
    """The end of a file of this size, or of a stream, which has none."""
    return begin + ENDLESS if size is None else size
