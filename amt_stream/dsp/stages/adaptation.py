"""Adaptation in the auditory nerve."""

from typing import ClassVar, Literal

import numpy as np
import torch
from torch import Tensor, nn

from amt_stream.dsp.contract import hertz
from amt_stream.dsp.data import table
from amt_stream.dsp.functional.adaptation import Loops, adaptation_loops
from amt_stream.dsp.streaming import Shape, Stage, State, as_given

Preset = Literal["dau1997", "osses2021", "paulick2024"]

TAU = (0.005, 0.05, 0.129, 0.253, 0.5)
"""Time constants in seconds (Dau, Puschel & Kohlrausch 1996)."""

PAULICK_TAU = (0.007, 0.0318, 0.0878, 0.2143, 0.5)
"""Time constants in seconds (Paulick et al. 2024)."""

PRESETS = {"dau1997": (TAU, 10.0), "osses2021": (TAU, 5.0), "paulick2024": (PAULICK_TAU, 10.0)}
"""Time constants in seconds, and limit."""


class AdaptLoop(Stage):
    """`x` (..., channel, time), 1.0 = 100 dB SPL, to model units: 0 for silence, 100 for 100 dB.

    Feedback loops in series, each dividing by its low-pass filtered output: steady sounds are
    compressed almost logarithmically, fast changes pass (Dau, Puschel & Kohlrausch 1996; Dau,
    Kollmeier & Kohlrausch 1997).

    fs: sampling rate in Hz
    tau: time constants in seconds, one per loop; None for the preset's, by default 5 to 500 ms
    limit: overshoot limit of onsets re the steady output, 10 by default; 1 or less for no limit
    minspl: level in dB SPL of the smallest input, a number (0 by default) or a tensor (channel,)
    minlvl_per_channel: (channel,) the same as amplitudes, in place of `minspl`
    preset: "dau1997" limit 10; "osses2021" limit 5; "paulick2024" limit 10 with its own time
        constants and smallest inputs for exactly 50 channels from 250 to 8000 Hz. Explicit
        arguments override the preset
    per_channel_init: whether each channel starts from its own smallest input (as published), or all
        from that of channel 0 (as documented), which is not their resting state in silence

    Learnable: the smallest inputs, time constants (and so `a1`, `b0`), limit, `corr` and `mult`,
    parametrized so that they stay in range. Raises ValueError for an unknown preset, values out of
    range, and a number of channels other than that of `minlvl_per_channel`.
    """

    binding = ("fs",)
    derived = tuple(
        f"{name}{end}" for name in ("factor", "expfac", "offset") for end in ("", "_init")
    )
    # Each is 1 minus the other, known to 6e-8 in float32.
    rounding: ClassVar = {"a1": 2e-7, "b0": 2e-7}

    fs: float

    def __init__(
        self,
        fs: float,
        tau: object = None,
        limit: float | None = None,
        minspl: object = None,
        minlvl_per_channel: object = None,
        preset: Preset | None = None,
        learnable: bool = False,
        dtype: torch.dtype = torch.float32,
        per_channel_init: bool = False,
    ) -> None:
        super().__init__()
        if preset is not None:
            if preset not in PRESETS:
                raise ValueError(
                    f"AdaptLoop: preset is {preset!r}: give one of {', '.join(PRESETS)}, or None"
                )
            own, most = PRESETS[preset]
            tau = own if tau is None else tau
            limit = most if limit is None else limit
            if preset == "paulick2024" and minlvl_per_channel is None and minspl is None:
                minlvl_per_channel = 1e-6 * table("paulick2024_minlevel")["min_1e-6"]
        if minlvl_per_channel is None:
            floor = 10 ** ((_numbers(0.0 if minspl is None else minspl) - 100) / 20)
        else:
            floor = _numbers(minlvl_per_channel)
        seconds = _numbers(TAU if tau is None else tau)
        limit = 10.0 if limit is None else float(limit)
        if seconds.dim() != 1 or not len(seconds) or not (seconds > 0).all():
            raise ValueError(f"AdaptLoop: tau is {tau}: give one time constant above 0 s or more")
        if floor.dim() > 1 or not ((floor > 0) & (floor < 1)).all():
            raise ValueError(
                "AdaptLoop: the smallest input is one number, or one per channel, above 0 and "
                f"below 1 (100 dB SPL), given {floor.tolist()}"
            )
        fs = hertz("AdaptLoop", fs)
        self.fs, self.preset, self.num_loops, self.learnable = fs, preset, len(seconds), learnable
        self.use_freq_specific_minlvl = floor.dim() == 1
        self.per_channel_init = per_channel_init
        if self.use_freq_specific_minlvl:
            self.fixed_axes = {-2: len(floor)}
            self.shape_remedy = "each channel has a smallest input, give exactly that many channels"
        self.limited = limit > 1
        rest = self._rest(floor)
        least = _least_limit(rest).item()
        if 1 < limit <= least:
            raise ValueError(
                f"AdaptLoop: a limit of {limit} leaves no room for onsets: give more than "
                f"{least:.3f}, or 0 for no limit"
            )
        corr, mult = self._silent(floor, rest), 100 / (1 - rest[..., -1])
        rates = -torch.expm1(-1 / (seconds * fs))
        if learnable:
            self.logit_minlvl = nn.Parameter(floor.logit())
            self.log_tau = nn.Parameter(seconds.log())
            if self.limited:
                self.log_room = nn.Parameter(torch.tensor(limit - least, dtype=floor.dtype).log())
            self.corr, self.mult = nn.Parameter(corr), nn.Parameter(mult)
        else:
            overshoot = (1 - rest**2) * limit - 1
            fixed = {"floor": floor, "rest": rest, "rates": rates, "overshoot": overshoot}
            for name, values in {**fixed, "corr": corr, "mult": mult}.items():
                self.register_table(name, values.numpy())
        self.register_table("fixed_limit", np.array(limit))
        self.to(self.device, dtype)

    def _rest(self, floor: Tensor) -> Tensor:
        """The loops' state in silence; each loop gives the square root of its input."""
        if floor.dim() and not self.per_channel_init:
            floor = floor[0]
        halvings = torch.arange(1, self.num_loops + 1, dtype=floor.dtype, device=floor.device)
        return floor[..., None] ** 0.5**halvings

    def _table(self, name: str) -> Tensor:
        if name != "corr":
            return super()._table(name)
        # Recomputed in each dtype, so that silence gives exactly 0.
        return self._silent(super()._table("floor"), super()._table("rest"))

    def _silent(self, floor: Tensor, rest: Tensor) -> Tensor:
        """Output of the last loop in silence, by the same divisions as in `step`."""
        v = floor[0] if floor.dim() and not self.per_channel_init else floor
        for s in rest.unbind(-1):
            v = v / s
        return v

    @property
    def _floor(self) -> Tensor:
        return torch.sigmoid(self.logit_minlvl) if self.learnable else self.floor

    @property
    def minlvl(self) -> Tensor:
        """Smallest input as an amplitude, 0-dim; that of channel 0 if channels differ."""
        return self._floor[0] if self.use_freq_specific_minlvl else self._floor

    @property
    def minlvl_per_channel(self) -> Tensor | None:
        """Smallest input (channel,), or None if all channels share one."""
        return self._floor if self.use_freq_specific_minlvl else None

    @property
    def b0(self) -> Tensor:
        """Gain of each loop's low-pass (loop,), 1 - exp(-1 / (tau fs))."""
        if not self.learnable:
            return self.rates
        return -torch.expm1(-1 / (self.log_tau.exp() * self.fs))

    @property
    def a1(self) -> Tensor:
        """Feedback coefficient of each loop's low-pass (loop,), exp(-1 / (tau fs))."""
        return 1 - self.b0

    @property
    def init_state(self) -> Tensor:
        """State in silence (loop,); (channel, loop) with `per_channel_init`."""
        return self._rest(self._floor) if self.learnable else self.rest

    @property
    def limit(self) -> Tensor:
        """Overshoot limit of onsets relative to the steady output, 0-dim."""
        if not (self.learnable and self.limited):
            return self.fixed_limit
        return _least_limit(self.init_state) + self.log_room.exp()

    def _loops(self) -> Loops:
        if not self.learnable:
            floor, rates, corr, mult = self.registered("floor", "rates", "corr", "mult")
            overshoot = self.overshoot if self.limited else None
            return Loops(floor, rates, overshoot, corr, mult)
        most = (1 - self.init_state**2) * self.limit - 1 if self.limited else None
        return Loops(self._floor, self.b0, most, self.corr, self.mult)

    def initial_state(self, shape: Shape) -> State:
        self.check_shape(shape)
        rest = self.init_state.expand(*shape, self.num_loops)
        return {"loops": torch.stack([rest, torch.zeros_like(rest)], -1)}

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        y, loops = adaptation_loops(x, self._loops(), state["loops"])
        return y, {"loops": loops}

    def forward(self, x: Tensor) -> Tensor:
        """`whole(x)`, in the dtype of `x` if that is floating point."""
        return as_given(self.whole(x), x)

    def translated(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
        smallest = "minlvl_per_channel" if self.use_freq_specific_minlvl else "minlvl"
        if not self.learnable or not {smallest, "a1", "b0"} <= set(given):
            return {}
        # Initial values in torch_amt, which here follow from the learned ones.
        for name in {"init_state", "minlvl"} - {smallest}:
            given.pop(name, None)
        floor, a1, b0 = (given[name].double() for name in (smallest, "a1", "b0"))
        if not torch.allclose(b0, 1 - a1, rtol=1e-3, atol=1e-7):
            raise ValueError("learned b0 is not 1 - a1, so that a loop has a gain at 0 Hz")
        if not ((floor > 0) & (floor < 1)).all() or not ((a1 > 0) & (a1 < 1)).all():
            raise ValueError(f"learned {smallest} or a1 is not between 0 and 1")
        taken = {"logit_minlvl": floor.logit(), "log_tau": (-1 / ((-b0).log1p() * self.fs)).log()}
        if self.limited and "limit" in given:
            room = given["limit"].double() - _least_limit(self._rest(floor))
            if not room > 0:
                raise ValueError(
                    f"learned limit {given['limit'].item():.7g} leaves no room for onsets"
                )
            taken["log_room"] = room.log()
            del given["limit"]
        del given[smallest], given["a1"], given["b0"]
        return taken

    def extra_repr(self) -> str:
        lowest = "per channel" if self.use_freq_specific_minlvl else f"{self.minlvl.item():.4g}"
        return f"{super().extra_repr()}, num_loops={self.num_loops}, minlvl={lowest}"


def _numbers(values: object) -> Tensor:
    return torch.as_tensor(values, device="cpu").detach().double()


def _least_limit(rest: Tensor) -> Tensor:
    """The limit, 0-dim, at which the last loop could not exceed 1."""
    return (1 / (1 - rest[..., -1] ** 2)).max()
