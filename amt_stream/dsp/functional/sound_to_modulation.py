"""Sound to modulation filters: the kernels of the stages, one after another, on a plan."""

from numba import types

from amt_stream.dsp.functional.adaptation import _adapt
from amt_stream.dsp.functional.call_table import (
    Flag,
    KernelArgument,
    KernelCall,
    of_type,
    plan_rows,
)
from amt_stream.dsp.functional.dispatch import Array, kernel
from amt_stream.dsp.functional.first_order import _first_order
from amt_stream.dsp.functional.gammatone import _cascade
from amt_stream.dsp.functional.modulation import _bank

ORDER = 4
"""Of the gammatone filters."""


AT = plan_rows(
    # Kernels, by their address.
    "to_bands to_nerve to_adapted to_modulation "
    # Integers: of the low-pass of hair cells that it is no high-pass, and that it rectifies.
    "high rectify "
    # Tables, by the names that they have in what takes them.
    "coefficients factor cutoff floor rates most corr mult low delta gain scale envelope "
    "counts "
    # The state.
    "filters low_passes loops first bands "
    # The sound (row, time), the same as (row, 1, time), what moves in each channel (row, channel,
    # time), the same as lines (row and channel, time), and what comes out (line, filter, time).
    "given heard moved lines y "
)
"""What the rows of a plan are, by name. A row of zeros is an array, or a kernel, that is none."""

_a = of_type(AT, None)

CALLS = {
    "to_bands": KernelCall(
        AT.to_bands,
        _cascade(ORDER),
        *(*_a(3, "heard"), *_a(2, "coefficients"), KernelArgument(AT.factor, None, types.float64)),
        *(*_a(4, "filters"), *_a(3, "moved"), *_a(4, "filters")),
    ),
    "to_nerve": KernelCall(
        AT.to_nerve,
        _first_order,
        *(*_a(2, "lines"), *_a(1, "cutoff"), *_a(2, "low_passes")),
        *(Flag(AT.high), Flag(AT.rectify), *_a(2, "lines")),
    ),
    "to_adapted": KernelCall(
        AT.to_adapted,
        _adapt,
        *(*_a(2, "lines"), *_a(1, "floor", "rates"), *_a(2, "most"), *_a(1, "corr", "mult")),
        *(*_a(3, "loops"), *_a(2, "lines"), *_a(3, "loops")),
    ),
    "to_modulation": KernelCall(
        AT.to_modulation,
        _bank,
        *(*_a(2, "lines"), *_a(1, "low"), *_a(2, "delta", "gain", "delta"), *_a(1, "scale")),
        KernelArgument(AT.envelope, 1, types.boolean),
        KernelArgument(AT.counts, 1, types.int64),
        *(*_a(2, "first", "bands"), *_a(3, "y")),
    ),
}
"""The kernels, by their rows in a plan. Each may write where it reads."""

_to_bands, _to_nerve = CALLS["to_bands"].call, CALLS["to_nerve"].call
_to_adapted, _to_modulation = CALLS["to_adapted"].call, CALLS["to_modulation"].call


@kernel
def to_modulation(plan: Array, like: Array) -> None:
    """Sound to modulation filters; like: any array of the dtype of sound."""
    plan[AT.heard, 0] = plan[AT.given, 0]
    _to_bands(plan, like)
    _to_nerve(plan, like)
    _to_adapted(plan, like)
    _to_modulation(plan, like)
