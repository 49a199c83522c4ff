"""How a column stands to a limit, row after row."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from amt_stream.limits import AMBER, COLORS, GREEN, RED, STATES, UNCALIBRATED, UNKNOWN, Limit
from amt_stream.resumable import Resumable

WORDS = np.array(STATES, dtype=object)


@dataclass
class Stood:
    """How a column has stood to a limit, over all rows that counted.

    state: at the last row, a word of STATES; "unknown" before the first
    times: how often it turned red
    seconds: in each of STATES
    row: of which microphone, where several are heard, each by itself
    worst, worst_s: the highest value, or the lowest where that is worse, and when that was
    """

    limit: Limit
    state: str
    times: int
    seconds: Mapping[str, float]
    worst: float | None
    worst_s: float | None
    row: str = ""

    @property
    def exceeded(self) -> bool | None:
        """Whether it was red, or ended so where that is what counts; None where never known."""
        if not any(self.seconds[name] for name in COLORS):
            return None
        return self.state == STATES[RED] if self.limit.at_end else self.seconds[STATES[RED]] > 0

    def to_dict(self) -> dict[str, Any]:
        """As a summary tells it."""
        return {
            **self.limit.to_dict(),
            "state": self.state,
            "exceeded": self.exceeded,
            "times": self.times,
            **{f"{name}_s": round(value, 3) for name, value in self.seconds.items()},
            "worst": self.worst,
            "worst_s": self.worst_s,
        }


class Judge(Resumable):
    """How one column stands to a limit, row after row.

    step_s: from row to row
    window_s: of a rolling column, its window; until that is whole for the first time, what is above
        the limit is amber, and red only where no silence in the rest of it could help
    adds_up: whether the column is an equivalent level, of which that can be told

    Red is told at once. A state gets better when the value has been on the better side of the
    threshold, by the hysteresis, for `hold_s` without a break: to the worst of that time. Rows
    without a value, and those that tell of clipped sound, of which the true level is not known, are
    "unknown" unless they are red; rows without a calibration "uncalibrated". They neither count
    for nor against anything.
    """

    kept: ClassVar[tuple[str, ...]] = ("_level", "_calm_s", "_calm_level", "_began_s", "_last")
    kept += ("_times", "_rows", "_worst", "_worst_s")

    def __init__(
        self, limit: Limit, step_s: float, window_s: float = 0.0, adds_up: bool = False
    ) -> None:
        self.limit, self.paused = limit, False
        self._step_s, self._window_s = step_s, window_s
        self._adds_up = adds_up and not limit.below
        self._began_s = math.nan
        self.reset()

    def reset(self) -> None:
        """Forget what was counted, and the state."""
        self._level, self._last = GREEN, UNKNOWN
        self._calm_s, self._calm_level = math.nan, GREEN
        self._times = 0
        self._rows = np.zeros(len(STATES), np.int64)
        self._worst = self._worst_s = math.nan

    def update(
        self,
        time_s: NDArray[np.float64],
        values: NDArray[np.float64],
        calibrated: NDArray[np.bool_],
        clipped: NDArray[np.bool_],
    ) -> NDArray[np.object_]:
        """The state at each row, in words: rows (n,) in their order, NaN for no value."""
        known = np.isfinite(values) & calibrated
        if math.isnan(self._began_s) and known.any():
            self._began_s = float(time_s[known][0])
        before = self._level
        levels = self._levels(time_s, values, known)
        told = np.where(known, levels, UNKNOWN)
        told[known & clipped & (levels < RED)] = UNKNOWN
        told[~calibrated] = UNCALIBRATED
        if not self.paused:
            self._count(time_s, values, known, levels, told, before)
        if len(told):
            self._last = int(told[-1])
        return WORDS[told]

    def _levels(
        self, time_s: NDArray[np.float64], values: NDArray[np.float64], known: NDArray[np.bool_]
    ) -> NDArray[np.int64]:
        """GREEN, AMBER or RED after each row; where there is no value, as before."""
        limit = self.limit
        signed, top = limit.sign * values, limit.sign * limit.threshold
        warn = top if limit.amber is None else limit.sign * limit.amber
        sure = self._sure(time_s, signed)
        rank = np.where(sure > top, RED, np.where(signed > warn, AMBER, GREEN))
        if known.all() and not (limit.hysteresis or limit.hold_s):
            self._level = int(rank[-1]) if len(rank) else self._level
            return rank
        back = limit.hysteresis
        near = np.where(sure > top - back, RED, np.where(signed > warn - back, AMBER, GREEN))
        levels = np.full(len(rank), self._level)
        if (rank[known] == self._level).all():
            self._calm_s = math.nan if known.any() else self._calm_s
            return levels
        each = zip(time_s.tolist(), rank.tolist(), near.tolist(), known.tolist(), strict=True)
        for k, (at_s, now, still, there) in enumerate(each):
            if there:
                self._turn(at_s, now, still)
            levels[k] = self._level
        return levels

    def _turn(self, at_s: float, now: int, still: int) -> None:
        """Take a row into account that is `now`, and is not yet better than `still`."""
        if now >= self._level or still >= self._level:
            self._level = max(now, self._level)
            self._calm_s = math.nan
            return
        if math.isnan(self._calm_s):
            self._calm_s, self._calm_level = at_s, GREEN
        self._calm_level = max(self._calm_level, still)
        # Two times that differ by less are the same.
        if at_s - self._calm_s >= self.limit.hold_s - 1e-6:
            self._level, self._calm_s = self._calm_level, math.nan

    def _sure(
        self, time_s: NDArray[np.float64], signed: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """What the column will at least have been over its whole window."""
        if not self._window_s or math.isnan(self._began_s):
            return signed
        share = np.clip((time_s - self._began_s) / self._window_s, 0.0, 1.0)
        with np.errstate(divide="ignore"):
            if self._adds_up:
                return signed + 10 * np.log10(share)
            return np.where(share < 1.0, -np.inf, signed)

    def _count(
        self,
        time_s: NDArray[np.float64],
        values: NDArray[np.float64],
        known: NDArray[np.bool_],
        levels: NDArray[np.int64],
        told: NDArray[np.int64],
        before: int,
    ) -> None:
        self._rows += np.bincount(told, minlength=len(STATES))
        red = np.concatenate([[before == RED], levels == RED])
        self._times += int(np.count_nonzero(red[1:] & ~red[:-1]))
        if known.any():
            signed = np.where(known, self.limit.sign * values, -np.inf)
            at = int(signed.argmax())
            if not signed[at] <= self.limit.sign * self._worst:
                self._worst, self._worst_s = float(values[at]), float(time_s[at])

    @property
    def stood(self) -> Stood:
        """What has come of it so far."""
        there = not math.isnan(self._worst)
        return Stood(
            self.limit,
            STATES[self._last],
            self._times,
            dict(zip(STATES, (self._rows * self._step_s).tolist(), strict=True)),
            self._worst if there else None,
            self._worst_s if there else None,
        )
