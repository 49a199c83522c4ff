"""Readings of whole sound files, in little memory however long they are."""

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from amt_stream.calibration import Calibration
from amt_stream.engine.measurement import Line, Measurement
from amt_stream.engine.sources import LARGEST_SAMPLE, FileSource, SourceError, channel_slice
from amt_stream.frames import Frames
from amt_stream.streaming import Stage

BLOCK_MS = 100.0


class InvalidSample(SourceError):
    """A sound file holds something that is no sound: NaN, infinity, or a number beyond reason."""


class Recording:
    """A sound file, read through once and found good.

    `channels` are one or two numbers (1, 2, ...); all are taken where it has no more than `most`,
    else they have to be chosen. Raises SourceError for what is no sound, and InvalidSample for NaN,
    infinity or a sample beyond LARGEST_SAMPLE unless `replace_invalid`: they are then read as 0,
    and `replaced` says how many.
    """

    def __init__(
        self,
        path: str | Path,
        channels: Sequence[int] | None = None,
        replace_invalid: bool = False,
        most: int = 2,
    ) -> None:
        self.path = Path(path)
        if self.path.is_dir():
            raise SourceError(f"{self.path} is a folder: give the sound files in it")
        file = FileSource(self.path, paced=False)
        self.fs = file.fs
        self._pick = channel_slice(channels, file.channels, str(self.path), most)
        self.channels = tuple(range(1, file.channels + 1)[self._pick])
        self.samples = self.replaced = 0
        for block in self._read(file):
            invalid = ~_valid(block)
            if invalid.any() and not replace_invalid:
                at, column = np.argwhere(invalid)[0]
                self._refuse(block[at, column], self.samples + int(at), int(column))
            self.replaced += int(np.count_nonzero(invalid))
            self.samples += len(block)

    @property
    def duration_s(self) -> float:
        return self.samples / self.fs

    def blocks(self) -> Iterator[NDArray[np.float32]]:
        """The chosen channels (time, channel), block after block."""
        for block in self._read(FileSource(self.path, paced=False)):
            yield np.where(_valid(block), block, np.float32(0.0))

    def _read(self, file: FileSource) -> Iterator[NDArray[np.float32]]:
        import soundfile

        try:
            for block in file.blocks():
                yield block[:, self._pick]
        except soundfile.LibsndfileError as error:
            raise SourceError(f"{self.path} is damaged: {error.error_string}") from error
        finally:
            file.stop()

    def _refuse(self, value: float, sample: int, column: int) -> None:
        raise InvalidSample(
            f"{self.path} holds {value} at sample {sample} ({sample / self.fs:.6f} s), channel "
            f"{self.channels[column]}: repair the file, or have such samples read as 0 "
            "(--replace-invalid)"
        )


def _valid(block: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Where there is a sample that can be one; NaN compares as false."""
    valid: NDArray[np.bool_] = np.abs(block) <= LARGEST_SAMPLE
    return valid


def analyze(
    recording: Recording, model: Stage | Mapping[str, Stage], calibration: Calibration
) -> Iterator[Frames]:
    """Frames of one model, or of several by name, from 0 to the end of a recording.

    They are those of an `Engine`, without its threads: each model's latency is taken out, the frame
    that stands at the very end is there. One channel goes to both ears; a model that takes
    fractions of full scale gets them, all chosen channels. Frames are too small to share among
    threads: it is fastest in a thread that has called `torch.set_num_threads(1)` and
    `torch.set_flush_denormal(True)`.
    """
    models = model if isinstance(model, Mapping) else {"": model}
    heard = len(recording.channels)
    arrived: list[Frames] = []
    measurements = [
        Measurement(
            Line(one, recording.fs, BLOCK_MS, heard),
            calibration,
            slice(0, heard),
            emit=arrived.append,
            epoch=lambda audio_s: math.nan,
            line_changed=lambda line: None,
            name=name,
        )
        for name, one in models.items()
    ]
    for block in recording.blocks():
        with torch.inference_mode():
            for measurement in measurements:
                measurement.take(block)
        yield from arrived
        arrived.clear()
    with torch.inference_mode():
        for measurement in measurements:
            measurement.flush()
    yield from arrived
