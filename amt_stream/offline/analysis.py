"""Frames of whole sounds; the memory needed does not grow with the length of a file."""

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from amt_stream.dsp.channel_layout import Layout, usual_layout
from amt_stream.dsp.compute_device import ComputeDevice
from amt_stream.engine.microphone.channels import (
    OF_EARS,
    block_columns,
    heard_channels,
    layout_said,
)
from amt_stream.engine.microphone.offset import KnownOffset, all_valid
from amt_stream.engine.models.listener import Listener
from amt_stream.engine.models.measurement import Measurement
from amt_stream.engine.models.preparing import ready_model, working
from amt_stream.engine.models.ready_model import ReadyModel
from amt_stream.engine.sources import LARGEST_SAMPLE, FileSource, SourceError, as_block
from amt_stream.meters.calibration import Calibration
from amt_stream.meters.frames import Frames
from amt_stream.meters.presets import Preset
from amt_stream.meters.source_description import DEVICE_CLIPS_AT, SourceDescription
from amt_stream.meters.specification import FASTEST_FS, SLOWEST_FS
from amt_stream.meters.table import Sound

if TYPE_CHECKING:
    from amt_stream.dsp.streaming import Stage

BLOCK_MS = 100.0
READ_S = 1.0


class InvalidSample(SourceError):
    """A sound has an invalid sample: NaN, infinity, or an absurdly large number."""


class CheckedFile:
    """A sound file that was read once and checked.

    `name` is its path as given. `heard` says which `channels` the models hear: by default, two for
    ears. With `replace_invalid`, invalid samples are read as 0, and `replaced` counts them;
    measurements mark them and leave them out of statistics, as an `Engine` does. None is for
    callers that do not offer it. `description` says what the file is, and `cut_off` what is
    missing at its end, or "".

    channels: numbers (1, 2, ...) of those to measure; by default all, as `heard_channels` says
    models: the most channels that each model takes, by name
    layout: positions of its channels, or of the chosen ones, if the file does not say them
    keep_offset: whether an offset of its samples is sound, and is not removed

    Raises SourceError if it is not a sound file, or if its channels have to be chosen, LayoutError
    for an unknown layout, and InvalidSample for NaN, infinity or a sample beyond LARGEST_SAMPLE.
    """

    cut_off = ""
    begin = 0
    """The first sample to read."""
    offset: NDArray[np.float64]
    """Of each channel, what is removed before the first sample."""
    description: SourceDescription
    _repair, _replace = "repair the file", "--replace-invalid"

    def __init__(
        self,
        path: str | Path,
        channels: Sequence[int] | None = None,
        replace_invalid: bool | None = False,
        models: Mapping[str, int] = OF_EARS,
        layout: Layout | str | None = None,
        keep_offset: bool = False,
    ) -> None:
        self.path, self.name = Path(path), str(path)
        file = self._open()
        if keep_offset:
            file.description = file.description.with_offset()
        self.fs, self.description = file.fs, file.description
        self._choose(channels, models, self.description.layout, layout)
        self._check(self._read(file), replace_invalid)
        self.cut_off = file.cut_off
        self.description = replace(file.description, offset=self.description.offset)

    def _open(self) -> FileSource:
        return FileSource(self.path, paced=False)

    def warn_of_channels(self, stacklevel: int) -> None:
        """Warn of what a person should know of the choice of channels."""
        for note in self.heard.notes:
            warnings.warn(note, RuntimeWarning, stacklevel=stacklevel)

    @property
    def duration_s(self) -> float:
        return self.samples / self.fs

    def sound(self, calibration: Sequence[Calibration], began_utc_s: float = math.nan) -> Sound:
        """The description for headers, with the number of replaced samples."""
        return Sound(
            self.name,
            self.fs,
            self.channels,
            calibration,
            self.duration_s,
            {"replaced_samples": self.replaced},
            began_utc_s=began_utc_s,
            source=self,
            heard=self.heard,
        )

    def blocks(self, as_they_are: bool = False) -> Iterator[NDArray[np.float32]]:
        """Yield blocks of the chosen channels (time, channel), the last before sound cut there.

        as_they_are: with invalid samples, for a measurement; otherwise these are 0
        """
        left = self.sound_begin - self.begin
        for whole in self._blocks():
            block = whole[:, self._pick]
            if not (as_they_are or all_valid(block)):
                block = np.where(_valid(block), block, np.float32(0.0))
            for part in (block[: max(0, left)], block[max(0, left) :]):
                if len(part):
                    yield part
            left -= len(block)

    @property
    def first_offset(self) -> NDArray[np.float64]:
        """The offset (channel,) that is removed from the first sound on."""
        return self.offset if self._offset is None else self._offset.first

    @property
    def sound_begin(self) -> int:
        """The first sample that is not 0 in any channel; 0 if no offset is removed."""
        known = self._offset
        return 0 if known is None or known.begin is None else known.begin

    def between(self, begin: int, stop: int) -> Self:
        """Samples [begin, stop) of this recording, which are not checked again."""
        part = self._cut(self.begin + begin, self.begin + stop)
        if self._offset is not None:
            at, part.offset = self._offset.before(part.begin)
            if at < part.begin:
                for block in self._cut(at, part.begin).blocks():
                    self._offset.go_on(block, part.offset)
        return part

    def _cut(self, begin: int, stop: int) -> Self:
        part = copy(self)
        part.begin, part.samples = begin, stop - begin
        return part

    def _blocks(self) -> Iterator[NDArray[np.float32]]:
        """Yield blocks of all channels, of as many samples as there were at first."""
        left = self.samples
        file = self._open()
        if self.begin:
            file.seek(self.begin)
        for block in self._read(file):
            yield block[:left]
            left -= len(block)
            if left <= 0:
                return
        raise SourceError(
            f"{self.path} changed while it was read: the last {left} of {self.samples} samples are "
            "missing"
        )

    def _choose(
        self,
        channels: Sequence[int] | None,
        models: Mapping[str, int],
        offered: Layout,
        given: Layout | str | None,
    ) -> None:
        offered = layout_said(offered, given, channels, self.name)
        self.heard = heard_channels(self.name, offered, models, channels)
        self.channels = self.heard.channels
        self._pick = block_columns(self.channels)

    def _check(self, blocks: Iterator[NDArray[np.float32]], replace_invalid: bool | None) -> None:
        self.samples = self.replaced = width = 0
        has_offset, self.offset = self.description.has_offset, np.zeros(len(self.channels))
        self._offset = KnownOffset(self.fs, len(self.channels)) if has_offset else None
        for whole in blocks:
            width = whole.shape[1]
            block = whole[:, self._pick]
            if self._offset is not None:
                self._offset.hear(whole, block)
            if not all_valid(block):
                invalid = ~_valid(block)
                if not replace_invalid:
                    at, column = np.argwhere(invalid)[0]
                    self._refuse(block, at, column, replace_invalid is not None)
                self.replaced += int(np.count_nonzero(invalid))
            self.samples += len(block)
        if self._offset is not None:
            self._offset.end()
            of_each = np.full(width, np.nan)
            of_each[self._pick] = self._offset.first
            self.description = replace(self.description, offset=tuple(of_each.tolist()))

    def _read(self, file: FileSource) -> Iterator[NDArray[np.float32]]:
        try:
            yield from file.blocks(READ_S)
        finally:
            file.stop()

    def _refuse(
        self, block: NDArray[np.float32], at: np.int64, column: np.int64, replaces: bool
    ) -> None:
        """Refuse a sample of the block that comes next."""
        sample, remedy = self.samples + at, self._repair
        if replaces:
            remedy += f", or replace such samples by 0 ({self._replace})"
        raise InvalidSample(
            f"{self.name} has {block[at, column]} at sample {sample} ({sample / self.fs:.6f} s), "
            f"channel {self.channels[column]}: {remedy}"
        )


class ArrayRecording(CheckedFile):
    """Sound in memory that was checked, like a `CheckedFile`.

    x: (time,) or (time, channel), an array or a torch tensor: fractions of full scale, or PCM as
        int16 or int32
    fs: sampling rate in whole hertz
    name: name in messages

    Other arguments are those of `CheckedFile`. Raises SourceError for another shape, rate or type.
    """

    _repair, _replace = "repair the sound", "replace_invalid=True"

    def __init__(
        self,
        x: object,
        fs: float,
        channels: Sequence[int] | None = None,
        replace_invalid: bool | None = False,
        models: Mapping[str, int] = OF_EARS,
        layout: Layout | str | None = None,
        keep_offset: bool = False,
        name: str = "array",
    ) -> None:
        kinds = int, float, np.integer, np.floating
        if isinstance(fs, bool) or not isinstance(fs, kinds) or not fs > 0 or fs % 1:
            raise SourceError(f"fs is {fs!r}: give the sampling rate in whole hertz")
        if not SLOWEST_FS <= fs <= FASTEST_FS:
            raise SourceError(f"fs is {fs!r}: give a sound of {SLOWEST_FS} to {FASTEST_FS} Hz")
        self.fs, self.name = int(fs), name
        self._x, self._x_begin = _in_columns(x, name), 0
        self.description = _of_array(self._x, keep_offset)
        self._choose(channels, models, self.description.layout, layout)
        self._check(self._blocks(), replace_invalid)

    def _cut(self, begin: int, stop: int) -> Self:
        part = super()._cut(begin, stop)
        first = part.begin - self._x_begin
        part._x, part._x_begin = self._x[first : first + part.samples], part.begin
        return part

    def _blocks(self) -> Iterator[NDArray[np.float32]]:
        for at in range(0, len(self._x), self.fs):
            yield as_block(self._x[at : at + self.fs], self._x.shape[1])


def _in_columns(x: object, name: str) -> np.ndarray:
    """Sound as an array (time, channel)."""
    array = as_array(x, name)
    if array.dtype.kind != "f" and array.dtype not in (np.int16, np.int32):
        raise SourceError(
            f"{name} has the type {array.dtype}: give fractions of full scale as floating-point "
            "numbers, or PCM as int16 or int32"
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


def _of_array(x: np.ndarray, keep_offset: bool) -> SourceDescription:
    """What is known of an array (time, channel): integers come from a converter."""
    integers = x.dtype.kind == "i"
    return SourceDescription(
        "array",
        usual_layout(x.shape[1]),
        f"PCM {8 * x.dtype.itemsize} bit" if integers else "float",
        DEVICE_CLIPS_AT if integers else None,
        not keep_offset,
    )


def as_array(x: object, name: str = "array") -> np.ndarray:
    """An array, a tensor or a list as a numpy array. Raises SourceError for other objects."""
    try:
        return np.asarray(x.detach().cpu() if hasattr(x, "detach") else x)
    except (TypeError, ValueError) as error:
        raise SourceError(
            f"{name} is not an array ({str(error).partition('. ')[0]}): give numbers (time,) or "
            "(time, channel), of a numpy type"
        ) from error


def _valid(block: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Where samples are valid; NaN compares as false."""
    valid: NDArray[np.bool_] = np.abs(block) <= LARGEST_SAMPLE
    return valid


def analyze(
    recording: CheckedFile,
    model: "Stage | Mapping[str, Stage]",
    calibration: Calibration | Sequence[Calibration],
    began_utc_s: float = math.nan,
    tail: bool = False,
) -> Iterator[Frames]:
    """Yield frames of one model, or of several by name, for a whole recording.

    tail: whether to include frames of models after the end of the sound (`Frames.ended_s`)
    began_utc_s: Unix time of the first sample, NaN if unknown

    Frames are those of an `Engine`, without its threads: the latency of each model is compensated,
    and the frame at the very end is included. One channel goes to both ears; which channels a model
    hears was settled when the recording was opened. A model on a CUDA device runs there. Frames are
    too small to share among threads: it is fastest after `torch.set_num_threads(1)` and
    `torch.set_flush_denormal(True)` in the calling thread.
    """
    models = model if isinstance(model, Mapping) else {"": model}
    arrived: list[Frames] = []
    measurements: list[Measurement] = measurements_of(
        recording, models, calibration, arrived.append, began_utc_s
    )
    yield from frames_of(recording, measurements, arrived, tail)


@dataclass(frozen=True)
class Analysis:
    """What to measure of a recording, and with what.

    models: made by `preset.models`, with `takes`
    to_s: end of the part of the sound that is needed
    """

    recording: CheckedFile
    models: "Mapping[str, Stage]"
    calibration: Sequence[Calibration]
    began_utc_s: float
    preset: Preset
    takes: Mapping[Any, Any]
    to_s: float

    def whole(self) -> Iterator[Frames]:
        """`analyze` with `tail`, in this process."""
        return analyze(self.recording, self.models, self.calibration, self.began_utc_s, tail=True)


def measurements_of(
    recording: CheckedFile,
    models: "Mapping[str, Stage]",
    calibration: Calibration | Sequence[Calibration],
    emit: Callable[[Frames], None],
    began_utc_s: float = math.nan,
    begin: int = 0,
    kind: Callable[..., ReadyModel] = ready_model,
) -> list[Measurement]:
    """Make a measurement of each model on a recording, from sample `begin` on."""
    count = len(recording.channels)

    def listener(model: str) -> Listener:
        places = recording.heard.places_of(model)
        columns = block_columns([place + 1 for place in places])
        about = recording.description
        return Listener(
            columns, count, calibration, places=places, measured=count, description=about
        )

    return [
        Measurement(
            _ready(kind, one, recording.fs, len(recording.heard.places_of(name))),
            [listener(name)],
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
    """Yield the frames of measurements that emit to `arrived`; `tail` as in `analyze`."""
    ready = [one.ready for one in measurements]
    for block in sound_for(recording, measurements):
        with working(ready, owns_thread=False):
            for measurement in measurements:
                measurement.take(block)
        yield from arrived
        arrived.clear()
    with working(ready, owns_thread=False):
        for measurement in measurements:
            measurement.flush()
    yield from (frames for frames in arrived if tail or not frames.after_end)


def sound_for(
    recording: CheckedFile, measurements: Sequence[Measurement]
) -> Iterator[NDArray[np.float32]]:
    """Yield the blocks of a recording for measurements, which are told its offset."""
    position, begin = recording.begin, recording.sound_begin
    for measurement in measurements:
        measurement.know_offset(recording.offset)
    for block in recording.blocks(as_they_are=True):
        if position == begin:
            for measurement in measurements:
                measurement.know_offset(recording.first_offset)
        yield block
        position += len(block)


def _ready(kind: Callable[..., ReadyModel], model: "Stage", fs: int, heard: int) -> ReadyModel:
    place = ComputeDevice(str(model.device))
    ready = kind(model, fs, BLOCK_MS, heard, place)
    if not place.on_cpu:
        ready.warm()
    return ready
