"""What a source delivers to: the ring, or the models directly."""

from collections.abc import Callable, Iterator

import numpy as np

from amt_stream.engine.inputs.backlog import Backlog
from amt_stream.engine.models.model_runner import Delivered, Work
from amt_stream.engine.run_state import RunState
from amt_stream.engine.sources import Block, as_block, as_lost
from amt_stream.engine.thread_check import runs_as, thread_checked
from amt_stream.meters.frames import Fault


@thread_checked
class IntoRing:
    """Copies blocks into the ring; a source that is not live waits for room."""

    def __init__(self, backlog: Backlog, state: RunState) -> None:
        self._source, self._backlog, self._state = backlog.source, backlog, state
        self._no_sound = np.zeros((0, backlog.source.channels), np.float32)

    def __call__(self, block: Block | None, lost: int = 0, flags: int = 0) -> None:
        """Take a block; None is the end [audio-thread, model-thread]."""
        source, backlog = self._source, self._backlog
        ring = backlog.ring
        try:
            lost = as_lost(lost)
            dropped = _dropped(lost, flags)
            if block is None:
                ring.write(self._no_sound, lost, flags, dropped)
                self._state.ended.set()
                ring.wake()
                return
            block = as_block(block, source.channels)
        except (TypeError, ValueError) as error:
            self._state.fail(error)
            raise
        lost, flags = self._noted(block, lost, flags)
        if source.can_wait:
            ring.write_waiting(block, lost, flags, lambda: self._state.is_over, dropped)
        else:
            ring.write(block, lost, flags, dropped)

    def held(self, tell: Callable[[str, str], None]) -> Iterator[Delivered]:
        """Blocks that the source's runner held; later ones come to the ring [model-thread]."""
        for block, lost, flags, came_at in self._backlog.runner.held(self, tell):
            self._backlog.note_dropped(_dropped(lost, flags))
            yield (block, *self._noted(block, lost, flags, came_at))

    def _noted(
        self, block: Block, lost: int, flags: int, came_at: float | None = None
    ) -> tuple[int, int]:
        """Samples missing before a block, and its faults."""
        lost, late = self._backlog.arrived(len(block), lost, came_at)
        # A source that reports its state judges stalls itself.
        late = late and not self._source.state
        return lost, flags | (Fault.OVERLOAD if late else 0)


@thread_checked
class InCallback:
    """Runs the models in the source's thread."""

    def __init__(self, backlog: Backlog, work: Work, state: RunState) -> None:
        self._backlog, self._work, self._state = backlog, work, state

    def __call__(self, block: Block | None, lost: int = 0, flags: int = 0) -> None:
        """Take a block; None is the end [audio-thread]."""
        with self._state.models_run:
            if self._state.is_over or self._state.ended.is_set():
                return
            try:
                with self._work.in_thread_of_source():
                    self._process(block, as_lost(lost), flags)
            except BaseException as error:
                self._state.fail(error)

    @runs_as("model-thread")
    def _process(self, block: Block | None, lost: int, flags: int) -> None:
        backlog = self._backlog
        backlog.note_dropped(_dropped(lost, flags))
        if block is None:
            flags |= Fault.OVERLOAD if backlog.skipped else 0
            self._work.finish(lost + backlog.skipped, flags)
            return
        block = as_block(block, backlog.source.channels)
        lost, late = backlog.arrived(len(block), lost)
        if backlog.skip(len(block), lost):
            return
        lost, flags = backlog.taken_up(lost, flags)
        flags |= Fault.OVERLOAD if late or backlog.overran else 0
        self._work.begin()
        self._work.measure(block, lost, flags)


def _dropped(lost: int, flags: int) -> int:
    """How many of `lost` samples were dropped by this program, by what the source says."""
    return lost if flags & Fault.OVERLOAD else 0
