"""However an engine is stopped, and whatever hangs in it: it ends."""

import contextlib
import gc
import itertools
import random
import threading
import time
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from amt_stream.dsp.streaming import Stage
from amt_stream.engine import Engine, Event, PushSource, SignalSource
from amt_stream.engine.run_state import EngineEnded
from amt_stream.engine.sources import Source, ThreadedSource
from amt_stream.meters.signals import Noise

NOISE = [Noise(level_db=60.0)]
FOR_EVER_S = 60.0  # an engine waits for 1.2 s


@pytest.fixture
def hang(until):
    """Waits in the middle of something until the test is over; `hang.began` once it does.

    What was left behind then ends too. `hang.outwaited` if something waited for it all the time.
    """

    class Hang:
        def __init__(self) -> None:
            self.began, self.over = threading.Event(), threading.Event()
            self.outwaited = False

        def __call__(self) -> None:
            self.began.set()
            self.outwaited = not self.over.wait(FOR_EVER_S)

    before, one = set(threading.enumerate()), Hang()
    yield one
    one.over.set()
    until(lambda: not set(threading.enumerate()) - before)


class Hanging(Source):
    """Delivers silence, and hangs where it is told to."""

    fs, channels, name = 48000, 1, "hanging"

    def __init__(self, hang, where: str) -> None:
        self._hang, self._where = hang, where
        self.started = self.stopped = 0

    def start(self, deliver) -> None:
        if self._where == "start":
            self._hang()
        self.started += 1
        deliver(np.zeros((4800, 1), np.float32))

    def stop(self) -> None:
        if self._where == "stop":
            self._hang()
        self.stopped += 1


class Waiting(Stage):
    """A model whose step hangs, once it is told to."""

    block_size, ratio = 480, Fraction(1, 480)

    def __init__(self) -> None:
        super().__init__()
        self.hang = None

    def initial_state(self, shape):
        return {}

    def step(self, x, state):
        if self.hang is not None:
            self.hang()
        return x.unflatten(-1, (-1, 480)).mean(-1).sum(-2), {}


def stop_twice(engine) -> float:
    """Gives how long it took."""
    began = time.monotonic()
    engine.stop()
    engine.stop()
    return time.monotonic() - began


def leave_behind(engine, hang) -> None:
    """Stop the engine, which does not wait for what hangs."""
    stop_twice(engine)
    assert not hang.outwaited


def leave_behind_as_it_starts(engine, hang) -> None:
    starting = threading.Thread(target=engine.start)
    starting.start()
    assert hang.began.wait(FOR_EVER_S)
    leave_behind(engine, hang)
    starting.join(FOR_EVER_S)
    assert not starting.is_alive()


def test_a_source_that_does_not_stop_is_left_behind(power_meter, collector, hang, until, caplog):
    engine = Engine(Hanging(hang, "stop"), power_meter(), [collector]).start()
    until(lambda: collector.all)
    leave_behind(engine, hang)
    assert caplog.text.count("the source hanging has not returned: abandoned") == 1
    assert "the model" not in caplog.text
    assert "the sink" not in caplog.text
    assert "the source hanging, which did not return" in engine.health.note
    assert engine.health.device_state == "stopped"
    hang.over.set()
    until(lambda: not engine.health.note)


def test_a_read_that_blocks_is_left_behind(power_meter, hang, caplog):
    class Reading(ThreadedSource):
        def blocks(self):
            hang()
            yield np.zeros((480, 1), np.float32)

    engine = Engine(Reading("pipe", 48000, 1, live=False), power_meter()).start()
    assert hang.began.wait(FOR_EVER_S)
    leave_behind(engine, hang)
    assert "the source pipe has not returned: abandoned" in caplog.text


@pytest.mark.parametrize("run_in", ["engine", "callback"])
def test_a_step_of_a_model_that_does_not_end_is_left_behind(collector, hang, caplog, run_in, until):
    model = Waiting()
    engine = Engine(SignalSource(NOISE), model, [collector], run_in=run_in).start()
    until(lambda: collector.all)
    model.hang = hang
    assert hang.began.wait(FOR_EVER_S)
    leave_behind(engine, hang)
    # In the callback it is the source that waits for the step.
    left = "the model" if run_in == "engine" else "the source signal"
    assert f"{left}" in caplog.text
    assert left in engine.health.note
    assert engine.health.device_state == "stopped"
    assert not engine.wait(0)
    frames = len(collector.all)
    hang.over.set()
    until(lambda: left not in engine.health.note)
    assert len(collector.all) == frames


def test_stopped_before_it_starts_nothing_starts(power_meter, hang):
    source = Hanging(hang, "nowhere")
    engine = Engine(source, power_meter())
    engine.stop()
    with pytest.raises(RuntimeError, match="runs once"):
        engine.start()
    assert (source.started, source.stopped) == (0, 0)


def test_stopped_while_the_source_starts(power_meter, hang, until):
    source = Hanging(hang, "start")
    engine = Engine(source, power_meter())
    leave_behind_as_it_starts(engine, hang)
    hang.over.set()
    until(lambda: (source.started, source.stopped) == (1, 1))


def test_stopped_while_the_model_warms(hang, until):
    source, model = Hanging(hang, "nowhere"), Waiting()
    engine = Engine(source, model)
    model.hang = hang
    leave_behind_as_it_starts(engine, hang)
    until(lambda: (source.started, source.stopped) == (1, 1))


def test_a_source_that_fails_to_stop_takes_nothing_with_it(power_meter, collector, caplog, until):
    source = SignalSource(NOISE)
    stop = source.stop

    def fail() -> None:
        stop()
        raise OSError("it has gone")

    source.stop = fail
    engine = Engine(source, power_meter(), [collector]).start()
    until(lambda: collector.all)
    stop_twice(engine)
    assert "it has gone" in caplog.text
    assert "abandoned" not in caplog.text
    assert all(not one.thread.is_alive() for one in engine._sinks)


def test_others_hear_that_a_sink_failed_and_was_dropped(power_meter):
    heard: list[Event] = []

    class Hearing:
        def __call__(self, frames) -> None:
            pass

        def event(self, event: Event) -> None:
            heard.append(event)

    def failing(frames) -> None:
        raise ValueError("the disk is full")

    source = SignalSource(NOISE, duration=3.0, paced=False)
    with Engine(source, power_meter(), [failing, Hearing()]) as engine:
        assert engine.wait(60)
    assert [event.kind for event in heard] == ["sink", "sink"]
    first, last = (event.text for event in heard)
    assert first.endswith("failing failed: ValueError: the disk is full")
    assert last.endswith("failing failed 5 times in a row: dropped")
    assert engine.events == tuple(heard)


# Of what an engine may live through, each as a function of the engine and of what hangs.


def dawdle(frames) -> None:
    time.sleep(0.2)


def fail(frames) -> None:
    raise ValueError("no")


def leave(frames) -> None:
    raise SystemExit


def spoil(frames) -> None:
    frames.time_s[:] = frames.values.stl[:] = np.nan


ORDERS = list(itertools.permutations(["start", "stop", "stop", "reset_filters", "wait"], 5))


def live_through(engine, order, rng) -> None:
    """Call these of the engine, one after another or from threads of their own."""

    def call(name: str) -> None:
        with contextlib.suppress(RuntimeError, EngineEnded):  # what comes after a stop
            engine.wait(0.02) if name == "wait" else getattr(engine, name)()

    threads = []
    for name in order:
        if rng.random() < 0.5:
            call(name)
        else:
            threads.append(threading.Thread(target=call, args=(name,)))
            threads[-1].start()
    for thread in threads:
        thread.join(FOR_EVER_S)
        assert not thread.is_alive()


def open_files() -> int:
    folder = Path("/proc/self/fd")
    return len(list(folder.iterdir())) if folder.exists() else 0


def started_and_stopped(power_meter, times: int, seed: int) -> float:
    """Engines started and stopped in every order, with every kind of sink; nothing stays.

    Gives the longest time that a stop took.
    """
    rng, longest_s = random.Random(seed), 0.0
    before, files = set(threading.enumerate()), open_files()
    for _ in range(times):
        source = rng.choice(
            [
                SignalSource(NOISE),
                SignalSource(NOISE, paced=False),
                SignalSource(NOISE, duration=0.05),
                PushSource(48000, 2),
            ]
        )
        sinks = rng.sample([dawdle, fail, leave, spoil], 2)
        run_in = rng.choice(["engine", "callback"])
        engine = Engine(source, power_meter(), sinks, run_in=run_in, history_s=1.0)
        live_through(engine, rng.choice(ORDERS), rng)
        longest_s = max(longest_s, stop_twice(engine))
        assert not np.isnan(engine.history.read().stl).any()
        assert "did not return" not in engine.health.note
    del engine, source
    gc.collect()
    assert set(threading.enumerate()) == before
    assert open_files() == files
    return longest_s


def test_a_note_after_the_last_block_is_told(power_meter):
    source = PushSource(48000, 2)
    with Engine(source, power_meter()) as engine:
        source.push(np.zeros((480, 2), np.float32))
        engine.mark("the end")
    assert [event.text for event in engine.events if event.kind == "mark"] == ["the end"]


def test_notes_are_told_in_their_order_among_commands(power_meter):
    source = PushSource(48000, 2, live=False)
    with Engine(source, power_meter()) as engine:
        engine.mark("old series ends")
        engine.reset_readings()
        engine.mark("new series begins")
        engine.pause()
        engine.mark("a door")
        source.push(np.zeros((4800, 2), np.float32))
        source.close()
        assert engine.wait(60)
    kinds = ["mark", "readings_reset", "mark", "paused", "mark"]
    assert [event.kind for event in engine.events] == kinds
    told = [event.text for event in engine.events if event.kind == "mark"]
    assert told == ["old series ends", "new series begins", "a door"]


def test_started_and_stopped_in_every_order(power_meter):
    started_and_stopped(power_meter, times=20, seed=1)
