"""Synthetic sounds with levels in dB SPL, as pure functions of the sample index."""

import functools
import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from amt_stream.dsp.scales import P0

Signal = NDArray[np.float64]
Ear = Literal["both", "left", "right"]

NOISE_SAMPLES = 2**19


@dataclass(frozen=True)
class Component:
    """A sound in a mixture.

    It starts at `start`, lasts `duration` seconds (None: forever) and repeats every `period`
    seconds (None: never), with raised-cosine ramps of `ramp` seconds within its duration.
    `level_db` is its RMS level in dB SPL between the ramps.
    """

    _: KW_ONLY
    level_db: float
    start: float = 0.0
    duration: float | None = None
    period: float | None = None
    ramp: float = 0.01
    ear: Ear = "both"

    def __post_init__(self) -> None:
        name = type(self).__name__
        if self.ear not in ("both", "left", "right"):
            raise ValueError(f"{name}: ear is {self.ear!r}: give 'both', 'left' or 'right'")
        if self.ramp < 0 or (self.duration is not None and self.duration < 2 * self.ramp):
            raise ValueError(
                f"{name}: two ramps of {self.ramp} s do not fit into {self.duration} s: "
                "give a shorter ramp"
            )
        if self.period is not None and not 0 < (self.duration or 0) <= self.period:
            raise ValueError(
                f"{name}: a period of {self.period} s needs a duration of up to that, "
                f"given {self.duration}"
            )

    def carrier(self, index: NDArray[np.int64], fs: int) -> Signal:
        """The sound with RMS 1, at `index` samples after its start."""
        raise NotImplementedError

    def render(self, fs: int, first: int, count: int) -> Signal | None:
        """Samples first to first + count in pascal; None where it is off."""
        begin = first - round(self.start * fs)
        if not self._sounds(fs, begin, begin + count):
            return None
        index = self._index(fs, begin, count)
        first, last = int(index.min()), int(index.max())
        gain = np.full(count, P0 * 10.0 ** (self.level_db / 20.0))
        end = math.inf if self.duration is None else round(self.duration * fs)
        if first < 0 or last >= end:
            gain *= (index >= 0) & (index < end)
        ramp = round(self.ramp * fs)
        # Between the ramps both are exactly 1.
        if ramp and first < ramp:
            gain *= _raised_cosine((index + 0.5) / ramp)
        if ramp and last >= end - ramp:
            gain *= _raised_cosine((end - index - 0.5) / ramp)
        return gain * self.carrier(index, fs)

    def _index(self, fs: int, begin: int, count: int) -> NDArray[np.int64]:
        """Samples since the last start, from `begin` after the first one; -1 before that."""
        if self.period is None:
            return np.arange(begin, begin + count)
        period = round(self.period * fs)
        at = begin % period
        if begin >= 0 and at + count <= period:
            return np.arange(at, at + count)
        index = np.arange(begin, begin + count)
        return np.where(index >= 0, index % period, -1)

    def _sounds(self, fs: int, begin: int, end: int) -> bool:
        """Whether it is on anywhere in [begin, end), in samples after its start."""
        at = max(begin, 0)
        if end <= at:
            return False
        if self.duration is None:
            return True
        if self.period is None:
            return at < round(self.duration * fs)
        period = round(self.period * fs)
        lasts, at = end - at, at % period
        return at < round(self.duration * fs) or at + lasts > period


@dataclass(frozen=True)
class Tone(Component):
    """A sinusoid, optionally amplitude modulated at `modulation` Hz with `depth`."""

    frequency: float
    modulation: float | None = None
    depth: float = 1.0

    def carrier(self, index: NDArray[np.int64], fs: int) -> Signal:
        if not 0.0 < self.frequency < fs / 2:
            raise ValueError(
                f"Tone: {self.frequency} Hz is not between 0 and half of the rate {fs} Hz"
            )
        time_s = index / fs
        y = math.sqrt(2.0) * np.sin(2.0 * np.pi * self.frequency * time_s)
        if self.modulation is not None:
            envelope = 1.0 + self.depth * np.sin(2.0 * np.pi * self.modulation * time_s)
            y *= envelope / math.sqrt(1.0 + self.depth**2 / 2.0)
        return y


@dataclass(frozen=True)
class Noise(Component):
    """Gaussian noise: white or pink between `low` and `high` Hz (None: half the rate).

    The noise is frozen: it is the same for the same seed and repeats after 2**19 samples (10.9 s at
    48 kHz), so that it can start at any sample and has exactly its level and band.
    """

    kind: Literal["white", "pink"] = "white"
    low: float = 20.0
    high: float | None = None
    seed: int = 0

    def carrier(self, index: NDArray[np.int64], fs: int) -> Signal:
        table = _noise(self.kind, self.low, self.high or fs / 2, self.seed, fs)
        return table[index % len(table)]


def _raised_cosine(x: Signal) -> Signal:
    return 0.5 - 0.5 * np.cos(np.pi * np.clip(x, 0.0, 1.0))


@functools.lru_cache(maxsize=8)
def _noise(kind: str, low: float, high: float, seed: int, fs: int) -> Signal:
    f = np.fft.rfftfreq(NOISE_SAMPLES, 1.0 / fs)
    band = (f >= max(low, f[1])) & (f <= high)
    if kind not in ("white", "pink") or not band.any():
        raise ValueError(
            f"Noise: kind {kind!r} from {low} to {high} Hz: give 'white' or 'pink' and a band "
            f"below {fs / 2:g} Hz"
        )
    rng = np.random.default_rng(seed)
    spectrum = rng.standard_normal(len(f)) + 1j * rng.standard_normal(len(f))
    weight = np.zeros(len(f))
    weight[band] = 1.0 if kind == "white" else 1.0 / np.sqrt(f[band])
    y = np.fft.irfft(spectrum * weight)
    y /= np.sqrt(np.mean(y**2))
    y.flags.writeable = False
    return y


def mix(components: Sequence[Component], fs: int, first: int, count: int) -> Signal:
    """The sum of components in pascal `(time, 2)`."""
    ears = np.zeros((count, 2))
    for component in components:
        y = component.render(fs, first, count)
        if y is None:
            continue
        if component.ear != "right":
            ears[:, 0] += y
        if component.ear != "left":
            ears[:, 1] += y
    return ears


DEMO_S = 24.0


def demo_sound() -> list[Component]:
    """A tone of 1 sone, the same 20 dB higher, a beating tone, pink noise, bursts; every 24 s."""
    bursts = [
        Tone(500.0, level_db=65.0, start=18.5 + 0.5 * i, duration=0.15, period=DEMO_S)
        for i in range(8)
    ]
    return [
        Tone(1000.0, level_db=40.0, start=0.5, duration=4.0, period=DEMO_S),
        Tone(1000.0, level_db=60.0, start=4.5, duration=4.0, period=DEMO_S),
        Tone(1000.0, modulation=4.0, level_db=60.0, start=9.0, duration=4.0, period=DEMO_S),
        Noise("pink", level_db=60.0, start=13.5, duration=4.5, period=DEMO_S),
        *bursts,
    ]
