"""Running percentiles, of all sound and of rolling windows."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from amt_stream.core.saved_state import Resumable
from amt_stream.meters.accumulators.histogram import Histogram, RollingHistogram, known
from amt_stream.meters.names import window_s

PERCENTS = (1, 5, 10, 50, 90, 95, 99)
"""Percentiles that a meter has on demand, whatever its columns."""

RENEWED_S = 0.1
"""Seconds between updates of percentiles in columns."""

Values = NDArray[np.float64]
Numbers = NDArray[np.floating]


def still_rising(time_s: Values, rise_s: float) -> int:
    """Number of frames at `time_s` (n,) within the rise from silence of `rise_s`."""
    # Half a microsecond of tolerance, as times are sums of floating-point steps.
    until_s = rise_s - 5e-7
    if not len(time_s) or time_s[0] >= until_s:
        return 0
    return int(time_s.searchsorted(until_s))


class Renewals(Resumable):
    """The times of updates of percentiles: the first frame in every 0.1 s of sound."""

    kept = ("_steps",)

    def __init__(self) -> None:
        self._steps = -1

    def due(self, time_s: Values) -> Sequence[int]:
        """Indices of these frames at `time_s` (n,) with updates, in order."""
        if not len(time_s) or float(time_s[-1]) / RENEWED_S + 1e-6 < self._steps + 1:
            return ()
        # 6.1 / 0.1 is 60.999...: a frame on the edge belongs to the step that begins there.
        steps = np.floor(time_s / RENEWED_S + 1e-6).astype(np.int64)
        last = int(steps[-1])
        if last == self._steps + 1:  # the usual case, in half the time
            self._steps = last
            return [int(steps.searchsorted(last))]
        reached = np.maximum.accumulate(np.concatenate([[self._steps], steps]))
        self._steps = int(reached[-1])
        due: list[int] = np.flatnonzero(np.diff(reached)).tolist()
        return due


class Percentiles(Resumable):
    """Percentiles of one value, of all that was counted and of rolling windows.

    wanted: percentages and windows of those that `add` returns; a window is as in names, "10min",
        or "" for all that was counted
    period_s: seconds between values
    classes: as in `Histogram`

    Raises ValueError for a window outside 1 s to 24 h.
    """

    kept = ("histogram", "rolling", "_held")

    def __init__(
        self, wanted: Sequence[tuple[int, str]], period_s: float, **classes: float
    ) -> None:
        self._classes = classes
        self._wanted = tuple(wanted)
        # Rows of what `add` returns, by window, and their percentages.
        self._rows: dict[str, list[int]] = {"": []}
        for row, (_, window) in enumerate(wanted):
            self._rows.setdefault(window, []).append(row)
        self._percents = {
            window: [wanted[row][0] for row in rows] for window, rows in self._rows.items()
        }
        self.rolling = {
            window: RollingHistogram(period_s, window_s(window), **classes)
            for window in self._rows
            if window
        }
        self._held = np.full(len(wanted), np.nan)
        self.reset()

    def reset(self) -> None:
        """Restart all but the windows."""
        self.histogram = Histogram(**self._classes)
        self._held[self._rows[""]] = np.nan

    def take_over(self, before: "Percentiles") -> None:
        super().take_over(before)
        held = dict(zip(before._wanted, before._held, strict=True))
        now = [
            held[one] if one in held else self._of(one[1]).percentiles([one[0]])[0]
            for one in self._wanted
        ]
        self._held = np.array(now, np.float64)

    def skip(self, count: int) -> None:
        """Skip missing values; windows move on."""
        for histogram in self.rolling.values():
            histogram.skip(count)

    def add(self, measured: Numbers, heard: Numbers, due: Sequence[int], rising: int) -> Values:
        """Take values (n,), and return the percentiles (percentile, n) that are wanted.

        measured, heard: values for the whole measurement, and for the windows; NaN does not count
        due: indices of values with an update, in order; others have the percentiles of the last
            update
        rising: number of first values that are of the rise from silence (see `Histogram`)
        """
        told, at = np.empty((len(self._wanted), len(heard))), 0
        for renewed in due:
            self._count(measured, heard, at, renewed + 1, rising)
            told[:, at:renewed] = self._held[:, None]
            for window, percents in self._percents.items():
                if percents:
                    self._held[self._rows[window]] = self._of(window).percentiles(percents)
            told[:, renewed] = self._held
            at = renewed + 1
        if at < len(heard):
            self._count(measured, heard, at, len(heard), rising)
            told[:, at:] = self._held[:, None]
        return told

    def _count(self, measured: Numbers, heard: Numbers, at: int, end: int, rising: int) -> None:
        """Count values from `at` up to `end`."""
        rising = max(0, min(end, rising) - at)
        self.histogram.add(measured[at:end], rising)
        for histogram in self.rolling.values():
            histogram.add(heard[at:end], rising)

    def _of(self, window: str) -> Histogram | RollingHistogram:
        return self.rolling[window] if window else self.histogram

    def readings(self) -> list[float | None]:
        """The wanted percentiles now; None without values."""
        return [self.reading(*one) for one in self._wanted]

    def reading(self, percent: int, window: str = "") -> float | None:
        """A percentile now; None without values."""
        return known(float(self._of(window).percentiles([percent])[0]))
