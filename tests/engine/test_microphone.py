"""A real capture device, through PortAudio."""

import re
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import soundfile

from amt_stream.dsp.models import Impulses, TonalAudibility
from amt_stream.engine import (
    DeviceLost,
    Engine,
    Fault,
    FileSource,
    MicrophoneSource,
    SourceError,
    list_devices,
)
from amt_stream.meters.calibration import Calibration
from tests.dsp.metrology.test_rating import tone, white

OTHER_BLOCKS = ("engine", 441), ("callback", 480), ("callback", 0)


@pytest.fixture
def sound(tmp_path):
    """A second that begins and ends with a burst, different left and right."""
    t = np.arange(48000) / 48000
    left = 0.2 * np.sin(2 * np.pi * 1000 * t) * (0.6 + 0.4 * np.sin(2 * np.pi * 3 * t))
    x = np.stack([left, 0.5 * left], axis=1).astype(np.float32)
    path = tmp_path / "sound.wav"
    soundfile.write(path, x, 48000, subtype="FLOAT")
    return path


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    ("run_in", "blocksize"),
    [
        ("engine", 480),
        ("callback", 441),
        ("engine", 0),
        *(pytest.param(*one, marks=pytest.mark.soak) for one in OTHER_BLOCKS),
    ],
)
def test_the_microphone_hears_what_the_file_says(
    record, power_meter, collector, sound, run_in, blocksize
):
    engine = record(sound, power_meter(delay=1584), run_in, blocksize=blocksize)
    health = engine.final_health
    assert engine.error is None
    assert (health.lost_samples, health.non_finite) == (0, 0)
    assert health.device_state == "running"
    heard = collector.column("stl")
    np.testing.assert_allclose(np.diff(collector.column("time_s")), 0.001, atol=1e-9)
    # Beside other work sound may be late, but it comes.
    assert not (collector.column("fault") & ~(Fault.OVERLOAD | Fault.STALL)).any()

    # The recording starts anywhere in a millisecond: compare the energy, which does not care.
    collector.all.clear()
    with Engine(FileSource(sound, paced=False), power_meter(), [collector]) as engine:
        assert engine.wait(60)
    played = collector.column("stl")
    assert 10 * np.log10(heard.sum() / played.sum()) == pytest.approx(0.0, abs=1e-3)


def test_left_and_right_can_be_chosen_and_are_not_mixed(record, power_meter, collector, sound):
    sums = {}
    for channels in [(1,), (2,), (2, 1)]:
        collector.all.clear()
        record(sound, power_meter(), channels=channels)
        sums[channels] = collector.column("ears").sum(axis=1)
    left, right = sums[1,][0], sums[2,][0]
    assert 10 * np.log10(left / right) == pytest.approx(6.02, abs=0.01)
    assert sums[1,][0] == sums[1,][1]
    np.testing.assert_allclose(sums[2, 1], [right, left], rtol=1e-3)


@pytest.mark.parametrize("fs", [44100, 96000])
def test_other_rates(record, power_meter, collector, sound, fs):
    engine = record(sound, power_meter(fs), fs=fs)
    assert engine.source.fs == fs
    level = 10 * np.log10(np.max(collector.column("stl")) / 2 / 20e-6**2)
    assert level == pytest.approx(100.0 + 20 * np.log10(0.2) + 10 * np.log10(0.625), abs=0.3)


def test_the_device_is_listed_and_one_is_the_default(virtual_mic):
    devices = list_devices()
    assert "virtual_mic" in [device.name for device in devices]
    assert sum(device.default for device in devices) == 1
    source = MicrophoneSource()
    assert source.device.default
    assert (source.fs, source.channels) == (48000, 2)


def test_listing_devices_imports_neither_torch_nor_portaudio(virtual_mic):
    code = (
        "import sys; from amt_stream.engine import list_devices; print(list_devices());"
        "assert not {'torch', 'sounddevice'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "virtual_mic" in done.stdout


def test_without_portaudio_it_says_so_in_one_sentence(tmp_path, monkeypatch):
    (tmp_path / "sounddevice.py").write_text("raise OSError('PortAudio library not found')")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(SourceError, match=r"^the microphone needs PortAudio, which is not there"):
        MicrophoneSource()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"device": "no such thing"}, "no input device 'no such thing'; PortAudio lists .*virtual"),
        ({"device": 999}, "no input device 999"),
        ({"device": "virtual_mic", "fs": 1}, "does not run at 1 Hz .* it offers .*48000"),
        ({"device": "virtual_mic", "channels": (1, 999)}, "has no channel 999"),
        ({"device": "virtual_mic", "channels": (0,)}, "has no channel 0"),
    ],
)
def test_what_the_device_cannot_do_is_refused(virtual_mic, options, said):
    with pytest.raises(SourceError, match=said):
        MicrophoneSource(**options)


def test_sound_that_piles_up_in_the_system_is_told(virtual_mic, power_meter, until):
    """PulseAudio drops nothing and sets no flag where its reader is too slow."""

    class Slow(type(power_meter())):
        def step(self, x, state):
            time.sleep(0.05)
            return super().step(x, state)

    source = MicrophoneSource("virtual_mic")
    with Engine(source, Slow(48), run_in="callback") as engine:
        until(lambda: source.latency_growth_s > 0.5)
        assert re.search("later and later: \\+|cannot keep up", engine.health.note)


@pytest.mark.parametrize(
    ("run_in", "wait", "said"),
    [
        ("callback", True, "while it was in use"),
        ("engine", False, "the sound system ended the|has moved it to"),  # whichever is seen first
    ],
)
def test_a_device_that_nobody_waits_for_is_lost_and_found_again(
    virtual_mic, power_meter, until, run_in, wait, said
):
    """In this process there is nobody to wait."""
    before = threading.active_count()
    source = MicrophoneSource("virtual_mic", wait=wait)
    with Engine(source, power_meter(), run_in=run_in) as engine:
        until(lambda: engine.history.count > 200)
        virtual_mic.unplug()
        try:
            assert not engine.wait(60)
            assert isinstance(engine.error, DeviceLost)
            assert engine.health.device_state == "lost"
        finally:
            virtual_mic.plug()
    assert re.search(said, str(engine.error))
    assert threading.active_count() == before
    with Engine(MicrophoneSource("virtual_mic"), power_meter(), run_in=run_in) as engine:
        until(lambda: engine.history.count > 200)
    assert engine.error is None


def test_a_hammer_has_its_adjustment_200_ms_after_the_strike(virtual_mic, tmp_path):
    """By the samples: strikes fall anywhere in a row, and each is harder than the one before."""
    x, number = 1e-3 * np.random.default_rng(4).standard_normal(7 * 48000), 8
    for k in range(number):
        at = round((1.5 + 0.63 * k) * 48000)
        x[at : at + 2400] *= 8 * 1.35**k
    path = tmp_path / "hammer.wav"
    soundfile.write(path, x, 48000)
    engine = Engine(
        MicrophoneSource("virtual_mic"), Impulses(48000), calibration=Calibration(100.0)
    )
    feed, player = engine.rows(), threading.Thread(target=virtual_mic.play, args=(path,))
    known, began, highest = [], dict[float, None](), 0.0
    with engine:
        for rows in feed:
            if player.ident is None:
                player.start()
            for at, ki, start in zip(
                *(rows[n] for n in ("time_s", "ki_db", "impulse_s")), strict=True
            ):
                if ki > highest:
                    highest = ki
                    known.append(at)
                if start == start:
                    began[start] = None
            if len(began) == number:
                break
        feed.close()
    player.join()
    # Where a player on a busy computer paused, the sound after it is an onset too, and higher.
    starts = np.array([*began])
    late = np.array([at - starts[starts <= at].max() for at in known])
    assert len(late) > 1
    assert (late <= 0.2).all(), late


def test_a_tone_in_noise_has_its_adjustment_within_3_s(virtual_mic, tmp_path):
    """By the samples, from a reset: 10.7 dB above the masked threshold is an adjustment of 5 dB."""
    calibration, path = Calibration(100.0), tmp_path / "fan.wav"
    pascal = tone(1000, 50, 15, 48000) + white(20, 15, 48000, 6)
    soundfile.write(path, pascal / calibration.pascal_per_unit, 48000, subtype="FLOAT")
    engine = Engine(
        MicrophoneSource("virtual_mic"), TonalAudibility(48000), calibration=calibration
    )
    feed, player = engine.rows(), threading.Thread(target=virtual_mic.play, args=(path,))
    heard, reset_s, known = False, None, None
    with engine:
        for rows in feed:
            if player.ident is None:
                player.start()
            columns = (rows[name].tolist() for name in ("time_s", "tone_dl_db", "kt_db"))
            for time_s, audible_db, kt_db in zip(*columns, strict=True):
                if not heard and audible_db > 0:
                    engine.reset_readings()
                    heard = True
                elif heard and reset_s is None and np.isnan(kt_db):
                    reset_s = time_s
                elif reset_s is not None and not np.isnan(kt_db):
                    known = known or (time_s - reset_s, kt_db)
            if known:
                break
        feed.close()
    player.join()
    assert known is not None
    assert known[0] <= 3.0
    assert known[1] == 5.0
