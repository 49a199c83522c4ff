"""Single values of ECMA-418-2: mean, maximum and percentiles of a metric."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log10

import numpy as np
from numpy.typing import NDArray

from amt_stream.meters.accumulators.percentiles import PercentileMeter

LEAST = 2.0**-14
"""Lower values count as 0 in percentiles."""


@dataclass(frozen=True)
class Metric:
    """A metric of ECMA-418-2 over time, and the rules of its single values.

    letter: symbol, as in n5_sone
    unit: as column names end
    frame_rate: frames a second
    start_s: time of the first frame that counts; the standard leaves out those before it
    exponent: of the power mean
    above: only greater values count in the mean, which is 0 without any
    """

    letter: str
    unit: str
    frame_rate: float
    start_s: float
    exponent: float = 1.0
    above: float = -1.0


LOUDNESS = Metric("n", "sone", 187.5, 57 / 187.5, exponent=1 / log10(2))
TONALITY = Metric("t", "tu", 187.5, 57 / 187.5, above=0.02)
ROUGHNESS = Metric("r", "asper", 50, 16 / 50)
FLUCTUATION = Metric("f", "vacil", 50, 36 / 50)


class ECMAMeter(PercentileMeter):
    """Mean, maximum and percentiles of a metric of ECMA-418-2, since the last reset.

    columns: readings that `update` returns after each frame, here of loudness: `mean_sone`,
        `max_sone`, any percentile, such as `n5_sone`, and those of the last seconds, minutes or
        hours, such as `n5_10min_sone` (see `RollingHistogram`)

    No reading counts the start of the sound, which the standard leaves out: 0.304 s, 0.32 s of
    roughness, 0.72 s of fluctuation strength. The mean is that of the standard (`Metric`).
    Percentiles are counted in classes of 1/2000 of a doubling, so within 0.02 % of the exact value,
    and lower values than 0.00006 as 0; as columns they are updated every 0.1 s. Rolling windows
    continue through pauses and resets.

    Raises ValueError for a column that it does not have.
    """

    kept = (*PercentileMeter.kept, "_sum", "_counts")

    def __init__(self, metric: Metric, columns: Sequence[str] = ()) -> None:
        self.metric = metric
        letter, unit = metric.letter, f"_{metric.unit}"
        examples = f"mean{unit}", f"max{unit}", f"{letter}5{unit}", f"{letter}5_10min{unit}"
        # Of the logarithm to base 2, on which classes are even.
        classes = {"low": np.log2(LEAST), "high": 30.0, "width": 0.0005}
        super().__init__(columns, examples, (letter, unit), 1 / metric.frame_rate, **classes)

    def reset(self) -> None:
        super().reset()
        # Numbers of values that counted, and of those in the mean.
        self._sum, self._counts = 0.0, np.zeros(2, np.int64)

    def update(
        self,
        time_s: NDArray[np.float64],
        values: NDArray[np.floating],
        valid: NDArray[np.bool_] | None = None,
    ) -> NDArray[np.float64]:
        """Take frames (n,), and return the columns (column, n) after each.

        time_s: times of the frames
        values: the metric, NaN for none
        valid: which frames may count, by default all

        Columns are not finite before the first value.
        """
        there = ~np.isnan(values) & (time_s > self.metric.start_s - 1e-6)
        if valid is not None:
            there &= valid
        heard = np.where(there, values, np.nan).astype(np.float64)
        measured = np.full(len(heard), np.nan) if self.paused else heard
        if not self.paused:
            self._excluded += len(there) - int(np.count_nonzero(there))
        levels = np.log2(np.maximum(heard, LEAST / 2))
        counted = np.full(len(heard), np.nan) if self.paused else levels
        exceeded = self.percentiles.add(counted, levels, self._renewals.due(time_s), 0)
        found = {name: np.exp2(v) for name, v in exceeded.items()}
        unit = self.metric.unit
        found[f"max_{unit}"] = self.maximum.add(time_s, measured)
        found[f"mean_{unit}"] = self._means(measured)[1:]
        return self.in_order(found, len(time_s))

    def _means(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """The mean (n + 1,) before and after each of `values` (n,); NaN before the first."""
        exponent, averaged = self.metric.exponent, values > self.metric.above
        powers = np.where(averaged, values, 0.0) ** exponent
        # One frame after another, however they are cut into blocks.
        sums = np.append(self._sum, powers).cumsum()
        added = np.stack([~np.isnan(values), averaged], 1)
        counts = np.concatenate([self._counts[None], added]).cumsum(0)
        self._sum, self._counts = float(sums[-1]), counts[-1].copy()
        counted, of_mean = counts.T
        means = (sums / np.maximum(of_mean, 1)) ** (1 / exponent)
        return np.where(counted > 0, means, np.nan)

    def reading(self) -> dict[str, float | None]:
        """All readings by name, in the unit and in seconds; None where there is none yet."""
        letter, unit, rate = self.metric.letter, self.metric.unit, self.metric.frame_rate
        mean = float(self._means(np.empty(0))[0])
        percentiles = self.percentile_readings(f"{letter}{{}}_{unit}")
        return {
            f"mean_{unit}": None if np.isnan(mean) else mean,
            f"max_{unit}": self.maximum.known,
            "t_max_s": self.maximum.time_s,
            **{k: None if v is None else 2.0**v for k, v in percentiles.items()},
            "measured_s": int(self._counts[0]) / rate,
            "excluded_s": self._excluded / rate,
        }
