"""Loudness after Zwicker (ISO 532-1:2017): over time, and of a stationary sound."""

from math import prod
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from amt_stream.dsp.functional import zwicker_loudness
from amt_stream.dsp.functional.zwicker import POINTS, STEP, Cores, levels, loudness_pattern
from amt_stream.dsp.functional.zwicker_loudness import AT, CALLS, EVERY
from amt_stream.dsp.fused import Fused, FusedChain, HostOutput, Workspace
from amt_stream.dsp.scales import zwicker_phon
from amt_stream.dsp.stages.resample import Resample
from amt_stream.dsp.stages.zwicker import (
    BANDS,
    CENTERS,
    FS,
    CoreLoudness,
    ThirdOctaveLevels,
    ZwickerField,
    ZwickerLoudness,
    ZwickerOutput,
)
from amt_stream.dsp.stream import aligned
from amt_stream.dsp.streaming import GivesOutput, Outputs, Shape, Stage, State


class ByBands(Fused):
    """`ThirdOctaveLevels`, `CoreLoudness` and `ZwickerLoudness`, after an optional resampler."""

    home = zwicker_loudness.__name__
    kernels = ("to_loudness",)
    rows = AT
    first_output = "core_out"
    host_outputs: tuple[HostOutput, ...] = (HostOutput("n", "sone"),)

    def make(self, made: Workspace) -> None:
        self.loudness = self.named["loudness"]
        if self.loudness.gives_specific_loudness:
            self.first_output = "specific"
        self.resample(made, CALLS)
        self.call(made, CALLS, "to_powers", "to_levels", "to_cores", "to_decayed", "to_total")
        self.call(made, CALLS, "to_weighted", "to_end", "to_specific")
        self.put_tables(made, self.named["levels"], "poles", "gain", "smoothing")
        self.put_tables(made, self.named["core"], *Cores._fields)
        self.put_tables(made, self.loudness, "decay", "weighting", "upper", "floors", "slopes")

    def allocate(self, workspace: Workspace, lead: Shape, time: int, state: State) -> None:
        rows, bands = prod(lead), CENTERS.size
        frames = self.resampled(workspace, rows, time) // STEP
        lines, shown = rows * frames, frames // EVERY
        workspace.memory["levels/filters"] = "filters", (rows, *state["levels/filters"].shape[-2:])
        workspace.memory["loudness/cores"] = "cores", (rows, 3, BANDS)
        workspace.memory["loudness/low_passes"] = "low_passes", (rows, 2)
        workspace.memory["loudness/begun"] = "begun", (rows,)
        workspace.expect("in_frames", rows, frames, STEP)
        workspace.make("powers", torch.float64, rows, frames, bands)
        workspace.make("levels", self.dtype, lines, bands)
        for name, as_lines in (("core", "core_lines"), ("decayed", "decayed_lines")):
            made = workspace.make(name, self.dtype, rows, frames, BANDS)
            workspace.put(as_lines, made, lines, BANDS)
        workspace.put("total_lines", workspace.make("total", self.dtype, rows, frames), lines)
        workspace.make("weighted", self.dtype, rows, frames)
        workspace.expect("no_samples", lines, 0)
        workspace.expect("n", rows, shown)
        workspace.expect("core_out", rows, shown, BANDS)
        workspace.expect("core_out_lines", rows * shown, BANDS)
        workspace.outputs = (*lead, shown, BANDS), (*lead, shown)
        if self.loudness.gives_specific_loudness:
            workspace.make("total_out", self.dtype, rows * shown)
            workspace.expect("specific", rows * shown, POINTS)
            workspace.outputs = (*lead, shown, POINTS), *workspace.outputs

    def run(self, workspace: Workspace) -> Outputs:
        *specific, core, n = self.outputs(workspace)
        self.entry(workspace.plan, self.like)
        return ZwickerOutput(n, specific[0] if specific else None, core)


class ZwickerTimeVarying(GivesOutput[ZwickerOutput], FusedChain):
    """Sound pressure (..., time) in pascal at `fs` to `ZwickerOutput`, one frame per 2 ms.

    The method of ISO 532-1:2017 for time-varying sounds. It is defined for one microphone: each
    channel is measured on its own, and sones are not added. As in the standard, the filters' delay
    is not compensated; with resampling, frames lag by 2 ms more (8 at 8 kHz).

    fs: sampling rate in whole hertz; rates other than 48 kHz are resampled
    field: "free" or "diffuse", of the sound at the microphone
    specific_loudness: whether the output includes it

    Raises ValueError for any other value.

    >>> import torch
    >>> loudness = ZwickerTimeVarying(fs=48000)
    >>> loudness(torch.zeros(2, 4800)).n.shape
    torch.Size([2, 50])
    """

    fused = ByBands
    frame_rate = 500
    per_channel = True
    # By then a 25 Hz tone reads within 1 % of its final value; higher tones settle sooner.
    settle_s = 0.5
    # 1.2 s after a 25 Hz tone 50 dB louder, 0.7 s after higher ones.
    memory_s = 1.5
    # Loudness peaks within 0.1 s, with the slowest filter. Sharpness may rise during the decay,
    # until even of 150 sone less than 0.001 sone is left, which has no sharpness.
    tail_s = 1.0

    def __init__(
        self, fs: int = FS, field: ZwickerField = "free", specific_loudness: bool = False
    ) -> None:
        front: dict[str, Stage] = {} if fs == FS else {"resample": Resample(fs, FS)}
        super().__init__(
            **front,
            levels=ThirdOctaveLevels(),
            core=CoreLoudness(field),
            loudness=ZwickerLoudness(specific_loudness),
        )
        self.fs = fs


class ZwickerStationary(NamedTuple):
    """Loudness of a stationary sound.

    n: in sone (...)
    specific: specific loudness in sone/Bark at 0.1, 0.2 ... 24 Bark (..., 240)
    phon: loudness level (...)
    """

    n: Tensor
    specific: Tensor
    phon: Tensor


def zwicker_stationary(
    x: Tensor, fs: int = FS, field: ZwickerField = "free", skip_s: float = 0.2
) -> ZwickerStationary:
    """Loudness of a whole sound (..., time) in pascal, by ISO 532-1's method for stationary sounds.

    Band levels are means from `skip_s` seconds, by which the filters have settled, to the end, in
    whole steps of 0.5 ms. Computed in float64. Raises ValueError for a sound shorter than `skip_s`.
    """
    bank = ThirdOctaveLevels(smooth=False).double()
    x = bank.converted(x)
    if fs != FS:
        x = aligned(Resample(fs, FS).double(), x)
    skipped, frames = round(skip_s * FS / STEP), x.shape[-1] // STEP
    if not 0 <= skipped < frames:
        raise ValueError(
            f"a sound of {x.shape[-1] / FS:g} s leaves nothing to measure after skip_s = {skip_s}: "
            "give a longer sound or a smaller skip_s, not below 0"
        )
    powers, _ = bank.powers(x[..., : frames * STEP], bank.initial_state(tuple(x.shape[:-1])))
    mean = powers[..., skipped:, :].mean(-2)
    return zwicker_from_levels(levels(mean, mean.dtype), field)


def zwicker_from_levels(level_db: Tensor, field: ZwickerField = "free") -> ZwickerStationary:
    """Loudness of a stationary sound from third-octave levels (..., 28) in dB, 25 Hz to 12.5 kHz.

    Computed in float64.
    """
    stage = CoreLoudness(field).double()
    core = stage(stage.converted(level_db))
    n, specific = loudness_pattern(core, ZwickerLoudness().double().tables(), True)
    assert specific is not None
    return ZwickerStationary(n, specific, zwicker_phon(n.detach()))


def exceeded(n: Tensor | np.ndarray, percent: float = 5.0) -> float | np.ndarray:
    """The loudness that `n` (..., frame) exceeds for `percent` of the time, such as N5.

    A percentile with linear interpolation, as in `numpy.percentile`. It depends on how much silence
    `n` has before and after the sound.
    """
    values = n.detach().cpu().numpy() if isinstance(n, torch.Tensor) else n
    return np.percentile(values, 100 - percent, axis=-1)
