"""The menu of recent sessions."""

from functools import partial
from pathlib import Path

from pyqtgraph.Qt import QtCore, QtWidgets

from amt_monitor.base.file_drop_filter import KEPT, dropped_kind
from amt_monitor.base.settings import Settings
from amt_stream.core.safe_text import plain


class RecentMenu(QtWidgets.QMenu):
    """Lists `Settings.recent` when it opens; `chosen` has a path [main-thread].

    Missing sessions are disabled, not removed: their disk may return.
    """

    chosen = QtCore.Signal(object)

    def __init__(self, settings: Settings, parent: QtWidgets.QWidget | None = None) -> None:
        super().__init__("Rece&nt sessions", parent, objectName="recent")
        self._settings = settings
        self.aboutToShow.connect(self.fill)
        self.fill()

    def fill(self) -> None:
        self.clear()
        paths = [Path(one) for one in self._settings.get("recent", []) if isinstance(one, str)]
        for number, path in enumerate(paths, 1):
            shown = f"&{number % 10} {plain(path.name)}   ({plain(path.parent)})"
            action = self.addAction(shown, partial(self.chosen.emit, path))
            action.setData(path)
            action.setEnabled(dropped_kind(path) == KEPT)
        if not paths:
            self.addAction("none yet").setEnabled(False)
