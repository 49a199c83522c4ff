"""Combining stages: in series, in parallel, and buffered to accept chunks of any length."""

from collections import namedtuple
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import reduce
from math import lcm
from numbers import Integral
from typing import Any, Never

import torch
from torch import Tensor, nn

from amt_stream.core.made_once import made_once
from amt_stream.dsp.contract import RULES
from amt_stream.dsp.functional.compiler.private_torch import hooked
from amt_stream.dsp.functional.compiler.threads import one_thread
from amt_stream.dsp.pointwise import PointwiseModule
from amt_stream.dsp.streaming import Outputs, Shape, Shapes, Stage, State, output, with_time


def prefixed(name: str, state: Mapping[str, Tensor]) -> State:
    """The state of a stage under its name, for the flat state of all."""
    return {f"{name}/{key}": value for key, value in state.items()}


_LAYOUTS: dict[tuple[str, ...], dict[str, list[tuple[str, str]]]] = {}


def parted(state: State) -> dict[str, State]:
    """The state of each named stage, from the flat state of all."""
    keys = tuple(state)
    layout = _LAYOUTS.get(keys)
    # Cached, because parsing the keys takes longer than a short stage runs.
    if layout is None:
        layout = {}
        for key in keys:
            name, _, rest = key.partition("/")
            layout.setdefault(name, []).append((key, rest))
        # Complete, because another thread may take it.
        _LAYOUTS[keys] = layout
    return {name: {rest: state[key] for key, rest in own} for name, own in layout.items()}


REMEDIES = {
    ("power", "dB"): "for Excitation take Moore2016ExcitationPattern, which gives dB",
    ("dB", "power"): "for Moore2016ExcitationPattern take Excitation, which gives power",
}
"""What to do if a stage gives one quantity and the next takes another."""


def _as_stages(
    kind: str, unnamed: Sequence[object], modules: Mapping[str, nn.Module], serial: bool
) -> dict[str, Stage]:
    """Convert plain modules to stages, with time on the axis where the other stages have it.

    Raises TypeError for a module that cannot be a stage, and for stages without names.
    """
    if unnamed:
        raise TypeError(
            f"{kind} takes its stages by name, {kind}(first=..., second=...), given "
            f"{', '.join(type(module).__name__ for module in unnamed)} without one"
        )
    if not modules:
        raise ValueError(f"{kind} needs at least one stage: name=stage")
    given = (m for m in modules.values() if isinstance(m, Stage))
    time_dim = next((stage.time_dim for stage in given), -1)
    stages: dict[str, Stage] = {}
    for name, module in modules.items():
        if isinstance(module, Stage):
            stages[name] = module
            if serial and isinstance(module.out_time_dim, int):
                time_dim = module.out_time_dim
        elif isinstance(module, nn.Module):
            try:
                stages[name] = PointwiseModule(module, time_dim)
            except TypeError as refusal:
                if any(isinstance(part, Stage) for part in module.modules()):
                    raise TypeError(
                        f"{kind}: {name!r} is a {type(module).__name__} with stages in it, which "
                        f"would start each block from silence: put them into a Chain(name=stage, "
                        "...), which keeps their state"
                    ) from refusal
                raise TypeError(f"{kind}: {name!r}: {refusal}") from refusal
        else:
            raise TypeError(
                f"{kind}: {name!r} is a {type(module).__name__}, not a Stage or a torch module"
            )
    return stages


class _Compound(Stage):
    """Named stages combined into one, in the widest dtype among them.

    The members are fixed, because state, latency and block size follow from them.
    """

    def __init__(self, stages: Mapping[str, Stage]) -> None:
        super().__init__()
        for name, stage in stages.items():
            super().add_module(name, stage)
        # The widest dtype, so that no stage loses precision.
        dtype = reduce(torch.promote_types, (stage.dtype for stage in stages.values()))
        probe = self._probe.to(next(iter(stages.values())).device)
        self.register_buffer("_probe", probe, persistent=False)
        self.to(dtype)
        self._names = tuple(stages)
        self.keeps_double = tuple(f"{n}/{key}" for n, s in stages.items() for key in s.keeps_double)

    def stages(self) -> dict[str, Any]:
        """The stages by name, in order."""
        return {name: self._modules[name] for name in self._names}

    def beginning(self, state: State) -> State:
        parts, after = parted(state), dict(state)
        for name, stage in self.stages().items():
            after |= prefixed(name, stage.beginning(parts.get(name, {})))
        return after

    def _say_of_members(self, serial: bool) -> None:
        """Derive the contract from the members, except for what the class declares itself."""
        members = self.stages().values()
        longest = sum if serial else max
        follows: dict[str, object] = {
            "fs": _rate(type(self).__name__, self.stages(), serial),
            "input_unit": _first(member.input_unit for member in members),
            "channels": _first(member.channels for member in members),
            "per_channel": any(member.per_channel for member in members),
            "settle_s": longest(member.settle_s for member in members),
            "memory_s": longest(member.memory_s for member in members),
            "tail_s": longest(member.tail_s for member in members),
            "frames_stand_for_end": any(member.frames_stand_for_end for member in members),
        }
        above_stage = type(self).__mro__[: type(self).__mro__.index(Stage)]
        for name in RULES:
            if not any(name in vars(kind) for kind in above_stage):
                setattr(self, name, follows[name])

    def add_module(self, name: str, module: nn.Module | None) -> None:
        """Raises AttributeError: the members are fixed."""
        raise self._refusal("added", name)

    def __setattr__(self, name: str, value: object) -> None:
        if isinstance(value, nn.Module):
            raise self._refusal("set", name)
        if name in vars(self).get("_modules", {}):
            raise self._refusal("taken out", name)
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        if name in self._modules:
            raise self._refusal("taken out", name)
        super().__delattr__(name)

    def _refusal(self, done: str, name: str) -> AttributeError:
        kind = "Parallel" if isinstance(self, Parallel) else "Chain"
        return AttributeError(
            f"{type(self).__name__}: {name!r} cannot be {done}, because state, latency and block "
            f"follow from the stages: make a new one, {kind}(**{{**old.stages(), {name!r}: stage}})"
        )


def _first(values: Iterable[object]) -> Any:
    """The first value that is not None."""
    return next((value for value in values if value is not None), None)


def _rate(kind: str, stages: Mapping[str, Stage], serial: bool) -> float | None:
    """The sampling rate of the members, referred to the input; None if no member has one.

    A stage with time on another axis takes frames; its `fs` is that of the audio behind the frames
    and is ignored. Raises ValueError if two rates differ.
    """
    found: tuple[float, str] | None = None
    ratio = Fraction(1)
    for name, stage in stages.items():
        if stage.fs is not None and stage.time_dim == -1:
            rate = float(stage.fs / ratio)
            if found is None:
                found = rate, name
            elif abs(rate - found[0]) > 1e-6 * rate:
                due = float(found[0] * ratio)
                raise ValueError(
                    f"{kind}: {name!r} was built for {stage.fs:g} Hz and gets {due:g} Hz, as "
                    f"{found[1]!r} was built for {stages[found[1]].fs:g} Hz: build it with "
                    f"fs={due:g}, or put a Resample before it"
                )
        if serial:
            ratio *= stage.ratio
    if found is None:
        return None
    return int(found[0]) if found[0].is_integer() else found[0]


class Chain(_Compound):
    """Stages in series: `Chain(name=stage, ...)`.

    Only the last stage may return a NamedTuple. Latencies add up, referred to the input rate; the
    block size is the least common multiple. A plain torch module that treats each instant alone,
    such as `nn.PReLU(32)`, becomes a `PointwiseModule`. To change a stage, make a new chain:
    `Chain(**{**chain.stages(), "name": stage})`.

    The contract follows from the stages: `fs`, `input_unit` and `channels` come from the first
    stage that declares them, `settle_s`, `memory_s` and `tail_s` are sums, and `per_channel` and
    `frames_stand_for_end` are true if any stage's is. Set these attributes to override.

    Raises TypeError for an object that is no stage, ValueError for stages whose time axes, sampling
    rates or quantities do not match.
    """

    def __init__(self, *unnamed: Never, **modules: nn.Module) -> None:
        stages = _as_stages("Chain", unnamed, modules, serial=True)
        super().__init__(stages)
        ratio, latency, block = Fraction(1), Fraction(0), 1
        previous: Stage | None = None
        for name, stage in stages.items():
            if previous is not None:
                if isinstance(previous.out_time_dim, tuple):
                    raise ValueError(
                        f"Chain: the stage before {name!r} returns a NamedTuple, which only "
                        "the last stage may do"
                    )
                if previous.out_time_dim != stage.time_dim:
                    raise ValueError(
                        f"Chain: {name!r} has time on axis {stage.time_dim}, the stage before it "
                        f"puts it on axis {previous.out_time_dim}"
                    )
                given, taken = previous.out_quantity, stage.in_quantity
                if None not in (given, taken) and given != taken:
                    remedy = REMEDIES.get((str(given), str(taken)), "put a stage between them")
                    raise ValueError(
                        f"Chain: {name!r} takes {taken}, the stage before it gives {given}: "
                        f"{remedy}"
                    )
            latency += stage.latency / ratio
            # A block of n inputs arrives here as n * ratio, a multiple of this block size.
            need = stage.block_size / ratio
            block = lcm(block, need.numerator)
            ratio *= stage.ratio
            previous = stage
        assert previous is not None
        first = next(iter(stages.values()))
        self.ratio, self.latency, self.block_size = ratio, latency, block
        self.time_dim, self.out_time_dim = first.time_dim, previous.out_time_dim
        self.in_quantity, self.out_quantity = first.in_quantity, previous.out_quantity
        self._say_of_members(serial=True)

    def initial_state(self, shape: Shape) -> State:
        self.check_shape(shape)
        state: State = {}
        for name, stage in self.stages().items():
            state |= prefixed(name, stage.initial_state(shape))
            shape = stage.out_shape(shape)
        return state

    def check_shape(self, shape: Sequence[int]) -> None:
        """Raise ValueError if a stage does not take what it gets from `shape` (without time)."""
        super().check_shape(shape)
        for stage in self.stages().values():
            stage.check_shape(shape)
            shape = stage.out_shape(tuple(shape))

    def step(self, x: Tensor, state: State) -> tuple[Outputs, State]:
        parts = parted(state)
        after: State = {}
        for name, stage in self.stages().items():
            x, part = stage.hooked_step(x, parts.get(name, {}))
            for key, value in part.items():
                after[f"{name}/{key}"] = value
        return x, after

    def advance(self, x: Tensor, state: State) -> Outputs:
        # A subclass may have another step.
        if hooked(self) or type(self).step is not Chain.step:
            return super().advance(x, state)
        parts = parted(state)
        with one_thread(x):
            for name, stage in self.stages().items():
                x = stage.advance(x, parts.get(name, {}))
        return x

    def ending(self, state: State, samples: int) -> State:
        parts, after = parted(state), dict(state)
        ratio, latency = Fraction(1), Fraction(0)
        for name, stage in self.stages().items():
            # In whole numbers, as the length of an exported program may be a symbol.
            whole, shift = latency.denominator, latency.numerator
            before = (samples * whole + shift) * ratio.numerator // (whole * ratio.denominator)
            after |= prefixed(name, stage.ending(parts.get(name, {}), before))
            latency += stage.latency / ratio
            ratio *= stage.ratio
        return after

    def out_shape(self, shape: Shape) -> Shapes:
        return reduce(lambda s, stage: stage.out_shape(s), self.stages().values(), shape)


_KINDS: dict[tuple[str, ...], Any] = {}


@made_once
def _kind(names: tuple[str, ...]) -> Any:
    return output(namedtuple("Outputs", names), f"Outputs({', '.join(names)})")


def _outputs(names: tuple[str, ...]) -> Any:
    """The NamedTuple class with these fields, always the same one."""
    # In a dict, because torch.compile ignores caches and would create the class inside the graph.
    if names not in _KINDS:
        _KINDS[names] = _kind(names)
    return _KINDS[names]


class Parallel(_Compound):
    """Stages of equal ratio in parallel on one input; their outputs, aligned, in a NamedTuple.

    Early outputs are delayed to match the latest. Raises ValueError if such a delay is not a whole
    number of outputs, or if the stages are for different rates. A plain torch module becomes a
    `PointwiseModule`. The members are fixed.
    """

    def __init__(self, *unnamed: Never, **modules: nn.Module) -> None:
        stages = _as_stages("Parallel", unnamed, modules, serial=False)
        super().__init__(stages)
        first_name, first = next(iter(stages.items()))
        self.ratio, self.time_dim = first.ratio, first.time_dim
        self.latency = max(stage.latency for stage in stages.values())
        self.block_size = lcm(*(stage.block_size for stage in stages.values()))
        for name, stage in stages.items():
            if (stage.ratio, stage.time_dim) != (first.ratio, first.time_dim):
                raise ValueError(
                    f"Parallel: {name!r} has ratio {stage.ratio} and time on axis "
                    f"{stage.time_dim}, {first_name!r} {first.ratio} and {first.time_dim}: run "
                    "stages of different rates in separate streams and align them by time"
                )
            if isinstance(stage.out_time_dim, tuple):
                raise ValueError(f"Parallel: {name!r} returns a NamedTuple: put it last in a Chain")
            early = self.latency - stage.latency
            late = early * self.ratio
            if late.denominator != 1:
                odd = early % (1 / self.ratio)
                remedy = (
                    f"insert a Delay({odd}) before it"
                    if odd.denominator == 1
                    else "bring its latency to a whole number of samples"
                )
                raise ValueError(f"Parallel: {name!r} would have to wait {late} outputs: {remedy}")
            wait = Delay(int(late), stage.out_time_dim)
            nn.Module.add_module(self, f"{name}+wait", wait.to(self.device, self.dtype))
        self._say_of_members(serial=False)
        _outputs(self._names)

    @property
    def out_time_dim(self) -> Any:
        return _outputs(self._names)(*(s.out_time_dim for s in self.stages().values()))

    def _branches(self) -> list[tuple[str, Any, str, Any]]:
        """Each stage and its delay, with the names of their state."""
        waits = [f"{name}+wait" for name in self._names]
        return [
            (name, self._modules[name], wait, self._modules[wait])
            for name, wait in zip(self._names, waits, strict=True)
        ]

    def initial_state(self, shape: Shape) -> State:
        self.check_shape(shape)
        state: State = {}
        for name, stage, waiting, wait in self._branches():
            state |= prefixed(name, stage.initial_state(shape))
            state |= prefixed(waiting, wait.initial_state(stage.out_shape(shape)))
        return state

    def check_shape(self, shape: Sequence[int]) -> None:
        """Raise ValueError if one of the stages does not take `shape` (without time)."""
        super().check_shape(shape)
        for stage in self.stages().values():
            stage.check_shape(shape)

    def step(self, x: Tensor, state: State) -> tuple[Outputs, State]:
        parts = parted(state)
        after: State = {}
        outputs = []
        for name, stage, waiting, wait in self._branches():
            y, part = stage.hooked_step(x, parts.get(name, {}))
            y, late = wait.step(y, parts[waiting])
            outputs.append(y)
            after |= prefixed(name, part) | prefixed(waiting, late)
        return _outputs(self._names)(*outputs), after

    def advance(self, x: Tensor, state: State) -> Outputs:
        # A subclass may have another step.
        if hooked(self) or type(self).step is not Parallel.step:
            return super().advance(x, state)
        return self.advanced(x, state)

    def advanced(self, x: Tensor, state: State) -> Any:
        """The outputs of `Parallel.step`, each stage updating its part of `state` in place."""
        parts = parted(state)
        outputs = []
        with one_thread(x):
            for name, stage, waiting, wait in self._branches():
                y = stage.advance(x, parts.get(name, {}))
                outputs.append(wait.advance(y, parts[waiting]) if wait.samples else y)
        return _outputs(self._names)(*outputs)

    def ending(self, state: State, samples: int) -> State:
        parts, after = parted(state), dict(state)
        for name, stage in self.stages().items():
            after |= prefixed(name, stage.ending(parts.get(name, {}), samples))
        return after

    def out_shape(self, shape: Shape) -> Shapes:
        return _outputs(self._names)(*(s.out_shape(shape) for s in self.stages().values()))


class Delay(Stage):
    """The input delayed by `samples`, preceded by silence."""

    def __init__(self, samples: int, time_dim: int = -1) -> None:
        super().__init__()
        given: object = samples
        if not isinstance(given, Integral) or samples < 0:
            raise ValueError(f"Delay takes a whole number, 0 or more samples, given {samples!r}")
        self.samples = int(samples)
        self.latency = Fraction(samples)
        self.time_dim = self.out_time_dim = time_dim

    def initial_state(self, shape: Shape) -> State:
        return {"past": self.state_like("past", with_time(shape, self.time_dim, self.samples))}

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        joined = torch.cat([state["past"], x], self.time_dim)
        length = x.shape[self.time_dim]
        y = joined.narrow(self.time_dim, 0, length)
        return y, {"past": joined.narrow(self.time_dim, length, self.samples)}
