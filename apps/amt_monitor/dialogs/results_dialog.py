"""Shows a stored measurement: readings, history, events, settings."""

import json
from pathlib import Path
from typing import Any

from pyqtgraph.Qt import QtCore, QtGui, QtWidgets

from amt_monitor.base.badge import Badge
from amt_monitor.base.widgets import DialogButtons, plain_label, read_only_table, table_cell
from amt_monitor.panes.history_pane import HistoryPane
from amt_stream.core.safe_text import plain
from amt_stream.meters.limits import limit_of
from amt_stream.sessions.report.content import (
    MOST_READINGS,
    calibration,
    device,
    integrity,
    limit_lines,
    readings,
    when,
)
from amt_stream.sessions.report.curves import is_followed
from amt_stream.sessions.report.happened import fault_lines
from amt_stream.sessions.report.times import Clock
from amt_stream.sessions.results import Results, read_results
from amt_stream.views.reading_history import ReadingHistory

ALL_READINGS = 20 * MOST_READINGS


class StoredHistoryPane(HistoryPane):
    """The history of results, from the first row to the last."""

    def __init__(self, results: Results) -> None:
        there = [one for name, one in results.columns.items() if name in results.rows.columns]
        limits = tuple(map(limit_of, results.header.get("limits", ())))
        super().__init__(ReadingHistory(there, results.step_s), [one.column for one in limits])
        self.live.hide()
        self._header = results.header
        self.layers.events = tuple(results.events)
        self.layers.limits = limits
        self.take([results.rows])
        self.draw()
        # Just before the end: at the end the axis would count backwards.
        end_s = results.duration_s - results.step_s
        self.plot.show_until(end_s, results.duration_s)
        if not results.calibrated:
            self.show_uncalibrated(True)

    def resizeEvent(self, event: QtGui.QResizeEvent) -> None:
        super().resizeEvent(event)
        # The plot gets its new size after this.
        QtCore.QTimer.singleShot(0, self._draw_again)

    def _draw_again(self) -> None:
        self.draw(again=True)

    def head_of_export(self) -> dict[str, Any]:
        return {**self._header, "visible": super().head_of_export()["visible"]}


class ResultsDialog(QtWidgets.QDialog):
    """Shows stored results [main-thread].

    `asked` names the next step: "report" or "compare".
    """

    asked = QtCore.Signal(str)

    def __init__(
        self, results: Results, path: Path | None = None, parent: QtWidgets.QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.results, self.path = results, path
        self.setObjectName("results")
        self.setWindowTitle(f"{plain(results.name)} - stored measurement - amt-stream")
        self.setWindowFlag(QtCore.Qt.WindowType.WindowMaximizeButtonHint, True)
        self.resize(980, 560)
        self.setMinimumSize(760, 460)
        column = QtWidgets.QVBoxLayout(self)
        column.addLayout(self._head())
        self.history = StoredHistoryPane(results)
        tabs = QtWidgets.QTabWidget(objectName="tabs")
        tabs.addTab(self.history, "&History")
        self.table = _table(results)
        tabs.addTab(self.table, "Rea&dings")
        tabs.addTab(_lines(_happened(results), "events"), "&Events and limits")
        content = {"header": results.header, **results.settings}
        tabs.addTab(_lines(json.dumps(content, indent=1, default=str), "settings"), "&Settings")
        column.addWidget(tabs, 1)
        column.addWidget(self._buttons())

    def _head(self) -> QtWidgets.QHBoxLayout:
        facts = [*when(self.results, Clock.of(self.results)), *device(self.results)]
        facts += [*calibration(self.results), *integrity(self.results)]
        text = "\n".join(f"{name}: {value}" for name, value in facts)
        label = plain_label("facts", text, wrap=True, role="second")
        self.badge = Badge()
        if not self.results.calibrated:
            self.badge.show_text("uncalibrated")
        row = QtWidgets.QHBoxLayout()
        row.addWidget(label, 1)
        row.addWidget(self.badge, 0, QtCore.Qt.AlignmentFlag.AlignTop)
        return row

    def _buttons(self) -> DialogButtons:
        box = DialogButtons(self)
        box.add("report", "&Report...", lambda: self.asked.emit("report"))
        box.add("compare", "&Compare with...", lambda: self.asked.emit("compare"))
        return box


def _table(results: Results) -> QtWidgets.QTableWidget:
    groups = readings(results, ALL_READINGS)
    every = [(title, one) for title, group in groups.items() for one in group]
    headings = "Reading", "Value", "Unit", "What it is", "Model"
    table = read_only_table("readings of the whole sound", headings, len(every))
    table.setObjectName("readings")
    for row, (title, one) in enumerate(every):
        words = f"{one.about} ({one.band})" if one.band else one.about
        for place, text in enumerate((one.symbol, one.value, one.unit, words, title)):
            table.setItem(row, place, table_cell(plain(text), one.name, place == 1))
    table.resizeColumnsToContents()
    return table


def _lines(text: str, name: str) -> QtWidgets.QPlainTextEdit:
    shown = QtWidgets.QPlainTextEdit(text, objectName=name, accessibleName=name, readOnly=True)
    shown.setTabChangesFocus(True)
    if name == "settings":
        shown.setFont(QtGui.QFontDatabase.systemFont(QtGui.QFontDatabase.SystemFont.FixedFont))
    return shown


def _happened(results: Results) -> str:
    clock = Clock.of(results)
    lines = [
        ", ".join(part for part in (one.words, one.verdict, one.worst, one.over) if part)
        for one in limit_lines(results, clock)
    ]
    lost, measured = fault_lines(results)
    lines += [*lost, *measured]
    lines += [""] * bool(lines)
    lines += [
        f"{clock.moment(event.time_s)}  {event.kind}: {event.text}" for event in results.events
    ]
    return "\n".join(map(plain, lines)) or "Nothing happened."


def stored_results(path: Path) -> Results:
    """The results of a log, with the columns that its history shows. Raises Refusal."""
    return read_results(path, is_followed)
