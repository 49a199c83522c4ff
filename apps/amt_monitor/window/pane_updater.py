"""Updates the panes of the window from the running measurement."""

import gc
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyqtgraph.Qt import QtCore

from amt_monitor.panes.history_pane import HistoryPane
from amt_monitor.window.pane_area import PaneArea
from amt_stream.views.live_results import results_of
from amt_stream.views.measurement_control import MeasurementControl
from amt_stream.views.view_state import ViewState

if TYPE_CHECKING:
    from amt_stream.engine import Frames
    from amt_stream.sessions.results import Results


COLLECT_MS = 500
"""From the first view of a measurement on, until nothing shows the one before any more."""


@dataclass(frozen=True)
class ShownTexts:
    """The texts of the visible panes by the panes' names, and the view that they show."""

    view: ViewState
    texts: dict[str, tuple[str, ...]]

    @property
    def frames(self) -> "Frames":
        return self.view.newest


class PaneUpdater:
    """Reads the measurement and hands it to the panes; timers call it [main-thread].

    list_panes: called when there are new panes
    view: the newest view that was read
    frozen: whether the panes stand still while the measurement continues
    """

    def __init__(
        self, area: PaneArea, measurement: MeasurementControl, list_panes: Callable[[], object]
    ) -> None:
        self._area, self._measurement, self._list_panes = area, measurement, list_panes
        self.view: ViewState | None = None
        self.shown: ShownTexts | None = None
        self.frozen = False
        self._frozen_in = 0
        self._drawn: Frames | None = None
        self._drawn_in: set[str] = set()

    @property
    def held(self) -> list[str]:
        """Why the readings stand still, in words."""
        state = self._measurement.state
        return ([] if state == "running" else [state]) + (["frozen"] if self.frozen else [])

    @property
    def held_view(self) -> ViewState | None:
        view, held = self.view, self.held
        # The same view has found already what its readings are worth.
        return view if view is None or not held else replace(view, held=held)

    @property
    def history(self) -> HistoryPane | None:
        dock = self._area.docks.get("history")
        return dock.pane if dock is not None and isinstance(dock.pane, HistoryPane) else None

    def freeze(self, frozen: bool) -> None:
        """Freeze the panes, or let them follow the measurement again."""
        engine = self._measurement.engine
        self.frozen, self._frozen_in = frozen, self._measurement.begun
        if frozen and engine is not None:
            # A maximum that is shown later is not below the curve that is frozen.
            self._area.take_frames(engine, self._measurement.readings)
        self.show_status(hidden=True)

    @property
    def is_outdated(self) -> bool:
        return self.frozen and self._measurement.begun != self._frozen_in

    def draw(self) -> None:
        view = self._refresh()
        if view is None or view.newest is self._drawn or not (seen := self._area.seen):
            return
        self._drawn, self._drawn_in = view.newest, {*seen}
        for pane in seen.values():
            pane.move(view)

    def read(self) -> None:
        """Hand new rows and frames to all panes, and write the numbers of the visible ones."""
        view, engine = self._refresh(), self._measurement.engine
        if not self._has_panes:
            return
        self._hand_on()
        if engine is not None:
            self._area.take_frames(engine, self._measurement.readings)
        if view is None:
            return
        seen = self._area.seen
        for pane in seen.values():
            pane.read(view)
        self.show_status()
        if seen:
            self.shown = ShownTexts(view, {name: pane.texts() for name, pane in seen.items()})

    def show_status(self, hidden: bool = False) -> None:
        """Mark readings that are to be doubted, in hidden panes too where asked."""
        view, seen = self.held_view, self._area.seen
        if view is None:
            return
        if view.held:
            for name in seen.keys() - self._drawn_in:
                seen[name].move(view)
                seen[name].read(view)
            self._drawn_in |= seen.keys()
        for pane in self._area.made if hidden else seen.values():
            pane.show_status(view)

    def results(self) -> "Results | None":
        engine, readings = self._measurement.engine, self._measurement.readings
        pane = self.history
        if engine is None or readings is None or pane is None or not self._has_panes:
            return None
        self._hand_on()
        return results_of(engine, readings, pane.history)

    def _hand_on(self) -> None:
        readings = self._measurement.readings
        if readings is not None and (rows := readings.take()):
            for pane in self._area.made:
                pane.take(rows)

    def _refresh(self) -> ViewState | None:
        engine = self._measurement.engine
        if engine is None or self.frozen:
            return None
        # Without `held`: the state is too costly to read 30 times a second.
        view = ViewState.at(engine, self._measurement.readings)
        if view is not None:
            if self.view is not None and view.engine is not self.view.engine:
                # It is garbage with cycles, of 10 MB and more: a rare collection comes too late.
                QtCore.QTimer.singleShot(COLLECT_MS, gc.collect)
            self.view = view
            if self._area.fit(view, self._measurement.begun):
                self._list_panes()
        return view

    @property
    def _has_panes(self) -> bool:
        """Whether the panes are those of this measurement; until then its rows wait."""
        return self._area.begun == self._measurement.begun
