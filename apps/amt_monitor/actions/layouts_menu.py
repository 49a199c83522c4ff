"""The menu of named pane layouts."""

from collections.abc import Callable
from functools import partial

from pyqtgraph.Qt import QtWidgets

from amt_monitor.base.settings import Settings
from amt_monitor.base.widgets import ask_text
from amt_stream.core.safe_text import plain

LONGEST = 60
"""Letters of a name."""


class LayoutsMenu(QtWidgets.QMenu):
    """Saves, restores and deletes layouts in `Settings`.

    of: returns the names of the panes; a layout fits only the panes it was made of
    save: returns the present layout as text
    restore: called with such a text
    usual: restores the default layout
    """

    def __init__(
        self,
        settings: Settings,
        of: Callable[[], str],
        save: Callable[[], str],
        restore: Callable[[str], object],
        usual: Callable[[], object],
    ) -> None:
        super().__init__("&Layouts", objectName="layouts")
        self._settings, self._of = settings, of
        self._save, self._restore, self._usual = save, restore, usual
        self.aboutToShow.connect(self.fill)
        self.fill()

    @property
    def named(self) -> dict[str, str]:
        all_of = self._settings.get("named_layouts", {}).get(self._of(), {})
        if not isinstance(all_of, dict):
            return {}
        return {name: text for name, text in all_of.items() if isinstance(text, str)}

    def fill(self) -> None:
        self.clear()
        self.addAction("&Default", self._usual)
        named = self.named
        for name, text in sorted(named.items()):
            action = self.addAction(plain(name).replace("&", "&&"), partial(self._restore, text))
            action.setObjectName(f"layout_{name}")
        self.addSeparator()
        self.addAction("&Save as...", self._ask)
        forget = self.addMenu("&Delete")
        forget.setEnabled(bool(named))
        for name in sorted(named):
            action = forget.addAction(plain(name).replace("&", "&&"), partial(self.forget, name))
            action.setObjectName(f"delete_{name}")

    def save_as(self, name: str) -> None:
        """Save the present layout by name; a layout of that name is replaced."""
        name = name.strip()[:LONGEST]
        if name:
            self._put(self.named | {name: self._save()})

    def forget(self, name: str) -> None:
        self._put({one: text for one, text in self.named.items() if one != name})

    def _put(self, named: dict[str, str]) -> None:
        kept = self._settings.get("named_layouts", {}) | {self._of(): named}
        self._settings.put(named_layouts=kept)
        self.fill()

    def _ask(self) -> None:
        ask_text(self.parentWidget(), "Save the layout", "Name of this layout", self.save_as)
