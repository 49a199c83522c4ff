"""Asks whether to play a sound file or to analyze it."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pyqtgraph.Qt import QtCore, QtGui, QtWidgets

from amt_monitor.base.theme import tint
from amt_monitor.base.widgets import Button, DialogButtons, add_all, plain_label
from amt_monitor.base.worker_run import WorkerRun
from amt_stream.core.safe_text import plain
from amt_stream.sessions.results import Results

if TYPE_CHECKING:
    from amt_stream.offline.measured import Measured

STEP_MS = 100
ABOUT = (
    "Play measures the file in real time, as if it came from a microphone. Analyze measures the "
    "whole file as fast as possible, while the running measurement continues."
)


class OpenSoundDialog(QtWidgets.QDialog):
    """Asks for one file [main-thread].

    models: those that analyze it, by default that of `measure`

    `played` has the path, `analyzed` the `Results`; then the dialog closes.
    """

    played = QtCore.Signal(object)
    analyzed = QtCore.Signal(object)

    def __init__(
        self,
        path: Path,
        models: Sequence[str] | None = None,
        parent: QtWidgets.QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.path = path
        self.setObjectName("open_dialog")
        self.setWindowTitle(f"Open {plain(path.name)}")
        self.setMinimumWidth(420)
        self._models = models
        self.analysis = WorkerRun(self)
        self.analysis.came.connect(self._came)
        self.analysis.done.connect(self._done)
        self.analysis.refused.connect(self._refused)
        self.message = plain_label("message", ABOUT, wrap=True, role="second")
        self.bar = QtWidgets.QProgressBar(objectName="progress")
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
        # Imported here, the window starts sooner.
        from amt_stream.offline.measure import measure

        self.analysis.start(partial(measure, self.path, models=self._models, step_ms=STEP_MS))

    def _play(self) -> None:
        self.played.emit(self.path)
        self.accept()

    def _came(self, percent: int, left: str) -> None:
        self.bar.setRange(0, 100)
        self.bar.setValue(percent)
        self.message.setText(f"{plain(self.path.name)} is being analyzed: {left} left")

    def _done(self, measured: "Measured") -> None:
        self.analyzed.emit(Results.of_measured(measured, self.path.name))
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
