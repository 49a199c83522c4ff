"""A bar for each band: levels of octaves or third octaves, and modulation transfer of octaves."""

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np

from amt_monitor.base.widgets import combo_box, plain_label
from amt_monitor.panes.reading_pane import ReadingPane
from amt_monitor.plot.bar_layer import BarLayer
from amt_monitor.plot.frequency_plot import with_unit
from amt_monitor.plot.plot import Plot, PlotAxis
from amt_stream.core.words import frequency_text
from amt_stream.dsp.stipa_signal import OCTAVES
from amt_stream.meters.accumulators.level import level_db
from amt_stream.meters.accumulators.sti import category
from amt_stream.meters.accumulators.stipa import Reason, reason_words
from amt_stream.meters.catalog import Entry
from amt_stream.meters.rows import Column, column_named
from amt_stream.meters.rows.limit_words import silence
from amt_stream.meters.state_signs import is_away
from amt_stream.views.peak_hold import PeakHold
from amt_stream.views.reading_cell import ReadingCell

if TYPE_CHECKING:
    from amt_stream.engine import Engine
    from amt_stream.sessions.outputs import FollowedReadings
    from amt_stream.views.view_state import ViewState

STEPS_DB = (0.0, 20.0, 40.0, 60.0, 80.0, 100.0, 120.0)
STEPS_MTI = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
MTI = tuple(f"mti_{octave}" for octave in OCTAVES)
LEVELS = tuple(f"leq_{octave}_db" for octave in OCTAVES)
LINES = ("no line", "hold 2 s", "maximum")
LOWEST_PLOT = 110
"""Pixels."""


class BandsPane(ReadingPane):
    """F levels in octaves or third octaves; of two channels the higher one.

    The line of a bar is its maximum: of the last 2 s, or since the readings were reset.
    """

    def __init__(self, entry: Entry, names: Collection[str]) -> None:
        columns = [column for column in map(column_named, names) if _is_shown(column)]
        cells = [ReadingCell(one.name, words=frequency_text(one.band_hz)) for one in columns]
        super().__init__(entry, "IEC 61260-1, fast (F)", (), [[cell] for cell in cells], names)
        self._names = [column.name for column in columns]
        self._bands_hz = [column.band_hz for column in columns]
        self.bars = BarLayer("accent")
        self.plot = _plot_of_bars(self.bars, self._bands_hz, STEPS_DB)
        self.plot.set_unit("dB", False)
        self.body.insertWidget(self.body.indexOf(self.grid), self.plot, 2)
        self._held = PeakHold()
        self._found: Mapping[str, Any] = {}
        self._lost = False
        self.line = combo_box("line over the bars", LINES, lambda: self.draw(self._found))
        self.head.addWidget(self.line)

    def show_readings(self, found: Mapping[str, Any]) -> None:
        super().show_readings(found)
        self.draw(found)

    def draw(self, found: Mapping[str, Any]) -> None:
        """Move the bars; a band below 0 dB or without a level has none."""
        self._found = found
        levels = [None if self._lost else found.get(name) for name in self._names]
        heights = np.array([max(0.0, v or 0.0) for v in levels])
        lines = (None, self._held.held, self._held.greatest)
        highest = lines[self.line.currentIndex()]
        self.bars.set(heights, None if highest is None else np.fmax(0.0, level_db(highest)))

    def move(self, view: "ViewState") -> None:
        if self.line.currentIndex():
            self.take_frames(view.engine, view.readings)
        super().move(view)

    def take_frames(self, engine: "Engine", readings: "FollowedReadings | None") -> None:
        model: Any = engine.models.get(self.model)
        if not hasattr(model, "nominal"):
            return
        there = [*model.nominal]
        if not {*self._bands_hz} <= {*there}:
            return
        places = [there.index(hz) for hz in self._bands_hz]
        # Level F of the louder channel: (band, frame).
        self._held.take_frames(
            engine,
            readings,
            self.model,
            lambda frames: frames.values.highest[:, 0].max(axis=0)[places],
        )

    def show_status(self, view: "ViewState") -> None:
        super().show_status(view)
        self._held.stand_still("frozen" in view.held)
        self.plot.rest(bool(silence(view.held)))
        if self._lost != (is_away(view.held)):
            self._lost = not self._lost
            self.draw(self._found)

    def restart(self) -> None:
        self._held.clear()

    def doubt(self, grey: bool, uncalibrated: bool) -> None:
        super().doubt(grey, uncalibrated)
        self.plot.set_unit("dB", uncalibrated)


class StipaPane(ReadingPane):
    """STI with its category and certainty, why it is not valid, and a bar of MTI for each octave.

    Numbers are grey until they are valid.
    """

    def __init__(self, entry: Entry, names: Collection[str]) -> None:
        large = [[ReadingCell("sti"), ReadingCell("sti", "sti_category", category)]]
        small = [[ReadingCell(name)] for name in LEVELS]
        shown = {cell.name for line in (*large, *small) for cell in line} | {*MTI}
        usual = [name for name in names if name in shown]
        super().__init__(entry, "of the last 25 s", large, small, usual or names)
        self.bars = BarLayer("accent")
        self.plot = _plot_of_bars(self.bars, OCTAVES, STEPS_MTI)
        self.plot.setAccessibleName("modulation transfer index of each octave")
        self.plot.set_unit("MTI", False)
        self.why = plain_label("sti_reasons", wrap=True, role="second")
        place = self.body.indexOf(self.grid)
        self.body.insertWidget(place, self.plot, 2)
        self.body.insertWidget(place, self.why)

    def show_readings(self, found: Mapping[str, Any]) -> None:
        super().show_readings(found)
        code, seconds, sd = (found.get(name) for name in ("sti_reasons", "sti_s", "sti_sd"))
        if code is None or seconds is None or sd is None:
            self.why.setText("")
        else:
            certainty = f"\N{PLUS-MINUS SIGN} {sd:.3f} after {seconds:.0f} s"
            self.why.setText("; ".join([certainty, *reason_words(Reason(int(code)))]))
        self.draw(found)

    def draw(self, found: Mapping[str, Any]) -> None:
        """Move the bars."""
        self.bars.set([found.get(name) or 0.0 for name in MTI])

    def show_status(self, view: "ViewState") -> None:
        super().show_status(view)
        self.plot.rest(bool(silence(view.held)))
        if (view.values.get("sti_valid") or 0) != 1:
            self.doubt(True, view.reading_status(self.model).uncalibrated)

    def lose(self) -> None:
        self.draw({})


def _plot_of_bars(bars: BarLayer, bands_hz: Sequence[float], steps: Sequence[float]) -> Plot:
    """A plot with a bar for each band, and the names of octaves below."""
    plot = Plot("bands_plot")
    plot.setMinimumHeight(LOWEST_PLOT)
    # Every third band is also the center of an octave: its number is a multiple of three.
    octaves = [
        (k, f"{hz / 1000:g}k" if hz >= 1000 else f"{hz:g}")
        for k, hz in enumerate(bands_hz)
        if round(10 * np.log10(hz)) % 3 == 0
    ]
    plot.set_axes(
        PlotAxis(-0.6, len(bands_hz) - 0.4, with_unit(octaves, "Hz")),
        PlotAxis(steps[0], steps[-1], [(v, f"{v:g}") for v in steps]),
    )
    plot.add(bars)
    return plot


def _is_shown(column: Column | None) -> TypeGuard[Column]:
    """Whether it is an F level of a band, of both channels together."""
    if column is None or not column.band_hz or column.side:
        return False
    return (column.of, column.kind) == ("lzf", "now")
