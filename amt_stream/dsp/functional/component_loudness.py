"""Loudness from spectral components: the kernels of all stages in two compiled calls.

The arguments come from a plan (`AT`), so that no types are checked and no memory is allocated.
"""

from amt_stream.dsp.functional.banded import multiply
from amt_stream.dsp.functional.compiler.call_table import (
    Calls,
    Integer,
    Integers,
    TupleOf,
    join,
    leave,
    plan_rows,
)
from amt_stream.dsp.functional.compiler.dispatch import Array, kernel
from amt_stream.dsp.functional.excitation import _lower_skirts, _select_components
from amt_stream.dsp.functional.filters.fir import RESAMPLER, RESAMPLING, _partitioned_fir, resample
from amt_stream.dsp.functional.group_skirts import Groups, _group_skirts
from amt_stream.dsp.functional.loudness import Channels, _binaural_loudness, _monaural_loudness
from amt_stream.dsp.functional.spectrum import _running_spectrum

WINDOWS = 6
"""Windows of the running spectrum."""


AT = plan_rows(
    RESAMPLER
    # Kernels, by address.
    + "through_ear to_spectrum to_kept to_density to_high by_groups one_by_one "
    "to_shifted to_binaural to_monaural to_end "
    # An integer: samples per frame.
    "hop "
    # Tables, named as in their functions; those of the windows are integers.
    "halves bins partitions to_lines from_lines cosine sine levels levels_blocks upper "
    "upper_blocks apart ends middle slope bend above center frequency fc components_below "
    "threshold gain a alpha scale c smoothing theta short_term long_term "
    # Spacing of the channels in Cam; (2, shift): level shifts in dB, and as factors.
    "step shifts "
    # The state: earlier samples of each filter, and the state of the loudness.
    "before_lines before_spectrum before short long "
    # The sound (row, time) at each step, with its past and without.
    "nothing to_ear lines at_cochlea to_transform "
    # Components (row, frame, component), and views (listener, ear, frame, component) over which
    # the strongest is sought: of all, and of those kept.
    "power seen seen_kept "
    # (part, line, ...) of components, groups or components, these per shift, channels, and these
    # per shift. With level shifts a part is a listener, otherwise there is one.
    "kept density level high low "
    # The same without parts, (line, ...), and one part of each at one shift.
    "all_kept all_density all_high part_kept part_density part_level part_high part_low "
    "part_db part_factor "
    # (listener and shift, ear, frame, channel).
    "excitation specific "
    # Outputs: (listener and shift, frame), and (listener and shift, 2, frame).
    "stl ltl stl_ears ltl_ears "
)
"""Rows of a plan, by name. A row of zeros stands for a missing array or kernel."""


@kernel
def _to_shifted(low: Array, high: Array, factor: float) -> None:
    """Turn the lower skirts into the excitation of both sides, times `factor`."""
    times = low.dtype.type(factor)
    for n in range(low.shape[0]):
        x, y = high[n], low[n]
        for i in range(x.size):
            y[i] = times * (y[i] + x[i])


@kernel
def _to_end(stl_ears: Array, ltl_ears: Array, stl: Array, ltl: Array, before: Array) -> None:
    """Sum the ears' loudness, and count down the frames from before the sound."""
    for r in range(before.size):
        before[r] = max(before[r] - stl.shape[1], 0)
    for r in range(stl.shape[0]):
        for n in range(stl.shape[1]):
            stl[r, n] = stl_ears[r, 0, n] + stl_ears[r, 1, n]
            ltl[r, n] = ltl_ears[r, 0, n] + ltl_ears[r, 1, n]


CALLS = Calls(AT, RESAMPLING)
"""The kernels, by their rows in a plan."""

_a, _i, _d, _ = CALLS.arguments

_CHANNELS = TupleOf(Channels, (*_a(1, *Channels._fields[:-1]), *_a(0, "c")))
_GROUPS = TupleOf(
    Groups,
    (
        *(*_a(1, "apart"), *_i(1, "ends"), *_a(1, "middle"), *_a(2, "slope", "bend")),
        *(*_i(1, "above"), *_a(1, "center")),
    ),
)
_LOUDNESS = _a(3, "stl_ears", "ltl_ears")
_MEMORY = _a(2, "short", "long")
_PRECISE = _d(2, "short", "long")

_through_ear = CALLS.add(
    "through_ear",
    _partitioned_fir,
    *_a(2, "to_ear", "partitions", "to_lines", "from_lines", "lines", "at_cochlea"),
)
_to_spectrum = CALLS.add(
    "to_spectrum",
    _running_spectrum,
    *_a(2, "to_transform"),
    *_a(1, "cosine", "sine"),
    Integers(AT.halves, WINDOWS),
    Integers(AT.bins, WINDOWS),
    Integer(AT.hop),
    *_a(3, "power"),
)
_to_kept = CALLS.add("to_kept", _select_components, *_a(4, "seen", "seen_kept"))
_to_density = CALLS.add(
    "to_density",
    multiply,
    *(*_a(2, "all_kept", "levels"), *_i(2, "levels_blocks"), *_a(2, "all_density")),
    gives=True,
)
_to_high = CALLS.add(
    "to_high",
    multiply,
    *(*_a(2, "all_kept", "upper"), *_i(2, "upper_blocks"), *_a(2, "all_high")),
    gives=True,
)
_by_groups = CALLS.add(
    "by_groups",
    _group_skirts,
    *_a(2, "part_kept", "part_density"),
    _GROUPS,
    *_d(None, "part_db"),
    *_a(2, "part_low"),
    gives=True,
)
_one_by_one = CALLS.add(
    "one_by_one",
    _lower_skirts,
    *_a(2, "part_kept", "part_level"),
    *_a(1, "frequency", "fc", "slope"),
    *_i(1, "components_below"),
    *_a(2, "part_low"),
    gives=True,
)
_shifted = CALLS.add(
    "to_shifted", _to_shifted, *_a(2, "part_low", "part_high"), *_d(None, "part_factor")
)
_to_binaural = CALLS.add(
    "to_binaural",
    _binaural_loudness,
    *(*_a(4, "excitation"), _CHANNELS, *_a(2, "smoothing"), *_a(0, "theta"), *_d(None, "step")),
    *(*_a(1, "short_term", "long_term"), *_i(1, "before"), *_MEMORY),
    *(*_a(4, "specific"), *_LOUDNESS, *_MEMORY),
)
_to_monaural = CALLS.add(
    "to_monaural",
    _monaural_loudness,
    *(*_a(4, "excitation"), _CHANNELS, *_d(None, "step")),
    *(*_d(1, "short_term", "long_term"), *_i(1, "before"), *_PRECISE),
    *(*_LOUDNESS, *_PRECISE),
)
_end = CALLS.add("to_end", _to_end, *_LOUDNESS, *_a(2, "stl", "ltl"), *_i(1, "before"))


@kernel
def to_density(plan: Array, like: Array) -> bool:
    """Sound to the power around each component, and the upper skirts' excitation.

    like: any array of the sound's dtype

    Returns False if a table does not fit. Writes no state.
    """
    size, sound = like.itemsize, resample(plan, like)
    join(plan, AT.nothing, sound, AT.to_ear, size)
    # The spectra of this block follow the earlier ones.
    join(plan, AT.before_lines, AT.nothing, AT.lines, size)
    _through_ear(plan, like)
    join(plan, AT.before_spectrum, AT.at_cochlea, AT.to_transform, size)
    _to_spectrum(plan, like)
    _to_kept(plan, like)
    return bool(_to_density(plan, like) and _to_high(plan, like))


@kernel
def to_loudness(plan: Array, like: Array) -> bool:
    """The results of `to_density` to loudness, and the next state.

    Returns False, and writes no state, if a table does not fit.
    """
    if not _excite(plan, like):
        return False
    size = like.itemsize
    leave(plan, AT.to_resample, AT.before_resampling, size)
    leave(plan, AT.lines, AT.before_lines, size)
    leave(plan, AT.to_transform, AT.before_spectrum, size)
    if plan[AT.to_binaural, 0]:
        _to_binaural(plan, like)
    else:
        _to_monaural(plan, like)
    _end(plan, like)
    return True


@kernel
def by_groups_to_loudness(plan: Array, like: Array) -> bool:
    """Both in one call, which needs no levels of components."""
    return bool(to_density(plan, like) and to_loudness(plan, like))


@kernel
def _excite(plan: Array, like: Array) -> bool:
    """Excitation of each channel, at each of the shifted levels."""
    size, shifts = like.itemsize, plan[AT.shifts, 2]
    for part in range(plan[AT.kept, 1]):
        _take(plan, AT.kept, part, AT.part_kept, size)
        _take(plan, AT.density, part, AT.part_density, size)
        _take(plan, AT.high, part, AT.part_high, size)
        for k in range(shifts):
            _take(plan, AT.level, part * shifts + k, AT.part_level, size)
            _take(plan, AT.low, part * shifts + k, AT.part_low, size)
            plan[AT.part_db, 0] = plan[AT.shifts, 0] + k * 8
            plan[AT.part_factor, 0] = plan[AT.shifts, 0] + (shifts + k) * 8
            if plan[AT.by_groups, 0]:
                fit = _by_groups(plan, like)
            else:
                fit = _one_by_one(plan, like)
            if not fit:
                return False
            _shifted(plan, like)
    return True


@kernel
def _take(plan: Array, row: int, index: int, into: int, size: int) -> None:
    """Point row `into` at part `index`, (m, k), of an array (n, m, k)."""
    m, k = plan[row, 2], plan[row, 3]
    plan[into, 0], plan[into, 1], plan[into, 2] = plan[row, 0] + index * m * k * size, m, k
