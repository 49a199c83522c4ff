"""The menu bar of the window."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial

from pyqtgraph.Qt import QtGui, QtWidgets

from amt_monitor.actions.channels_menu import ChannelsMenu
from amt_monitor.actions.layouts_menu import LayoutsMenu
from amt_monitor.actions.models_menu import ModelsMenu
from amt_monitor.actions.presets_menu import PresetsMenu
from amt_monitor.actions.recent_menu import RecentMenu
from amt_monitor.actions.window_commands import COMMANDS, GROUPS
from amt_monitor.base.theme import CHOICES, NAMES, theme
from amt_monitor.base.widgets import add_choice
from amt_monitor.window.pane_docks import PaneDock


class MainMenu:
    """File, Measure, View and Help: the commands and the submenus.

    choose_theme: called with the name of a theme
    """

    def __init__(
        self,
        bar: QtWidgets.QMenuBar,
        actions: Mapping[str, QtGui.QAction],
        recent: RecentMenu,
        models: ModelsMenu,
        channels: ChannelsMenu,
        presets: PresetsMenu,
        wall: QtWidgets.QMenu,
        layouts: LayoutsMenu,
        choose_theme: Callable[[str], object],
    ) -> None:
        self.recent, self.models, self.presets = recent, models, presets
        self.channels = channels
        self.wall, self.layouts = wall, layouts
        menus = {name: bar.addMenu(f"&{name}") for name in ("File", "Measure", "View", "Help")}
        for command in COMMANDS:
            if command.name in GROUPS:
                menus[command.menu].addSeparator()
            menus[command.menu].addAction(actions[command.name])
        menus["File"].insertMenu(actions["save_session"], recent)
        menus["Measure"].insertMenu(actions["calibrate"], presets)
        menus["Measure"].addMenu(models)
        menus["Measure"].addMenu(channels)
        view = menus["View"]
        view.addMenu(wall)
        view.addSeparator()
        view.addMenu(layouts)
        themes = view.addMenu("&Colors")
        self._themes = QtGui.QActionGroup(bar)
        for choice in CHOICES:
            choose = partial(choose_theme, choice)
            self._themes.addAction(add_choice(themes, NAMES[choice], False, choose, data=choice))
        self._panes = view.addMenu("&Panes")

    def check_theme(self) -> None:
        for action in self._themes.actions():
            action.setChecked(action.data() == theme.choice)

    def list_panes(self, docks: Iterable[PaneDock]) -> None:
        self._panes.clear()
        for dock in docks:
            self._panes.addAction(dock.toggleViewAction())
