"""Asks whether to play a sound file or to analyze it."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pyqtgraph.Qt import QtCore, QtGui, QtWidgets

from amt_monitor.file_analysis import FileAnalysis
from amt_monitor.theme import tint
from amt_monitor.widgets import Button, DialogButtons, add_all, plain_label
from amt_stream.core.safe_text import plain
from amt_stream.sessions.results import Results

ABOUT = (
    "Play measures the file in real time, as if it came from a microphone. Analyze measures the "
    "whole file as fast as possible, while the running measurement continues."
)


class OpenSoundDialog(QtWidgets.QDialog):
    """Asks for one file [main-thread].

    options: of `amt-stream analyze`, for the models and the calibration

    `played` has the path, `analyzed` the `Results`; then the dialog closes.
    """

    played = QtCore.Signal(object)
    analyzed = QtCore.Signal(object)

    def __init__(
        self, path: Path, options: Sequence[str] = (), parent: QtWidgets.QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.path = path
        self.setObjectName("open_dialog")
        self.setWindowTitle(f"Open {plain(path.name)}")
        self.setMinimumWidth(420)
        self.analysis = FileAnalysis(path, options, self)
        self.analysis.came.connect(self._came)
        self.analysis.done.connect(self._done)
        self.analysis.refused.connect(self._refused)
        self.message = plain_label("message", ABOUT, wrap=True, role="second")
        self.bar = QtWidgets.QProgressBar()
        self.bar.setObjectName("progress")
        self.bar.setAccessibleName("how much of the file is analyzed")
        self.bar.hide()
        box = DialogButtons(self, Button.Cancel)
        self.play = box.add("play", "&Play", self._play)
        self.analyze = box.add("analyze", "&Analyze", self.begin)
        for button in (self.analyze, self.play):
            button.setAutoDefault(True)
        add_all(QtWidgets.QVBoxLayout(self), self.message, self.bar, box)

    def begin(self) -> None:
        self.play.setEnabled(False)
        self.analyze.setEnabled(False)
        self.bar.setRange(0, 0)  # until the progress is known
        self.bar.show()
        self.message.setText(f"{plain(self.path.name)} is being analyzed: preparing the models")
        self.analysis.start()

    def _play(self) -> None:
        self.played.emit(self.path)
        self.accept()

    def _came(self, percent: int, left: str) -> None:
        self.bar.setRange(0, 100)
        self.bar.setValue(percent)
        self.message.setText(f"{plain(self.path.name)} is being analyzed: {left} left")

    def _done(self, results: Results) -> None:
        self.analyzed.emit(replace(results, name=self.path.name))
        self.accept()

    def _refused(self, why: str) -> None:
        self.bar.hide()
        self.play.setEnabled(True)
        self.analyze.setEnabled(True)
        self.message.setText(why)
        tint(self.message, None)

    def done(self, result: int) -> None:
        """However it is closed, the analysis ends."""
        self.analysis.cancel()
        super().done(result)

    def closeEvent(self, event: QtGui.QCloseEvent) -> None:
        self.analysis.cancel()
        super().closeEvent(event)
