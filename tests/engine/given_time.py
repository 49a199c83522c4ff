"""Time of an engine that passes only by what its models take and what its microphone gives.

So a test of a computer that is too slow needs neither a slow one nor a quick one, and no patience.
"""

import threading
import time

import numpy as np
import pytest

from amt_stream.dsp.streaming import Stage
from amt_stream.engine import Engine
from amt_stream.engine.inputs import source_runner
from amt_stream.engine.inputs.ring import SampleRing
from amt_stream.engine.models import ladder, measurement, model_runner, slowness
from amt_stream.engine.sources import Deliver, Source
from amt_stream.meters.calibration import Calibration
from tests.engine.slow_models import FS, SlowModel
from tests.patience import PATIENCE_S

BLOCK = FS // 100
DAY_S = 1e9


class Slow(SlowModel):
    """Takes so many seconds of the given time for a second of sound."""

    def __init__(self, seconds: float, clock: "GivenTime") -> None:
        super().__init__(seconds)
        self.clock = clock

    def spend(self, seconds: float) -> None:
        self.clock.work(seconds)


class GivenMicrophone(Source):
    """A microphone that gives noise as time passes; it waits for nobody."""

    live = True

    def __init__(self, clock: "GivenTime") -> None:
        self.name, self.fs, self.channels = "mic", FS, 2
        self._clock, self.over = clock, threading.Event()
        self._deliver: Deliver | None = None
        self._thread: threading.Thread | None = None
        self._block = 0.1 * np.random.default_rng(5).standard_normal((BLOCK, 2))
        self._began_at, self._count = clock.monotonic(), 0

    @property
    def due_at(self) -> float:
        """When its next block is complete."""
        return self._began_at + (self._count + 1) * BLOCK / FS

    def start(self, deliver: Deliver) -> None:
        self._deliver = deliver
        if self.run_in == "callback":
            self._thread = threading.Thread(target=self._run)
            self._thread.start()

    def stop(self) -> None:
        self.over.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        self._clock.engine_is_here()
        while not self.over.is_set():
            if self._clock.reach(self.due_at):
                self.give()

    def give(self) -> None:
        """The next block."""
        self._count += 1
        self._deliver(self._block.astype(np.float32))

    def catch_up(self) -> None:
        """Give all that is due, unless the models run in its thread."""
        while self._thread is None and self._deliver is not None and self.due_at <= self._clock.now:
            self.give()


class GivenTime:
    """The clock of one engine, and its microphone; used in place of the module `time`."""

    def __init__(self) -> None:
        self.now = self._until = time.monotonic()
        self.source = GivenMicrophone(self)
        self._changed = threading.Condition()
        self._at_rest = False
        self._engine: int | None = None

    def monotonic(self) -> float:
        return self.now

    perf_counter = monotonic

    def thread_time(self) -> float:
        """The models sleep."""
        return 0.0

    process_time = thread_time

    def time(self) -> float:
        """Of the day."""
        return DAY_S + self.now

    def sleep(self, seconds: float) -> None:
        """Of threads that build models, which take their own time."""
        threading.Event().wait(seconds)

    def engine_is_here(self) -> None:
        """From now on the work of the models in this thread takes time."""
        self._engine = self._engine or threading.get_ident()

    def work(self, seconds: float) -> None:
        """A model works for so long; meanwhile the microphone goes on."""
        if threading.get_ident() != self._engine:
            return
        done_at = self.now + seconds
        while not (self.reach(done_at) or self.source.over.is_set()):
            pass
        self.source.catch_up()

    def wait_for_sound(self, ring: SampleRing, samples: int) -> None:
        """As `SampleRing.wait`."""
        self.engine_is_here()
        if ring.fill < samples and self.reach(self.source.due_at):
            self.source.catch_up()

    def reach(self, at: float) -> bool:
        """Let time go on, but no further than the test has come; whether it is that time."""
        with self._changed:
            if at > self._until:
                self._at_rest = True
                self._changed.notify_all()
                self._changed.wait(0.01)
                return False
            self.now = max(self.now, at)
            return True

    def go_on(self, seconds: float) -> None:
        """Let so much time pass, and wait for the engine meanwhile."""
        with self._changed:
            self._at_rest, self._until = False, self._until + seconds
            self._changed.notify_all()
            assert self._changed.wait_for(lambda: self._at_rest, PATIENCE_S)

    def go_on_freely(self) -> None:
        """Let time pass for as long as a model works."""
        with self._changed:
            self._until = np.inf
            self._changed.notify_all()


class Processor:
    """What the system tells of the processor: it is all ours."""

    @staticmethod
    def all_waited_s() -> dict[int, float]:
        return {}

    @staticmethod
    def waited_s(thread: int) -> float:
        return 0.0

    @staticmethod
    def throttled() -> None:
        return None

    stolen_s = throttled


def give_time(monkeypatch: pytest.MonkeyPatch) -> GivenTime:
    """Time that the test gives, of an engine on its `source`."""
    clock = GivenTime()
    for module in (model_runner, measurement, slowness, ladder, source_runner):
        monkeypatch.setattr(module, "time", clock)
    monkeypatch.setattr(source_runner, "since_boot_s", clock.monotonic)
    monkeypatch.setattr(slowness, "processor_time", Processor)

    def wait(ring: SampleRing, samples: int, timeout_s: float) -> None:
        clock.wait_for_sound(ring, samples)

    monkeypatch.setattr(SampleRing, "wait", wait)
    return clock


def engine_of(clock: GivenTime, models, sinks=(), **options) -> Engine:
    """An engine on its microphone; however fast time passes, the sinks miss nothing."""
    calibration = Calibration(100.0, source="test")
    return Engine(
        clock.source, models, sinks, calibration=calibration, sink_slack_s=1000.0, **options
    )


def slow(clock: GivenTime, **seconds: float) -> dict[str, Stage]:
    """Models by name, with the seconds that each takes for a second of sound."""
    return {name: Slow(one, clock) for name, one in seconds.items()}
