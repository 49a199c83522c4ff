"""Sound that waits for the models."""

from amt_stream.engine.ring import SampleRing
from amt_stream.engine.source_runner import SourceRunner
from amt_stream.engine.sources import Block
from amt_stream.engine.thread_check import thread_checked
from amt_stream.engine.timeline import Timeline
from amt_stream.meters.frames import Fault


@thread_checked
class Backlog:
    """What waits in the ring, or in the callback that runs the models, and what is left out of it.

    Only one of the two ways is gone: of a callback the ring stays empty and its length is how far
    the models may lag. Before the ring waits what the source runner has kept.
    """

    def __init__(self, runner: SourceRunner, ring: SampleRing, timeline: Timeline) -> None:
        self.runner, self.ring, self.timeline = runner, ring, timeline
        self.source = runner.source
        self.behind_s = 0.0
        self.overran = False
        self.skipped = 0
        self._overruns = 0
        self._skips = self._leaves_out = False

    def arrived(self, count: int, lost: int, came_at: float | None = None) -> tuple[int, bool]:
        """Count a block of `count` samples; what is missing before it, and if it is late.

        came_at: as of `Arrivals.note` [audio-thread, model-thread]
        """
        lost += self.timeline.missing_before(count, came_at)
        late = self.timeline.arrivals.note(count + lost, came_at)
        return lost, late and self.source.live

    @property
    def seconds(self) -> float:
        """How much sound waits [any-thread]."""
        return (self.runner.samples + self.ring.fill) / self.source.fs + self.behind_s

    @property
    def overruns(self) -> int:
        """How often it was too much [any-thread]."""
        return self._overruns + self.ring.overflows

    def worked(self, wall_s: float, audio_s: float) -> None:
        """The models took `wall_s` of a callback [model-thread]."""
        # A long block is made good by those after it, as long as the device can wait.
        self.behind_s = max(0.0, self.behind_s + wall_s - audio_s)
        self.overran = self.behind_s > self.source.slack_s
        self._overruns += self.overran

    def skip(self, samples: int) -> bool:
        """Leave out what comes once the models lag by what a ring holds, until they lag no more.

        Of a callback [model-thread].
        """
        fs = self.source.fs
        longest_s = 0.0 if self._skips else self.ring.capacity / fs
        if not self.source.live or self.behind_s <= longest_s:
            self._skips = False
            return False
        self._overruns += not self._skips
        self._skips = True
        self.skipped += samples
        self.behind_s = max(0.0, self.behind_s - samples / fs)
        return True

    def leave_out(self, block: Block, lost: int) -> bool:
        """Whether a block is left out, with all that the source runner has kept, as of `drop`."""
        if self.runner.samples > self.ring.capacity // 2 and not self._leaves_out:
            self._leaves_out = True
            self._overruns += 1
        if self._leaves_out:
            self._leaves_out = self.runner.samples > 0
            self.skipped += lost + len(block)
            return True
        return False

    def taken_up(self, lost: int, flags: int) -> tuple[int, int]:
        """The same, with what was left out before it."""
        if not self.skipped:
            return lost, flags
        lost, self.skipped = lost + self.skipped, 0
        return lost, flags | Fault.OVERLOAD

    def drop(self, buffer: Block) -> tuple[int, int]:
        """Leave out what waits, in pieces of a buffer, where it is more than half a ring.

        It costs less, and less delay, than to lose a little at the end of the ring for ever.
        Gives how many samples that were, and their faults [model-thread].
        """
        lost, flags = 0, 0
        if self.ring.fill > self.ring.capacity // 2:
            self._overruns += 1
            flags = Fault.OVERLOAD
            while self.ring.fill >= len(buffer):
                read = self.ring.read(buffer)
                lost, flags = lost + read.copied + read.lost, flags | read.flags
        return lost, flags
