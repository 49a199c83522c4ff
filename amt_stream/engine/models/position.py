"""Where a measurement is in its sound: samples, blocks and frames."""

from collections.abc import Mapping

from amt_stream.core.saved_state import Resumable
from amt_stream.engine.models.ready_model import ReadyModel

LATE_PEAK = 6
"""Delay in samples of interpolated peaks."""

LATEST = 2**60
"""Upper limit of a plausible sample count: a million years of sound."""


class Position(Resumable):
    """The sample counter of a measurement, its only clock, and the model that it counts for.

    ready: the model that runs at present
    sample: input samples so far, including lost ones
    begin, end: the first sample, and where the sound has ended, or None
    index: the next frame of the model
    first: the first frame that was not given before
    """

    kept = ("sample", "_origin", "index", "first", "ready")

    def __init__(self, ready: ReadyModel, begin: int) -> None:
        if begin < 0 or begin % ready.model.block_size:
            raise ValueError(
                f"first_sample is {begin}: give a multiple of {ready.model.block_size} samples, "
                f"the block of {type(ready.model).__name__}"
            )
        self.sample = self.begin = begin
        self.end: int | None = None
        self.run(ready)
        self.first = ready.clock.first_from(begin)

    def run(self, ready: ReadyModel) -> None:
        """Count in the blocks and frames of another model from here on."""
        self.ready, self._origin = ready, self.sample
        self.index = int(self.sample * ready.clock.ratio)

    def first_of(self, ready: ReadyModel) -> int:
        """The first frame of another model after those that the present one has given."""
        reached = self.ready.clock.position(self.given)
        return max(ready.clock.first_from(self.begin), ready.clock.first_after(reached))

    @property
    def given(self) -> int:
        """The last frame that was given, or is before the first one."""
        return max(self.index, self.first) - 1

    @property
    def wanted(self) -> int:
        """Samples still needed for the present block."""
        return self.ready.block - self.held

    @property
    def held(self) -> int:
        """Samples of the present block so far."""
        return (self.sample - self._origin) % self.ready.block

    @property
    def samples(self) -> int:
        """Input samples so far, including lost ones, up to the end of the sound [any-thread]."""
        return self.sample if self.end is None else self.end

    def skip_blocks(self, to: int) -> int:
        """Skip the whole blocks before a sample; returns the number of samples."""
        skipped = (to - self.sample) // self.ready.block * self.ready.block
        self.sample += skipped
        self.index += int(skipped * self.ready.clock.ratio)
        return skipped

    def tail_stop(self, end: int, steady: bool) -> int:
        """Index after the last frame that a sound needs that ended there.

        steady: whether it was steady, so that nothing of its end rings on
        """
        clock, model = self.ready.clock, self.ready.model
        after_s = 0.0 if steady else model.tail_s
        stop = clock.first_after(end + round(after_s * clock.fs))
        # The frame at the end includes sound, and peaks are slightly late.
        past = clock.first_from(end + LATE_PEAK) + 1 if model.frames_stand_for_end else 0
        return max(stop, past)

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        super().load_state_dict(state)
        self.refuse_state(LATEST > self.sample >= self._origin >= 0, "sample")
