"""Sound to modulation filters: the kernels of the stages, one after another, on a plan."""

from typing import NamedTuple

from numba import types

from amt_stream.functional.adaptation import _adapt
from amt_stream.functional.by_address import Argument, Called, Truth, of_type
from amt_stream.functional.dispatch import Array, kernel
from amt_stream.functional.first_order import _first_order
from amt_stream.functional.gammatone import _cascade
from amt_stream.functional.modulation import _bank

ORDER = 4
"""Of the gammatone filters."""


class Places(NamedTuple):
    """What the rows of a plan are. A row of zeros is an array, or a kernel, that is none."""

    # Kernels, by their address.
    to_bands: int
    to_nerve: int
    to_adapted: int
    to_modulation: int
    # Integers: of the low-pass of hair cells that it is no high-pass, and that it rectifies.
    high: int
    rectify: int
    # Tables, by the names that they have in what takes them.
    coefficients: int
    factor: int
    cutoff: int
    floor: int
    rates: int
    most: int
    corr: int
    mult: int
    low: int
    delta: int
    gain: int
    scale: int
    envelope: int
    counts: int
    # The state.
    filters: int
    low_passes: int
    loops: int
    first: int
    bands: int
    # The sound (row, time), the same as (row, 1, time), what moves in each channel (row, channel,
    # time), the same as lines (row and channel, time), and what comes out (line, filter, time).
    given: int
    heard: int
    moved: int
    lines: int
    y: int


AT = Places(*range(len(Places._fields)))
"""The rows by their names."""

_a = of_type(AT, None)

CALLED = {
    "to_bands": Called(
        AT.to_bands,
        _cascade(ORDER),
        *(*_a(3, "heard"), *_a(2, "coefficients"), Argument(AT.factor, None, types.float64)),
        *(*_a(4, "filters"), *_a(3, "moved"), *_a(4, "filters")),
    ),
    "to_nerve": Called(
        AT.to_nerve,
        _first_order,
        *(*_a(2, "lines"), *_a(1, "cutoff"), *_a(2, "low_passes")),
        *(Truth(AT.high), Truth(AT.rectify), *_a(2, "lines")),
    ),
    "to_adapted": Called(
        AT.to_adapted,
        _adapt,
        *(*_a(2, "lines"), *_a(1, "floor", "rates"), *_a(2, "most"), *_a(1, "corr", "mult")),
        *(*_a(3, "loops"), *_a(2, "lines"), *_a(3, "loops")),
    ),
    "to_modulation": Called(
        AT.to_modulation,
        _bank,
        *(*_a(2, "lines"), *_a(1, "low"), *_a(2, "delta", "gain", "delta"), *_a(1, "scale")),
        Argument(AT.envelope, 1, types.boolean),
        Argument(AT.counts, 1, types.int64),
        *(*_a(2, "first", "bands"), *_a(3, "y")),
    ),
}
"""The kernels, by their rows in a plan. Each may write where it reads."""

_to_bands, _to_nerve = CALLED["to_bands"].call, CALLED["to_nerve"].call
_to_adapted, _to_modulation = CALLED["to_adapted"].call, CALLED["to_modulation"].call


@kernel
def to_modulation(plan: Array, like: Array) -> None:
    """Sound to modulation filters; like: any array of the dtype of sound."""
    plan[AT.heard, 0] = plan[AT.given, 0]
    _to_bands(plan, like)
    _to_nerve(plan, like)
    _to_adapted(plan, like)
    _to_modulation(plan, like)
