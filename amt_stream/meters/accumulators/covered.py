"""The time that statistics of one model cover, which differs after faults."""

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from amt_stream.core.saved_state import Resumable

Counted = Callable[[float], NDArray[np.bool_]]
AllCount = Callable[[float], bool]


class CoveredTime(Resumable):
    """Seconds of sound that counted, by how long after a fault it counts again.

    after_s: these times in seconds
    """

    kept = ("_seconds",)

    def __init__(self, after_s: Iterable[float]) -> None:
        self.after_s = tuple(sorted(set(after_s)))
        self.reset()

    def reset(self) -> None:
        """Forget what was counted."""
        self._seconds = np.zeros(len(self.after_s))

    def add(self, counted: Counted, all_count: AllCount, frames: int, period_s: float) -> None:
        """Count frames, `period_s` apart.

        counted: returns which of them count (n,), if sound counts so many seconds after a fault
        all_count: whether it is known that all of them do
        """
        if not self.after_s:
            return
        if all_count(self.after_s[-1]):  # the usual case
            self._seconds += period_s * frames
            return
        for place, after_s in enumerate(self.after_s):
            self._seconds[place] += period_s * np.count_nonzero(counted(after_s))

    def of(self, after_s: float) -> float:
        """The seconds that counted, of sound that counts `after_s` after a fault."""
        return float(self._seconds[self.after_s.index(after_s)])
