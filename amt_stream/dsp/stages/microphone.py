"""Correction of a microphone's frequency response."""

from collections.abc import Sequence
from math import prod

import numpy as np
from torch import Tensor

from amt_stream.dsp.contract import hertz
from amt_stream.dsp.design import parallel_sections
from amt_stream.dsp.functional.compiler.dispatch import compiled
from amt_stream.dsp.functional.filters.svf import svf
from amt_stream.dsp.stages.side_by_side import side_by_side, steps
from amt_stream.dsp.streaming import Shape, Stage, State, as_given


class MicrophoneCorrection(Stage):
    """`x` (..., channel, time) with a frequency-dependent gain per channel; the unit is unchanged.

    Minimum phase: no delay, and the phase of a minimum-phase microphone is corrected too. The gain
    follows straight lines between the points, over log frequency, within 0.1 dB from 20 Hz to 0.9
    fs / 2, and is constant beyond the first and the last point. Recursive, in float64 throughout.

    fs: sampling rate in hertz
    gains: points of each channel, (n, 2) of hertz and dB; None for no correction
    exact_hz: frequency at which each channel's gain is exact; by default 1000

    Raises ValueError for a gain that changes too steeply.
    """

    keeps_double = ("g", "k", "weights", "steps", "past")
    binding = ("fs",)

    def __init__(
        self, fs: float, gains: Sequence[object], exact_hz: Sequence[float] | None = None
    ) -> None:
        super().__init__()
        self.fs = hertz("MicrophoneCorrection", fs)
        self.gains = tuple(gains)
        self.exact_hz = (1000.0,) * len(self.gains) if exact_hz is None else tuple(exact_hz)
        self.fixed_axes = {-2: len(self.gains)}
        exact = zip(self.gains, self.exact_hz, strict=True)
        each = [_sections(fs, gain, hz) for gain, hz in exact]
        count = max(len(g) for g, _, _ in each)
        tables = [_filled(table, count) for table in each]
        for name, parts in zip(("g", "k", "weights"), zip(*tables, strict=True), strict=True):
            self.register_table(name, np.concatenate(parts)[:, None])
        self.register_table("steps", np.stack([steps(*table) for table in tables]))

    @property
    def _count(self) -> int:
        """Sections per channel, a power of two."""
        return self.g.shape[0] // len(self.gains)

    def initial_state(self, shape: Shape) -> State:
        sections = prod(shape[-1:]) * self._count
        return {"past": self.state_like("past", (*shape[:-1], sections, 1, 2))}

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        g, k, weights, tables = self.registered("g", "k", "weights", "steps")
        if compiled(x, tables, state["past"]):
            y, past = side_by_side(x, tables, state["past"])
            return y, {"past": past}
        each = x.double().repeat_interleave(self._count, -2)
        y, past = svf(each, g, k, weights, state["past"])
        y = y.unflatten(-2, (-1, self._count))
        while (count := y.shape[-2]) > 1:  # pairwise, so that the order of sums is fixed
            y = y[..., : count // 2, :] + y[..., count // 2 :, :]
        return y.squeeze(-2).to(x.dtype), {"past": past}

    def forward(self, x: Tensor) -> Tensor:
        """`whole(x)`, in the dtype of `x` if that is floating point."""
        return as_given(self.whole(x), x)


def _sections(
    fs: float, gain: object, exact_hz: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """g, k and weights of one channel."""
    if gain is None:
        return np.ones(1), np.ones(1), np.array([[1.0, 0.0, 0.0]])
    points = np.asarray(gain, float)
    return parallel_sections(points[:, 0], points[:, 1], fs, exact_hz)


def _filled(
    tables: tuple[np.ndarray, np.ndarray, np.ndarray], count: int
) -> tuple[np.ndarray, ...]:
    """The tables padded to `count` sections by sections with zero output."""
    g, k, weights = tables
    more = count - len(g)
    silent = np.pad(weights, ((0, more), (0, 0)))
    return np.pad(g, (0, more), "edge"), np.pad(k, (0, more), "edge"), silent
