"""Modulation spectra in the terminal: an image of characters, and the strongest cell in words."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TextIO

import numpy as np
from numpy.typing import NDArray

from amt_stream.cli.terminal import (
    BOLD,
    PLAIN,
    Condition,
    TerminalMeter,
    heading,
    level_words,
    status,
    truncated,
)
from amt_stream.core.json_types import JsonDict
from amt_stream.meters.rows import EARS, Strongest, below_db, hz_text, strongest

if TYPE_CHECKING:
    from amt_stream.engine.engine import Engine
    from amt_stream.meters.frames import Frames

SHADES = {"█": -3.0, "▓": -9.0, "▒": -15.0, "░": -24.0}
ASCII_SHADES = {"#": -3.0, "+": -9.0, ":": -15.0, ".": -24.0}
"""Characters, and the lowest level of each in dB relative to the strongest cell."""

LABEL, EDGES = 10, 5
# Lines above and below the images: 3 and 10.
OTHER_LINES = 13
TICKS_HZ = (125, 250, 500, 1000, 2000, 4000, 8000)


@dataclass(frozen=True, kw_only=True)
class SpectrumSeen(Condition):
    """A modulation spectrum: the rms of the cells (ear, band, modulation)."""

    rms: NDArray[np.float32]
    fc: NDArray[np.float64]
    mfc: NDArray[np.float64]
    model: str

    @property
    def strongest(self) -> Strongest | None:
        return strongest(self.rms, self.fc, self.mfc)


class LatestFrame:
    """A sink that holds the last frame until `end_s`, as the engine's history has no spectra."""

    def __init__(self, end_s: float) -> None:
        self.time_s = 0.0
        self.rms: NDArray[np.float32] | None = None
        self._end_s = end_s

    def __call__(self, frames: "Frames") -> None:
        count = int(np.searchsorted(frames.time_s, self._end_s, side="right"))
        if count:
            self.rms = frames.values.rms[:, count - 1]
            self.time_s = float(frames.time_s[count - 1])


def line(reading: SpectrumSeen) -> str:
    """A reading in one line of plain text."""
    words = f"strongest {reading.strongest or 'none: silence'}"
    return f"{reading.time_s:8.1f} s  {words}  {level_words(reading)}"


def screen(reading: SpectrumSeen, width: int, height: int, unicode: bool = True) -> list[str]:
    """A reading as lines for a terminal of `width` characters and `height` lines.

    Both ears are side by side, with a row per modulation band, the fastest on top, and one or more
    columns per auditory band. If there are fewer columns than bands, a column shows the strongest
    of several bands.
    """
    shades = SHADES if unicode else ASCII_SHADES
    room = max(1, (width - LABEL - EDGES) // 2)
    edge = "│" if unicode else "|"
    columns = shared_columns(len(reading.fc), room)
    tall = min(3, max(1, (height - OTHER_LINES) // len(reading.mfc)))
    found = reading.strongest
    level = below_db(reading.rms, found.rms if found else 0.0)
    # (ear, column, modulation): the strongest of the bands that share a column.
    level = np.stack([level[:, bands].max(axis=1) for bands in columns], axis=1)
    lines = []
    for m in reversed(range(len(reading.mfc))):
        ears = " ".join(edge + "".join(shade(v, shades) for v in ear[:, m]) + edge for ear in level)
        bold = found is not None and m == found.modulation
        center = float(reading.mfc[m])
        label = f"{hz_text(center) + ' Hz' if center else 'mean':>{LABEL - 2}}"
        label = f"{BOLD}{label}{PLAIN}" if bold else label
        lines += [f"{label}  {ears}"] + [" " * LABEL + ears] * (tall - 1)
    centers = np.array([reading.fc[bands].mean() for bands in columns])
    beside = "   ".join(tick_line(centers).ljust(len(columns)) for _ in level)
    titles = "   ".join(truncated(f"{ear} ear", room).ljust(len(columns)) for ear in EARS)
    legend = ", ".join(f"{mark} to {-down:.0f}" for mark, down in shades.items())
    return [
        heading(reading, width),
        truncated(f"modulation spectrum, {reading.model}", width),
        truncated(" " * (LABEL + 1) + titles, width),
        *lines,
        truncated(" " * (LABEL + 1) + beside + " Hz", width),
        "",
        f"{BOLD}strongest: {truncated(str(found or 'none, silence'), max(1, width - 11))}{PLAIN}",
        truncated(f"{legend} dB below it", width),
        truncated(level_line(reading), width),
        *status(reading, width),
    ]


def shared_columns(bands: int, room: int) -> list[NDArray[np.intp]]:
    """The bands that each column of an image `room` columns wide shows."""
    wide = room // bands
    if wide:
        return [np.array([b]) for b in range(bands) for _ in range(wide)]
    return list(np.array_split(np.arange(bands), room))


def shade(level_db: float, shades: dict[str, float]) -> str:
    """The character for a level below the strongest."""
    return next((mark for mark, down in shades.items() if level_db >= down), " ")


def tick_line(centers: Sequence[float] | NDArray[np.float64]) -> str:
    """A line of frequencies below the nearest columns, as many as fit."""
    text = ""
    for f in TICKS_HZ:
        at = int(np.abs(np.log(np.asarray(centers) / f)).argmin())
        label = f"{f // 1000}k" if f >= 1000 else str(f)
        start = min(max(0, at - len(label) // 2), max(0, len(centers) - len(label)))
        if start > len(text) or (start == 0 and not text):
            text = text.ljust(start) + label
    return text


def level_line(reading: SpectrumSeen) -> str:
    left, right = reading.level_db
    return f"in left {left:.1f}, right {right:.1f} dB SPL"


class ModulationTerminal(TerminalMeter[SpectrumSeen]):
    """Shows the modulation spectrum of both ears from the sink `newest`."""

    def __init__(self, engine: "Engine", stream: TextIO, newest: LatestFrame) -> None:
        super().__init__(engine, stream)
        self._newest = newest

    def read(self, row: np.record, condition: JsonDict) -> SpectrumSeen | None:
        rms, model = self._newest.rms, self._engine.model
        if rms is None:
            return None
        return SpectrumSeen(
            rms=rms,
            fc=np.asarray(model.fc),
            mfc=np.asarray(model.mfc),
            model=next(iter(self._engine.models)),
            **condition | {"time_s": self._newest.time_s},
        )

    def line(self, reading: SpectrumSeen) -> str:
        return line(reading)

    def screen(self, reading: SpectrumSeen, width: int, height: int) -> list[str]:
        return screen(reading, width, height, self._unicode)
