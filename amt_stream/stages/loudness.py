"""Excitation of both ears to short-term and long-term loudness."""

from typing import Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from amt_stream.data import table
from amt_stream.functional.loudness import Channels, binaural_loudness
from amt_stream.scales import erb_number_to_hz
from amt_stream.stages.excitation import CAMS
from amt_stream.streaming import Shape, Stage, State

Constants = Literal["iso", "author"]

C = {"iso": 0.063, "author": 0.0631}
CAM_STEP = 0.25
FRAME_RATE = 1000

SHORT_TERM = (0.045, 0.033)
"""Attack and release per 1 ms frame: 21.7 and 29.8 ms (Moore et al. 2018; ISO 532-3:2023)."""

LONG_TERM = (0.01, 0.00133)
"""Attack and release per 1 ms frame: 99.5 and 751 ms."""

THETA = 1.5978
"""Exponent of the inhibition: equal ears lose a quarter each, so two ears make 1.5 times one."""


def channel_constants(constants: Constants) -> dict[str, np.ndarray]:
    """The values of `Channels`, each (150,)."""
    rows = table("moore_threshold")
    level = np.interp(erb_number_to_hz(CAMS), rows["freq_hz"], rows["iso532_3_db"])
    gain_db = rows["iso532_3_db"][-1] - level
    alphas = table("moore_alpha")
    alpha = np.interp(gain_db, alphas["g_db"], alphas["alpha"])
    if constants == "iso":
        rows = table("moore_a_iso")
        # At 500 Hz and above the standard's constant, which its table rounds to 4.6135.
        a = np.where(gain_db < 0, np.interp(gain_db, rows["g_db"], rows["iso532_3_a"]), 4.614)
    else:
        rows = table("moore_a_ansi")
        a = np.interp(gain_db, rows["g_db"], rows["a"])
    return {
        "threshold": 10 ** (level / 10),
        "gain": 10 ** (gain_db / 10),
        "a": a,
        "alpha": alpha,
        "scale": C[constants] * a**alpha,
    }


def smoothing_matrix() -> np.ndarray:
    """Gaussian smoothing of 18 Cam to each side, zeros beyond the channels (150, 150)."""
    distance = CAM_STEP * np.arange(-72, 73)
    kernel = np.exp(-((0.08 * distance) ** 2))
    kernel /= kernel.sum()
    apart = np.arange(CAMS.size) - np.arange(CAMS.size)[:, None]
    return np.where(np.abs(apart) <= 72, kernel[np.clip(apart + 72, 0, 144)], 0.0)


class LoudnessOutput(NamedTuple):
    """Loudness in sone, frame by frame.

    stl, ltl: short-term and long-term loudness (..., frame); the sum of the ears
    stl_ears, ltl_ears: that of each ear (..., 2, frame)
    specific_loudness: short-term, in sone/Cam, before inhibition (..., 2, frame, 150), or None
    excitation_db: level re 0 dB, not below -100 (..., 2, frame, 150), or None
    """

    stl: Tensor
    ltl: Tensor
    stl_ears: Tensor
    ltl_ears: Tensor
    specific_loudness: Tensor | None = None
    excitation_db: Tensor | None = None


class BinauralLoudness(Stage):
    """Excitation (..., 2, frame, 150), a frame per ms, to `LoudnessOutput`.

    Specific loudness, its short-term smoothing, inhibition by the other ear, the sum over channels
    and the long-term smoothing of each ear (Moore et al. 2016, 2018; ISO 532-3:2023).

    frames_before: so many frames stand for time before the sound and count as silence
    """

    time_dim = -2

    threshold: Tensor
    gain: Tensor
    a: Tensor
    alpha: Tensor
    scale: Tensor
    smoothing: Tensor
    short_term: Tensor
    long_term: Tensor

    def __init__(
        self,
        constants: Constants = "iso",
        frames_before: int = 0,
        specific_loudness: bool = False,
        excitation_db: bool = False,
    ) -> None:
        super().__init__()
        if constants not in C:
            raise ValueError(f"constants is {constants!r}: give iso or author")
        self.constants = constants
        self.frames_before = frames_before
        self.gives_specific_loudness = specific_loudness
        self.gives_excitation_db = excitation_db
        for name, values in channel_constants(constants).items():
            self.register_table(name, values)
        self.register_table("smoothing", smoothing_matrix())
        self.register_table("short_term", np.array(SHORT_TERM))
        self.register_table("long_term", np.array(LONG_TERM))
        self.out_time_dim = LoudnessOutput(-1, -1, -1, -1, -2, -2)  # type: ignore[arg-type]

    def channels(self) -> Channels:
        """The tables that specific loudness needs."""
        return Channels(*(getattr(self, name) for name in Channels._fields))

    def initial_state(self, shape: Shape) -> State:
        rows = shape[:-2]
        return {
            "before": torch.full(rows, self.frames_before, device=self.device),
            "short": self.state_like("short", shape),
            "long": self.state_like("long", (*rows, 2)),
        }

    def step(self, x: Tensor, state: State) -> tuple[LoudnessOutput, State]:
        before = state["before"]
        (specific, stl_ears, ltl_ears), (short, long) = binaural_loudness(
            x,
            self.channels(),
            C[self.constants],
            self.smoothing,
            THETA,
            CAM_STEP,
            self.short_term,
            self.long_term,
            before,
            (state["short"], state["long"]),
        )
        y = LoudnessOutput(
            stl_ears.sum(-2),
            ltl_ears.sum(-2),
            stl_ears,
            ltl_ears,
            specific if self.gives_specific_loudness else None,
            10 * torch.log10(x.clamp(min=1e-10)) if self.gives_excitation_db else None,
        )
        after = {"before": (before - x.shape[-2]).clamp(min=0), "short": short, "long": long}
        return y, after

    def out_shape(self, shape: Shape) -> LoudnessOutput:
        rows = shape[:-2]
        ears = (*rows, 2)
        return LoudnessOutput(rows, rows, ears, ears, shape, shape)  # type: ignore[arg-type]

    def extra_repr(self) -> str:
        return f"constants={self.constants!r}, frames_before={self.frames_before}"
