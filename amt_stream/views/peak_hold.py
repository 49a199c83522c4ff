"""Maxima of curves: of the last seconds, and since the last reset."""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from amt_stream.core.since_reset import SinceReset
from amt_stream.meters.frames import Frames
from amt_stream.sessions.counted_time import follow_reset
from amt_stream.views.frame_follower import FrameFollower

if TYPE_CHECKING:
    from amt_stream.engine import Engine
    from amt_stream.sessions.outputs import FollowedReadings

HOLD_S, SLOTS = 2.0, 8

Curves = NDArray[np.floating]


class _Greatest(NamedTuple):
    """The greatest of the curves from a time on; None without curves."""

    from_s: float
    curves: Curves | None = None


class PeakHold:
    """Holds maxima of curves; NaN is ignored.

    Times are those of the sound; if time jumps back, it starts again.
    """

    def __init__(self) -> None:
        self._follower = FrameFollower()
        self.clear()

    def clear(self) -> None:
        self._follower.clear()
        self._greatest = SinceReset(_Greatest(0.0))
        self._still: tuple[Curves | None, Curves | None] | None = None
        self._slots: list[tuple[int, Curves]] = []

    def take_frames(
        self,
        engine: "Engine",
        readings: "FollowedReadings | None",
        model: str,
        curves_of: Callable[[Frames], Curves],
        microphone: str = "",
    ) -> None:
        """Take the new frames of a model; `curves_of` gives their curves (curve, frame, point)."""
        if new := self._follower.new(engine, model, microphone):
            curves = np.concatenate([curves_of(one) for one in new], axis=1)
            counts = self._follower.counts(new, readings)
            self.take(new[-1].end_s, curves, counts, 1, self._follower.from_s)

    def take(
        self,
        time_s: float,
        curves: Curves,
        counts: NDArray[np.bool_],
        axis: int,
        from_s: float = 0.0,
    ) -> None:
        """Take curves of one shape, several along an axis, the last at `time_s`.

        counts: which of them count, from `from_s` on; if that is earlier than before, a reset was
            undone
        """
        whole = np.fmax.reduce(curves, axis=axis)
        self._hold(time_s, whole)
        follow_reset(self._greatest, _Greatest(from_s))
        if counts.all():
            self._count(whole)
        elif counts.any():
            self._count(np.fmax.reduce(curves.compress(counts, axis=axis), axis=axis))

    def _hold(self, time_s: float, curves: Curves) -> None:
        slot, slots = int(time_s / HOLD_S * SLOTS), self._slots
        if slots and (slot < slots[-1][0] or slots[-1][1].shape != curves.shape):
            slots.clear()
        if slots and slots[-1][0] == slot:
            slots[-1] = slot, np.fmax(slots[-1][1], curves)
        else:
            slots.append((slot, curves))
        while slots[0][0] <= slot - SLOTS:
            slots.pop(0)

    def _count(self, curves: Curves) -> None:
        self._greatest.change(lambda one: _Greatest(one.from_s, _greater(one.curves, curves)))

    def stand_still(self, still: bool) -> None:
        """Freeze the output; the hold still takes new curves."""
        if not still:
            self._still = None
        elif self._still is None:
            self._still = self.held, self.greatest

    @property
    def greatest(self) -> Curves | None:
        """The maximum since the last reset; None without curves."""
        return self._greatest.now.curves if self._still is None else self._still[1]

    @property
    def held(self) -> Curves | None:
        """The maximum of the last two seconds; None without curves."""
        if self._still is not None:
            return self._still[0]
        if not self._slots:
            return None
        return np.asarray(np.fmax.reduce([curves for _, curves in self._slots]))


def _greater(before: Curves | None, after: Curves | None) -> Curves | None:
    """The maximum of both; only the later if their shapes differ."""
    if before is None or after is None:
        return before if after is None else after
    return np.fmax(before, after) if before.shape == after.shape else after
