"""Frames of whole sounds, of files in little memory however long they are."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import Self, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from amt_stream.dsp.compute_device import ComputeDevice
from amt_stream.dsp.streaming import Stage
from amt_stream.engine.listener import Listener
from amt_stream.engine.measurement import Measurement
from amt_stream.engine.ready_model import ReadyModel
from amt_stream.engine.sources import (
    LARGEST_SAMPLE,
    FileSource,
    SourceError,
    as_block,
    channel_slice,
)
from amt_stream.meters.calibration import Calibration
from amt_stream.meters.frames import Frames
from amt_stream.meters.specification import FASTEST_FS, SLOWEST_FS
from amt_stream.meters.table import Sound

BLOCK_MS = 100.0
READ_S = 1.0

Measured = TypeVar("Measured", bound=Measurement)


class InvalidSample(SourceError):
    """A sound holds something that is no sound: NaN, infinity, or a number beyond reason."""


class CheckedFile:
    """A sound file, read through once and found good.

    `name` is its path as it was given. `channels` are one or two numbers (1, 2, ...); all are taken
    where it has no more than `most`, else they have to be chosen. Raises SourceError for what is no
    sound, and InvalidSample for NaN, infinity or a sample beyond LARGEST_SAMPLE unless
    `replace_invalid`: they are then read as 0, and `replaced` says how many. `cut_off` says
    what is missing of a file that ends before its header says, or "".
    """

    cut_off = ""
    begin = 0
    """The first sample that is read."""
    _remedy = "repair the file, or have such samples read as 0 (--replace-invalid)"

    def __init__(
        self,
        path: str | Path,
        channels: Sequence[int] | None = None,
        replace_invalid: bool = False,
        most: int = 2,
    ) -> None:
        self.path, self.name = Path(path), str(path)
        file = FileSource(self.path, paced=False)
        self.fs = file.fs
        self._choose(channels, file.channels, most)
        self._check(self._read(file), replace_invalid)
        self.cut_off = file.cut_off

    @property
    def duration_s(self) -> float:
        return self.samples / self.fs

    def sound(self, calibration: Sequence[Calibration], began_utc_s: float = math.nan) -> Sound:
        """What a header says of it: also how many samples were read as 0."""
        return Sound(
            self.name,
            self.fs,
            self.channels,
            calibration,
            self.duration_s,
            {"replaced_samples": self.replaced} | ({"cut_off": True} if self.cut_off else {}),
            began_utc_s=began_utc_s,
        )

    def blocks(self) -> Iterator[NDArray[np.float32]]:
        """The chosen channels (time, channel), block after block."""
        for block in self._blocks():
            yield np.where(_valid(block), block, np.float32(0.0))

    def between(self, begin: int, stop: int) -> Self:
        """Samples [begin, stop) of this one, which are not looked at again."""
        part = copy(self)
        part.begin, part.samples = self.begin + begin, stop - begin
        return part

    def _blocks(self) -> Iterator[NDArray[np.float32]]:
        """The same as it is, invalid samples included, as many as there were at first."""
        left = self.samples
        file = FileSource(self.path, paced=False)
        if self.begin:
            file.seek(self.begin)
        for block in self._read(file):
            yield block[:left]
            left -= len(block)
            if left <= 0:
                return
        raise SourceError(
            f"{self.path} changed while it was read: of {self.samples} samples the last {left} are "
            "gone"
        )

    def _choose(self, channels: Sequence[int] | None, offered: int, most: int) -> None:
        self._pick = channel_slice(channels, offered, self.name, most)
        self.channels = tuple(range(1, offered + 1)[self._pick])

    def _check(self, blocks: Iterator[NDArray[np.float32]], replace_invalid: bool) -> None:
        self.samples = self.replaced = 0
        for block in blocks:
            invalid = ~_valid(block)
            if invalid.any() and not replace_invalid:
                at, column = np.argwhere(invalid)[0]
                self._refuse(block[at, column], self.samples + int(at), int(column))
            self.replaced += int(np.count_nonzero(invalid))
            self.samples += len(block)

    def _read(self, file: FileSource) -> Iterator[NDArray[np.float32]]:
        import soundfile

        try:
            for block in file.blocks(READ_S):
                yield block[:, self._pick]
        except soundfile.LibsndfileError as error:
            raise SourceError(f"{self.path} is damaged: {error.error_string}") from error
        finally:
            file.stop()

    def _refuse(self, value: float, sample: int, column: int) -> None:
        raise InvalidSample(
            f"{self.name} holds {value} at sample {sample} ({sample / self.fs:.6f} s), channel "
            f"{self.channels[column]}: {self._remedy}"
        )


class ArrayRecording(CheckedFile):
    """Sound in memory, found good: the same as a file that holds it.

    x: (time,) or (time, channel), an array or a torch tensor: fractions of full scale, or PCM as
        int16 or int32
    fs: sampling rate in whole hertz
    name: what messages call it

    The rest is as of `CheckedFile`. Raises SourceError for another shape, rate or kind of number.
    """

    _remedy = "repair the sound, or have such samples read as 0 (replace_invalid=True)"

    def __init__(
        self,
        x: object,
        fs: float,
        channels: Sequence[int] | None = None,
        replace_invalid: bool = False,
        most: int = 2,
        name: str = "array",
    ) -> None:
        kinds = int, float, np.integer, np.floating
        if isinstance(fs, bool) or not isinstance(fs, kinds) or not fs > 0 or fs % 1:
            raise SourceError(f"fs is {fs!r}: give the sampling rate in whole hertz")
        if not SLOWEST_FS <= fs <= FASTEST_FS:
            raise SourceError(f"fs is {fs!r}: give a sound of {SLOWEST_FS} to {FASTEST_FS} Hz")
        self.fs, self.name = int(fs), name
        self._x = _in_columns(x, name)
        self._choose(channels, self._x.shape[1], most)
        self._check(self._blocks(), replace_invalid)

    def between(self, begin: int, stop: int) -> Self:
        part = super().between(begin, stop)
        part._x, part.begin = self._x[begin:stop], 0
        return part

    def _blocks(self) -> Iterator[NDArray[np.float32]]:
        for at in range(0, len(self._x), self.fs):
            yield as_block(self._x[at : at + self.fs, self._pick], len(self.channels))


def _in_columns(x: object, name: str) -> np.ndarray:
    """Sound as an array (time, channel), whatever the numbers in it are."""
    array = as_array(x, name)
    if array.dtype.kind != "f" and array.dtype not in (np.int16, np.int32):
        raise SourceError(
            f"{name} holds {array.dtype}: give fractions of full scale as floating-point numbers, "
            "or PCM as int16 or int32"
        )
    columns = array[:, None] if array.ndim == 1 else array
    if columns.ndim != 2:
        raise SourceError(f"{name} has the shape {array.shape}: give (time,) or (time, channel)")
    if not columns.size:
        raise SourceError(f"{name} has the shape {array.shape}: give one sample or more")
    if 1 < columns.shape[1] >= columns.shape[0]:
        raise SourceError(
            f"{name} has the shape {array.shape}, no fewer channels than samples: give (time, "
            "channel), as x.T"
        )
    return columns


def as_array(x: object, name: str = "array") -> np.ndarray:
    """The numbers of an array, a tensor or a list. Raises SourceError for what is none of them."""
    try:
        return np.asarray(x.detach().cpu() if hasattr(x, "detach") else x)
    except (TypeError, ValueError) as error:
        raise SourceError(
            f"{name} is no array ({str(error).partition('. ')[0]}): give numbers (time,) or (time, "
            "channel), of a type that numpy has"
        ) from error


def _valid(block: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Where there is a sample that can be one; NaN compares as false."""
    valid: NDArray[np.bool_] = np.abs(block) <= LARGEST_SAMPLE
    return valid


def analyze(
    recording: CheckedFile,
    model: Stage | Mapping[str, Stage],
    calibration: Calibration | Sequence[Calibration],
    began_utc_s: float = math.nan,
    tail: bool = False,
) -> Iterator[Frames]:
    """Frames of one model, or of several by name, from 0 to the end of a recording.

    tail: those too that a model gives of the sound after its end (`Frames.ended_s`)

    They are those of an `Engine`, without its threads: each model's latency is taken out, the frame
    that stands at the very end is there. One channel goes to both ears; a model that takes
    fractions of full scale gets them, all chosen channels. Frames are too small to share among
    threads: it is fastest in a thread that has called `torch.set_num_threads(1)` and
    `torch.set_flush_denormal(True)`. A model on a CUDA device runs there. `began_utc_s` is when the
    first sample was, where that is known.
    """
    models = model if isinstance(model, Mapping) else {"": model}
    arrived: list[Frames] = []
    measurements: list[Measurement] = measurements_of(
        recording, models, calibration, arrived.append, began_utc_s
    )
    yield from frames_of(recording, measurements, arrived, tail)


def measurements_of(
    recording: CheckedFile,
    models: Mapping[str, Stage],
    calibration: Calibration | Sequence[Calibration],
    emit: Callable[[Frames], None],
    began_utc_s: float = math.nan,
    begin: int = 0,
    kind: type[Measured] = Measurement,  # type: ignore[assignment]
) -> list[Measured]:
    """A measurement of each model on a recording, from the sample `begin` on."""
    heard = len(recording.channels)
    return [
        kind(
            _ready(one, recording.fs, heard),
            [Listener(slice(0, heard), heard, calibration)],
            emit=emit,
            epoch=lambda audio_s: began_utc_s,
            model_changed=lambda ready: None,
            name=name,
            begin=begin,
        )
        for name, one in models.items()
    ]


def frames_of(
    recording: CheckedFile, measurements: Sequence[Measurement], arrived: list[Frames], tail: bool
) -> Iterator[Frames]:
    """What measurements that emit to `arrived` make of a recording; `tail` as of `analyze`."""
    for block in recording.blocks():
        with torch.inference_mode():
            for measurement in measurements:
                measurement.take(block)
        yield from arrived
        arrived.clear()
    with torch.inference_mode():
        for measurement in measurements:
            measurement.flush()
    yield from (frames for frames in arrived if tail or not frames.after_end)


def _ready(model: Stage, fs: int, heard: int) -> ReadyModel:
    place = ComputeDevice(model.device)
    ready = ReadyModel(model, fs, BLOCK_MS, heard, place)
    if not place.on_cpu:
        ready.warm()
    return ready
