"""Kernels called by address, with arguments described by a plan.

A kernel that calls others by name is compiled with all of them inlined, and a call from Python
checks the type of each argument. A plan is an integer array (row, `WIDTH`): a row holds the address
and the sizes of an array, the address of a kernel, or an integer; a row of zeros is none of these.
Nothing is checked: the caller must fill the whole plan.
"""

from collections import namedtuple
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np
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
from amt_stream.dsp.functional.compiler.private_numba import (
    array_at,
    call_at,
    compiled_address,
    tuple_type,
)

AXES = 4
"""Most axes of an array in a plan."""

WIDTH = 1 + AXES

_WORD = ir.IntType(64)


def plan_rows(names: str) -> Value:
    """The rows of a plan by name, numbered in this order."""
    fields = names.split()
    return namedtuple("Rows", fields)(*range(len(fields)))


@dataclass(frozen=True)
class KernelArgument:
    """An argument of a kernel from a row of a plan: an array, or the first number in it.

    of: its number type; None for that of the sound
    axes: of the array; None: the number at that address
    """

    row: int
    axes: int | None
    of: Kind = None

    def type(self, number: Kind) -> Kind:
        """The numba type, for sound of the type `number`."""
        of = number if self.of is None else self.of
        return of if self.axes is None else types.Array(of, self.axes, "C")

    def value(self, context: Context, builder: Builder, plan: Value, number: Kind) -> Value:
        """The argument's value, from the pointer `plan`."""
        kind = self.type(number)
        of = kind if self.axes is None else kind.dtype
        data = builder.inttoptr(
            _word(builder, plan, self.row), context.get_data_type(of).as_pointer()
        )
        if self.axes is None:
            return builder.load(data)
        size = context.get_constant(types.intp, context.get_abi_sizeof(context.get_data_type(of)))
        shape = [_word(builder, plan, self.row, 1 + k) for k in range(self.axes)]
        return array_at(context, builder, kind, data, shape, size)


@dataclass(frozen=True)
class TupleOf:
    """A NamedTuple `kind` of several arguments."""

    kind: Kind
    parts: tuple[KernelArgument, ...]

    def type(self, number: Kind) -> Kind:
        parts = [part.type(number) for part in self.parts]
        return tuple_type(parts, self.kind)

    def value(self, context: Context, builder: Builder, plan: Value, number: Kind) -> Value:
        parts = [part.value(context, builder, plan, number) for part in self.parts]
        return context.make_tuple(builder, self.type(number), parts)


@dataclass(frozen=True)
class Integer:
    """The first integer of a row."""

    row: int

    def type(self, number: Kind) -> Kind:
        return types.int64

    def value(self, context: Context, builder: Builder, plan: Value, number: Kind) -> Value:
        return _word(builder, plan, self.row)


@dataclass(frozen=True)
class Flag(Integer):
    """Whether the first integer of a row is nonzero."""

    def type(self, number: Kind) -> Kind:
        return types.boolean

    def value(self, context: Context, builder: Builder, plan: Value, number: Kind) -> Value:
        return builder.icmp_unsigned("!=", super().value(context, builder, plan, number), _WORD(0))


@dataclass(frozen=True)
class Integers:
    """A tuple of `count` integers at the address in a row."""

    row: int
    count: int

    def type(self, number: Kind) -> Kind:
        return types.UniTuple(types.int64, self.count)

    def value(self, context: Context, builder: Builder, plan: Value, number: Kind) -> Value:
        data = builder.inttoptr(_word(builder, plan, self.row), _WORD.as_pointer())
        parts = [builder.load(builder.gep(data, [_WORD(k)])) for k in range(self.count)]
        return context.make_tuple(builder, self.type(number), parts)


def _word(builder: Builder, plan: Value, row: int, column: int = 0) -> Value:
    return builder.load(builder.gep(plan, [_WORD(row * WIDTH + column)]))


class KernelCall:
    """`kernel` with these arguments; another kernel runs it by `call(plan, like)`.

    row: of its address in a plan
    gives: whether it returns a bool, True if its tables fit; otherwise it returns nothing

    `like` is any array of the sound's type. Declaring both the types and the values of the
    arguments here keeps them consistent.
    """

    def __init__(self, row: int, kernel: Kernel, *given: Kernel, gives: bool = False) -> None:
        self.row = row
        self.kernel = kernel
        self.given = given
        self.result = types.boolean if gives else types.none
        self.call = _call(self)

    def types(self, number: Kind) -> tuple[Kind, ...]:
        """The argument types, for sound of the type `number`."""
        return tuple(one.type(number) for one in self.given)

    def address(self, dtype: np.dtype[np.floating]) -> int:
        """The address of the compiled form for sound of `dtype`; it never changes."""
        given = self.types(types.float32 if dtype == np.float32 else types.float64)
        return compiled_address(self.kernel, given, self.result)


def _call(callee: KernelCall) -> Value:
    def call(typing: Context, plan: Kind, like: Kind) -> Typed:
        kinds = callee.types(like.dtype)

        def code(context: Context, builder: Builder, signature: Kind, values: Values) -> Value:
            rows = context.make_array(plan)(context, builder, values[0]).data
            given = [one.value(context, builder, rows, like.dtype) for one in callee.given]
            address = _word(builder, rows, callee.row)
            return call_at(context, builder, address, callee.result, kinds, given)

        return callee.result(plan, like), code

    return intrinsic(call)


def _copied(typing: Context, to: Kind, start: Kind, count: Kind) -> Typed:
    """Copy `count` bytes from the address `start` to the address `to`."""

    def code(context: Context, builder: Builder, signature: Kind, values: Values) -> Value:
        pointer = ir.IntType(8).as_pointer()
        target, source = (builder.inttoptr(value, pointer) for value in values[:2])
        copy = builder.module.declare_intrinsic("llvm.memcpy", [pointer, pointer, values[2].type])
        builder.call(copy, [target, source, values[2], ir.IntType(1)(0)])
        return context.get_dummy_value()

    return types.void(to, start, count), code


copied: Kernel = intrinsic(_copied)


class Calls(dict[str, KernelCall]):
    """Kernels that run by a plan with these `plan_rows`, by the names of their rows.

    others: more of them, by the same rows

    Attributes: `arguments`, four functions `f(axes, *names)` that give arguments from the rows of
    these names: of the sound's number type, of integers, of float64, and of booleans.
    """

    def __init__(self, rows: Any, others: Mapping[str, KernelCall] = MappingProxyType({})) -> None:
        super().__init__(others)
        self.rows = rows
        numbers = None, types.int64, types.float64, types.boolean
        self.arguments = tuple(partial(self._arguments, kind) for kind in numbers)

    def _arguments(self, kind: Kind, axes: int | None, *names: str) -> tuple[KernelArgument, ...]:
        return tuple(KernelArgument(getattr(self.rows, name), axes, kind) for name in names)

    def add(self, name: str, kernel: Kernel, *given: Kernel, gives: bool = False) -> Value:
        """Add a `KernelCall` of the row `name`; returns its `call(plan, like)`."""
        self[name] = KernelCall(getattr(self.rows, name), kernel, *given, gives=gives)
        return self[name].call


@kernel
def join(plan: Array, past: int, new: int, both: int, size: int) -> None:
    """Copy rows `past` and `new` (row, time) one after the other into `both`; size: of a number.

    The rest of `both` is unchanged.
    """
    before, length = plan[past, 2] * size, plan[new, 2] * size
    for r in range(plan[both, 1]):
        to = plan[both, 0] + r * plan[both, 2] * size
        copied(to, plan[past, 0] + r * before, before)
        copied(to + before, plan[new, 0] + r * length, length)


@kernel
def leave(plan: Array, both: int, past: int, size: int) -> None:
    """Copy the end of `both` into `past`."""
    whole, length = plan[both, 2] * size, plan[past, 2] * size
    for r in range(plan[both, 1]):
        end = plan[both, 0] + (r + 1) * whole
        copied(plan[past, 0] + r * length, end - length, length)
