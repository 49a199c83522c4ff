"""Noise dose of a dosimeter: the share of the exposure allowed in eight hours."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from amt_stream.core.saved_state import Resumable
from amt_stream.meters.accumulators.level import level_db
from amt_stream.meters.level_names import LevelName

DAY_S = 8 * 3600.0


class Dose(Resumable):
    """Dose in percent of eight hours at the criterion, of A-weighted S levels (ANSI S1.25).

    criterion_db: level of which eight hours are 100 %
    exchange_db: increase of level that halves the time for 100 %
    threshold_db: levels below it do not count
    """

    kept: ClassVar[tuple[str, ...]] = ("_taken_s",)

    def __init__(self, criterion_db: float, exchange_db: float, threshold_db: float = 0.0) -> None:
        self.criterion_db, self.exchange_db = criterion_db, exchange_db
        self.threshold_db = threshold_db
        self.reset()

    @classmethod
    def of(cls, name: LevelName) -> "Dose":
        """The dose of a name of a dose or of its average, such as `twa_90_5_80_db`."""
        parts = "criterion", "exchange", "threshold"
        return cls(*(int(name.part(part) or 0) for part in parts))

    def reset(self) -> None:
        self._taken_s = 0.0

    def add(
        self, power: NDArray[np.floating], measured: NDArray[np.bool_], period_s: float
    ) -> NDArray[np.float64]:
        """Take `measured` frames (n,) in Pa^2, `period_s` apart, and return the dose after each."""
        level = level_db(power)
        counts = measured & (level >= self.threshold_db)
        level = np.where(counts, level, -np.inf)
        time_s = period_s * np.exp2((level - self.criterion_db) / self.exchange_db)
        taken_s = np.add.accumulate(np.concatenate([[self._taken_s], time_s]))[1:]
        if len(taken_s):
            self._taken_s = float(taken_s[-1])
        return 100.0 * taken_s / DAY_S

    @property
    def percent(self) -> float:
        """The dose so far."""
        return 100.0 * self._taken_s / DAY_S

    def average_db(self, percent: Any) -> Any:
        """The steady level (TWA) that gives a dose in eight hours."""
        with np.errstate(divide="ignore"):
            return self.criterion_db + self.exchange_db * np.log2(percent / 100.0)
