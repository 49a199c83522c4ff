"""Transposed tiles of samples, so that a recurrence over time fills the vector registers."""

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from amt_stream.dsp.functional.compiler.dispatch import Array, kernel
from amt_stream.dsp.functional.compiler.lowering import (
    Builder,
    Context,
    Kernel,
    Kind,
    Typed,
    Value,
    Values,
)
from amt_stream.dsp.functional.compiler.private_numba import item_pointer

SPAN = 128
"""Samples of each row processed together, so that a tile fits the L1 cache."""

SIDE = 8
"""Side of the square that is transposed in registers: a register of float32 in AVX2."""

TINY = 1e-250
"""Values of float64 below this are set to 0, because denormal arithmetic is slow."""


@kernel
def load(x: Array, first: int, rows: int, start: int, length: int, tile: Array) -> None:
    """Fill `tile` (SPAN, lane) with `length` samples from `start` of `rows` rows of `x`."""
    squares = length // SIDE * SIDE if rows >= SIDE else 0
    if squares:
        for n in range(0, rows, SIDE):
            i = min(n, rows - SIDE)  # the last square overlaps the previous one
            for t in range(0, squares, SIDE):
                _turn(x, first + i, start + t, tile, t, 1, i)
    for k in range(rows):
        for t in range(squares, length):
            tile[t, k] = x[first + k, start + t]


@kernel
def store(
    tile: Array, first: int, rows: int, start: int, length: int, y: Array, step: int = 1
) -> None:
    """Write `tile` back into each `step`-th row of `y`."""
    squares = length // SIDE * SIDE if rows >= SIDE else 0
    if squares:
        for n in range(0, rows, SIDE):
            i = min(n, rows - SIDE)
            for t in range(0, squares, SIDE):
                _turn(tile, t, i, y, first + i * step, step, start + t)
    for k in range(rows):
        for t in range(squares, length):
            y[first + k * step, start + t] = tile[t, k]


@kernel
def copy_values(source: Array, to: Array) -> None:
    """Copy a contiguous array into one of its shape.

    `to[:] = source` compiles for seconds, most of them the error message about unequal shapes.
    """
    for i in range(to.size):
        to.flat[i] = source.flat[i]


@kernel
def flush(x: Array) -> None:
    """Set tiny values of `x`, in float64, to 0."""
    flat = x.reshape(-1)
    for i in range(flat.size):
        flat[i] = 0 if abs(flat[i]) < TINY else flat[i]


def _turned(
    typing: Context,
    source: Kind,
    at: Kind,
    start: Kind,
    y: Kind,
    first: Kind,
    step: Kind,
    begin: Kind,
) -> Typed:
    """y[first + k step, begin + n] = source[at + n, start + k] for n and k below `SIDE`.

    In registers, because numba would move single samples. The last axes are contiguous; one array
    may be float32 and the other float64.
    """

    def code(context: Context, builder: Builder, signature: Kind, given: Values) -> Value:
        size = types.intp

        def index(k: int, more: Value) -> Value:
            return builder.add(context.cast(builder, given[k], signature.args[k], size), more)

        def place(k: int, row: Value, column: Value, line: Kind) -> Value:
            kind = signature.args[k]
            pointer = item_pointer(context, builder, kind, given[k], [row, column])
            return builder.bitcast(pointer, line.as_pointer())

        numbers = [context.get_data_type(kind.dtype) for kind in (source, y)]
        given_line, line = (ir.VectorType(number, SIDE) for number in numbers)
        given_width, width = (context.get_abi_sizeof(number) for number in numbers)
        counts = [context.get_constant(size, n) for n in range(SIDE)]
        zero = counts[0]
        each = index(5, zero)
        lines = [
            builder.load(place(0, index(1, n), index(2, zero), given_line), align=given_width)
            for n in counts
        ]
        # Swap the off-diagonal halves of the square, then quarters, and so on.
        half = SIDE // 2
        while half:
            for n in range(SIDE):
                if not n & half:
                    a, b = lines[n], lines[n | half]
                    upper = [SIDE + (k ^ half) if k & half else k for k in range(SIDE)]
                    lower = [SIDE + k if k & half else k ^ half for k in range(SIDE)]
                    lines[n], lines[n | half] = (
                        builder.shuffle_vector(a, b, ir.Constant(places, chosen))
                        for chosen in (upper, lower)
                    )
            half //= 2
        for n, turned in zip(counts, lines, strict=True):
            row = index(4, builder.mul(each, n))
            if width > given_width:
                turned = builder.fpext(turned, line)
            elif width < given_width:
                turned = builder.fptrunc(turned, line)
            builder.store(turned, place(3, row, index(6, zero), line), align=width)
        return context.get_dummy_value()

    places = ir.VectorType(ir.IntType(32), SIDE)
    return types.void(source, at, start, y, first, step, begin), code


_turn: Kernel = intrinsic(_turned)
