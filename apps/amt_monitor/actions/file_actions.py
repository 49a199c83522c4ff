"""Commands for files and sessions."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from pyqtgraph.Qt import QtCore, QtWidgets

from amt_monitor.base.background_task import BackgroundTask
from amt_monitor.base.file_drop_filter import KEPT, FileDropFilter, dropped_kind
from amt_monitor.base.settings import Settings
from amt_monitor.dialogs.open_sound_dialog import OpenSoundDialog
from amt_monitor.dialogs.results_dialog import ResultsDialog, stored_results
from amt_stream.core.errors import Refusal
from amt_stream.core.safe_text import plain
from amt_stream.sessions import save_session
from amt_stream.sessions.results import Results

NOTHING = "nothing was measured yet: start a measurement first"
KINDS = "Sound, or rows (*.wav *.flac *.ogg *.mp3 *.aif *.aiff *.caf *.csv *.jsonl *.parquet)"
FIELDS = "report"
"""The settings' key for the fields of the last report."""


class FileActions(QtCore.QObject):
    """Opens, saves, reports and compares [main-thread].

    over: the window, onto which files may be dropped
    front: returns the window that dialogs stand over
    play: measures a sound file in real time
    now: returns the results so far, or None
    logged: returns the folder of the log that has all of it, or None
    models: returns the names of the models that analyze a file, or None for the usual one
    tell: shows a sentence
    """

    def __init__(
        self,
        over: QtWidgets.QWidget,
        settings: Settings,
        *,
        front: Callable[[], QtWidgets.QWidget],
        play: Callable[[Path], object],
        now: Callable[[], Results | None],
        logged: Callable[[], Path | None],
        models: Callable[[], Sequence[str] | None],
        tell: Callable[[str], object],
    ) -> None:
        super().__init__(over)
        self._front, self._settings = front, settings
        self._play, self._now, self._logged = play, now, logged
        self._models, self._tell = models, tell
        self._opening = BackgroundTask(self, lambda opened: self._show(*opened), tell)
        self._comparing = BackgroundTask(self, lambda both: self._compare(*both), tell)
        self._saving = BackgroundTask(self, self._saved, tell)
        FileDropFilter(over).dropped.connect(lambda path, kind: self.open_path(path))

    def open_file(self) -> None:
        name, _ = QtWidgets.QFileDialog.getOpenFileName(
            self._front(), "Open", "", f"{KINDS};;All files (*)"
        )
        if name:
            self.open_path(Path(name))

    def open_session(self) -> None:
        name = QtWidgets.QFileDialog.getExistingDirectory(self._front(), "Open a session")
        if name:
            self.open_path(Path(name))

    def open_path(self, path: Path) -> None:
        kind = dropped_kind(path)
        if not kind:
            self._tell(f"{path} is neither a sound nor a session, or it is gone")
        elif kind == KEPT:
            self._opening.run(lambda: (stored_results(path), path))
        else:
            dialog = OpenSoundDialog(path, self._models(), self._front())
            dialog.played.connect(self._play)
            dialog.analyzed.connect(self.show_results)
            _open(dialog)

    def save_session(self) -> None:
        """Save the measurement, if it is not in a log already."""
        log = self._logged()
        if log is not None:
            self._tell(f"it is saved already, in the log {log}")
        else:
            self._of_now(self._save)

    def _save(self, results: Results) -> None:
        name, _ = QtWidgets.QFileDialog.getSaveFileName(
            self._front(), "Save the session as a folder", "session"
        )
        if name:
            self.save_to(Path(name), results)

    def save_to(self, path: Path, results: Results) -> None:
        self._saving.run(
            partial(
                save_session,
                path,
                results.rows,
                results.header,
                summary=results.summary,
                events=results.events,
                settings=results.settings,
            )
        )

    def _saved(self, path: Path) -> None:
        self._settings.add_recent(path)
        self._tell(f"saved: {path}")

    def _of_now(self, action: Callable[[Results], object]) -> None:
        results = self._now()
        if results is None:
            self._tell(NOTHING)
        else:
            action(results)

    def report(self) -> None:
        self._of_now(self.report_on)

    def report_on(self, results: Results) -> None:
        # Imported here, the window starts 0.1 s sooner.
        from amt_monitor.dialogs.report_dialog import ReportDialog

        dialog = ReportDialog(results, self._settings.get(FIELDS, {}), self._front())
        dialog.written.connect(lambda _: self._settings.put(**{FIELDS: dialog.fields}))
        _open(dialog)

    def compare(self) -> None:
        self._of_now(self.compare_to)

    def compare_to(self, results: Results) -> None:
        name = QtWidgets.QFileDialog.getExistingDirectory(self._front(), "Compare with the session")
        if name:
            self._comparing.run(lambda: (stored_results(Path(name)), results))

    def _compare(self, a: Results, b: Results) -> None:
        from amt_monitor.dialogs.comparison_dialog import ComparisonDialog

        try:
            _open(ComparisonDialog(a, b, self._front()))
        except Refusal as refusal:
            self._tell(plain(refusal))

    def _show(self, results: Results, path: Path) -> None:
        self._settings.add_recent(path)
        self.show_results(results, path)

    def show_results(self, results: Results, path: Path | None = None) -> None:
        window = ResultsDialog(results, path, self._front())
        actions = {"report": self.report_on, "compare": self.compare_to}
        window.asked.connect(lambda name: actions[name](results))
        _open(window)


def _open(dialog: QtWidgets.QDialog) -> None:
    dialog.setAttribute(QtCore.Qt.WidgetAttribute.WA_DeleteOnClose)
    dialog.show()
