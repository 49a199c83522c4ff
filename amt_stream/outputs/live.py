"""Rows while they are measured."""

import math
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import TextIO

import numpy as np
from numpy.typing import NDArray

from amt_stream.engine.frames import Frames
from amt_stream.outputs.rows import Row, Writer, rows
from amt_stream.outputs.words import fault_words

Tabled = Callable[[Frames, Sequence[int]], Iterable[list[Row]]]
"""Gives the rows of each of the chosen frames."""


def loudness_rows(frames: Frames, chosen: Sequence[int]) -> Iterable[list[Row]]:
    """COLUMNS of frames of `Moore2016Output`, a row each."""
    values = frames.values
    return ([row] for row in rows(frames.time_s[chosen], values.stl[chosen], values.ltl[chosen]))


class LiveRows:
    """A sink that writes the first frame in every `step_ms`, with its marks, and flushes.

    `begin` gives the writer; it is asked when there is something to write, and not before.
    `tabled` says what the rows of a frame are.
    `done` is set after `duration` seconds of sound, or when the stream takes no more: `error` then
    says why.
    """

    def __init__(
        self,
        stream: TextIO,
        begin: Callable[[], Writer],
        step_ms: int,
        duration: float | None = None,
        tabled: Tabled = loudness_rows,
    ) -> None:
        self.done = threading.Event()
        self.error: OSError | None = None
        self._stream, self._begin, self._step_ms = stream, begin, step_ms
        self._tabled = tabled
        self._writer: Writer | None = None
        self._steps = -1
        self._duration = math.inf if duration is None else duration

    def __call__(self, frames: Frames) -> None:
        if self.done.is_set():
            return
        chosen = self._chosen(frames.time_s)
        marked = [
            (*row, *_marks(frames, i))
            for i, several in zip(chosen, self._tabled(frames, chosen), strict=True)
            for row in several
        ]
        try:
            if marked:
                if self._writer is None:
                    self._writer = self._begin()
                self._writer.write(marked)
                self._stream.flush()
        except OSError as error:
            self.error = error
            self.done.set()
        if frames.time_s[-1] >= self._duration:
            self.done.set()

    def _chosen(self, time_s: NDArray[np.float64]) -> Sequence[int]:
        """Frames with which a step begins: where one stands on a whole step, it is that one."""
        # 6.1 / 0.1 is 60.999...: a frame on the edge belongs to the step that begins there.
        steps = np.floor(time_s * 1000 / self._step_ms + 1e-6).astype(np.int64)
        first = (np.diff(steps, prepend=self._steps) > 0) & (time_s <= self._duration)
        self._steps = max(self._steps, int(steps[-1]))
        return np.flatnonzero(first).tolist()


def _marks(frames: Frames, i: int) -> Row:
    """MARKS of a frame."""
    calibration = "calibrated" if frames.calibrated else "uncalibrated"
    return " ".join(fault_words(int(frames.fault[i]))), bool(frames.settling[i]), calibration
