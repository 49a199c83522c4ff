"""Sound to a metric of ECMA-418-2: the kernels of all stages in one compiled call, on a plan."""

from typing import Any

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
from amt_stream.dsp.functional.ecma418 import fluctuation, roughness, tones
from amt_stream.dsp.functional.ecma418.autocorrelation import Memory
from amt_stream.dsp.functional.ecma418.envelopes import ORDER, _envelopes
from amt_stream.dsp.functional.ecma418.parts import _loudness, _roughness, _tonality, _total
from amt_stream.dsp.functional.filters.direct_form import _direct_form
from amt_stream.dsp.functional.filters.fir import resampling
from amt_stream.dsp.functional.gammatone import _cascade

STATES = {
    "tones": (tones.State, tones.STATE_SHAPES),
    "roughness": (roughness.RoughnessState, roughness.STATE_SHAPES),
    "fluctuation": (fluctuation.FluctuationState, fluctuation.STATE_SHAPES),
}
"""The state of each stage over frames, and its shapes without rows."""

TABLES = {
    "tones": (tones.TonalTables, tones.TABLE_SHAPES),
    "roughness": (roughness.RoughnessTables, roughness.TABLE_SHAPES),
    "fluctuation": (fluctuation.FluctuationTables, fluctuation.TABLE_SHAPES),
}
"""The tables of each, and their shapes."""


def _names(of: dict[str, Any]) -> str:
    return " ".join(f"{stage}_{name}" for stage, (_, shapes) in of.items() for name in shapes)


AT = plan_rows(
    # Kernels, by address.
    "to_rate to_faded to_filtered to_ear to_bands to_tones to_parts to_loudness to_tonality "
    "to_envelopes to_wide to_rough to_roughness to_fluctuation to_total "
    # Integers: input samples per block of the resampler, and taps of its filter.
    "down taken "
    # Tables, named as in their stages.
    f"bank fade numerators denominators poles weights {_names(TABLES)} "
    # The state: of the resampler, of the delay after it, of ear and bands, and over frames.
    f"before_resampling before_delay faded past filters {_names(STATES)} "
    # Memory of `tonal_and_noise`, and rows of blocks that are not averaged over time.
    f"{' '.join(Memory._fields)} no_rows "
    # The sound (row, time): as given, resampled, delayed; and the input of the ear filter.
    "given to_resample resampled delayed sound "
    # Inside the ear in float64, at the cochlea (row, time) and (row, 1, time), and (row, 53, time).
    "inside ear ear_rows bands "
    # Envelopes and powers (row, 2, 53, time), the same in float64 (row, part, 53, time), and of one
    # part (row, 53, time).
    "envelopes wide envelope "
    # Specific values (row, part, 53, frame) in float64, of one part (row, 53, frame), and with the
    # bands last (row, part, frame, 53).
    "values slow parts "
    # Outputs (row, frame) and (row, frame, 53): a value and specific ones; or a value, the
    # frequency or rate that belongs to it, and specific ones.
    "value specific rated hz rated_specific"
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
def _to_parts(values: Array, parts: Array) -> None:
    """Round to the sound's type, with the bands last."""
    for row in range(parts.shape[0]):
        for part in range(parts.shape[1]):
            for frame in range(parts.shape[2]):
                for band in range(parts.shape[3]):
                    parts[row, part, frame, band] = values[row, part, band, frame]


@bare_kernel
def _to_wide(envelopes: Array, wide: Array) -> None:
    """Envelopes in float64, and powers if there is room for them."""
    for row in range(wide.shape[0]):
        for part in range(wide.shape[1]):
            for band in range(wide.shape[2]):
                for t in range(wide.shape[3]):
                    wide[row, part, band, t] = envelopes[row, part, band, t]


CALLS = Calls(AT)
"""The kernels, by their rows in a plan."""

_a, _i, _d, _ = CALLS.arguments

_SINGLE, _LINES = ("single_first", "single_second", "power", "many"), ("candidates", "three")


def _of_memory(name: str) -> KernelArgument:
    """The argument for a field of `Memory`."""
    axes = 3 if name == "halves" else 1 if name in _LINES else 2
    of = types.float32 if name in _SINGLE else types.float64
    return KernelArgument(getattr(AT, name), axes, types.int32 if name == "candidates" else of)


def _of(stage: str, form: dict[str, Any]) -> TupleOf:
    """The argument for tables or state of a stage, whose rows share an axis with what follows."""
    kind, shapes = form[stage]
    return TupleOf(
        kind, tuple(_d(len(shape), f"{stage}_{name}")[0] for name, shape in shapes.items())
    )


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
    *(*_a(3, "ear_rows"), *_a(2, "poles", "weights")),
    *(*_a(4, "filters"), *_a(3, "bands"), *_a(4, "filters")),
)
_to_tones = CALLS.add(
    "to_tones",
    tones._frames_of_rows,
    *(*_a(3, "bands"), _of("tones", TABLES), _of("tones", STATES), *_d(3, "no_rows")),
    *(TupleOf(Memory, tuple(map(_of_memory, Memory._fields))), *_d(4, "values")),
)
_parts = CALLS.add("to_parts", _to_parts, *_d(4, "values"), *_a(4, "parts"))
_to_loudness = CALLS.add(
    "to_loudness", _loudness, *_a(4, "parts"), *_a(2, "value"), *_a(3, "specific")
)
_to_tonality = CALLS.add(
    "to_tonality",
    _tonality,
    *(*_a(4, "parts"), *_a(2, "rated", "hz"), *_a(3, "rated_specific")),
)
_to_envelopes = CALLS.add(
    "to_envelopes",
    _envelopes,
    *(*_a(2, "ear", "poles", "weights"), *_a(4, "filters", "envelopes")),
)
_wide = CALLS.add("to_wide", _to_wide, *_a(4, "envelopes"), *_d(4, "wide"))
_to_rough = CALLS.add(
    "to_rough",
    roughness._rough_frames,
    *(*_d(4, "wide"), _of("roughness", TABLES), _of("roughness", STATES), *_d(4, "values")),
)
_to_roughness = CALLS.add(
    "to_roughness",
    _roughness,
    *(*_a(4, "parts"), *_a(2, "rated", "hz"), *_a(3, "rated_specific")),
)
_to_fluctuation = CALLS.add(
    "to_fluctuation",
    fluctuation._slow_frames,
    *(*_d(3, "envelope"), _of("fluctuation", TABLES), _of("fluctuation", STATES)),
    *_d(3, "slow"),
)
_to_total = CALLS.add("to_total", _total, *_a(3, "specific"), *_a(2, "value"))

METRICS = {
    "loudness": ("to_bands", "to_tones", "to_parts", "to_loudness"),
    "tonality": ("to_bands", "to_tones", "to_parts", "to_tonality"),
    "roughness": ("to_envelopes", "to_wide", "to_rough", "to_parts", "to_roughness"),
    "fluctuation": ("to_envelopes", "to_wide", "to_fluctuation", "to_parts", "to_total"),
}
"""The kernels of each metric after those of the ear."""


@kernel
def to_metric(plan: Array, like: Array) -> None:
    """Sound to the metric whose kernels the plan has; like: any array of the sound's dtype."""
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
    if plan[AT.to_tones, 0]:
        _to_bands(plan, like)
        _to_tones(plan, like)
        _parts(plan, like)
        if plan[AT.to_loudness, 0]:
            _to_loudness(plan, like)
        else:
            _to_tonality(plan, like)
        return
    _to_envelopes(plan, like)
    _wide(plan, like)
    if plan[AT.to_rough, 0]:
        _to_rough(plan, like)
        _parts(plan, like)
        _to_roughness(plan, like)
    else:
        _to_fluctuation(plan, like)
        plan[AT.parts, 0] = plan[AT.specific, 0]
        _parts(plan, like)
        _to_total(plan, like)
