"""Monitoring of a limit, row by row."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from amt_stream.core.json_types import JsonDict
from amt_stream.core.saved_state import Resumable
from amt_stream.meters.frames import SAME_TIME_S
from amt_stream.meters.limits import AMBER, COLORS, GREEN, RED, STATES, UNCALIBRATED, UNKNOWN, Limit

UNMEASURED_SHARE = 0.01
"""The share of the time of a value, or of a measurement, from which on sound that was not measured
leaves a limit unknown."""

EXCEEDED, KEPT, KEPT_SO_FAR, NOT_KNOWN = "exceeded", "kept", "kept so far", "not known"
VERDICTS = (EXCEEDED, KEPT, KEPT_SO_FAR, "above so far", "below so far", NOT_KNOWN)
"""The results of a limit, as text."""


@dataclass
class Stood:
    """The result of a limit over all counted rows.

    state: state at the last row, one of STATES; "unknown" before the first row
    times: how often it turned red
    seconds: duration of each of STATES
    counted_s: duration of the measurement, with what was missed
    unjudged_s: of that, what was not measured, not calibrated, or clipped and not red
    microphone: name of the microphone, if there are several
    worst, worst_s: the highest value (the lowest for a lower limit) of rows with a complete window,
        and its time; without such rows, or if only the end counts, the last value
    whole: whether the window of a rolling column was complete at any time; true for other columns
    heard_s, window_s: sound in the window at the last row, and its length
    projection: lowest possible level of an incomplete window, if silence follows
    judged_from_s: when judging began, if that was during the measurement; else 0
    clipped_s: duration in which the value included clipped sound
    doubted: whether such a value was not red, so that the true one may have been
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
    unjudged_s: float = 0.0
    counted_s: float = 0.0
    judged_from_s: float = 0.0
    clipped_s: float = 0.0
    doubted: bool = False

    @property
    def verdict(self) -> str:
        """One of VERDICTS; "above so far" while an incomplete window is not decisive."""
        if self.exceeded:
            return EXCEEDED
        if not self.whole and self.worst is not None:
            above = self.limit.is_beyond(self.worst)
            return f"{self.limit.side} so far" if above else KEPT_SO_FAR
        return NOT_KNOWN if self.exceeded is None else KEPT

    @property
    def exceeded(self) -> bool | None:
        """Whether it was red, or ended red if only the end counts.

        None if that is unknown: without a complete window, if too much was not judged, and if
        clipped sound may have broken it.
        """
        if self.limit.at_end:
            known = self.state in COLORS and not (self.doubted and self.state != STATES[RED])
            return self.state == STATES[RED] if known else None
        if self.seconds[STATES[RED]] > 0:
            return True
        if self.doubted:
            return None
        judged_s = sum(self.seconds[name] for name in COLORS)
        enough = not is_too_much(self.unjudged_s, self.counted_s)
        return False if self.whole and judged_s and enough else None

    def to_dict(self) -> JsonDict:
        """Data for summaries."""
        return {
            **self.limit.to_dict(),
            "state": self.state,
            "exceeded": self.exceeded,
            "verdict": self.verdict,
            "times": self.times,
            **{f"{name}_s": round(value, 3) for name, value in self.seconds.items()},
            "counted_s": round(self.counted_s, 3),
            "unjudged_s": round(self.unjudged_s, 3),
            "clipped_s": round(self.clipped_s, 3),
            "worst": self.worst,
            "worst_s": self.worst_s,
            "whole": self.whole,
            **({} if self.whole else self._of_window),
            **({"judged_from_s": round(self.judged_from_s, 3)} if self.judged_from_s else {}),
        }

    @property
    def _of_window(self) -> JsonDict:
        """Data of a window that was never complete."""
        data = {"heard_s": round(self.heard_s, 3), "window_s": self.window_s}
        return data | ({} if self.projection is None else {"projection": self.projection})


def is_too_much(missed_s: float, time_s: float) -> bool:
    """Whether what was missed is more than UNMEASURED_SHARE of the time."""
    return missed_s > UNMEASURED_SHARE * time_s + SAME_TIME_S


class RowOfLimit(NamedTuple):
    """A row as a limit takes it.

    value: of its column, NaN for none
    calibrated, clipped: whether the level is known, and whether the value includes clipped sound
    heard: whether all sound since the row before was measured
    until_s: seconds until the limit is exceeded at the present level, NaN for never
    """

    time_s: float
    value: float
    calibrated: bool
    clipped: bool
    heard: bool
    until_s: float = math.nan


class LimitMonitor(Resumable):
    """Determines the state of a limit of one column, row by row.

    step_s: seconds between rows
    window_s: window of a rolling column; until it is complete, a value above the limit is amber,
        and red only if even silence for the rest of the window could not help. The window begins
        with the first value, and again after silence of its length
    adds_up: whether the column is an equivalent level, for which that can be decided
    counted: whether the column is of all that was counted
    rises: whether louder sound can only raise the column

    A limit with `ahead_s` is also amber from so long before it is exceeded at the present level.
    Red is reported immediately. A state improves when the value was better than the threshold by
    the hysteresis for `hold_s` without interruption, to the worst state of that time. Rows without
    a value are "unknown", and uncalibrated ones "uncalibrated"; both are ignored otherwise.

    A limit is never green on sound that was not measured. Green is "unknown" before the window is
    complete, while more than UNMEASURED_SHARE of the time of the value was not measured, and while
    the value includes clipped sound, as louder sound can only make it worse. For a lower limit that
    holds for all states but, with clipped sound, for green. The time of a value is its window, all
    counted time, or else the time since the row before.
    """

    kept: ClassVar[tuple[str, ...]] = ("_level", "_calm_s", "_calm_level", "_began_s", "_last")
    kept += ("_times", "_rows", "_worst", "_worst_s", "_heard_s", "_known_s", "_row_s", "_sure_at")
    kept += ("_was_whole", "_from_s", "_begins", "_paused", "_pauses", "_clipped", "_holes")
    kept += ("_counted_s", "_missed_s", "_unjudged_s", "_missed", "_judged_from_s", "_soon")
    kept += ("_clipped_s", "_doubted")
    growing: ClassVar[tuple[str, ...]] = ("_pauses", "_holes")

    def __init__(
        self,
        limit: Limit,
        step_s: float,
        window_s: float = 0.0,
        adds_up: bool = False,
        counted: bool = False,
        rises: bool = True,
    ) -> None:
        self.limit = limit
        self._step_s, self._window_s = step_s, window_s
        self._counted, self._rises = counted, rises
        self._adds_up = adds_up and not limit.below
        self._top = limit.sign * limit.threshold
        self._warn = self._top if limit.amber is None else limit.sign * limit.amber
        self._began_s = self._known_s = self._row_s = math.nan
        self._heard_s = 0.0
        # Pauses: pairs of a time, and 1 for the begin of a pause or 0 for its end.
        self._paused, self._pauses = False, np.zeros((0, 2))
        self._level, self._calm_s, self._calm_level = GREEN, math.nan, GREEN
        self._clipped = self._missed = self._soon = False
        # Begin and end of what was not measured, within the window.
        self._holes = np.zeros((0, 2))
        self.reset()

    def pause(self, paused: bool, time_s: float = -math.inf) -> None:
        """Pause or continue the counting of rows after `time_s`."""
        self._pauses = np.append(self._pauses, [[time_s, paused]], axis=0)

    def reset(self, time_s: float = -math.inf) -> None:
        """Restart the result up to `time_s`, and the state for the rows after it."""
        self._from_s, self._begins = time_s, True
        self._was_whole, self._sure_at = False, math.nan
        self._last, self._times = UNKNOWN, 0
        self._rows = [0] * len(STATES)
        self._worst = self._worst_s = math.nan
        self._counted_s = self._missed_s = self._unjudged_s = self._judged_from_s = 0.0
        self._clipped_s, self._doubted = 0.0, False

    def begin_late(
        self,
        time_s: float,
        counted_s: float = 0.0,
        missed_s: float = 0.0,
        heard_s: float = 0.0,
        holes: NDArray[np.float64] | None = None,
    ) -> None:
        """Begin during a measurement, with the row after `time_s`.

        The other arguments are the sound before that its values include, as in `Earlier`.
        """
        self._judged_from_s = self._row_s = time_s
        self._counted_s, self._missed_s, self._unjudged_s = counted_s, missed_s, missed_s
        if heard_s:
            self._began_s, self._known_s = time_s - heard_s, time_s
            self._holes = self._holes if holes is None else holes

    def update(
        self, rows: Iterable[tuple[float, float, bool, bool, bool, *tuple[float, ...]]]
    ) -> list[str]:
        """The state at each row as text; rows have the fields of `RowOfLimit`."""
        return [STATES[self._take(RowOfLimit(*row))] for row in rows]

    def update_end(self, time_s: float, value: float, calibrated: bool, clipped: bool) -> None:
        """Update with the value at the end of the sound.

        If the last row is at the same time, this adds no row unless the state changes, and its
        clipping still applies.
        """
        again = time_s <= self._row_s + SAME_TIME_S
        clipped |= again and self._clipped
        self._take(RowOfLimit(time_s, value, calibrated, clipped, not self._missed), again)

    def _take(self, row: RowOfLimit, again: bool = False) -> int:
        """The state of a row as an index of STATES; `again` updates the last row."""
        time_s = row.time_s
        while len(self._pauses) and self._pauses[0, 0] < time_s - SAME_TIME_S:
            self._paused, self._pauses = bool(self._pauses[0, 1]), self._pauses[1:]
        after = bool(time_s > self._from_s + SAME_TIME_S)
        counts = after and not self._paused
        if after and self._begins:
            self._level, self._calm_s, self._calm_level = GREEN, math.nan, GREEN
            self._begins = False
        missed_s = 0.0 if again else self._miss(row, counts)
        if not (row.calibrated and math.isfinite(row.value)):
            state = UNKNOWN if row.calibrated else UNCALIBRATED
        else:
            self._hear(time_s)
            if not again:  # the end has no forecast of its own
                self._soon = row.until_s <= self.limit.ahead_s  # false for NaN
            signed = self.limit.sign * row.value
            sure = self._sure(signed)
            self._turn(time_s, signed, sure, counts)
            state = self._known(row.clipped)
            if counts:
                self._compare(time_s, signed, sure)
                louder_is_better = self.limit.below and self._rises and self._level != RED
                doubtful = row.clipped and state != RED and not louder_is_better
                self._doubted = doubtful or (self._doubted and not self.limit.at_end)
        if counts and not again:
            unsure = state == UNCALIBRATED or (state == UNKNOWN and row.clipped)
            self._unjudged_s += max(missed_s, unsure * self._step_s)
        if counts and row.clipped and not (again and self._clipped):
            self._clipped_s += self._step_s
        self._row_s, self._clipped = time_s, row.clipped
        self._rows[state] += counts and not (again and state == self._last)
        self._last = state if after else self._last
        return state

    def _miss(self, row: RowOfLimit, counts: bool) -> float:
        """Record what was not measured since the row before; returns its seconds."""
        first = math.isnan(self._row_s)
        since_s = self._step_s if first else row.time_s - self._row_s
        # After the first value there is always one, unless the model is switched off.
        self._missed = not row.heard or (math.isnan(row.value) and not math.isnan(self._known_s))
        missed_s = since_s if self._missed else since_s - self._step_s
        missed_s = missed_s if missed_s > SAME_TIME_S else 0.0
        if missed_s and self._window_s and not first:
            end_s = row.time_s - (0.0 if self._missed else self._step_s)
            self._holes = np.append(self._holes, [[end_s - missed_s, end_s]], axis=0)
        if counts:
            self._counted_s += since_s
            self._missed_s += missed_s
        return missed_s

    def _unmeasured(self, time_s: float) -> bool:
        """Whether too much of the time of the present value was not measured."""
        if self._window_s:
            if not len(self._holes):  # the usual case
                return False
            begin_s = time_s - self._window_s
            self._holes = self._holes[self._holes[:, 1] > begin_s + SAME_TIME_S]
            missed_s = float((self._holes[:, 1] - np.maximum(self._holes[:, 0], begin_s)).sum())
            return is_too_much(missed_s, self._window_s)
        if self._counted:
            return is_too_much(self._missed_s, self._counted_s)
        return self._missed

    def _known(self, clipped: bool) -> int:
        """The present state, or UNKNOWN if it could be another one."""
        level = self._level
        if not self.limit.below and level != GREEN:
            return level
        unsure = clipped and ((level == GREEN) != self.limit.below or not self._rises)
        unsure |= level == GREEN and not self._whole
        return UNKNOWN if unsure or self._unmeasured(self._known_s) else level

    def _hear(self, time_s: float) -> None:
        """Continue or restart the window at a row with a value."""
        if not time_s - self._known_s < max(self._window_s, self._step_s) - SAME_TIME_S:
            # The window includes the time since the row before, which has no value.
            before_s = time_s if math.isnan(self._row_s) else self._row_s
            self._began_s = max(before_s, time_s - self._step_s)
        self._known_s = time_s
        self._heard_s = time_s - self._began_s

    def _compare(self, time_s: float, signed: float, sure: float) -> None:
        """Update the worst value with a counted row."""
        first = self._whole and not self._was_whole
        self._was_whole = self._was_whole or self._whole
        self._sure_at = sure
        if self.limit.at_end or not self._was_whole or first:
            worse = True
        else:
            # For a restarted window, its lowest possible level.
            signed = sure
            worse = (self._whole or sure > self._top) and sure > self.limit.sign * self._worst
        if worse:
            self._worst, self._worst_s = self.limit.sign * signed, time_s

    def _turn(self, time_s: float, signed: float, sure: float, counts: bool) -> None:
        """Update the state with a value; higher is worse."""
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
        """The rank of a value, less `back` for hysteresis."""
        if sure > self._top - back:
            return RED
        return AMBER if self._soon or signed > self._warn - back else GREEN

    @property
    def _whole(self) -> bool:
        return not self._window_s or bool(self._heard_s >= self._window_s - SAME_TIME_S)

    def _sure(self, signed: float) -> float:
        """The lowest possible value of the column over its whole window."""
        if self._whole:
            return signed
        if not self._adds_up or self._heard_s <= 0:
            return -math.inf
        return signed + 10 * math.log10(self._heard_s / self._window_s)

    @property
    def stood(self) -> Stood:
        """The result so far."""
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
            unjudged_s=self._unjudged_s,
            counted_s=self._counted_s,
            judged_from_s=self._judged_from_s,
            clipped_s=self._clipped_s,
            doubted=self._doubted,
        )
