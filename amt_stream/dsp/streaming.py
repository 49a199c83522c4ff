"""The streaming contract: a `Stage` is pure signal processing, a `Stream` is its running state."""

import sys
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeAlias, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from amt_stream.dsp.checkpoints import Checkpointed
from amt_stream.dsp.contract import InputUnit, refuse, refuse_class
from amt_stream.dsp.functional.compiler.private_torch import autocast, hooked, register_namedtuple
from amt_stream.dsp.functional.compiler.threads import one_thread
from amt_stream.dsp.hooks import with_hooks

State = dict[str, Tensor]
"""The state of a stage between two blocks; keys, shapes and dtypes never change."""

Shape = tuple[int, ...]

Outputs: TypeAlias = Any
"""The output of a stage: a tensor or a NamedTuple of tensors, typed by each stage."""

Shapes: TypeAlias = Any
"""Shapes of `Outputs`: one shape or a NamedTuple of shapes."""

Sizes = int | tuple[int, ...] | range | None
"""Allowed lengths of an axis: one, several, a range without end, or None for any."""

Kind = TypeVar("Kind", bound=type)

if TYPE_CHECKING:
    from typing_extensions import TypeVar as _TypeVar

    Y_co = _TypeVar("Y_co", covariant=True, default=Any)
else:
    Y_co = TypeVar("Y_co", covariant=True)


def output(kind: Kind, name: str = "") -> Kind:
    """Decorator of a stage's NamedTuple output: registers its name for `torch.export.save`."""
    register_namedtuple(kind, serialized_type_name=f"amt_stream.{name or kind.__name__}")
    return kind


def fields(y: Outputs) -> tuple[Tensor, ...]:
    """The tensors of an output: the tensor itself, or the fields that are not None."""
    return (y,) if isinstance(y, Tensor) else tuple(v for v in y if v is not None)


def map_fields(f: Callable[..., Tensor], y: Outputs, *others: Any) -> Outputs:
    """Apply `f` to a tensor, or to each field of NamedTuples that is not None."""
    if not isinstance(y, tuple):
        return f(y, *others)
    mapped: list[Any] = [
        None if v is None else f(v, *rest) for v, *rest in zip(y, *others, strict=True)
    ]
    return type(y)(*mapped)


def joined(first: object, *others: object, dims: object) -> Outputs:
    """Concatenate outputs, each field along its time axis."""
    return map_fields(lambda v, dim, *more: torch.cat((v, *more), dim), first, dims, *others)


def without(shape: Sequence[int], dim: int) -> Shape:
    """`shape` without its axis `dim`."""
    at = dim % len(shape)
    return (*shape[:at], *shape[at + 1 :])


def with_time(shape: Sequence[int], dim: int, length: int) -> Shape:
    """`shape` with an axis of `length` inserted, as axis `dim` (negative) of the result."""
    at = len(shape) + 1 + dim
    return (*shape[:at], length, *shape[at:])


def pad_end(x: Tensor, dim: int, amount: int) -> Tensor:
    """`x` followed by `amount` zeros."""
    if not amount:
        return x
    zeros = x.new_zeros(with_time(without(x.shape, dim), dim, amount))
    return torch.cat([x, zeros], dim)


def _whole_blocks(x: Tensor, dim: int, size: int) -> Tensor:
    """`x` zero-padded at the end to a whole number of blocks of `size`."""
    length = x.shape[dim]
    if not torch.compiler.is_compiling():
        return pad_end(x, dim, -length % size)
    # One graph for all lengths: a data-dependent number of zeros would add a guard on the length.
    return x if size == 1 else pad_end(x, dim, size).narrow(dim, 0, length + -length % size)


def outputs_of(length: int, ratio: Fraction) -> int:
    """ceil(length * ratio), in integers because torch.compile and torch.export lack fractions."""
    return -(-length * ratio.numerator // ratio.denominator)


def _first_of(y: Tensor, dim: int, count: int) -> Tensor:
    """The first `count` values of `y` along an axis."""
    # In a graph, copy: a view would add a guard on whether it covers all of `y`.
    return (torch.narrow_copy if torch.compiler.is_compiling() else torch.narrow)(y, dim, 0, count)


def at_least(size: int) -> range:
    """`Sizes` of `size` or more."""
    return range(size, sys.maxsize)


def _size_words(sizes: Sizes) -> str:
    if isinstance(sizes, range):
        return f"{sizes.start} or more"
    if isinstance(sizes, tuple):
        return " or ".join(map(str, sizes))
    return "any number" if sizes is None else str(sizes)


def as_given(y: Tensor, x: Tensor) -> Tensor:
    """`y` in the dtype of `x`, unless `x` holds integers."""
    return y.to(x.dtype) if x.is_floating_point() else y


class Stage(Checkpointed):
    """A piece of signal processing that can run block by block.

    A subclass defines `initial_state` and `step` and declares these attributes:

    block_size: `step` takes multiples of this many input samples or frames
    ratio: output length / input length
    latency: in input samples; output n stands for input position n / ratio - latency
    time_dim, out_time_dim: time axis of input and output, negative; for a NamedTuple output the
        same NamedTuple holding ints
    in_quantity, out_quantity: what the numbers stand for, such as "power" or "dB", if a chain could
        confuse two quantities; None for any
    keeps_double: names of buffers and state entries that stay float64 in a float32 module
    fixed_axes: required `Sizes` of input axes other than time, by negative axis, time included:
        {-1: 150, -3: (1, 2)}; None: any length. `check_shape` refuses every other input
    shape_remedy: advice for a refused shape; by default the required layout

    A caller that runs the stage as a model, such as `Engine`, also reads these. The defaults are
    safe for an unknown stage:

    fs: sampling rate in Hz of the audio that it was built for; None: any
    input_unit: of the audio, "pascal" or "full scale" (a fraction of it); None: irrelevant, and
        audio from a source comes in pascal
    channels: number of audio channels (axis -2 of the input) that it was built for; None: any
    per_channel: takes any number of channels, each on its own; otherwise the channels are the two
        ears of one listener, and a mono sound goes to both
    settle_s: seconds until the start from silence no longer matters
    memory_s: seconds after a fault until earlier sound, even if 50 dB louder, changes the output by
        at most 0.05 dB or phon; `settle_s` if that is longer
    tail_s: seconds after the end of a sound from which no output rises any more
    frames_stand_for_end: a frame stands for the end of its analysis window, not its start
    on_host: its step computes on the CPU on whatever device it is, so a caller leaves it there

    Raises ValueError, when a class is defined or an attribute set, for an invalid value of these.

    Integers are taken at face value; the output is floating point. NaN propagates to every output
    that depends on the sample, until the state is reset if the state depends on it too. The engine
    replaces NaN and infinity before a stage gets them.
    """

    block_size: int = 1
    ratio: Fraction = Fraction(1)
    latency: Fraction = Fraction(0)
    time_dim: int = -1
    out_time_dim: Any = -1
    in_quantity: str | None = None
    out_quantity: str | None = None
    keeps_double: tuple[str, ...] = ()
    fixed_axes: Mapping[int, Sizes] = MappingProxyType({})
    shape_remedy: str = ""

    fs: float | None = None
    input_unit: InputUnit | None = None
    channels: int | None = None
    per_channel: bool = False
    settle_s: float = 0.0
    memory_s: float = 0.0
    tail_s: float = 0.0
    frames_stand_for_end: bool = False
    on_host: bool = False

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        refuse_class(cls)

    def __setattr__(self, name: str, value: Any) -> None:
        refuse(type(self).__name__, name, value)
        super().__setattr__(name, value)

    def __init__(self) -> None:
        super().__init__()
        # An empty buffer, so that a stage without tables also has a dtype and a device.
        self.register_buffer("_probe", torch.empty(0), persistent=False)
        self._designs: dict[str, np.ndarray] = {}

    @property
    def dtype(self) -> torch.dtype:
        """Floating-point type of the stage."""
        # Directly from _buffers: see `registered`.
        return self._buffers["_probe"].dtype  # type: ignore[union-attr]

    @property
    def device(self) -> torch.device:
        """Device of the stage."""
        return self._buffers["_probe"].device  # type: ignore[union-attr]

    def initial_state(self, shape: Shape) -> State:
        """The state of silence for inputs of `shape` (without time)."""
        raise NotImplementedError(f"{type(self).__name__} must define initial_state(shape)")

    def step(self, x: Tensor, state: State) -> tuple[Outputs, State]:
        """The output of one or more whole blocks, and the next state. Changes no argument."""
        raise NotImplementedError(f"{type(self).__name__} must define step(x, state)")

    def beginning(self, state: State) -> State:
        """The state of a sound that begins now, after a constant input that was none.

        By default it is unchanged; a stage that reads peaks takes those of the sound alone.
        """
        return state

    def ending(self, state: State, samples: int) -> State:
        """The state of a sound that ends after so many more inputs, which zeros follow.

        By default it is unchanged; a stage that reads peaks takes those of the sound alone.
        """
        return state

    def out_shape(self, shape: Shape) -> Shapes:
        """Shape of the output (without time) for inputs of `shape`; by default the same."""
        return shape

    def hooked_step(self, x: Tensor, state: State) -> tuple[Outputs, State]:
        """`step` with this stage's hooks; containers and `Stream` call it.

        Torch runs hooks only when a module is called, but the stages of a container are stepped.
        Forward hooks see each block, `hook(stage, (x,), y)`, and may replace x or y, as in torch;
        full backward hooks work too. Hooks of all modules do not see the stages of a container.
        """
        if not hooked(self):
            return self.step(x, state)
        after: State = {}

        def step(x: Tensor) -> Outputs:
            y, state_after = self.step(x, state)
            after.update(state_after)
            return y

        return with_hooks(self, step, x), after

    def advance(self, x: Tensor, state: State) -> Outputs:
        """The output of `hooked_step`; updates `state` in place.

        `Stream` calls it without gradients. A stage may override it to save the copy.
        """
        with one_thread(x):
            y, after = self.hooked_step(x, state)
            for key, value in state.items():
                value.copy_(after[key])
        return y

    def shortcut(
        self, x: Tensor, state: State, buffers: Mapping[str, Tensor | None], hooks: Sequence[Any]
    ) -> Callable[[Tensor, Any, Any], Outputs] | None:
        """A faster call of a stream, for plain tensors of the shape of `x`: `f(x, stage, buffers)`.

        buffers, hooks: of the stream; the buffers hold `state` and nothing else

        None if there is none. It gives None, and writes nothing, if anything else differs from now,
        such as the address of a table.
        """
        return None

    def whole(self, x: Tensor) -> Outputs:
        """The output for a whole signal from silence: ceil(length * ratio) long, stateless.

        The last block is zero-padded. Differentiable; for signals that exceed memory use `Stream`
        and `Rebuffer`.
        """
        return self.whole_by(self.step, x)

    def whole_by(self, step: Callable[[Tensor, State], tuple[object, State]], x: Tensor) -> Outputs:
        """`whole` by the given step function, such as `hooked_step`."""
        x = self.sounding(x)
        length = x.shape[self.time_dim]
        with one_thread(x):
            state = self.ending(self.initial_state(without(x.shape, self.time_dim)), length)
            y, _ = step(_whole_blocks(x, self.time_dim, self.block_size), state)
        outputs = outputs_of(length, self.ratio)
        return map_fields(lambda v, dim: _first_of(v, dim, outputs), y, self.out_time_dim)

    def forward(self, x: Tensor) -> Outputs:
        """The same as `whole`."""
        return self.whole(x)

    def checked(self, x: Tensor) -> Tensor:
        """`x` in the stage's dtype.

        Raises TypeError unless `x` is a real tensor, ValueError for a shape that `check_shape`
        refuses.
        """
        x = self.converted(x)
        if x.dim() < -self.time_dim:
            raise ValueError(
                f"{type(self).__name__} takes time on axis {self.time_dim}, "
                f"which an input of shape {tuple(x.shape)} lacks"
            )
        self.check_shape(without(x.shape, self.time_dim))
        return x

    def converted(self, x: Tensor) -> Tensor:
        """`x`, of any shape, in the stage's dtype; raises TypeError as `checked` does.

        Also refuses autocast, which would silently compute in half precision.
        """
        # The usual case, checked first because it is fast.
        dtype = self.dtype
        if type(x) is Tensor and x.dtype is dtype and not autocast():
            return x
        if not isinstance(x, Tensor) or x.is_complex() or x.dtype == torch.bool:
            kind = str(x.dtype) if isinstance(x, Tensor) else type(x).__name__
            maker = {"ndarray": "torch.from_numpy(x)", "list": "torch.tensor(x)"}.get(kind)
            remedy = f": give {maker}" if maker else ""
            raise TypeError(f"{type(self).__name__} takes a real tensor, not {kind}{remedy}")
        # The meta device has no autocast state.
        if autocast() and (kind := x.device.type) != "meta" and torch.is_autocast_enabled(kind):
            raise TypeError(
                f"{type(self).__name__} does not run under autocast, which would take half "
                f"precision: call it within torch.autocast({kind!r}, enabled=False)"
            )
        return x if x.dtype == dtype else x.to(dtype)

    def sounding(self, x: Tensor) -> Tensor:
        """`checked(x)`; raises ValueError if it has no samples."""
        x = self.checked(x)
        if not x.shape[self.time_dim]:
            raise ValueError(
                f"{type(self).__name__} takes at least one sample, given shape {tuple(x.shape)}"
            )
        return x

    def check_shape(self, shape: Sequence[int]) -> None:
        """Raise ValueError if the stage does not take input of `shape` (without time)."""
        if len(shape) + 1 < -self.time_dim:
            raise ValueError(
                f"{type(self).__name__} takes time on axis {self.time_dim}, which an input of "
                f"shape {tuple(shape)} without time lacks"
            )
        self.check_axes(with_time(shape, self.time_dim, 1), timed=True)

    def check_axes(self, shape: Sequence[int], timed: bool = False) -> None:
        """Raise ValueError if an axis of `shape` is empty or violates `fixed_axes`.

        timed: whether `shape` has a time axis, for the message
        """
        for axis, sizes in self.fixed_axes.items():
            size = shape[axis] if -axis <= len(shape) else None
            if size is None or not (
                sizes is None or (size == sizes if isinstance(sizes, int) else size in sizes)
            ):
                given = "none" if size is None else size
                remedy = self.shape_remedy or f"give {self._layout_words()}"
                raise ValueError(
                    f"{type(self).__name__} takes {_size_words(sizes)} on axis {axis}, given "
                    f"{given} in shape {self._shape_words(shape, timed)}: {remedy}"
                )
        if any(size < 1 for size in shape):
            raise ValueError(
                f"{type(self).__name__} takes no empty axis, given shape "
                f"{self._shape_words(shape, timed)}: give 1 or more on each"
            )

    def _shape_words(self, shape: Sequence[int], timed: bool) -> str:
        sizes = [str(size) for size in shape]
        if timed:
            sizes[self.time_dim] = "time"
        return f"({', '.join(sizes)}{',' * (len(sizes) == 1)})"

    def _layout_words(self) -> str:
        """The shapes that the stage takes, in words."""
        first = min(self.time_dim, *self.fixed_axes)
        sizes = {axis: _size_words(sizes) for axis, sizes in self.fixed_axes.items()}
        axes = ["time" if k == self.time_dim else sizes.get(k, "any") for k in range(first, 0)]
        return f"(..., {', '.join(axes)})"

    def register_table(self, name: str, values: np.ndarray) -> None:
        """Register a design table as a buffer that the state_dict omits.

        The float64 `values` are kept, so that `.double()` restores them exactly.
        """
        self._designs[name] = values
        self.register_buffer(name, self._table(name), persistent=False)

    def register_constant(self, name: str, values: np.ndarray, learnable: bool) -> None:
        """Register `values` as a parameter if `learnable`, else as a table."""
        if learnable:
            fixed = torch.float64 if name in self.keeps_double else self.dtype
            fresh = torch.tensor(values, dtype=fixed, device=self.device)
            self.register_parameter(name, nn.Parameter(fresh))
        else:
            self.register_table(name, values)

    def design(self, name: str) -> np.ndarray:
        """The exact values of a registered table, also on the meta device."""
        return self._designs[name]

    def registered(self, *names: str) -> Any:
        """The tables of these names, in a list; torch takes ten times as long for attributes."""
        buffers = self._buffers
        return [buffers[name] for name in names]

    def _table(self, name: str) -> Tensor:
        values = torch.from_numpy(np.array(self._designs[name], order="C"))
        fixed = name in self.keeps_double or not values.is_floating_point()
        return values.to(self.device, None if fixed else self.dtype)

    def _as_designed(self, name: str) -> bool:
        buffer = self._buffers[name]
        return buffer is None or buffer.is_meta or torch.equal(buffer, self._table(name))

    def state_like(self, key: str, shape: Shape, fill: float = 0.0) -> Tensor:
        """A new state tensor filled with `fill`, in the dtype of state entry `key`."""
        dtype = torch.float64 if key in self.keeps_double else self.dtype
        return torch.full(shape, fill, dtype=dtype, device=self.device)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> "Stage":
        refuse_dtype(self, fn(self._probe).dtype)
        kept = {name: self._buffers[name] for name in self.keeps_double if name in self._buffers}
        # A table that the user changed must not be restored from its design.
        another = fn(self._probe).dtype != self.dtype
        changed = {name for name in self._designs if another and not self._as_designed(name)}
        was = self._probe
        super()._apply(fn, recurse)
        if self.dtype != was.dtype or was.is_meta:
            for name in set(self._designs) - changed:
                self._buffers[name] = self._table(name)
        for name, buffer in kept.items():
            if buffer is not None and not (was.is_meta and name in self._designs):
                self._buffers[name] = carried(buffer, fn)
        return self


class Pointwise(Stage):
    """A memoryless stage that treats each instant alone; a subclass defines `transform`.

    Called directly it takes an input of any length, also one without a time axis.
    """

    def transform(self, x: Tensor) -> Tensor:
        """The output for `x` in the stage's dtype, of the same length."""
        raise NotImplementedError(f"{type(self).__name__} must define transform(x)")

    def initial_state(self, shape: Shape) -> State:
        return {}

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        return self.transform(x), state

    def forward(self, x: Tensor) -> Outputs:
        """`transform(x)`, in the dtype of `x` if that is floating point."""
        given = self.converted(x)
        self.check_axes(given.shape)
        return as_given(self.transform(given), x)


def carried(buffer: Tensor, fn: Callable[[Tensor], Tensor]) -> Tensor:
    """`buffer` moved to the device of `fn`, in its own dtype."""
    there = fn(buffer)
    return there.to(buffer.dtype) if buffer.is_meta else buffer.to(there.device)


def refuse_dtype(module: nn.Module, dtype: torch.dtype) -> None:
    """Raise TypeError unless `dtype` is float32 or float64."""
    if dtype not in (torch.float32, torch.float64):
        raise TypeError(
            f"{type(module).__name__} does not run in {dtype}: recursions and levels need "
            "float32 or float64"
        )


class Step(Protocol[Y_co]):
    """Type of `step` for a stage with one output type: `step: Step[T]` in the class body."""

    def __call__(self, x: Tensor, state: State) -> tuple[Y_co, State]: ...


class GivesOutput(Generic[Y_co]):
    """Base for type checkers of what gives one type: `class A(GivesOutput[T], Chain)`."""

    if TYPE_CHECKING:
        step: Step[Y_co]
        __call__: Callable[..., Y_co]
