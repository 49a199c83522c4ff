"""Sound to Zwicker loudness: the kernels of all stages in one compiled call, on a plan."""

from amt_stream.dsp.functional.compiler.call_table import Calls, leave, plan_rows
from amt_stream.dsp.functional.compiler.dispatch import Array, kernel
from amt_stream.dsp.functional.filters.fir import RESAMPLER, RESAMPLING, resample
from amt_stream.dsp.functional.zwicker import (
    _core_loudness,
    _levels,
    _loudness_pattern,
    _third_octave_powers,
    _weighted,
)
from amt_stream.dsp.functional.zwicker_decay import _decayed

EVERY = 4
"""Frames between the stages per output frame."""


AT = plan_rows(
    RESAMPLER
    # Kernels, by address.
    + "to_powers to_levels to_cores to_decayed to_total to_weighted to_end to_specific "
    # Tables, named as in their stages.
    "poles gain smoothing limit correction transmission threshold adaptation decay "
    "weighting upper floors slopes "
    # The state.
    "filters cores low_passes begun "
    # The sound in frames (row, frame, 24).
    "in_frames "
    # (row, frame, ...), and as lines (row and frame, ...): powers in Pa^2 in float64, levels in dB,
    # core loudness, the same after decay, loudness, and the same with temporal weighting.
    "powers levels core_lines core decayed decayed_lines total_lines total weighted "
    # An empty array, for no specific loudness.
    "no_samples "
    # Core loudness of every fourth frame as lines, and its loudness, which is not used.
    "core_out_lines total_out "
    # Outputs of every fourth frame: specific and core loudness, and loudness.
    "specific core_out n "
)
"""Rows of a plan, by name. A row of zeros stands for a missing array or kernel."""


@kernel
def _to_end(weighted: Array, decayed: Array, n: Array, core_out: Array, begun: Array) -> None:
    """Copy every `EVERY`-th frame to the output."""
    for r in range(n.shape[0]):
        begun[r] = True
        for k in range(n.shape[1]):
            n[r, k] = weighted[r, EVERY * k]
            core, out = decayed[r, EVERY * k], core_out[r, k]
            for i in range(out.size):
                out[i] = core[i]


CALLS = Calls(AT, RESAMPLING)
"""The kernels, by their rows in a plan."""

_a, _, _d, _b = CALLS.arguments
_PATTERN = *_a(1, "upper", "floors"), *_a(2, "slopes")

_to_powers = CALLS.add(
    "to_powers",
    _third_octave_powers,
    *(*_a(3, "in_frames"), *_d(2, "poles"), *_d(1, "gain", "smoothing")),
    *_d(3, "filters", "powers"),
)
_to_levels = CALLS.add("to_levels", _levels, *_d(3, "powers"), *_a(2, "levels"))
_to_cores = CALLS.add(
    "to_cores",
    _core_loudness,
    *_a(2, "levels", "limit", "correction"),
    *_a(1, "transmission", "threshold", "adaptation"),
    *_a(2, "core_lines"),
)
_to_decayed = CALLS.add(
    "to_decayed",
    _decayed,
    *(*_a(3, "core"), *_d(1, "decay"), *_d(3, "cores"), *_b(1, "begun"), *_a(3, "decayed")),
)
_to_total = CALLS.add(
    "to_total",
    _loudness_pattern,
    *(*_a(2, "decayed_lines"), *_PATTERN),
    *(*_a(1, "total_lines"), *_a(2, "no_samples")),
)
_to_weighted = CALLS.add(
    "to_weighted",
    _weighted,
    *(*_a(2, "total"), *_d(2, "weighting", "low_passes"), *_b(1, "begun")),
    *(*_a(2, "weighted"), *_d(2, "low_passes")),
)
_end = CALLS.add(
    "to_end",
    _to_end,
    *(*_a(2, "weighted"), *_a(3, "decayed"), *_a(2, "n"), *_a(3, "core_out"), *_b(1, "begun")),
)
_to_specific = CALLS.add(
    "to_specific",
    _loudness_pattern,
    *(*_a(2, "core_out_lines"), *_PATTERN),
    *(*_a(1, "total_out"), *_a(2, "specific")),
)


@kernel
def to_loudness(plan: Array, like: Array) -> None:
    """Sound to loudness; like: any array of the sound's dtype."""
    plan[AT.in_frames, 0] = plan[resample(plan, like), 0]
    leave(plan, AT.to_resample, AT.before_resampling, like.itemsize)
    _to_powers(plan, like)
    _to_levels(plan, like)
    _to_cores(plan, like)
    _to_decayed(plan, like)
    _to_total(plan, like)
    _to_weighted(plan, like)
    _end(plan, like)
    if plan[AT.specific, 0]:
        plan[AT.core_out_lines, 0] = plan[AT.core_out, 0]
        _to_specific(plan, like)
