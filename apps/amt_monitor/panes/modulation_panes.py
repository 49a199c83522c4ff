"""Modulation spectra of both ears, and the strongest modulation."""

from typing import TYPE_CHECKING, Any

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
from amt_monitor.panes.modulation_map_pane import ColorScale, ModulationMapPane
from amt_monitor.panes.pane import Pane
from amt_stream.meters.names import SIDES
from amt_stream.meters.rows import NO_READING, Strongest, below_db, strongest

if TYPE_CHECKING:
    from amt_stream.views.view_state import ViewState


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

    def read(self, view: "ViewState") -> None:
        model: Any = view.engine.model
        self.show_cell(strongest(view.newest.values.rms[:, -1], *_bands(model)))

    def show_status(self, view: "ViewState") -> None:
        super().show_status(view)
        status = view.reading_status()
        self.doubt(status.grey, status.uncalibrated)

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

    def move(self, view: "ViewState") -> None:
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


def _bands(model: Any) -> tuple[np.ndarray, np.ndarray]:
    return np.asarray(model.fc), np.asarray(model.mfc)
