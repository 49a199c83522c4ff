"""Running percentiles, of all sound and of rolling windows."""

import re
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from amt_stream.core.saved_state import Resumable
from amt_stream.meters.accumulators.extremes import Maximum
from amt_stream.meters.accumulators.histogram import Histogram, RollingHistogram, known
from amt_stream.meters.accumulators.meter import Meter
from amt_stream.meters.accumulators.window import WINDOW, window_s

PERCENTS = (1, 5, 10, 50, 90, 95, 99)
"""Percentiles that a meter has on demand, whatever its columns."""

RENEWED_S = 0.1
"""Seconds between updates of percentiles in columns."""

Values = NDArray[np.float64]


def still_rising(time_s: Values, rise_s: float) -> int:
    """Number of frames at `time_s` (n,) within the rise from silence of `rise_s`."""
    # Half a microsecond of tolerance, as times are sums of floating-point steps.
    return int(time_s.searchsorted(rise_s - 5e-7))


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
    """Percentiles of one value, in columns that are named after a pattern.

    columns: names of columns; those that match `stem` are used, as `ltl_n5_phon` and, for the last
        10 minutes, `ltl_n5_10min_phon` match ("ltl_n", "_phon")
    stem: text before the percentage, and after the window
    period_s: seconds between values
    classes: as in `Histogram`

    Raises ValueError for a window outside 1 s to 24 h.
    """

    kept = ("histogram", "rolling", "_held")

    def __init__(
        self, columns: Sequence[str], stem: tuple[str, str], period_s: float, **classes: float
    ) -> None:
        self._classes = classes
        pattern = rf"{stem[0]}(?P<percent>\d\d?)(?:_(?P<window>{WINDOW}))?{stem[1]}"
        found = [m for m in (re.fullmatch(pattern, name) for name in columns) if m]
        self.names = tuple(m[0] for m in found)
        self._percents: dict[str | None, list[int]] = {None: []}
        self._places = []
        for match in found:
            of_window = self._percents.setdefault(match["window"], [])
            self._places.append((match["window"], len(of_window)))
            of_window.append(int(match["percent"]))
        self.rolling = {
            window: RollingHistogram(period_s, window_s(window), **classes)
            for window in self._percents
            if window is not None
        }
        self._held = {window: np.full(len(p), np.nan) for window, p in self._percents.items()}
        self.reset()

    def reset(self) -> None:
        """Restart all but the windows."""
        self.histogram = Histogram(**self._classes)
        self._held[None] = np.full(len(self._percents[None]), np.nan)

    def take_over(self, before: "Percentiles") -> None:
        super().take_over(before)
        held = {
            n: before._held[w][k] for n, (w, k) in zip(before.names, before._places, strict=True)
        }
        now = {**self._present(), **held}
        for name, (window, place) in zip(self.names, self._places, strict=True):
            self._held[window][place] = now[name]

    def skip(self, count: int) -> None:
        """Skip missing values; windows move on."""
        for histogram in self.rolling.values():
            histogram.skip(count)

    def add(
        self, measured: Values, heard: Values, due: Sequence[int], rising: int
    ) -> dict[str, Values]:
        """Take values (n,), and return the percentiles (n,) by name.

        measured, heard: values for the whole measurement, and for the windows; NaN does not count
        due: indices of values with an update, in order; others have the percentiles of the last
            update
        rising: number of first values that are of the rise from silence (see `Histogram`)
        """
        found: dict[str | None, Values] = {
            None: self._follow(None, self.histogram, measured, due, rising)
        }
        for window, histogram in self.rolling.items():
            found[window] = self._follow(window, histogram, heard, due, rising)
        return {n: found[w][k] for n, (w, k) in zip(self.names, self._places, strict=True)}

    def _follow(
        self,
        window: str | None,
        histogram: Histogram | RollingHistogram,
        values: Values,
        due: Sequence[int],
        rising: int,
    ) -> Values:
        percents = self._percents[window]
        if not percents:
            histogram.add(values, rising)
            return np.empty((0, len(values)))
        found = np.empty((len(percents), len(values)))
        at = 0
        for renewed in due:
            histogram.add(values[at : renewed + 1], max(0, min(renewed + 1, rising) - at))
            found[:, at:renewed] = self._held[window][:, None]
            self._held[window] = histogram.percentiles(percents)
            found[:, renewed] = self._held[window]
            at = renewed + 1
        histogram.add(values[at:], max(0, rising - at))
        found[:, at:] = self._held[window][:, None]
        return found

    def reading(self) -> dict[str, float | None]:
        """The present columns by name; None without values."""
        return {name: known(value) for name, value in self._present().items()}

    def _present(self) -> dict[str, float]:
        """The present columns by name."""
        now: dict[str | None, Values] = {None: self.histogram.percentiles(self._percents[None])}
        for window, histogram in self.rolling.items():
            now[window] = histogram.percentiles(self._percents[window])
        values = [float(now[window][place]) for window, place in self._places]
        return dict(zip(self.names, values, strict=True))


class PercentileMeter(Meter):
    """A meter of one value over time: its maximum, and its percentiles.

    columns, stem, period_s, classes: as in `Percentiles`
    examples: names of further readings, and of percentiles that a message may suggest

    Raises ValueError for a column that it does not have.
    """

    kept: ClassVar[tuple[str, ...]] = ("paused", "percentiles", "maximum", "_renewals", "_excluded")

    def __init__(
        self,
        columns: Sequence[str],
        examples: Sequence[str],
        stem: tuple[str, str],
        period_s: float,
        **classes: float,
    ) -> None:
        super().__init__(columns)
        self.percentiles = Percentiles(self.columns, stem, period_s, **classes)
        self.refuse_unknown([*examples, *self.percentiles.names])
        self._renewals = Renewals()
        self.reset()

    def reset(self) -> None:
        """Restart all readings except rolling windows; a pause continues."""
        self.percentiles.reset()
        self.maximum = Maximum()
        self._excluded = 0

    def tail(self, time_s: Values, values: NDArray[np.floating]) -> None:
        """Take frames (n,) after the end of the sound into account: in the maximum alone."""
        if not self.paused:
            self.maximum.add(time_s, values)

    def skip(self, count: int) -> None:
        super().skip(count)
        self.percentiles.skip(count)

    def percentile_readings(self, stem: str) -> dict[str, float | None]:
        """The usual percentiles, of names such as `stem`.format(5), and the columns."""
        usual = {stem.format(p): self.percentiles.histogram.exceeded(p) for p in PERCENTS}
        return usual | self.percentiles.reading()
