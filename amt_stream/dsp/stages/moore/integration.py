"""Temporal integration of loudness, with different attack and release."""

import warnings
from typing import ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor

from amt_stream.dsp.checkpoints import number
from amt_stream.dsp.contract import hertz
from amt_stream.dsp.functional.compiler.dispatch import transforming
from amt_stream.dsp.functional.compiler.private_torch import changes, in_backward
from amt_stream.dsp.functional.loudness import agc
from amt_stream.dsp.stages.moore.excitation import CAM_STEP
from amt_stream.dsp.stages.within import within
from amt_stream.dsp.streaming import Outputs, Shape, Shapes, Stage, State, as_given, without

FRAME_RATE = 1000

SHORT_TERM = (0.045, 0.033)
"""Attack and release per 1 ms frame: 21.7 and 29.8 ms (Moore et al. 2018; ISO 532-3:2023)."""

LONG_TERM = (0.01, 0.00133)
"""Attack and release per 1 ms frame: 99.5 and 751 ms."""

SHORT_TERM_2002 = (0.045, 0.02)
"""Attack and release per 1 ms frame: 21.7 and 49.5 ms (Glasberg & Moore 2002)."""

LONG_TERM_2002 = (0.01, 0.0005)
"""Attack and release per 1 ms frame: 99.5 ms and 2 s (Glasberg & Moore 2002)."""


class Moore2016AGC(Stage):
    """Smoothing of `x` (..., frame, channel), as documented; not in the meter.

    Each frame y += alpha (x - y), with alpha for attack or release: 1 follows at once, 0 not at
    all; the time constant is -1 / ln(1 - alpha) frames. Two dimensions are (frame, channel), and if
    called directly, one is (frame,).

    learnable: `attack_alpha` and `release_alpha` are parameters, clamped to 0 to 1 in use

    Raises ValueError for a coefficient outside that range.

    Attributes: `attack_alpha` and `release_alpha`, 0-dim, the coefficient while the input is above
    the output and while it is not.
    """

    time_dim = -2
    out_time_dim = -2

    # An optimizer may leave 0 to 1; `coefficients` clamps.
    ranges: ClassVar = dict.fromkeys(("attack_alpha", "release_alpha"), (-0.5, 1.5))

    def __init__(
        self,
        attack_alpha: float = SHORT_TERM[0],
        release_alpha: float = SHORT_TERM[1],
        learnable: bool = False,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__()
        self.to(dtype)
        for name, alpha in (("attack_alpha", attack_alpha), ("release_alpha", release_alpha)):
            if not 0 <= alpha <= 1:
                raise ValueError(f"Moore2016AGC: {name} is {alpha}: give a number from 0 to 1")
            self.register_constant(name, np.array(alpha, np.float64), learnable)
        self.learnable = learnable

    @property
    def coefficients(self) -> Tensor:
        """Attack and release (2,) in use."""
        alphas = torch.stack([self.attack_alpha, self.release_alpha])
        return within(alphas, 0.0, 1.0) if self.learnable else alphas

    def initial_state(self, shape: Shape) -> State:
        return {"y": self.state_like("y", shape)}

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        y, last = agc(x, self.coefficients, state["y"])
        return y, {"y": last}

    def forward(self, x: Tensor, state: Tensor | float | None = None) -> Tensor:
        """Smoothed `x`, from rest or from `state`, the last frame (channel,) of an earlier output.

        A number applies to every channel.
        """
        given = self.converted(x)
        frames = self.sounding(given[:, None] if given.dim() == 1 else given)
        start = self.initial_state(without(frames.shape, -2))
        if state is not None:
            state = state if isinstance(state, Tensor) else torch.tensor(float(state))
            channels = start["y"].shape
            if state.dim() > len(channels) or not all(
                n in (1, m) for n, m in zip(reversed(state.shape), reversed(channels), strict=False)
            ):
                raise ValueError(
                    f"Moore2016AGC goes on from a last frame of shape {tuple(channels)}, given "
                    f"{tuple(state.shape)}: give `y[..., -1, :]` of the output before"
                )
            start = {"y": self.converted(state).to(self.device).expand_as(start["y"])}
        y, _ = self.step(frames, start)
        return as_given(y.view(x.shape), x)

    def get_parameters(self) -> dict[str, float]:
        """attack_alpha and release_alpha."""
        attack, release = self.coefficients
        return {"attack_alpha": number(attack), "release_alpha": number(release)}


class Integrated(NamedTuple):
    """Long-term loudness (..., frame), short-term specific loudness (..., frame, channel), and its
    sum, short-term loudness (..., frame)."""

    ltl: Tensor
    stl_spec: Tensor
    stl: Tensor


class Moore2016TemporalIntegration(Stage):
    """Specific loudness (..., frame, channel) to `Integrated`, as documented; not in the meter.

    Short-term smoothing of each channel, the sum over channels in sone, and its long-term
    smoothing. Coefficients are per frame of 1 ms.
    """

    time_dim = -2
    in_quantity = "sone/Cam"

    def __init__(
        self,
        stl_attack: float = SHORT_TERM[0],
        stl_release: float = SHORT_TERM[1],
        ltl_attack: float = LONG_TERM[0],
        ltl_release: float = LONG_TERM[1],
        learnable: bool = False,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__()
        self.learnable = learnable
        self.ltl_attack, self.ltl_release = ltl_attack, ltl_release
        self.stl_agc = Moore2016AGC(stl_attack, stl_release, learnable, dtype)
        self.ltl_agc = Moore2016AGC(ltl_attack, ltl_release, learnable, dtype)
        self.out_time_dim = Integrated(-1, -2, -1)  # type: ignore[arg-type]
        self.to(dtype)

    def initial_state(self, shape: Shape) -> State:
        return {
            "short": self.state_like("short", shape),
            "long": self.state_like("long", (*shape[:-1], 1)),
        }

    def step(self, x: Tensor, state: State) -> tuple[Integrated, State]:
        specific, short = self.stl_agc.hooked_step(x, {"y": state["short"]})
        stl = CAM_STEP * specific.sum(-1)
        ltl, long = self.ltl_agc.hooked_step(stl[..., None], {"y": state["long"]})
        y = Integrated(ltl.squeeze(-1), specific, stl)
        return y, {"short": short["y"], "long": long["y"]}

    def forward(self, inst_spec_loud: Tensor, return_intermediate: bool = False) -> Outputs:
        """Long-term loudness, or all of `Integrated`."""
        y = Integrated(*(as_given(v, inst_spec_loud) for v in self.whole(inst_spec_loud)))
        return y if return_intermediate else y.ltl

    def translated(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
        return {key[1:]: given.pop(key) for key in list(given) if key.startswith("_ltl_agc.")}

    def out_shape(self, shape: Shape) -> Shapes:
        return Integrated(shape[:-1], shape, shape[:-1])  # type: ignore[arg-type]

    def get_parameters(self) -> dict[str, object]:
        """The parameters of the short-term and the long-term smoothing."""
        return {"stl": self.stl_agc.get_parameters(), "ltl": self.ltl_agc.get_parameters()}


class ShortAndLongTerm(NamedTuple):
    """Long-term and short-term loudness (..., frame)."""

    ltl: Tensor
    stl: Tensor


class LoudnessIntegration(Stage):
    """Specific loudness (..., frame, band) to `ShortAndLongTerm`: its sum, and that sum smoothed.

    frame_rate: frames per second of the input, by default the documented fs / 512
    learnable: `tau_attack` and `tau_release` are parameters; in use they are at least a sixteenth
        of a frame, at which loudness follows at once

    Called directly it continues from the previous call until `reset_state()`. A torch.func
    transform and an exported graph do not store state: each call starts from the stage's state.

    Attributes: `tau_attack` 50 ms and `tau_release` 200 ms, 0-dim, time constants in seconds while
    loudness rises and falls; `ltl_state` (...), the long-term loudness at the end of the last call,
    None before the first.
    """

    time_dim = -2
    binding = ("frame_rate",)

    ltl_state: Tensor | None

    def __init__(
        self, fs: int = 32000, learnable: bool = False, frame_rate: float | None = None
    ) -> None:
        super().__init__()
        fs = hertz("LoudnessIntegration", fs)
        self.fs, self.learnable = fs, learnable
        self.frame_rate = fs / 512 if frame_rate is None else frame_rate
        if self.frame_rate <= 0:
            raise ValueError(f"LoudnessIntegration: frame_rate is {frame_rate}: give one above 0")
        self.register_constant("tau_attack", np.array(0.05), learnable)
        self.register_constant("tau_release", np.array(0.2), learnable)
        self.register_buffer("ltl_state", None, persistent=False)
        self._last: tuple[tuple[int, int], Tensor | None] | None = None
        self.out_time_dim = ShortAndLongTerm(-1, -1)  # type: ignore[arg-type]

    @property
    def time_constants(self) -> Tensor:
        """Attack and release (2,) in use, in seconds."""
        taus = torch.stack([self.tau_attack, self.tau_release])
        return within(taus, 1 / (16 * self.frame_rate), float("inf")) if self.learnable else taus

    def initial_state(self, shape: Shape) -> State:
        return {"ltl": self.state_like("ltl", shape[:-1])}

    def step(self, x: Tensor, state: State) -> tuple[ShortAndLongTerm, State]:
        stl = x.sum(-1)
        coefficients = -torch.expm1(-1 / (self.frame_rate * self.time_constants))
        ltl, last = agc(stl[..., None], coefficients, state["ltl"][..., None])
        return ShortAndLongTerm(ltl.squeeze(-1), stl), {"ltl": last.squeeze(-1)}

    def forward(self, specific_loudness: Tensor, return_stl: bool = False) -> Outputs:
        """Long-term loudness, or `ShortAndLongTerm`; continues from the previous call."""
        x = self.sounding(specific_loudness)
        state = self.initial_state(without(x.shape, -2))
        began = self.ltl_state
        kept = not (transforming() or torch.compiler.is_exporting())
        if kept and not torch.compiler.is_compiling():
            place = specific_loudness.data_ptr(), changes(specific_loudness)
            if in_backward():
                began, kept = self._began(place), False
            else:
                self._last = place, began
        if began is not None:
            if began.shape != state["ltl"].shape:
                raise ValueError(
                    f"LoudnessIntegration goes on from a batch of {tuple(began.shape)}, given "
                    f"{tuple(state['ltl'].shape)}: call reset_state() before another sound"
                )
            # Copy, because gradients cannot pass an inference tensor.
            state = {"ltl": began.to(state["ltl"], copy=True)}
        y, state = self.step(x, state)
        if kept:
            self.ltl_state = state["ltl"].detach()
        y = ShortAndLongTerm(*(as_given(v, specific_loudness) for v in y))
        return y if return_stl else y.ltl

    def _began(self, place: tuple[int, int]) -> Tensor | None:
        """Initial state of the call that torch.utils.checkpoint repeats in the backward pass."""
        if self._last is None or self._last[0] != place:
            raise RuntimeError(
                "LoudnessIntegration: torch.utils.checkpoint can repeat only the last call, as "
                "each continues from the one before: call backward() before the next"
            )
        return self._last[1]

    def reset_state(self) -> None:
        """Start the next call from silence."""
        self.ltl_state = None

    def get_time_constants(self) -> tuple[float, float]:
        """Attack and release in seconds."""
        attack, release = self.time_constants
        return number(attack), number(release)

    def translated(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
        # The state at the end of a sound is not a learned value.
        if given.pop("ltl_state", None) is not None:
            warnings.warn(
                "LoudnessIntegration: ltl_state of the checkpoint is not taken: the next call goes "
                "on from the call before it, or begins in silence",
                stacklevel=2,
            )
        return {}

    def out_shape(self, shape: Shape) -> Shapes:
        return ShortAndLongTerm(shape[:-1], shape[:-1])  # type: ignore[arg-type]

    def extra_repr(self) -> str:
        attack, release = self.get_time_constants()
        return f"{super().extra_repr()}, tau_attack={attack:.7g}, tau_release={release:.7g}"
