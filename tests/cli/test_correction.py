"""A microphone's response from a file, in every command that hears; what is kept of devices."""

import json

import numpy as np
import pytest

from amt_stream.cli.commands.devices import run_devices
from amt_stream.cli.inputs import open_microphone
from amt_stream.meters.calibration import Calibration, Record, kept_channels, utc_now, write_records
from amt_stream.meters.correction import keep_corrections, read_correction
from amt_stream.meters.rows.header import calibrations

FS = 48000
TONE = 0.1 * np.sin(2 * np.pi * 8000 * np.arange(FS) / FS)
FILE = "* a microphone\n20 -1\n500 0\n8000 6\n"
SAID = "+6.0 dB at 8 kHz in mic.cal: readings there are lowered by 6.0 dB"
ANALYZE = ["analyze", "x.wav", "--model", "spl", "--summary", "--full-scale-db", 120]


@pytest.fixture
def folder(tmp_path, monkeypatch, sound_file):
    """One with a sound and two correction files, where a configuration is kept too."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    sound_file(np.stack([TONE, TONE], axis=1), name="x.wav")
    (tmp_path / "mic.cal").write_text(FILE)
    (tmp_path / "odd.cal").write_text("20 0\n10 1\n")
    return tmp_path


def levels(out):
    return np.array([one["lceq_db"] for one in map(json.loads, out.splitlines())])


def test_files_are_analyzed_with_it(said, folder):
    status, plain, err = said(*ANALYZE, "-c", "each")
    assert status == 0, err
    status, corrected, err = said(*ANALYZE, "-c", "each", "--correction", "mic.cal")
    assert (status, err.splitlines()) == (0, [f"amt-stream: {SAID}"])
    assert levels(plain) - levels(corrected) == pytest.approx(6.0, abs=0.1)
    told = json.loads(corrected.splitlines()[0])["calibration"][0]["correction"]
    assert (told["name"], told["inverted"], len(told["sha256"])) == ("mic.cal", False, 64)
    turned = said(*ANALYZE, "-c", "each", "--correction", "mic.cal", "--correction-inverted")[1]
    assert levels(turned) - levels(plain) == pytest.approx(6.0, abs=0.1)
    none = said(*ANALYZE, "-c", "each", "--correction", "none")[1]
    assert levels(none).tolist() == levels(plain).tolist()


def test_rows_of_a_meter_have_it_each_channel_its_own(said, folder):
    asked = ["meter", "--source", "x.wav", "--model", "spl,bs1770", "--format", "csv", "--fast"]
    status, out, err = said(*asked, "--correction", "mic.cal", "--correction", "none")
    assert status == 0, err
    assert f"amt-stream: {SAID}" in err.splitlines()
    line = next(one for one in out.splitlines() if one.startswith("# calibration: "))
    first, second = json.loads(line.partition(": ")[2])
    assert first["correction"]["name"] == "mic.cal"
    assert "correction" not in second


@pytest.mark.parametrize(
    ("typed", "status", "words"),
    [
        (["--correction", "odd.cal"], 1, "odd.cal, line 2: 10 Hz comes after 20 Hz"),
        (["--correction", "no.cal"], 1, "the correction file no.cal cannot be read"),
        (["--correction-inverted"], 2, "add --correction FILE"),
        (["--correction", "mic.cal"] * 3, 1, "3 corrections for 2 channels"),
    ],
)
def test_what_is_wrong_is_told_in_a_sentence(said, folder, typed, status, words):
    got = said(*ANALYZE, *typed)
    assert (got[0], got[1]) == (status, "")
    assert words in got[2].splitlines()[-1]


def test_a_batch_does_not_go_on_with_another_correction(said, folder):
    (folder / "y.wav").write_bytes((folder / "x.wav").read_bytes())
    asked = ["analyze", "x.wav", "y.wav", "--model", "spl", "--out", "rows", "--resume"]
    assert said(*asked, "--correction", "mic.cal")[0] == 0
    assert said(*asked, "--correction", "mic.cal")[0] == 0
    status, _, err = said(*asked)
    assert (status, "calibration" in err.splitlines()[-1]) == (1, True)


def test_what_is_kept_is_listed_and_removed(said, folder):
    record = Record("usb mic", 1, 94.0, -26.0, 1000.0, "2026-01-01T09:00:00Z", 0.25)
    fresh = Record("usb mic", 2, 94.0, -27.0, 1000.0, utc_now(), 0.25, 30)
    write_records([record, fresh])
    keep_corrections("another", {1: read_correction(folder / "mic.cal")})
    status, out, err = said("calibrate", "--list")
    assert (status, err) == (0, "")
    assert out.index("  1  another channel 1") < out.index("  2  usb mic channel 1")
    assert SAID in out
    assert "the calibration of 2026-01-01 is " in out
    assert "days old and was valid for 90: calibrate again" in out
    assert "calibrate again from " in out
    told = [
        json.loads(line) for line in said("calibrate", "--list", "--format", "json")[1].splitlines()
    ]
    assert [one["number"] for one in told] == [1, 2, 3]
    assert told[0]["correction"]["name"] == "mic.cal"
    assert [one.get("overdue") for one in told] == [None, True, False]
    assert said("calibrate", "--remove", 4)[0] == 2
    status, _, err = said("calibrate", "--remove", 2)
    assert (status, "deleted: usb mic channel 1" in err) == (0, True)
    said("calibrate", "--remove", 1)
    assert [(one.device, one.channel) for one in kept_channels()] == [("usb mic", 2)]
    said("calibrate", "--remove", 1)
    status, out, err = said("calibrate", "--list")
    assert (status, out) == (0, "")
    assert "nothing is stored yet" in err


def test_a_device_keeps_its_correction(run, folder, playing, sound_file, tmp_path):
    """With its calibration, which the calibrator's tone went through too."""
    home = {"XDG_CONFIG_HOME": str(tmp_path / "home")}
    tone = 10 ** (-30 / 20) * np.sin(2 * np.pi * 1000 * np.arange(25 * FS) / FS)
    meter = ["meter", "-d", "virtual_mic", "--model", "spl", "--format", "csv", "--duration", 1.5]
    with playing(sound_file(np.stack([tone, tone], axis=1))):
        both = ["-d", "virtual_mic", "-c", "1,2"]
        done = run("calibrate", *both, "--correction", "mic.cal", **home)
        assert done.status == 0, done.err
        heard = run(*meter, **home)
    assert f"amt-stream: {SAID}" in done.lines
    assert "readings there are lowered by 4.5 dB, against 1" in heard.err
    for one in heard.about["calibration"]:
        assert one["correction"]["name"] == "mic.cal"
        assert one["correction"]["reference_hz"] == pytest.approx(1000, abs=0.1)
        assert one["overdue"] is False
    assert float(heard.rows["laf_db"][-1]) == pytest.approx(94.0, abs=0.02)


def test_a_level_that_is_typed_leaves_the_correction_that_is_kept(virtual_mic, folder):
    given = read_correction(folder / "mic.cal")
    keep_corrections("virtual_mic", {2: given})
    first, second = open_microphone("virtual_mic", full_scale_db=120.0).calibration
    assert first == Calibration(120.0)
    assert second == Calibration(120.0).with_correction(given)
    assert second.correction.reference_hz is None


def test_a_calibration_that_is_too_old_is_told(virtual_mic, folder, capsys):
    old = "2026-01-01T00:00:00Z"
    write_records([Record("virtual_mic", c, 94.0, -30.0, 1000.0, old, 0.25, 1) for c in (1, 2)])
    given = open_microphone("virtual_mic")
    assert "virtual_mic: the calibration of 2026-01-01 is" in capsys.readouterr().err
    assert [one["overdue"] for one in calibrations(given.calibration, (1, 2))] == [True, True]
    run_devices(None)
    assert "days old and was valid for 1: calibrate again" in capsys.readouterr().out
