"""Sums of products side by side in the vector registers, each in the same order whatever its row.

Left to itself a compiler adds the parts of a sum in an order that depends on how many sums it takes
at a time, so that a row by itself would differ in the last digit from the same row among others.
"""

from typing import Any

from llvmlite import binding, ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from amt_stream.functional.dispatch import Array, kernel

LANES = 16
"""Sums that lie side by side: one register of float32, two of float64, in AVX-512."""

REGISTER = 64 if binding.get_host_cpu_features().get("avx512f") else 32
"""Bytes of a vector register."""

ROWS = REGISTER // 8
"""Rows that go together: each weight that is loaded serves all of them."""


@kernel
def sums_of_products(
    x: Array,
    rows: int,
    start: int,
    stop: int,
    weights: Array,
    first: int,
    column: int,
    y: Array,
    into: int,
) -> None:
    """y[row, into + i] = sum over k from `start` to `stop` of x[row, k] w[k - start + first, i].

    w: `LANES` columns of `weights` from `column` on. Nothing is checked here.
    """
    n = 0
    while n + ROWS <= rows:
        _many(x, n, start, stop, weights, first, column, y, into)
        n += ROWS
    while n + 4 <= rows:
        _four(x, n, start, stop, weights, first, column, y, into)
        n += 4
    while n + 2 <= rows:
        _two(x, n, start, stop, weights, first, column, y, into)
        n += 2
    if n < rows:
        _one(x, n, start, stop, weights, first, column, y, into)


def _of_rows(count: int) -> Any:
    """`sums_of_products` of `count` rows from `row` on, with as many sums as there are registers.

    A product is added as soon as the one before it, which takes a few cycles: each sum is made of
    some chains that do not wait for each other, every so many-th product in one of them.
    """

    def sums(
        typing: Any,
        x: Any,
        row: Any,
        start: Any,
        stop: Any,
        weights: Any,
        first: Any,
        column: Any,
        y: Any,
        into: Any,
    ) -> Any:
        def code(context: Any, builder: Any, signature: Any, given: Any) -> Any:
            size = types.intp
            number = context.get_data_type(x.dtype)
            width = context.get_abi_sizeof(number)
            line = ir.VectorType(number, LANES)
            # Half of the registers, of which there are 32, or 16 where they are short.
            chains = max(1, REGISTER // 4 * REGISTER // (ROWS * LANES * width))
            product = cgutils.get_or_insert_function(
                builder.module,
                ir.FunctionType(line, [line] * 3),
                f"llvm.fmuladd.v{LANES}f{8 * width}",
            )

            def whole(n: int) -> Any:
                return context.get_constant(size, n)

            def index(k: int, more: int = 0) -> Any:
                value = context.cast(builder, given[k], signature.args[k], size)
                return builder.add(value, whole(more))

            def place(k: int, *indices: Any) -> Any:
                kind = signature.args[k]
                of = context.make_array(kind)(context, builder, given[k])
                return cgutils.get_item_pointer(context, builder, kind, of, list(indices))

            def as_line(pointer: Any) -> Any:
                return builder.bitcast(pointer, line.as_pointer())

            begin = index(2)
            length = builder.sub(index(3), begin)
            rows = [place(0, index(1, r), begin) for r in range(count)]
            at = place(4, index(5), index(6))
            table = context.make_array(weights)(context, builder, given[4])
            step = cgutils.unpack_tuple(builder, table.shape, 2)[1]
            nothing = ir.Constant(line, None)
            totals = [
                [cgutils.alloca_once_value(builder, nothing) for _ in range(chains)] for _ in rows
            ]
            free = ir.Constant(line, ir.Undefined)
            to_all = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)

            def add(k: Any, chain: int) -> None:
                from_row = builder.gep(at, [builder.mul(k, step)])
                w = builder.load(as_line(from_row), align=width)
                for values, total in zip(rows, totals, strict=True):
                    value = builder.load(builder.gep(values, [k]))
                    value = builder.insert_element(free, value, ir.Constant(ir.IntType(32), 0))
                    value = builder.shuffle_vector(value, free, to_all)
                    sum_ = builder.call(product, [value, w, builder.load(total[chain])])
                    builder.store(sum_, total[chain])

            turns = builder.sub(length, builder.srem(length, whole(chains)))
            with cgutils.for_range_slice(builder, whole(0), turns, whole(chains)) as (k, _):
                for chain in range(chains):
                    add(builder.add(k, whole(chain)), chain)
            with cgutils.for_range_slice(builder, turns, length, whole(1)) as (k, _):
                add(k, 0)
            for r, total in enumerate(totals):
                parts = [builder.load(part) for part in total]
                while len(parts) > 1:
                    pairs = zip(parts[::2], parts[1::2], strict=True)
                    parts = [builder.fadd(a, b) for a, b in pairs]
                out = as_line(place(7, index(1, r), index(8)))
                builder.store(parts[0], out, align=width)
            return context.get_dummy_value()

        given = (x, row, start, stop, weights, first, column, y, into)
        return types.void(*given), code

    return intrinsic(sums)


_many, _four, _two, _one = _of_rows(ROWS), _of_rows(4), _of_rows(2), _of_rows(1)
