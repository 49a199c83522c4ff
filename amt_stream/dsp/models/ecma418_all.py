"""All metrics of the hearing model of ECMA-418-2:2025, of one ear filter and one loudness model."""

from collections.abc import Iterable
from fractions import Fraction
from math import lcm
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from amt_stream.dsp.compose import Chain, Delay, Parallel, parted, prefixed
from amt_stream.dsp.functional.compiler.private_torch import hooked
from amt_stream.dsp.functional.ecma418.bands import BANDS, FS, HOP
from amt_stream.dsp.functional.ecma418.envelopes import STEP
from amt_stream.dsp.functional.ecma418.modulation import FRAME
from amt_stream.dsp.fused import FusedChain, HostOutput
from amt_stream.dsp.hooks import steps_as
from amt_stream.dsp.models.by_metrics import ByAllMetrics
from amt_stream.dsp.models.ecma418 import resampled
from amt_stream.dsp.models.ecma418_modulation import ECMAFluctuation
from amt_stream.dsp.stages import ecma418
from amt_stream.dsp.stages.ecma418_modulation import (
    ECMAEnvelopes,
    ECMASpecificFluctuation,
    ECMASpecificRoughness,
)
from amt_stream.dsp.stages.held import HeldFrames
from amt_stream.dsp.streaming import GivesOutput, Outputs, Shape, Stage, State, output


@output
class ECMA418Output(NamedTuple):
    """All metrics per frame, 187.5 a second; the last four fields are specific values by band.

    n: loudness in sone_HMS (..., frame)
    t: tonality in tu_HMS (..., frame)
    tone_hz: frequency of the strongest tone (..., frame)
    r: roughness in asper (..., frame)
    modulation_hz: modulation rate of the roughest band (..., frame)
    f: fluctuation strength in vacil_HMS (..., frame)
    specific_n: in sone_HMS/Bark_HMS (..., frame, 53)
    specific_t: in tu_HMS (..., frame, 53)
    specific_r: in asper/Bark_HMS (..., frame, 53)
    specific_f: in vacil_HMS/Bark_HMS (..., frame, 53)
    """

    n: Tensor
    t: Tensor
    tone_hz: Tensor
    r: Tensor
    modulation_hz: Tensor
    f: Tensor
    specific_n: Tensor
    specific_t: Tensor
    specific_r: Tensor
    specific_f: Tensor


_TIMES = ECMA418Output(*[-1] * 6, *[-2] * 4)  # type: ignore[arg-type]


class _Modulation(Stage):
    """Envelopes and powers (..., 2, 53, time) of `ECMAEnvelopes` to frames (..., frame, 109).

    Roughness, its rate and its specific values, then fluctuation strength and its specific values,
    50 times a second, of the same time.

    lead_in: frames of silence before the sound
    """

    block_size = FRAME
    ratio = Fraction(1, FRAME)
    out_time_dim = -2
    frames_stand_for_end = True

    def __init__(self, lead_in: int) -> None:
        super().__init__()
        self.roughness = ECMASpecificRoughness(lead_in)
        self.fluctuation = ECMASpecificFluctuation(lead_in)
        self.fixed_axes, self.shape_remedy = self.roughness.fixed_axes, self.roughness.shape_remedy
        self.latency = self.fluctuation.latency
        self.wait = Delay(int((self.latency - self.roughness.latency) * self.ratio), -2)
        members = ("roughness", self.roughness), ("fluctuation", self.fluctuation)
        self.keeps_double = tuple(f"{name}/{key}" for name, s in members for key in s.keeps_double)

    def initial_state(self, shape: Shape) -> State:
        state = prefixed("roughness", self.roughness.initial_state(shape))
        state |= prefixed("fluctuation", self.fluctuation.initial_state(shape))
        return state | {"late": self.wait.initial_state((*shape[:-2], 2 + BANDS))["past"]}

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        parts = parted(state)
        rough, r_after = self.roughness.step(x, parts["roughness"])
        fluctuating, f_after = self.fluctuation.step(x, parts["fluctuation"])
        late, waiting = self.wait.step(torch.cat(_in_a_row(rough), -1), {"past": state["late"]})
        y = torch.cat([late, *_in_a_row(fluctuating)], -1)
        after = prefixed("roughness", r_after) | prefixed("fluctuation", f_after)
        return y, after | {"late": waiting["past"]}

    def advance(self, x: Tensor, state: State) -> Outputs:
        if not steps_as(self, _Modulation):
            return super().advance(x, state)
        parts = parted(state)
        rough = self.roughness.advance(x, parts["roughness"])
        fluctuating = self.fluctuation.advance(x, parts["fluctuation"])
        late = self.wait.advance(torch.cat(_in_a_row(rough), -1), {"past": state["late"]})
        return torch.cat([late, *_in_a_row(fluctuating)], -1)

    def out_shape(self, shape: Shape) -> Shape:
        return (*shape[:-2], 3 + 2 * BANDS)


def _in_a_row(y: Iterable[Tensor]) -> list[Tensor]:
    """Single values (..., frame) and specific ones (..., frame, band), of one axis each."""
    *single, specific = y
    return [*(v[..., None] for v in single), specific]


class _Metrics(Parallel):
    """Sound at the cochlea (..., time) to `ECMA418Output`.

    late: samples of silence before the sound
    """

    def __init__(self, late: int) -> None:
        modulation = _Modulation(late // (STEP * FRAME))
        super().__init__(
            parts=Chain(bands=ecma418.ECMAFilterbank(), parts=ecma418.ECMATonalNoise(late // HOP)),
            modulation=Chain(envelopes=ECMAEnvelopes(), held=HeldFrames(modulation, HOP // STEP)),
        )
        nn.Module.add_module(self, "loudness", ecma418.ECMASpecificLoudness())
        nn.Module.add_module(self, "tonality", ecma418.ECMASpecificTonality())

    @property
    def out_time_dim(self) -> ECMA418Output:
        return _TIMES

    def step(self, x: Tensor, state: State) -> tuple[Outputs, State]:
        y, after = super().step(x, state)
        return self._metrics(*y), after

    def advance(self, x: Tensor, state: State) -> Outputs:
        if hooked(self):
            return super().advance(x, state)
        return self._metrics(*self.advanced(x, state))

    def _metrics(self, parts: Tensor, modulation: Tensor) -> ECMA418Output:
        last: Any = self._modules
        (n, specific_n), _ = last["loudness"].step(parts, {})
        (t, tone_hz, specific_t), _ = last["tonality"].step(parts, {})
        r, rate, specific_r, f, specific_f = modulation.split([1, 1, BANDS, 1, BANDS], -1)
        r, rate, f = (v.squeeze(-1) for v in (r, rate, f))
        return ECMA418Output(
            n, t, tone_hz, r, rate, f, specific_n, specific_t, specific_r, specific_f
        )

    def out_shape(self, shape: Shape) -> ECMA418Output:
        return ECMA418Output(*[shape] * 6, *[(*shape, BANDS)] * 4)  # type: ignore[arg-type]


class _ToAll(ByAllMetrics):
    output = ECMA418Output
    host_outputs = (
        *(HostOutput("n", "sone_HMS"), HostOutput("t", "tu_HMS"), HostOutput("tone_hz", "Hz")),
        *(
            HostOutput("r", "asper"),
            HostOutput("modulation_hz", "Hz"),
            HostOutput("f", "vacil_HMS"),
        ),
    )


class ECMA418(GivesOutput[ECMA418Output], FusedChain):
    """Sound pressure (..., time) in pascal at `fs` to `ECMA418Output`, 187.5 frames a second.

    Loudness, tonality, roughness and fluctuation strength of ECMA-418-2:2025 at once: the values of
    `ECMALoudness`, `ECMATonality`, `ECMARoughness` and `ECMAFluctuation`, of which loudness and
    tonality share all but the last step. Roughness and fluctuation strength have 50 values a
    second; each is held until the next. All frames lag as fluctuation strength does, 1.46 s, so
    that those of a time come together. Each channel is measured on its own.

    Arguments and errors are those of `ECMALoudness`.

    >>> import torch
    >>> metrics = ECMA418(fs=48000)
    >>> metrics(torch.zeros(2, 4096)).r.shape
    torch.Size([2, 16])
    """

    fused = _ToAll
    frame_rate = ecma418.FRAME_RATE
    # Those of fluctuation strength, the slowest.
    settle_s = ECMAFluctuation.settle_s
    memory_s = ECMAFluctuation.memory_s
    tail_s = ECMAFluctuation.tail_s

    def __init__(self, fs: int = FS, field: ecma418.ECMAField = "free") -> None:
        # Frames of both rates then stand for the times of those at 48 kHz.
        before, late = resampled(fs, lcm(HOP, STEP * FRAME))
        super().__init__(**before, ear=ecma418.ECMAEarFilter(field, late), metrics=_Metrics(late))
        self.fs = fs
