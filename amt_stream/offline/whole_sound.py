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
from amt_stream.meters.calibration import UNCALIBRATED, Calibration


@dataclass(frozen=True)
class WholeSound:
    """Samples (time, channel), their rate, and one calibration for all channels or for each.

    layout: position of each channel; None for the usual one
    """

    samples: NDArray[np.float32]
    fs: int
    calibrations: list[Calibration]
    layout: Layout | None = None

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

    Warns of a choice of channels that is not plain, and of a length that is wrong. Raises
    SourceError for invalid sound, and ValueError for an array without a rate.
    """
    from amt_stream.offline.analysis import ArrayRecording, CheckedFile

    one = UNCALIBRATED if calibration is None else calibration
    levels = [one if isinstance(one, Calibration) else Calibration(one)]
    if isinstance(given, str | Path):
        sound = CheckedFile(given, channels, None, models, layout)
        if calibration is None and (stored := calibrations_in(sound.path)):
            levels = [stored.get(channel, UNCALIBRATED) for channel in sound.channels]
        if length := sound.description.length_words:
            warnings.warn(f"{sound.name}: {length}", RuntimeWarning, stacklevel=4)
    elif fs is None:
        raise ValueError("fs is missing: give the sampling rate of the array in hertz")
    else:
        sound = ArrayRecording(given, fs, channels, None, models, layout)
    sound.warn_of_channels(stacklevel=4)
    samples = np.concatenate(list(sound.blocks()))
    return WholeSound(samples, sound.fs, levels, sound.heard.layout)
