"""Runs an engine's models on incoming audio."""

import time
from collections.abc import Iterable
from contextlib import AbstractContextManager

import numpy as np
from numpy.typing import NDArray

from amt_stream.engine.health import Load
from amt_stream.engine.inputs.backlog import Backlog
from amt_stream.engine.microphone.clippings import Clippings
from amt_stream.engine.microphone.converter_ends import fits_together, suspect_from
from amt_stream.engine.microphone.input_gains import InputGains
from amt_stream.engine.microphone.offset import FirstSound, offset_words
from amt_stream.engine.models.ladder import Ladder
from amt_stream.engine.models.running_models import RunningModels
from amt_stream.engine.program_end import stop_if_nobody_is_left
from amt_stream.engine.run_state import RunState
from amt_stream.engine.sinks.event_bus import EventBus
from amt_stream.engine.sinks.snapshots import Snapshots
from amt_stream.engine.sources import Block, DeviceLost
from amt_stream.engine.thread_check import runs_as, thread_checked
from amt_stream.meters.frames import Fault

WATCH_S = 0.2
SOURCE_S = 0.5
IDLE_S = 0.02
"""Longest wait for audio before it checks for commands and for the end."""
TOGETHER_S = 0.3
"""Longest sound that it processes at once from a source that can wait."""

Delivered = tuple[Block, int, int]
"""A block, the number of samples missing before it, and its fault bits."""


@thread_checked
class Work:
    """Runs all models on each block and measures the cost.

    ladder: degrades the models while the cost is too high
    """

    def __init__(
        self,
        models: RunningModels,
        backlog: Backlog,
        ladder: Ladder,
        bus: EventBus,
        snapshots: Snapshots,
        state: RunState,
    ) -> None:
        self.load, self.ladder = Load(), ladder
        self._models, self._backlog = models, backlog
        self._bus, self._snapshots, self._state = bus, snapshots, state
        self.gains = InputGains(backlog.timeline, models, bus.here)
        backlog.runner.take_gain = self.gains.take
        self._source = backlog.source
        self._clippings = Clippings(models, self._source.name, self._source.fs, bus.here)
        self._no_sound = np.zeros((0, backlog.source.channels), np.float32)
        self._watched_at = self._cpu_at = self._cpu_s = self._wall_s = 0.0
        self._left_at = time.perf_counter()
        self._samples = 0
        self._dropped = 0
        """Samples reported as dropped so far."""
        self._several = False
        self._suspect_from = suspect_from(self._source.description)
        has_offset = self._source.description.has_offset and not backlog.timeline.restored
        self._first_sound = FirstSound(self._source.fs, self._know_offset) if has_offset else None

    @runs_as("model-thread")
    def run(self, held: Iterable[Delivered] | None) -> None:
        """The engine's thread: warm up the models, process audio, clean up [model-thread].

        held: audio before that in the ring; None if the models run in the source's thread
        """
        state = self._state
        try:
            with self._models.working(owns_thread=True):
                for one in self._models:
                    one.ready.warm()
                state.warm = True
                state.ready.set()
                if held is None:
                    while not (state.stopping.is_set() or state.ended.wait(WATCH_S)):
                        self._watch()
                else:
                    self._drain(held)
                if state.owed and not state.played:
                    self._lose(state.owed)
        except BaseException as error:
            state.error = error
        finally:
            self._tidy_up(until=time.monotonic() + SOURCE_S)

    def _drain(self, held: Iterable[Delivered]) -> None:
        """Process audio, first what was held, then the ring, until its end or the engine's."""
        self.begin()
        ring, state = self._backlog.ring, self._state
        for block, lost, flags in held:
            self._watch_in_time()
            if state.stopping.is_set():
                return
            if not (self.ladder.exhausted and self._backlog.leave_out(block, lost)):
                self.measure(block, *self._backlog.taken_up(lost, flags))
        buffer = np.zeros((0, self._source.channels), np.float32)
        # On another device than the CPU a block is one graph, of one length. Rows of several
        # microphones alternate by block.
        on_cpu, alone = self._models.device.on_cpu, not self._models.microphones
        self._several = not self._source.live and on_cpu and alone
        most = round(TOGETHER_S * self._source.fs) if self._several else 0
        while not state.stopping.is_set():
            self._bus.pass_on()
            self._watch_in_time()
            wanted = min(measurement.position.wanted for measurement in self._models)
            ended = state.ended.is_set()  # read before `fill`, as the last samples precede the end
            fill, enough = ring.fill, min(wanted, ring.capacity // 2)
            if fill < enough and not ended:
                self.ladder.rest()
                began = time.perf_counter()
                ring.wait(enough, IDLE_S)
                # What takes longer than it asked for is not its own wish.
                idle_s = min(IDLE_S, time.perf_counter() - began)
                self.ladder.slowness.idle_s += idle_s
                continue
            if not fill:
                rest = ring.rest()
                self.finish(rest.lost, rest.flags)
                return
            whole = self._models.first.ready.block
            wanted += max(0, min(fill, most) - wanted) // whole * whole
            if len(buffer) < wanted:
                buffer = np.zeros((wanted, self._source.channels), np.float32)
            left_out, why = self._backlog.drop(buffer) if self.ladder.exhausted else (0, 0)
            count, lost, flags = ring.read(buffer[:wanted])
            lost, flags = self._backlog.taken_up(left_out + lost, why | flags)
            self.measure(buffer[:count], lost, flags)

    def _watch_in_time(self) -> None:
        if time.monotonic() > self._watched_at + WATCH_S:
            self._watch()
            self._bus.sink_notes()
            self._watched_at = time.monotonic()

    def _watch(self) -> None:
        self._bus.pass_on()
        stall_s, silent_s = self._source.stall_s, self._backlog.timeline.silent_for_s
        if not self._state.ended.is_set() and silent_s > stall_s:
            raise DeviceLost(f"{self._source.name!r} has delivered nothing for {stall_s:g} s")
        if not self._state.stopping.is_set():
            stop_if_nobody_is_left()

    def _tidy_up(self, until: float) -> None:
        """Take the last snapshot, send the last events, then end the source and all sinks."""
        self._state.close()
        self._keep_last(until)
        self._state.ready.set()
        self._bus.sink_notes()
        self._bus.pass_on()
        self._bus.notes()
        threads = self._bus.sinks.end()
        self._backlog.runner.end()
        self._backlog.runner.join(until - time.monotonic())
        for sink_thread in threads:
            sink_thread.close()
        self.ladder.end(until)
        self._state.gone.set()

    def _keep_last(self, until: float) -> None:
        """Take a snapshot of the position where the engine was stopped."""
        if self._state.error is not None or self._state.played:
            return
        # A model that hangs in its callback has no consistent state.
        if self._state.models_run.acquire(timeout=max(0.0, until - time.monotonic())):
            for listener in self._models.first.listeners:
                listener.close_hole()
            self._snapshots.now()
            self._state.models_run.release()

    def in_thread_of_source(self) -> AbstractContextManager[object]:
        """What the models need in a thread that is not their own [audio-thread]."""
        return self._models.working(owns_thread=False)

    def begin(self) -> None:
        """Exclude this thread's CPU time so far from the models' cost [model-thread]."""
        self._cpu_at = time.thread_time()

    def measure(self, block: Block, lost: int, flags: int) -> None:
        """Run the models on a block, before which `lost` samples are missing [model-thread]."""
        if self._first_sound is None:
            self._measure(block, lost, flags)
            return
        for one in self._first_sound.take(block, lost, flags):
            self._measure(*one)
        if self._first_sound.over:
            self._first_sound = None

    def _know_offset(self, offset: NDArray[np.float64]) -> None:
        """Remove an offset from the next sample on, and tell people of a large one."""
        source = self._source
        is_measured = np.zeros(source.channels, bool)
        for measurement in self._models:
            measurement.know_offset(offset)
            for listener in measurement.listeners:
                is_measured[listener.input.columns] = True
        source.know_offset(np.where(is_measured, offset, np.nan).tolist())
        if words := offset_words(source.description.offset):
            self._bus.here("offset", f"{source.name} has an offset of {words}, which is removed")

    def _measure(self, block: Block, lost: int, flags: int) -> None:
        wall_at = time.perf_counter()
        self.gains.look()
        if self._source.run_in == "callback":
            self.ladder.slowness.idle_s += wall_at - self._left_at
        self._bus.block(block, lost, flags, self._note_dropped(lost))
        together = self._several and fits_together(block, self._suspect_from)
        for measurement in self._models:
            measurement.late = self.ladder.active
            measurement.take(block, lost, flags, together)
        self._clippings.look()
        cpu_at = time.thread_time()
        self._wall_s += time.perf_counter() - wall_at
        self._cpu_s += cpu_at - self._cpu_at
        self._cpu_at = cpu_at
        self._samples += len(block)
        if self._samples >= self._models.first.ready.block:
            self._note_cost()
        self._snapshots.in_time()
        self._left_at = time.perf_counter()

    def _note_dropped(self, lost: int) -> int:
        """How many of `lost` samples were dropped by this program, reported once."""
        if not lost:
            return 0
        dropped = min(lost, self._backlog.dropped - self._dropped)
        self._dropped += dropped
        for listener in self._models.first.listeners:
            listener.gaps.dropped += dropped
        return dropped

    def _lose(self, samples: int) -> None:
        """Count samples that will never come as missing at the end [model-thread]."""
        silent = Fault.SILENT if self._source.state == "silent" else 0
        self.measure(self._no_sound, samples, silent)

    def finish(self, lost: int, flags: int = 0) -> None:
        """After the source's end, with `lost` samples missing there, flush the models."""
        state = self._state
        if self._first_sound is not None:
            for one in self._first_sound.rest():
                self._measure(*one)
        self._bus.gap(lost, flags, self._note_dropped(lost))
        if lost or flags:
            self._bus.sound(self._no_sound, lost, flags)
        for measurement in self._models:
            measurement.take(self._no_sound, lost, flags)
        self._snapshots.now()
        for measurement in self._models:
            measurement.flush()
        # Commands given during the last block have no next block to wait for.
        while not state.close(self._no_commands):
            for measurement in self._models:
                measurement.obey()
        state.error = state.error or self._source.error
        state.played = state.error is None
        state.ended.set()

    def _no_commands(self) -> bool:
        return all(measurement.commands.empty() for measurement in self._models)

    def _note_cost(self) -> None:
        """Record the cost of a block of the first model and all that ran with it."""
        audio_s, live = self._samples / self._source.fs, self._source.live
        self.load.add(self._cpu_s, self._wall_s, audio_s)
        if live and self._source.run_in == "callback":
            self._backlog.worked(self._wall_s, audio_s)
            if not self._backlog.behind_s:
                self.ladder.rest()
        if live:
            lag_s = self._backlog.seconds
            self.ladder.worked(time.monotonic(), self._wall_s, audio_s, lag_s)
        self._cpu_s = self._wall_s = 0.0
        self._samples = 0
