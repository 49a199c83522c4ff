"""Loudness and tonality by the hearing model of ECMA-418-2:2025."""

from amt_stream.dsp.compose import Delay
from amt_stream.dsp.functional.ecma418.bands import FS, HOP
from amt_stream.dsp.fused import FusedChain, HostOutput
from amt_stream.dsp.models.by_metrics import ByMetrics
from amt_stream.dsp.stages import ecma418
from amt_stream.dsp.stages.resample import Resample
from amt_stream.dsp.streaming import GivesOutput, Stage


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


class _ToLoudness(ByMetrics):
    metric, output = "loudness", ecma418.ECMALoudnessOutput
    host_outputs = (HostOutput("n", "sone_HMS"),)


class _ToTonality(ByMetrics):
    metric, output = "tonality", ecma418.ECMATonalityOutput
    host_outputs = HostOutput("t", "tu_HMS"), HostOutput("hz", "Hz")


class _HearingModel(FusedChain):
    """Sound to tonal and noise loudness, and what a last stage makes of it."""

    frame_rate = ecma418.FRAME_RATE
    # The frames that the standard leaves out of single values.
    settle_s = 57 / ecma418.FRAME_RATE
    # The end of a tone can make the ratio of tone to noise a million times too high. The low-pass
    # over frames reduces this by a factor of 1e7 within 0.7 s; blocks reach back 0.26 s.
    memory_s = 1.2
    # Blocks and the low-pass over frames pass the end.
    tail_s = 0.5

    def __init__(self, fs: int, field: ecma418.ECMAField, **last: Stage) -> None:
        before, late = resampled(fs, HOP)
        ear, bands = ecma418.ECMAEarFilter(field, late), ecma418.ECMAFilterbank()
        super().__init__(
            **before, ear=ear, bands=bands, tones=ecma418.ECMATonalNoise(late // HOP), **last
        )
        self.fs = fs


class ECMALoudness(GivesOutput[ecma418.ECMALoudnessOutput], _HearingModel):
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

    def __init__(self, fs: int = FS, field: ecma418.ECMAField = "free") -> None:
        super().__init__(fs, field, loudness=ecma418.ECMASpecificLoudness())


class ECMATonality(GivesOutput[ecma418.ECMATonalityOutput], _HearingModel):
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

    def __init__(self, fs: int = FS, field: ecma418.ECMAField = "free") -> None:
        super().__init__(fs, field, tonality=ecma418.ECMASpecificTonality())
