"""Energy of the last day by seconds, for rolling levels that are asked for later."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from amt_stream.meters.accumulators.meter import FRAME_S
from amt_stream.meters.accumulators.rolling import RollingLevel
from amt_stream.meters.names import LONGEST_S

AT_ONCE = 60
"""Seconds that a rolling level takes in one call."""

SHORTEST_S = 60.0
"""Shortest window that begins with what is remembered: a second is at most 2 % of it."""

Values = NDArray[np.float64]


class LevelMemory:
    """Sums of mean squares of each second, and how many frames counted in it.

    A level of a window that begins later is that of the whole window from its first value on; what
    leaves the window leaves it to the second.

    weightings: number of mean squares per frame
    """

    def __init__(self, weightings: int) -> None:
        self._frames = round(1 / FRAME_S)
        self._slots = round(LONGEST_S)
        # A row for each second: memory is used as time passes.
        self._sums = np.zeros((self._slots, weightings))
        self._counts = np.zeros(self._slots)
        # Numbers of the first frame and of the one after the last.
        self._first, self._end = -1, 0

    def add(self, squares: Values, number: int) -> None:
        """Take mean squares (weighting, n), NaN for none; `number` is that of the first frame."""
        if self._first < 0:
            self._first = number
            self._end = number - number % self._frames
        self._advance(number + squares.shape[1])
        at = 0
        while at < squares.shape[1]:
            second = (number + at) // self._frames
            part = squares[:, at : (second + 1) * self._frames - number]
            known = np.isfinite(part[0])
            self._sums[second % self._slots] += part[:, known].sum(1)
            self._counts[second % self._slots] += np.count_nonzero(known)
            at += part.shape[1]

    def _advance(self, end: int) -> None:
        """Forget the seconds whose places are needed up to frame `end`."""
        first, last = -(-self._end // self._frames), -(-end // self._frames)
        fresh = np.arange(max(first, last - self._slots), last) % self._slots
        self._sums[fresh], self._counts[fresh] = 0.0, 0.0
        self._end = max(self._end, end)

    def heard_s(self, window_s: float) -> float:
        """How much of a window that ends now it knows, with what was missed."""
        return (self._end - self._begin(window_s)) * FRAME_S if self._first >= 0 else 0.0

    def missed(self, window_s: float) -> Values:
        """Begin and end (n, 2), in seconds, of what was not measured in a window that ends now."""
        holes = [
            (end * FRAME_S - missed * FRAME_S, end * FRAME_S)
            for _, end, frames, counted in self._seconds(window_s)
            if (missed := frames - counted) > 0
        ]
        return np.array(holes, np.float64).reshape(-1, 2)

    def fill(self, level: RollingLevel, weighting: int) -> None:
        """Let a new rolling level take its window."""
        waiting: list[Values] = []
        for second, _, frames, counted in self._seconds(level.window_s):
            place = second % self._slots
            mean = self._sums[place, weighting] / max(1.0, self._counts[place])
            squares = np.where(np.arange(frames) < counted, mean, np.nan)
            waiting.append(squares)
            if len(waiting) == AT_ONCE:
                level.add(np.concatenate(waiting))
                waiting = []
        if waiting:
            level.add(np.concatenate(waiting))

    def _begin(self, window_s: float) -> int:
        oldest = (-(-self._end // self._frames) - self._slots) * self._frames
        return max(self._first, oldest, self._end - round(window_s / FRAME_S))

    def _seconds(self, window_s: float) -> Iterator[tuple[int, int, int, int]]:
        """Of each second of a window that ends now: number, end, frames, and those that count.

        Of the first second, as many count as of its rest: the last ones.
        """
        if self._first < 0:
            return
        begin = self._begin(window_s)
        for second in range(begin // self._frames, -(-self._end // self._frames)):
            end = min((second + 1) * self._frames, self._end)
            frames = end - max(second * self._frames, begin)
            yield second, end, frames, min(frames, int(self._counts[second % self._slots]))
