"""Resets of readings that can still be undone."""

import math
import threading
from collections.abc import Iterable

from amt_stream.meters.frames import UNDO_S


class Resets:
    """Where the readings of each microphone were last reset, unless undone.

    lock: hold it from a check to the action that depends on it
    """

    def __init__(self, fs: int) -> None:
        self.lock = threading.Lock()
        self._longest = UNDO_S * fs
        self._at: dict[str, int] = {}

    def note(self, names: Iterable[str], position: int) -> None:
        """Record a reset at `position`."""
        self._at.update(dict.fromkeys(names, position))

    def can_undo(self, names: Iterable[str], position: int) -> bool:
        """Whether all of these were reset in the last UNDO_S of sound [any-thread]."""
        return all(self._at.get(name, -math.inf) >= position - self._longest for name in names)

    def undo(self, names: Iterable[str]) -> None:
        """Remove the resets of these."""
        for name in names:
            del self._at[name]
