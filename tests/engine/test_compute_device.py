"""Where the models of an engine run: on the CPU, or as on a GPU, with the same numbers."""

import numpy as np
import pytest
import torch

from amt_stream.dsp.compute_device import HERE, compute_device
from amt_stream.engine import Engine, Microphone
from amt_stream.engine.models import running_models
from amt_stream.engine.models.ready_stage import ReadyStage
from amt_stream.engine.sinks import snapshots
from amt_stream.meters.calibration import Calibration
from amt_stream.offline.analysis import ArrayRecording, analyze
from tests.engine.conftest import FULL_SCALE, Collector
from tests.engine.measuring import measuring
from tests.recorder import Recorded

NUMBERS = ("sample", "stl", "ltl", "fault", "settling", "level_db")


@pytest.fixture
def gpu(monkeypatch):
    """Has engines take the host that records for whatever device they are given."""
    place = Recorded()
    chosen = {"cpu": HERE}
    monkeypatch.setattr(running_models, "compute_device", lambda name: chosen.get(name, place))
    return place.recorder


def numbers(collector):
    found = [collector.column(name) for name in NUMBERS]
    collector.all.clear()
    return found


def assert_same(got, expected):
    for name, a, b in zip(NUMBERS, got, expected, strict=True):
        np.testing.assert_array_equal(a, b, err_msg=name)


@pytest.mark.parametrize("device", ["meta", "gpu", "cuda:x", "mps", 0])
def test_what_is_no_such_device_is_refused(scripted, power_meter, device):
    with pytest.raises(ValueError, match=f"device is '{device}': give 'cpu' or 'cuda'"):
        Engine(scripted(lambda deliver: None), power_meter(), device=device)


def test_without_such_a_device_it_is_the_cpu_and_says_so(scripted, power_meter, collector, noise):
    x = noise(9600)

    def script(deliver):
        deliver(x)

    for device in ("cpu", "cuda:99"):
        source, model = scripted(script, live=False), power_meter()
        with Engine(source, model, [collector], device=device, calibration=FULL_SCALE) as engine:
            assert engine.wait(60)
        assert (engine.device, model.device.type) == ("cpu", "cpu")
        told = [event.text for event in engine.events if event.kind == "compute"]
        if device == "cpu":
            expected = numbers(collector)
            assert (told, engine.health.note) == ([], "")
        else:
            assert_same(numbers(collector), expected)
            assert told == [engine.health.note]
            assert "the models run on the CPU, though cuda:99 was asked for" in told[0]


def test_products_of_rounded_factors_are_refused(monkeypatch):
    monkeypatch.setattr("amt_stream.dsp.compute_device._missing", lambda index: "")
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        with pytest.raises(ValueError, match=r"TF32.*set_float32_matmul_precision"):
            compute_device("cuda")
    finally:
        torch.set_float32_matmul_precision(before)
    assert compute_device("cuda").name == "cuda:0"


@pytest.mark.parametrize("run_in", ["engine", "callback"])
def test_odd_bursts_losses_and_commands_give_what_they_give_on_the_cpu(
    gpu, scripted, power_meter, collector, noise, run_in
):
    """Whole blocks are replayed; a gap, a reset, another calibration and model stand in between."""
    x = noise(48000)

    def script(deliver):
        for at in range(0, 19200, 480):
            deliver(x[at : at + 480])
        deliver(x[19200:19700], lost=123)
        if run_in == "callback":  # otherwise nobody knows at which block they come
            engine.reset_filters()
            engine.calibrate(Calibration(94.0))
            engine.swap(power_meter(delay=1584))
        deliver(x[19700:30000], lost=50000)
        for at in range(30000, 48000, 700):
            deliver(x[at : at + 700])

    found = []
    for device in ("cpu", "cuda"):
        source = scripted(script, live=False)
        given = {"calibration": FULL_SCALE, "device": device, "run_in": run_in}
        engine = Engine(source, power_meter(), [collector], **given)
        with engine:
            assert engine.wait(60), engine.error
        found.append(numbers(collector))
    assert_same(*found)
    assert gpu.replays > 40


def test_rows_of_several_microphones_go_there_together(gpu, scripted, power_meter, noise):
    x, engines, read = noise(24000, 4), [], []

    def script(deliver):
        deliver(x[:9600])
        engines[-1].reset_filters(microphone="right")
        deliver(x[9600:])

    rows = [Microphone((1, 2), "left"), Microphone((3, 4), "right", Calibration(94.0))]
    for device in ("cpu", "cuda"):
        source = scripted(script, channels=4, live=False)
        given = {"microphones": rows, "device": device, "run_in": "callback"}
        engines.append(Engine(source, power_meter(), **given))
        with engines[-1] as engine:
            assert engine.wait(60), engine.error
        read.append({name: history.read() for name, history in engine.histories.items()})
    assert list(read[0]) == ["left", "right"]
    for name, expected in read[0].items():
        for column in ("sample", "stl", "ltl"):
            np.testing.assert_array_equal(read[1][name][column], expected[column])
    assert gpu.replays == 51


def test_a_run_is_saved_and_gone_on_with_across_devices(
    gpu, scripted, power_meter, noise, monkeypatch
):
    monkeypatch.setattr(snapshots, "SNAPSHOT_S", 0.0)
    x = noise(24000)

    class Keeper(Collector):
        def __init__(self):
            super().__init__()
            self.kept = []

        def snapshot(self, snapshot):
            self.kept.append(snapshot)

    def ran(device, saved=None):
        begin = 0 if saved is None else saved.sample
        keeper = Keeper()
        source = scripted(lambda deliver: deliver(x[begin:]), live=False)
        source.seekable, source.seek = True, lambda sample: None
        state = None if saved is None else saved.state
        engine = Engine(source, power_meter(), [keeper], device=device, restore=state)
        with engine:
            assert engine.wait(60), engine.error
        return keeper

    whole = ran("cpu")
    on_gpu = ran("cuda")
    assert len(on_gpu.kept) > 2
    for device, saved in (("cuda", whole.kept[2]), ("cpu", on_gpu.kept[2])):
        rest = ran(device, saved)
        for name in ("sample", "stl", "ltl"):
            told = rest.column(name)
            assert 0 < len(told) < len(whole.column(name))
            np.testing.assert_array_equal(told, whole.column(name)[-len(told) :])


def test_longer_blocks_go_launch_by_launch_from_the_same_state(power_meter, collector, noise):
    place, x = Recorded(), noise(24000)

    def measurement(place):
        ready = ReadyStage(power_meter(), 48000, 10.0, device=place)
        ready.warm()
        return measuring(ready, collector, FULL_SCALE)

    measurement(HERE).take(x)
    expected = numbers(collector)
    changing = measurement(place)
    before = changing.ready
    changing.take(x[:9600])
    assert place.recorder.replays == 20
    changing.exchange(before, before.lasting(2400))
    changing.take(x[9600:19200])
    assert place.recorder.replays == 20
    changing.exchange(changing.ready, before)
    changing.take(x[19200:])
    assert place.recorder.replays == 30
    got = numbers(collector)
    for k in range(3):
        np.testing.assert_array_equal(got[k], expected[k])


def test_a_whole_sound_is_analyzed_there(power_meter, noise, monkeypatch):
    recording = ArrayRecording(noise(24000), 48000)
    place = Recorded()
    found = []
    for where in (HERE, place):
        home = "amt_stream.offline.analysis.ComputeDevice"
        monkeypatch.setattr(home, lambda device, where=where: where)
        collector = Collector()
        for frames in analyze(recording, power_meter(), FULL_SCALE):
            collector(frames)
        found.append(numbers(collector))
    assert_same(*found)
    assert place.recorder.replays == 6  # the last one brings the end out
