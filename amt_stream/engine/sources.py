"""The protocol of audio sources, and sources that need no device."""

import math
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from numbers import Integral
from pathlib import Path
from typing import BinaryIO, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from amt_stream.core.files import why
from amt_stream.engine.inputs.sound_file import (
    SourceError,
    calibrations_of_reader,
    open_pcm,
    open_sound_file,
    open_stream,
    refuse_header,
)
from amt_stream.engine.readers.reader import SoundReader
from amt_stream.engine.readers.source_bytes import PipeBytes
from amt_stream.engine.thread_check import thread_checked
from amt_stream.meters.calibration import Calibration
from amt_stream.meters.signals import Component, Noise, Tone, demo_sound, mix
from amt_stream.meters.source_description import InputGain, SourceDescription
from amt_stream.meters.specification import PCM, PCM_CHANNELS, PCM_FS

__all__ = ["Block", "Deliver", "DeviceLost", "FileSource", "Noise", "SignalSource", "Source"]
__all__ += ["SourceError", "StdinSource", "ThreadedSource", "Tone", "am_tone_source", "as_block"]
__all__ += ["as_lost", "demo_sound", "demo_source", "refuse_no_source"]

Block = NDArray[np.float32]

BLOCK_S = 0.01
RENDERED_BLOCKS = 10
"""Blocks of synthesized sound computed at once, because of the overhead per call."""

FLOAT32 = np.dtype(np.float32)

# Full scale is 1.0. Larger samples than this come from a broken file or driver, and their squares
# would overflow float32.
LARGEST_SAMPLE = 1e6


class DeviceLost(SourceError):
    """The device was disconnected, or has stopped delivering."""

    status = 3


class Deliver(Protocol):
    """The engine's function that a `Source` calls with each block of audio."""

    def __call__(self, block: Block | None, lost: int = 0, flags: int = 0) -> None:
        """Take samples `(time, channel)`, fractions of full scale; None is the end.

        Integers of 16 and 32 bits are scaled. `lost` samples are missing before this block, or
        before the end; with Fault.OVERLOAD, this program dropped them. `flags` are known `Fault`
        bits of the block, such as Fault.STALL. The block
        may be overwritten after the call. Raises TypeError or ValueError for an invalid block, and
        the engine ends with that error.
        """


INTEGER_BYTES = (2, 4)
"""Sizes of signed integers accepted as PCM: 16 and 32 bits."""


def as_block(samples: object, channels: int) -> Block:
    """`samples` `(time, channel)`, or `(time,)` of one channel, as float32 fractions of full scale.

    Copies only if necessary. Raises TypeError for another number type, and ValueError for another
    shape.
    """
    if not isinstance(samples, np.ndarray):
        raise TypeError(f"a block of sound is a {type(samples).__name__}: give a numpy array")
    block = samples[:, None] if samples.ndim == 1 and channels == 1 else samples
    if block.ndim != 2 or block.shape[1] != channels:
        raise ValueError(
            f"a block of sound has shape {samples.shape}: give (time, channel) with "
            f"{channels} channel{'s' if channels > 1 else ''}"
        )
    if block.dtype == FLOAT32:
        return block
    if block.dtype.kind == "f":
        with np.errstate(over="ignore"):  # the engine marks values beyond float32 as faulty
            return block.astype(np.float32)
    if block.dtype.kind == "i" and block.dtype.itemsize in INTEGER_BYTES:
        return (block / 2.0 ** (8 * block.dtype.itemsize - 1)).astype(np.float32)
    raise TypeError(
        f"a block of sound holds {block.dtype}: give fractions of full scale as float32, or PCM as "
        "int16 or int32"
    )


def as_lost(lost: object) -> int:
    """A number of missing samples; raises TypeError or ValueError if it is invalid."""
    if not isinstance(lost, Integral):
        raise TypeError(f"lost is {lost!r}: give a whole number of samples")
    if lost < 0:
        raise ValueError(f"lost is {lost}: give 0 or more samples")
    return int(lost)


def _nobody_listens(kind: str, text: str) -> None:
    """Default of `Source.tell`, without an engine."""


def _nobody_listens_to_gains(gain: InputGain, columns: range) -> None:
    """Default of `Source.tell_gain`, without an engine."""


@thread_checked
class Source:
    """Delivers audio.

    A subclass sets `fs` (a whole number of Hz), `channels` and `name` before an engine is made of
    it; the rest has defaults.

    `start` begins to call `deliver` from the source's thread; `stop` ends that, and after it
    returns there are no more calls. A source that ends by itself delivers None last, and stores an
    error that ended it in `error`. `live` sources follow the clock; they go on whether or not the
    engine is ready, and buffer `slack_s` of audio if `deliver` is late. A source that `can_wait`,
    by default one that is not live, can be made to wait in `deliver`, so that nothing of it is
    lost; if it is live too, it is then `behind_s` later than by the clock. `duration_s` is the
    length of the sound, if known. A `seekable` source can begin at any sample, so that an
    interrupted measurement can resume. `description` is what it knows of its sound; by default a
    live source may clip like a converter, and none has an offset.

    A source without audio for a while reports it: its `state` is then "stalled", "lost", or
    "silent" for a device that gives exact zeros, instead of "running" (if it is "", the engine
    judges by the clock), `missing` is the number of samples that such a device owes at present,
    `note` is a sentence for as long as it holds, and `tell(kind, sentence)` sends an `Event`, from
    any thread. `tell_gain(gain, columns)` says with which gain some channels, counted from 0, are
    heard from the next block on. The engine sets these two and `run_in` before `start`. `holds_s`
    are seconds of sound that the source holds back at present, and `held_back_s` for how long it
    has held back what it delivers now.
    """

    fs: int
    channels: int
    name: str
    live: bool = True
    seekable: bool = False
    duration_s: float | None = None
    calibration: Calibration | None = None
    error: Exception | None = None
    note: str = ""
    silence_note: str = ""
    latency_s: float = 0.0
    slack_s: float = 0.0
    latency_growth_s: float = 0.0
    overflows: int = 0
    stall_s: float = math.inf
    behind_s: float = 0.0
    state: str = ""
    missing: int = 0
    holds_s: float = 0.0
    held_back_s: float = 0.0
    run_in: Literal["engine", "callback"] = "engine"
    tell: Callable[[str, str], None] = staticmethod(_nobody_listens)
    tell_gain: Callable[[InputGain, range], None] = staticmethod(_nobody_listens_to_gains)
    _description: SourceDescription | None = None
    _offset: tuple[float, ...] = ()
    _can_wait: bool | None = None

    @property
    def can_wait(self) -> bool:
        """Whether it waits in `deliver` for as long as the engine needs."""
        return not self.live if self._can_wait is None else self._can_wait

    @can_wait.setter
    def can_wait(self, given: bool) -> None:
        self._can_wait = given

    @property
    def description(self) -> SourceDescription:
        """What it knows of its sound; it may be set anew when more is known.

        A layout that the user gives stays, and so does an offset that is kept or known.
        """
        known = self._description or SourceDescription.of_program(self.channels, self.live)
        return replace(known, offset=self._offset) if self._offset else known

    @description.setter
    def description(self, given: SourceDescription) -> None:
        before = self._description
        if before is not None and before.layout.origin == "user" != given.layout.origin:
            given = given.with_layout(before.layout)
        if before is not None and not before.has_offset:
            given = given.with_offset()
        self._description = given

    def know_offset(self, offset: Sequence[float]) -> None:
        """Keep the offset of each channel, which the engine removes [model-thread].

        It is apart from the description, which the source's thread may set at the same time.
        """
        self._offset = tuple(offset)

    def gain_of(self, column: int) -> InputGain | None:
        """The gain of the input of a channel, counted from 0, if the system tells it."""
        return self.description.gain

    def start(self, deliver: Deliver) -> None:
        raise NotImplementedError

    def stop(self) -> None:
        raise NotImplementedError

    def seek(self, sample: int) -> None:
        """Begin at that sample, counted from 0, if the source is `seekable` [before start]."""
        raise SourceError(f"{self.name} cannot begin at sample {sample}: it cannot seek")


def refuse_no_source(source: object) -> None:
    """Raise TypeError or ValueError unless `source` is a valid Source."""
    if not isinstance(source, Source):
        raise TypeError(f"the source is {source!r}: give a Source, such as FileSource(path)")
    kind = type(source).__name__
    missing = [name for name in ("fs", "channels", "name") if not hasattr(source, name)]
    if missing:
        raise TypeError(
            f"the source {kind} says no {' and no '.join(missing)}: a Source sets fs, channels and "
            "name before an Engine is made"
        )
    for name in ("fs", "channels"):
        value = getattr(source, name)
        if not isinstance(value, Integral) or value < 1:
            raise ValueError(
                f"{name} of the source {kind} is {value!r}: give a whole number from 1"
            )


@thread_checked
class ThreadedSource(Source):
    """A source that computes or reads its blocks in a thread; `live` paces them by the clock.

    If it `can_wait` and the engine is too slow, it goes on at its pace from where it is then.
    """

    def __init__(self, name: str, fs: int, channels: int, live: bool) -> None:
        self.name, self.fs, self.channels, self.live = name, fs, channels, live
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def blocks(self) -> Iterator[Block]:
        """Yield the sound block by block [audio-thread]."""
        raise NotImplementedError

    def start(self, deliver: Deliver) -> None:
        if self._thread is not None:
            raise RuntimeError(f"the source {self.name} was started before: make a new one")
        # A daemon, so that a blocked read does not block the program's exit.
        self._thread = threading.Thread(
            target=self._run, args=(deliver,), name=f"{self.name}", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()

    def _run(self, deliver: Deliver) -> None:
        began, samples = time.monotonic(), 0
        try:
            for block in self.blocks():
                samples += len(block)
                if self.live:
                    due = began + samples / self.fs
                    self._stopping.wait(max(0.0, due - time.monotonic()))
                if self._stopping.is_set():
                    return
                given_at = time.monotonic()
                deliver(block)
                took_s = time.monotonic() - given_at
                if self.live and self.can_wait and took_s > len(block) / self.fs:
                    late_s = took_s - len(block) / self.fs
                    began, self.behind_s = began + late_s, self.behind_s + late_s
        except Exception as error:
            self.error = error
        deliver(None)


class ReaderSource(ThreadedSource):
    """The sound that a reader gives.

    `cut_off` says what is missing at its end, or was not measured, else ""; for most formats this
    is known only at the end.
    """

    def __init__(self, reader: SoundReader, name: str, live: bool) -> None:
        super().__init__(name, reader.fs, reader.channels, live)
        self._reader = reader
        self._follow()

    @property
    def calibrations(self) -> dict[int, Calibration]:
        """Calibrations by channel (1, 2, ...) in its comment, as for `calibrations_in`."""
        return calibrations_of_reader(self._reader, self.name)

    def blocks(self, block_s: float = BLOCK_S) -> Iterator[Block]:
        size = max(1, round(block_s * self.fs))
        while len(block := self._read(size)):
            yield block
        if not self._stopping.is_set():
            self._follow()
            self._refuse_nothing()

    def stop(self) -> None:
        self._stopping.set()
        self._reader.stop()
        super().stop()
        self._reader.close()

    def _read(self, size: int) -> Block:
        try:
            return self._reader.read(size)
        except OSError as error:
            raise SourceError(f"{self.name} cannot be read: {why(error)}") from error

    def _follow(self) -> None:
        """Take over what the reader knows of its sound by now."""
        self.description = found = self._reader.description
        self.cut_off = found.cut_off
        if found.length_words:
            self.note = f"{self.name}{' is cut off' * bool(self.cut_off)}: {found.length_words}"

    def _refuse_nothing(self) -> None:
        if not self.description.found:
            reason = f": {self.cut_off}" if self.cut_off else ""
            raise SourceError(f"{self.name} ended before one whole sample came{reason}")


class FileSource(ReaderSource):
    """A sound file of any format that libsndfile reads, or PyAV if that is installed.

    `paced` plays it in real time, or more slowly while the engine cannot keep up; otherwise the
    engine takes it as fast as it can. Nothing is dropped. `loop` repeats it.
    """

    seekable = True

    def __init__(self, path: str | Path, paced: bool = True, loop: bool = False) -> None:
        path = Path(path)
        reader = open_sound_file(path)
        self.loop = loop
        super().__init__(reader, path.name, live=paced)
        self.can_wait = True
        if reader.samples is not None and not loop:
            self.duration_s = reader.samples / self.fs

    def seek(self, sample: int) -> None:
        length = self._reader.samples
        if length is not None:
            if sample > length and not self.loop:
                self._refuse_start(length, sample)
            sample = sample % length if self.loop else sample
        if self._reader.seek(sample) < sample:
            self._refuse_start(self._reader.description.found or 0, sample)

    def _refuse_start(self, length: int, sample: int) -> None:
        raise SourceError(
            f"{self.name} has {length} samples, and {sample} were measured before: it is not the "
            "same sound"
        )

    def blocks(self, block_s: float = BLOCK_S) -> Iterator[Block]:
        yield from super().blocks(block_s)
        while self.loop and not self._stopping.is_set():
            self._reader.seek(0)
            yield from super().blocks(block_s)


class SignalSource(ThreadedSource):
    """Synthesized sound: a mix of `Component`s; endless without a `duration` in seconds.

    Its level is known: a sample of 1.0 is the peak of a sine of 130 dB SPL. Without components it
    is silence. `paced` as for `FileSource`.
    """

    calibration = Calibration(130.0, source="built-in signal")
    seekable = True

    def __init__(
        self,
        components: Iterable[Component] = (),
        fs: int = 48000,
        duration: float | None = None,
        paced: bool = True,
        name: str = "signal",
    ) -> None:
        super().__init__(name, fs, channels=2, live=paced)
        self.description = SourceDescription.of_signal(2)
        self.can_wait = True
        # Materialize once, in case it is an iterator.
        given = tuple(components) if isinstance(components, Iterable) else None
        if given is None or not all(isinstance(one, Component) for one in given):
            raise TypeError(f"components is {components!r}: give a list, such as [Tone(1000.0)]")
        if duration is not None and not duration >= 0:
            raise ValueError(f"duration is {duration}: give seconds, 0 or more, or None")
        self.components = given
        self.samples = None if duration is None else round(duration * fs)
        self.duration_s = duration
        self._first = 0
        mix(self.components, fs, 0, 1)
        for component in self.components:
            component.carrier(np.zeros(1, np.int64), fs)

    def seek(self, sample: int) -> None:
        self._first = sample

    def blocks(self) -> Iterator[Block]:
        size = max(1, round(BLOCK_S * self.fs))
        position, most = self._first, RENDERED_BLOCKS * size
        while self.samples is None or position < self.samples:
            count = most if self.samples is None else min(most, self.samples - position)
            ears = mix(self.components, self.fs, position, count)
            sound = (ears / self.calibration.pascal_per_unit).astype(np.float32)
            for at in range(0, count, size):
                yield sound[at : at + size]
            position += count


def demo_source(fs: int = 48000, duration: float | None = None, paced: bool = True) -> SignalSource:
    """The built-in demo sound."""
    return SignalSource(demo_sound(), fs, duration, paced, name="demo sound")


def am_tone_source(
    fs: int = 48000, duration: float | None = None, paced: bool = True
) -> SignalSource:
    """A tone of 1 kHz and 60 dB SPL with 100 % amplitude modulation at 4 Hz."""
    tone = Tone(1000.0, modulation=4.0, level_db=60.0)
    return SignalSource([tone], fs, duration, paced, name="AM tone")


class StdinSource(ReaderSource):
    """A stream with the header of a sound file, or raw PCM, by default from standard input.

    format: of raw PCM, "s16le", "s24le", "s32le" or "f32le"; None for a stream with a header, which
        is 16-bit PCM if it has none
    fs, channels: those of raw PCM, by default 48000 Hz and 2; a header must say the same
    stream, name: a binary stream, and its name in messages
    or_other: whether a header may say another number of channels

    `has_header` says whether it has one.

    Without a format it waits here for the first bytes. It runs as fast as the stream and the engine
    allow: a full pipe makes its writer wait.

    Raises SourceError for a stream that cannot be read or ended, and if the arguments differ from
    its header.
    """

    def __init__(
        self,
        format: str | None = PCM[0],
        fs: int | None = None,
        channels: int | None = None,
        stream: BinaryIO | PipeBytes | None = None,
        name: str = "standard input",
        or_other: bool = False,
    ) -> None:
        if format not in (None, *PCM):
            raise SourceError(
                f"raw PCM of format {format!r} is unknown: give one of {', '.join(PCM)}"
            )
        if (fs is not None and fs < 1) or (channels is not None and channels < 1):
            raise SourceError(
                f"raw PCM at {fs} Hz with {channels} channels: both must be 1 or more"
            )
        if stream is None and sys.stdin is None:
            raise SourceError(f"{name} is closed: give it a pipe or a file")
        if stream is None:
            stream = sys.stdin.buffer
        source = stream if isinstance(stream, PipeBytes) else PipeBytes(stream)
        self._bytes = source
        self._format = format
        if format is not None:
            reader = open_pcm(source, format, fs or PCM_FS, channels or PCM_CHANNELS)
        else:
            try:
                reader = open_stream(source, name, fs, channels, or_other)
            except OSError as error:
                raise SourceError(f"{name} cannot be read: {why(error)}") from error
        super().__init__(reader, name, live=False)
        self.has_header = reader.has_header

    def blocks(self, block_s: float = BLOCK_S) -> Iterator[Block]:
        if self._format is not None:
            refuse_header(self._bytes, self.name, self._format)
        yield from super().blocks(block_s)
