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
        self._percents: dict[str, list[int]] = {"": []}
        self._places = []
        # Rows of what `add` returns, by window.
        self._rows: dict[str, list[int]] = {"": []}
        for row, (percent, window) in enumerate(wanted):
            self._rows.setdefault(window, []).append(row)
            of_window = self._percents.setdefault(window, [])
            self._places.append((window, len(of_window)))
            of_window.append(percent)
        self.rolling = {
            window: RollingHistogram(period_s, window_s(window), **classes)
            for window in self._percents
            if window
        }
        self._held = {window: np.full(len(p), np.nan) for window, p in self._percents.items()}
        self.reset()

    def reset(self) -> None:
        """Restart all but the windows."""
        self.histogram = Histogram(**self._classes)
        self._held[""] = np.full(len(self._percents[""]), np.nan)

    def take_over(self, before: "Percentiles") -> None:
        super().take_over(before)
        held = {
            one: before._held[window][place]
            for one, (window, place) in zip(before._wanted, before._places, strict=True)
        }
        for one, (window, place) in zip(self._wanted, self._places, strict=True):
            percents = [self._percents[window][place]]
            now = self._of(window).percentiles(percents)[0]
            self._held[window][place] = held.get(one, now)

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
        told = np.empty((len(self._wanted), len(heard)))
        for window, rows in self._rows.items():
            self._follow(window, heard if window else measured, due, rising, told, rows)
        return told

    def _of(self, window: str) -> Histogram | RollingHistogram:
        return self.rolling[window] if window else self.histogram

    def _follow(
        self,
        window: str,
        values: Numbers,
        due: Sequence[int],
        rising: int,
        told: Values,
        rows: list[int],
    ) -> None:
        """Count values (n,), and write their percentiles to rows of `told`."""
        histogram, at = self._of(window), 0
        if not rows:
            histogram.add(values, rising)
            return
        for renewed in due:
            histogram.add(values[at : renewed + 1], max(0, min(renewed + 1, rising) - at))
            told[rows, at:renewed] = self._held[window][:, None]
            self._held[window] = histogram.percentiles(self._percents[window])
            told[rows, renewed] = self._held[window]
            at = renewed + 1
        if at < len(values):
            histogram.add(values[at:], max(0, rising - at))
            told[rows, at:] = self._held[window][:, None]

    def readings(self) -> list[float | None]:
        """The wanted percentiles now; None without values."""
        return [self.reading(*one) for one in self._wanted]

    def reading(self, percent: int, window: str = "") -> float | None:
        """A percentile now; None without values."""
        return known(float(self._of(window).percentiles([percent])[0]))
