"""Sound to modulation filters: the kernels of all stages in one compiled call, on a plan."""

from amt_stream.dsp.functional.adaptation import _adapt
from amt_stream.dsp.functional.compiler.call_table import Calls, Flag, plan_rows
from amt_stream.dsp.functional.compiler.dispatch import Array, kernel
from amt_stream.dsp.functional.filters.first_order import _first_order
from amt_stream.dsp.functional.gammatone import _cascade
from amt_stream.dsp.functional.modulation import _bank

ORDER = 4
"""Order of the gammatone filters."""


AT = plan_rows(
    # Kernels, by address.
    "to_bands to_nerve to_adapted to_modulation "
    # Flags of the hair cells' filter: low-pass (0), and rectifying (1).
    "high rectify "
    # Tables, named as in their functions.
    "coefficients factor cutoff floor rates most corr mult low delta gain scale envelope "
    "counts "
    # The state.
    "filters low_passes loops first bands "
    # The sound (row, time) and (row, 1, time), the motion in each channel (row, channel, time) and
    # as lines (row and channel, time), and the output (line, filter, time).
    "given sound moved lines y "
)
"""Rows of a plan, by name. A row of zeros stands for a missing array or kernel."""

CALLS = Calls(AT)
"""The kernels, by their rows in a plan. Each may work in place."""

_a, _i, _d, _b = CALLS.arguments

_to_bands = CALLS.add(
    "to_bands",
    _cascade(ORDER),
    *(*_a(3, "sound"), *_a(2, "coefficients"), *_d(None, "factor")),
    *(*_a(4, "filters"), *_a(3, "moved"), *_a(4, "filters")),
)
_to_nerve = CALLS.add(
    "to_nerve",
    _first_order,
    *(*_a(2, "lines"), *_a(1, "cutoff"), *_a(2, "low_passes")),
    *(Flag(AT.high), Flag(AT.rectify), *_a(2, "lines")),
)
_to_adapted = CALLS.add(
    "to_adapted",
    _adapt,
    *(*_a(2, "lines"), *_a(1, "floor", "rates"), *_a(2, "most"), *_a(1, "corr", "mult")),
    *(*_a(3, "loops"), *_a(2, "lines"), *_a(3, "loops")),
)
_to_modulation = CALLS.add(
    "to_modulation",
    _bank,
    *(*_a(2, "lines"), *_a(1, "low"), *_a(2, "delta", "gain", "delta"), *_a(1, "scale")),
    *(*_b(1, "envelope"), *_i(1, "counts")),
    *(*_a(2, "first", "bands"), *_a(3, "y")),
)


@kernel
def to_modulation(plan: Array, like: Array) -> None:
    """Sound to modulation filters; like: any array of the sound's dtype."""
    plan[AT.sound, 0] = plan[AT.given, 0]
    _to_bands(plan, like)
    _to_nerve(plan, like)
    _to_adapted(plan, like)
    _to_modulation(plan, like)
