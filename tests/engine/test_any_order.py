"""Random faults and random calls from several threads: whatever comes, an engine bears it."""

import contextlib
import threading
import time

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from amt_stream.engine import Engine, EngineEnded, FaultSource, SignalSource
from amt_stream.meters.calibration import Calibration
from amt_stream.meters.signals import Noise
from tests.engine.conftest import Collector, PowerMeter
from tests.engine.test_ends import fail, leave, spoil

SOUND_S = 0.4
END_S = 60.0
NOISE = Noise(level_db=60.0)

KINDS = ["drop", "late", "nan", "clip", "silence", "unplug", "stall"]
LENGTHS = st.one_of(st.floats(0.0, 0.05), st.floats(0.0, 0.3), st.floats(1.0, 1.4))
FAULTS = st.lists(st.tuples(st.sampled_from(KINDS), st.floats(0.0, SOUND_S), LENGTHS), max_size=6)
DONE = ["reset", "calibrate", "swap", "swap back", "pause", "rows", "latest", "look"]
CALLS = st.lists(st.tuples(st.sampled_from(DONE), st.integers(0, 5)), max_size=8)
STOPS = st.one_of(st.none(), st.none(), st.integers(0, 40))


def dawdle(frames) -> None:
    time.sleep(0.001)


SINKS = st.lists(st.sampled_from([dawdle, fail, leave, spoil]), unique=True, max_size=2)


class Caller(threading.Thread):
    """Calls one thing after another of an engine, each after so many milliseconds."""

    def __init__(self, engine, calls, sink) -> None:
        super().__init__()
        self.engine, self.calls, self.sink = engine, calls, sink
        self.wrong: list[BaseException] = []

    def run(self) -> None:
        for what, wait_ms in self.calls:
            time.sleep(wait_ms / 1000)
            try:
                self.call(what)
            except EngineEnded as error:
                self.engine.wait(END_S)
                if self.engine.device_state not in ("ended", "stopped"):
                    self.wrong.append(error)
            except BaseException as error:
                self.wrong.append(error)

    def call(self, what: str) -> None:
        engine = self.engine
        if what == "reset":
            engine.reset_filters()
        elif what == "calibrate":
            engine.calibrate(Calibration(90.0, source="another"))
        elif what == "swap":
            engine.swap(PowerMeter(480))
        elif what == "swap back":
            engine.swap(PowerMeter(48))
        elif what == "pause":
            self.sink.paused = not self.sink.paused
        elif what == "rows":
            with engine.rows(step_ms=10) as feed, contextlib.suppress(StopIteration):
                next(feed)
        elif what == "latest":
            engine.latest()
        elif what == "stop":
            engine.stop()
        else:
            assert engine.health.samples >= 0
            assert len(engine.history.read()) >= 0
            assert len(engine.events) >= 0


class Paused(Collector):
    """One whose keeping may be paused, as that of rows is."""

    paused = False


def survive(faults, calls, others, stop_ms, run_in) -> None:
    """Run it all; everything that must be true of it is."""
    before = set(threading.enumerate())
    kept = Paused()
    source = FaultSource(SignalSource([NOISE], duration=SOUND_S, paced=False), faults)
    engine = Engine(
        source, PowerMeter(48), [kept, *others], run_in=run_in, history_s=1.0, sink_slack_s=5.0
    )
    threads = [Caller(engine, some, kept) for some in calls]
    if stop_ms is not None:
        threads += [Caller(engine, [("stop", stop_ms)], kept) for _ in range(2)]
    engine.start()
    for thread in threads:
        thread.start()
    ended = engine.wait(END_S)
    for thread in threads:
        thread.join(END_S)
        assert not thread.is_alive()
        assert not thread.wrong, thread.wrong
    engine.stop()
    assert engine.error is None
    assert ended or stop_ms is not None
    in_order(kept, engine)
    counted(engine, whole=ended)
    # A feed that was closed has a thread that ends by itself.
    give_up = time.monotonic() + END_S
    while left := set(threading.enumerate()) - before:
        assert time.monotonic() < give_up, left
        time.sleep(0.001)


def in_order(kept, engine) -> None:
    if not kept.all:
        return
    time_s, sample = kept.column("time_s"), kept.column("sample")
    assert (np.diff(time_s) > 0).all()
    assert (np.diff(sample) > 0).all()
    assert (np.diff(kept.column("utc")) > 0).all()
    assert np.isfinite(kept.column("stl")).all()
    assert engine.history.count == len(time_s)


def counted(engine, whole: bool) -> None:
    """What was injected, or of a sound that was broken off, no more than that."""
    injected, health, channels = engine.source.injected, engine.health, engine.source.channels
    gaps = [(event.sample, event.samples) for event in engine.events if event.kind == "gap"]
    found = {
        "lost": health.lost_samples,
        "nan": health.non_finite / channels,
        "clip": health.clipped / channels,
    }
    total = health.samples + health.lost_samples
    if whole:
        clipped = found.pop("clip")
        assert found == {name: getattr(injected, name) for name in found}
        # A single sample at full scale is not clipped; other faults may cut one off.
        single = 2 * len(engine.source.faults)
        assert injected.clip - single <= clipped <= injected.clip
        assert gaps == injected.gaps
        assert total == round(SOUND_S * engine.source.fs)
        told = [event.kind for event in engine.events]
        assert told.count("stall") == injected.stall
        assert told.count("back") <= told.count("lost") <= injected.unplug
    else:
        assert all(n <= getattr(injected, name) for name, n in found.items())
        assert total <= round(SOUND_S * engine.source.fs)
        assert set(gaps) <= set(injected.gaps)


CASES = {
    "faults": FAULTS,
    "calls": st.lists(CALLS, max_size=3),
    "others": SINKS,
    "stop_ms": STOPS,
    "run_in": st.sampled_from(["engine", "engine", "callback"]),
}


@settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
@given(**CASES)
def test_faults_and_calls_in_any_order(faults, calls, others, stop_ms, run_in):
    survive(faults, calls, others, stop_ms, run_in)
