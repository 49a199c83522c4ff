"""Snapshots of all that an engine holds, once a second."""

import math
import time
from collections.abc import Callable

from amt_stream.engine.health import Arrivals
from amt_stream.engine.outlets import Outlets
from amt_stream.engine.portaudio import since_boot_s
from amt_stream.engine.resuming import Moment, Standing
from amt_stream.frames import Snapshot

SNAPSHOT_S = 1.0


class Keeping:
    """Hands snapshots to the sinks that hear them, if there are some.

    epoch: gives UTC of the first sample, as known at a time of the sound
    """

    def __init__(
        self,
        standing: Standing,
        arrivals: Arrivals,
        epoch: Callable[[float], float],
        outlets: Outlets,
    ) -> None:
        self._standing, self._arrivals = standing, arrivals
        self._epoch, self._outlets = epoch, outlets
        self._next_at = -math.inf

    def in_time(self) -> None:
        """Keep one where the last is a second old [engine-thread]."""
        if time.monotonic() >= self._next_at:
            self.now()

    def now(self) -> None:
        """Keep one at once [engine-thread]."""
        self._next_at = time.monotonic() + SNAPSHOT_S
        if not self._outlets.hear_snapshots or not self._arrivals.callbacks:
            return
        standing = self._standing
        sample = next(iter(standing.models.values())).position
        time_s = sample / standing.fs
        standing.epoch = self._epoch(time_s)
        utc = standing.epoch + time_s
        standing.moment = Moment(since_boot_s() - self._arrivals.heard_at(time_s), utc)
        self._outlets.keep(Snapshot(sample, utc, standing.state_dict()))
