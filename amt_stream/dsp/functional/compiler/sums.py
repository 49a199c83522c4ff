"""Vectorized sums of products whose order of summation does not depend on the number of rows.

A compiler may order a sum by how many sums it computes at a time; a row alone would then differ in
the last digit from the same row among others.
"""

from collections.abc import Sequence
from functools import reduce

import numba
from llvmlite import binding, ir
from numba import types
from numba.extending import intrinsic

from amt_stream.dsp.functional.compiler.dispatch import Array, kernel
from amt_stream.dsp.functional.compiler.lanes import LANES
from amt_stream.dsp.functional.compiler.lowering import Builder, Context, Kind, Typed, Value, Values
from amt_stream.dsp.functional.compiler.private_numba import item_pointer, repeated, variable


def _has_avx512() -> bool:
    """Whether the processor that numba compiles for has it: this one, unless another is set."""
    named = numba.config.CPU_FEATURES  # type: ignore[attr-defined]
    if named is not None:
        return "avx512f" in named
    return bool(binding.get_host_cpu_features().get("avx512f"))


REGISTER = 64 if _has_avx512() else 32
"""Bytes of a vector register."""

ROWS = REGISTER // 8
"""Rows processed together: each weight loaded serves all of them."""

BLOCKS = 4
"""Most blocks processed together, for few rows: each number loaded serves all of them."""


@kernel
def sums_of_products(
    x: Array, rows: int, blocks: Array, weights: Array, columns: int, y: Array, into: int
) -> None:
    """y[row, into + i] = sum over k of x[row, k] w[k, i] for i below `columns`, `LANES` or more.

    blocks: (count, 2) `from, to` of k for each `LANES` columns; the last block ends at `columns`

    Nothing is checked here.
    """
    many = rows - rows % 4
    count, b = blocks.shape[0], 0
    while b < count:
        together = BLOCKS if b + BLOCKS <= count else 2 if b + 2 <= count else 1
        for c in range(b, b + together):
            n = 0
            while n + ROWS <= many:
                _many(x, n, blocks, c, weights, columns, y, into)
                n += ROWS
            if n < many:
                _four(x, n, blocks, c, weights, columns, y, into)
        n = many
        if n + 2 <= rows:
            for c in range(b, b + together - 1, 2):
                _two_by_two(x, n, blocks, c, weights, columns, y, into)
            if together == 1:
                _two(x, n, blocks, b, weights, columns, y, into)
            n += 2
        if n < rows:
            if together == BLOCKS:
                _one_by_four(x, n, blocks, b, weights, columns, y, into)
            elif together == 2:
                _one_by_two(x, n, blocks, b, weights, columns, y, into)
            else:
                _one(x, n, blocks, b, weights, columns, y, into)
        b += together


class _Sums:
    """Generates `sums_of_products` for `rows` rows from `row` on, of `blocks` from `b` on.

    A fused multiply-add takes a few cycles, so each sum is split into independent chains, which
    take the products in turn.

    given: the arguments of `sums_of_products`, with `row` and `b` in the places of the numbers
    """

    def __init__(
        self,
        context: Context,
        builder: Builder,
        signature: Kind,
        given: Values,
        rows: int,
        blocks: int,
    ) -> None:
        self.context, self.builder = context, builder
        self.signature, self.given = signature, given
        of_x, weights = signature.args[0], signature.args[4]
        number = context.get_data_type(of_x.dtype)
        self.width = context.get_abi_sizeof(number)
        self.line = ir.VectorType(number, LANES)
        # Half of the registers: there are 32, or 16 short ones.
        self.chains = max(1, REGISTER // 4 * REGISTER // (ROWS * LANES * self.width))
        self.product = builder.module.declare_intrinsic(
            f"llvm.fmuladd.v{LANES}f{8 * self.width}",
            fnty=ir.FunctionType(self.line, [self.line] * 3),
        )
        last = builder.sub(self.index(5), self.whole(LANES))
        at = [builder.mul(self.index(3, c), self.whole(LANES)) for c in range(blocks)]
        self.columns = [self.lesser(column, last) for column in at]
        self.starts, self.stops = ([self.bound(c, k) for c in range(blocks)] for k in range(2))
        zero = self.whole(0)
        self.rows = [self.place(0, self.index(1, r), zero) for r in range(rows)]
        self.at = [self.place(4, zero, column) for column in self.columns]
        table = context.make_array(weights)(context, builder, given[4])
        self.step = builder.extract_value(table.shape, 1)
        nothing = ir.Constant(self.line, None)
        # [block][row][chain]
        self.totals = [
            [[variable(builder, nothing) for _ in range(self.chains)] for _ in self.rows]
            for _ in range(blocks)
        ]

    def whole(self, n: int) -> Value:
        """An integer constant."""
        return self.context.get_constant(types.intp, n)

    def index(self, k: int, more: int = 0) -> Value:
        """Argument `k`, an index, plus `more`."""
        kind = self.signature.args[k]
        value = self.context.cast(self.builder, self.given[k], kind, types.intp)
        return self.builder.add(value, self.whole(more))

    def lesser(self, a: Value, b: Value) -> Value:
        """The lesser of two integers."""
        return self.builder.select(self.builder.icmp_signed("<", a, b), a, b)

    def greater(self, a: Value, b: Value) -> Value:
        """The greater of two integers."""
        return self.builder.select(self.builder.icmp_signed(">", a, b), a, b)

    def bound(self, c: int, k: int) -> Value:
        """Where the products of block `c` begin, or end if `k` is 1."""
        return self.builder.load(self.place(2, self.index(3, c), self.whole(k)))

    def place(self, k: int, *indices: Value) -> Value:
        """Pointer to an element of argument `k`, an array."""
        kind = self.signature.args[k]
        return item_pointer(self.context, self.builder, kind, self.given[k], indices)

    def as_line(self, pointer: Value) -> Value:
        """The pointer as one to a vector of `LANES` numbers."""
        return self.builder.bitcast(pointer, self.line.as_pointer())

    def to_all_lanes(self, value: Value) -> Value:
        """A number broadcast to all lanes."""
        nothing = ir.Constant(self.line, ir.Undefined)
        first = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
        value = self.builder.insert_element(nothing, value, ir.Constant(ir.IntType(32), 0))
        return self.builder.shuffle_vector(value, nothing, first)

    def add(self, k: Value, blocks: Sequence[int], chain: int) -> None:
        """Add product `k` of each row, in these blocks, to one of its chains."""
        builder = self.builder
        from_row = builder.mul(k, self.step)
        lines = [self.as_line(builder.gep(self.at[c], [from_row])) for c in blocks]
        weights = [builder.load(line, align=self.width) for line in lines]
        for r, values in enumerate(self.rows):
            value = self.to_all_lanes(builder.load(builder.gep(values, [k])))
            for c, w in zip(blocks, weights, strict=True):
                total = self.totals[c][r][chain]
                builder.store(builder.call(self.product, [value, w, builder.load(total)]), total)

    def add_range(self, start: Value, stop: Value, blocks: Sequence[int]) -> None:
        """Add the products from `start` to `stop` to the chains in turn, in these blocks."""
        builder, whole = self.builder, self.whole
        chains = whole(self.chains)
        length = self.greater(builder.sub(stop, start), whole(0))
        turns = builder.add(start, builder.sub(length, builder.srem(length, chains)))
        with repeated(builder, start, turns, chains) as k:
            for chain in range(self.chains):
                self.add(builder.add(k, whole(chain)), blocks, chain)
        if self.chains == 1:
            return
        with builder.if_then(builder.icmp_signed("<", turns, builder.add(start, length))):
            self.add(turns, blocks, 0)
            # The next product is the other chain's turn.
            for c in blocks:
                for a, b in self.totals[c]:
                    first, second = builder.load(a), builder.load(b)
                    builder.store(second, a)
                    builder.store(first, b)

    def add_all(self) -> None:
        """Add all products: first where not all blocks have any, then where all do."""
        each = range(len(self.at))
        # The ranges of one block alone would be empty.
        alone = each if len(each) > 1 else ()
        begin = reduce(self.greater, self.starts)
        end = self.greater(begin, reduce(self.lesser, self.stops))
        for c in alone:
            self.add_range(self.starts[c], self.lesser(begin, self.stops[c]), [c])
        self.add_range(begin, end, each)
        for c in alone:
            self.add_range(end, self.stops[c], [c])

    def write(self) -> None:
        """Write the sum of each row's chains into y."""
        builder = self.builder
        for column, of_block in zip(self.columns, self.totals, strict=True):
            for r, total in enumerate(of_block):
                sums = reduce(builder.fadd, map(builder.load, total))
                to = builder.add(self.index(7), column)
                builder.store(
                    sums, self.as_line(self.place(6, self.index(1, r), to)), align=self.width
                )


def _of(rows: int, blocks: int = 1) -> Value:
    """`sums_of_products` for `rows` rows from `row` on, of `blocks` from `b` on."""

    def sums(
        typing: Context,
        x: Kind,
        row: Kind,
        ranges: Kind,
        b: Kind,
        weights: Kind,
        columns: Kind,
        y: Kind,
        into: Kind,
    ) -> Typed:
        def code(context: Context, builder: Builder, signature: Kind, given: Values) -> Value:
            made = _Sums(context, builder, signature, given, rows, blocks)
            made.add_all()
            made.write()
            return context.get_dummy_value()

        given = (x, row, ranges, b, weights, columns, y, into)
        return types.void(*given), code

    return intrinsic(sums)


_many, _four, _two, _two_by_two = _of(ROWS), _of(4), _of(2), _of(2, 2)
_one, _one_by_two, _one_by_four = _of(1), _of(1, 2), _of(1, BLOCKS)
