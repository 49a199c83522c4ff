"""Monitoring of a limit, row by row."""

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from amt_stream.core.clock import SAME_TIME_S
from amt_stream.core.saved_state import Resumable
from amt_stream.meters.accumulators import limit_state as at
from amt_stream.meters.limits import Limit, Stood
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


class _Holes(Resumable):
    """What was not measured within a window, as pairs of begin and end."""

    kept = growing = ("_spans",)

    def __init__(self, window_s: float) -> None:
        self._window_s = window_s
        self._spans = np.zeros((0, 2))

    def fill(self, spans: np.ndarray) -> None:
        """Set what was not measured so far."""
        self._spans = spans

    def add(self, begin_s: float, end_s: float) -> None:
        if self._window_s:
            self._spans = np.append(self._spans, [[begin_s, end_s]], axis=0)

    def lost_s(self, time_s: float) -> float:
        """Seconds of them in the window that ends at `time_s`."""
        if not len(self._spans):  # the usual case
            return 0.0
        begin_s = time_s - self._window_s
        self._spans = self._spans[self._spans[:, 1] > begin_s + SAME_TIME_S]
        return float((self._spans[:, 1] - np.maximum(self._spans[:, 0], begin_s)).sum())


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

    kept = "_from_s", "_begins", "_judged_from_s", "_pauses", "_holes", "_state"

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
        self._rules = rules_of(limit, step_s, window_s, adds_up, counted, rises)
        self._state = [0.0] * at.STATE
        at.begin(self._state)
        self._pauses, self._holes = _Pauses(), _Holes(window_s)
        self.reset()

    def pause(self, paused: bool, time_s: float = -math.inf) -> None:
        """Pause or continue the counting of rows after `time_s`."""
        self._pauses.turn(paused, time_s)

    def reset(self, time_s: float = -math.inf) -> None:
        """Restart the result up to `time_s`, and the state for the rows after it."""
        self._from_s, self._begins, self._judged_from_s = time_s, True, 0.0
        at.begin_count(self._state)

    def begin_late(self, time_s: float, earlier: Earlier = NOTHING) -> None:
        """Begin during a measurement, with the row after `time_s`."""
        state, self._judged_from_s = self._state, time_s
        state[at.COUNTED_S] = earlier.counted_s
        state[at.MISSED_S] = state[at.UNJUDGED_S] = earlier.missed_s
        state[at.AT_S] = time_s
        if earlier.heard_s:
            state[at.BEGAN_S], state[at.KNOWN_S] = time_s - earlier.heard_s, time_s
            self._holes.fill(earlier.holes)

    def update(
        self, rows: Iterable[tuple[float, float, bool, bool, bool, *tuple[float, ...]]]
    ) -> list[str]:
        """The state at each row as text; rows have the fields of `RowOfLimit`."""
        return [at.STATES[self._take(RowOfLimit(*row))] for row in rows]

    def miss_until(self, time_s: float) -> None:
        """Count the time from the last row to the end of the sound, of which there is no row."""
        rules, state, last_s = self._rules, self._state, self._state[at.AT_S]
        after = time_s > self._from_s + SAME_TIME_S
        missed_s = time_s - last_s
        is_missing = missed_s > rules[at.STEP_S] + SAME_TIME_S  # false for NaN
        if not (is_missing and after) or self._pauses.paused_at(time_s):
            return
        for place in (at.COUNTED_S, at.MISSED_S, at.UNJUDGED_S):
            state[place] += missed_s
        self._holes.add(last_s, time_s)
        state[at.AT_S], state[at.MISSED] = time_s, 1.0
        doubtful = state[at.LAST] == at.GREEN or self.limit.below
        if doubtful and at.lacks_too_much(rules, state, self._holes.lost_s(time_s)):
            state[at.LAST] = at.UNKNOWN

    def update_end(self, time_s: float, value: float, calibrated: bool, clipped: bool) -> None:
        """Update with the value at the end of the sound.

        If the last row is at the same time, this adds no row unless the state changes, and its
        clipping still applies.
        """
        state = self._state
        again = time_s <= state[at.AT_S] + SAME_TIME_S
        clipped |= again and bool(state[at.CLIPPED])
        self._take(RowOfLimit(time_s, value, calibrated, clipped, not state[at.MISSED]), again)

    def _take(self, row: RowOfLimit, again: bool = False) -> int:
        """The state of a row as an index of STATES; `again` updates the last row."""
        rules, state, time_s = self._rules, self._state, row.time_s
        after = time_s > self._from_s + SAME_TIME_S
        counts = after and not self._pauses.paused_at(time_s)
        if after and self._begins:
            at.begin_level(state)
            self._begins = False
        since_s = missed_s = 0.0
        if not again:
            first = math.isnan(state[at.AT_S])
            since_s, missed_s = at.pass_to(rules, state, time_s, row.value, row.heard)
            if missed_s and not first:
                end_s = time_s - (0.0 if state[at.MISSED] else rules[at.STEP_S])
                self._holes.add(end_s - missed_s, end_s)
        passed = since_s, missed_s, self._holes.lost_s(time_s)
        marks = row.until_s, row.calibrated, row.clipped
        return at.judge(rules, state, time_s, row.value, *marks, *passed, after, counts, again)

    @property
    def stood(self) -> Stood:
        """The result so far."""
        rules, state, sign = self._rules, self._state, self.limit.sign
        rows = dict(zip(at.STATES, state[at.ROWS :], strict=False))
        whole, there = bool(state[at.WHOLE]), not math.isnan(state[at.WORST])
        adds_up = rules[at.ADDS_UP] and not self.limit.below
        projected = there and adds_up and not whole and state[at.SURE] > -math.inf
        return Stood(
            self.limit,
            at.STATES[int(state[at.LAST])],
            int(state[at.TIMES]),
            {name: n * rules[at.STEP_S] for name, n in rows.items()},
            sign * state[at.WORST] if there else None,
            state[at.WORST_S] if there else None,
            whole or not rules[at.WINDOW_S],
            state[at.HEARD_S],
            rules[at.WINDOW_S],
            sign * state[at.SURE] if projected else None,
            unjudged_s=state[at.UNJUDGED_S],
            counted_s=state[at.COUNTED_S],
            judged_from_s=self._judged_from_s,
            clipped_s=state[at.CLIPPED_S],
            doubted=bool(state[at.DOUBTED]),
        )


def rules_of(
    limit: Limit, step_s: float, window_s: float, adds_up: bool, counted: bool, rises: bool
) -> list[float]:
    """The rules of `limit_state` of a limit, for a column as `LimitMonitor` has it."""
    amber = limit.threshold if limit.amber is None else limit.amber
    of_limit = limit.sign, limit.threshold, amber, limit.hysteresis, limit.hold_s, limit.ahead_s
    return [*map(float, (*of_limit, limit.at_end, step_s, window_s, adds_up, counted, rises))]
