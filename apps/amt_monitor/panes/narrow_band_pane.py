"""Narrow-band spectrum and its strongest line."""

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from amt_monitor.base.theme import Role, ThemedLabel
from amt_monitor.base.widgets import combo_box
from amt_monitor.panes.bands_pane import LINES, LOWEST_PLOT
from amt_monitor.panes.reading_pane import ReadingPane
from amt_monitor.plot.curve_layers import CurveLayer
from amt_monitor.plot.frequency_plot import FrequencyColumns, FrequencyPlot
from amt_monitor.plot.line_layers import LabelledMaximum, MarkerLayer, MaximumLayer
from amt_monitor.plot.plot import SIDES, PlotAxis, sides_text
from amt_stream.meters.accumulators.spectrum import strongest_line
from amt_stream.meters.catalog import Entry
from amt_stream.meters.rows import reading_text
from amt_stream.meters.rows.limit_words import silence
from amt_stream.views.peak_hold import PeakHold
from amt_stream.views.reading_cell import ReadingCell

if TYPE_CHECKING:
    from amt_stream.engine import Engine
    from amt_stream.sessions.outputs import FollowedReadings
    from amt_stream.views.view_state import ViewState

Levels = NDArray[np.floating]

STEP_DB, SPAN_DB, LEAST_TOP_DB = 20.0, 100.0, 40.0
ROOM_DB = 6.0
"""Room above the highest line for its label."""

HOLD_S = 5.0
"""Seconds until an oversized scale shrinks."""

WHATS = [f"{what}{side}" for what in ("max", "peak") for side in ("", "_left", "_right")]
ROLES: tuple[Role, Role] = "left", "right"


class NarrowBandPane(ReadingPane):
    """The spectrum of each channel in the latest frame, and its strongest line.

    The second line is the maximum of the last 2 s, or since the last reset. The scale grows at once
    and shrinks after five seconds.
    """

    def __init__(self, entry: Entry, names: Collection[str]) -> None:
        pairs = [
            [ReadingCell(f"spectrum_{what}_{unit}") for unit in ("hz", "db")] for what in WHATS
        ]
        super().__init__(entry, "Hann window, fast (F)", (), pairs, names)
        self.plot = FrequencyPlot("narrow_band_plot")
        self.plot.setMinimumHeight(LOWEST_PLOT)
        self.plot.setAccessibleName("narrow-band spectrum")
        self.plot.setAccessibleDescription("Left and Right move the cursor")
        self.plot.pointed.connect(self.read_off)
        self.greatest = [CurveLayer("second"), CurveLayer("second", dashed=True)]
        self.curves = [CurveLayer("left"), CurveLayer("right", dashed=True)]
        self.strongest, self.cursor = MaximumLayer(), MarkerLayer("ink")
        self.plot.set_layers((*self.greatest, *self.curves, self.strongest, self.cursor))
        self.body.insertWidget(self.body.indexOf(self.grid), self.plot, 4)
        self._held, self._columns = PeakHold(), FrequencyColumns()
        self._time_s = self._quiet_since_s = -np.inf
        self._top = 0.0
        self._set_top(80.0)
        self.plot.set_unit("dB", False)
        self.sides = ThemedLabel(sides_text)
        self.sides.hide()
        self.line = combo_box("line over the spectrum", LINES, self._draw_again)
        for widget in (self.sides, self.line):
            self.head.addWidget(widget)

    def move(self, view: "ViewState") -> None:
        frames = view.frames.get(self.model)
        if frames is not None and frames.end_s != self._time_s:
            if self.line.currentIndex():
                self.take_frames(view.engine, view.readings)
            model: Any = view.engine.models[self.model]
            self.show_spectrum(frames.end_s, frames.values.level_db[:, -1], model.bin_hz)

    def read(self, view: "ViewState") -> None:
        super().read(view)
        self.name_strongest()
        self.read_off()

    def take_frames(self, engine: "Engine", readings: "FollowedReadings | None") -> None:
        self._held.take_frames(engine, readings, self.model, lambda frames: frames.values.level_db)

    def show_spectrum(self, time_s: float, level_db: Levels, bin_hz: float) -> None:
        self._time_s, self._now, self._bin_hz = time_s, level_db, bin_hz
        self._columns.fit(level_db.shape[-1], bin_hz, self.plot.inside.width())
        self._tell_sides(len(level_db) > 1)
        self._draw(self.curves, level_db)
        chosen = self.line.currentIndex()
        highest = self._held.held if chosen == 1 else self._held.greatest if chosen else None
        if highest is None:
            self._draw(self.greatest, level_db[:0])
            highest = level_db
        else:
            self._draw(self.greatest, highest)
        self._fit(float(np.fmax.reduce(highest[:, self._columns.shown], axis=None)))

    def name_strongest(self) -> None:
        if not np.isfinite(self._time_s):
            return
        line = strongest_line(self._now, self._bin_hz)
        channel = int(np.argmax(np.nan_to_num(line.level_db, nan=-np.inf)))
        hz, level = float(line.hz[channel]), float(line.level_db[channel])
        if not np.isfinite(level):
            self.strongest.set(())
            return
        text = f"{reading_text('_hz', hz)} Hz  {reading_text('_db', level)} dB"
        role: Role = ROLES[channel] if len(self._now) > 1 else "ink"
        self.strongest.set([LabelledMaximum(float(np.log10(hz)), level, text, role)])

    def read_off(self) -> None:
        at = self.plot.cursor
        if at is None or not len(self.curves[0].x):
            self.cursor.set(())
            return
        place = int(np.argmin(np.abs(self.curves[0].x - at[0])))
        lg = float(self.curves[0].x[place])
        levels = [reading_text("_db", float(c.y[place])) for c in self.curves if len(c.y)]
        parts = levels if len(levels) < 2 else [f"L {levels[0]}", f"R {levels[1]}"]
        text = f"{reading_text('_hz', 10**lg)} Hz  {'  '.join(parts)} dB"
        self.cursor.set([(lg, text)])

    def show_status(self, view: "ViewState") -> None:
        super().show_status(view)
        self._held.stand_still("frozen" in view.held)
        self.plot.rest(bool(silence(view.held)))

    def lose(self) -> None:
        self._time_s = -np.inf
        self.strongest.set(())
        for curve in self.curves:
            curve.clear()

    def restart(self) -> None:
        self._held.clear()
        self._time_s = self._quiet_since_s = -np.inf

    def doubt(self, grey: bool, uncalibrated: bool) -> None:
        super().doubt(grey, uncalibrated)
        self.plot.set_unit("dB", uncalibrated)

    def texts(self) -> tuple[str, ...]:
        return (*super().texts(), *(one.text for one in self.strongest.items))

    def _draw_again(self) -> None:
        if np.isfinite(self._time_s):
            self.show_spectrum(self._time_s, self._now, self._bin_hz)

    def _draw(self, curves: list[CurveLayer], level_db: Levels) -> None:
        for curve, level in zip(curves, level_db, strict=False):
            curve.set(self._columns.x, self._columns.highest(level))
        for curve in curves[len(level_db) :]:
            curve.set((), ())

    def _tell_sides(self, two: bool) -> None:
        if two == self.sides.isHidden():
            self.sides.setVisible(two)
            self.plot.legend = SIDES if two else []

    def _fit(self, highest: float) -> None:
        if not np.isfinite(highest):
            return
        needed = max(LEAST_TOP_DB, STEP_DB * np.ceil((highest + ROOM_DB) / STEP_DB))
        if needed >= self._top:
            self._quiet_since_s = self._time_s
        late = self._time_s - self._quiet_since_s
        if needed > self._top or not 0 <= late <= HOLD_S:
            self._quiet_since_s = self._time_s
            self._set_top(float(needed))

    def _set_top(self, top: float) -> None:
        if top != self._top:
            self._top = top
            steps = np.arange(top - SPAN_DB, top + 1, STEP_DB).tolist()
            self.plot.set_axes(y=PlotAxis(steps[0], top, [(v, f"{v:g}") for v in steps]))
