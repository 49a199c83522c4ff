"""The menu of presets, shipped ones and those that were saved here."""

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pyqtgraph.Qt import QtWidgets

from amt_monitor.base.settings import Settings
from amt_monitor.base.widgets import add_choice, ask_text
from amt_stream.core.errors import Refusal
from amt_stream.core.files import why
from amt_stream.core.safe_text import plain
from amt_stream.core.settings import presets_folder, tables_in, write_tables

if TYPE_CHECKING:
    from amt_stream.engine import Engine
    from amt_stream.meters.presets import Preset

PresetOf = Callable[["Engine"], "Preset"]
"""Returns the preset that an engine was made with."""

PRESET = "preset"
"""The settings' key for the path of the chosen preset."""

LETTERS = re.compile(r"[^\w -]")
LONGEST = 60


class PresetsMenu(QtWidgets.QMenu):
    """Chooses, saves and deletes presets; saved ones are files beside the settings.

    present: returns the preset of the measurement, or None
    choose: called with the path of a preset
    tell: called with a sentence
    """

    def __init__(
        self,
        settings: Settings,
        present: "Callable[[], Preset | None]",
        choose: Callable[[Path], object],
        tell: Callable[[str], object],
    ) -> None:
        super().__init__("Pres&et", objectName="presets")
        self._settings, self._present, self._choose, self._tell = settings, present, choose, tell
        self.folder = settings.path.parent / "presets"
        self.setToolTipsVisible(True)
        self.aboutToShow.connect(self.fill)
        self.fill()

    def fill(self) -> None:
        self.clear()
        now, saved = self._settings.get(PRESET, ""), sorted(self.folder.glob("*.toml"))
        for path in (*sorted(presets_folder().glob("*.toml")), None, *saved):
            if path is None:
                self.addSeparator()
                continue
            choose, name = partial(self._choose, path), f"preset_{path.stem}"
            add_choice(self, _words(path), str(path) == now, choose, name, _about(path))
        self.addSeparator()
        save = self.addAction("&Save the present settings...", self._ask)
        save.setObjectName("save_preset")
        save.setEnabled(self._present() is not None)
        forget = self.addMenu("&Delete")
        forget.setEnabled(bool(saved))
        for path in saved:
            action = forget.addAction(_words(path), partial(self.forget, path))
            action.setObjectName(f"delete_{path.stem}")

    def save_as(self, name: str) -> None:
        """Save the measurement as a preset of this name, and choose it for the next start."""
        name, preset = LETTERS.sub("", name).strip()[:LONGEST], self._present()
        if not name or preset is None:
            return
        path = self.folder / f"{name}.toml"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            write_tables(path, {**preset.tables, "description": name})
        except OSError as error:
            self._tell(f"the preset cannot be saved in {path}: {why(error)}")
            return
        self._settings.put(**{PRESET: str(path), "limits": None})
        self._tell(f"saved: {path}, also for --preset")

    def forget(self, path: Path) -> None:
        path.unlink(missing_ok=True)
        if self._settings.get(PRESET, "") == str(path):
            self._settings.put(**{PRESET: ""})

    def _ask(self) -> None:
        ask_text(self.parentWidget(), "Save a preset", "Name of this preset", self.save_as)


def _words(path: Path) -> str:
    return plain(path.stem).replace("&", "&&")


def _about(path: Path) -> str:
    try:
        return plain(str(tables_in(path).get("description", "")))
    except Refusal as refusal:
        return plain(refusal)
