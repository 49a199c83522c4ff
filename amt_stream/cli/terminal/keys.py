"""Keys of the meter in a terminal."""

from typing import NamedTuple


class Key(NamedTuple):
    """A key.

    key: character that it types
    name: action that it starts; the window uses the same key and name
    word: short label
    about: what it does
    """

    key: str
    name: str
    word: str
    about: str

    @property
    def label(self) -> str:
        return "Space" if self.key == " " else f"Shift+{self.key}" if self.shifted else self.typed

    @property
    def shifted(self) -> bool:
        return self.key.isupper()

    @property
    def typed(self) -> str:
        return self.key.upper()


KEYS = (
    Key(" ", "pause", "Pause", "pause or continue: nothing is counted while paused"),
    Key("s", "stop", "Stop", "stop: close the input; the readings stay"),
    Key("r", "reset_readings", "Reset", "reset readings: restart averages, maxima and percentiles"),
    Key("u", "undo_reset", "Undo", "undo a reset of readings, within 10 s of it"),
    Key("R", "reset_filters", "Filters", "reset filters: models restart from silence"),
    Key("f", "freeze", "Freeze", "freeze the screen; the measurement continues"),
    Key("m", "mark", "Marker", "add a marker with a note at this moment"),
    Key("l", "log", "Log", "start or stop logging rows and events to a folder"),
    Key("i", "replay", "Keep sound", "write the last sound to a file"),
    Key("?", "keys", "Help", "show or hide this list"),
    Key("q", "quit", "Quit", "quit"),
)

ON_LINE = ("pause", "stop", "reset_readings", "mark", "log", "freeze", "keys", "quit")
"""Keys of the line at the bottom; where it is narrow, the last but two are left out first."""

WHEN_STOPPED = ("freeze", "keys", "quit")
"""Keys that still work when stopped."""


def keys_that_fit(width: int) -> list[Key]:
    """The keys of the line at the bottom, each with its word and two spaces between them."""
    shown = [next(one for one in KEYS if one.name == name) for name in ON_LINE]
    while sum(len(f"{one.label} {one.word}  ") for one in shown) - 2 > width and len(shown) > 2:
        del shown[-3]
    return shown
