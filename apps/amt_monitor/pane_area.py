"""The panes of what is measured, in docks of a window, and how they lie."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pyqtgraph.Qt import QtCore, QtWidgets

from amt_monitor.pane import Pane
from amt_monitor.pane_docks import VERSION, PaneDock, lay_out
from amt_monitor.pane_kinds import pane_kinds
from amt_monitor.settings import Settings
from amt_monitor.view_state import ViewState

if TYPE_CHECKING:
    from amt_stream.engine import Engine
    from amt_stream.meters.rows import Rows
    from amt_stream.sessions.outputs import FollowedReadings

LAYOUTS = "layouts"
"""Under which settings keep them, by the names of the panes."""


class PaneArea:
    """Makes docks for what can be seen of a measurement; a layout is kept for each set of them.

    docks: by the names of their panes
    begun: how many measurements had when they were made, or used again
    """

    def __init__(self, window: QtWidgets.QMainWindow, settings: Settings) -> None:
        window.setDockNestingEnabled(True)
        self._window, self._settings = window, settings
        self.docks: dict[str, PaneDock] = {}
        self.begun = 0
        self._read: Any = None

    @property
    def is_seen(self) -> bool:
        """Whether any pane is on a screen just now."""
        return any(dock.is_seen for dock in self.docks.values())

    @property
    def seen(self) -> dict[str, Pane]:
        """The panes that are on a screen just now."""
        found = {name: dock.pane for name, dock in self.docks.items() if dock.is_seen}
        return {name: pane for name, pane in found.items() if pane is not None}

    def fit(self, view: ViewState, begun: int) -> bool:
        """Make docks for what is measured, where that has changed; gives whether they are new.

        begun: how many measurements have; the panes of one before are used again where the same is
            read: another input may have other columns
        """
        if begun == self.begun:
            return False
        before, self.begun, self._read = self._read, begun, _read_in(view)
        if before is not None and before == self._read:
            for pane in self._made():
                pane.begin_anew()
            return False
        self.keep()
        for dock in self.docks.values():
            self._window.removeDockWidget(dock)
        self.leave()
        if (before_panes := self._window.centralWidget()) is not None:
            before_panes.hide()  # docks have its room then
        self.docks = {kind.name: PaneDock(kind) for kind in pane_kinds(view, self._settings)}
        for dock in self.docks.values():
            if dock.kind.always:
                dock.fill()
        self.lay_out_anew()
        kept = self._settings.get(LAYOUTS, {}).get(self.name)
        if isinstance(kept, str):
            self.restore(kept)
        return True

    def hand_on(self, rows: "Sequence[Rows]") -> None:
        """Let all panes have new rows, also those that are not seen."""
        for pane in self._made():
            pane.take(rows)

    def hear(self, engine: "Engine", readings: "FollowedReadings | None") -> None:
        """Let all panes take in new frames, also those that are not seen."""
        for pane in self._made():
            pane.hear(engine, readings)

    def leave(self) -> None:
        """Let go of all panes and of their windows, once."""
        left, self.docks = self.docks, {}
        for dock in left.values():
            dock.leave()

    @property
    def name(self) -> str:
        """Of the layout: by its panes."""
        return " ".join(sorted(self.docks))

    def layout(self) -> str:
        """How the docks lie, as text."""
        return bytes(self._window.saveState(VERSION).toBase64().data()).decode()

    def restore(self, text: str) -> None:
        """Let them lie as `layout` has told."""
        self._window.restoreState(QtCore.QByteArray.fromBase64(text.encode()), VERSION)

    def keep(self) -> None:
        """Remember how they lie."""
        if self.docks:
            kept = self._settings.get(LAYOUTS, {}) | {self.name: self.layout()}
            self._settings.put(**{LAYOUTS: kept})

    def lay_out_anew(self) -> None:
        """As it is usual."""
        lay_out(self._window, list(self.docks.values()))

    def _made(self) -> list[Pane]:
        return [dock.pane for dock in self.docks.values() if dock.pane is not None]


def _read_in(view: ViewState) -> Any:
    """What panes are made for: models, columns and limits; None where nothing is read."""
    if (readings := view.readings) is None:
        return None
    columns = tuple(column.name for column in readings.rows.columns)
    return readings.models, columns, readings.limits
