"""The window's stored settings."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from amt_stream.core.files import NotThatFile, small_text, whole_text_file, why

VERSION = 1
RECENT = 10


def settings_path() -> Path:
    """In the platform's folder for settings."""
    from platformdirs import user_config_dir

    return Path(user_config_dir("amt_stream", appauthor=False)) / "monitor.json"


class Settings:
    """Settings in a file that is replaced as a whole.

    `trouble` is a sentence if the file could not be read or written, else "". An unreadable file is
    renamed to end in `.unreadable`. A file of a later version is read as far as known, and never
    written.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = settings_path() if path is None else path
        self.trouble = ""
        self.is_new = not self.path.exists()
        self._values: dict[str, Any] = {}
        self._later = False
        if not self.is_new:
            self._read()

    def get(self, name: str, usual: Any) -> Any:
        """A setting; the default `usual` if it is missing or of another type."""
        value = self._values.get(name, usual)
        return value if usual is None or isinstance(value, type(usual)) else usual

    def put(self, **values: Any) -> None:
        """Store settings at once."""
        changed = self._values | values
        if changed == self._values and not self.is_new:
            return
        self._values, self.is_new = changed, False
        if self._later:
            return
        try:
            with whole_text_file(self.path) as stream:
                json.dump({"version": VERSION, **self._values}, stream, indent=1)
        except OSError as error:
            self.trouble = f"settings cannot be saved in {self.path}: {why(error)}"

    def add_recent(self, path: Path) -> None:
        """Put a session first among the recent ones."""
        known = [one for one in self.get("recent", []) if one != str(path)]
        self.put(recent=[str(path), *known][:RECENT])

    def _read(self) -> None:
        try:
            found = json.loads(small_text(self.path))
            if not isinstance(found, Mapping) or not isinstance(found.get("version"), int):
                raise ValueError("it is no table of settings with a version")
        except (NotThatFile, ValueError, RecursionError) as error:
            aside = self.path.with_name(self.path.name + ".unreadable")
            self.trouble = f"settings in {self.path} cannot be read ({error}); defaults are used"
            try:
                self.path.replace(aside)
                self.trouble += f"; the old ones are in {aside}"
            except OSError:
                self._later = True
            return
        self._later = found["version"] > VERSION
        self._values = {key: value for key, value in found.items() if key != "version"}
