"""Monitoring of a limit, row by row."""

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from amt_stream.core.clock import SAME_TIME_S
from amt_stream.core.saved_state import Resumable
from amt_stream.meters.limits import (
    AMBER,
    GREEN,
    RED,
    STATES,
    UNCALIBRATED,
    UNKNOWN,
    Limit,
    Stood,
    is_too_much,
)
from amt_stream.meters.rows.readings import NOTHING, Earlier


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


class _Pauses(Resumable):
    """When rows are not counted."""

    kept = ("_paused", "_turns")
    growing = ("_turns",)

    def __init__(self) -> None:
        self._paused = False
        # Pairs of a time, and 1 for the begin of a pause or 0 for its end.
        self._turns = np.zeros((0, 2))

    def turn(self, paused: bool, time_s: float) -> None:
        """Begin or end a pause for the rows after `time_s`."""
        self._turns = np.append(self._turns, [[time_s, paused]], axis=0)

    def paused_at(self, time_s: float) -> bool:
        """Whether the row at `time_s` is not counted; rows must be in order."""
        while len(self._turns) and self._turns[0, 0] < time_s - SAME_TIME_S:
            self._paused, self._turns = bool(self._turns[0, 1]), self._turns[1:]
        return self._paused


class _Level(Resumable):
    """The state of a limit for a known value: immediately worse, with hysteresis and hold better.

    now: GREEN, AMBER or RED
    """

    kept = ("now", "_calm_s", "_calm", "_soon")

    def __init__(self, limit: Limit) -> None:
        self._limit = limit
        self._top = limit.sign * limit.threshold
        self._warn = self._top if limit.amber is None else limit.sign * limit.amber
        self.now = self._calm = GREEN
        self._calm_s = math.nan
        self._soon = False

    def forecast(self, until_s: float) -> None:
        """Take the seconds until the limit is exceeded at the present level."""
        self._soon = until_s <= self._limit.ahead_s  # false for NaN

    def turn(self, time_s: float, signed: float, sure: float) -> bool:
        """Take a value, of which higher is worse; returns whether it turns red.

        sure: the lowest possible value of the whole window
        """
        rank = self._rank(signed, sure, 0.0)
        if rank >= self.now:
            turns_red = rank == RED != self.now
            self.now, self._calm_s = rank, math.nan
            return turns_red
        still = self._rank(signed, sure, self._limit.hysteresis)
        if still >= self.now:
            self._calm_s = math.nan
            return False
        if math.isnan(self._calm_s):
            self._calm_s, self._calm = time_s, GREEN
        self._calm = max(self._calm, still)
        # Two times that differ by less are the same.
        if time_s - self._calm_s >= self._limit.hold_s - 1e-6:
            self.now, self._calm_s = self._calm, math.nan
        return False

    def _rank(self, signed: float, sure: float, back: float) -> int:
        """The rank of a value, less `back` for hysteresis."""
        if sure > self._top - back:
            return RED
        return AMBER if self._soon or signed > self._warn - back else GREEN


class _Figures(Resumable):
    """What was counted of a limit since a reset, as in `Stood`.

    rows: by state
    missed_s: what was not measured of `counted_s`
    """

    kept = (
        *("state", "times", "rows", "counted_s", "missed_s", "unjudged_s", "judged_from_s"),
        *("clipped_s", "doubted"),
    )

    def __init__(self) -> None:
        self.state = UNKNOWN
        self.times = 0
        self.rows = [0] * len(STATES)
        self.counted_s = self.missed_s = self.unjudged_s = self.clipped_s = self.judged_from_s = 0.0
        self.doubted = False


class _Worst(Resumable):
    """The worst value of a limit since a reset; higher is worse.

    value, time_s: the value and its time, NaN without one
    whole: whether its window was ever complete
    sure: the lowest possible value of the whole window at the last row
    """

    kept = ("value", "time_s", "whole", "sure")

    def __init__(self, limit: Limit) -> None:
        self._top, self._at_end = limit.sign * limit.threshold, limit.at_end
        self.value = self.time_s = self.sure = math.nan
        self.whole = False

    def compare(self, time_s: float, signed: float, sure: float, whole: bool) -> None:
        """Take a value, the lowest possible one, and whether its window is complete."""
        first = whole and not self.whole
        self.whole = self.whole or whole
        self.sure = sure
        if self._at_end or not self.whole or first:
            self.value, self.time_s = signed, time_s
        elif (whole or sure > self._top) and sure > self.value:
            # For a restarted window, its lowest possible level.
            self.value, self.time_s = sure, time_s


class _Coverage(Resumable):
    """How much of the time of a column's values was measured.

    row_s, missed: time of the last row, NaN before the first one, and whether it was not measured
    heard_s: sound in the window at the last value
    """

    kept = ("row_s", "heard_s", "_began_s", "_known_s", "missed", "_holes")
    growing = ("_holes",)

    def __init__(self, step_s: float, window_s: float, adds_up: bool, counted: bool) -> None:
        self.window_s, self.adds_up = window_s, adds_up
        self._step_s, self._counted = step_s, counted
        self.row_s = self._began_s = self._known_s = math.nan
        self.heard_s = 0.0
        self.missed = False
        # Begin and end of what was not measured, within the window.
        self._holes = np.zeros((0, 2))

    def begin_late(self, time_s: float, earlier: Earlier) -> None:
        """Begin with the row after `time_s`."""
        self.row_s = time_s
        if earlier.heard_s:
            self._began_s, self._known_s = time_s - earlier.heard_s, time_s
            self._holes = earlier.holes

    def pass_to(self, row: RowOfLimit) -> tuple[float, float]:
        """Go on to a row; returns the seconds since the row before, and those not measured."""
        first = math.isnan(self.row_s)
        since_s = self._step_s if first else row.time_s - self.row_s
        # After the first value there is always one, unless the model is switched off.
        self.missed = not row.heard or (math.isnan(row.value) and not math.isnan(self._known_s))
        missed_s = since_s if self.missed else since_s - self._step_s
        missed_s = missed_s if missed_s > SAME_TIME_S else 0.0
        if missed_s and self.window_s and not first:
            end_s = row.time_s - (0.0 if self.missed else self._step_s)
            self._holes = np.append(self._holes, [[end_s - missed_s, end_s]], axis=0)
        return since_s, missed_s

    def hear(self, time_s: float) -> None:
        """Continue or restart the window at a row with a value."""
        if not time_s - self._known_s < max(self.window_s, self._step_s) - SAME_TIME_S:
            # The window includes the time since the row before, which has no value.
            before_s = time_s if math.isnan(self.row_s) else self.row_s
            self._began_s = max(before_s, time_s - self._step_s)
        self._known_s = time_s
        self.heard_s = time_s - self._began_s

    @property
    def is_whole(self) -> bool:
        """Whether the window is complete."""
        return not self.window_s or bool(self.heard_s >= self.window_s - SAME_TIME_S)

    def sure(self, signed: float) -> float:
        """The lowest possible value of the column over its whole window."""
        if self.is_whole:
            return signed
        if not self.adds_up or self.heard_s <= 0:
            return -math.inf
        return signed + 10 * math.log10(self.heard_s / self.window_s)

    def lacks_too_much(self, figures: _Figures) -> bool:
        """Whether too much of the time of the present value was not measured."""
        if self.window_s:
            if not len(self._holes):  # the usual case
                return False
            begin_s = self._known_s - self.window_s
            self._holes = self._holes[self._holes[:, 1] > begin_s + SAME_TIME_S]
            missed_s = float((self._holes[:, 1] - np.maximum(self._holes[:, 0], begin_s)).sum())
            return is_too_much(missed_s, self.window_s)
        if self._counted:
            return is_too_much(figures.missed_s, figures.counted_s)
        return self.missed


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

    kept = (
        "_from_s",
        "_begins",
        "_clipped",
        "_pauses",
        "_level",
        "_coverage",
        "_figures",
        "_worst",
    )

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
        self._step_s, self._rises = step_s, rises
        self._clipped = False
        self._pauses = _Pauses()
        self._level = _Level(limit)
        self._coverage = _Coverage(step_s, window_s, adds_up and not limit.below, counted)
        self.reset()

    def pause(self, paused: bool, time_s: float = -math.inf) -> None:
        """Pause or continue the counting of rows after `time_s`."""
        self._pauses.turn(paused, time_s)

    def reset(self, time_s: float = -math.inf) -> None:
        """Restart the result up to `time_s`, and the state for the rows after it."""
        self._from_s, self._begins = time_s, True
        self._figures, self._worst = _Figures(), _Worst(self.limit)

    def begin_late(self, time_s: float, earlier: Earlier = NOTHING) -> None:
        """Begin during a measurement, with the row after `time_s`."""
        figures = self._figures
        figures.judged_from_s, figures.counted_s = time_s, earlier.counted_s
        figures.missed_s = figures.unjudged_s = earlier.missed_s
        self._coverage.begin_late(time_s, earlier)

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
        again = time_s <= self._coverage.row_s + SAME_TIME_S
        clipped |= again and self._clipped
        self._take(RowOfLimit(time_s, value, calibrated, clipped, not self._coverage.missed), again)

    def _take(self, row: RowOfLimit, again: bool = False) -> int:
        """The state of a row as an index of STATES; `again` updates the last row."""
        figures, paused = self._figures, self._pauses.paused_at(row.time_s)
        after = bool(row.time_s > self._from_s + SAME_TIME_S)
        counts = after and not paused
        if after and self._begins:
            self._level, self._begins = _Level(self.limit), False
        since_s, missed_s = (0.0, 0.0) if again else self._coverage.pass_to(row)
        if counts:
            figures.counted_s += since_s
            figures.missed_s += missed_s
        if row.calibrated and math.isfinite(row.value):
            state = self._judge(row, counts, again)
        else:
            state = UNKNOWN if row.calibrated else UNCALIBRATED
        if counts and not again:
            unsure = state == UNCALIBRATED or (state == UNKNOWN and row.clipped)
            figures.unjudged_s += max(missed_s, unsure * self._step_s)
        if counts and row.clipped and not (again and self._clipped):
            figures.clipped_s += self._step_s
        figures.rows[state] += counts and not (again and state == figures.state)
        figures.state = state if after else figures.state
        self._coverage.row_s, self._clipped = row.time_s, row.clipped
        return state

    def _judge(self, row: RowOfLimit, counts: bool, again: bool) -> int:
        """The state of a row with a known value."""
        level, coverage, figures = self._level, self._coverage, self._figures
        coverage.hear(row.time_s)
        if not again:  # the end has no forecast of its own
            level.forecast(row.until_s)
        signed = self.limit.sign * row.value
        sure = coverage.sure(signed)
        turns_red = level.turn(row.time_s, signed, sure)
        state = self._known(row.clipped)
        if counts:
            figures.times += turns_red
            self._worst.compare(row.time_s, signed, sure, coverage.is_whole)
            louder_is_better = self.limit.below and self._rises and level.now != RED
            doubtful = row.clipped and state != RED and not louder_is_better
            figures.doubted = doubtful or (figures.doubted and not self.limit.at_end)
        return state

    def _known(self, clipped: bool) -> int:
        """The present state, or UNKNOWN if it could be another one."""
        level = self._level.now
        if not self.limit.below and level != GREEN:
            return level
        unsure = clipped and ((level == GREEN) != self.limit.below or not self._rises)
        unsure |= level == GREEN and not self._coverage.is_whole
        return UNKNOWN if unsure or self._coverage.lacks_too_much(self._figures) else level

    @property
    def stood(self) -> Stood:
        """The result so far."""
        figures, worst, coverage = self._figures, self._worst, self._coverage
        there = not math.isnan(worst.value)
        projected = there and coverage.adds_up and not worst.whole and worst.sure > -math.inf
        return Stood(
            self.limit,
            STATES[figures.state],
            figures.times,
            {name: n * self._step_s for name, n in zip(STATES, figures.rows, strict=True)},
            self.limit.sign * worst.value if there else None,
            worst.time_s if there else None,
            worst.whole or not coverage.window_s,
            coverage.heard_s,
            coverage.window_s,
            self.limit.sign * worst.sure if projected else None,
            unjudged_s=figures.unjudged_s,
            counted_s=figures.counted_s,
            judged_from_s=figures.judged_from_s,
            clipped_s=figures.clipped_s,
            doubted=figures.doubted,
        )
