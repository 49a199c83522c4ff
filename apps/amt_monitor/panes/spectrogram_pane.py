"""Levels over time and frequency as colors: bands, or lines of a narrow-band spectrum."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from amt_monitor.base.widgets import plain_label
from amt_monitor.panes.waterfall_pane import COLUMN_S, SPAN_S, CurvesOf, LastMinutePane, curves_of
from amt_monitor.plot.cursor_plot import CursorPlot
from amt_monitor.plot.frequency_plot import HZ_TICKS, hertz_text
from amt_monitor.plot.history_traces import ticks_of
from amt_monitor.plot.image_layers import FrameLayer
from amt_monitor.plot.plot import PlotAxis
from amt_stream.core.words import clock_text
from amt_stream.meters.accumulators.level import level_db
from amt_stream.meters.accumulators.spectrum import HIGHEST_HZ, LOWEST_HZ
from amt_stream.meters.rows import reading_text

if TYPE_CHECKING:
    from amt_stream.engine import Engine
    from amt_stream.views.view_state import ViewState

LINES = 240
"""Rows of a narrow-band spectrum, each as high in lg of hertz as any other."""

SPAN_DB, STEP_DB = 60.0, 10.0
"""Range of the colors, and the steps of its top."""

CHANNELS = ("higher channel", "left channel", "right channel")


class FrequencyRows:
    """The rows of a spectrogram: bands as they are, or the highest line in each part of an axis.

    model: third octaves, octaves, or a narrow-band spectrum
    """

    def __init__(self, model: Any) -> None:
        self._bin_hz = getattr(model, "bin_hz", None)
        if self._bin_hz is None:
            midbands = np.log10(np.asarray(model.midbands, float))
            half = np.diff(midbands).mean() / 2
            self.edges = np.append(midbands - half, midbands[-1] + half)
            self.hz = [float(f) for f in model.nominal]
        else:
            bins = len(model.frequencies)
            highest = min(HIGHEST_HZ, self._bin_hz * (bins - 1))
            self.edges = np.linspace(np.log10(LOWEST_HZ), np.log10(highest), LINES + 1)
            # Where lines are further apart than rows, rows share the nearest one.
            places = np.rint(10**self.edges / self._bin_hz).astype(int)
            self._first, self._end = places[:-1], places[-1] + 1
            self.hz = (10 ** ((self.edges[:-1] + self.edges[1:]) / 2)).tolist()

    def levels(self, values: Any) -> NDArray[np.floating]:
        """Levels in dB (ear, frame, row) of a model's output; of one channel, for both ears."""
        if self._bin_hz is None:
            levels = np.moveaxis(level_db(values.highest[:, 0]), -1, -2)
        else:
            levels = np.maximum.reduceat(values.level_db[..., : self._end], self._first, axis=-1)
        return np.broadcast_to(levels, (2, *levels.shape[1:])) if len(levels) == 1 else levels[:2]


class SpectrogramPlot(CursorPlot):
    """Time and row along the axes; the arrow keys begin at the end of the time."""

    @property
    def start(self) -> tuple[float, float]:
        return self.x.high, super().start[1]


class SpectrogramPane(LastMinutePane):
    """Levels F of the last minute, low frequencies at the bottom.

    The colors cover 60 dB below the highest level of that minute. A marker reads time, frequency
    and level.

    name: of the pane
    title: of the model
    model: in the engine
    stage: the model
    """

    def __init__(self, name: str, title: str, model: str, stage: Any) -> None:
        self.rows, self._model = FrequencyRows(stage), model
        low, high = self.rows.edges[[0, -1]].tolist()
        count = len(self.rows.hz)
        places = [
            (float((np.log10(f) - low) / (high - low) * count), hertz_text(f))
            for f in HZ_TICKS
            if low <= np.log10(f) <= high
        ]
        plot = SpectrogramPlot(f"{name}_plot", (COLUMN_S, 1.0), key=True)
        y = PlotAxis(0.0, float(count), places, ())
        super().__init__(name, f"Spectrogram, {title}", "Hz", plot, count, y, CHANNELS)
        plot.setAccessibleName(f"levels of the last minute as colors, {title}")
        plot.setAccessibleDescription("the arrow keys move the marker")
        plot.pointed.connect(self.read_off)
        self._pointed = plot
        self.scale, self.value = plain_label("scale", role="second"), plain_label("value")
        for label in (self.value, self.scale):
            self.head.addWidget(label)
        self.cell = FrameLayer()
        plot.add(self.cell)
        self._fit()

    def followed(self, engine: "Engine") -> CurvesOf | None:
        return curves_of(engine, self._model, lambda one: self.rows.levels(one.values))

    def read(self, view: "ViewState") -> None:
        self._fit()
        self.read_off()

    def restart(self) -> None:
        super().restart()
        self._fit()

    def read_off(self) -> None:
        """Write the values at the marker."""
        if (at := self._pointed.cursor) is None:
            self.cell.set(None)
            self.value.setText("")
            return
        row, age_s = int(at[1]), at[0]
        time_s = self.colors.until_s + age_s
        column = np.floor(age_s / COLUMN_S) * COLUMN_S
        self.cell.set((max(column, -SPAN_S), row, min(column + COLUMN_S, 0.0), row + 1))
        level = float(self.colors.curve(time_s)[row]) if time_s >= 0 else np.nan
        hz = reading_text("_hz", self.rows.hz[row])
        where = f"{clock_text(round(max(time_s, 0.0), 1))}  {hz} Hz"
        self.value.setText(f"{where}  {reading_text('_db', level)} dB")
        self.plot.setAccessibleDescription(self.value.text())

    def texts(self) -> tuple[str, ...]:
        return self.scale.text(), self.value.text()

    def _fit(self) -> None:
        """Fit the colors to the highest level of the minute."""
        highest = self.colors.highest
        top = STEP_DB * np.ceil(highest / STEP_DB) if np.isfinite(highest) else SPAN_DB
        low = float(top) - SPAN_DB
        self.colors.set_colors(low, low + SPAN_DB, ticks_of(low, low + SPAN_DB))
        self.scale.setText(f"{top - SPAN_DB:g} to {top:g} dB")
