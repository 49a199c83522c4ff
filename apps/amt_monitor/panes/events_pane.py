"""The events of the measurement, the newest first."""

import math
import time

from pyqtgraph.Qt import QtCore, QtGui, QtWidgets

from amt_monitor.base.widgets import combo_box
from amt_monitor.panes.pane import Pane
from amt_stream.core.safe_text import plain
from amt_stream.core.words import counted, elapsed_text
from amt_stream.meters.frames import Event
from amt_stream.views.view_state import ViewState

WORDS = {
    "mark": "Marker",
    "gap": "Sound lost",
    "stall": "Sound delayed",
    "lost": "Input lost",
    "silent": "Input silent",
    "dead_channel": "Channel silent",
    "back": "Input back",
    "restored": "Continued",
    "paused": "Paused",
    "continued": "Continued",
    "readings_reset": "Readings reset",
    "reset_undone": "Reset undone",
    "filters_reset": "Filters reset",
    "gain": "Input gain",
    "offset": "Offset",
    "clip": "Clipped",
    "uncalibrated": "Uncalibrated",
    "calibrated": "Calibrated",
    "clock": "Clock set",
    "overload": "Too slow",
    "recovered": "Fast enough",
    "limit": "Limit",
    "limits": "Limits changed",
    "sound_begin": "Sound begins",
    "sound_end": "Sound ends",
    "sound_kept": "Sound saved",
    "sink": "Output",
    "swapped": "Model changed",
    "impulse_left_out": "Impulse left out",
    "impulse_counted": "Impulse counted",
}
"""Kinds of events in words; any other kind is shown as it is."""

HEADINGS = ("At", "Time", "What", "Note")
ALL, MARKERS = "All events", "Markers"


class EventsPane(Pane):
    """A list of events: time in the measurement, time of day, kind, text.

    Rows can be selected and copied as lines of a table (Ctrl+C).
    """

    def __init__(self) -> None:
        super().__init__("events", "Events")
        self.which = combo_box("which events", (ALL, MARKERS), self._show)
        self.head.addWidget(self.which)
        self.list = QtWidgets.QTreeWidget(objectName="event_list")
        self.list.setAccessibleName("events, the newest first")
        self.list.setHeaderLabels(list(HEADINGS))
        self.list.setRootIsDecorated(False)
        self.list.setUniformRowHeights(True)
        self.list.setAllColumnsShowFocus(True)
        self.list.setSelectionMode(self.list.SelectionMode.ExtendedSelection)
        self.list.setTabKeyNavigation(False)
        copy = QtGui.QShortcut(QtGui.QKeySequence.StandardKey.Copy, self.list)
        copy.setContext(QtCore.Qt.ShortcutContext.WidgetShortcut)
        copy.activated.connect(self.copy)
        self.none = QtWidgets.QLabel("Nothing happened yet. M marks this moment with a note.")
        self.none.setWordWrap(True)
        self.none.setAlignment(QtCore.Qt.AlignmentFlag.AlignTop)
        self.body.addWidget(self.none)
        self.body.addWidget(self.list, 1)
        self._events: tuple[Event, ...] = ()
        self._show()

    def read(self, view: ViewState) -> None:
        events = view.events
        if events != self._events:
            self._events = events
            self._show()

    def texts(self) -> tuple[str, ...]:
        return tuple("\t".join(line) for line in self._lines())

    def copy(self) -> None:
        rows = self.list.selectedItems()
        text = "\n".join("\t".join(row.text(k) for k in range(len(HEADINGS))) for row in rows)
        clipboard = QtWidgets.QApplication.clipboard()
        if rows and clipboard is not None:
            clipboard.setText(text)

    def _lines(self) -> list[tuple[str, ...]]:
        wanted = self.which.currentText()
        shown = [one for one in self._events if wanted == ALL or one.kind == "mark"]
        offsets = {time.localtime(one.utc).tm_gmtoff for one in shown if math.isfinite(one.utc)}
        return [line_of(one, len(offsets) > 1) for one in reversed(shown)]

    def _show(self) -> None:
        lines = self._lines()
        self.none.setVisible(not lines)
        self.list.setVisible(bool(lines))
        at = self.list.verticalScrollBar()
        kept = at.value() if at is not None else 0
        self.list.clear()
        self.list.addTopLevelItems([_item(line) for line in lines])
        for column in range(len(HEADINGS) - 1):
            self.list.resizeColumnToContents(column)
        if at is not None:
            at.setValue(kept)


def line_of(event: Event, zoned: bool = False) -> tuple[str, str, str, str]:
    """Elapsed time, time of day, kind and note of an event.

    zoned: with the offset from UTC, where it is not the same for all events
    """
    what = WORDS.get(event.kind, event.kind.replace("_", " ").capitalize())
    if event.microphone:
        what += f", {event.microphone}"
    note = event.text
    if event.kind == "gap" and event.samples:
        note = f"{counted(event.samples, 'sample')}: {note}"
    day = time.strftime("%H:%M:%S %z" if zoned else "%H:%M:%S", time.localtime(event.utc))
    return elapsed_text(event.time_s), day, plain(what), plain(note)


def _item(line: tuple[str, ...]) -> QtWidgets.QTreeWidgetItem:
    item = QtWidgets.QTreeWidgetItem(list(line))
    item.setToolTip(len(line) - 1, line[-1])
    return item
