"""Sound to loudness after Zwicker: the kernels of the stages, one after another, on a plan."""

from typing import NamedTuple

from numba import types

from amt_stream.functional.by_address import Called, join, leave, of_type
from amt_stream.functional.dispatch import Array, kernel
from amt_stream.functional.fir import resampling
from amt_stream.functional.zwicker import (
    _core_loudness,
    _decayed,
    _loudness_pattern,
    _third_octave_powers,
    _weighted,
)

EVERY = 4
"""Of the frames between the stages, which of them is told."""


class Places(NamedTuple):
    """What the rows of a plan are. A row of zeros is an array, or a kernel, that is none."""

    # Kernels, by their address.
    to_rate: int
    to_powers: int
    to_cores: int
    to_decayed: int
    to_total: int
    to_weighted: int
    to_end: int
    to_specific: int
    # Integers: samples that a block of the resampler takes, and taps of its filter.
    down: int
    taken: int
    # Tables, by the names that they have in their stages.
    bank: int
    poles: int
    gain: int
    smoothing: int
    limit: int
    correction: int
    transmission: int
    threshold: int
    adaptation: int
    decay: int
    weighting: int
    upper: int
    floors: int
    slopes: int
    # The state.
    before_resampling: int
    filters: int
    cores: int
    low_passes: int
    begun: int
    # The sound (row, time), and in frames (row, frame, 24).
    given: int
    to_resample: int
    resampled: int
    in_frames: int
    # (row, frame, ...), and as lines (row and frame, ...): powers in Pa^2 in float64, levels in dB,
    # core loudness, the same with its decay, loudness, and the same as it is felt.
    powers: int
    levels: int
    core_lines: int
    core: int
    decayed: int
    decayed_lines: int
    total_lines: int
    total: int
    weighted: int
    # Samples of specific loudness where none are wanted.
    no_samples: int
    # What comes out: of every fourth frame the loudness and the core loudness; that as lines, its
    # loudness, which is not told, and its specific loudness.
    n: int
    told: int
    told_lines: int
    told_total: int
    specific: int


AT = Places(*range(len(Places._fields)))
"""The rows by their names."""


@kernel
def _to_end(weighted: Array, decayed: Array, n: Array, told: Array, begun: Array) -> None:
    """Every so many-th frame is told."""
    for r in range(n.shape[0]):
        begun[r] = True
        for k in range(n.shape[1]):
            n[r, k] = weighted[r, EVERY * k]
            core, out = decayed[r, EVERY * k], told[r, k]
            for i in range(out.size):
                out[i] = core[i]


_a, _d, _b = (of_type(AT, kind) for kind in (None, types.float64, types.boolean))
_PATTERN = *_a(1, "upper", "floors"), *_a(2, "slopes")

CALLED = {
    "to_rate": resampling(AT),
    "to_powers": Called(
        AT.to_powers,
        _third_octave_powers,
        *(*_a(3, "in_frames"), *_d(2, "poles"), *_d(1, "gain", "smoothing")),
        *_d(3, "filters", "powers"),
    ),
    "to_cores": Called(
        AT.to_cores,
        _core_loudness,
        *_a(2, "levels", "limit", "correction"),
        *_a(1, "transmission", "threshold", "adaptation"),
        *_a(2, "core_lines"),
    ),
    "to_decayed": Called(
        AT.to_decayed,
        _decayed,
        *(*_a(3, "core"), *_d(1, "decay"), *_d(3, "cores"), *_b(1, "begun"), *_a(3, "decayed")),
    ),
    "to_total": Called(
        AT.to_total,
        _loudness_pattern,
        *(*_a(2, "decayed_lines"), *_PATTERN),
        *(*_a(1, "total_lines"), *_a(2, "no_samples")),
    ),
    "to_weighted": Called(
        AT.to_weighted,
        _weighted,
        *(*_a(2, "total"), *_d(2, "weighting", "low_passes"), *_b(1, "begun")),
        *(*_a(2, "weighted"), *_d(2, "low_passes")),
    ),
    "to_end": Called(
        AT.to_end,
        _to_end,
        *(*_a(2, "weighted"), *_a(3, "decayed"), *_a(2, "n"), *_a(3, "told"), *_b(1, "begun")),
    ),
    "to_specific": Called(
        AT.to_specific,
        _loudness_pattern,
        *(*_a(2, "told_lines"), *_PATTERN),
        *(*_a(1, "told_total"), *_a(2, "specific")),
    ),
}
"""The kernels, by their rows in a plan."""

_to_rate, _to_powers = CALLED["to_rate"].call, CALLED["to_powers"].call
_to_cores, _to_decayed = CALLED["to_cores"].call, CALLED["to_decayed"].call
_to_total, _to_weighted = CALLED["to_total"].call, CALLED["to_weighted"].call
_end, _to_specific = CALLED["to_end"].call, CALLED["to_specific"].call


@kernel
def to_powers(plan: Array, like: Array) -> None:
    """Sound to powers in third octaves; like: any array of the dtype of sound."""
    size, sound = like.itemsize, AT.given
    if plan[AT.to_rate, 0]:
        join(plan, AT.before_resampling, AT.given, AT.to_resample, size)
        _to_rate(plan, like)
        leave(plan, AT.to_resample, AT.before_resampling, size)
        sound = AT.resampled
    plan[AT.in_frames, 0] = plan[sound, 0]
    _to_powers(plan, like)


@kernel
def to_loudness(plan: Array, like: Array) -> None:
    """Levels to loudness."""
    _to_cores(plan, like)
    _to_decayed(plan, like)
    _to_total(plan, like)
    _to_weighted(plan, like)
    _end(plan, like)
    if plan[AT.specific, 0]:
        plan[AT.told_lines, 0] = plan[AT.told, 0]
        _to_specific(plan, like)
