"""Rows while they are measured."""

import math
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TextIO

import numpy as np
from numpy.typing import NDArray

from amt_stream.frames import Frames
from amt_stream.rows.row import EDGES, Row, Writer, marks, rows

Tabled = Callable[[Frames, Sequence[int]], Iterable[list[Row]]]
"""Gives the rows of each of the chosen frames."""


def loudness_rows(frames: Frames, chosen: Sequence[int]) -> Iterable[list[Row]]:
    """COLUMNS of frames of `Moore2016Output`, and BAND_COLUMNS where it has them, a row each."""
    given = [getattr(frames.values, name) for name in ("stl", "ltl", *EDGES)]
    there = [column[chosen] for column in given if column is not None]
    return ([row] for row in rows(frames.time_s[chosen], *there))


class Table(Protocol):
    """Makes rows of frames as they come, the time first; `reached_s` is how far they reach."""

    @property
    def reached_s(self) -> float: ...

    def __call__(self, frames: Frames) -> list[Row]: ...


class SteppedRows:
    """The rows of the first frame in every `step_ms`, with its marks.

    `tabled` says what the rows of a frame are.
    """

    def __init__(self, tabled: Tabled, step_ms: int) -> None:
        self._tabled, self._step_ms = tabled, step_ms
        self._steps = -1
        self.reached_s = -math.inf

    def __call__(self, frames: Frames) -> list[Row]:
        self.reached_s = float(frames.time_s[-1])
        chosen = self._chosen(frames.time_s)
        calibrated = frames.calibrated
        return [
            (*row, *marks(int(frames.fault[i]), bool(frames.settling[i]), calibrated))
            for i, several in zip(chosen, self._tabled(frames, chosen), strict=True)
            for row in several
        ]

    def _chosen(self, time_s: NDArray[np.float64]) -> Sequence[int]:
        """Frames with which a step begins: where one stands on a whole step, it is that one."""
        # 6.1 / 0.1 is 60.999...: a frame on the edge belongs to the step that begins there.
        steps = np.floor(time_s * 1000 / self._step_ms + 1e-6).astype(np.int64)
        first = np.diff(steps, prepend=self._steps) > 0
        self._steps = max(self._steps, int(steps[-1]))
        return np.flatnonzero(first).tolist()


class LiveRows:
    """A sink that writes the rows that `table` makes of frames, the time first, and flushes.

    `begin` gives the writer; it is asked when there is something to write, and not before.
    `done` is set after `duration` seconds of sound, or when the stream takes no more: `error` then
    says why.
    """

    def __init__(
        self,
        stream: TextIO,
        begin: Callable[[], Writer],
        table: Table,
        duration: float | None = None,
    ) -> None:
        self.done = threading.Event()
        self.error: OSError | None = None
        self._stream, self._begin, self._table = stream, begin, table
        self._writer: Writer | None = None
        self._duration = math.inf if duration is None else duration

    def __call__(self, frames: Frames) -> None:
        if self.done.is_set():
            return
        self.write(self._table(frames))
        if self._table.reached_s >= self._duration:
            self.done.set()

    def write(self, rows: Sequence[Row]) -> None:
        """Write rows as far as the duration goes."""
        wanted = [row for row in rows if row[0] <= self._duration]
        try:
            if wanted:
                if self._writer is None:
                    self._writer = self._begin()
                self._writer.write(wanted)
                self._stream.flush()
        except OSError as error:
            self.error = error
            self.done.set()
