"""A public report of a sound that a program measured or read wrongly, and a sound like it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from tests.as_it_comes.answers import WAYS, Settings
from tests.as_it_comes.plain import Heard, tolerance
from tests.data.sound_files import noise

PLAIN = "plain calculation"
FFMPEG = "ffmpeg's ebur128"
PRINTED = "printed in a standard"
ORIGINS = (PLAIN, FFMPEG, PRINTED)


@dataclass(frozen=True, eq=False)
class Report:
    """A recipe, and what every way of measuring has to answer.

    place, number: project and number of the public report
    what: what was reported, in a sentence
    make: the bytes of a file, and the samples that a right reader gives
    settings: models and level of full scale
    readings: those that have to be as plainly calculated from the samples
    printed: readings with the numbers that a standard or the report prints
    origin: where the right values come from
    within: by how many dB a reading may be off, where that is not 0.05
    length: what has to be said of the length, a regular expression; "" if nothing is to be said
    offset: of each channel, as a fraction of full scale; () if nothing is to be said
    clipped: whether something is to be said of clipped sound
    table: a table of calibrations, as a program on Windows saves it
    ways: those in which people can measure it
    """

    place: str
    number: int
    what: str
    make: Callable[[], tuple[bytes, Heard]]
    settings: Settings
    readings: tuple[str, ...] = ()
    printed: Mapping[str, float] = field(default_factory=dict)
    origin: str = PLAIN
    within: Mapping[str, float] = field(default_factory=dict)
    length: str = ""
    offset: tuple[float, ...] = ()
    clipped: bool = False
    table: bytes = b""
    ways: tuple[str, ...] = tuple(WAYS)

    def __str__(self) -> str:
        return f"{self.place.rpartition('/')[2]}-{self.number}-{self.make.__name__}"

    def tolerance(self, name: str) -> dict[str, float]:
        return tolerance(name) | ({"abs": self.within[name]} if name in self.within else {})


def quantized(x, bits=16):
    """Samples as a converter gives them."""
    steps = 2.0 ** (bits - 1)
    return np.clip(np.round(x * steps), -steps, steps - 1) / steps


def tone(level_db, seconds=2.0, hz=1000.0, fs=48000):
    """A sine (time,) whose peak is `level_db` re full scale."""
    time_s = np.arange(round(seconds * fs)) / fs
    return 10 ** (level_db / 20) * np.sin(2 * np.pi * hz * time_s)


def murmur(seconds=2.0, channels=2, fs=48000, rms=0.1):
    """Noise (time, channel) below 3 kHz: a peak between its samples is the same to every meter."""
    x = noise(seconds, channels, fs, rms=1.0)
    spectrum = np.fft.rfft(x, axis=0)
    spectrum[np.fft.rfftfreq(len(x), 1 / fs) > 3000] = 0
    x = np.fft.irfft(spectrum, len(x), axis=0)
    return rms * x / x[:, :1].std()
