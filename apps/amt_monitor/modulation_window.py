"""The window of modulation spectra."""

from typing import TYPE_CHECKING, Any

import numpy as np
from pyqtgraph.Qt import QtWidgets

from amt_monitor.levels import LevelPane
from amt_monitor.meter_window import Doubts, MeterWindow
from amt_monitor.modulation_pane import ColorScale, ModulationPane
from amt_monitor.pane import Pane
from amt_monitor.theme import tint
from amt_stream.rows import EARS, Strongest, below_db, strongest

if TYPE_CHECKING:
    from amt_stream.engine import Engine, Frames

RECENT_S = 1.0


class StrongestPane(Pane):
    """Where most moves, in words."""

    def __init__(self) -> None:
        super().__init__("strongest", "Strongest modulation", "rms of about 0.4 s")
        self.where, self.about = QtWidgets.QLabel("-"), QtWidgets.QLabel("")
        self.where.setObjectName("strongest_where")
        self.about.setObjectName("strongest_about")
        font = self.where.font()
        font.setPixelSize(40)
        font.setBold(True)
        self.where.setFont(font)
        self.body.addWidget(self.where, 1)
        self.body.addWidget(self.about)

    def show_cell(self, cell: Strongest | None, model: str) -> None:
        if cell is None:
            self.where.setText("silence")
            self.about.setText("nothing moves")
            return
        self.where.setText(cell.where)
        self.about.setText(
            f"modulation frequency in auditory band, {cell.ear}; rms {cell.rms:.3g} in units of "
            f"{model}"
        )

    def texts(self) -> tuple[str, str]:
        return self.where.text(), self.about.text()

    def doubt(self, grey: bool, uncalibrated: bool) -> None:
        """Grey words are not to be relied on; hatched ones have no calibration."""
        tint(self.where, "second" if grey else None, hatched=uncalibrated)


class ModulationWindow(MeterWindow):
    """Modulation spectra of both ears, the strongest cell in words, and the input level."""

    def add_panes(self, layout: QtWidgets.QVBoxLayout) -> None:
        self.strongest, self.levels = StrongestPane(), LevelPane()
        self.maps = [ModulationPane(ear) for ear in EARS]
        above, below = QtWidgets.QHBoxLayout(), QtWidgets.QHBoxLayout()
        above.addWidget(self.strongest, 10)
        above.addWidget(self.levels, 3)
        for ear in self.maps:
            below.addWidget(ear, 1)
        below.addWidget(ColorScale())
        layout.addLayout(above, 2)
        layout.addLayout(below, 9)
        self._bands: Any = None
        self._fault = 0

    @property
    def panes(self) -> tuple[Any, ...]:
        return self.strongest, self.levels, *self.maps

    def draw(self, frames: "Frames", engine: "Engine") -> None:
        fc, mfc = self._named(engine)
        rms = frames.values.rms[:, -1]
        cell = strongest(rms, fc, mfc)
        level = below_db(rms, cell.rms if cell else 0.0)
        for ear, pane in enumerate(self.maps):
            framed = (cell.band, cell.modulation) if cell and ear in cell.ears else None
            pane.draw(level[ear], framed)
        self.levels.draw(frames.level_db[:, -1])

    def show_numbers(self, frames: "Frames", engine: "Engine") -> dict[str, tuple[str, ...]]:
        model: Any = engine.model
        cell = strongest(frames.values.rms[:, -1], *self._named(engine))
        self.strongest.show_cell(cell, model.model)
        self.levels.show_numbers(frames.level_db[:, -1], uncalibrated=not frames.calibrated)
        rows = engine.history.read(RECENT_S)
        self._fault = int(np.bitwise_or.reduce(rows.fault))
        return {pane.objectName(): pane.texts() for pane in self.panes[:2]}

    def mark(self, doubts: Doubts) -> None:
        words = doubts.words(self._fault)
        for pane in (self.strongest, *self.maps):
            pane.mark(words, doubts.uncalibrated)
        self.levels.mark([*doubts.calibration, *doubts.held], doubts.uncalibrated)
        self.strongest.doubt(
            grey=bool(doubts.settling or doubts.held), uncalibrated=doubts.uncalibrated
        )

    def _named(self, engine: "Engine") -> tuple[np.ndarray, np.ndarray]:
        """Centers of auditory and of modulation bands, which the maps then name."""
        model: Any = engine.model
        if self._bands is None or self._bands[0] is not model:
            fc, mfc, mask = (np.asarray(table) for table in (model.fc, model.mfc, model.mask))
            for pane in self.maps:
                pane.set_bands(fc, mfc, mask)
            self._bands = model, fc, mfc
        return self._bands[1:]
