"""Sound that comes before the models are ready for it."""

import threading
import time
import tracemalloc

import numpy as np
import pytest
import torch

from amt_stream import Chain, Delay
from amt_stream.engine import Engine, SignalSource
from amt_stream.engine.inputs import source_runner as intakes
from amt_stream.engine.inputs.source_runner import SourceRunner
from amt_stream.engine.models.ready_stage import ReadyStage
from amt_stream.meters.frames import Fault


class Recording:
    """A sink that keeps the sound and the frames."""

    def __init__(self) -> None:
        self.chunks, self.frames = [], []

    def __call__(self, frames) -> None:
        self.frames.append(frames)

    def sound(self, chunk) -> None:
        self.chunks.append(chunk)


@pytest.fixture
def warming(power_meter):
    """Starts an engine of which the model takes long to warm; gives that, and what ends it."""
    go, threads, engines = threading.Event(), [], []

    class Slow(type(power_meter())):
        made = False

        def step(self, x, state):
            if self.made and not go.is_set():
                warms.set()
                assert go.wait(20)
            self.made = True
            return super().step(x, state)

    warms = threading.Event()

    def start(source, *sinks, **settings):
        engine = Engine(source, Slow(48), sinks, **settings)
        engines.append(engine)
        threads.append(threading.Thread(target=engine.start))
        threads[0].start()
        assert warms.wait(20)
        return engine, go.set

    yield start
    go.set()
    for thread, engine in zip(threads, engines, strict=True):
        thread.join(20)
        engine.stop()


@pytest.mark.parametrize("early", [False, True])
def test_what_comes_while_a_model_warms_is_heard(scripted, warming, noise, until, early):
    """More than a ring holds, in blocks of any length, with what was told between them."""
    x, later = noise(144_011), noise(4800)
    began, warm = [], threading.Event()

    def script(deliver):
        began.append(time.time())
        for block in np.split(x, [1, 4801, 4801, 90_000]):
            given = block.copy()
            deliver(given)
            given[:] = 9.0  # once the call has returned it may be overwritten
        source.tell("stall", "it stands still")
        deliver(x[:0], 480)
        assert warm.wait(20)
        deliver(later)

    source, sink = scripted(script), Recording()
    runner = SourceRunner(source)
    if early:
        runner.begin()
    engine, go_on = warming(runner if early else source, sink)
    until(lambda: engine.health.queue_s * 48000 == len(x))
    assert engine.device_state == "waiting"
    heard = time.time()
    time.sleep(0.5)  # it is not now that it comes
    go_on()
    until(lambda: sum(map(len, sink.chunks)) == len(x))
    warm.set()
    assert engine.wait(60)
    assert (engine.health.samples, engine.health.lost_samples) == (len(x) + 4800, 480)
    np.testing.assert_array_equal(np.concatenate([c.samples for c in sink.chunks]), [*x, *later])
    assert [(e.kind, e.sample) for e in engine.events] == [("stall", len(x)), ("gap", len(x))]
    assert began[0] - 0.3 < sink.chunks[0].utc < heard
    assert not any(np.any(f.fault & Fault.OVERLOAD) for f in sink.frames)


def test_sound_beyond_what_may_wait_is_counted_as_lost(
    scripted, warming, noise, until, monkeypatch
):
    monkeypatch.setattr(intakes, "HELD_BYTES", 80_000)
    x = noise(48_000)
    sink = Recording()

    def script(deliver):
        for at in range(0, len(x), 441):
            deliver(x[at : at + 441], at == 882)
        sent.set()

    sent = threading.Event()
    engine, go_on = warming(scripted(script), sink)
    assert sent.wait(20)
    go_on()
    assert engine.wait(60)
    kept = 20 * 441
    assert (engine.health.samples, engine.health.lost_samples) == (kept, len(x) + 1 - kept)
    np.testing.assert_array_equal(np.concatenate([c.samples for c in sink.chunks]), x[:kept])
    assert [e.sample for e in engine.events if e.kind == "gap"] == [882, kept + 1]


@pytest.mark.parametrize("samples", [0, 1, 7])
def test_however_short_its_blocks_are_what_waits_is_bounded(scripted, until, monkeypatch, samples):
    monkeypatch.setattr(intakes, "HELD_BYTES", 200_000)
    block, sent = np.zeros((samples, 2), np.float32), threading.Event()

    def script(deliver):
        for _ in range(5000):
            deliver(block, 1)
        sent.set()

    runner = SourceRunner(scripted(script))
    tracemalloc.start()
    try:
        runner.begin()
        assert sent.wait(20)
        assert tracemalloc.get_traced_memory()[0] < 300_000
    finally:
        tracemalloc.stop()
    ends = []
    until(lambda: runner._stored and not isinstance(runner._stored[-1], intakes.Held))
    held = list(runner.held(lambda block, lost, flags: ends.append(lost), lambda *told: None))
    assert sum(len(one.block) + one.lost for one in held) + sum(ends) == 5000 * (samples + 1)
    runner.end()
    until(lambda: runner.join(0.0))


@pytest.mark.parametrize(
    ("block", "lost", "said"),
    [([0.0], 0, "is a list"), (np.zeros((8, 3)), 0, "shape"), (np.zeros((8, 2)), -1, "lost is -1")],
)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_block_that_is_none_ends_it_once_the_model_is_warm(scripted, warming, block, lost, said):
    refused = threading.Event()

    def script(deliver):
        deliver(np.zeros((48, 2)))
        try:
            deliver(block, lost)
        except (TypeError, ValueError):
            refused.set()

    engine, go_on = warming(scripted(script))
    assert refused.wait(20)
    go_on()
    assert not engine.wait(60)
    assert said in str(engine.error)


def test_a_source_that_has_begun_is_not_heard_in_its_callback(scripted, power_meter, until):
    source = scripted(lambda deliver: None)
    runner = SourceRunner(source)
    runner.begin()
    with pytest.raises(ValueError, match="run_in is 'callback', and script has begun"):
        Engine(runner, power_meter(), run_in="callback")
    runner.end()
    until(lambda: runner.join(0.0))


def test_one_that_never_gets_an_engine_ends(scripted, until):
    stopped = threading.Event()
    source = scripted(lambda deliver: deliver(np.zeros((48, 2), np.float32)))
    source.stop = stopped.set
    runner = SourceRunner(source)
    runner.begin()
    until(lambda: runner.samples)
    runner.end()
    assert runner.join(20)
    assert stopped.is_set()


def test_a_sound_that_can_wait_begins_when_the_models_are_ready(warming):
    """Else all of it would wait in memory."""
    engine, go_on = warming(SignalSource(duration=0.5, paced=False))
    assert not engine._runner.has_begun
    go_on()
    assert engine.wait(60)
    assert engine.health.samples == 24_000


def test_a_model_has_given_its_first_output_before_it_is_live():
    """So nothing is compiled later, when sound would have to wait for it."""
    stage = Chain(wait=Delay(4000), then=Delay(3000))
    heard = []
    stage.then.register_forward_hook(lambda module, given, y: heard.append(y))
    ReadyStage(stage, 48000, 10.0, 1).warm()
    assert torch.cat([y if isinstance(y, torch.Tensor) else y[0] for y in heard], -1).any()
