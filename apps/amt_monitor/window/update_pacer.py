"""Timers that update a window, slowly while nothing of it is seen."""

from collections.abc import Callable
from typing import NamedTuple

from pyqtgraph.Qt import QtCore


class TimedUpdate(NamedTuple):
    """A function that is called again and again, with the times between in milliseconds."""

    function: Callable[[], object]
    seen_ms: int
    hidden_ms: int


class UpdatePacer:
    """Calls updates; `look` changes their pace, and calls `catch_up` if there is something to see.

    is_seen: returns whether any part of the window is seen
    """

    def __init__(
        self,
        window: QtCore.QObject,
        updates: list[TimedUpdate],
        is_seen: Callable[[], bool],
        catch_up: Callable[[], object],
    ) -> None:
        self._updates, self._is_seen, self._catch_up = updates, is_seen, catch_up
        self.seen = True
        self._timers = [QtCore.QTimer(window) for _ in updates]
        for timer, update in zip(self._timers, updates, strict=True):
            timer.setTimerType(QtCore.Qt.TimerType.PreciseTimer)
            timer.timeout.connect(update.function)
            timer.start(update.seen_ms)

    def look(self) -> None:
        """Update slowly while nothing is seen; catch up at once when it is seen again."""
        seen = self._is_seen()
        if seen != self.seen:
            self.seen = seen
            for timer, update in zip(self._timers, self._updates, strict=True):
                timer.setInterval(update.seen_ms if seen else update.hidden_ms)
            if seen:
                self._catch_up()

    def stop(self) -> None:
        for timer in self._timers:
            timer.stop()
