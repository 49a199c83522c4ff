"""Vector registers as values in a kernel.

Kernels use them like numbers: `+ - * /` with each other or with one number for all, `>`, `<` and
`<=`, and the functions here; those of one argument and `where` take plain numbers too. A recurrence
keeps them in registers from sample to sample, whereas a loop over an array goes through memory and
checks for aliasing at each sample.
"""

import operator
from collections.abc import Callable, Sequence

from llvmlite import ir
from numba import types
from numba.extending import (
    intrinsic,
    lower_builtin,
    lower_cast,
    models,
    register_model,
    type_callable,
)

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

LANES = 16
"""One register of float32, two of float64, in AVX-512."""


class Lanes(types.Type):
    """Numba type of `count` numbers or booleans."""

    def __init__(self, dtype: Kind, count: int) -> None:
        self.dtype, self.count = dtype, count
        super().__init__(f"Lanes({dtype}, {count})")


@register_model(Lanes)
class _Model(models.PrimitiveModel):
    def __init__(self, manager: Context, kind: Lanes) -> None:
        number = manager.lookup(kind.dtype).get_value_type()
        super().__init__(manager, kind, ir.VectorType(number, kind.count))


@lower_cast(types.Float, Lanes)
def _to_all(context: Context, builder: Builder, given: Kind, kind: Lanes, value: Value) -> Value:
    free = ir.Constant(context.get_value_type(kind), ir.Undefined)
    first = ir.IntType(32)
    line = builder.insert_element(free, value, first(0))
    return builder.shuffle_vector(
        line, free, ir.Constant(ir.VectorType(first, kind.count), [0] * kind.count)
    )


def _operation(
    function: Callable[..., object], code: Callable[..., Value], compares: bool = False
) -> None:
    """Make `function` work on two `Lanes`, or on one and a number of their type."""

    def typed(a: Kind, b: Kind) -> Kind | None:
        kind = next((given for given in (a, b) if isinstance(given, Lanes)), None)
        if kind is None or not all(given in (kind, kind.dtype) for given in (a, b)):
            return None
        return Lanes(types.boolean, kind.count) if compares else kind

    type_callable(function)(lambda context: typed)

    def lowered(context: Context, builder: Builder, signature: Kind, given: Values) -> Value:
        kind = next(a for a in signature.args if isinstance(a, Lanes))
        pairs = zip(given, signature.args, strict=True)
        return code(builder, *(context.cast(builder, value, a, kind) for value, a in pairs))

    for kinds in ((Lanes, Lanes), (Lanes, types.Float), (types.Float, Lanes)):
        lower_builtin(function, *kinds)(lowered)


_operation(operator.add, ir.IRBuilder.fadd)
_operation(operator.sub, ir.IRBuilder.fsub)
_operation(operator.mul, ir.IRBuilder.fmul)
_operation(operator.truediv, ir.IRBuilder.fdiv)
_operation(operator.gt, lambda builder, a, b: builder.fcmp_ordered(">", a, b), compares=True)
_operation(operator.lt, lambda builder, a, b: builder.fcmp_ordered("<", a, b), compares=True)
_operation(operator.le, lambda builder, a, b: builder.fcmp_ordered("<=", a, b), compares=True)


def _place(
    context: Context, builder: Builder, kinds: Sequence[Kind], given: Values, line: Kind
) -> Value:
    """Pointer to a `line` in an array, from the indices of its first number."""
    indices = [
        context.cast(builder, value, kind, types.intp)
        for value, kind in zip(given[1:], kinds[1:], strict=True)
    ]
    pointer = item_pointer(context, builder, kinds[0], given[0], indices)
    return builder.bitcast(pointer, line.as_pointer())


def lanes_of(count: int) -> Kernel:
    """`lanes(x, row, column)`: `count` numbers of `x` (row, column) from there on."""

    def lanes(typing: Context, x: Kind, row: Kind, column: Kind) -> Typed:
        kind = Lanes(x.dtype, count)

        def code(context: Context, builder: Builder, signature: Kind, given: Values) -> Value:
            place = _place(context, builder, signature.args, given, context.get_value_type(kind))
            return builder.load(place, align=_width(context, x.dtype))

        return kind(x, row, column), code

    return intrinsic(lanes)


def _put(typing: Context, value: Kind, y: Kind, row: Kind, column: Kind) -> Typed:
    """Store the lanes `value` into `y` (row, column) from there on."""

    def code(context: Context, builder: Builder, signature: Kind, given: Values) -> Value:
        place = _place(context, builder, signature.args[1:], given[1:], given[0].type)
        builder.store(given[0], place, align=_width(context, y.dtype))
        return context.get_dummy_value()

    return types.void(value, y, row, column), code


def _width(context: Context, dtype: Kind) -> int:
    return context.get_abi_sizeof(context.get_data_type(dtype))


def _transpose(
    typing: Context, x: Kind, part: Kind, at: Kind, step: Kind, y: Kind, to: Kind, over: Kind
) -> Typed:
    """Transpose `LANES` lines of `x` (part, number), from `at` on, each `step` after the last.

    They go to the same part of `y`, from `to` on, each `over` after the last.
    """

    def code(context: Context, builder: Builder, signature: Kind, given: Values) -> Value:
        line = ir.VectorType(context.get_data_type(x.dtype), LANES)
        width = _width(context, x.dtype)

        def place(array: int, at: int, step: int, k: int) -> Value:
            parts = [
                context.cast(builder, given[i], signature.args[i], types.intp)
                for i in (1, at, step)
            ]
            along = builder.mul(parts[2], context.get_constant(types.intp, k))
            indices = [parts[0], builder.add(parts[1], along)]
            kinds = [signature.args[array], types.intp, types.intp]
            return _place(context, builder, kinds, [given[array], *indices], line)

        lines = [builder.load(place(0, 2, 3, k), align=width) for k in range(LANES)]
        half = LANES // 2
        order = [[k // 2 + LANES * (k % 2) + half * high for k in range(LANES)] for high in (0, 1)]
        low, high = (ir.Constant(ir.VectorType(ir.IntType(32), LANES), o) for o in order)
        for _ in range(LANES.bit_length() - 1):
            lines = [
                builder.shuffle_vector(lines[k], lines[k + half], one)
                for k in range(half)
                for one in (low, high)
            ]
        for k, value in enumerate(lines):
            builder.store(value, place(4, 5, 6, k), align=width)
        return context.get_dummy_value()

    return types.void(x, part, at, step, y, to, over), code


def _where(typing: Context, truth: Kind, a: Kind, b: Kind) -> Typed:
    """`a` where `truth` holds, else `b`."""
    kind = next((given for given in (a, b) if isinstance(given, Lanes)), a)

    def code(context: Context, builder: Builder, signature: Kind, given: Values) -> Value:
        return builder.select(*given)

    return kind(truth, kind, kind), code


def _any_of(typing: Context, truths: Kind) -> Typed:
    """Whether any lane is true."""

    def code(context: Context, builder: Builder, signature: Kind, given: Values) -> Value:
        bits = ir.IntType(truths.count)
        return builder.icmp_unsigned("!=", builder.bitcast(given[0], bits), bits(0))

    return types.boolean(truths), code


def _of_one(name: str) -> Kernel:
    """The LLVM function of this name."""

    def function(typing: Context, x: Kind) -> Typed:
        def code(context: Context, builder: Builder, signature: Kind, given: Values) -> Value:
            kind = given[0].type
            lanes = isinstance(x, Lanes)
            number = x.dtype if lanes else x
            suffix = f"{f'v{x.count}' if lanes else ''}f{number.bitwidth}"
            called = builder.module.declare_intrinsic(
                f"llvm.{name}.{suffix}", fnty=ir.FunctionType(kind, [kind])
            )
            return builder.call(called, given)

        return x(x), code

    return intrinsic(function)


def _halved(typing: Context, n: Kind) -> Typed:
    """2^-n for integers n, from their bits."""

    def code(context: Context, builder: Builder, signature: Kind, given: Values) -> Value:
        lanes = isinstance(n, Lanes)
        width = (n.dtype if lanes else n).bitwidth
        bias, places = {32: (127, 23), 64: (1023, 52)}[width]
        kind = ir.IntType(width)
        whole = ir.VectorType(kind, n.count) if lanes else kind

        def all_of(value: int) -> Value:
            return ir.Constant(whole, [value] * n.count if lanes else value)

        power = builder.sub(all_of(bias), builder.fptosi(given[0], whole))
        return builder.bitcast(builder.shl(power, all_of(places)), given[0].type)

    return n(n), code


put: Kernel = intrinsic(_put)
transpose: Kernel = intrinsic(_transpose)
where: Kernel = intrinsic(_where)
any_of: Kernel = intrinsic(_any_of)
halved: Kernel = intrinsic(_halved)
rounded_down, magnitude, root = _of_one("floor"), _of_one("fabs"), _of_one("sqrt")
