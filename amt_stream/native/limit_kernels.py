"""Limits for programs without Python: the functions of `limit_state`, compiled."""

import inspect
import math

import numba
from numba import types
from numba.extending import register_jitable

from amt_stream.dsp.functional.compiler.dispatch import Array
from amt_stream.dsp.functional.compiler.private_numba import code_of
from amt_stream.meters.accumulators import limit_state as at
from amt_stream.native.kernels import KernelCode
from amt_stream.native.limit import CLIPPED, UNCALIBRATED, UNHEARD

for _, function in inspect.getmembers(at, inspect.isfunction):
    register_jitable(error_model="numpy")(function)

PASSED = at.STATE
"""Place in the state of a program: how many values came."""

_compiled = numba.njit(error_model="numpy")
"""Without a cache: they are compiled where a model is exported, and never called there."""


@_compiled
def limit_begin(state: Array) -> None:
    """Set a state before the first value."""
    at.begin(state)
    state[PASSED] = 0.0


@_compiled
def limit_take(rules: Array, state: Array, value: float, marks: int) -> int:
    """The state at the next value; marks: bits of CLIPPED and its like."""
    state[PASSED] += 1
    time_s = state[PASSED] * rules[at.STEP_S]
    since_s, missed_s = at.pass_to(rules, state, time_s, value, (marks & UNHEARD) == 0)
    calibrated, clipped = (marks & UNCALIBRATED) == 0, (marks & CLIPPED) > 0
    return at.judge(
        rules,
        state,
        time_s,
        value,
        math.nan,  # no column has a forecast
        calibrated,
        clipped,
        since_s,
        missed_s,
        0.0,  # nor a window
        True,
        True,
        False,
    )


@_compiled
def limit_verdict(rules: Array, state: Array) -> int:
    """KEPT, EXCEEDED or NOT_KNOWN of `limit_state`."""
    rows = state[at.ROWS : at.ROWS + len(at.STATES)]
    return at.result(
        int(state[at.LAST]),
        rows[at.RED],
        rows[at.GREEN] + rows[at.AMBER] + rows[at.RED],
        state[at.UNJUDGED_S],
        state[at.COUNTED_S],
        True,  # no column has a window
        state[at.DOUBTED] > 0,
        rules[at.AT_END] > 0,
    )


_NUMBERS = types.Array(types.float64, 1, "C")
_TAKEN = {
    "kernel_limit_begin": (limit_begin, (_NUMBERS,)),
    "kernel_limit_take": (limit_take, (_NUMBERS, _NUMBERS, types.float64, types.int64)),
    "kernel_limit_verdict": (limit_verdict, (_NUMBERS, _NUMBERS)),
}


def limit_codes() -> dict[str, KernelCode]:
    """The functions by name; those of amt.h may have the names that begin with the model's."""
    return {name: KernelCode(*code_of(*of)) for name, of in _TAKEN.items()}
