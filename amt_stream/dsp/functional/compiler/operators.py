"""Recurrences as torch operators, which torch.compile and torch.export do not unroll."""

from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

import torch
from torch import Tensor

from amt_stream.dsp.functional.compiler.dispatch import compilable
from amt_stream.dsp.functional.compiler.private_torch import with_autograd

F = TypeVar("F", bound=Callable[..., Any])


def operator(like: Callable[..., Any]) -> Callable[[F], F]:
    """Decorator that makes a recurrence one operator in the graphs of torch.compile and export.

    Otherwise they would unroll its loop over time. A normal call runs the function itself. The
    operator's gradient is the function's, recomputed from the inputs. A program that loads an
    exported graph must first run `from amt_stream.dsp.stages import *`, which registers operators.
    The operator takes and gives the parts of tuples, such as NamedTuples of tables, one by one.

    like: gives, for the same arguments, new tensors with the shapes and dtypes of the output
    """

    def decorate(f: F) -> F:
        name = f"amt_stream::{f.__name__}"
        takes, gives, prototype = _layouts(f)
        schema = torch.library.infer_schema(prototype, mutates_args=())

        def parts_of(function: Callable[..., Any], given: Iterable[object]) -> Any:
            return _outputs(function, takes, gives, given)

        def apart(*given: object) -> Any:
            # Torch requires outputs that share no memory with an input or each other.
            y = parts_of(f, given)
            return tuple(_own(v) for v in y) if isinstance(y, tuple) else _own(y)

        def gradients(slopes: list[Tensor | None], *given: object) -> list[Tensor]:
            with with_autograd(), torch.enable_grad():
                inputs = [_leaf(v) for v in given]
                y = parts_of(f, inputs)
                pairs = zip(y if isinstance(y, tuple) else (y,), slopes, strict=True)
                reached = [(v, s) for v, s in pairs if v.requires_grad and s is not None]
                ends, along = zip(*reached, strict=True)
                learners = list(_learners(inputs))
                found = torch.autograd.grad(ends, learners, along, allow_unused=True)
            return [
                torch.zeros_like(v) if slope is None else _own(slope)
                for v, slope in zip(learners, found, strict=True)
            ]

        def keep(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
            ctx.save_for_backward(*(v for v in inputs if isinstance(v, Tensor)))
            ctx.others = [None if isinstance(v, Tensor) else (v,) for v in inputs]

        def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor | None, ...]:
            saved = iter(ctx.saved_tensors)
            inputs = [next(saved) if other is None else other[0] for other in ctx.others]
            found = iter(back(list(slopes), *inputs))
            return tuple(next(found) if _learns(v) else None for v in inputs)

        op = torch.library.custom_op(name, apart, mutates_args=(), schema=schema)
        op.register_fake(lambda *given: parts_of(like, given))
        arguments = schema[1 : schema.index(") ->")]
        back = torch.library.custom_op(
            f"{name}_backward",
            gradients,
            mutates_args=(),
            schema=f"(Tensor?[] slopes, {arguments}) -> Tensor[]",
        )
        back.register_fake(lambda slopes, *given: [v.new_empty(v.shape) for v in _learners(given)])
        op.register_autograd(backward, setup_context=keep)

        @wraps(f)
        def chosen(*given: object, **named: object) -> Any:
            if not torch.compiler.is_compiling():
                return f(*given, **named)
            y = op(*_inputs(takes, given), **named)
            return y if gives is None else _joined(gives, list(y))

        return chosen  # type: ignore[return-value]

    return decorate


def on_host(like: Callable[..., Any]) -> Callable[[F], F]:
    """Decorator that makes an operator of a function that runs on the CPU alone, with no gradient.

    It takes tensors of any device, copies them to the CPU, and gives its output on the device of
    the first. It works in graphs and transforms too, as `operator` does; its output is constant to
    all of them.

    like: as for `operator`
    """

    def decorate(f: F) -> F:
        takes, gives, prototype = _layouts(f)

        def parts_on_host(*given: Tensor) -> Any:
            device = given[0].device
            y = _outputs(f, takes, gives, (v.cpu() for v in given))
            return tuple(v.to(device) for v in y) if isinstance(y, tuple) else y.to(device)

        schema = torch.library.infer_schema(prototype, mutates_args=())
        op = torch.library.custom_op(
            f"amt_stream::{f.__name__}", parts_on_host, mutates_args=(), schema=schema
        )
        op.register_fake(lambda *given: _outputs(like, takes, gives, given))

        @wraps(f)
        def chosen(*given: object) -> Any:
            parts = [v.detach() for v in _inputs(takes, given)]
            if compilable(*parts):
                return f(*_arguments(takes, parts))
            y = op(*parts)
            return y if gives is None else _joined(gives, list(y))

        return chosen  # type: ignore[return-value]

    return decorate


Layout = Any
"""None for a single value; for a tuple, what makes it of its parts, and their layouts."""


def _layout(kind: Any, singles: list[Any]) -> Layout:
    """The layout of values of type `kind`; appends the types of its single values to `singles`."""
    named = hasattr(kind, "_fields")
    if not named and get_origin(kind) is not tuple:
        singles.append(kind)
        return None
    kinds = get_type_hints(kind).values() if named else get_args(kind)
    make = kind if named else lambda *parts: parts
    return make, tuple(_layout(part, singles) for part in kinds)


def _layouts(f: Callable[..., Any]) -> tuple[list[Layout], Layout, Callable[..., Any]]:
    """Layouts of the arguments and of the output of `f`, and a function of their single values."""
    kinds, takes, parameters = get_type_hints(f), [], []
    outputs: list[Any] = []
    gives = _layout(kinds.pop("return"), outputs)
    for name, kind in kinds.items():
        singles: list[Any] = []
        takes.append(_layout(kind, singles))
        whole = signature(f).parameters[name]
        parameters += [
            Parameter(f"{name}_{k}" if k else name, whole.kind, default=whole.default, annotation=s)
            for k, s in enumerate(singles)
        ]

    def prototype() -> None: ...

    result = outputs[0] if gives is None else tuple[tuple(outputs)]  # type: ignore[misc]
    prototype.__signature__ = Signature(parameters, return_annotation=result)  # type: ignore[attr-defined]
    return takes, gives, prototype


def _parts(layout: Layout, value: Any) -> list[Any]:
    if layout is None:
        return [value]
    return [one for part, v in zip(layout[1], value, strict=True) for one in _parts(part, v)]


def _inputs(takes: list[Layout], given: Iterable[object]) -> list[Any]:
    """The single values of arguments, of which those with defaults may be missing."""
    return [part for layout, v in zip(takes, given, strict=False) for part in _parts(layout, v)]


def _arguments(takes: list[Layout], given: Iterable[object]) -> list[Any]:
    """The arguments that have the single values `given`."""
    values = list(given)
    return [_joined(layout, values) for layout in takes if values]


def _outputs(
    function: Callable[..., Any], takes: list[Layout], gives: Layout, given: Iterable[object]
) -> Any:
    """The output of `function` for the single values `given`, in single values too."""
    y = function(*_arguments(takes, given))
    return y if gives is None else tuple(_parts(gives, y))


def _joined(layout: Layout, values: list[Any]) -> Any:
    """The value that has the first of `values` as its parts, which are taken away."""
    if layout is None:
        return values.pop(0)
    make, parts = layout
    return make(*[_joined(part, values) for part in parts])


def _own(y: Tensor) -> Tensor:
    return y.detach().clone(memory_format=torch.contiguous_format)


def _learns(v: object) -> bool:
    return isinstance(v, Tensor) and v.is_floating_point()


def _leaf(v: Any) -> Any:
    return v.detach().requires_grad_() if _learns(v) else v


def _learners(given: Any) -> Iterator[Tensor]:
    return (v for v in given if _learns(v))


def alike(x: Tensor, *others: Any) -> tuple[Tensor, Tensor]:
    """New tensors like the first and the last argument: `y` and `zf` of most recurrences."""
    zi = others[-1]
    return x.new_empty(x.shape), zi.new_empty(zi.shape)
