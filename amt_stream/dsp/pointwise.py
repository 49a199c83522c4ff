"""A plain torch module as a stage, after a test that it treats each instant alone."""

import copy
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import UninitializedBuffer, UninitializedParameter

from amt_stream.dsp.streaming import Pointwise

_FILTER = (
    "filter along time with SOSFilter or ButterworthFilter, or write a Stage with initial_state "
    "and step"
)
_SHAPE = "give one that keeps (row, band, time), or write a Stage with out_shape"
_LAYOUT = (
    "give one that does, for any length of time (one that works on the last axis goes between "
    "transposes in a module of your own), or write a Stage with initial_state and step"
)
_STEADY = "keep randomness, and all that training changes by itself, outside the chain"
_ROWS = "rows are different sounds, give one that treats each alone"

_ROW_COUNT, _LENGTH = 2, 6
_ANY_NUMBER = [2, 3]


class PointwiseModule(Pointwise):
    """A torch module that treats each instant alone, as a stage: input (..., band, time), same out.

    For example `nn.PReLU(32)`, `nn.GELU()`, your own module, or an `nn.Sequential` of these;
    `Chain` and `Parallel` wrap plain modules. The module gets (row, band, time), so that torch's
    channel axis is the band. The stage shares its weights and takes its dtype.

    time_dim, band_dim: axes of the input, negative; the band is by default the axis beside time
    bands: number of bands that the module requires, None for any

    Raises TypeError for a module that mixes instants or rows, changes the shape, is random, keeps
    state between calls or behaves differently in training. The test runs on a copy with random
    weights, when the stage is made or `module` is set.

    >>> rectify = PointwiseModule(nn.ReLU())
    >>> rectify(torch.tensor([[-1.0, 2.0]]))
    tensor([[0., 2.]])
    """

    def __init__(self, module: nn.Module, time_dim: int = -1, band_dim: int | None = None) -> None:
        super().__init__()
        if band_dim is None:
            band_dim = -2 if time_dim == -1 else -1
        if time_dim >= 0 or band_dim >= 0 or time_dim == band_dim:
            raise ValueError(
                f"PointwiseModule: time_dim is {time_dim} and band_dim {band_dim}: give two "
                "different negative axes"
            )
        self.time_dim = self.out_time_dim = time_dim
        self.band_dim = band_dim
        self.module = module
        weights = [v for v in (*module.parameters(), *module.buffers()) if v.is_floating_point()]
        if weights:
            self.to(weights[0].device, weights[0].dtype)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "module":
            # Do not advance the caller's random state.
            with torch.random.fork_rng(devices=[]), torch.device("cpu"):
                self.bands, self._writes_input = _tried(value)
            self.fixed_axes = {} if self.bands is None else {self.band_dim: self.bands}
            self.shape_remedy = f"make a {type(value).__name__} for that many bands"
            if "module" in self._modules:
                value = value.to(self.device, self.dtype)
        super().__setattr__(name, value)

    @property
    def learnable(self) -> bool:
        """Whether the module has weights."""
        return any(True for _ in self.parameters())

    def check_axes(self, shape: Sequence[int], timed: bool = False) -> None:
        """As in any stage; missing leading axes count as length 1."""
        missing = -min(self.time_dim, self.band_dim) - len(shape)
        super().check_axes((*(1,) * missing, *shape), timed)

    def transform(self, x: Tensor) -> Tensor:
        missing = -min(self.time_dim, self.band_dim) - x.dim()
        if missing > 0:
            return self.transform(x[(None,) * missing]).reshape(x.shape)
        axes = (self.band_dim, self.time_dim)
        moved = x.movedim(axes, (-2, -1))
        rows = moved.reshape(-1, *moved.shape[-2:])
        # Clone: the input may belong to the caller.
        y = self.module(rows.clone() if self._writes_input else rows)
        return y.reshape(moved.shape).movedim((-2, -1), axes)

    def extra_repr(self) -> str:
        return f"bands={self.bands}, time_dim={self.time_dim}, band_dim={self.band_dim}"


def _tried(module: nn.Module) -> tuple[int | None, bool]:
    """The number of bands that `module` requires, or None, and whether it writes to its input.

    Raises TypeError if it does not treat each instant alone.
    """
    name = type(module).__name__
    weights = [*module.parameters(), *module.buffers()]
    if any(isinstance(w, (UninitializedBuffer, UninitializedParameter)) for w in weights):
        raise TypeError(f"{name} makes its weights at the first call: give one that has them")
    if any(w.is_complex() for w in weights):
        raise TypeError(f"{name} has complex weights: a stage passes real tensors on, {_SHAPE}")
    trial = _Trial(module)
    # A module for a fixed number of bands has a weight with an axis of that length.
    sizes = {n for w in weights for n in w.shape} - {0, *_ANY_NUMBER}
    fits: list[int] = []
    refusals: list[TypeError] = []
    for bands in [*_ANY_NUMBER, *sorted(sizes, reverse=True)]:
        try:
            trial.keeps_shape(bands)
            fits.append(bands)
        except TypeError as refusal:
            refusals.append(refusal)
        if fits and bands not in _ANY_NUMBER[:1]:
            break
    if not fits:
        # An error about a bad result says more than one about a failed call.
        raise next((r for r in refusals if r.__cause__ is None), refusals[-1])
    trial.is_steady(fits[0])
    trial.treats_alone(fits[0], -1, "instants", _FILTER)
    trial.treats_alone(fits[0], 0, "rows", _ROWS)
    return (None if fits == _ANY_NUMBER else fits[0]), trial.writes_input


class _Trial:
    """A copy of a module with random weights, tested on noise."""

    def __init__(self, module: nn.Module) -> None:
        self.name, self.writes_input = type(module).__name__, False
        self.noise = torch.Generator().manual_seed(1)
        with torch.inference_mode(False), torch.no_grad():
            try:
                fresh = copy.deepcopy(module)
            except RuntimeError as error:
                raise self.refusal(
                    f"cannot be copied ({_first_line(error)})",
                    "give weights that are not computed from others, after pruning those of "
                    "torch.nn.utils.prune.remove",
                ) from error
            blank = any(w.is_meta for w in (*fresh.parameters(), *fresh.buffers()))
            self.module = (fresh.to_empty(device="cpu") if blank else fresh.cpu()).double()
            # Random weights: an untrained filter may be the identity, and a scale zero.
            for w in (*fresh.parameters(), *(fresh.buffers() if blank else ())):
                w.uniform_(0.1, 0.9, generator=self.noise) if w.is_floating_point() else w.zero_()

    def refusal(self, does: str, remedy: str) -> TypeError:
        return TypeError(f"{self.name} cannot be a stage, it {does}: {remedy}")

    def input(self, bands: int) -> Tensor:
        shape = (_ROW_COUNT, bands, _LENGTH)
        return torch.randn(shape, generator=self.noise, dtype=torch.float64)

    def call(self, x: Tensor) -> Any:
        given = x.clone()
        with torch.inference_mode(False), torch.no_grad():
            y = self.module(given)
        self.writes_input |= not torch.equal(given, x)
        return y.clone() if isinstance(y, Tensor) else y

    def keeps_shape(self, bands: int) -> None:
        x = self.input(bands)
        shape = tuple(x.shape)
        try:
            y = self.call(x)
        except Exception as error:
            does = f"does not take (row, band, time) = {shape} ({_first_line(error)})"
            raise self.refusal(does, _LAYOUT) from error
        if not isinstance(y, Tensor):
            raise self.refusal(f"gives a {type(y).__name__}, not a tensor", _FILTER)
        if y.dtype != x.dtype:
            raise self.refusal(f"gives {y.dtype} for {x.dtype}", _SHAPE)
        if y.shape != x.shape:
            remedy = _SHAPE if y.shape[-1:] == x.shape[-1:] else _FILTER
            does = f"makes {tuple(y.shape)} of (row, band, time) = {shape}"
            raise self.refusal(does, remedy)

    def is_steady(self, bands: int) -> None:
        x = self.input(bands)
        before = {key: v.clone() for key, v in self.module.named_buffers()}
        self.module.train()
        first, again = self.call(x), self.call(x)
        self.module.eval()
        evaluated = self.call(x)
        for key, v in self.module.named_buffers():
            if not torch.equal(v, before[key]):
                raise self.refusal(f"changes its buffer {key!r} when called", _STEADY)
        if not _same(first, again):
            raise self.refusal("gives another output when called again", _STEADY)
        if not _same(first, evaluated):
            raise self.refusal("gives another output in training than in evaluation", _STEADY)

    def treats_alone(self, bands: int, dim: int, parts: str, remedy: str) -> None:
        x = self.input(bands)
        whole = self.call(x)
        try:
            y = torch.cat([self.call(part) for part in x.split(1, dim)], dim)
        except Exception as error:
            raise self.refusal(
                f"does not take one of the {parts} ({_first_line(error)})", remedy
            ) from error
        if not _same(y, whole):
            raise self.refusal(f"looks at other {parts}", remedy)


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")


def _same(a: Tensor, b: Tensor) -> bool:
    return a.shape == b.shape and torch.allclose(a, b, rtol=1e-9, atol=1e-12, equal_nan=True)
