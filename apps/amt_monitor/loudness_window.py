"""The loudness meter's window."""

from typing import TYPE_CHECKING, Any

from pyqtgraph.Qt import QtWidgets

from amt_monitor.history_pane import HistoryPane
from amt_monitor.levels import LevelPane
from amt_monitor.meter_window import Doubts, MeterWindow
from amt_monitor.numbers import NumberPane
from amt_monitor.spectrum_pane import SpectrumPane

if TYPE_CHECKING:
    from amt_stream.engine import Engine, Frames


class LoudnessWindow(MeterWindow):
    """Long-term and short-term loudness, their last minute, and specific loudness."""

    def add_panes(self, layout: QtWidgets.QVBoxLayout) -> None:
        self.ltl = NumberPane("ltl", "LTL", "long-term, attack 99 ms, release 0.75 s")
        self.stl = NumberPane("stl", "STL", "short-term, attack 22 ms, release 30 ms")
        self.levels = LevelPane()
        numbers = QtWidgets.QHBoxLayout()
        numbers.setSpacing(8)
        numbers.addWidget(self.ltl, 5)
        numbers.addWidget(self.stl, 5)
        numbers.addWidget(self.levels, 3)
        self.history, self.spectrum = HistoryPane(), SpectrumPane()
        layout.addLayout(numbers, 3)
        layout.addWidget(self.history, 10)
        layout.addWidget(self.spectrum, 7)

    @property
    def panes(self) -> tuple[Any, ...]:
        return self.ltl, self.stl, self.levels, self.history, self.spectrum

    def draw(self, frames: "Frames", engine: "Engine") -> None:
        self.history.envelope.follow(engine.history)
        self.history.draw()
        specific = frames.values.specific_loudness
        self.spectrum.draw(None if specific is None else specific[:, -1])
        self.levels.draw(frames.level_db[:, -1])

    def show_numbers(self, frames: "Frames", engine: "Engine") -> dict[str, tuple[str, ...]]:
        values = frames.values
        for pane, name in ((self.ltl, "ltl"), (self.stl, "stl")):
            low, high = (getattr(values, f"{name}_{edge}") for edge in ("low", "high"))
            band = None if low is None else (float(low[-1]), float(high[-1]))
            pane.show_sone(float(getattr(values, name)[-1]), band)
        self.levels.show_numbers(frames.level_db[:, -1], uncalibrated=not frames.calibrated)
        return {pane.objectName(): pane.texts() for pane in self.panes[:3]}

    def mark(self, doubts: Doubts) -> None:
        words = doubts.words(self.history.recent_fault())
        for pane in (self.ltl, self.stl, self.history, self.spectrum):
            pane.mark(words, doubts.uncalibrated)
        self.levels.mark([*doubts.calibration, *doubts.held], doubts.uncalibrated)
        for pane in (self.ltl, self.stl):
            pane.doubt(grey=bool(doubts.settling or doubts.held), uncalibrated=doubts.uncalibrated)
