"""The panes of a measurement, in docks."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from pyqtgraph.Qt import QtCore, QtWidgets

from amt_monitor.base.settings import Settings
from amt_monitor.panes.pane import Pane
from amt_monitor.panes.reading_pane import ReadingPane
from amt_monitor.window.pane_docks import VERSION, PaneDock, lay_out, on_screen
from amt_monitor.window.pane_kinds import limits_kind, pane_kinds
from amt_stream.views.view_state import ViewState

if TYPE_CHECKING:
    from amt_stream.engine import Engine
    from amt_stream.sessions.outputs import FollowedReadings

MUCH = 3
"""How many times smaller than the others a main number is if a user made its pane small."""

LAYOUTS = "layouts"
"""The settings' key for layouts, by the names of the panes."""


class WholeLayout(NamedTuple):
    """A layout that the window is too small for, as text, and the size that it needs."""

    text: str
    needs: QtCore.QSize


class PaneArea:
    """Makes docks for a measurement; each set of panes has a stored layout.

    choose_limits: asks for limits
    docks: by the names of their panes
    begun: the number of the measurement that the panes show
    """

    def __init__(
        self, window: QtWidgets.QMainWindow, settings: Settings, choose_limits: Callable[[], object]
    ) -> None:
        window.setDockNestingEnabled(True)
        self._choose_limits = choose_limits
        self._window, self._settings = window, settings
        self.docks: dict[str, PaneDock] = {}
        self.begun = 0
        self._read: Any = None
        self._room = QtCore.QSize()
        self._whole: WholeLayout | None = None
        self._matching = QtCore.QTimer(window, singleShot=True, interval=0)
        self._matching.timeout.connect(self._match_numbers)

    def _match_numbers(self) -> None:
        """Write the main numbers of all models equally large, as they are of equal rank.

        One pane that a user made much smaller than the others does not make these small.
        """
        open_now = [dock.pane for dock in self.docks.values() if dock.is_open]
        panes = [pane for pane in open_now if isinstance(pane, ReadingPane)]
        panes = [pane for pane in panes if pane.window() is self._window]
        sizes = sorted(pane.grid.free_size for pane in panes if pane.grid.free_size)
        if sizes:
            most = max(sizes[0], sizes[len(sizes) // 2] // MUCH)
            for pane in panes:
                pane.grid.limit_size(most)

    @property
    def is_seen(self) -> bool:
        return any(dock.is_seen for dock in self.docks.values())

    @property
    def seen(self) -> dict[str, Pane]:
        open_now = [(name, dock.pane) for name, dock in self.docks.items() if dock.is_open]
        panes = {name: pane for name, pane in open_now if pane is not None}
        # Each window is asked once, and not once for each of its panes.
        windows = {window for window in {p.window() for p in panes.values()} if on_screen(window)}
        return {name: pane for name, pane in panes.items() if pane.window() in windows}

    def fit(self, view: ViewState, begun: int) -> bool:
        """Make docks for a new measurement; returns whether they are new.

        begun: the number of the measurement; the panes of the previous one are reused where models,
            columns and limits are the same
        """
        if begun == self.begun:
            self._follow_limits(view)
            return False
        before, self.begun, self._read = self._read, begun, _read_in(view)
        if before is not None and before == self._read:
            for pane in self.made:
                pane.restart()
            return False
        self.keep()
        for dock in self.docks.values():
            self._window.removeDockWidget(dock)
        self.leave()
        if (before_panes := self._window.centralWidget()) is not None:
            before_panes.hide()  # docks take its room
        kinds = pane_kinds(view, self._settings, self._choose_limits)
        self.docks = {kind.name: PaneDock(kind, self._follow) for kind in kinds}
        for dock in self.docks.values():
            if dock.kind.always:
                dock.fill()
        self.restore_default()
        kept = self._settings.get(LAYOUTS, {}).get(self.name)
        if isinstance(kept, str):
            self.restore(kept)
        return True

    def _follow_limits(self, view: ViewState) -> None:
        """Let the panes follow limits that changed while the measurement runs."""
        if view.readings is None or "limits" not in self.docks:
            return
        if self._read is None or view.readings.limits == self._read[-1]:
            return
        self._read, dock = _read_in(view), self.docks["limits"]
        had_room = dock.kind.row is not None
        dock.kind = limits_kind(view, self._choose_limits)
        for pane in self.made:
            pane.change_limits(view)
        if dock.kind.row is not None and not had_room:
            dock.show()

    def _follow(self, pane: Pane) -> None:
        """Match the numbers of a pane with those of others whenever it has another room."""
        if isinstance(pane, ReadingPane):
            pane.grid.resized.connect(self._matching.start)

    def take_frames(self, engine: "Engine", readings: "FollowedReadings | None") -> None:
        for pane in self.made:
            pane.take_frames(engine, readings)

    def leave(self) -> None:
        left, self.docks = self.docks, {}
        for dock in left.values():
            dock.leave()

    @property
    def name(self) -> str:
        """The key of the layout: the names of its panes."""
        return " ".join(sorted(self.docks))

    def layout(self) -> str:
        return bytes(self._window.saveState(VERSION).toBase64().data()).decode()

    def restore(self, text: str) -> None:
        self._forget_room()
        self._restore(text)

    def _restore(self, text: str) -> None:
        self._window.restoreState(QtCore.QByteArray.fromBase64(text.encode()), VERSION)

    def keep(self) -> None:
        if self.docks:
            now = self.layout() if self._whole is None else self._whole.text
            kept = self._settings.get(LAYOUTS, {}) | {self.name: now}
            self._settings.put(**{LAYOUTS: kept})

    def restore_default(self) -> None:
        self._forget_room()
        self._lay_out()

    def _lay_out(self, closed: set[str] | None = None) -> None:
        lay_out(self._window, list(self.docks.values()), closed)

    def fit_window(self) -> None:
        """Make panes tabs while the window is too small for their layout, and restore it later.

        For when there is more or less room: what a user opens or closes stays so.
        """
        layout = self._window.layout()
        if not self.has_other_room or layout is None or not self.docks:
            return
        self._room = room = self._room_now
        needs, closed = layout.minimumSize(), self._closed
        if self._whole is not None and _fits(self._whole.needs, room):
            self._restore(self._whole.text)
            self._whole = None
            for name, dock in self.docks.items():
                dock.setHidden(name in closed)
        elif not _fits(needs, room):
            self._whole = self._whole or WholeLayout(self.layout(), needs)
            self._lay_out(closed)

    @property
    def has_other_room(self) -> bool:
        """Whether there is more or less room than when panes were last fitted into it."""
        return bool(self._room != self._room_now)

    @property
    def _room_now(self) -> QtCore.QSize:
        above = self._window.menuWidget()
        return self._window.size() - QtCore.QSize(0, 0 if above is None else above.height())

    def _forget_room(self) -> None:
        self._room, self._whole = QtCore.QSize(), None

    @property
    def _closed(self) -> set[str]:
        return {name for name, dock in self.docks.items() if dock.isHidden()}

    @property
    def made(self) -> list[Pane]:
        return [dock.pane for dock in self.docks.values() if dock.pane is not None]


def _fits(needs: QtCore.QSize, room: QtCore.QSize) -> bool:
    return needs.width() <= room.width() and needs.height() <= room.height()


def _read_in(view: ViewState) -> Any:
    """What panes are made for: models, columns, limits; None for an engine without readings."""
    if (readings := view.readings) is None:
        return None
    columns = tuple(column.name for column in readings.rows.columns)
    return readings.models, columns, readings.limits
