"""What counts as sound of a device: exact zeros that last do not."""

from dataclasses import replace

import numpy as np
import pytest

from amt_stream.dsp.stages import BS1770, SoundLevel
from amt_stream.engine import Engine, Microphone
from amt_stream.engine.devices.zero_gate import ZeroGate
from amt_stream.meters.calibration import Calibration
from amt_stream.meters.frames import Fault
from amt_stream.meters.source_description import SourceDescription

FS = 48000
HALF_S = FS // 2


class Device:
    """Pushes sound through a gate in blocks, and keeps what comes out, missing samples as NaN."""

    def __init__(self, channels: int = 2) -> None:
        self.told: list[tuple] = []
        self.out: list[np.ndarray] = []
        self.lost: list[tuple[int, int]] = []
        self.flags: list[int] = []
        self.gate = ZeroGate(
            FS,
            channels,
            self.deliver,
            lambda: self.told.append(("silent",)),
            lambda seconds: self.told.append(("back", seconds)),
            lambda columns: self.told.append(("dead", columns)),
        )

    def deliver(self, block, lost=0, flags=0):
        if lost:
            self.lost.append((lost, flags))
            self.out.append(np.full((lost, block.shape[1]), np.nan, np.float32))
        self.flags.append(flags)
        self.out.append(block.copy())

    def push(self, sound, block=480):
        for at in range(0, len(sound), block):
            self.gate.take(sound[at : at + block])

    @property
    def heard(self):
        return np.concatenate(self.out)


def noise(samples, channels=2):
    return np.random.default_rng(samples).uniform(0.1, 0.2, (samples, channels)).astype(np.float32)


def with_zeros(at, count, samples=75_000):
    sound = noise(samples)
    sound[at : at + count] = 0.0
    return sound


@pytest.mark.cases(4)
@pytest.mark.parametrize("block", [3, 48, 441, 480, 4800, 8193])
@pytest.mark.parametrize("zeros", [1, 47, 480, 9600, HALF_S])
def test_zeros_that_end_in_time_are_the_sound_that_they_are(block, zeros):
    device, sound = Device(), with_zeros(10_007, zeros)
    device.push(sound, block)
    np.testing.assert_array_equal(device.heard, sound)
    assert device.lost == device.told == []


@pytest.mark.parametrize("block", [3, 441, 480, 8193])
@pytest.mark.parametrize("zeros", [HALF_S + 100, 30_011, 60_000])
def test_zeros_that_last_are_missing_to_the_sample(block, zeros):
    device, sound = Device(), with_zeros(10_007, zeros)
    device.push(sound, block)
    ((lost, flags),) = device.lost
    assert lost == pytest.approx(zeros, abs=48)  # a millisecond may belong to the sound before
    assert flags == Fault.SILENT
    silence = np.isnan(device.heard[:, 0])
    assert silence[10_007 + 48 : 10_007 + zeros].all()
    np.testing.assert_array_equal(device.heard[~silence], sound[~silence])
    assert device.told == [("silent",), ("back", lost / FS)]


def test_a_device_that_begins_with_zeros_has_no_sound_there():
    device = Device()
    device.push(np.zeros((FS, 2), np.float32))
    assert (device.gate.silent, device.gate.missing, device.out) == (True, FS, [])
    device.push(noise(480))
    assert device.lost == [(FS, Fault.SILENT)]
    assert (device.gate.silent, device.gate.missing) == (False, 0)


def test_what_is_held_back_says_for_how_long():
    device, ages = Device(), []
    device.gate._deliver = lambda block, lost=0, flags=0: ages.append(device.gate.held_back_s)
    device.push(noise(480))
    device.push(np.zeros((9600, 2), np.float32))
    assert device.gate.holds_s == 0.2
    device.push(noise(480))
    assert ages == [0.0, 0.01, 0.0]
    assert device.gate.holds_s == 0.0


def test_zeros_before_missing_samples_are_missing_too():
    device = Device()
    device.push(noise(480))
    device.push(np.zeros((4800, 2), np.float32))
    device.gate.take(noise(480), lost=100)
    assert device.lost == [(4900, 0)]
    device.push(np.zeros((4800, 2), np.float32))
    device.gate.interrupt()  # the device is lost
    assert device.gate.missing == 4800
    device.gate.take(noise(480), lost=1000)
    assert device.lost[1:] == [(5800, 0)]
    assert device.told == []


def test_zeros_on_both_sides_of_a_loss_are_one_silence():
    device = Device()
    device.push(np.zeros((20_000, 2), np.float32))
    device.gate.take(np.zeros((480, 2), np.float32), lost=FS)
    device.push(np.zeros((20_000, 2), np.float32))
    device.push(noise(480))
    assert device.lost == [(FS + 40_480, Fault.SILENT)]


def test_faults_of_zeros_that_are_sound_stay_with_them():
    device = Device()
    device.push(noise(480))
    device.gate.take(np.zeros((480, 2), np.float32), flags=Fault.STALL)
    device.push(noise(480))
    assert device.flags == [0, Fault.STALL, 0]


def test_a_dead_channel_is_said_when_it_dies_and_is_passed_on():
    device, sound = Device(), noise(3 * FS)
    sound[:, 1] = 0.0
    device.push(sound)
    sound[:, 1] = sound[:, 0]
    device.push(sound)
    sound[:, 1] = 0.0
    device.push(sound)
    assert device.told == [("dead", [1]), ("dead", [1])]
    assert device.lost == []


def test_one_channel_alone_is_never_dead():
    device = Device(1)
    device.push(noise(FS, 1))
    assert device.told == []


def dying(burst):
    """Noise of two channels, of which one gives zeros for a second, in bursts."""
    sound = noise(3 * FS)
    sound[FS : 2 * FS + 100, 1] = 0.0

    def script(deliver):
        for at in range(0, len(sound), burst):
            deliver(sound[at : at + burst])

    return script


@pytest.mark.parametrize("burst", [480, 777, 4800])
@pytest.mark.parametrize("kind", ["device", "playback"])
def test_a_microphone_that_dies_beside_one_that_lives_is_missing(
    scripted, power_meter, burst, kind
):
    """After half a second of zeros, which are sound of what the computer plays."""
    source = scripted(dying(burst), live=False)
    source.description = replace(SourceDescription.of_device(2), kind=kind)
    each = [Microphone((1,), "door"), Microphone((2,), "yard")]
    with Engine(source, power_meter(), microphones=each, ladder=()) as engine:
        assert engine.wait(60), engine.error
    gaps = [(one.microphone, one.sample, one.samples) for one in engine.events if one.kind == "gap"]
    died = kind == "device"
    assert gaps == ([("yard", FS * 3 // 2, FS // 2 + 100)] if died else [])
    door, yard = (engine.histories[name].read() for name in ("door", "yard"))
    assert not door["fault"].any()
    assert bool((yard["fault"] & Fault.SILENT).any()) == died
    between = (yard["sample"] > 1.51 * FS) & (yard["sample"] < 2 * FS)
    assert between.any() != died


@pytest.mark.parametrize("burst", [480, 777, 48000])
def test_an_ear_that_dies_is_not_measured(scripted, burst):
    """Its levels would fall, and its limits stay green. A programme may have a silent channel."""
    source = scripted(dying(burst), live=False)
    source.description = SourceDescription.of_device(2)
    models = {"loudness": BS1770(FS, 2), "spl": SoundLevel(FS)}
    with Engine(source, models, calibration=Calibration(94.0), ladder=()) as engine:
        assert engine.wait(60), engine.error
    (gap,) = [one for one in engine.events if one.kind == "gap"]
    assert (gap.sample, gap.samples, gap.cause) == (FS * 3 // 2, FS // 2 + 100, "silent")
    assert gap.text == f"a channel of {source.name} gave exact zeros"
    assert engine.health.lost_samples == gap.samples
    level, programme = engine.histories["spl"].read(), engine.histories["loudness"].read()
    assert not programme["fault"].any()
    assert (level["fault"] & Fault.SILENT).any()
    assert not ((level["sample"] > 1.51 * FS) & (level["sample"] < 2 * FS)).any()
