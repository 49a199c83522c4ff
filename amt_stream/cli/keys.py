"""Keys of the meter in a terminal: what each does, and how they are read."""

import codecs
import contextlib
import os
import re
import select
import signal
import sys
import time
from typing import Any, NamedTuple

from amt_stream.cli.ending import ending

ESCAPE = "\x1b"
_SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|O.)")


class Key(NamedTuple):
    """One of them.

    key: the character that it types
    name: of the method that it calls; in the window it has the same key and name
    about: what it does
    """

    key: str
    name: str
    about: str

    @property
    def words(self) -> str:
        """What is written on it."""
        return {" ": "space"}.get(self.key, self.key)


KEYS = (
    Key(" ", "pause", "pause, or go on: nothing is counted meanwhile"),
    Key("s", "stop", "stop: let the input go; what was read stays"),
    Key("r", "reset_readings", "reset readings: forget averages, maxima, percentiles"),
    Key("u", "undo_reset", "undo a reset of readings, within 10 s of it"),
    Key("R", "reset_filters", "reset filters: models go back to silence"),
    Key("f", "freeze", "freeze: hold the picture alone"),
    Key("m", "mark", "marker: keep this moment with a note"),
    Key("l", "log", "log: keep rows and events in a folder, or no more"),
    Key("i", "replay", "keep the last sound: write it to a file"),
    Key("?", "keys", "show this list, or no more"),
    Key("q", "quit", "quit"),
)
BY_KEY = {one.key: one.name for one in KEYS}

WHEN_STOPPED = ("freeze", "keys", "quit")
"""Those that still do something."""

WORDS = {
    "reset_readings": "reset",
    "undo_reset": "undo",
    "reset_filters": "filters",
    "mark": "marker",
    "replay": "keep sound",
}
"""Where a word is all there is room for, and it is not the method's."""


def keys_line(width: int) -> str:
    """The last line of a screen: those that fit, with a word each; the list of all at its end."""
    words = [f"{one.words} {WORDS.get(one.name, one.name)}" for one in KEYS]
    while len(text := ", ".join(words)) > width and len(words) > 2:
        del words[-3]
    return text


def keys_screen() -> list[str]:
    """All of them, as lines."""
    return ["Keys", "", *(f"  {one.words:>5}  {one.about}" for one in KEYS)]


class Keys:
    """Keys from a POSIX terminal; elsewhere there are none, and waiting is all it does."""

    def __init__(self) -> None:
        self._before: list[Any] | None = None
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def take(self) -> None:
        with contextlib.suppress(ImportError, OSError, ValueError, AttributeError):
            import termios
            import tty

            if os.isatty(sys.stdin.fileno()):
                self._before = termios.tcgetattr(sys.stdin)
                tty.setcbreak(sys.stdin, termios.TCSADRAIN)

    def give_back(self) -> None:
        if self._before is not None:
            import termios

            # Now, and not once all is written: somebody may have stopped the terminal.
            with contextlib.suppress(termios.error):
                termios.tcsetattr(sys.stdin, termios.TCSANOW, self._before)

    def wait(self, seconds: float) -> str:
        """What was typed within that time, or "".

        A key that types several characters, as an arrow does, types none.
        """
        if self._before is None:
            time.sleep(seconds)
            return ""
        if not select.select([sys.stdin], [], [], seconds)[0]:
            return ""
        try:
            typed = os.read(sys.stdin.fileno(), 64)
        except OSError:
            typed = b""
        if not typed:  # the terminal was closed
            ending.ask(signal.SIGHUP)
        return _SEQUENCE.sub("", self._decoder.decode(typed))
