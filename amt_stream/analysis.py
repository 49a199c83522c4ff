"""Loudness of whole sound files, in little memory however long they are."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import ceil, floor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from amt_stream.calibration import Calibration
from amt_stream.compose import Rebuffer
from amt_stream.engine.sources import LARGEST_SAMPLE, FileSource, SourceError, channel_slice
from amt_stream.scales import sone_to_phon
from amt_stream.streaming import Stage, Stream

BLOCK_S = 0.1


class InvalidSample(SourceError):
    """A sound file holds something that is no sound: NaN, infinity, or a number beyond reason."""


class Recording:
    """A sound file, read through once and found good.

    `channels` are one or two numbers (1, 2, ...), needed where there are more than two. Raises
    SourceError for what is no sound, and InvalidSample for NaN, infinity or a sample beyond
    LARGEST_SAMPLE unless `replace_invalid`: they are then read as 0, and `replaced` says how many.
    """

    def __init__(
        self,
        path: str | Path,
        channels: Sequence[int] | None = None,
        replace_invalid: bool = False,
    ) -> None:
        self.path = Path(path)
        if self.path.is_dir():
            raise SourceError(f"{self.path} is a folder: give the sound files in it")
        file = FileSource(self.path, paced=False)
        self.fs = file.fs
        self._pick = channel_slice(channels, file.channels, str(self.path))
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
        """The chosen channels (time, 1 or 2), block after block."""
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


class LoudnessFrames(NamedTuple):
    """Consecutive frames: their time in seconds, short-term and long-term loudness in sone."""

    time_s: NDArray[np.float64]
    stl: NDArray[np.float32]
    ltl: NDArray[np.float32]


def analyze(
    recording: Recording, model: Stage, calibration: Calibration
) -> Iterator[LoudnessFrames]:
    """Frames from 0 to the end of a recording, the one at the very end included.

    Frame k stands for k / (ratio * fs) seconds: the model's latency is taken out. One channel goes
    to both ears. Frames are too small to share among threads: it is fastest in a thread that has
    called `torch.set_num_threads(1)` and `torch.set_flush_denormal(True)`.
    """
    ratio = model.ratio
    blocks = max(1, round(BLOCK_S * recording.fs / model.block_size))
    door = Rebuffer(Stream(model, (1, 2)), blocks)
    early = ceil(model.latency * ratio)
    wanted = floor(recording.samples * ratio) + 1
    given = -early
    # The last frame needs its own time after the end, and the door a whole block.
    tail = ceil(model.latency) + ceil(1 / ratio) + door.size
    for x in _pascal(recording, calibration, tail):
        with torch.inference_mode():
            y: Any = door.push(x)
        if y is None:
            continue
        count = y.ltl.shape[-1]
        first, last = max(0, -given), min(count, wanted - given)
        if first < last:
            k = np.arange(given + first, given + last)
            yield LoudnessFrames(
                k / float(ratio * recording.fs),
                y.stl[0, first:last].numpy(),
                y.ltl[0, first:last].numpy(),
            )
        given += count


def _pascal(recording: Recording, calibration: Calibration, tail: int) -> Iterator[torch.Tensor]:
    """The sound (1, 2, time) in pascal, then `tail` of silence."""
    scale = np.float32(calibration.pascal_per_unit)
    for block in recording.blocks():
        yield torch.from_numpy((block * scale).T.copy())[None].expand(-1, 2, -1)
    yield torch.zeros(1, 2, tail)


@dataclass
class Maxima:
    """The highest readings of a sound and when they were first reached."""

    stl: float = -1.0
    ltl: float = -1.0
    when: dict[str, float] = field(default_factory=dict)

    def add(self, frames: LoudnessFrames) -> None:
        """Take more frames into account."""
        for name in ("stl", "ltl"):
            values = getattr(frames, name)
            k = int(np.argmax(values))
            if values[k] > getattr(self, name):
                setattr(self, name, float(values[k]))
                self.when[name] = float(frames.time_s[k])

    def told(self) -> dict[str, float]:
        """In sone, phon and seconds, by name."""
        told = {}
        for name in ("stl", "ltl"):
            sone = getattr(self, name)
            told[f"max_{name}_sone"] = float(f"{sone:.7g}")
            told[f"max_{name}_phon"] = float(f"{sone_to_phon(sone):.7g}")
            told[f"t_max_{name}_s"] = round(self.when[name], 3)
        return told
