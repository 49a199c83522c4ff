"""Audio that waits for the models."""

from amt_stream.engine.inputs.ring import SampleRing
from amt_stream.engine.inputs.source_runner import SourceRunner, arrival_of
from amt_stream.engine.sources import Block
from amt_stream.engine.thread_check import thread_checked
from amt_stream.engine.timeline import Timeline
from amt_stream.meters.frames import Fault


@thread_checked
class Backlog:
    """Tracks the audio that waits for the models, and what is dropped.

    With the ring, audio waits there, and before that in the source runner. With models in the
    callback, the ring stays empty and its length limits how far the models may lag.
    """

    def __init__(self, runner: SourceRunner, ring: SampleRing, timeline: Timeline) -> None:
        self.runner, self.ring, self.timeline = runner, ring, timeline
        self.source = runner.source
        self.behind_s = 0.0
        self.overran = False
        self.skipped = 0
        self._overruns = self._dropped = 0
        self._skips = self._leaves_out = False

    def arrived(self, count: int, lost: int, came_at: float | None = None) -> tuple[int, bool]:
        """Count a block of `count` samples; returns the samples lost before it, and if it is late.

        came_at: see `Arrivals.note` [audio-thread, model-thread]
        """
        if came_at is None:
            came_at = arrival_of(self.source)
        lost += self.timeline.missing_before(count + lost, came_at)
        late = self.timeline.arrivals.note(count + lost, came_at)
        return lost, late and not self.source.can_wait

    @property
    def dropped(self) -> int:
        """Samples dropped by this program, of those that are known to be missing."""
        return self._dropped + self.ring.dropped

    def note_dropped(self, samples: int) -> None:
        """Count missing samples that were dropped before they came here [model-thread]."""
        self._dropped += samples

    @property
    def seconds(self) -> float:
        """Seconds of audio that wait [any-thread]."""
        return (self.runner.samples + self.ring.fill) / self.source.fs + self.behind_s

    @property
    def overruns(self) -> int:
        """Number of overruns [any-thread]."""
        return self._overruns + self.ring.overflows

    def worked(self, wall_s: float, audio_s: float) -> None:
        """Account for `wall_s` that the models took in a callback [model-thread]."""
        # Later blocks can make up for a long one while the device's buffer lasts.
        self.behind_s = max(0.0, self.behind_s + wall_s - audio_s)
        if self.source.can_wait:
            self.behind_s = min(self.behind_s, self.ring.capacity / self.source.fs)
            return
        self.overran = self.behind_s > self.source.slack_s
        self._overruns += self.overran

    def skip(self, count: int, lost: int) -> bool:
        """Whether to drop a block of `count` samples, before which `lost` are missing.

        It does so once the models lag by a ring's length, until they catch up. For models in the
        callback [model-thread].
        """
        fs = self.source.fs
        longest_s = 0.0 if self._skips else self.ring.capacity / fs
        if self.source.can_wait or self.behind_s <= longest_s:
            self._skips = False
            return False
        self._overruns += not self._skips
        self._skips = True
        self.skipped += lost + count
        self._dropped += count
        self.behind_s = max(0.0, self.behind_s - (lost + count) / fs)
        return True

    def leave_out(self, block: Block, lost: int) -> bool:
        """Whether to drop a block, as `drop` does; then all that the source runner holds goes."""
        if self.source.can_wait:
            return False
        if self.runner.samples > self.ring.capacity // 2 and not self._leaves_out:
            self._leaves_out = True
            self._overruns += 1
        if self._leaves_out:
            self._leaves_out = self.runner.samples > 0
            self.skipped += lost + len(block)
            self._dropped += len(block)
            return True
        return False

    def taken_up(self, lost: int, flags: int) -> tuple[int, int]:
        """Add the samples dropped before a block to its losses and faults."""
        if not self.skipped:
            return lost, flags
        lost, self.skipped = lost + self.skipped, 0
        return lost, flags | Fault.OVERLOAD

    def drop(self, buffer: Block) -> tuple[int, int]:
        """Drop all that waits, in pieces of `buffer`, if it fills more than half the ring.

        One large gap is cheaper than a constant delay with small losses. Returns the number of
        samples and their faults [model-thread].
        """
        lost, flags = 0, 0
        if self.ring.fill > self.ring.capacity // 2 and not self.source.can_wait:
            self._overruns += 1
            flags = Fault.OVERLOAD
            while self.ring.fill >= len(buffer):
                read = self.ring.read(buffer)
                self._dropped += read.copied
                lost, flags = lost + read.copied + read.lost, flags | read.flags
        return lost, flags
