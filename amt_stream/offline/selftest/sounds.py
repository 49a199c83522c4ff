"""Test sounds."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from amt_stream.dsp.scales import pa_to_db_spl
from amt_stream.meters.signals import Component, Tone, mix


@dataclass(frozen=True)
class ComponentSound:
    """A sound of components (`meters.signals`) in pascal, with duration and name."""

    words: str
    duration: float
    components: tuple[Component, ...]
    channels: int = 2

    def samples(self, fs: int) -> NDArray[np.float64]:
        """Pascal (channel, time)."""
        return mix(self.components, fs, 0, round(self.duration * fs)).T[: self.channels]


def tone(f: float, level_db: float, duration: float = 0.35, **more: Any) -> Tone:
    """A tone, by default with ramps of 20 ms."""
    return Tone(f, level_db=level_db, duration=duration, **({"ramp": 0.02} | more))


def short(words: str, *tones: Tone, channels: int = 2) -> ComponentSound:
    """Tones within 0.4 s, in which short-term loudness settles."""
    return ComponentSound(words, 0.4, tones, channels)


def steady(f: float, level_db: float, channels: int = 2) -> ComponentSound:
    """One tone, 0.35 s long."""
    return short(f"{f:g} Hz, {level_db:g} dB SPL", tone(f, level_db), channels=channels)


def tone_in_pascal(
    f: float, rms: float, duration: float, ramp: float = 0.1, channels: int = 2
) -> ComponentSound:
    """A tone with a sound pressure in pascal, independent of the reference of levels."""
    words = f"{f:g} Hz, {rms:g} Pa"
    of = (tone(f, pa_to_db_spl(rms), duration, ramp=ramp),)
    return ComponentSound(words, duration, of, channels)


def burst(ms: int, ramp: float = 0.002, channels: int = 2) -> ComponentSound:
    """1 kHz at 60 dB SPL after 0.1 s, and 0.4 s of silence."""
    seconds = ms / 1000
    on = (tone(1000, 60, seconds, start=0.1, ramp=ramp),)
    return ComponentSound(f"1000 Hz, 60 dB SPL, {ms} ms", 0.5 + seconds, on, channels)


def together(frequencies: Iterable[float], level_db: float, channels: int = 2) -> ComponentSound:
    """Tones of one level, 0.35 s long."""
    listed = list(frequencies)
    words = ", ".join(f"{f:g}" for f in listed) + f" Hz, {level_db:g} dB SPL each"
    return short(words, *(tone(f, level_db) for f in listed), channels=channels)
