"""A whole sound in memory, for what measures it several times."""

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from amt_stream.dsp.channel_layout import Layout
from amt_stream.engine.inputs.sound_file import calibrations_in
from amt_stream.engine.microphone.converter_ends import ConverterEnds
from amt_stream.engine.microphone.offset import offset_words
from amt_stream.meters.calibration import UNCALIBRATED, Calibration


@dataclass(frozen=True)
class WholeSound:
    """Samples (time, channel), their rate, and one calibration for all channels or for each.

    layout: position of each channel; None for the usual one
    remark: what makes its loudness uncertain: what is wrong with its length, that it is clipped; ""
    cut_off: whether sound is missing at its end
    """

    samples: NDArray[np.float32]
    fs: int
    calibrations: list[Calibration]
    layout: Layout | None = None
    remark: str = ""
    cut_off: bool = False

    @property
    def peak_dbfs(self) -> float:
        """The highest sample; minus infinity for silence."""
        peak = float(np.abs(self.samples).max(initial=0.0))
        return 20 * math.log10(peak) if peak else -math.inf

    @property
    def calibrated(self) -> bool:
        """Whether the level of every channel is known."""
        return all(one.calibrated for one in self.calibrations)


def read_whole(
    given: object,
    fs: int | None,
    calibration: float | Calibration | None,
    models: Mapping[str, int],
    channels: Sequence[int] | None = None,
    layout: Layout | str | None = None,
) -> WholeSound:
    """Read a path, or an array with its rate: the channels that a model hears.

    calibration: level in dB SPL of a full-scale sine, or a `Calibration`; without it, that in the
        comment of a file, if there is one
    models: the most channels that the model takes, by its name
    channels, layout: as for `measure`

    Warns of a choice of channels that is not plain, an offset, clipped sound, and a length that is
    wrong. Raises SourceError for invalid sound, and ValueError for an array without a rate.
    """
    from amt_stream.offline.analysis import ArrayRecording, CheckedFile

    one = UNCALIBRATED if calibration is None else calibration
    levels = [one if isinstance(one, Calibration) else Calibration(one)]
    if isinstance(given, str | Path):
        sound = CheckedFile(given, channels, None, models, layout)
        if calibration is None and (stored := calibrations_in(sound.path)):
            levels = [stored.get(channel, UNCALIBRATED) for channel in sound.channels]
    elif fs is None:
        raise ValueError("fs is missing: give the sampling rate of the array in hertz")
    else:
        sound = ArrayRecording(given, fs, channels, None, models, layout)
    sound.warn_of_channels(stacklevel=4)
    samples, about = np.concatenate(list(sound.blocks())), sound.description
    if words := offset_words(about.offset):
        said = f"{sound.name} has an offset of {words}, which is removed"
        warnings.warn(said, RuntimeWarning, stacklevel=4)
    ends = ConverterEnds(samples.shape[1], about.clips_at)
    is_clipped = len(ends.clipped(samples, np.ones(samples.shape, np.bool_), 0)) > 0
    wrong = about.length_words, "it is clipped: it may have been louder" if is_clipped else ""
    remark = "; ".join(filter(None, wrong))
    if remark:
        warnings.warn(f"{sound.name}: {remark}", RuntimeWarning, stacklevel=4)
    layout, cut_off = sound.heard.layout, bool(about.cut_off)
    return WholeSound(samples, sound.fs, levels, layout, remark, cut_off)
