"""UTC of the sound of a measurement: it drifts, and jumps where the computer's clock was set."""

from datetime import tzinfo

import numpy as np
from numpy.typing import NDArray

from amt_stream.core.clock import SAME_S, Moment
from amt_stream.engine.clock import STEP_S

Numbers = NDArray[np.float64]


class SoundClock:
    """Converts times of sound, in seconds since its first sample, to UTC and back.

    A row that the clock was set before has the new time since the row before it.

    time_s, utc_s: arrays (row,) of rows with known UTC, at least one
    set_s: after these times the clock is another one
    """

    def __init__(self, time_s: Numbers, utc_s: Numbers) -> None:
        cuts = np.flatnonzero(np.abs(np.diff(utc_s - time_s)) > STEP_S) + 1
        self.set_s: Numbers = time_s[cuts - 1]
        # A clock that was set back by less than a step is slower than the sound, never earlier.
        each = zip(np.split(time_s, cuts), np.split(utc_s, cuts), strict=True)
        self._courses = [(times, np.maximum.accumulate(moments)) for times, moments in each]

    def utc(self, time_s: float, after: bool = False) -> float:
        """UTC at a time of sound, in seconds since 1970.

        after: where the clock was set, as it was from then on
        """
        return _along(time_s, *self._courses[self._place(time_s, after)])

    def next_set(self, time_s: float) -> float:
        """When the clock was set for the first time after a time of sound, or infinity."""
        later = self.set_s[self._place(time_s, True) :]
        return float(later[0]) if len(later) else np.inf

    def until(self, utc_s: float, begin_s: float) -> float:
        """When the clock that applies from `begin_s` on comes to `utc_s`, if nobody sets it."""
        times, moments = self._courses[self._place(begin_s, True)]
        return max(begin_s, _along(utc_s, moments, times))

    def time_s(self, moment: Moment, zone: tzinfo | None, from_s: float) -> float:
        """The time of sound that a user means, as `Moment.time_s` gives it.

        Of several clocks it is by the first that shows the time.
        """
        for times, moments in self._courses:
            first_s = max(from_s, float(times[0]))
            start = float(moments[0] - times[0])
            if first_s <= times[-1] + SAME_S:
                utc_s = moment.time_s(start, zone, first_s) + start
                if moments[0] - STEP_S <= utc_s <= moments[-1] + STEP_S:
                    return _along(utc_s, moments, times)
        return moment.time_s(self.utc(from_s) - from_s, zone, from_s)

    def _place(self, time_s: float, after: bool) -> int:
        if after:
            return int(np.searchsorted(self.set_s, time_s + SAME_S, side="right"))
        return int(np.searchsorted(self.set_s, time_s - SAME_S, side="left"))


def _along(x: float, xs: Numbers, ys: Numbers) -> float:
    """Interpolate, and extrapolate second by second."""
    beyond = min(x - xs[0], 0.0) + max(x - xs[-1], 0.0)
    return float(np.interp(x, xs, ys) + beyond)
