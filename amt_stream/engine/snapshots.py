"""Snapshots of an engine's state, once a second."""

import math
import time
from collections.abc import Mapping

from amt_stream.engine.clock import ClockReading
from amt_stream.engine.devices.portaudio import since_boot_s
from amt_stream.engine.restore import Standing
from amt_stream.engine.running_models import RunningModels
from amt_stream.engine.sinks import Sinks
from amt_stream.engine.sources import SourceError
from amt_stream.engine.thread_check import thread_checked
from amt_stream.engine.timeline import Timeline
from amt_stream.meters.frames import Snapshot

SNAPSHOT_S = 1.0


@thread_checked
class Snapshots:
    """Hands snapshots to the sinks that take them, and restores from one."""

    def __init__(self, models: RunningModels, timeline: Timeline, sinks: Sinks) -> None:
        self._models, self._timeline, self._sinks = models, timeline, sinks
        self._standing = Standing(timeline.source.fs, models.of)
        self._next_at = -math.inf

    def restore(self, state: Mapping[str, object]) -> None:
        """Resume where `state` was saved [before start].

        Raises ValueError for a state that does not fit, and SourceError for a source that cannot
        resume.
        """
        source = self._timeline.source
        if not (source.live or source.seekable):
            raise SourceError(f"{source.name} cannot resume: it cannot seek")
        self._standing.load_state_dict(state)
        if source.seekable:
            source.seek(self._models.position)
        self._timeline.begin(self._models.position, self._standing)

    def in_time(self) -> None:
        """Take a snapshot if the last is a second old [model-thread]."""
        if time.monotonic() >= self._next_at:
            self.now()

    def now(self) -> None:
        """Take a snapshot now [model-thread]."""
        self._next_at = time.monotonic() + SNAPSHOT_S
        arrivals = self._timeline.arrivals
        if not self._sinks.hear_snapshots or not arrivals.callbacks:
            return
        standing, sample = self._standing, self._models.position
        time_s = sample / standing.fs
        standing.epoch = self._timeline.epoch(time_s)
        utc = standing.epoch + time_s
        standing.moment = ClockReading(since_boot_s() - arrivals.arrived_at(time_s), utc)
        self._sinks.keep(Snapshot(sample, utc, standing.state_dict()))
