"""Vectorized sums of products whose order of summation does not depend on the number of rows.

A compiler may order a sum by how many sums it computes at a time; a row alone would then differ in
the last digit from the same row among others.
"""

from llvmlite import binding, ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from amt_stream.dsp.functional.dispatch import Array, kernel
from amt_stream.dsp.functional.lanes import LANES
from amt_stream.dsp.functional.lowering import Builder, Context, Kind, Typed, Value, Values

REGISTER = 64 if binding.get_host_cpu_features().get("avx512f") else 32
"""Bytes of a vector register."""

ROWS = REGISTER // 8
"""Rows processed together: each weight loaded serves all of them."""


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


class _Sums:
    """Generates `sums_of_products` for `count` rows from `row` on.

    A fused multiply-add takes a few cycles, so each sum is split into independent chains, which
    take the products in turn.

    given: the arguments of `sums_of_products`, with `row` in the place of `rows`
    """

    def __init__(
        self, context: Context, builder: Builder, signature: Kind, given: Values, count: int
    ) -> None:
        self.context, self.builder = context, builder
        self.signature, self.given = signature, given
        of_x, weights = signature.args[0], signature.args[4]
        number = context.get_data_type(of_x.dtype)
        self.width = context.get_abi_sizeof(number)
        self.line = ir.VectorType(number, LANES)
        # Half of the registers: there are 32, or 16 short ones.
        self.chains = max(1, REGISTER // 4 * REGISTER // (ROWS * LANES * self.width))
        self.product = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(self.line, [self.line] * 3),
            f"llvm.fmuladd.v{LANES}f{8 * self.width}",
        )
        begin = self.index(2)
        self.length = builder.sub(self.index(3), begin)
        self.rows = [self.place(0, self.index(1, r), begin) for r in range(count)]
        self.at = self.place(4, self.index(5), self.index(6))
        table = context.make_array(weights)(context, builder, given[4])
        self.step = cgutils.unpack_tuple(builder, table.shape, 2)[1]
        nothing = ir.Constant(self.line, None)
        self.totals = [
            [cgutils.alloca_once_value(builder, nothing) for _ in range(self.chains)]
            for _ in self.rows
        ]

    def whole(self, n: int) -> Value:
        """An integer constant."""
        return self.context.get_constant(types.intp, n)

    def index(self, k: int, more: int = 0) -> Value:
        """Argument `k`, an index, plus `more`."""
        kind = self.signature.args[k]
        value = self.context.cast(self.builder, self.given[k], kind, types.intp)
        return self.builder.add(value, self.whole(more))

    def place(self, k: int, *indices: Value) -> Value:
        """Pointer to an element of argument `k`, an array."""
        kind = self.signature.args[k]
        of = self.context.make_array(kind)(self.context, self.builder, self.given[k])
        return cgutils.get_item_pointer(self.context, self.builder, kind, of, list(indices))

    def as_line(self, pointer: Value) -> Value:
        """The pointer as one to a vector of `LANES` numbers."""
        return self.builder.bitcast(pointer, self.line.as_pointer())

    def to_all_lanes(self, value: Value) -> Value:
        """A number broadcast to all lanes."""
        nothing = ir.Constant(self.line, ir.Undefined)
        first = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
        value = self.builder.insert_element(nothing, value, ir.Constant(ir.IntType(32), 0))
        return self.builder.shuffle_vector(value, nothing, first)

    def add(self, k: Value, chain: int) -> None:
        """Add product `k` of each row to one of its chains."""
        builder = self.builder
        from_row = builder.gep(self.at, [builder.mul(k, self.step)])
        w = builder.load(self.as_line(from_row), align=self.width)
        for values, total in zip(self.rows, self.totals, strict=True):
            value = self.to_all_lanes(builder.load(builder.gep(values, [k])))
            sum_ = builder.call(self.product, [value, w, builder.load(total[chain])])
            builder.store(sum_, total[chain])

    def add_all(self) -> None:
        """Add all products, to the chains in turn; the remainder goes to the first."""
        builder, whole = self.builder, self.whole
        chains = whole(self.chains)
        turns = builder.sub(self.length, builder.srem(self.length, chains))
        with cgutils.for_range_slice(builder, whole(0), turns, chains) as (k, _):
            for chain in range(self.chains):
                self.add(builder.add(k, whole(chain)), chain)
        with cgutils.for_range_slice(builder, turns, self.length, whole(1)) as (k, _):
            self.add(k, 0)

    def write(self) -> None:
        """Write the pairwise sum of each row's chains into y."""
        builder = self.builder
        for r, total in enumerate(self.totals):
            parts = [builder.load(part) for part in total]
            while len(parts) > 1:
                pairs = zip(parts[::2], parts[1::2], strict=True)
                parts = [builder.fadd(a, b) for a, b in pairs]
            out = self.as_line(self.place(7, self.index(1, r), self.index(8)))
            builder.store(parts[0], out, align=self.width)


def _of_rows(count: int) -> Value:
    """`sums_of_products` for `count` rows from `row` on."""

    def sums(
        typing: Context,
        x: Kind,
        row: Kind,
        start: Kind,
        stop: Kind,
        weights: Kind,
        first: Kind,
        column: Kind,
        y: Kind,
        into: Kind,
    ) -> Typed:
        def code(context: Context, builder: Builder, signature: Kind, given: Values) -> Value:
            of_rows = _Sums(context, builder, signature, given, count)
            of_rows.add_all()
            of_rows.write()
            return context.get_dummy_value()

        given = (x, row, start, stop, weights, first, column, y, into)
        return types.void(*given), code

    return intrinsic(sums)


_many, _four, _two, _one = _of_rows(ROWS), _of_rows(4), _of_rows(2), _of_rows(1)
