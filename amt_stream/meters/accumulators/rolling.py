"""Equivalent levels of rolling windows, such as LAeq,15min."""

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from amt_stream.core.saved_state import Resumable
from amt_stream.meters.accumulators import loops
from amt_stream.meters.accumulators.level import level_db

MOST_SLOTS = 36_000
SLOTS_S = (0.1, 1.0)
"""Slot lengths for windows with too many frames."""

PLACES = 1000
"""Largest number of points of a window for forecasts: 0.1 % of it apart, or 0.005 dB."""


class RollingLevel(Resumable):
    """Equivalent level of the last `window_s`, of mean squares `period_s` apart.

    The window moves in slots: a frame up to 36,000 frames, else 0.1 s up to an hour and 1 s beyond.
    At whole slots since the start the level is that of exactly `window_s`, and between them of up
    to a slot less. A window of 24 h needs 3 MB. At the start the level is that of all sound so far.

    Sums are never subtracted from, so that a quiet window after a loud one is exact.

    length, slot: lengths of the window and of a slot in frames

    Raises ValueError if `window_s` is not a whole number of slots.
    """

    kept = ("_rest", "_slots", "_begun", "_taken", "_covered", "_mean")

    def __init__(self, window_s: float, period_s: float) -> None:
        sizes = [1, *(max(1, round(slot_s / period_s)) for slot_s in SLOTS_S)]
        frames = round(window_s / period_s)
        self.slot = next((m for m in sizes if frames <= m * MOST_SLOTS), sizes[-1])
        if frames < 1 or frames % self.slot or not math.isclose(frames * period_s, window_s):
            raise ValueError(
                f"a window of {window_s} s: give a multiple of {self.slot * period_s:g} s"
            )
        self.window_s, self.period_s = window_s, period_s
        self.length = frames
        # Time is divided into stretches as long as the window. The window is the end of the last
        # stretch, `_rest[:, k]` from its slot k on, and the beginning of the present one. Both
        # have the sum of mean squares and the count of frames.
        self._rest = np.zeros((2, frames // self.slot + 1))
        self._slots = np.zeros((2, frames // self.slot))
        self._begun = np.zeros(2)
        self._taken = 0
        self._covered, self._mean = 0.0, math.nan
        loops.compile_loops()

    @property
    def covered_s(self) -> float:
        """Seconds of the window with sound."""
        return self._covered * self.period_s

    @property
    def level_db(self) -> float:
        """The level after the last frame; NaN if nothing counted."""
        return float(level_db(np.array(self._mean)))

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        super().load_state_dict(state)
        self.refuse_state(0 <= self._taken < self.length, "_taken")

    def add(self, mean_square: NDArray[np.floating]) -> NDArray[np.float64]:
        """Take frames (n,) in Pa^2, and return the level in dB after each.

        NaN takes time but does not count; the level is NaN if nothing counts.
        """
        means = np.empty(len(mean_square))
        self.follow(np.asarray(mean_square, np.float64), means)
        return level_db(means)

    def follow(self, given: NDArray[np.float64], means: NDArray[np.float64]) -> None:
        """Take frames (n,) as `add` does, and write the mean square after each to `means` (n,)."""
        at = 0
        while at < len(given):
            size = min(len(given) - at, self.length - self._taken)
            self._covered = loops.roll(
                given[at : at + size],
                self._taken,
                self.slot,
                self._rest,
                self._slots,
                self._begun,
                means[at : at + size],
            )
            self._taken += size
            at += size
            self._turn()
        if at:
            self._mean = float(means[-1])

    def ahead(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The rest of the present window after future slots: their numbers (k,), and the sum of
        mean squares and the count of frames after each (2, k).

        The first number is 0, which is now, and after the last nothing is left; between them are at
        most `PLACES`.
        """
        slots = self._slots.shape[1]
        places = np.append(np.arange(0, slots, -(-slots // PLACES)), slots)
        begun = -(-self._taken // self.slot)
        dropped = np.zeros((2, begun + 1))
        np.cumsum(self._slots[:, :begun], 1, out=dropped[:, 1:])
        left = self._rest[:, np.minimum(begun + places, slots)]
        left += self._begun[:, None] - dropped[:, np.maximum(begun + places - slots, 0)]
        # The same sums in another order.
        return places, np.maximum(left, 0.0)

    def skip(self, count: int) -> None:
        """Skip missing frames, like NaN, but faster."""
        if count >= 2 * self.length:
            count = count % self.length + self.length
        while count:
            passed = min(count, self.length - self._taken)
            self._taken += passed
            count -= passed
            self._turn()

    def _turn(self) -> None:
        """Begin the next stretch if one is full."""
        if self._taken == self.length:
            self._rest[:, :-1] = np.cumsum(self._slots[:, ::-1], 1)[:, ::-1]
            self._slots[:], self._begun, self._taken = 0.0, np.zeros(2), 0
