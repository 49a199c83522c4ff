"""Clipped sound of one model, and which of its columns include it."""

import math

import numpy as np
from numpy.typing import NDArray

from amt_stream.core.saved_state import Resumable
from amt_stream.meters.frames import Fault, Frames
from amt_stream.meters.rows.readings import Readings


class ClippedSound(Resumable):
    """When sound was last clipped, and how much clipped sound was counted.

    seconds: duration of the counted sound that is clipped
    counted: whether there was any
    """

    kept = ("seconds", "counted", "_last_s")

    def __init__(self, readings: Readings) -> None:
        self._readings = readings
        self._last_s = -math.inf
        # Sound in units of full scale is what it is, however it came about.
        self._matters = readings.in_pascal
        # How long after clipped sound a value includes it; a rolling window is within its memory.
        settle_s = [math.nan if c.settle_s is None else c.settle_s for c in readings.columns]
        self._is_statistic = np.array([one.counted for one in readings.columns], np.bool_)
        self._memory_s = np.where(self._is_statistic, -math.inf, settle_s)
        self.reset()

    def reset(self) -> None:
        """Forget what was counted."""
        self.seconds, self.counted = 0.0, False

    def take(self, frames: Frames) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Take frames with faults; returns, for each, what `so_far` is then."""
        times = np.where(frames.fault & Fault.CLIP, frames.time_s, -math.inf)
        last_s = np.maximum.accumulate(np.append(self._last_s, times))[1:]
        clipped = self._readings.clipped(frames)
        counted = np.logical_or.accumulate(np.append(self.counted, clipped))[1:]
        self.seconds += int(np.count_nonzero(clipped)) * frames.period_s
        self._last_s, self.counted = float(last_s[-1]), bool(counted[-1])
        return last_s, counted

    def take_tail(self, frames: Frames) -> None:
        """Count frames after the end, the first of which has some sound."""
        clipped = self._readings.clipped(frames)
        if clipped.any():
            self.counted = True
            self.seconds += float(clipped[0]) * frames.part * frames.period_s

    @property
    def so_far(self) -> tuple[float, bool]:
        """When sound was last clipped, in seconds, and whether any was counted."""
        return self._last_s, self.counted

    def columns_at(
        self, time_s: NDArray[np.float64], last_s: NDArray[np.float64], counted: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        """Which columns include clipped sound (row, column), in rows at `time_s`.

        last_s, counted: what `so_far` was at each row
        """
        if not self._matters or math.isinf(last_s.max()):
            return np.zeros((len(time_s), len(self._memory_s)), np.bool_)
        since_s = (time_s - last_s)[:, None]
        found: NDArray[np.bool_] = since_s <= self._memory_s
        return found | (self._is_statistic & counted[:, None])

    @property
    def statistics(self) -> NDArray[np.bool_]:
        """Which columns (column,) are statistics of clipped sound."""
        return self._is_statistic & (self.counted and self._matters)
