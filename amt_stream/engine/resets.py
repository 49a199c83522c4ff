"""Resets of readings that can still be undone."""

import math
import threading
from collections.abc import Iterable

from amt_stream.meters.frames import UNDO_S


class Resets:
    """Where readings of each microphone were last reset, as long as it is not undone.

    lock: to be held from a look to what follows from it
    """

    def __init__(self, fs: int) -> None:
        self.lock = threading.Lock()
        self._longest = UNDO_S * fs
        self._at: dict[str, int] = {}

    def note(self, names: Iterable[str], position: int) -> None:
        """Readings of these were reset there."""
        self._at.update(dict.fromkeys(names, position))

    def can_undo(self, names: Iterable[str], position: int) -> bool:
        """Whether all of them were, in the last UNDO_S of sound [any-thread]."""
        return all(self._at.get(name, -math.inf) >= position - self._longest for name in names)

    def undo(self, names: Iterable[str]) -> None:
        """The resets of these are undone."""
        for name in names:
            del self._at[name]
