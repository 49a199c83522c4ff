"""Excitation of both ears to short-term and long-term loudness."""

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from amt_stream.dsp.functional.loudness import (
    Channels,
    binaural_loudness,
    monaural_loudness,
    specific_loudness,
)
from amt_stream.dsp.stages.moore.binaural import THETA, smoothing_kernel, smoothing_matrix
from amt_stream.dsp.stages.moore.excitation import CAM_STEP, CAMS
from amt_stream.dsp.stages.moore.integration import (
    LONG_TERM,
    LONG_TERM_2002,
    SHORT_TERM,
    SHORT_TERM_2002,
)
from amt_stream.dsp.stages.moore.specific_loudness import Constants, Edition, channel_constants
from amt_stream.dsp.streaming import Shape, Shapes, Stage, State, output


@output
class Moore2016Output(NamedTuple):
    """Loudness in sone per frame.

    stl, ltl: short-term and long-term loudness (..., frame); the sum of the ears
    stl_ears, ltl_ears: of each ear (..., 2, frame)
    specific_loudness: short-term, in sone/Cam, before inhibition (..., 2, frame, 150), or None
    excitation_db: level re 0 dB, at least -100 (..., 2, frame, 150), or None
    stl_low, stl_high, ltl_low, ltl_high: stl and ltl for the sound's level minus and plus its
        uncertainty (..., frame), or None
    """

    stl: Tensor
    ltl: Tensor
    stl_ears: Tensor
    ltl_ears: Tensor
    specific_loudness: Tensor | None = None
    excitation_db: Tensor | None = None
    stl_low: Tensor | None = None
    stl_high: Tensor | None = None
    ltl_low: Tensor | None = None
    ltl_high: Tensor | None = None


BINAURAL = ("smoothing", "theta", "short_term", "long_term")
"""Tables of `BinauralLoudness` besides `Channels`."""


class _LoudnessOverTime(Stage):
    """Specific loudness of excitation, a frame per ms, and its smoothing over time."""

    time_dim = -2
    in_quantity = "power"

    def __init__(self, edition: Edition, frames_before: int) -> None:
        super().__init__()
        self.frames_before = frames_before
        for name, values in channel_constants(edition).items():
            self.register_table(name, values)

    def tables(self) -> Channels:
        """Tables of specific loudness."""
        return Channels(*self.registered(*Channels._fields))

    def initial_state(self, shape: Shape) -> State:
        rows = shape[:-2]
        return {
            "before": torch.full(rows, self.frames_before, device=self.device),
            "short": self.state_like("short", (*rows, 2)),
            "long": self.state_like("long", (*rows, 2)),
        }


class BinauralLoudness(_LoudnessOverTime):
    """Excitation (..., 2, frame, 150), a frame per ms, to `Moore2016Output`.

    Specific loudness, its short-term smoothing, inhibition by the other ear, the sum over channels
    and each ear's long-term smoothing (Moore et al. 2016, 2018; ISO 532-3:2023).

    frames_before: number of frames from before the sound, which count as silence
    band: the excitation is (..., 3, 2, frame, 150), for a lower level, the sound's level and a
        higher one; the output includes the loudness of the first and the last
    """

    def __init__(
        self,
        constants: Constants = "iso",
        frames_before: int = 0,
        specific_loudness: bool = False,
        excitation_db: bool = False,
        band: bool = False,
    ) -> None:
        if constants not in ("iso", "author"):
            raise ValueError(f"constants is {constants!r}: give iso or author")
        super().__init__(constants, frames_before)
        self.constants = constants
        self.gives_specific_loudness = specific_loudness
        self.gives_excitation_db = excitation_db
        self.gives_band = band
        self.fixed_axes = {-3: 2, -1: CAMS.size, **({-4: 3} if band else {})}
        self.register_table("smoothing", smoothing_matrix(smoothing_kernel()))
        self.register_table("theta", np.array(THETA))
        self.register_table("short_term", np.array(SHORT_TERM))
        self.register_table("long_term", np.array(LONG_TERM))
        dims: Any = (-1, -1, -1, -1, -2, -2, -1, -1, -1, -1)
        self.out_time_dim = Moore2016Output(*dims)

    def initial_state(self, shape: Shape) -> State:
        return super().initial_state(shape) | {"short": self.state_like("short", shape)}

    def step(self, x: Tensor, state: State) -> tuple[Moore2016Output, State]:
        before = state["before"]
        smoothing, theta, short_term, long_term = self.registered(*BINAURAL)
        (specific, stl_ears, ltl_ears), (short, long) = binaural_loudness(
            x,
            self.tables(),
            smoothing,
            theta,
            CAM_STEP,
            short_term,
            long_term,
            before,
            (state["short"], state["long"]),
        )
        after = {"before": (before - x.shape[-2]).clamp(min=0), "short": short, "long": long}
        sums = stl_ears.sum(-2), ltl_ears.sum(-2)
        return self.given(x, specific, *sums, stl_ears, ltl_ears), after

    def given(
        self,
        x: Tensor | None,
        specific: Tensor | None,
        stl: Tensor,
        ltl: Tensor,
        stl_ears: Tensor,
        ltl_ears: Tensor,
    ) -> Moore2016Output:
        """The output, with None for what was not requested."""
        edges: tuple[Tensor, ...] = ()
        if self.gives_band:
            edges = (stl[..., 0, :], stl[..., 2, :], ltl[..., 0, :], ltl[..., 2, :])
            stl, ltl, stl_ears, ltl_ears = (
                v.select(dim, 1)
                for v, dim in ((stl, -2), (ltl, -2), (stl_ears, -3), (ltl_ears, -3))
            )
            specific, x = (v if v is None else v.select(-4, 1) for v in (specific, x))
        shown = x if self.gives_excitation_db else None
        return Moore2016Output(
            stl,
            ltl,
            stl_ears,
            ltl_ears,
            specific if self.gives_specific_loudness else None,
            None if shown is None else 10 * torch.log10(shown.clamp(min=1e-10)),
            *edges,
        )

    def out_shape(self, shape: Shape) -> Moore2016Output:
        rows = shape[:-3] if self.gives_band else shape[:-2]
        ears, channels = (*rows, 2), (*rows, *shape[-2:])
        shapes: Shapes = (rows, rows, ears, ears, channels, channels, rows, rows, rows, rows)
        return Moore2016Output(*shapes)


@output
class Glasberg2002Output(NamedTuple):
    """Loudness in sone per frame.

    stl, ltl: short-term and long-term loudness (..., frame); the sum of the ears
    stl_ears, ltl_ears: of each ear (..., 2, frame)
    """

    stl: Tensor
    ltl: Tensor
    stl_ears: Tensor
    ltl_ears: Tensor


class MonauralLoudness(_LoudnessOverTime):
    """Excitation (..., ear, frame, 150), a frame per ms, to `Glasberg2002Output`.

    Specific loudness by ANSI S3.4-2007, its sum over channels, and the short-term and long-term
    smoothing of that (Glasberg & Moore 2002), without binaural inhibition. A single ear counts for
    two that hear the same.

    frames_before: number of frames from before the sound, which count as silence
    ltl_release: release coefficient per frame of long-term loudness

    Raises ValueError for a coefficient outside (0, 1].
    """

    # In float32 a slow release stops 1e-4 above its target.
    keeps_double = ("short_term", "long_term", "short", "long")

    def __init__(self, frames_before: int = 0, ltl_release: float = LONG_TERM_2002[1]) -> None:
        if not 0 < ltl_release <= 1:
            raise ValueError(
                f"ltl_release is {ltl_release}: give a coefficient per ms, above 0 and up to 1"
            )
        super().__init__("ansi", frames_before)
        self.ltl_release = ltl_release
        self.fixed_axes = {-3: (1, 2), -1: CAMS.size}
        self.register_table("short_term", np.array(SHORT_TERM_2002))
        self.register_table("long_term", np.array([LONG_TERM_2002[0], ltl_release]))
        self.out_time_dim = Glasberg2002Output(-1, -1, -1, -1)  # type: ignore[arg-type]

    def instantaneous(self, excitation: Tensor) -> Tensor:
        """Loudness of each ear in sone (..., 2, frame), unsmoothed."""
        n = CAM_STEP * specific_loudness(excitation, self.tables()).sum(-1)
        return torch.cat([n, n], -2) if n.shape[-2] == 1 else n

    def step(self, x: Tensor, state: State) -> tuple[Glasberg2002Output, State]:
        before = state["before"]
        short_term, long_term = self.registered("short_term", "long_term")
        zi = state["short"], state["long"]
        (stl_ears, ltl_ears), (short, long) = monaural_loudness(
            x, self.tables(), CAM_STEP, short_term, long_term, before, zi
        )
        after = {"before": (before - x.shape[-2]).clamp(min=0), "short": short, "long": long}
        y = Glasberg2002Output(stl_ears.sum(-2), ltl_ears.sum(-2), stl_ears, ltl_ears)
        return y, after

    def out_shape(self, shape: Shape) -> Glasberg2002Output:
        rows = shape[:-2]
        ears = (*rows, 2)
        return Glasberg2002Output(rows, rows, ears, ears)  # type: ignore[arg-type]
