"""The base class of meters."""

import difflib
import math
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from amt_stream.core.saved_state import Resumable

Flags = NDArray[np.bool_]
Values = NDArray[np.float64]

FRAME_S = 0.01
"""Time between the frames of sound levels and of bands."""


class Meter(Resumable):
    """A meter has readings on demand, and some of them, `columns`, after each frame.

    It can be paused while it is fed. Readings that are not columns only cost what `reading` needs.
    """

    paused = False
    _excluded = 0

    def __init__(self, columns: Sequence[str] = ()) -> None:
        self.columns = tuple(columns)

    def pause(self) -> None:
        """Count nothing until `unpause`."""
        self.paused = True

    def unpause(self) -> None:
        """Continue after a pause."""
        self.paused = False

    def skip(self, count: int) -> None:
        """Skip missing frames, which are left out; windows move on."""
        self._excluded += 0 if self.paused else count

    def refuse_unknown(self, known: Iterable[str]) -> None:
        """Raise ValueError for a column that is not in `known`, with the nearest name."""
        names = list(known)
        for column in self.columns:
            if column not in names:
                near = difflib.get_close_matches(column, names, 1, 0.0)[0]
                raise ValueError(
                    f"{type(self).__name__} has no reading {column!r}: the nearest is {near!r}"
                )


class FrameMeter(Meter):
    """A meter of frames every 10 ms that knows how many came, valid or not."""

    def __init__(self, columns: Sequence[str] = ()) -> None:
        super().__init__(columns)
        # Frames so far, and the number of the last that was not valid.
        self._taken, self._invalid = 0, -math.inf

    def skip(self, count: int) -> None:
        super().skip(count)
        self._taken += count

    def marks(
        self, mean_square: NDArray[np.floating], valid: Flags | None, since_s: Values | None
    ) -> tuple[Flags, Values]:
        """Which frames (n,) may count, and how long ago the last fault ended.

        Without `valid` all may; without `since_s` each frame that may not count is a fault.
        """
        if valid is None:
            valid = np.ones(mean_square.shape[-1], np.bool_)
        if since_s is None:
            number = self._taken + np.arange(len(valid))
            faulty = ~(np.isfinite(mean_square).all(0) & valid)
            last = np.maximum.accumulate(np.where(faulty, number, self._invalid))
            self._invalid = float(last[-1])
            since_s = np.asarray((number - last) * FRAME_S, np.float64)
        return valid, since_s
