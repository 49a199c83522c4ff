"""Loudness and tonality by the hearing model of ECMA-418-2:2025."""

from collections.abc import Callable
from math import prod
from typing import ClassVar

import torch

from amt_stream.dsp.compose import Delay
from amt_stream.dsp.functional.ecma418 import sound_to_parts
from amt_stream.dsp.functional.ecma418.autocorrelation import own
from amt_stream.dsp.functional.ecma418.bands import BANDS, FS, HOP
from amt_stream.dsp.functional.ecma418.sound_to_parts import AT, CALLS, ORDER, to_metrics
from amt_stream.dsp.functional.ecma418.tones import NO_ROWS, STATE_SHAPES, TonalTables
from amt_stream.dsp.fused import Fused, FusedChain, HostOutput, Workspace
from amt_stream.dsp.stages.ecma418 import (
    FRAME_RATE,
    ECMAEarFilter,
    ECMAField,
    ECMAFilterbank,
    ECMALoudnessOutput,
    ECMASpecificLoudness,
    ECMASpecificTonality,
    ECMATonalityOutput,
    ECMATonalNoise,
)
from amt_stream.dsp.stages.resample import Resample
from amt_stream.dsp.streaming import GivesOutput, Outputs, Shape, Stage, State


def resampled(fs: int, frame: int) -> tuple[dict[str, Stage], int]:
    """Stages from `fs` to 48 kHz, and the samples by which the sound is late after them.

    These are whole frames of so many samples. At 48 kHz there are no stages, and it is not late.
    """
    if fs == FS:
        return {}, 0
    resample = Resample(fs, FS)
    delay = int(resample.latency * resample.ratio)
    wait = Delay(-delay % frame)
    return {"resample": resample, "wait": wait}, delay + wait.samples


class _ByParts(Fused):
    """`ECMAEarFilter`, `ECMAFilterbank` and `ECMATonalNoise`, after an optional resampler.

    last: the kernel that follows them
    given: rows of its outputs, of which the last has an axis of bands
    form: the type of the output
    """

    home = sound_to_parts.__name__
    kernels = ("to_metrics",)
    rows = AT
    last: ClassVar[str]
    given: ClassVar[tuple[str, ...]]
    form: ClassVar[Callable[..., Outputs]]

    def make(self, made: Workspace) -> None:
        ear, bands, tones = (self.named[name] for name in ("ear", "bands", "tones"))
        self.resample(made, CALLS)
        self.call(made, CALLS, "to_faded", "to_filtered", "to_ear", "to_bands", "to_tones")
        self.call(made, CALLS, "to_parts", self.last)
        self.put_tables(made, ear, "fade", "numerators", "denominators")
        poles, of_poles = bands.registered("poles", "weights")
        made.put("poles", poles)
        made.put("of_poles", of_poles)
        self.put_tables(made, tones, *TonalTables._fields)
        made.keep("no_rows", torch.from_numpy(NO_ROWS))

    def allocate(self, workspace: Workspace, lead: Shape, time: int, state: State) -> None:
        rows, resamples = prod(lead), "resample" in self.named
        time = self.resampled(workspace, rows, time)
        late = self.named["wait"].samples if resamples else 0
        if resamples:
            workspace.memory["wait/past"] = "before_delay", (rows, late)
            workspace.make("delayed", self.dtype, rows, late + time)
        workspace.expect("sound", rows, late + time)
        sections = state["ear/past"].shape[-2]
        workspace.memory["ear/begun"] = "faded", (rows,)
        workspace.memory["ear/past"] = "past", (rows, sections, 2)
        workspace.memory["bands/u"] = "filters", (rows, 2, ORDER, BANDS)
        for name, (first, *shape) in STATE_SHAPES.items():
            workspace.memory[f"tones/{name}"] = name, (rows * first, *shape)
        workspace.make("inside", torch.float64, rows, time)
        workspace.put("ear_rows", workspace.make("ear", self.dtype, rows, time), rows, 1, time)
        workspace.make("bands", self.dtype, rows, BANDS, time)
        for name, array in own.memory._asdict().items():
            workspace.keep(name, torch.from_numpy(array.copy()))
        frames = time // HOP
        workspace.make("tones", torch.float64, rows, 3, BANDS, frames)
        workspace.make("parts", self.dtype, rows, 3, frames, BANDS)
        *single, specific = self.given
        for name in single:
            workspace.expect(name, rows, frames)
        workspace.expect(specific, rows, frames, BANDS)
        workspace.outputs = *((*lead, frames) for _ in single), (*lead, frames, BANDS)

    def run(self, workspace: Workspace) -> Outputs:
        y = self.outputs(workspace)
        to_metrics(workspace.plan, self.like)
        return type(self).form(*y)


class _ToLoudness(_ByParts):
    first_output, last, given = "n", "to_loudness", ("n", "specific_n")
    form = ECMALoudnessOutput
    host_outputs = (HostOutput("n", "sone_HMS"),)


class _ToTonality(_ByParts):
    first_output, last, given = "t", "to_tonality", ("t", "hz", "specific_t")
    form = ECMATonalityOutput
    host_outputs = HostOutput("t", "tu_HMS"), HostOutput("hz", "Hz")


class _HearingModel(FusedChain):
    """Sound to tonal and noise loudness, and what a last stage makes of it."""

    frame_rate = FRAME_RATE
    # The frames that the standard leaves out of single values.
    settle_s = 57 / FRAME_RATE
    # The end of a tone can make the ratio of tone to noise a million times too high. The low-pass
    # over frames reduces this by a factor of 1e7 within 0.7 s; blocks reach back 0.26 s.
    memory_s = 1.2
    # Blocks and the low-pass over frames pass the end.
    tail_s = 0.5

    def __init__(self, fs: int, field: ECMAField, **last: Stage) -> None:
        before, late = resampled(fs, HOP)
        ear, bands = ECMAEarFilter(field, late), ECMAFilterbank()
        super().__init__(**before, ear=ear, bands=bands, tones=ECMATonalNoise(late // HOP), **last)
        self.fs = fs


class ECMALoudness(GivesOutput[ECMALoudnessOutput], _HearingModel):
    """Sound pressure (..., time) in pascal at `fs` to `ECMALoudnessOutput`, 187.5 frames a second.

    The method of ECMA-418-2:2025, clause 8: a tone of 1 kHz and 40 dB has 1 sone_HMS. Each channel
    is measured on its own. Frames lag by 80 ms, and come two at a time at 48 kHz.

    fs: sampling rate in whole hertz; rates other than 48 kHz are resampled
    field: "free" or "diffuse", of the sound at the microphone

    Raises ValueError for any other value.

    >>> import torch
    >>> loudness = ECMALoudness(fs=48000)
    >>> loudness(torch.zeros(2, 4096)).n.shape
    torch.Size([2, 16])
    """

    fused = _ToLoudness

    def __init__(self, fs: int = FS, field: ECMAField = "free") -> None:
        super().__init__(fs, field, loudness=ECMASpecificLoudness())


class ECMATonality(GivesOutput[ECMATonalityOutput], _HearingModel):
    """Sound pressure (..., time) in pascal at `fs` to `ECMATonalityOutput`, 187.5 frames a second.

    The method of ECMA-418-2:2025, clause 6: a tone of 1 kHz and 40 dB has 1 tu_HMS; above 0.4
    tu_HMS tonality is prominent. Each channel is measured on its own. Frames lag by 80 ms, and come
    two at a time at 48 kHz.

    Arguments and errors are those of `ECMALoudness`.

    >>> import torch
    >>> tonality = ECMATonality(fs=48000)
    >>> tonality(torch.zeros(2, 4096)).t.shape
    torch.Size([2, 16])
    """

    fused = _ToTonality

    def __init__(self, fs: int = FS, field: ECMAField = "free") -> None:
        super().__init__(fs, field, tonality=ECMASpecificTonality())
