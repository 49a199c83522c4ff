"""The last seconds of sound, in memory."""

import threading
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from amt_stream.meters.frames import Chunk

JOINED_S = 0.1
"""Consecutive chunks are merged to pieces of about this many seconds."""


@dataclass(frozen=True, eq=False)
class SampleSpan:
    """Sound from sample `start` to `stop` of the measurement.

    pieces: available pieces in order; the first and the last one may extend beyond the span
    """

    pieces: tuple[Chunk, ...]
    start: int
    stop: int
    fs: int
    channels: int

    def __len__(self) -> int:
        return self.stop - self.start

    @property
    def utc(self) -> float:
        """Unix time of the first sample."""
        first = self.pieces[0]
        return first.utc + (self.start - first.sample) / self.fs

    def blocks(self) -> Iterator[NDArray[np.float32]]:
        """Yield samples (time, channel), a second at a time, with silence in gaps."""
        for begin in range(0, len(self), self.fs):
            size = min(self.fs, len(self) - begin)
            block = np.zeros((size, self.channels), np.float32)
            for piece, place in self._placed():
                at = place - begin
                if at < size and at + len(piece) > 0:
                    part = piece.samples[max(0, -at) : size - at]
                    block[max(0, at) : max(0, at) + len(part)] = part
            yield block

    @property
    def gaps(self) -> list[tuple[int, int]]:
        """Gaps: position in this span, and number of samples."""
        found, end = [], 0
        for piece, at in self._placed():
            if at > end:
                found.append((end, at - end))
            end = max(end, at + len(piece))
        if end < len(self):
            found.append((end, len(self) - end))
        return found

    def _placed(self) -> list[tuple[Chunk, int]]:
        return [(piece, piece.sample - self.start) for piece in self.pieces]


class SoundMemory:
    """Holds the last `seconds` of sound, all channels [any-thread].

    It needs 4 bytes per sample and channel, plus up to a tenth of a second. Gaps need no memory.
    """

    def __init__(self, fs: int, channels: int, seconds: float) -> None:
        self.fs, self.channels = fs, channels
        self._most = round(seconds * fs)
        self._piece = max(1, round(JOINED_S * fs))
        self._pieces: deque[Chunk] = deque()
        self._open: list[Chunk] = []
        self._end = 0
        self._lock = threading.Lock()

    @property
    def first(self) -> int:
        with self._lock:
            there = self._pieces or self._open
            return max(there[0].sample, self._end - self._most) if there else self._end

    @property
    def end(self) -> int:
        """The sample after the last one in memory."""
        return self._end

    def add(self, chunk: Chunk) -> None:
        """Add a chunk, and drop sound that is too old."""
        if not len(chunk):
            return
        with self._lock:
            if self._open and chunk.sample != self._end:
                self._join()
            self._open.append(chunk)
            self._end = chunk.sample + len(chunk)
            if self._end - self._open[0].sample >= self._piece:
                self._join()
            first = self._end - self._most
            while self._pieces and self._pieces[0].sample + len(self._pieces[0]) <= first:
                self._pieces.popleft()

    def _join(self) -> None:
        whole = np.concatenate([chunk.samples for chunk in self._open])
        self._pieces.append(Chunk(whole, self._open[0].sample, self._open[0].utc))
        self._open = []

    def between(self, start: int, stop: int) -> SampleSpan | None:
        """The available span within these samples, or None."""
        start, stop = max(start, self.first), min(stop, self.end)
        with self._lock:
            there = [*self._pieces, *self._open]
        pieces = tuple(p for p in there if p.sample < stop and p.sample + len(p) > start)
        if not pieces:
            return None
        # The span neither begins nor ends with a gap.
        start = max(start, pieces[0].sample)
        stop = min(stop, pieces[-1].sample + len(pieces[-1]))
        return SampleSpan(pieces, start, stop, self.fs, self.channels)
