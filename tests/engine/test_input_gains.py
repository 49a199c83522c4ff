"""Gains of inputs travel with the sound that they are of."""

import threading

import numpy as np

from amt_stream.engine import Engine, PushSource, Together
from amt_stream.engine.inputs.source_runner import SourceRunner
from amt_stream.meters.calibration import Calibration
from amt_stream.meters.source_description import InputGain

FULL, HALF = InputGain((100.0,)), InputGain((50.0,))
TURNED = InputGain((50.0,), turning=True)
GIVEN = Calibration(100.0, source="a test")
BLOCK = np.full((480, 2), 0.1, np.float32)


def calibrated(collector):
    return np.concatenate([np.full(len(one), one.calibrated) for one in collector.all])


def test_what_came_before_the_models_were_ready_has_the_gain_of_its_time(
    power_meter, collector, until
):
    source = PushSource(fs=48000, channels=2)
    runner = SourceRunner(source)
    runner.begin()
    until(lambda: runner.began_at is not None)
    for gain in (FULL, HALF, FULL):
        source.tell_gain(gain, range(2))
        for _ in range(10):
            source.push(BLOCK)
    with Engine(runner, power_meter(), [collector], calibration=GIVEN) as engine:
        source.close()
        assert engine.wait(60)
    known = calibrated(collector)[:300]
    np.testing.assert_array_equal(known, np.repeat([True, False, True], 100))
    kinds = [(event.kind, event.sample) for event in engine.events]
    assert kinds == [("uncalibrated", 4800), ("calibrated", 9600)]


def test_a_gain_that_returns_waits_for_its_sound_and_one_that_goes_does_not(
    power_meter, collector, until
):
    """The models are behind: what waits for them may be of the other gain."""
    armed, going_on, begun = threading.Event(), threading.Event(), threading.Event()

    class Held(type(power_meter())):
        def step(self, x, state):
            if armed.is_set():
                begun.set()
                assert going_on.wait(20)
            return super().step(x, state)

    source = PushSource(fs=48000, channels=2)
    with Engine(source, Held(48), [collector], calibration=GIVEN) as engine:
        armed.set()
        source.tell_gain(FULL, range(2))
        source.push(BLOCK)
        assert begun.wait(20)
        for gain in (FULL, TURNED, FULL):
            source.tell_gain(gain, range(2))
            for _ in range(10):
                source.push(BLOCK)
        going_on.set()
        source.close()
        assert engine.wait(60)
    known = calibrated(collector)
    assert known[:10].all()
    assert not known[10:210].any(), "from the next block on, until the sound of the old gain"
    assert known[210:].all()


def test_of_several_sources_each_has_its_own_gain(power_meter, until):
    sources = [PushSource(fs=48000, channels=2, name=name) for name in ("desk", "door")]
    both = Together(sources)
    heard = []
    with Engine(both, power_meter(), [heard.append], calibration=GIVEN) as engine:
        for source in sources:
            source.tell_gain(FULL, range(2))

        def push():
            for source in sources:
                source.push(BLOCK)
            return engine.health.microphones

        until(lambda: heard or not push())
        sources[1].tell_gain(HALF, range(2))
        until(lambda: not push()["door"].calibration[0].calibrated)
        assert engine.health.microphones["desk"].calibration[0].calibrated
        note = "door: readings are uncalibrated: the input gain is 50 % and was 100 % at the start"
        assert engine.health.note == note
    (event,) = [event for event in engine.events if event.kind == "uncalibrated"]
    assert event.microphone == "door"


def test_a_snapshot_knows_for_which_gain_the_calibration_holds(power_meter):
    kept = []

    class Keeps:
        def __call__(self, frames):
            """Frames are of no interest."""

        def snapshot(self, snapshot):
            kept.append(snapshot)

    source = PushSource(fs=48000, channels=2)
    with Engine(source, power_meter(), [Keeps()], calibration=GIVEN) as engine:
        source.tell_gain(FULL, range(2))
        for _ in range(10):
            source.push(BLOCK)
        source.close()
        assert engine.wait(60)
    source = PushSource(fs=48000, channels=2)
    settings = {"calibration": GIVEN, "restore": kept[-1].state}
    with Engine(source, power_meter(), **settings) as engine:
        source.tell_gain(HALF, range(2))
        for _ in range(10):
            source.push(BLOCK)
        source.close()
        assert engine.wait(60)
    (event,) = [event for event in engine.events if event.kind == "uncalibrated"]
    assert event.text.endswith("the input gain is 50 % and was 100 % at the start")
