"""Sound to loudness and tonality of ECMA-418-2: the kernels in one compiled call, on a plan."""

import numpy as np
from numba import types

from amt_stream.dsp.functional.compiler.call_table import (
    Calls,
    KernelArgument,
    TupleOf,
    join,
    leave,
    plan_rows,
)
from amt_stream.dsp.functional.compiler.dispatch import Array, bare_kernel, kernel
from amt_stream.dsp.functional.ecma418.autocorrelation import Memory
from amt_stream.dsp.functional.ecma418.parts import _loudness, _tonality
from amt_stream.dsp.functional.ecma418.tones import (
    STATE_SHAPES,
    State,
    TonalTables,
    _frames_of_rows,
)
from amt_stream.dsp.functional.filters.direct_form import _direct_form
from amt_stream.dsp.functional.filters.fir import resampling
from amt_stream.dsp.functional.gammatone import _cascade

ORDER = 5
"""Order of the filters of the bands."""

AT = plan_rows(
    # Kernels, by address.
    "to_rate to_faded to_filtered to_ear to_bands to_tones to_parts to_loudness to_tonality "
    # Integers: input samples per block of the resampler, and taps of its filter.
    "down taken "
    # Tables, named as in their stages.
    "bank fade numerators denominators poles of_poles threshold gate smoothing weights "
    # The state, named as in its stages, but for samples before these, and before the delay.
    "before_resampling before_delay faded past filters "
    f"{' '.join(State._fields)} "
    # Memory of `tonal_and_noise`, and rows of blocks that are not averaged over time.
    f"{' '.join(Memory._fields)} no_rows "
    # The sound (row, time): given, resampled, delayed, then that which the ear filter takes.
    "given to_resample resampled delayed sound "
    # Inside the ear in float64, at the cochlea (row, time) and (row, 1, time), and (row, 53, time).
    "inside ear ear_rows bands "
    # (row, 3, 53, frame) in float64, and (row, 3, frame, 53).
    "tones parts "
    # Outputs (row, frame) and (row, frame, 53).
    "n specific_n t hz specific_t"
)
"""Rows of a plan, by name. A row of zeros stands for a missing array or kernel."""


@bare_kernel
def _to_faded(x: Array, fade: Array, faded: Array, inside: Array) -> None:
    """The sound with its fade-in, of which there were `faded` samples; it may be longer."""
    last = fade.size - 1
    for row in range(inside.shape[0]):
        for t in range(inside.shape[1]):
            gain = fade[min(max(faded[row] + t, 0), last)]
            inside[row, t] = np.float64(x[row, t]) * gain
        faded[row] = min(faded[row] + inside.shape[1], last)


@bare_kernel
def _to_ear(inside: Array, ear: Array) -> None:
    """Round to the sound's type."""
    for row in range(ear.shape[0]):
        for t in range(ear.shape[1]):
            ear[row, t] = inside[row, t]


@bare_kernel
def _to_parts(tones: Array, parts: Array) -> None:
    """Round to the sound's type, with the bands last."""
    for row in range(parts.shape[0]):
        for part in range(3):
            for frame in range(parts.shape[2]):
                for band in range(parts.shape[3]):
                    parts[row, part, frame, band] = tones[row, part, band, frame]


CALLS = Calls(AT)
"""The kernels, by their rows in a plan."""

_a, _i, _d, _ = CALLS.arguments

_SINGLE, _LINES = ("single_first", "single_second", "power", "many"), ("candidates", "three")


def _of_memory(name: str) -> KernelArgument:
    """The argument for a field of `Memory`."""
    axes = 3 if name == "halves" else 1 if name in _LINES else 2
    of = types.float32 if name in _SINGLE else types.float64
    return KernelArgument(getattr(AT, name), axes, types.int32 if name == "candidates" else of)


def _of_state(name: str) -> KernelArgument:
    """The argument for a field of `State`, with one axis for rows and bands."""
    return KernelArgument(getattr(AT, name), len(STATE_SHAPES[name]), types.float64)


_to_rate = resampling(CALLS)
_faded = CALLS.add(
    "to_faded", _to_faded, *_a(2, "sound"), *_d(1, "fade"), *_i(1, "faded"), *_d(2, "inside")
)
_to_filtered = CALLS.add(
    "to_filtered",
    _direct_form,
    *(*_d(2, "inside", "numerators", "denominators"), *_d(3, "past"), *_d(2, "inside")),
)
_ear = CALLS.add("to_ear", _to_ear, *_d(2, "inside"), *_a(2, "ear"))
_to_bands = CALLS.add(
    "to_bands",
    _cascade(ORDER, True),
    *(*_a(3, "ear_rows"), *_a(2, "poles", "of_poles")),
    *(*_a(4, "filters"), *_a(3, "bands"), *_a(4, "filters")),
)
_to_tones = CALLS.add(
    "to_tones",
    _frames_of_rows,
    *_a(3, "bands"),
    TupleOf(TonalTables, (*_d(1, "threshold", "gate"), *_d(2, "smoothing", "weights"))),
    TupleOf(State, tuple(map(_of_state, State._fields))),
    *_d(3, "no_rows"),
    TupleOf(Memory, tuple(map(_of_memory, Memory._fields))),
    *_d(4, "tones"),
)
_parts = CALLS.add("to_parts", _to_parts, *_d(4, "tones"), *_a(4, "parts"))
_to_loudness = CALLS.add(
    "to_loudness", _loudness, *_a(4, "parts"), *_a(2, "n"), *_a(3, "specific_n")
)
_to_tonality = CALLS.add(
    "to_tonality", _tonality, *_a(4, "parts"), *_a(2, "t", "hz"), *_a(3, "specific_t")
)


@kernel
def to_metrics(plan: Array, like: Array) -> None:
    """Sound to loudness or tonality, or both; like: any array of the sound's dtype."""
    size, sound = like.itemsize, AT.given
    if plan[AT.to_rate, 0]:
        join(plan, AT.before_resampling, AT.given, AT.to_resample, size)
        _to_rate(plan, like)
        leave(plan, AT.to_resample, AT.before_resampling, size)
        join(plan, AT.before_delay, AT.resampled, AT.delayed, size)
        leave(plan, AT.delayed, AT.before_delay, size)
        sound = AT.delayed
    plan[AT.sound, 0] = plan[sound, 0]
    _faded(plan, like)
    _to_filtered(plan, like)
    _ear(plan, like)
    _to_bands(plan, like)
    _to_tones(plan, like)
    _parts(plan, like)
    if plan[AT.to_loudness, 0]:
        _to_loudness(plan, like)
    if plan[AT.to_tonality, 0]:
        _to_tonality(plan, like)
