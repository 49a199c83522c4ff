"""Statistics of sharpness over time: mean, maximum and percentiles, such as S5."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from amt_stream.meters.accumulators.percentiles import PercentileMeter, still_rising
from amt_stream.meters.accumulators.zwicker import FRAME_RATE, RISE_S


class SharpnessMeter(PercentileMeter):
    """Mean, maximum and percentiles in acum of the sharpness of one channel, since the last reset.

    columns: readings that `update` returns after each frame: `mean_acum`, `max_acum`, any
        percentile, such as `s5_acum`, and those of the last seconds, minutes or hours, such as
        `s5_10min_acum` (see `RollingHistogram`)

    `update` takes the sharpness of the frames of `ZwickerTimeVarying`, one per 2 ms. Frames without
    loudness have no sharpness and do not count. In the mean and percentiles, frames before 0.5 s
    count only if they are not lower than all later ones. Percentiles are counted in classes of
    0.005 acum up to 500, so within 0.0025 acum of the exact value; as columns they are updated
    every 0.1 s. Rolling windows continue through pauses and resets.

    Raises ValueError for a column that it does not have.
    """

    kept = (*PercentileMeter.kept, "_sum", "_count", "_least", "_rise")
    growing = ("_rise",)

    def __init__(self, columns: Sequence[str] = ()) -> None:
        examples = "mean_acum", "max_acum", "s5_acum", "s5_10min_acum"
        classes = {"low": 0.0, "high": 500.0, "width": 0.005}
        super().__init__(columns, examples, ("s", "_acum"), 1 / FRAME_RATE, **classes)

    def reset(self) -> None:
        super().reset()
        self._sum, self._count = 0.0, 0
        # The lowest value after the rise, and all values of the rise.
        self._least, self._rise = math.nan, np.empty(0)

    def update(
        self,
        time_s: NDArray[np.float64],
        acum: NDArray[np.floating],
        valid: NDArray[np.bool_] | None = None,
    ) -> NDArray[np.float64]:
        """Take frames (n,), and return the columns (column, n) after each.

        time_s: times of the frames
        acum: their sharpness, NaN for none
        valid: which frames may count, by default all

        Columns are not finite before the first value.
        """
        heard = np.where(True if valid is None else valid, acum, np.nan).astype(np.float64)
        measured = np.full(len(heard), np.nan) if self.paused else heard
        if not self.paused:
            self._excluded += int(np.count_nonzero(np.isnan(heard)))
        due, rising = self._renewals.due(time_s), still_rising(time_s, RISE_S)
        found = self.percentiles.add(measured, heard, due, rising)
        found["max_acum"] = self.maximum.add(time_s, measured)
        means = self._means_rising(measured[:rising]), self._means(measured[rising:])[1:]
        found["mean_acum"] = np.concatenate(means)
        return self.in_order(found, len(time_s))

    def _means_rising(self, acum: NDArray[np.float64]) -> NDArray[np.float64]:
        """Running means after each of `acum` (n,) of the rise; NaN before the first value."""
        before, there = len(self._rise), acum[~np.isnan(acum)]
        self._rise = np.append(self._rise, there)
        sums = np.append(0.0, self._rise.cumsum())
        counts = before + np.cumsum(~np.isnan(acum))
        return np.asarray(sums[counts] / np.where(counts > 0, counts, np.nan))

    def _means(self, acum: NDArray[np.float64]) -> NDArray[np.float64]:
        """Running means (n + 1,) before and after each of `acum` (n,) after the rise."""
        there = ~np.isnan(acum)
        # One frame after another, however they are cut into blocks.
        sums = np.append(self._sum, np.where(there, acum, 0.0)).cumsum()
        counts = np.append(self._count, there).cumsum()
        least = np.fmin.accumulate(np.append(self._least, acum))
        self._sum, self._count, self._least = float(sums[-1]), int(counts[-1]), float(least[-1])
        # Values of the rise count if they are not below the lowest later one, if there is one.
        rise = np.sort(self._rise)[::-1]
        from_rise = len(rise) - np.searchsorted(rise[::-1], np.where(counts > 0, least, -np.inf))
        sums += np.append(0.0, rise.cumsum())[from_rise]
        counts += from_rise
        return np.asarray(sums / np.where(counts > 0, counts, np.nan))

    def reading(self) -> dict[str, float | None]:
        """All readings by name, in acum and seconds; None where there is none yet."""
        mean = float(self._means(np.empty(0))[0])
        return {
            "mean_acum": None if math.isnan(mean) else mean,
            "max_acum": self.maximum.known,
            "t_max_s": self.maximum.time_s,
            **self.percentile_readings("s{}_acum"),
            "measured_s": (self._count + len(self._rise)) / FRAME_RATE,
            "excluded_s": self._excluded / FRAME_RATE,
        }
