"""Analyzes a sound file in a process."""

import re
import tempfile
from collections.abc import Sequence
from pathlib import Path

from pyqtgraph.Qt import QtCore

from amt_stream.core.processes import module_command
from amt_stream.core.safe_text import sentence
from amt_stream.sessions import SessionError
from amt_stream.sessions.results import ResultsError, read_results

PROGRESS_S = 0.2
STEP_MS = 100
PATIENCE_MS = 3000
"""Seconds that a canceled process has to clean up."""

_PERCENT = re.compile(r": (\d+)%, (.*) left$")


class FileAnalysis(QtCore.QObject):
    """Runs `amt-stream analyze` on one file, without leftovers [main-thread].

    `came` has the percentage that is done and the remaining time in words; `done` has the
    `Results`, `refused` a sentence. A canceled analysis emits nothing more.

    options: of `analyze`, such as "--model", "spl"
    """

    came = QtCore.Signal(int, str)
    done = QtCore.Signal(object)
    refused = QtCore.Signal(str)

    def __init__(
        self, path: Path, options: Sequence[str], parent: QtCore.QObject | None = None
    ) -> None:
        super().__init__(parent)
        self.path, self._options = path, [*options]
        self._said = ""
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._process = QtCore.QProcess(self)
        self._process.finished.connect(self._finished)
        self._process.errorOccurred.connect(self._failed)
        self._process.readyReadStandardError.connect(self._read)

    @property
    def running(self) -> bool:
        return self._folder is not None

    def start(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="amt-stream-")
        target = Path(self._folder.name) / "rows.jsonl"
        arguments = ["analyze", str(self.path), "--format", "jsonl", "--out", str(target)]
        if "--step-ms" not in self._options:
            arguments += ["--step-ms", str(STEP_MS)]
        arguments += ["--progress", str(PROGRESS_S), *self._options]
        program, *more = module_command("amt_stream.cli", *arguments)
        self._process.setStandardOutputFile(QtCore.QProcess.nullDevice())
        self._process.start(program, more)

    def cancel(self) -> None:
        """End the process and wait for it; more than once does no harm."""
        if self._folder is None:
            return
        self._process.blockSignals(True)
        self._process.terminate()
        if not self._process.waitForFinished(PATIENCE_MS):
            self._process.kill()
            self._process.waitForFinished(PATIENCE_MS)
        self._tidy()

    def _read(self) -> None:
        told = bytes(self._process.readAllStandardError().data()).decode(errors="replace")
        lines = (self._said + told).splitlines(keepends=True)
        self._said = ""
        for line in lines:
            found = _PERCENT.search(line.strip())
            if found is not None:
                self.came.emit(int(found[1]), found[2])
            else:
                self._said += line

    def _finished(self, code: int, status: QtCore.QProcess.ExitStatus) -> None:
        self._read()
        if self._folder is None:
            return
        target = Path(self._folder.name) / "rows.jsonl"
        try:
            if not target.exists():
                raise ResultsError(self._last_line or f"the analysis failed with status {code}")
            found = read_results(target)
        except (ResultsError, SessionError) as refusal:
            self._tidy()
            self.refused.emit(sentence(refusal))
            return
        self._tidy()
        self.done.emit(found)

    @property
    def _last_line(self) -> str:
        lines = [line.strip() for line in self._said.splitlines() if line.strip()]
        return lines[-1].removeprefix("amt-stream: ") if lines else ""

    def _failed(self, error: QtCore.QProcess.ProcessError) -> None:
        if error == QtCore.QProcess.ProcessError.FailedToStart:
            self._tidy()
            self.refused.emit(f"the analysis cannot be started: {self._process.errorString()}")

    def _tidy(self) -> None:
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None
