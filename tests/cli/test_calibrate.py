import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from amt_stream.cli.command import build_parser
from amt_stream.cli.commands.calibrate import _identity, _tones
from amt_stream.cli.commands.devices import run_devices
from amt_stream.cli.inputs import Input, open_input, open_microphone
from amt_stream.engine import FaultSource, SignalSource, Tone
from amt_stream.meters.calibration import UNCALIBRATED, Record, write_records
from amt_stream.meters.calibrator import Refused
from amt_stream.meters.source_description import InputGain
from tests.conftest import pactl
from tests.meters.test_calibration import FS, TIME_S, sine


@pytest.fixture
def home(tmp_path):
    """Settings that give a command a configuration folder of its own."""
    return {"XDG_CONFIG_HOME": str(tmp_path / "home")}


def kept(home):
    path = Path(home["XDG_CONFIG_HOME"]) / "amt_stream" / "calibrations.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()]


METER = ["meter", "-d", "virtual_mic", "--format", "csv", "--duration", 1.8]


def test_a_calibrated_microphone_reads_the_level_of_the_calibrator(run, home, playing, sound_file):
    """-30 dBFS is 70 dB SPL by the nominal 100 and 94 by the calibrator; 1 kHz: phon = dB SPL."""
    x = np.repeat(10 ** (-30 / 20) * np.sin(2 * np.pi * 1000 * np.arange(40 * FS) / FS), 2)
    with playing(sound_file(x.reshape(-1, 2))):
        before = run(*METER, **home)
        done = run("calibrate", "--level", 94, "-d", "virtual_mic", "-c", "1,2", **home)
        assert done.status == 0, done.err
        assert "listening to channels 1 and 2 at once (each needs the tone;" in done.err
        after = run(*METER, **home)
    assert "full-scale sine = 124.0" in done.out
    for record, channel in zip(kept(home), (1, 2), strict=True):
        assert (record["device"], record["channel"]) == ("virtual_mic", channel)
        assert record["full_scale_db_spl"] == pytest.approx(124.0, abs=0.05)
        assert record["measured_dbfs"] == pytest.approx(-30.0, abs=0.05)
        assert record["input_gain"] == {"percent": [100.0, 100.0], "muted": False, "port": ""}
    assert {one["calibrated"] for one in before.about["calibration"]} == {False}
    assert set(before.rows["calibrated"]) == {"false"}
    for one in after.about["calibration"]:
        assert one["full_scale_db_spl"] == pytest.approx(124.0, abs=0.005)
        assert one["uncertainty_db"] == pytest.approx((0.25**2 + 1.0**2) ** 0.5, abs=1e-6)
        assert one["calibration_uncertainty_db"] == 0.25
        assert one["origin"].startswith("calibrator of 94 dB")
    assert after.rows["ltl_high_phon"][-1] - after.rows["ltl_phon"][-1] == pytest.approx(1, abs=0.2)
    assert set(after.rows["calibrated"]) == {"true"}
    rise = after.rows["ltl_phon"][-1] - before.rows["ltl_phon"][-1]
    assert rise == pytest.approx(24.0, abs=0.1)
    assert after.rows["ltl_phon"][-1] == pytest.approx(94.0, abs=0.1)


def test_a_muted_microphone_is_refused_with_its_reason(run, home, virtual_mic):
    pactl("set-source-mute", "mic", "1")
    try:
        done = run("calibrate", **home)
    finally:
        pactl("set-source-mute", "mic", "0")
    assert (done.status, done.out) == (1, "")
    why = "channel 1: 'VirtualMicrophone' gives exact zeros: it is muted in the sound server"
    assert done.err.splitlines()[-1].endswith(why)


def test_a_calibration_at_another_gain_is_not_used_and_this_is_said(run, home, virtual_mic):
    folder = Path(home["XDG_CONFIG_HOME"]) / "amt_stream"
    folder.mkdir(parents=True)
    gain = InputGain((64.0, 64.0))
    known = Record("PulseAudio source mic", 1, 94.0, -30.0, 1000.0, "2026-11-21T09:00:00Z")
    both = [replace(known, channel=c, input_gain=gain, name="VirtualMicrophone") for c in (1, 2)]
    write_records(both, folder / "calibrations.jsonl")
    meter = ["meter", "-d", "default", "--model", "spl", "--format", "csv", "--duration", 1]
    done = run(*meter, **home)
    why = "readings are uncalibrated: the input gain is 100 % and was 64 % at the calibration"
    assert done.err.count(why) == 1
    assert set(done.rows["calibrated"]) == {"false"}
    assert done.about["source"]["sound"]["input_gain"]["percent"] == [100.0, 100.0]
    assert done.about["calibration"][0]["input_gain"]["percent"] == [64.0, 64.0]
    listed = run("calibrate", "--list", **home)
    assert "VirtualMicrophone channel 1" in listed.out
    assert "PulseAudio source" not in listed.out


def test_each_channel_has_its_own(run, home, playing, sound_file):
    x = np.stack([sine(-30.0), sine(-40.0)], axis=1)
    with playing(sound_file(np.tile(x, (6, 1)))):
        second = run("calibrate", "-c", 2, "-d", "virtual_mic", **home)
        half = run(*METER[:-1], 0.2, **home)
        first = run("calibrate", "-d", "virtual_mic", **home)  # channel 1, if nothing is said
        whole = run(*METER, **home)
    assert (second.status, first.status) == (0, 0), second.err + first.err
    assert "listening to channel 2 only (-c 1 measures another) of virtual_mic" in second.err
    assert "listening to channel 1 only (-c 2 measures another) of virtual_mic" in first.err
    assert "channel 1 of 'virtual_mic' has no calibration" in half.err
    assert "amt-stream calibrate -c 1, or measure with -c 2 alone" in half.err
    assert {one["calibrated"] for one in half.about["calibration"]} == {False}
    levels = [one["full_scale_db_spl"] for one in whole.about["calibration"]]
    assert levels == pytest.approx([124.0, 134.0], abs=0.005)
    assert whole.rows["ltl_phon"][-1] == pytest.approx(94.0, abs=0.1)
    devices = run("devices", **home)
    assert "channel 2: full-scale sine = 134.00 dB SPL" in devices.out


def test_what_is_typed_wins_and_a_broken_file_is_told(run, home, virtual_mic):
    folder = Path(home["XDG_CONFIG_HOME"]) / "amt_stream"
    folder.mkdir(parents=True)
    (folder / "calibrations.jsonl").write_text('{"device": "virtual_mic"}\n')
    refused = run(*METER, **home)
    assert (refused.status, refused.out, len(refused.lines)) == (1, "", 1)
    assert "calibrations.jsonl, line 1: the keys are device and not" in refused.err
    typed = run(*METER[:-1], 0.2, "--full-scale-db", 117.5, **home)
    assert typed.status == 0
    for one in typed.about["calibration"]:
        assert (one["full_scale_db_spl"], one["origin"]) == (117.5, "given by the user")


@pytest.mark.quick
@pytest.mark.parametrize(
    ("x", "said"),
    [
        (lambda: sine(-20.0, 250.0), "wrong frequency: 250.0 Hz instead of 1000 Hz"),
        (lambda: 0.1 * np.random.default_rng(0).standard_normal(len(TIME_S)), "not a tone"),
        (lambda: sine(-20.0 + 0.2 * TIME_S), "the level drifts: it changed by"),
        (lambda: np.clip(sine(3.0), -1.0, 1.0), "clipped"),
        (lambda: 0.0 * TIME_S, "too quiet (digital silence)"),
        (lambda: sine(-20.0)[:FS], "for 1.0 s only"),
    ],
    ids=["250 Hz", "noise", "drift", "clipped", "silence", "short"],
)
def test_a_recording_of_something_else_is_refused(run, home, sound_file, x, said):
    done = run("calibrate", "--source", sound_file(x()), **home)
    assert (done.status, done.out) == (1, "")
    assert "not calibrated; channel 1" in done.lines[-1]
    assert said in done.lines[-1]
    assert not Path(home["XDG_CONFIG_HOME"]).exists()


def test_a_recording_gives_the_number_but_is_no_device(run, home, sound_file):
    x = np.stack([sine(-80.0), sine(-26.5, 250.0)], axis=1)
    path = sound_file(x, 44100, "tone.wav", "PCM_24")
    wanted = ["calibrate", "--source", path, "--frequency", 250 * 44100 / FS, "--level", 114]
    both = run(*wanted, **home)
    assert both.status == 1
    assert "channel 1: the input is too quiet (-80.0 dBFS)" in both.err
    done = run(*wanted, "-c", 2, **home)
    assert done.status == 0, done.err
    assert "channel 2: full-scale sine = 140.500 dB SPL" in done.out
    assert "not stored" in done.err
    assert not Path(home["XDG_CONFIG_HOME"]).exists()


def heard_by_calibrate(gaps):
    """What is measured of a tone of which pieces are missing."""
    tone = SignalSource([Tone(1000.0, level_db=70.0)], duration=20.0, paced=False)
    faulty = FaultSource(tone, [("drop", at_s, for_s) for at_s, for_s in gaps])
    given = Input(faulty, (1, 2), [UNCALIBRATED] * 2)
    return _tones(given, 1000.0, 20.0)


@pytest.mark.parametrize("for_s", [0.001, 0.4])
def test_three_seconds_without_a_gap_are_measured(capsys, for_s):
    """2.9 s are too few, and so are the 2.6 s after them: nothing is measured across a gap."""
    found = heard_by_calibrate([(2.9, for_s), (5.5 + for_s, for_s)])
    assert found[1].level_dbfs == pytest.approx(-60.0, abs=0.001)
    assert found[1] == found[2]
    said = capsys.readouterr().err.splitlines()
    assert said == ["amt-stream: samples are missing: the 3 s of tone start again"] * 2


def test_a_calibration_is_that_of_a_microphone_and_not_of_the_name_default(
    virtual_mic, monkeypatch, tmp_path, capsys
):
    """Another microphone that becomes the default does not inherit it."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))

    def opened(name):
        return open_microphone(name, channels=[1]).calibration[0]

    def record(device, level):
        write_records([Record(device, 1, level, -30.0, 1000.0, "2026-01-01T00:00:00Z", 0.25)])

    record("default", 94.0)
    assert opened("default") == UNCALIBRATED
    assert "which several microphones may have: it is not used" in capsys.readouterr().err
    record("PulseAudio source another", 95.0)
    assert opened("default") == UNCALIBRATED
    args = build_parser().parse_args(["calibrate", "-d", "default", "-c", "1"])
    record(_identity(open_input(args, "mic")), 96.0)
    assert opened("default").full_scale_db_spl == 126.0
    record("virtual_mic", 97.0)
    assert opened("virtual_mic").full_scale_db_spl == 127.0
    run_devices(build_parser().parse_args(["devices"]))
    listed = capsys.readouterr().out
    assert "VirtualMicrophone (default), ALSA" in listed
    assert "126.00 dB SPL" in listed
    assert "127.00 dB SPL" in listed
    assert "124.00 dB SPL" not in listed
    monkeypatch.setenv("PATH", "")  # nobody tells what stands behind the name
    assert opened("default") == UNCALIBRATED
    with pytest.raises(Refused, match="does not identify the microphone 'default': name it with"):
        _identity(open_input(args, "mic"))
