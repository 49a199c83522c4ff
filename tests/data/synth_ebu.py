"""Test signals of programme loudness meters, with what a meter must read, as fractions of 1.0.

EBU Tech 3341 (v4) Table 1, Tech 3342 Table 1 and ITU-R BS.1770-5 Annex 1, the numbers also in
jmrplens/phonometry (MIT). Levels are those of the peak in dB re full scale, of a sine of 1 kHz
where nothing else is said, in phase in all channels (L R C Ls Rs of five), without ramps. The
signals that are recordings (3341-7 and 8, 3342-5 and 6) are left out.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Signal:
    """`expected` by reading, `tolerance` below and above it.

    steps: (level or None for silence, seconds), one after another
    levels: of each channel instead, for 20 s, at `frequency`
    tone: fs / f, amplitude and phase in degrees of a faded sine
    offset: in quarters of a sample, of a tone of fs / 6 with a period of fs / 4, twice as high
    """

    name: str
    expected: dict[str, Any]
    tolerance: tuple[float, float] = (0.1, 0.1)
    steps: list[tuple[float | None, float]] = field(default_factory=list)
    levels: tuple[float | None, ...] = ()
    frequency: float = 1000.0
    tone: tuple[float, float, float] | None = None
    offset: int = 0

    @property
    def channels(self) -> int:
        return len(self.levels) or 2

    def render(self, fs: int) -> np.ndarray:
        """(channel, time)"""
        if self.levels:
            return np.stack([sine(level, 20, fs, self.frequency) for level in self.levels])
        if self.steps:
            x = np.concatenate([sine(level, seconds, fs) for level, seconds in self.steps])
        elif self.tone:
            ratio, amplitude, degrees = self.tone
            x = faded(
                amplitude * np.sin(2 * np.pi * np.arange(fs) / ratio + np.deg2rad(degrees)), fs
            )
        else:
            x = between_samples(fs, self.offset)
        return np.stack([x, x])


def sine(level: float | None, seconds: float, fs: int, f: float = 1000.0) -> np.ndarray:
    n = np.arange(round(seconds * fs))
    amplitude = 0.0 if level is None else 10 ** (level / 20)
    return amplitude * np.sin(2 * np.pi * f * n / fs)


def faded(x: np.ndarray, fs: int) -> np.ndarray:
    n = fs // 100
    ramp = np.linspace(0, 1, n)
    return np.concatenate([x[:n] * ramp, x[n:-n], x[-n:] * ramp[::-1]])


def between_samples(fs: int, offset: int) -> np.ndarray:
    """1 s at four times the rate, of which every fourth is taken; fs is a multiple of 12 Hz."""
    middle = slice(2 * fs, 2 * fs + 16)
    step, amplitude = np.full(4 * fs, 1 / 24), np.full(4 * fs, 0.5)
    step[middle], amplitude[middle] = 1 / 16, 1.0
    finer = faded(amplitude * np.sin(2 * np.pi * np.cumsum(step)), 4 * fs)
    low_pass = np.sinc(np.arange(-511, 512) * 0.225) * 0.225 * np.kaiser(1023, 8.0)
    return np.convolve(finer, low_pass, mode="same")[offset::4]


def signals() -> Iterator[Signal]:
    for n, level in ((1, -23.0), (2, -33.0)):
        names = "max_momentary_lufs", "max_short_term_lufs", "integrated_lufs"
        yield Signal(f"3341-{n}", dict.fromkeys(names, level), steps=[(level, 20)])
    integrated = {"integrated_lufs": -23.0}
    yield Signal("3341-3", integrated, steps=[(-36, 10), (-23, 60), (-36, 10)])
    around = [(-72, 10), (-36, 10)]
    yield Signal("3341-4", integrated, steps=[*around, (-23, 60), *around[::-1]])
    yield Signal("3341-5", integrated, steps=[(-26, 20), (-20, 20.1), (-26, 20)])
    yield Signal("3341-6", integrated, levels=(-28, -28, -24, -30, -30))
    yield Signal("3341-9", {"short_term_after_3s": -23.0}, steps=[(-20, 1.34), (-30, 1.66)] * 5)
    yield Signal("3341-12", {"momentary_after_1s": -23.0}, steps=[(-20, 0.18), (-30, 0.22)] * 25)
    for n, name, seconds, later in (
        (10, "short_term", 3.0, 0.15),
        (13, "momentary", 0.4, 0.02),
    ):
        rising = []
        for i in range(20):
            start = i * later
            steps = [(None, start), (-23, seconds), (None, 1.0)]
            yield Signal(f"3341-{n}.{i + 1}", {f"max_{name}_lufs": -23.0}, steps=steps)
            rising += [(None, start), (i - 38, seconds), (None, seconds - start)]
        maxima = {f"max_{name}_of_20": [i - 38.0 for i in range(20)]}
        yield Signal(f"3341-{n + 1}", maxima, steps=rising)
    tones = [
        (4, 0.5, 0, -6),
        (4, 0.5, 45, -6),
        (6, 0.5, 60, -6),
        (8, 0.5, 67.5, -6),
        (4, 1.41, 45, 3),
    ]
    for n, (*tone, peak) in enumerate(tones, 15):
        yield Signal(f"3341-{n}", {"true_peak_dbtp": peak}, (0.4, 0.2), tone=tuple(tone))
    for offset in range(4):
        yield Signal(f"3341-{20 + offset}", {"true_peak_dbtp": 0}, (0.4, 0.2), offset=offset)
    for n, (levels, lra) in enumerate(
        [((-20, -30), 10), ((-20, -15), 5), ((-40, -20), 20), ((-50, -35, -20, -35, -50), 15)], 1
    ):
        steps = [(level, 20) for level in levels]
        yield Signal(f"3342-{n}", {"lra_lu": lra}, (1.0, 1.0), steps=steps)
    for n, name in enumerate("LRC"):
        levels = tuple(0.0 if k == n else None for k in range(5))
        expected = {"integrated_lufs": -3.01}
        yield Signal(f"1770-997Hz-{name}", expected, (0.05, 0.05), levels=levels, frequency=997.0)


SIGNALS = {signal.name: signal for signal in signals()}
