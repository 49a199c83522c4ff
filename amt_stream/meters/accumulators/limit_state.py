"""The state of a limit at each value of its column, and the result of all values.

These functions are for Python and, compiled, for programs without it (`native.limit`). Rules and
state are sequences of numbers, each at the place that a name below gives.
"""

import math
from typing import Any

from amt_stream.core.clock import SAME_TIME_S

STATES = ("green", "amber", "red", "unknown", "uncalibrated")
"""States of a limit; the first three are those of known values."""

GREEN, AMBER, RED, UNKNOWN, UNCALIBRATED = range(5)

UNMEASURED_SHARE = 0.01
"""The share of the time of a value, or of a measurement, from which on sound that was not measured
leaves a limit unknown."""

Numbers = Any
"""A list of floats; compiled, an array."""

(SIGN, THRESHOLD, AMBER_FROM, HYSTERESIS, HOLD_S, AHEAD_S, AT_END) = range(7)
(STEP_S, WINDOW_S, ADDS_UP, COUNTED, RISES) = range(7, 12)
RULES = 12
"""Rules: 1 or -1 for a lower limit, and what `Limit` says; then seconds between values, and what
`LimitMonitor` says of the column. What is true or false is 1 or 0."""

# The level: its state, since when a better one lasts, the worst of that time, and whether the limit
# is exceeded soon.
NOW, CALM_S, CALM, SOON = range(4)
# Coverage: the time of the last value, known or not; begin, end and length of the present window;
# whether the last value was not measured.
AT_S, BEGAN_S, KNOWN_S, HEARD_S, MISSED = range(4, 9)
# What was counted since a reset, as in `Stood`: the last state, how often it turned red, and how
# many values were in each state; of `COUNTED_S`, `MISSED_S` was not measured.
LAST, TIMES = 9, 10
ROWS = 11
COUNTED_S, MISSED_S, UNJUDGED_S, CLIPPED_S, DOUBTED = range(16, 21)
# The worst value (higher is worse) and its time; the lowest possible value of the whole window at
# the last one; whether the window was ever complete.
WORST, WORST_S, SURE, WHOLE = range(21, 25)
CLIPPED = 25
"""Whether the last value included clipped sound."""
STATE = 26

KEPT, EXCEEDED, NOT_KNOWN = range(3)


def begin(state: Numbers) -> None:
    """Set a state before the first value."""
    state[AT_S] = state[BEGAN_S] = state[KNOWN_S] = math.nan
    state[HEARD_S] = state[MISSED] = state[CLIPPED] = 0.0
    begin_level(state)
    begin_count(state)


def begin_level(state: Numbers) -> None:
    """Forget earlier levels."""
    state[NOW] = state[CALM] = GREEN
    state[CALM_S], state[SOON] = math.nan, 0.0


def begin_count(state: Numbers) -> None:
    """Restart what is counted."""
    for place in range(TIMES, DOUBTED + 1):
        state[place] = 0.0
    state[LAST] = UNKNOWN
    state[WORST] = state[WORST_S] = state[SURE] = math.nan
    state[WHOLE] = 0.0


def pass_to(
    rules: Numbers, state: Numbers, time_s: float, value: float, heard: bool
) -> tuple[float, float]:
    """Go on to a value; returns the seconds since the one before, and those not measured."""
    first = math.isnan(state[AT_S])
    since_s = rules[STEP_S] if first else time_s - state[AT_S]
    # After the first value there is always one, unless the model is switched off.
    missed = not heard or (math.isnan(value) and not math.isnan(state[KNOWN_S]))
    missed_s = since_s if missed else since_s - rules[STEP_S]
    state[MISSED] = 1.0 if missed else 0.0
    return since_s, missed_s if missed_s > SAME_TIME_S else 0.0


def judge(
    rules: Numbers,
    state: Numbers,
    time_s: float,
    value: float,
    until_s: float,
    calibrated: bool,
    clipped: bool,
    since_s: float,
    missed_s: float,
    lost_s: float,
    after: bool,
    counts: bool,
    again: bool,
) -> int:
    """The state at a value, after `pass_to`.

    until_s: seconds until the limit is exceeded at the present level, NaN for never
    since_s, missed_s: as `pass_to` gives them
    lost_s: of the window that ends now, what was not measured
    after: whether it is after the last reset; counts: and not in a pause
    again: whether it is that of the last value again, at the end of the sound
    """
    if counts:
        state[COUNTED_S] += since_s
        state[MISSED_S] += missed_s
    if calibrated and math.isfinite(value):
        found = _known(rules, state, time_s, value, until_s, clipped, lost_s, counts, again)
    else:
        found = UNKNOWN if calibrated else UNCALIBRATED
    if counts:
        if not again:
            unsure = found == UNCALIBRATED or (found == UNKNOWN and clipped)
            state[UNJUDGED_S] += max(missed_s, rules[STEP_S] if unsure else 0.0)
        if clipped and not (again and state[CLIPPED] > 0):
            state[CLIPPED_S] += rules[STEP_S]
        if not (again and found == state[LAST]):
            state[ROWS + found] += 1
    if after:
        state[LAST] = found
    state[AT_S], state[CLIPPED] = time_s, 1.0 if clipped else 0.0
    return found


def _known(
    rules: Numbers,
    state: Numbers,
    time_s: float,
    value: float,
    until_s: float,
    clipped: bool,
    lost_s: float,
    counts: bool,
    again: bool,
) -> int:
    _hear(rules, state, time_s)
    if not again:  # the end has no forecast of its own
        state[SOON] = 1.0 if until_s <= rules[AHEAD_S] else 0.0  # false for NaN
    window_s, below = rules[WINDOW_S], rules[SIGN] < 0
    whole = window_s == 0 or state[HEARD_S] >= window_s - SAME_TIME_S
    signed = rules[SIGN] * value
    sure = signed
    if not whole:
        adds_up = rules[ADDS_UP] > 0 and not below and state[HEARD_S] > 0
        sure = signed + 10 * math.log10(state[HEARD_S] / window_s) if adds_up else -math.inf
    turns_red = _turn(rules, state, time_s, signed, sure)
    level = int(state[NOW])
    found = level
    if below or level == GREEN:
        unsure = clipped and ((level == GREEN) != below or rules[RISES] == 0)
        unsure = unsure or (level == GREEN and not whole)
        if unsure or lacks_too_much(rules, state, lost_s):
            found = UNKNOWN
    if counts:
        state[TIMES] += turns_red
        _compare(rules, state, time_s, signed, sure, whole)
        louder_is_better = below and rules[RISES] > 0 and level != RED
        doubtful = clipped and found != RED and not louder_is_better
        doubtful = doubtful or (state[DOUBTED] > 0 and rules[AT_END] == 0)
        state[DOUBTED] = 1.0 if doubtful else 0.0
    return found


def _hear(rules: Numbers, state: Numbers, time_s: float) -> None:
    """Continue or restart the window at a known value."""
    if not time_s - state[KNOWN_S] < max(rules[WINDOW_S], rules[STEP_S]) - SAME_TIME_S:
        # The window includes the time since the value before, which is not known.
        before_s = time_s if math.isnan(state[AT_S]) else state[AT_S]
        state[BEGAN_S] = max(before_s, time_s - rules[STEP_S])
    state[KNOWN_S] = time_s
    state[HEARD_S] = time_s - state[BEGAN_S]


def _turn(rules: Numbers, state: Numbers, time_s: float, signed: float, sure: float) -> bool:
    """Immediately worse, with hysteresis and hold better; returns whether it turns red.

    signed: the value, of which higher is worse; sure: the lowest possible one of the whole window
    """
    rank = _rank(rules, state, signed, sure, 0.0)
    if rank >= state[NOW]:
        turns_red = bool(rank == RED != state[NOW])
        state[NOW], state[CALM_S] = rank, math.nan
        return turns_red
    still = _rank(rules, state, signed, sure, rules[HYSTERESIS])
    if still >= state[NOW]:
        state[CALM_S] = math.nan
        return False
    if math.isnan(state[CALM_S]):
        state[CALM_S], state[CALM] = time_s, GREEN
    state[CALM] = max(state[CALM], still)
    # Two times that differ by less are the same.
    if time_s - state[CALM_S] >= rules[HOLD_S] - 1e-6:
        state[NOW], state[CALM_S] = state[CALM], math.nan
    return False


def _rank(rules: Numbers, state: Numbers, signed: float, sure: float, back: float) -> int:
    """The state of a value, less `back` for hysteresis."""
    if sure > rules[SIGN] * rules[THRESHOLD] - back:
        return RED
    warns = signed > rules[SIGN] * rules[AMBER_FROM] - back
    return AMBER if warns or state[SOON] > 0 else GREEN


def lacks_too_much(rules: Numbers, state: Numbers, lost_s: float) -> bool:
    """Whether too much of the time of the present value was not measured."""
    if rules[WINDOW_S] > 0:
        return is_too_much(lost_s, rules[WINDOW_S])
    if rules[COUNTED] > 0:
        return is_too_much(state[MISSED_S], state[COUNTED_S])
    return bool(state[MISSED] > 0)


def _compare(
    rules: Numbers, state: Numbers, time_s: float, signed: float, sure: float, whole: bool
) -> None:
    """Compare a value with the worst one."""
    first = whole and state[WHOLE] == 0
    if whole:
        state[WHOLE] = 1.0
    state[SURE] = sure
    if rules[AT_END] > 0 or state[WHOLE] == 0 or first:
        state[WORST], state[WORST_S] = signed, time_s
    elif (whole or sure > rules[SIGN] * rules[THRESHOLD]) and sure > state[WORST]:
        # For a restarted window, its lowest possible level.
        state[WORST], state[WORST_S] = sure, time_s


def is_too_much(missed_s: float, time_s: float) -> bool:
    """Whether what was missed is more than UNMEASURED_SHARE of the time."""
    return missed_s > UNMEASURED_SHARE * time_s + SAME_TIME_S


def result(
    last: int,
    red: float,
    judged: float,
    unjudged_s: float,
    counted_s: float,
    whole: bool,
    doubted: bool,
    at_end: bool,
) -> int:
    """Whether the limit was exceeded: KEPT, EXCEEDED or NOT_KNOWN.

    last: the last state
    red, judged: how many values were red, and how many were known
    whole: whether the window was ever complete
    """
    if at_end:
        if last > RED or (doubted and last != RED):
            return NOT_KNOWN
        return EXCEEDED if last == RED else KEPT
    if red > 0:
        return EXCEEDED
    if doubted or not whole or not judged or is_too_much(unjudged_s, counted_s):
        return NOT_KNOWN
    return KEPT
