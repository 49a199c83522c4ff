"""The models of an engine, run on what arrives."""

import time
from collections.abc import Callable, Iterable, Mapping

import numpy as np

from amt_stream.engine.backlog import Backlog
from amt_stream.engine.clock import UtcScale
from amt_stream.engine.course import Course
from amt_stream.engine.health import Load
from amt_stream.engine.keeping import Keeping
from amt_stream.engine.ladder import Ladder
from amt_stream.engine.measurement import Measurement
from amt_stream.engine.outlets import Outlets
from amt_stream.engine.sources import Block, Source
from amt_stream.engine.telling import Telling
from amt_stream.frames import Chunk

IDLE_S = 0.02
"""So often at least it looks for what else there is to do, and for its end."""

Delivered = tuple[Block, int, int]
"""A block, how many samples are missing before it, and the bits of its faults."""


class Work:
    """Runs all models on each block, notes what that costs, and tells what comes with it.

    in_callback: whether this is done in the source's own thread, where sound waits for it
    """

    def __init__(
        self,
        source: Source,
        measurements: Mapping[str, Measurement],
        backlog: Backlog,
        ladder: Ladder,
        utc: UtcScale,
        epoch: Callable[[float], float],
        telling: Telling,
        outlets: Outlets,
        keeping: Keeping,
        course: Course,
        in_callback: bool,
    ) -> None:
        self.load = Load()
        self._source, self._measurements = source, tuple(measurements.values())
        self._backlog, self._ladder, self._utc, self._epoch = backlog, ladder, utc, epoch
        self._telling, self._outlets, self._keeping = telling, outlets, keeping
        self._course, self._in_callback = course, in_callback
        self._no_sound = np.zeros((0, source.channels), np.float32)
        self._cpu_at = self._cpu_s = self._wall_s = 0.0
        self._samples = 0

    def drain(self, watch: Callable[[], None], held: Iterable[Delivered] = ()) -> None:
        """Work off what comes into the ring, until its end or the engine's [engine-thread].

        watch: called in between
        held: what comes before that
        """
        self.begin()
        ring, course = self._backlog.ring, self._course
        for block, lost, flags in held:
            watch()
            if course.stopping.is_set():
                return
            if not (self._ladder.exhausted and self._backlog.leave_out(block, lost)):
                self.measure(block, *self._backlog.taken_up(lost, flags))
        buffer = np.zeros((0, self._source.channels), np.float32)
        while not course.stopping.is_set():
            self._telling.pass_on()
            watch()
            wanted = min(measurement.wanted for measurement in self._measurements)
            ended = course.ended.is_set()  # before the fill: the last samples come before the end
            fill, enough = ring.fill, min(wanted, ring.capacity // 2)
            if fill < enough and not ended:
                self._ladder.rest()
                ring.wait(enough, IDLE_S)
                continue
            if not fill:
                rest = ring.rest()
                self.finish(rest.lost, rest.flags)
                return
            if len(buffer) < wanted:
                buffer = np.zeros((wanted, self._source.channels), np.float32)
            left_out, why = self._backlog.drop(buffer) if self._ladder.exhausted else (0, 0)
            count, lost, flags = ring.read(buffer[:wanted])
            lost, flags = self._backlog.taken_up(left_out + lost, why | flags)
            self.measure(buffer[:count], lost, flags)

    def begin(self) -> None:
        """What this thread did until now was no work of models [engine-thread]."""
        self._cpu_at = time.thread_time()

    def measure(self, block: Block, lost: int, flags: int) -> None:
        """Run the models on a block, before which `lost` samples are missing [engine-thread]."""
        wall_at = time.perf_counter()
        self._telling.sinks()
        self._telling.pass_on()
        if self._source.live and (change := self._utc.change()):
            self._telling.here("clock", change)
        self._telling.gap(lost, flags)
        self._tell_sound(block, lost, flags)
        began = time.perf_counter()
        for measurement in self._measurements:
            measurement.late = self._ladder.active
            measurement.take(block, lost, flags)
            measurement.took((ended := time.perf_counter()) - began)
            began = ended
        cpu_at = time.thread_time()
        self._wall_s += time.perf_counter() - wall_at
        self._cpu_s += cpu_at - self._cpu_at
        self._cpu_at = cpu_at
        self._samples += len(block)
        if self._samples >= self._measurements[0].ready.block:
            self._note_cost()
        self._keeping.in_time()

    def lose(self, samples: int) -> None:
        """Samples that will never come are missing at the end [engine-thread]."""
        self.measure(self._no_sound, samples, 0)

    def finish(self, lost: int, flags: int = 0) -> None:
        """The source has ended, `lost` samples after the last: bring out what is still inside."""
        course = self._course
        self._telling.gap(lost, flags)
        if lost or flags:
            self._tell_sound(self._no_sound, lost, flags)
        for measurement in self._measurements:
            measurement.take(self._no_sound, lost, flags)
        self._keeping.now()
        for measurement in self._measurements:
            measurement.flush()
        # What was commanded in the last block has no next one.
        while not course.close(self._nobody_commands):
            for measurement in self._measurements:
                measurement.obey()
        course.error = course.error or self._source.error
        course.played = course.error is None
        course.ended.set()

    def _nobody_commands(self) -> bool:
        return all(measurement.commands.empty() for measurement in self._measurements)

    def _note_cost(self) -> None:
        """Of a block of the first model, and what came with it."""
        audio_s, live = self._samples / self._source.fs, self._source.live
        self.load.add(self._cpu_s, self._wall_s, audio_s)
        if self._in_callback and live:
            self._backlog.worked(self._wall_s, audio_s)
            if not self._backlog.behind_s:
                self._ladder.rest()
        if live:
            lag_s = self._backlog.seconds
            self._ladder.worked(time.monotonic(), self._wall_s, audio_s, lag_s)
        self._cpu_s = self._wall_s = 0.0
        self._samples = 0

    def _tell_sound(self, block: Block, lost: int, flags: int) -> None:
        """Hand a copy of the sound to every sink that hears it."""
        if not self._outlets.hear_sound:
            return
        sample = self._measurements[0].position + lost
        time_s = sample / self._source.fs
        samples = block.copy()
        samples.flags.writeable = False
        utc = self._epoch(time_s) + time_s
        self._outlets.hear(Chunk(samples, sample, utc, lost, flags))
