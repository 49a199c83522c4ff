"""The output of one model, as its readings and rows take it."""

import math
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from amt_stream.core.saved_state import Resumable
from amt_stream.meters.accumulators.covered import CoveredTime
from amt_stream.meters.frames import Fault, Frames
from amt_stream.meters.rows.column import Column
from amt_stream.meters.rows.frame_table import UNCALIBRATED, FrameTable, SoFar
from amt_stream.meters.rows.readings import Readings, Summary


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


class Settling(Resumable):
    """Marks columns that settle.

    after_s: time of the first frame after the last missing one
    """

    kept = ("after_s",)

    def __init__(self, columns: Sequence[Column]) -> None:
        self.after_s = -math.inf
        settle_s = [column.settle_s for column in columns]
        self._settle_s = np.array([math.nan if s is None else s for s in settle_s])
        self._window_s = np.array([column.window_s for column in columns])
        # Time after a fault, and after a gap, until no column remembers it.
        self._calm_s = max((s for s in settle_s if s is not None), default=0.0)
        self._whole_s = self._window_s.max(initial=0.0)
        self._own_times = None not in settle_s

    def of(self, frames: Frames) -> NDArray[np.bool_] | bool:
        """Which columns settle or have an incomplete window.

        Either for each frame (frame, column), or for all at once.
        """
        if frames.end_s < frames.start_s:
            return True
        whole = frames.begin_s >= max(frames.start_s, self.after_s + self._whole_s)
        settled = frames.settled or self._own_times
        if whole and settled and frames.calm_s >= self._calm_s:
            return False
        found = frames.since_s[:, None] < self._settle_s
        found |= frames.settling[:, None] & np.isnan(self._settle_s)
        found |= frames.time_s[:, None] < self.after_s + self._window_s
        starting: NDArray[np.bool_] = frames.time_s < frames.start_s
        return found | starting[:, None]


NOTED_S = 0.05
"""Times that differ by less are the same for a reader."""

ON = np.zeros(1, np.bool_)


class OfRows(NamedTuple):
    """What rows have of one model.

    values: (row, value)
    marks: bits of `Fault` and UNCALIBRATED (row,), of all frames since the row before
    settling, clipped: which columns settle, and which include clipped sound (row, column)
    ranges: the least and the greatest values since the row before, if asked for
    """

    values: NDArray[np.float64]
    marks: NDArray[np.uint8]
    settling: NDArray[np.bool_]
    clipped: NDArray[np.bool_]
    ranges: Sequence[NDArray[np.float64]]


class ModelTrack(Resumable):
    """The frames of one model that rows still need, and the time that its readings count.

    readings: those of the model, which this feeds

    off_s, stalled_s, missed_s: seconds in which the model was switched off, in which it is unknown
        whether sound is late or lost, and of frames that came too fast for this output
    is_off: whether the model was switched off at the last frame
    """

    kept = ("frames", "settling", "clipping", "off_s", "stalled_s", "missed_s", "_covered")

    def __init__(self, readings: Readings) -> None:
        self.readings = readings
        self.frames = FrameTable(readings.width, len(readings.columns))
        self.settling, self.clipping = Settling(readings.columns), ClippedSound(readings)
        self.is_off = False
        self._statistics = {
            one.name: one.counts_after_s
            for one in (*readings.offered, *readings.columns)
            if one.counted and one.counts_after_s is not None
        }
        after_s = set(self._statistics.values())
        self._covered = CoveredTime(after_s if len(after_s) > 1 else ())
        self.reset()

    def take_over(self, before: Self) -> None:
        """Continue a track of the same model with other columns."""
        super().take_over(before)
        was = {c.name: k for k, c in enumerate(before.readings.columns)}
        pairs = [(k, was.get(c.name)) for k, c in enumerate(self.readings.columns)]
        places = [(k, at) for k, at in pairs if at is not None]
        self.frames.continue_with(before.frames, np.array(places, np.int64).reshape(-1, 2).T)
        self.is_off = before.is_off

    def reset(self) -> None:
        """Forget what was counted, and what was left out."""
        self.off_s = self.stalled_s = self.missed_s = 0.0
        self.clipping.reset()
        self._covered.reset()

    def take(self, frames: Frames) -> None:
        """Count frames, and store them for rows."""
        readings = self.readings
        readings.judge(frames)
        if not readings.paused:
            counted = partial(readings.counted, frames)
            all_count = partial(readings.all_count, frames)
            self._covered.add(counted, all_count, len(frames), frames.period_s)
        self._skip_to(frames)
        taken = readings.take(frames)
        if frames.calm_s == -math.inf:
            taken[is_off(frames)] = math.nan
        self._append(frames, taken)

    def pass_by(self, frames: Frames) -> None:
        """Take frames of a model that is off, without its readings."""
        self._skip_to(frames)
        self.readings.skip(len(frames))
        self._append(frames, np.full((len(frames), self.readings.width), math.nan))

    def tail(self, frames: Frames) -> None:
        """Take frames after the end of the sound, which have no rows."""
        self.readings.tail(frames)
        self.clipping.take_tail(frames)

    def begin(self, frames: Frames) -> None:
        """Tell rows before the first frame what later frames are like."""
        self.frames.begin(_mark_of(frames))
        self.frames.epoch_s = frames.end_utc - frames.end_s

    def until(self, time_s: NDArray[np.float64]) -> OfRows:
        """Take what rows at `time_s` have of this model, and forget earlier frames."""
        of = self.frames.until(time_s)
        clipped = self.clipping.columns_at(time_s, of.clip_s, of.clip)
        return OfRows(of.values, of.marks, of.settling, clipped, of.ranges)

    def measured_of(self) -> Summary:
        """Seconds that a statistic covers, where they are not those of the model."""
        usual_s = self.readings.counted_s().get("measured_s")
        found = {
            name: self._covered.of(after_s)
            for name, after_s in self._statistics.items()
            if after_s in self._covered.after_s
        } | self.readings.measured_of()
        return {
            name: s
            for name, s in found.items()
            if usual_s is not None and s is not None and abs(s - usual_s) > NOTED_S
        }

    def _skip_to(self, frames: Frames) -> None:
        """Skip what is missing before frames."""
        lost, before_s = frames.skipped + frames.missed, self.frames.last_s
        if lost:
            self.settling.after_s = frames.begin_s
            self.readings.skip(lost)
        if frames.calm_s > -math.inf and not frames.missed:
            return
        period_s = (frames.begin_s - before_s) / (lost + 1)
        if len(frames) > 1:
            period_s = (frames.end_s - frames.begin_s) / (len(frames) - 1)
        if math.isfinite(period_s) and not self.readings.paused:
            self.missed_s += period_s * frames.missed
            self.off_s += period_s * np.count_nonzero(is_off(frames))
            self.stalled_s += period_s * np.count_nonzero(frames.fault & Fault.STALL)

    def _append(self, frames: Frames, values: NDArray[np.float64]) -> None:
        """Store the values and the marks of frames."""
        mark: NDArray[np.uint8] | np.uint8 = _mark_of(frames)
        if math.isinf(self.frames.last_s):
            self.begin(frames)
        clipped: SoFar = self.clipping.so_far
        self.is_off = False
        if frames.calm_s == -math.inf:
            mark, clipped = frames.fault | mark, self.clipping.take(frames)
            self.is_off = bool(is_off(frames)[-1])
        ranges = self.readings.ranges(frames, values) if self.frames.has_ranges else None
        settling = self.settling.of(frames)
        self.frames.append(frames.time_s, mark, clipped, values, settling, ranges)
        self.frames.epoch_s = frames.end_utc - frames.end_s


def is_off(frames: Frames) -> NDArray[np.bool_]:
    """At which of the frames the model was switched off; a single False if at none."""
    if frames.calm_s > -math.inf:
        return ON
    return (frames.fault & Fault.OFF) > 0


def _mark_of(frames: Frames) -> np.uint8:
    return np.uint8(0) if frames.calibrated else UNCALIBRATED
