"""Third octaves: a bar for each band, and the number below."""

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from pyqtgraph.Qt import QtWidgets

from amt_monitor.bars import Bars
from amt_monitor.cell import Cell
from amt_monitor.held import Held
from amt_monitor.plot import Axis, Plot
from amt_monitor.reading_pane import ReadingPane
from amt_stream.catalog import Entry
from amt_stream.metering.third_octave import NAME

STEPS_DB = (0.0, 20.0, 40.0, 60.0, 80.0, 100.0, 120.0)
LINES = ("no line", "hold 2 s", "maximum")
LOWEST_PLOT = 110
"""Pixels."""


class BandsPane(ReadingPane):
    """F levels of the moment in third octaves, those of both channels' louder one.

    The line of a bar is what is held: the greatest of the last 2 s, or of all since it was chosen,
    of the levels that were drawn.
    """

    def __init__(self, entry: Entry, names: Collection[str]) -> None:
        cells = [cell for cell in map(_cell, names) if cell is not None]
        small = [[cell] for cell in cells]
        super().__init__(entry, "IEC 61260-1, fast (F)", (), small, names)
        self._names = [cell.name for cell in cells]
        self.plot = Plot("bands_plot")
        self.plot.setMinimumHeight(LOWEST_PLOT)
        places = range(len(cells))
        # Every third band is an octave's own.
        named = [(k, cells[k].words.replace(" Hz", "").replace(" kHz", "k")) for k in places]
        octaves = [pair for pair, cell in zip(named, cells, strict=True) if _is_octave(cell.name)]
        self.plot.set_axes(
            Axis(-0.6, len(cells) - 0.4, octaves),
            Axis(STEPS_DB[0], STEPS_DB[-1], [(v, f"{v:g}") for v in STEPS_DB]),
        )
        self.plot.set_unit("dB", False)
        self.bars = Bars("accent")
        self.plot.add(self.bars)
        self.body.insertWidget(self.body.indexOf(self.grid), self.plot, 2)
        self._held = Held()
        self.line = QtWidgets.QComboBox()
        self.line.setAccessibleName("line over the bars")
        self.line.addItems(LINES)
        self.line.currentIndexChanged.connect(lambda _: self._held.clear())
        self.head.insertWidget(self.head.count() - 1, self.line)

    def show_readings(self, found: Mapping[str, Any]) -> None:
        super().show_readings(found)
        self.draw(found)

    def draw(self, found: Mapping[str, Any]) -> None:
        """Move the bars; a band below 0 dB, or without a level, has none."""
        levels = [found.get(name) for name in self._names]
        heights = np.array([max(0.0, v or 0.0) for v in levels])
        chosen = self.line.currentIndex()
        if not chosen:
            self.bars.set(heights)
            return
        self._held.show(float(found.get("time_s") or 0.0), heights)
        self.bars.set(heights, self._held.held if chosen == 1 else self._held.greatest)

    def begin_anew(self) -> None:
        self._held.clear()

    def doubt(self, grey: bool, uncalibrated: bool) -> None:
        super().doubt(grey, uncalibrated)
        self.plot.set_unit("dB", uncalibrated)


def _cell(name: str) -> Cell | None:
    """The number of a band; None for what is no F level of the moment."""
    found = NAME.fullmatch(name)
    if found is None or found["what"] != "lzf":
        return None
    hz = _hz(name)
    return Cell(name, words=f"{hz / 1000:g} kHz" if hz >= 1000 else f"{hz:g} Hz")


def _hz(name: str) -> float:
    found = NAME.fullmatch(name)
    assert found is not None
    return float(found["band"].removesuffix("hz").replace("_", "."))


def _is_octave(name: str) -> bool:
    """Whether it is the middle third of an octave: its number, 10 lg of hertz, is in threes."""
    return round(10 * np.log10(_hz(name))) % 3 == 0
