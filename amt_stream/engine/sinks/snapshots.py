"""Snapshots of an engine's state, once a second."""

import math
import time
from collections.abc import Mapping

from amt_stream import __version__
from amt_stream.core.saved_state import Resumable, Unfitting
from amt_stream.engine.clock import ClockReading
from amt_stream.engine.devices.portaudio import since_boot_s
from amt_stream.engine.models.running_models import RunningModels
from amt_stream.engine.sinks.sinks import Sinks
from amt_stream.engine.sources import SourceError
from amt_stream.engine.thread_check import thread_checked
from amt_stream.engine.timeline import Timeline
from amt_stream.meters.frames import Snapshot

SNAPSHOT_S = 1.0


@thread_checked
class Snapshots(Resumable):
    """The state of an engine: hands it to the sinks that take snapshots, and restores it.

    epoch: UTC of the first sample
    moment: when the state was
    """

    kept = ("version", "fs", "epoch", "moment", "models")

    def __init__(self, models: RunningModels, timeline: Timeline, sinks: Sinks) -> None:
        self.version, self.fs, self.models = __version__, int(timeline.source.fs), models.of
        self.epoch, self.moment = 0.0, ClockReading()
        self._timeline, self._sinks = timeline, sinks
        self._next_at = -math.inf

    @property
    def _position(self) -> int:
        return next(iter(self.models.values())).position.sample

    def restore(self, state: Mapping[str, object]) -> None:
        """Resume where `state` was saved [before start].

        Raises ValueError for a state that does not fit, and SourceError for a source that cannot
        resume.
        """
        source = self._timeline.source
        if not (source.live or source.seekable):
            raise SourceError(f"{source.name} cannot resume: it cannot seek")
        self.load_state_dict(state)
        if source.seekable:
            source.seek(self._position)
        self._timeline.begin(self._position, self.epoch, self.moment)

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Raises Unfitting for the state of another version, rate or model [before start]."""
        for name, mine in (("version", self.version), ("fs", self.fs)):
            was = state.get(name)
            if was != mine:
                raise Unfitting(f"the {name} was {was!r:.40}, and is {mine!r}: go on with the same")
        super().load_state_dict(state)
        if len({one.position.sample for one in self.models.values()}) > 1:
            raise Unfitting("the models of the state are at different samples")

    def in_time(self) -> None:
        """Take a snapshot if the last is a second old [model-thread]."""
        if time.monotonic() >= self._next_at:
            self.now()

    def now(self) -> None:
        """Take a snapshot now [model-thread]."""
        self._next_at = time.monotonic() + SNAPSHOT_S
        arrivals = self._timeline.arrivals
        if not self._sinks.takes(Snapshot) or not arrivals.callbacks:
            return
        sample = self._position
        time_s = sample / self.fs
        self.epoch = self._timeline.epoch(time_s)
        utc = self.epoch + time_s
        self.moment = ClockReading(since_boot_s() - arrivals.arrived_at(time_s), utc)
        self._sinks.give(Snapshot(sample, utc, self.state_dict()))
