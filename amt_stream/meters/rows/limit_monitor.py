"""How a column stands to a limit, row after row."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from amt_stream.core.json_types import JsonDict
from amt_stream.core.saved_state import Resumable
from amt_stream.meters.limits import AMBER, COLORS, GREEN, RED, STATES, UNCALIBRATED, UNKNOWN, Limit

EXCEEDED, KEPT, KEPT_SO_FAR, NOT_KNOWN = "exceeded", "kept", "kept so far", "not known"
VERDICTS = (EXCEEDED, KEPT, KEPT_SO_FAR, "above so far", "below so far", NOT_KNOWN)
"""How a limit was kept, in words: the same wherever that is told."""

SAME_TIME_S = 1e-6
"""Two times that differ by less are the same."""


@dataclass
class Stood:
    """How a column has stood to a limit, over all rows that counted.

    state: at the last row, a word of STATES; "unknown" before the first
    times: how often it turned red
    seconds: in each of STATES
    microphone: of which one, where several are heard, each by itself
    worst, worst_s: the highest value, or the lowest where that is worse, and when that was, of
        rows whose window was whole. Without any, and where what counts is the end: the last value
    whole: whether the window of a rolling column was whole at any time; of others, true
    heard_s, window_s: of the window how much was heard at the last row, and how long it is
    projection: what the level of a window that is not whole will at least be, if silence follows
    """

    limit: Limit
    state: str
    times: int
    seconds: Mapping[str, float]
    worst: float | None
    worst_s: float | None
    whole: bool = True
    heard_s: float = 0.0
    window_s: float = 0.0
    projection: float | None = None
    microphone: str = ""

    @property
    def verdict(self) -> str:
        """A word of VERDICTS: "above so far" while a window that is not whole decides nothing."""
        if self.exceeded is None:
            return NOT_KNOWN
        if self.exceeded:
            return EXCEEDED
        if self.whole:
            return KEPT
        above = self.limit.is_beyond(self.worst)
        return f"{self.limit.side} so far" if above else KEPT_SO_FAR

    @property
    def exceeded(self) -> bool | None:
        """Whether it was red, or ended so where that is what counts; None where that is unknown."""
        if self.limit.at_end:
            return self.state == STATES[RED] if self.state in COLORS else None
        red_s, known_s = self.seconds[STATES[RED]], sum(self.seconds[name] for name in COLORS)
        return red_s > 0 if known_s else None

    def to_dict(self) -> JsonDict:
        """As a summary tells it."""
        return {
            **self.limit.to_dict(),
            "state": self.state,
            "exceeded": self.exceeded,
            "verdict": self.verdict,
            "times": self.times,
            **{f"{name}_s": round(value, 3) for name, value in self.seconds.items()},
            "worst": self.worst,
            "worst_s": self.worst_s,
            "whole": self.whole,
            **({} if self.whole else self._of_window),
        }

    @property
    def _of_window(self) -> JsonDict:
        """What is told of a window that was never whole."""
        told = {"heard_s": round(self.heard_s, 3), "window_s": self.window_s}
        return told | ({} if self.projection is None else {"projection": self.projection})


class LimitMonitor(Resumable):
    """How one column stands to a limit, row after row.

    step_s: from row to row
    window_s: of a rolling column, its window; until that is whole, what is above the limit is
        amber, and red only where no silence in the rest of it could help. It begins with the first
        value, and anew where nothing was heard for as long as it is
    adds_up: whether the column is an equivalent level, of which that can be told

    Red is told at once. A state gets better when the value has been on the better side of the
    threshold, by the hysteresis, for `hold_s` without a break: to the worst of that time. Rows
    without a value, and those that tell of clipped sound, of which the true level is not known, are
    "unknown" unless they are red; rows without a calibration "uncalibrated". They neither count
    for nor against anything.
    """

    kept: ClassVar[tuple[str, ...]] = ("_level", "_calm_s", "_calm_level", "_began_s", "_last")
    kept += ("_times", "_rows", "_worst", "_worst_s", "_heard_s", "_known_s", "_row_s", "_sure_at")
    kept += ("_was_whole", "_from_s", "_begins", "_paused", "_pauses", "_clipped")
    growing: ClassVar[tuple[str, ...]] = ("_pauses",)

    def __init__(
        self, limit: Limit, step_s: float, window_s: float = 0.0, adds_up: bool = False
    ) -> None:
        self.limit = limit
        self._step_s, self._window_s = step_s, window_s
        self._adds_up = adds_up and not limit.below
        self._top = limit.sign * limit.threshold
        self._warn = self._top if limit.amber is None else limit.sign * limit.amber
        self._began_s = self._known_s = self._row_s = math.nan
        self._heard_s = 0.0
        # Whether rows count, and from when on they do or do not: each a time, and 1 for a pause.
        self._paused, self._pauses = False, np.zeros((0, 2))
        self._level, self._calm_s, self._calm_level = GREEN, math.nan, GREEN
        self._clipped = False
        self.reset()

    def pause(self, paused: bool, time_s: float = -math.inf) -> None:
        """Count no rows after that time any more, or count them again."""
        self._pauses = np.append(self._pauses, [[time_s, paused]], axis=0)

    def reset(self, time_s: float = -math.inf) -> None:
        """Forget what was counted up to that time, and for the rows after it the state."""
        self._from_s, self._begins = time_s, True
        self._was_whole, self._sure_at = False, math.nan
        self._last, self._times = UNKNOWN, 0
        self._rows = [0] * len(STATES)
        self._worst = self._worst_s = math.nan

    def update(self, rows: Iterable[tuple[float, float, bool, bool]]) -> list[str]:
        """The state at each row, in words: rows in their order.

        Of each its time in seconds, the value, NaN for none, and whether it is calibrated and
        whether the sound was clipped.
        """
        return [STATES[self._take(*row)] for row in rows]

    def update_end(self, time_s: float, value: float, calibrated: bool) -> None:
        """Take what a column is at the end of the sound, which may be where the last row stands.

        Then it is no row more, unless the state is another one, and clipped where that row was.
        """
        again = time_s <= self._row_s + SAME_TIME_S
        self._take(time_s, value, calibrated, again and self._clipped, again)

    def _take(
        self, time_s: float, value: float, calibrated: bool, clipped: bool, again: bool = False
    ) -> int:
        """The state of a row, as its place in STATES; `again` of the last row once more."""
        while len(self._pauses) and self._pauses[0, 0] < time_s - SAME_TIME_S:
            self._paused, self._pauses = bool(self._pauses[0, 1]), self._pauses[1:]
        after = bool(time_s > self._from_s + SAME_TIME_S)
        counts = after and not self._paused
        if after and self._begins:
            self._level, self._calm_s, self._calm_level = GREEN, math.nan, GREEN
            self._begins = False
        if not (calibrated and math.isfinite(value)):
            told = UNKNOWN if calibrated else UNCALIBRATED
        else:
            self._hear(time_s)
            signed = self.limit.sign * value
            sure = self._sure(signed)
            self._turn(time_s, signed, sure, counts)
            told = UNKNOWN if clipped and self._level < RED else self._level
            if counts:
                self._compare(time_s, signed, sure)
        self._row_s, self._clipped = time_s, clipped
        self._rows[told] += counts and not (again and told == self._last)
        self._last = told if after else self._last
        return told

    def _hear(self, time_s: float) -> None:
        """A value is there: the window goes on, or begins anew."""
        if not time_s - self._known_s < max(self._window_s, self._step_s) - SAME_TIME_S:
            # It has the time since the row before, which has no value, if there is one.
            before_s = time_s if math.isnan(self._row_s) else self._row_s
            self._began_s = max(before_s, time_s - self._step_s)
        self._known_s = time_s
        self._heard_s = time_s - self._began_s

    def _compare(self, time_s: float, signed: float, sure: float) -> None:
        """Take a row that counts into account for the worst."""
        first = self._whole and not self._was_whole
        self._was_whole = self._was_whole or self._whole
        self._sure_at = sure
        if self.limit.at_end or not self._was_whole or first:
            worse = True
        else:
            # Of one that began anew, what it will be at least.
            signed = sure
            worse = (self._whole or sure > self._top) and sure > self.limit.sign * self._worst
        if worse:
            self._worst, self._worst_s = self.limit.sign * signed, time_s

    def _turn(self, time_s: float, signed: float, sure: float, counts: bool) -> None:
        """Take a value into account, of which higher is worse."""
        now = self._rank(signed, sure, 0.0)
        if now >= self._level:
            self._times += now == RED != self._level and counts
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
        return bool(self._heard_s >= self._window_s - SAME_TIME_S)

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
        projected = there and self._adds_up and not self._was_whole and self._sure_at > -math.inf
        return Stood(
            self.limit,
            STATES[self._last],
            self._times,
            {name: n * self._step_s for name, n in zip(STATES, self._rows, strict=True)},
            self._worst if there else None,
            self._worst_s if there else None,
            self._was_whole or not self._window_s,
            self._heard_s,
            self._window_s,
            self.limit.sign * self._sure_at if projected else None,
        )
