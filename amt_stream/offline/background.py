"""A target and its background, recorded apart, as one sound for `PartialLoudness`."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from amt_stream.core.words import counted
from amt_stream.dsp.channel_layout import usual_layout
from amt_stream.dsp.models.partial import mean_components
from amt_stream.dsp.stages.spectrum import component_frequencies
from amt_stream.engine.microphone.converter_ends import ConverterEnds
from amt_stream.engine.sources import BLOCK_S, Block, FileSource, SourceError
from amt_stream.meters.calibration import Calibration
from amt_stream.offline.analysis import CheckedFile

EARS = 2


class _BothFiles(FileSource):
    """Two files of one rate: the channels of the first, and then those of the second."""

    def __init__(self, target: Path, background: Path) -> None:
        super().__init__(target, paced=False)
        self._other = other = FileSource(background, paced=False)
        self.each = (self.description, self.channels), (other.description, other.channels)
        self.channels += other.channels
        self.description = self.description.with_layout(usual_layout(self.channels))

    def seek(self, sample: int) -> None:
        super().seek(sample)
        self._other.seek(sample)

    def blocks(self, block_s: float = BLOCK_S) -> Iterator[Block]:
        others = self._other.blocks(block_s)
        held = np.zeros((0, self._other.channels), np.float32)
        for block in super().blocks(block_s):
            while len(held) < len(block):
                if (more := next(others, None)) is None:
                    raise SourceError(f"{self._other.name} ends before {self.name}")
                held = np.concatenate([held, more])
            yield np.hstack([block, held[: len(block)]])
            held = held[len(block) :]

    def stop(self) -> None:
        super().stop()
        self._other.stop()


class TargetInBackground(CheckedFile):
    """A target, and as its further channels a background that is as long or longer.

    `background` is its path. Other arguments are those of `CheckedFile`.
    """

    def __init__(self, path: str | Path, background: Path, *how: Any) -> None:
        self._background = background
        super().__init__(path, None, *how)
        self.description = self.description.with_ends_of(self._each)

    def _open(self) -> FileSource:
        file = _BothFiles(self.path, self._background)
        self._each = file.each
        return file


def refuse_unlike(target: CheckedFile, background: CheckedFile) -> None:
    """Raise SourceError for two recordings that are no target and background of one kind."""
    if target.fs != background.fs:
        raise SourceError(
            f"{target.name} has {target.fs} Hz and {background.name} {background.fs} Hz: give two "
            "recordings of one rate"
        )
    counts = [len(one.channels) for one in (target, background)]
    if counts[0] != counts[1] or counts[0] > EARS:
        words = " and ".join(
            f"{one.name} has {counted(count, 'channel')}"
            for one, count in zip((target, background), counts, strict=True)
        )
        raise SourceError(f"{words}: give one of each, or left and right of each")


def clipped_words(background: CheckedFile) -> str:
    """What a person has to know of a stored background that is clipped; "" if it is not."""
    ends = ConverterEnds(len(background.channels), background.description.clips_at)
    count = position = 0
    for block in background.blocks():
        count += len(ends.clipped(block, np.ones(block.shape, np.bool_), position))
        position += len(block)
    if not count:
        return ""
    return (
        f"{background.name} is clipped: the background is at least so loud, and a target at most "
        "so audible"
    )


def steady_background(
    recording: CheckedFile, calibrations: Sequence[Calibration], settings: Mapping[str, str]
) -> Tensor:
    """The mean components (ear, 960) of a recording, with the corrections of its microphones.

    settings: of the model, of which those of the ear count

    Raises SourceError for one shorter than a second.
    """
    of_ear = {name: settings[name] for name in ("field", "ear_filter") if name in settings}
    gains = np.array([one.pascal_per_unit for one in calibrations], np.float32)
    blocks = (torch.from_numpy((block * gains).T.copy()) for block in recording.blocks())
    hz = component_frequencies()
    gains_db = [0 * hz if c.correction is None else c.correction.gain_db(hz) for c in calibrations]
    try:
        mean = mean_components(blocks, recording.fs, **of_ear)  # type: ignore[arg-type]
        return mean * torch.from_numpy(10 ** (np.stack(gains_db) / 10))
    except ValueError as error:
        raise SourceError(f"{recording.name}: {error}") from error
