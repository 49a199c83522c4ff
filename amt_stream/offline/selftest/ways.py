"""The ways in which a sound reaches a model: as a file, through a pipe, from a device."""

import contextlib
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from math import log10, sqrt
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from amt_stream.dsp.scales import P0
from amt_stream.dsp.streaming import Stage
from amt_stream.engine.devices.zero_gate import ZeroGate
from amt_stream.engine.engine import Engine
from amt_stream.engine.sources import BLOCK_S, Block, Deliver, Source, StdinSource, ThreadedSource
from amt_stream.meters import catalog
from amt_stream.meters.calibration import UNCALIBRATED, Calibration
from amt_stream.meters.frames import Frames
from amt_stream.meters.source_description import SourceDescription
from amt_stream.offline.analysis import CheckedFile, analyze

CONVERTED = 32767 / 32768
"""Peak of sound that went through a converter: the end of the range of 16 bits."""

BEYOND = 4.0
"""Peak of sound in floating point, which has no full scale."""

OTHERS = 0.7
"""Peak of other channels as a fraction of that of the first, so that calibrations differ."""


@dataclass(frozen=True)
class Recorded:
    """A sound as a file or a device has it.

    samples: (time, channel), fractions of full scale
    calibration: of each channel; one that is uncalibrated for sound that is not in pascal
    layout: what the channels are for, if the model needs it
    """

    samples: NDArray[np.float64]
    fs: int
    calibration: tuple[Calibration, ...] = (UNCALIBRATED,)
    layout: str | None = None

    @classmethod
    def of_pascal(cls, sound: NDArray[np.float64], fs: int, peak: float) -> "Recorded":
        """Record a sound (channel, time) in pascal, of which each channel is calibrated by itself.

        peak: the highest sample, as a fraction of full scale
        """
        highest = np.abs(sound).max(axis=1)
        highest[highest == 0] = highest.max()
        of_peaks = [peak] + [OTHERS * peak] * (len(sound) - 1)
        pairs = zip(highest, of_peaks, strict=True)
        each = tuple(_calibration(pascal / fraction) for pascal, fraction in pairs)
        return cls(sound.T / [one.pascal_per_unit for one in each], fs, each)

    @property
    def channels(self) -> int:
        return self.samples.shape[1]

    @property
    def duration_s(self) -> float:
        return len(self.samples) / self.fs


def _calibration(pascal_per_unit: float) -> Calibration:
    """The calibration nearest to so many pascal at a sample of 1.0; its level is at least 0 dB."""
    level_db = 20 * log10(pascal_per_unit / sqrt(2) / P0)
    return Calibration(max(0.0, level_db), source="self-test")


@dataclass(frozen=True)
class Way:
    """A way in which a sound reaches a model.

    name: a key of `core.formats.WAYS`
    frames: plays a sound to the model of a name, and gives its frames, also those after the end
    peak: the highest sample of sound in pascal, as a fraction of full scale
    fs: its only sampling rate, or None
    """

    name: str
    frames: Callable[[str, Stage, Recorded], Iterable[Frames]]
    peak: float = CONVERTED
    fs: int | None = None


def _from_file(
    name: str, model: Stage, sound: Recorded, samples: NDArray[np.generic], subtype: str
) -> Iterator[Frames]:
    import soundfile

    with TemporaryDirectory() as folder:
        path = Path(folder) / "sound.wav"
        soundfile.write(path, samples, sound.fs, subtype)
        most = {name: catalog.entry(name).most_channels}
        recording = CheckedFile(path, models=most, layout=sound.layout)
        yield from analyze(recording, {name: model}, sound.calibration, tail=True)


def _from_16_bits(name: str, model: Stage, sound: Recorded) -> Iterator[Frames]:
    return _from_file(name, model, sound, _in_bits(sound.samples, 16).astype(np.int16), "PCM_16")


def _from_floats(name: str, model: Stage, sound: Recorded) -> Iterator[Frames]:
    return _from_file(name, model, sound, sound.samples, "FLOAT")


def _through_pipe(name: str, model: Stage, sound: Recorded) -> list[Frames]:
    samples = _in_bits(sound.samples, 24).astype("<i4", order="C")
    data = samples.view(np.uint8).reshape(-1, 4)[:, :3].tobytes()
    reading, writing = os.pipe()
    writer = threading.Thread(target=_write, args=(writing, data), daemon=True)
    writer.start()
    with os.fdopen(reading, "rb") as stream:
        source = StdinSource("s24le", sound.fs, sound.channels, stream)
        return _live(name, model, source, sound)


def _write(pipe: int, data: bytes) -> None:
    with contextlib.suppress(BrokenPipeError), os.fdopen(pipe, "wb") as stream:
        stream.write(data)


def _from_device(name: str, model: Stage, sound: Recorded) -> list[Frames]:
    return _live(name, model, _Device(sound), sound)


def _live(name: str, model: Stage, source: Source, sound: Recorded) -> list[Frames]:
    models, sink, calibration = {name: model}, _Collector(), sound.calibration
    with Engine(source, models, [sink], calibration=calibration, layout=sound.layout) as engine:
        if not engine.wait():
            raise engine.error or RuntimeError("the engine ended too early")
    return sink.frames


class _Collector:
    """A sink that keeps all frames."""

    only_reads = hears_tail = True

    def __init__(self) -> None:
        self.frames: list[Frames] = []

    def __call__(self, frames: Frames) -> None:
        self.frames.append(frames)


class _Device(ThreadedSource):
    """Delivers blocks as a microphone with a converter of 24 bits, as fast as they are taken.

    It has the noise of such a converter: what is silence for others is not exactly zero.
    """

    def __init__(self, sound: Recorded) -> None:
        super().__init__("self-test", sound.fs, sound.channels, live=False)
        self.description = SourceDescription.of_device(sound.channels)
        chance = np.random.default_rng(0)
        noise = chance.random(sound.samples.shape) - chance.random(sound.samples.shape)
        self._samples = (_in_bits(sound.samples, 24, noise) / 2**23).astype(np.float32)

    def start(self, deliver: Deliver) -> None:
        none = (lambda *_: None,) * 3
        gate = ZeroGate(self.fs, self.channels, deliver, *none)

        def take(block: Block | None, lost: int = 0, flags: int = 0) -> None:
            if block is None:
                deliver(None, lost, flags)
            else:
                gate.take(block, lost, flags)

        super().start(take)

    def blocks(self) -> Iterator[Block]:
        size = round(BLOCK_S * self.fs)
        for at in range(0, len(self._samples), size):
            yield self._samples[at : at + size]


def _in_bits(
    samples: NDArray[np.float64], bits: int, noise: float | NDArray[np.float64] = 0.0
) -> NDArray[np.float64]:
    """Samples as whole numbers of so many bits.

    noise: what is added before they are rounded, in units of the last bit

    Raises ValueError for sound beyond full scale.
    """
    if (peak := np.abs(samples).max()) > 1:
        raise ValueError(f"a peak of {peak:g} times full scale does not fit in {bits} bits")
    ends = -(2.0 ** (bits - 1)), 2.0 ** (bits - 1) - 1
    return np.clip(np.rint(2.0 ** (bits - 1) * samples + noise), *ends)


WAYS = {
    one.name: one
    for one in (
        Way("pcm16", _from_16_bits),
        Way("float", _from_floats, BEYOND),
        Way("cd", _from_16_bits, fs=44100),
        Way("pipe", _through_pipe),
        Way("device", _from_device),
    )
}
