"""The wall view of a window: when it is shown, and which numbers it has."""

from collections.abc import Sequence
from functools import partial

from pyqtgraph.Qt import QtWidgets

from amt_monitor.base.settings import Settings
from amt_monitor.base.widgets import add_choice
from amt_monitor.window.pane_updater import PaneUpdater
from amt_monitor.window.state_view import StateView
from amt_monitor.window.wall_view import MOST, WallView
from amt_stream.core.safe_text import plain
from amt_stream.meters.rows.captions import caption_of
from amt_stream.views.view_state import ViewState

NUMBERS = "wall"
"""The settings' key for the chosen readings."""

USUAL = (
    *("laf_db", "laeq_db", "ltl_phon", "ltl_sone", "momentary_lufs", "integrated_lufs"),
    *("gm2002_ltl_phon", "zwicker_n_sone", "zwicker_n5_sone"),
)
"""By default, the first two of these that exist."""


class Wall:
    """Shows two or three numbers of a measurement on the whole screen.

    view: the full-screen window
    menu: chooses the numbers
    """

    def __init__(
        self, view: WallView, updater: PaneUpdater, state: StateView, settings: Settings
    ) -> None:
        self.view, self._updater, self._state, self._settings = view, updater, state, settings
        self.menu = QtWidgets.QMenu("&Numbers on the wall")
        self.menu.aboutToShow.connect(self.fill_menu)
        view.customContextMenuRequested.connect(
            lambda place: self.menu.popup(view.mapToGlobal(place))
        )

    def wall(self) -> None:
        """Show it over the screen of the window, or close it."""
        if self.view.isVisible():
            self.view.close()
        else:
            self.view.setGeometry(self._state.screen().geometry())
            self.view.showFullScreen()
            self.view.activateWindow()
            self.show()

    def show(self) -> None:
        """Show the newest numbers and the state, if it is open."""
        if self.view.isVisible() and (view := self._updater.held_view) is not None:
            self.view.choose(wall_numbers(view, self._settings.get(NUMBERS, [])))
            state, pane = self._state, self._updater.history
            self.view.show_state(state.states, state.banner.text(), state.message.text)
            self.view.read(view, pane and pane.history)

    def choose(self, names: list[str]) -> None:
        self._settings.put(**{NUMBERS: names})
        self.show()

    def fill_menu(self) -> None:
        self.menu.clear()
        view = self._updater.view
        if view is None or view.readings is None:
            self.menu.addAction("no readings").setEnabled(False)
            return
        for model in view.readings.models:
            menu = self.menu.addMenu(model)
            for name in view.readings.of(model):
                words, tick = plain(caption_of(name).listed), partial(self._tick, name)
                add_choice(menu, words, name in self.view.numbers, tick, f"wall_{name}")

    def _tick(self, name: str) -> None:
        chosen = [*self.view.numbers]
        if name in chosen:
            chosen.remove(name)
        else:
            chosen = [*chosen, name][-MOST:]
        if chosen:
            self.choose(chosen)


def wall_numbers(view: ViewState, wanted: Sequence[str]) -> list[str]:
    if view.readings is None:
        return []
    there = [name for model in view.readings.models for name in view.readings.of(model)]
    if found := [name for name in wanted if name in there]:
        return found[:MOST]
    limited = [limit.column for limit in view.readings.limits]
    usual = [name for name in dict.fromkeys((*limited, *USUAL)) if name in there]
    return usual[:2] or there[:1]
