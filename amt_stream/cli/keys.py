"""Keys of the meter in a terminal."""

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
    """A key.

    key: character that it types
    name: method that it calls; the window uses the same key and name
    about: what it does
    """

    key: str
    name: str
    about: str

    @property
    def words(self) -> str:
        """The label of the key."""
        return {" ": "space"}.get(self.key, self.key)


KEYS = (
    Key(" ", "pause", "pause or continue: nothing is counted while paused"),
    Key("s", "stop", "stop: close the input; the readings stay"),
    Key("r", "reset_readings", "reset readings: restart averages, maxima and percentiles"),
    Key("u", "undo_reset", "undo a reset of readings, within 10 s of it"),
    Key("R", "reset_filters", "reset filters: models restart from silence"),
    Key("f", "freeze", "freeze the screen; the measurement continues"),
    Key("m", "mark", "add a marker with a note at this moment"),
    Key("l", "log", "start or stop logging rows and events to a folder"),
    Key("i", "replay", "write the last sound to a file"),
    Key("?", "keys", "show or hide this list"),
    Key("q", "quit", "quit"),
)
BY_KEY = {one.key: one.name for one in KEYS}

WHEN_STOPPED = ("freeze", "keys", "quit")
"""Keys that still work when stopped."""

WORDS = {
    "reset_readings": "reset",
    "undo_reset": "undo",
    "reset_filters": "filters",
    "mark": "marker",
    "replay": "keep sound",
}
"""Short labels of keys whose label is not the method's name."""


def keys_line(width: int) -> str:
    """The last line of a screen: the keys that fit, one word each."""
    words = [f"{one.words} {WORDS.get(one.name, one.name)}" for one in KEYS]
    while len(text := ", ".join(words)) > width and len(words) > 2:
        del words[-3]
    return text


def keys_screen() -> list[str]:
    """The list of all keys, as lines."""
    return ["Keys", "", *(f"  {one.words:>5}  {one.about}" for one in KEYS)]


class Keys:
    """Reads keys from a POSIX terminal; elsewhere it only waits."""

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

            # TCSANOW, as output may be stopped and never be written.
            with contextlib.suppress(termios.error):
                termios.tcsetattr(sys.stdin, termios.TCSANOW, self._before)

    def wait(self, seconds: float) -> str:
        """The characters typed within this time, or "".

        Escape sequences, as of arrow keys, are dropped.
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
