"""The input level at each ear."""

from typing import TYPE_CHECKING

import numpy as np
from pyqtgraph.Qt import QtWidgets

from amt_monitor.level_bar import LevelBar, LevelBarScale
from amt_monitor.pane import Pane

if TYPE_CHECKING:
    from amt_monitor.view_state import ViewState

SPL = LevelBarScale(20.0, 130.0, (20, 40, 60, 80, 100, 120))
SILENCE_DB = -99.9


class LevelPane(Pane):
    """Bars and numbers in dB SPL of the latest block, left and right.

    They stand one below the other, or `beside` each other.
    """

    def __init__(self, beside: bool = False) -> None:
        super().__init__("levels", "Input level", "dB SPL")
        left, right = (
            LevelBar("level_left", "Left", SPL, "left"),
            LevelBar("level_right", "Right", SPL, "right"),
        )
        self._bars = [left, right]
        self.setMinimumWidth(240)
        bars = QtWidgets.QHBoxLayout() if beside else self.body
        if beside:
            bars.setSpacing(16)
            self.body.addLayout(bars, 1)
            self.setMinimumHeight(76)
        for bar in self._bars:
            bars.addWidget(bar, 1)

    def draw(self, level_db: np.ndarray) -> None:
        for bar, level in zip(self._bars, level_db, strict=True):
            bar.set_level(float(level))

    def show_numbers(self, level_db: np.ndarray, uncalibrated: bool) -> None:
        for bar, level in zip(self._bars, level_db, strict=True):
            bar.set_text("silence" if level <= SILENCE_DB else f"{level:.1f}", uncalibrated)

    def texts(self) -> tuple[str, ...]:
        return tuple(bar.text for bar in self._bars)

    def move(self, view: "ViewState") -> None:
        if view.heard is not None:
            self.draw(view.heard.level_db[:, -1])

    def read(self, view: "ViewState") -> None:
        if view.heard is not None:
            self.show_numbers(view.heard.level_db[:, -1], not view.heard.calibrated)

    def show_status(self, view: "ViewState") -> None:
        uncalibrated = view.heard is not None and not view.heard.calibrated
        self.mark(view.held, uncalibrated)
