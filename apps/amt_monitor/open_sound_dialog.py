"""What to do with a sound file: measure it as it sounds, or analyze it at once."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pyqtgraph.Qt import QtCore, QtGui, QtWidgets

from amt_monitor.dialog_buttons import DialogButtons
from amt_monitor.file_analysis import FileAnalysis
from amt_monitor.theme import tint
from amt_stream.core.safe_text import plain
from amt_stream.sessions.results import Results

ABOUT = (
    "Play it: it is heard by the meter as by a microphone, in its own time. Analyze it: the whole "
    "of it at once, as fast as this computer can; a measurement that runs goes on meanwhile."
)


class OpenSoundDialog(QtWidgets.QDialog):
    """Asks that of one file [main-thread].

    options: of `amt-stream analyze`, for the models and the calibration
    `played` has the path, `analyzed` the `Results`; the dialog is closed then
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
        self.told = QtWidgets.QLabel(ABOUT)
        self.told.setObjectName("told")
        self.told.setTextFormat(QtCore.Qt.TextFormat.PlainText)
        self.told.setWordWrap(True)
        tint(self.told, "second")
        self.bar = QtWidgets.QProgressBar()
        self.bar.setObjectName("progress")
        self.bar.setAccessibleName("how much of the file is analyzed")
        self.bar.hide()
        column = QtWidgets.QVBoxLayout(self)
        column.addWidget(self.told)
        column.addWidget(self.bar)
        column.addWidget(self._buttons())

    def _buttons(self) -> DialogButtons:
        role = QtWidgets.QDialogButtonBox.ButtonRole
        box = DialogButtons()
        self.play = box.addButton("&Play it", role.ActionRole)
        self.analyze = box.addButton("&Analyze it", role.ActionRole)
        self.play.setObjectName("play")
        self.analyze.setObjectName("analyze")
        self.play.clicked.connect(self._play)
        self.analyze.clicked.connect(self.begin)
        box.addButton(QtWidgets.QDialogButtonBox.StandardButton.Cancel)
        box.rejected.connect(self.reject)
        return box

    def begin(self) -> None:
        """Analyze it."""
        self.play.setEnabled(False)
        self.analyze.setEnabled(False)
        self.bar.setRange(0, 0)  # until it tells how far it is
        self.bar.show()
        self.told.setText(f"{plain(self.path.name)} is analyzed: the models are made ready")
        self.analysis.start()

    def _play(self) -> None:
        self.played.emit(self.path)
        self.accept()

    def _came(self, percent: int, left: str) -> None:
        self.bar.setRange(0, 100)
        self.bar.setValue(percent)
        self.told.setText(f"{plain(self.path.name)} is analyzed: {left} left")

    def _done(self, results: Results) -> None:
        self.analyzed.emit(replace(results, name=self.path.name))
        self.accept()

    def _refused(self, why: str) -> None:
        self.bar.hide()
        self.play.setEnabled(True)
        self.analyze.setEnabled(True)
        self.told.setText(why)
        tint(self.told, None)

    def done(self, result: int) -> None:
        """Whichever way it is closed, nothing of it goes on."""
        self.analysis.cancel()
        super().done(result)

    def closeEvent(self, event: QtGui.QCloseEvent) -> None:
        self.analysis.cancel()
        super().closeEvent(event)
