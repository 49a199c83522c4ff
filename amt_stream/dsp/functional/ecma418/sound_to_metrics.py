"""Sound to metrics of ECMA-418-2: the kernels of all stages in one compiled call, on a plan."""

from typing import Any

import numpy as np
from numba import types

from amt_stream.dsp.functional.compiler.call_table import (
    Calls,
    Integer,
    KernelArgument,
    KernelCall,
    TupleOf,
    join,
    leave,
    plan_rows,
)
from amt_stream.dsp.functional.compiler.dispatch import Array, bare_kernel, kernel
from amt_stream.dsp.functional.ecma418 import fluctuation, roughness, tones
from amt_stream.dsp.functional.ecma418.autocorrelation import Memory
from amt_stream.dsp.functional.ecma418.envelopes import ORDER, _envelopes
from amt_stream.dsp.functional.ecma418.modulation import FRAME
from amt_stream.dsp.functional.ecma418.parts import _loudness, _roughness, _tonality, _total
from amt_stream.dsp.functional.filters.direct_form import _direct_form
from amt_stream.dsp.functional.filters.fir import RESAMPLER, RESAMPLING, resample
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
    RESAMPLER
    # Kernels, by address.
    + "to_faded to_filtered to_ear to_bands to_tones to_parts to_loudness to_tonality "
    "to_envelopes to_wide to_rough to_roughness to_fluctuation to_total "
    "to_late has_frames to_blocks to_frames to_held "
    # Integers: of all metrics, the row that is modulated, its frames, and values by which held ones
    # are late.
    "row frames held_late "
    # Tables, named as in their stages.
    "fade numerators denominators poles weights envelope_poles envelope_weights "
    f"{_names(TABLES)} "
    # The state: of the delay after the resampler, of ear and bands, and over frames; of all
    # metrics, of the delays of tones and of roughness, and of the values that are held.
    "before_delay faded past filters envelope_filters "
    f"{_names(STATES)} past_parts past_rough waiting begun last "
    # Memory of `tonal_and_noise`, and rows of blocks that are not averaged over time.
    f"{' '.join(Memory._fields)} no_rows "
    # The sound (row, time): delayed, and the input of the ear filter.
    "delayed sound "
    # Inside the ear in float64, at the cochlea (row, time) and (row, 1, time), and (row, 53, time).
    "inside ear ear_rows bands "
    # Envelopes and powers (row, 2, 53, time), the same in float64 (row, part, 53, time), and of one
    # part (row, 53, time).
    "envelopes wide envelope "
    # Specific values (row, part, 53, frame) in float64, of one part (row, 53, frame), and with the
    # bands last (row, part, frame, 53).
    "values parts rough_values rough_parts slow slow_values slow_parts "
    # Of all metrics: parts as they are now and late, and values that are held (frame, 109).
    "new_parts late_parts held "
    # Outputs (row, frame) and (row, frame, 53) of each metric: a value, the frequency or rate that
    # belongs to it, and specific ones; and of all metrics.
    "value specific tone tone_hz tone_specific rough rough_hz rough_specific "
    "fluctuating slow_specific "
    "all_n all_t all_tone_hz all_r all_modulation_hz all_f "
    "all_specific_n all_specific_t all_specific_r all_specific_f"
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


@bare_kernel
def _to_late(parts: Array, past: Array, late: Array) -> None:
    """Frames `late` by as many as are in `past`, of parts (row, part, frame, 53)."""
    count, wait = parts.shape[2], past.shape[2]
    for row in range(parts.shape[0]):
        for part in range(parts.shape[1]):
            new, old, y = parts[row, part], past[row, part], late[row, part]
            for t in range(count):
                for band in range(new.shape[1]):
                    y[t, band] = old[t, band] if t < wait else new[t - wait, band]
            for t in range(wait):
                at = t + count
                for band in range(new.shape[1]):
                    old[t, band] = old[at, band] if at < wait else new[at - wait, band]


@bare_kernel
def _has_frames(envelopes: Array, begun: Array, row: int, frames: int) -> bool:
    """Whether so many frames of a row end with these envelopes."""
    return begun[row] + envelopes.shape[3] >= FRAME * frames


@bare_kernel
def _to_blocks(envelopes: Array, waiting: Array, begun: Array, row: int, wide: Array) -> None:
    """Fill `wide` (1, 2, 53, time) with the frames of a row, which begin among those waiting."""
    before = waiting.shape[3]
    first = before - begun[row]
    for part in range(wide.shape[1]):
        for band in range(wide.shape[2]):
            old, new = waiting[row, part, band], envelopes[row, part, band]
            for t in range(wide.shape[3]):
                at = first + t
                wide[0, part, band, t] = old[at] if at < before else new[at - before]


@bare_kernel
def _to_frames(
    rough: Array,
    hz: Array,
    rough_specific: Array,
    fluctuating: Array,
    slow_specific: Array,
    past: Array,
    row: int,
    held: Array,
) -> None:
    """Append the frames of a row to the two of `held` (frame, 109), with roughness late.

    past: roughness, rate and specific roughness of the last frames (row, frame, 55)
    """
    bands, wait = rough_specific.shape[2], past.shape[1]
    for frame in range(rough.shape[1]):
        y, rated = held[2 + frame], 2 + bands
        y[0], y[1], y[rated] = rough[0, frame], hz[0, frame], fluctuating[0, frame]
        for band in range(bands):
            y[2 + band] = rough_specific[0, frame, band]
            y[1 + rated + band] = slow_specific[0, frame, band]
        for k in range(rated):
            now = y[k]
            y[k] = past[row, 0, k]
            for t in range(wait - 1):
                past[row, t, k] = past[row, t + 1, k]
            past[row, wait - 1, k] = now


@bare_kernel
def _to_held(
    envelopes: Array,
    waiting: Array,
    begun: Array,
    last: Array,
    held: Array,
    row: int,
    frames: int,
    late: int,
    r: Array,
    hz: Array,
    f: Array,
    specific_r: Array,
    specific_f: Array,
) -> None:
    """Hold values of a row as `HeldFrames` does, into the outputs; and what waits for more."""
    time, bands, before = envelopes.shape[3], specific_r.shape[2], waiting.shape[3]
    for k in range(held.shape[1]):
        held[0, k], held[1, k] = last[row, 0, k], last[row, 1, k]
        last[row, 0, k], last[row, 1, k] = held[frames, k], held[frames + 1, k]
    every = time // r.shape[1]
    for n in range(r.shape[1]):
        y = held[(begun[row] + every * (n + 1) - late) // FRAME + 1]
        r[row, n], hz[row, n], f[row, n] = y[0], y[1], y[2 + bands]
        for band in range(bands):
            specific_r[row, n, band] = y[2 + band]
            specific_f[row, n, band] = y[3 + bands + band]
    for part in range(waiting.shape[1]):
        for band in range(bands):
            old, new = waiting[row, part, band], envelopes[row, part, band]
            for t in range(before):
                at = t + time
                old[t] = old[at] if at < before else new[at - before]
    begun[row] = (begun[row] + time) % FRAME


CALLS = Calls(AT, RESAMPLING)
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
_rough_parts, _slow_parts = (
    KernelCall(AT.to_parts, _to_parts, *_d(4, f"{of}_values"), *_a(4, f"{of}_parts")).call
    for of in ("rough", "slow")
)
_to_loudness = CALLS.add(
    "to_loudness", _loudness, *_a(4, "parts"), *_a(2, "value"), *_a(3, "specific")
)
_to_tonality = CALLS.add(
    "to_tonality",
    _tonality,
    *(*_a(4, "parts"), *_a(2, "tone", "tone_hz"), *_a(3, "tone_specific")),
)
_to_envelopes = CALLS.add(
    "to_envelopes",
    _envelopes,
    *(*_a(2, "ear", "envelope_poles", "envelope_weights"), *_a(4, "envelope_filters", "envelopes")),
)
_wide = CALLS.add("to_wide", _to_wide, *_a(4, "envelopes"), *_d(4, "wide"))
_to_rough = CALLS.add(
    "to_rough",
    roughness._rough_frames,
    *(*_d(4, "wide"), _of("roughness", TABLES), _of("roughness", STATES), *_d(4, "rough_values")),
)
_to_roughness = CALLS.add(
    "to_roughness",
    _roughness,
    *(*_a(4, "rough_parts"), *_a(2, "rough", "rough_hz"), *_a(3, "rough_specific")),
)
_to_fluctuation = CALLS.add(
    "to_fluctuation",
    fluctuation._slow_frames,
    *(*_d(3, "envelope"), _of("fluctuation", TABLES), _of("fluctuation", STATES)),
    *_d(3, "slow"),
)
_to_total = CALLS.add("to_total", _total, *_a(3, "slow_specific"), *_a(2, "fluctuating"))
_late = CALLS.add("to_late", _to_late, *_a(4, "parts", "past_parts", "late_parts"))
_has = CALLS.add(
    "has_frames",
    _has_frames,
    *(*_a(4, "envelopes"), *_i(1, "begun"), Integer(AT.row), Integer(AT.frames)),
    gives=True,
)
_blocks = CALLS.add(
    "to_blocks",
    _to_blocks,
    *(*_a(4, "envelopes", "waiting"), *_i(1, "begun"), Integer(AT.row), *_d(4, "wide")),
)
_frames = CALLS.add(
    "to_frames",
    _to_frames,
    *(*_a(2, "rough", "rough_hz"), *_a(3, "rough_specific"), *_a(2, "fluctuating")),
    *(*_a(3, "slow_specific", "past_rough"), Integer(AT.row), *_a(2, "held")),
)
_held = CALLS.add(
    "to_held",
    _to_held,
    *(*_a(4, "envelopes", "waiting"), *_i(1, "begun"), *_a(3, "last"), *_a(2, "held")),
    *map(Integer, (AT.row, AT.frames, AT.held_late)),
    *(*_a(2, "all_r", "all_modulation_hz", "all_f"), *_a(3, "all_specific_r", "all_specific_f")),
)

_OF_TONES, _OF_ENVELOPES = ("to_bands", "to_tones", "to_parts"), ("to_envelopes", "to_parts")

METRICS = {
    "loudness": (*_OF_TONES, "to_loudness"),
    "tonality": (*_OF_TONES, "to_tonality"),
    "roughness": (*_OF_ENVELOPES, "to_wide", "to_rough", "to_roughness"),
    "fluctuation": (*_OF_ENVELOPES, "to_wide", "to_fluctuation", "to_total"),
}
"""The kernels of each metric after those of the ear."""

OUTPUTS = {
    "loudness": ("value", "specific"),
    "tonality": ("tone", "tone_hz", "tone_specific"),
    "roughness": ("rough", "rough_hz", "rough_specific"),
    "fluctuation": ("fluctuating", "slow_specific"),
    "all": tuple(name for name in AT._fields if name.startswith("all_")),
}
"""Rows of the outputs of each metric."""

METRICS["all"] = (
    *("to_tones", "to_bands", "to_parts", "to_loudness", "to_tonality", "to_envelopes"),
    *("to_late", "has_frames", "to_blocks", "to_frames", "to_held"),
    *("to_roughness", "to_total", "to_rough", "to_fluctuation"),
)
"""Those that take longest to compile first and last, as two processes do."""


@kernel
def _to_cochlea(plan: Array, like: Array) -> None:
    """Sound to that at the cochlea."""
    size, sound = like.itemsize, resample(plan, like)
    if plan[AT.to_rate, 0]:
        leave(plan, AT.to_resample, AT.before_resampling, size)
        join(plan, AT.before_delay, AT.resampled, AT.delayed, size)
        leave(plan, AT.delayed, AT.before_delay, size)
        sound = AT.delayed
    plan[AT.sound, 0] = plan[sound, 0]
    _faded(plan, like)
    _to_filtered(plan, like)
    _ear(plan, like)


@kernel
def to_metric(plan: Array, like: Array) -> None:
    """Sound to the metric whose kernels the plan has; like: any array of the sound's dtype."""
    _to_cochlea(plan, like)
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
        _rough_parts(plan, like)
        _to_roughness(plan, like)
    else:
        _to_fluctuation(plan, like)
        plan[AT.slow_parts, 0] = plan[AT.slow_specific, 0]
        _slow_parts(plan, like)
        _to_total(plan, like)


_NAMED = (
    *((AT.value, AT.all_n), (AT.specific, AT.all_specific_n)),
    *((AT.tone, AT.all_t), (AT.tone_hz, AT.all_tone_hz), (AT.tone_specific, AT.all_specific_t)),
)
"""Outputs of loudness and tonality, and those of all metrics."""

_BY_FRAMES = (
    *((AT.rough_values, 4), (AT.rough_parts, 3), (AT.slow, 3), (AT.slow_values, 4)),
    *((AT.slow_parts, 3), (AT.rough, 2), (AT.rough_hz, 2), (AT.rough_specific, 2)),
    *((AT.fluctuating, 2), (AT.slow_specific, 2)),
)
"""Arrays of a row of the sound, and the number in a plan that is the length of their frames."""

_FIRST = AT.roughness_older
_LAST = getattr(AT, f"fluctuation_{fluctuation.FluctuationState._fields[-1]}")


@kernel
def to_metrics(plan: Array, like: Array) -> None:
    """Sound to all metrics; like: any array of the sound's dtype."""
    _to_cochlea(plan, like)
    plan[AT.parts, 0] = plan[AT.new_parts, 0]
    _to_bands(plan, like)
    _to_tones(plan, like)
    _parts(plan, like)
    _late(plan, like)
    plan[AT.parts, 0] = plan[AT.late_parts, 0]
    for name, output in _NAMED:
        plan[name, 0] = plan[output, 0]
    _to_loudness(plan, like)
    _to_tonality(plan, like)
    _to_envelopes(plan, like)
    rows = plan[AT.envelopes, 1]
    for row in range(rows):
        # A row may have begun at another time, and have another number of frames.
        plan[AT.row, 0], frames = row, 0
        plan[AT.frames, 0] = 1
        while _has(plan, like):
            frames += 1
            plan[AT.frames, 0] = frames + 1
        plan[AT.frames, 0] = frames
        plan[AT.wide, 4] = plan[AT.envelope, 3] = FRAME * frames
        for name, axis in _BY_FRAMES:
            plan[name, axis] = frames
        if frames:
            _blocks(plan, like)
            _to_rough(plan, like)
            _rough_parts(plan, like)
            _to_roughness(plan, like)
            _to_fluctuation(plan, like)
            _slow_parts(plan, like)
            _to_total(plan, like)
            _frames(plan, like)
        _held(plan, like)
        _turn_to_row(plan, 1)
    _turn_to_row(plan, -rows)


@kernel
def _turn_to_row(plan: Array, further: int) -> None:
    """Turn to the states of roughness and fluctuation strength of a row `further` in the sound."""
    for name in range(_FIRST, _LAST + 1):
        size = 8  # of float64
        for axis in range(1, plan.shape[1]):
            size *= max(plan[name, axis], 1)
        plan[name, 0] += further * size
