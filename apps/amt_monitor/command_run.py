"""Runs a command on a sound in a process beside the measurement."""

import os
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pyqtgraph.Qt import QtCore

from amt_stream.core.processes import NICE, module_command
from amt_stream.core.safe_text import sentence
from amt_stream.sessions import SessionError
from amt_stream.sessions.results import ResultsError

OUTPUT = "output"
PROGRESS_S = 0.2
PATIENCE_MS = 3000
"""That a canceled process has to clean up."""

_PERCENT = re.compile(r": (\d+)%, (.*) left$")


class CommandRun(QtCore.QObject):
    """Runs a command of `amt-stream` with a folder of its own, without leftovers [main-thread].

    `came` has the percentage that is done and the remaining time in words; `done` has the result,
    `refused` a sentence. A canceled run emits nothing more. The process has a lower priority than
    the measurement, where the system lets this program set it.

    name: of the file with the result in the folder; `output` has what the command prints
    """

    came = QtCore.Signal(int, str)
    done = QtCore.Signal(object)
    refused = QtCore.Signal(str)

    def __init__(self, name: str, parent: QtCore.QObject | None = None) -> None:
        super().__init__(parent)
        self._name, self._said = name, ""
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._process = QtCore.QProcess(self)
        self._process.started.connect(self._stand_back)
        self._process.finished.connect(self._finished)
        self._process.errorOccurred.connect(self._failed)
        self._process.readyReadStandardError.connect(self._read)

    def command(self, folder: Path) -> Sequence[str]:
        """The command with its options, which may use the folder.

        Raises SessionError and OSError.
        """
        raise NotImplementedError

    def result(self, path: Path) -> Any:
        """What the file has. Raises ResultsError, SessionError."""
        raise NotImplementedError

    @property
    def running(self) -> bool:
        return self._folder is not None

    def start(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="amt-stream-")
        folder = Path(self._folder.name)
        try:
            arguments = self.command(folder)
        except (SessionError, OSError) as error:
            self._tidy()
            self.refused.emit(sentence(error))
            return
        program, *more = module_command("amt_stream.cli", *arguments, "--progress", str(PROGRESS_S))
        self._process.setStandardOutputFile(str(folder / OUTPUT))
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
        self._process.blockSignals(False)
        self._tidy()

    def _stand_back(self) -> None:
        if hasattr(os, "setpriority") and (process := self._process.processId()):
            os.setpriority(os.PRIO_PROCESS, process, NICE)

    def _read(self) -> None:
        new = bytes(self._process.readAllStandardError().data()).decode(errors="replace")
        lines = (self._said + new).splitlines(keepends=True)
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
        target = Path(self._folder.name) / self._name
        try:
            if not target.exists() or not target.stat().st_size:
                raise ResultsError(self._last_line or f"the command failed with status {code}")
            found = self.result(target)
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
            self.refused.emit(f"the command cannot be started: {self._process.errorString()}")

    def _tidy(self) -> None:
        self._said = ""
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None
