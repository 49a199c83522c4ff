"""Analyzes a sound file in a process."""

from collections.abc import Sequence
from pathlib import Path

from pyqtgraph.Qt import QtCore

from amt_monitor.command_run import CommandRun
from amt_stream.sessions.results import Results, read_results

STEP_MS = 100


class FileAnalysis(CommandRun):
    """Runs `amt-stream analyze` on one file; the result is its `Results` [main-thread].

    options: of `analyze`, such as "--model", "spl"
    """

    def __init__(
        self, path: Path, options: Sequence[str], parent: QtCore.QObject | None = None
    ) -> None:
        super().__init__("rows.jsonl", parent)
        self.path, self._options = path, [*options]

    def command(self, folder: Path) -> Sequence[str]:
        arguments = ["analyze", str(self.path), "--format", "jsonl"]
        arguments += ["--out", str(folder / "rows.jsonl"), *self._options]
        step = [] if "--step-ms" in self._options else ["--step-ms", str(STEP_MS)]
        return [*arguments, *step]

    def result(self, path: Path) -> Results:
        return read_results(path)
