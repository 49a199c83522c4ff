"""The maximum in each event of sound."""

import math
from collections import deque
from dataclasses import astuple, dataclass

import numpy as np
from numpy.typing import NDArray

from amt_stream.core.saved_state import Resumable
from amt_stream.meters.accumulators import loops

Values = NDArray[np.floating]


@dataclass(frozen=True)
class SoundEvent:
    """A sound from `start_s` to `end_s`, and the maximum of the followed value."""

    start_s: float
    end_s: float
    maximum: float


class Events(Resumable):
    """The maximum of one value in each event of another value.

    An event begins when the detection value reaches `above`, and ends when it falls `hysteresis`
    below that, or after `longest_s`, when the next one begins: the maximum of long-term loudness is
    the loudness of a sound of up to 5 s (Moore et al. 2018). The last `most` events are stored.
    """

    kept = growing = ("past", "under_way")

    def __init__(
        self, above: float, hysteresis: float = 2.0, longest_s: float = 5.0, most: int = 1000
    ) -> None:
        self.above, self.hysteresis, self.longest_s = above, hysteresis, longest_s
        self.events: deque[SoundEvent] = deque(maxlen=most)
        self.present: SoundEvent | None = None

    def add(self, time_s: Values, found_by: Values, followed: Values) -> None:
        """Take rows (n,); NaN ends an event."""
        at, found_by = 0, np.asarray(found_by, np.float64)
        while at < len(time_s):
            if self.present is None:
                begins = np.flatnonzero(found_by[at:] >= self.above)
                if not len(begins):
                    return
                at += int(begins[0])
                self.present = SoundEvent(float(time_s[at]), float(time_s[at]), -math.inf)
            # Half a microsecond: times are sums of floating-point steps.
            until_s = self.present.start_s + self.longest_s - 5e-7
            end = loops.lasts(time_s, found_by, at, until_s, self.above - self.hysteresis)
            if end > at:
                highest = max(self.present.maximum, float(followed[at:end].max()))
                last = float(time_s[end - 1])
                self.present = SoundEvent(self.present.start_s, last, highest)
            if end < len(time_s):
                self.events.append(self.present)
                self.present = None
            at = end

    def __len__(self) -> int:
        return len(self.events)

    @property
    def last(self) -> SoundEvent | None:
        """The current event, or the last one."""
        return self.present or (self.events[-1] if self.events else None)

    @property
    def past(self) -> Values:
        """Start, end and maximum (n, 3) of past events."""
        return np.array([astuple(one) for one in self.events], np.float64).reshape(-1, 3)

    @past.setter
    def past(self, given: Values) -> None:
        self.events = deque((SoundEvent(*one) for one in given.tolist()), self.events.maxlen)

    @property
    def under_way(self) -> Values:
        """Start, end and maximum (0 or 1, 3) of the current event."""
        there = [] if self.present is None else [astuple(self.present)]
        return np.array(there, np.float64).reshape(-1, 3)

    @under_way.setter
    def under_way(self, given: Values) -> None:
        self.present = SoundEvent(*given[-1].tolist()) if len(given) else None
