"""Excitation of both ears to short-term and long-term loudness."""

from typing import Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from amt_stream.data import table
from amt_stream.functional.loudness import agc, inhibition_gains, specific_loudness
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
    """Excitation at threshold, gain G, parameters A and alpha of each channel (150,)."""
    rows = table("moore_threshold")
    level = np.interp(erb_number_to_hz(CAMS), rows["freq_hz"], rows["iso532_3_db"])
    gain_db = rows["iso532_3_db"][-1] - level
    alpha = table("moore_alpha")
    if constants == "iso":
        a = table("moore_a_iso")
        # At 500 Hz and above the standard's constant, which its table rounds to 4.6135.
        a_value = np.where(gain_db < 0, np.interp(gain_db, a["g_db"], a["iso532_3_a"]), 4.614)
    else:
        a = table("moore_a_ansi")
        a_value = np.interp(gain_db, a["g_db"], a["a"])
    return {
        "threshold": 10 ** (level / 10),
        "gain": 10 ** (gain_db / 10),
        "a": a_value,
        "alpha": np.interp(gain_db, alpha["g_db"], alpha["alpha"]),
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
    smoothing: Tensor
    coefficients: Tensor

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
        self.constants, self.c = constants, C[constants]
        self.frames_before = frames_before
        self.gives_specific_loudness = specific_loudness
        self.gives_excitation_db = excitation_db
        for name, values in channel_constants(constants).items():
            self.register_table(name, values)
        self.register_table("smoothing", smoothing_matrix())
        self.register_table("coefficients", np.array([*SHORT_TERM, *LONG_TERM]))
        self.out_time_dim = self._outputs(LoudnessOutput(-1, -1, -1, -1, -2, -2))  # type: ignore[arg-type]

    def _outputs(self, y: LoudnessOutput) -> LoudnessOutput:
        """`y` less what was not asked for."""
        return y._replace(
            specific_loudness=y.specific_loudness if self.gives_specific_loudness else None,
            excitation_db=y.excitation_db if self.gives_excitation_db else None,
        )

    def initial_state(self, shape: Shape) -> State:
        rows = shape[:-2]
        return {
            "before": torch.full(rows, self.frames_before, device=self.device),
            "short": self.state_like("short", shape),
            "long": self.state_like("long", (*rows, 2, 1)),
        }

    def step(self, x: Tensor, state: State) -> tuple[LoudnessOutput, State]:
        frames = x.shape[-2]
        before = state["before"]
        begun = torch.arange(frames, device=x.device) >= before[..., None]
        n = specific_loudness(x, self.threshold, self.gain, self.a, self.alpha, self.c)
        n = n * begun[..., None, :, None]
        up, down, long_up, long_down = self.coefficients.unbind()
        n, short = agc(n, up, down, state["short"])
        ears = CAM_STEP * (n * inhibition_gains(n, self.smoothing, THETA)).sum(-1)
        ltl_ears, long = agc(ears[..., None], long_up, long_down, state["long"])
        ltl_ears = ltl_ears.squeeze(-1)
        y = self._outputs(
            LoudnessOutput(
                ears.sum(-2),
                ltl_ears.sum(-2),
                ears,
                ltl_ears,
                n,
                10 * torch.log10(x.clamp(min=1e-10)) if self.gives_excitation_db else None,
            )
        )
        return y, {"before": (before - frames).clamp(min=0), "short": short, "long": long}

    def out_shape(self, shape: Shape) -> LoudnessOutput:
        rows = shape[:-2]
        y = LoudnessOutput(rows, rows, (*rows, 2), (*rows, 2), shape, shape)  # type: ignore[arg-type]
        return self._outputs(y)

    def extra_repr(self) -> str:
        return f"constants={self.constants!r}, frames_before={self.frames_before}"
