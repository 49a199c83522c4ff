"""How a column stands to a limit, row after row."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from amt_stream.limits import AMBER, COLORS, GREEN, RED, STATES, UNCALIBRATED, UNKNOWN, Limit
from amt_stream.resumable import Resumable


@dataclass
class Stood:
    """How a column has stood to a limit, over all rows that counted.

    state: at the last row, a word of STATES; "unknown" before the first
    times: how often it turned red
    seconds: in each of STATES
    row: of which microphone, where several are heard, each by itself
    worst, worst_s: the highest value, or the lowest where that is worse, and when that was; of a
        window that is not whole, what its level will at least be
    whole: whether the window of a rolling column was whole at any time; of others, true
    """

    limit: Limit
    state: str
    times: int
    seconds: Mapping[str, float]
    worst: float | None
    worst_s: float | None
    whole: bool = True
    row: str = ""

    @property
    def exceeded(self) -> bool | None:
        """Whether it was red, or ended so where that is what counts; None where that is unknown."""
        if self.limit.at_end:
            return self.state == STATES[RED] if self.state in COLORS else None
        red_s, known_s = self.seconds[STATES[RED]], sum(self.seconds[name] for name in COLORS)
        return red_s > 0 if known_s else None

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
            "whole": self.whole,
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
    kept += ("_times", "_rows", "_worst", "_worst_s", "_heard_s")

    def __init__(
        self, limit: Limit, step_s: float, window_s: float = 0.0, adds_up: bool = False
    ) -> None:
        self.limit, self.paused = limit, False
        self._step_s, self._window_s = step_s, window_s
        self._adds_up = adds_up and not limit.below
        self._top = limit.sign * limit.threshold
        self._warn = self._top if limit.amber is None else limit.sign * limit.amber
        self._began_s, self._heard_s = math.nan, 0.0
        self.reset()

    def reset(self) -> None:
        """Forget what was counted, and the state."""
        self._level, self._last = GREEN, UNKNOWN
        self._calm_s, self._calm_level = math.nan, GREEN
        self._times = 0
        self._rows = [0] * len(STATES)
        self._worst = self._worst_s = math.nan

    def update(self, rows: Iterable[tuple[float, float, bool, bool]]) -> list[str]:
        """The state at each row, in words: rows in their order.

        Of each its time in seconds, the value, NaN for none, and whether it is calibrated and
        whether the sound was clipped.
        """
        return [STATES[self._take(*row)] for row in rows]

    def _take(self, time_s: float, value: float, calibrated: bool, clipped: bool) -> int:
        """The state of a row, as its place in STATES."""
        known = calibrated and math.isfinite(value)
        if not known:
            told = UNKNOWN if calibrated else UNCALIBRATED
        else:
            if math.isnan(self._began_s):
                self._began_s = time_s
            self._heard_s = time_s - self._began_s
            signed = self.limit.sign * value
            sure = self._sure(signed)
            self._turn(time_s, signed, sure)
            told = UNKNOWN if clipped and self._level < RED else self._level
            if not self.paused:
                self._compare(time_s, sure)
        self._last = told
        self._rows[told] += not self.paused
        return told

    def _compare(self, time_s: float, sure: float) -> None:
        if sure > -math.inf and not sure <= self.limit.sign * self._worst:
            self._worst, self._worst_s = self.limit.sign * sure, time_s

    def _turn(self, time_s: float, signed: float, sure: float) -> None:
        """Take a value into account, of which higher is worse."""
        now = self._rank(signed, sure, 0.0)
        if now >= self._level:
            self._times += now == RED != self._level and not self.paused
            self._level, self._calm_s = now, math.nan
            return
        still = self._rank(signed, sure, self.limit.hysteresis)
        if still >= self._level:
            self._calm_s = math.nan
            return
        if math.isnan(self._calm_s):
            self._calm_s, self._calm_level = time_s, GREEN
        self._calm_level = max(self._calm_level, still)
        # Two times that differ by less are the same.
        if time_s - self._calm_s >= self.limit.hold_s - 1e-6:
            self._level, self._calm_s = self._calm_level, math.nan

    def _rank(self, signed: float, sure: float, back: float) -> int:
        """What a value is, or has not come back from by so much."""
        if sure > self._top - back:
            return RED
        return AMBER if signed > self._warn - back else GREEN

    @property
    def _whole(self) -> bool:
        return self._heard_s >= self._window_s

    def _sure(self, signed: float) -> float:
        """What the column will at least have been over its whole window."""
        if self._whole:
            return signed
        if not self._adds_up or self._heard_s <= 0:
            return -math.inf
        return signed + 10 * math.log10(self._heard_s / self._window_s)

    @property
    def stood(self) -> Stood:
        """What has come of it so far."""
        there = not math.isnan(self._worst)
        return Stood(
            self.limit,
            STATES[self._last],
            self._times,
            {name: n * self._step_s for name, n in zip(STATES, self._rows, strict=True)},
            self._worst if there else None,
            self._worst_s if there else None,
            self._whole,
        )
