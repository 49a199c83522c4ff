"""`check_stage`: tests that a stage, built in or your own, keeps the streaming contract."""

import copy
import io
from collections.abc import Callable, Iterable
from math import ceil, floor
from typing import Any

import torch
from torch import Tensor, nn

from amt_stream.dsp.contract import check_contract
from amt_stream.dsp.stream import Rebuffer, Stream, aligned
from amt_stream.dsp.streaming import (
    Outputs,
    Shapes,
    Stage,
    fields,
    joined,
    map_fields,
    with_time,
    without,
)


def check_stage(
    make: Callable[[], Stage],
    x: Tensor,
    *,
    reference: Callable[[Tensor], object] | None = None,
    linear_phase: bool = False,
    tolerance: float = 1e-10,
) -> None:
    """Raise AssertionError, naming the rule, if a stage breaks the streaming contract.

    make: returns a new stage; copies of it are tested in float64
    x: an input with two rows or more on its first axis and eight blocks or more
    reference: computes the expected `aligned(stage, x)` from the whole signal
    linear_phase: the stage preserves the shape of a smooth pulse; check that `latency` is its delay
    tolerance: largest rounding difference, relative to the peak of the output

    Raises TypeError if `make` is a stage or does not return one.
    """
    if isinstance(make, nn.Module):
        raise TypeError(
            f"check_stage takes a function that makes new stages, given a {type(make).__name__}: "
            f"give its class, or a function, such as lambda: {type(make).__name__}(...)"
        )
    made: object = make()
    if not isinstance(made, Stage):
        raise TypeError(
            f"check_stage takes a function that makes a Stage: it gave {type(made).__name__}"
        )
    made.double()  # and copied before it runs, as its design takes longer than a check
    check = _Check(lambda: copy.deepcopy(made), x.detach().double(), tolerance)
    check.input_unchanged()
    check.any_split()
    check.resumed()
    check.rows_apart()
    check.rows_reset()
    check.causal()
    check.gradients()
    check.shapes()
    check.not_a_number()
    if reference is not None:
        got = aligned(check.stage, check.x)
        check.same(got, reference(check.x), "aligned output differs from the reference")
    if linear_phase:
        check.pulse()


_FORMS = 1e-7
"""Largest difference between compiled and plain forms, relative to the peak. Poles near 1, such as
25 Hz at 48 kHz, amplify rounding errors."""


class _Check:
    def __init__(self, make: Callable[[], Stage], x: Tensor, tolerance: float) -> None:
        self.make, self.x, self.tolerance = make, x, tolerance
        self.stage = make()
        self.dim, self.block = self.stage.time_dim, self.stage.block_size
        self.length = x.shape[self.dim]
        self.blocks = self.length // self.block
        self.shape = without(x.shape, self.dim)
        if x.shape[0] < 2 or self.dim == -x.dim():
            raise ValueError("check_stage needs an input of two rows or more on its first axis")
        if self.blocks < 8:
            raise ValueError(f"check_stage needs 8 blocks of input or more, given {self.blocks}")
        self.contract()
        self.declarations()
        self.expected = self.run(self.stage.whole, x)
        tail = self.zeros(ceil(self.stage.latency))
        self.flushed = self.run(self.stage.whole, torch.cat([x, tail], self.dim))
        self.peak = map_fields(lambda v: v.abs().amax().clamp(min=1e-300), self.flushed)

    def fail_unless(self, holds: bool, rule: str) -> None:
        if not holds:
            raise AssertionError(f"{type(self.stage).__name__}: {rule}")

    def same(self, got: object, expected: object, rule: str, peak: object = None) -> None:
        peaks = fields(self.peak if peak is None else peak)
        for a, b, top in zip(fields(got), fields(expected), peaks, strict=True):
            self.fail_unless(
                a.shape == b.shape, f"{rule}: shape {tuple(a.shape)}, expected {tuple(b.shape)}"
            )
            off = ((a - b).abs() / top).amax().item() if a.numel() else 0.0
            self.fail_unless(off <= self.tolerance, f"{rule}: by {off:.2g} of the peak")

    def outputs(self, y: object, start: int, stop: int | None = None) -> Outputs:
        """The outputs from `start` to `stop`."""
        return map_fields(
            lambda v, d: v.narrow(d, start, (v.shape[d] if stop is None else stop) - start),
            y,
            self.stage.out_time_dim,
        )

    def joined(self, pieces: Iterable[object]) -> Outputs:
        return joined(*(y for y in pieces if y is not None), dims=self.stage.out_time_dim)

    def cut(self, x: Tensor, sizes: list[int]) -> list[Tensor]:
        """`x` cut into pieces of `sizes`, repeated; the last may be shorter."""
        pieces: list[Tensor] = []
        at = 0
        while at < x.shape[self.dim]:
            take = min(sizes[len(pieces) % len(sizes)], x.shape[self.dim] - at)
            pieces.append(x.narrow(self.dim, at, take))
            at += take
        return pieces

    def until(self, position: int) -> Tensor:
        return self.x.narrow(self.dim, 0, position)

    def contract(self) -> None:
        """The declared model attributes are valid, and true of the channels it takes."""
        stage = self.stage
        try:
            check_contract(stage)
        except ValueError as refusal:
            raise AssertionError(str(refusal)) from refusal
        if self.dim != -1:
            return
        takes = self.shape[-1]
        self.fail_unless(
            stage.channels in (None, takes), f"declares {stage.channels} channels and takes {takes}"
        )
        if stage.per_channel:
            one = self.until(self.block)[..., :1, :]
            try:
                stage.step(one, stage.initial_state(without(one.shape, -1)))
            except (RuntimeError, ValueError) as refusal:
                raise AssertionError(
                    f"{type(stage).__name__}: declares per_channel and refuses one channel: "
                    f"{refusal}"
                ) from refusal

    def declarations(self) -> None:
        """Ratio, shapes and state agree with the declaration."""
        stage, ratio = self.stage, self.stage.ratio
        outputs = self.block * ratio
        self.fail_unless(
            outputs.denominator == 1,
            f"a block of {self.block} at ratio {ratio} gives no whole number of outputs",
        )
        shapes = stage.out_shape(self.shape)
        before = stage.initial_state(self.shape)
        y, after = stage.step(self.until(self.block), before)
        self.shaped(y, shapes, int(outputs))
        self.fail_unless(
            list(after) == list(before), f"state keys {list(before)} become {list(after)}"
        )
        for key, value in before.items():
            self.fail_unless(
                after[key].shape == value.shape and after[key].dtype == value.dtype,
                f"state {key!r}, {value.dtype} of {tuple(value.shape)}, becomes "
                f"{after[key].dtype} of {tuple(after[key].shape)}",
            )
            self.fail_unless(
                not value.is_floating_point() or value.dtype == torch.float64,
                f"state {key!r} is {value.dtype} in a float64 stage: use state_like",
            )
        for n in {self.length, self.length - 1, self.blocks * self.block - self.block // 2}:
            self.shaped(stage.whole(self.until(n)), shapes, ceil(n * ratio))

    def shaped(self, y: Outputs, shapes: Shapes, length: int) -> None:
        def check(v: Tensor, dim: int, shape: Any) -> Tensor:
            self.fail_unless(
                v.shape[dim] == length,
                f"gives {v.shape[dim]} outputs where ratio {self.stage.ratio} says {length}",
            )
            self.fail_unless(
                without(v.shape, dim) == tuple(shape),
                f"gives shape {without(v.shape, dim)} without time, declares {tuple(shape)}",
            )
            return v

        map_fields(check, y, self.stage.out_time_dim, shapes)

    def input_unchanged(self) -> None:
        x = self.until(self.blocks * self.block).clone()
        state = self.stage.initial_state(self.shape)
        kept = {key: value.clone() for key, value in state.items()}
        self.stage.step(x, state)
        self.fail_unless(
            torch.equal(x, self.until(self.blocks * self.block)), "step changes its input"
        )
        for key, value in kept.items():
            self.fail_unless(
                torch.equal(state[key], value), f"step changes the given state {key!r}"
            )

    def any_split(self) -> None:
        whole_blocks = self.blocks * self.block
        expected = self.outputs(self.expected, 0, int(whole_blocks * self.stage.ratio))
        shuffled = torch.randint(1, 6, (8,), generator=torch.Generator().manual_seed(1)).tolist()
        for blocks in ([1], [3], [7], shuffled):
            live = Stream(self.make(), self.shape)
            pieces = self.cut(self.until(whole_blocks), [n * self.block for n in blocks])
            got = self.joined([self.run(live, piece) for piece in pieces])
            self.same(got, expected, f"blocks of {blocks} differ from the whole")
        for sizes in ([1], [441], [8193]):
            door = Rebuffer(Stream(self.make(), self.shape))
            outputs = [self.run(door.push, chunk) for chunk in self.cut(self.x, sizes)]
            got = self.joined([*outputs, self.run(door.flush)])
            self.same(
                got, self.flushed, f"chunks of {sizes[0]} through Rebuffer differ from the whole"
            )

    @staticmethod
    @torch.no_grad()
    def run(f: Callable[..., object], *args: object) -> Outputs:
        return f(*args)

    def zeros(self, length: int) -> Tensor:
        return self.x.new_zeros(with_time(self.shape, self.dim, length))

    def resumed(self) -> None:
        for at in (self.block * 3, self.block * 4 + self.block // 2 + 1):
            before = Rebuffer(Stream(self.make(), self.shape))
            head = self.run(before.push, self.until(at))
            file = io.BytesIO()
            torch.save(before.state_dict(), file)
            file.seek(0)
            after = Rebuffer(Stream(self.make(), self.shape))
            after.load_state_dict(torch.load(file, weights_only=True))
            tail = self.run(after.push, self.x.narrow(self.dim, at, self.length - at))
            whole_blocks = int(self.blocks * self.block * self.stage.ratio)
            expected = self.outputs(self.expected, 0, whole_blocks)
            self.same(
                self.joined([head, tail]), expected, f"a stream saved at {at} and resumed differs"
            )

    def rows_apart(self) -> None:
        other = self.x.clone()
        other[1:] = other[1:].flip(self.dim) * 2 + 0.1
        got = map_fields(lambda v: v[:1], self.run(self.stage.whole, other))
        self.same(got, map_fields(lambda v: v[:1], self.expected), "a row affects another row")

    def rows_reset(self) -> None:
        half = self.blocks // 2 * self.block
        live = Stream(self.make(), self.shape)
        self.run(live, self.until(half))
        mask = torch.zeros(self.x.shape[0], dtype=torch.bool)
        mask[0] = True
        if not live.state:
            return
        live.reset(mask)
        rest = self.x.narrow(self.dim, half, half)
        got = self.run(live, rest)
        fresh = self.run(self.stage.whole, rest)
        start = int(half * self.stage.ratio)
        went_on = self.outputs(self.expected, start, 2 * start)
        expected = map_fields(lambda new, old: torch.cat([new[:1], old[1:]]), fresh, went_on)
        self.same(got, expected, "after reset of row 0, that row is not as new or another changed")

    def causal(self) -> None:
        for position in (self.length // 3, self.length // 2 + 1, self.length - self.block):
            changed = self.x.clone()
            after = changed.narrow(self.dim, position, self.length - position)
            after.copy_(after.flip(self.dim) + 1)
            count = floor(position * self.stage.ratio)
            self.same(
                self.outputs(self.run(self.stage.whole, changed), 0, count),
                self.outputs(self.expected, 0, count),
                f"outputs due before input {position} depend on later input",
            )

    def gradients(self) -> None:
        x = self.until(4 * self.block).clone().requires_grad_()
        weights = [p for p in self.stage.parameters() if p.requires_grad]

        def gradient(y: object) -> list[Tensor]:
            # Different weights per output, so that errors do not cancel.
            terms = [
                (v * torch.linspace(1, 2, v.numel(), dtype=v.dtype).view_as(v)).sum()
                for v in fields(y)
            ]
            total = torch.stack(terms).sum()
            given = torch.autograd.grad(total, [x, *weights], allow_unused=True)
            return [
                torch.zeros_like(w) if g is None else g
                for g, w in zip(given, [x, *weights], strict=True)
            ]

        whole = self.stage.whole(x)
        if not any(v.requires_grad for v in fields(whole)):
            return
        state, outputs = self.stage.initial_state(self.shape), []
        for piece in self.cut(x, [self.block]):
            y, state = self.stage.step(piece, state)
            outputs.append(y)
        for a, b in zip(gradient(self.joined(outputs)), gradient(whole), strict=True):
            self.fail_unless(bool(torch.isfinite(b).all()), "a gradient is not finite")
            top = b.abs().amax().clamp(min=1e-300)
            self.same(a, b, "gradients of blocks and of the whole differ", top)

    def forms(self, x: Tensor) -> tuple[Outputs, Outputs]:
        """Outputs for all of `x`: the compiled form, and the plain one that gradients need."""
        wanting = x.clone().requires_grad_()
        # No gradient is asked for: what the graph would save is dropped (700 MB for Moore2016).
        with torch.autograd.graph.saved_tensors_hooks(lambda v: None, lambda v: v):
            plain = self.stage.whole(wanting)
        return self.run(self.stage.whole, x), map_fields(Tensor.detach, plain)

    def shapes(self) -> None:
        """Shapes that `fixed_axes` forbids are refused early; all others work."""
        few = self.until(self.block * -(-2 // self.block))
        self.takes_or_refuses(few[0], "without its first axis")
        for axis in range(-few.dim(), 0):
            if axis == self.dim:
                continue
            size = few.shape[axis]
            for other in sorted({1, size - 1, size + 1, 3 * size} - {0, size}):
                again = torch.arange(other) % size
                self.takes_or_refuses(few.index_select(axis, again), f"axis {axis} is {other}")

    def takes_or_refuses(self, x: Tensor, what: str) -> None:
        if x.dim() < -self.dim:
            return
        stage, shape = self.stage, without(x.shape, self.dim)
        try:
            stage.check_shape(shape)
        except ValueError:
            for form in (stage.whole, lambda _: Stream(stage, shape)):
                for given in (x, x.clone().requires_grad_()):
                    self.refuses(form, given, f"{what}: check_shape refuses it")
            return
        try:
            compiled, plain = self.forms(x)
        except Exception as error:
            raise AssertionError(
                f"{type(stage).__name__}: {what}: fixed_axes allows it, and it fails with "
                f"{type(error).__name__}: {error}"
            ) from error
        outputs = ceil(x.shape[self.dim] * stage.ratio)
        self.shaped(compiled, stage.out_shape(shape), outputs)
        self.agree(compiled, plain, what)

    def refuses(self, form: Callable[[Tensor], object], x: Tensor, what: str) -> None:
        try:
            with torch.set_grad_enabled(x.requires_grad):
                form(x)
        except ValueError:
            return
        self.fail_unless(False, f"{what}, and it is accepted")

    def agree(self, compiled: object, plain: object, what: str) -> None:
        """Both forms give the same values and the same NaN."""
        for a, b in zip(fields(compiled), fields(plain), strict=True):
            top = b.nan_to_num(0).abs().amax().clamp(min=1e-300)
            same = a.shape == b.shape and bool(((a - b).abs() <= _FORMS * top).all())
            self.fail_unless(same, f"{what}: with and without gradients differ")

    def not_a_number(self) -> None:
        """NaN reaches every output that depends on the sample, and no other row."""
        at = [0, *(n // 2 for n in self.x.shape[1:])]
        at[self.dim] = self.length // 3
        place = tuple(at)
        moved, spoiled = self.x.clone(), self.x.clone()
        moved[place] += self.x.abs().amax() / 2
        spoiled[place] = torch.nan
        changed = self.run(self.stage.whole, moved)
        compiled, plain = self.forms(spoiled)
        until = self.blocks * self.block
        live, size = Stream(self.make(), self.shape), self.block * (self.blocks // 4)
        pieces = self.cut(spoiled.narrow(self.dim, 0, until), [size])
        in_blocks = self.joined([self.run(live, piece) for piece in pieces])
        self.is_passed_on(compiled, changed, "")
        self.is_passed_on(plain, changed, " where a gradient is wanted")
        self.is_passed_on(in_blocks, changed, " in a later block")

    def is_passed_on(self, y: object, changed: object, where: str) -> None:
        """`y`, with a NaN sample, is NaN wherever `changed`, with that sample changed, differs."""
        lengths = map_fields(lambda v, d: torch.tensor(v.shape[d]), y, self.stage.out_time_dim)
        count = int(fields(lengths)[0])
        short = (fields(self.outputs(v, 0, count)) for v in (y, changed, self.expected))
        for a, b, clean, top in zip(*short, fields(self.peak), strict=True):
            lost = ((b - clean).abs() > _FORMS * top) & ~a.isnan()
            self.fail_unless(
                not bool(lost.any()),
                f"NaN is swallowed: an output that depends on the sample is a number{where}",
            )
            self.fail_unless(
                not bool(a[1:].isnan().any()), f"NaN in a row reaches another row{where}"
            )

    def pulse(self) -> None:
        sigma = 8 / self.stage.ratio
        length = ceil(24 * sigma)
        center = length / 2 + 0.25
        t = torch.arange(length, dtype=torch.float64) - center
        pulse = torch.exp(-0.5 * (t / float(sigma)) ** 2)
        shape = [1] * (len(self.shape) + 1)
        shape[self.dim] = length
        x = pulse.view(shape).expand(with_time(self.shape, self.dim, length))

        def off(v: Tensor, dim: int) -> Tensor:
            v = v.movedim(dim, -1)
            k = torch.arange(v.shape[-1], dtype=v.dtype)
            return ((v * k).sum(-1) / v.sum(-1) - center * float(self.stage.ratio)).abs().amax()

        y = self.run(aligned, self.stage, x)
        for error in fields(map_fields(off, y, self.stage.out_time_dim)):
            self.fail_unless(
                error.item() < 1e-3, f"latency is {error.item():.3g} outputs off for a smooth pulse"
            )
