"""Modulation spectra of both ears, and the strongest modulation."""

from typing import Any

import numpy as np
from pyqtgraph.Qt import QtGui, QtWidgets

from amt_monitor.base.big_number import (
    REFERENCE,
    SMALLEST,
    SMALLEST_CAPTION,
    resize_text,
    text_width,
)
from amt_monitor.base.theme import tint
from amt_monitor.panes.pane import Pane
from amt_monitor.plot.image_layers import FrameLayer, ImageLayer
from amt_monitor.plot.plot import Plot, PlotAxis
from amt_stream.meters.names import SIDES
from amt_stream.meters.rows import NO_READING, RANGE_DB, Strongest, below_db, hz_text, strongest
from amt_stream.views.view_state import ViewState

HZ_TICKS = (100, 200, 500, 1000, 2000, 5000, 10000)
SCALE_TICKS = range(-int(RANGE_DB), 1, 10)


class ModulationMapPane(Pane):
    """Auditory bands from left to right, modulation bands from slow to fast, level as color.

    The strongest cell is framed. Cells that the model does not have stay empty.
    """

    def __init__(self, ear: str) -> None:
        super().__init__(f"modulation_{ear}", f"Modulation spectrum, {ear} ear")
        self.plot = Plot(f"modulation_{ear}_plot")
        self.image, self.frame = ImageLayer(-RANGE_DB, 0.0), FrameLayer()
        self.plot.set_layers((self.image, self.frame))
        self.body.addWidget(self.plot, 1)
        self.level_db = np.empty((0, 0))
        self._mask: Any = None

    def set_bands(self, fc: np.ndarray, mfc: np.ndarray, mask: np.ndarray) -> None:
        self._mask = mask
        centers = np.arange(len(fc)) + 0.5
        named = [f for f in HZ_TICKS if fc[0] <= f <= fc[-1]]
        places = np.interp(np.log(named), np.log(fc), centers).tolist()
        rows = [(m + 0.5, hz_text(f) if f else "mean") for m, f in enumerate(mfc)]
        along = list(zip(places, map(str, named), strict=True))
        self.plot.set_axes(
            PlotAxis(0, len(fc), along, (), "center of the auditory band, Hz"),
            PlotAxis(0, len(mfc), rows, (), "modulation frequency, Hz"),
        )
        self.image.set_extent(0, 0, len(fc), len(mfc))

    def draw(self, level_db: np.ndarray, framed: tuple[int, int] | None) -> None:
        self.level_db = np.where(self._mask, level_db, np.nan)
        self.image.set(self.level_db.T)
        band, modulation = framed or (0, 0)
        self.frame.set(framed and (band, modulation, band + 1, modulation + 1))

    def clear(self) -> None:
        if self.level_db.size:
            self.draw(np.full_like(self.level_db, np.nan), None)


class ColorScale(QtWidgets.QWidget):
    def __init__(self) -> None:
        super().__init__(objectName="color_scale")
        self.plot = Plot("color_scale_plot")
        ticks = [(float(db), str(db)) for db in SCALE_TICKS]
        beside = PlotAxis(-RANGE_DB, 0.0, ticks, (), "dB relative to the strongest")
        self.plot.set_axes(PlotAxis(0, 1), beside)
        scale = ImageLayer(-RANGE_DB, 0.0)
        self.plot.add(scale)
        scale.set_extent(0, -RANGE_DB, 1, 0)
        scale.set(np.linspace(-RANGE_DB, 0.0, 128)[:, None])
        layout = QtWidgets.QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.plot)
        self.setFixedWidth(92)


LONGEST = "88.8 Hz in 18888 Hz"
MARGINS = 20


class StrongestModulationPane(Pane):
    """The strongest modulation, in words."""

    def __init__(self) -> None:
        super().__init__("strongest", "Strongest modulation", "rms of about 0.4 s")
        self.where, self.below = QtWidgets.QLabel(NO_READING), QtWidgets.QLabel("")
        self.where.setObjectName("strongest_where")
        self.below.setObjectName("strongest_about")
        ignored = QtWidgets.QSizePolicy.Policy.Ignored
        self.where.setSizePolicy(ignored, ignored)
        self.below.setWordWrap(True)
        tint(self.below, "second")
        self.body.addWidget(self.where, 100)
        self.body.addWidget(self.below)
        self.body.addStretch(1)

    def resizeEvent(self, event: QtGui.QResizeEvent) -> None:
        fitting = (self.width() - MARGINS) * REFERENCE // text_width(LONGEST, REFERENCE, bold=True)
        size = max(SMALLEST, min(fitting, self.height() // 3))
        resize_text(self.where, size, bold=True)
        self.where.setMaximumHeight(self.where.fontMetrics().height())
        resize_text(self.below, max(SMALLEST_CAPTION, min(size // 3, self.width() // 30)))

    def show_cell(self, cell: Strongest | None) -> None:
        if cell is None:
            self.where.setText("silence")
            self.below.setText("nothing moves")
            return
        self.where.setText(cell.where)
        self.below.setText(f"modulation frequency in auditory band, {cell.ear}")

    def read(self, view: ViewState) -> None:
        model: Any = view.engine.model
        self.show_cell(strongest(view.newest.values.rms[:, -1], *_bands(model)))

    def show_status(self, view: ViewState) -> None:
        super().show_status(view)
        status = view.reading_status()
        self.doubt(status.grey, status.uncalibrated)

    def lose(self) -> None:
        self.where.setText(NO_READING)
        self.below.setText("")

    def texts(self) -> tuple[str, ...]:
        return self.where.text(), self.below.text()

    def doubt(self, grey: bool, uncalibrated: bool) -> None:
        tint(self.where, "second" if grey else None, hatched=uncalibrated)


class ModulationMapsPane(Pane):
    """Modulation spectra of both ears, side by side, with their color scale."""

    def __init__(self) -> None:
        super().__init__("modulation", "Modulation spectrum", "both ears")
        self.maps = [ModulationMapPane(ear) for ear in SIDES]
        beside = QtWidgets.QHBoxLayout()
        for ear in self.maps:
            beside.addWidget(ear, 1)
        beside.addWidget(ColorScale())
        self.body.addLayout(beside, 1)
        self._named: Any = None

    def move(self, view: ViewState) -> None:
        model: Any = view.engine.model
        fc, mfc = _bands(model)
        if self._named is not model:
            self._named = model
            for pane in self.maps:
                pane.set_bands(fc, mfc, np.asarray(model.mask))
        rms = view.newest.values.rms[:, -1]
        cell = strongest(rms, fc, mfc)
        level = below_db(rms, cell.rms if cell else 0.0)
        for ear, pane in enumerate(self.maps):
            framed = (cell.band, cell.modulation) if cell and ear in cell.ears else None
            pane.draw(level[ear], framed)

    def lose(self) -> None:
        for pane in self.maps:
            pane.clear()


def _bands(model: Any) -> tuple[np.ndarray, np.ndarray]:
    return np.asarray(model.fc), np.asarray(model.mfc)
