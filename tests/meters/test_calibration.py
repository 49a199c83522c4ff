import json
import math
import os
from dataclasses import asdict

import numpy as np
import pytest

from amt_stream.core.device_store import CalibrationError
from amt_stream.meters.calibration import (
    UNCALIBRATED,
    Calibration,
    Kept,
    Record,
    calibrations_of,
    read_records,
    titles_of,
    uncertainty_of,
    write_records,
)
from amt_stream.meters.calibrator import CalibratorCheck, Refused, measure_tone
from amt_stream.meters.source_description import DEVICE_CLIPS_AT, InputGain

# Rule "TVL/ISO 532-3 authors program" of the calibration conventions: dBMax 100 -> 2.8284 Pa per
# unit, 94 -> 1.4176; then the checks (dBMax, peak of a sine, its level in dB SPL).
PASCAL_PER_UNIT = {100.0: 2.8284, 94.0: 1.4176}
SINES = [(100.0, 0.1, 80.0), (94.0, 1.0, 94.0), (120.0, 0.001, 60.0)]


def record(device="virtual_mic", channel=1, measured=-30.0, **changes):
    given = {"reference_db_spl": 94.0, "frequency_hz": 1000.0, "date": "2026-11-21T09:00:00Z"}
    return Record(device, channel, measured_dbfs=measured, **{**given, **changes})


@pytest.mark.parametrize(("level", "pascal"), PASCAL_PER_UNIT.items())
def test_pascal_per_unit(level, pascal):
    assert Calibration(level).pascal_per_unit == pytest.approx(pascal, abs=5e-5)


@pytest.mark.parametrize(("level", "peak", "expected"), SINES)
def test_level_of_a_sine(level, peak, expected):
    rms = peak * Calibration(level).pascal_per_unit / np.sqrt(2)
    assert 20 * np.log10(rms / 20e-6) == pytest.approx(expected, abs=1e-9)
    dbfs = measure_tone(peak * np.sin(2 * np.pi * 1000 * np.arange(9600) / 48000), 48000).level_dbfs
    assert level + dbfs == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("level", [float("nan"), float("inf"), -1.0, 300.0])
def test_a_level_that_cannot_be_is_refused(level):
    with pytest.raises(ValueError, match="0 to 250 dB SPL"):
        Calibration(level)


@pytest.mark.parametrize("level", ["94", None, True, [94.0]])
def test_a_level_that_is_no_number_is_refused(level):
    with pytest.raises(TypeError, match="give a number, the level of a full-scale sine"):
        Calibration(level)
    assert Calibration(np.float32(94.0)).full_scale_db_spl == 94.0


def test_what_a_calibration_says_of_itself():
    assert str(UNCALIBRATED) == "uncalibrated (assumes full-scale sine = 100 dB SPL)"
    said = str(record(measured=-26.5).calibration)
    assert said.startswith("full-scale sine = 120.50 dB SPL, calibrator of 94 dB at 1000 Hz")
    assert said.endswith("channel 1, 2026-11-21T09:00:00Z")


def test_uncertainties_add_as_squares_and_are_told_with_their_parts():
    given = Calibration(120.0, calibration_uncertainty_db=0.6, microphone_uncertainty_db=0.8)
    assert given.uncertainty_db == pytest.approx(1.0)
    assert str(given) == (
        "full-scale sine = 120.00 dB SPL +- 1.0 dB (k = 2; calibration 0.6 dB, microphone 0.8 dB), "
        "given by the user"
    )


def test_what_is_not_known_has_no_uncertainty():
    assert Calibration(120.0).uncertainty_db is None
    assert UNCALIBRATED.uncertainty_db is None
    assert "+-" not in str(Calibration(120.0))
    known = Calibration(120.0, calibration_uncertainty_db=0.0)
    assert known.uncertainty_db == 1.0  # that of the microphone by default
    larger = known.with_uncertainty(microphone_db=2.0)
    assert uncertainty_of([known, larger]) == 2.0
    assert uncertainty_of([known, Calibration(120.0)]) is None


@pytest.mark.parametrize("db", [-0.1, 20.5, float("nan"), float("inf")])
@pytest.mark.parametrize("part", ["calibration", "microphone"])
def test_an_uncertainty_that_cannot_be_is_refused(part, db):
    with pytest.raises(ValueError, match=rf"{db} dB of the {part}.*: give 0 to 20 dB"):
        Calibration(120.0, **{"calibration_uncertainty_db": 0.1, f"{part}_uncertainty_db": db})


def test_an_uncertainty_needs_something_that_it_is_of():
    assert Calibration(120.0).with_uncertainty() == Calibration(120.0)
    assert Calibration(120.0).with_uncertainty(0.5, 0.0).uncertainty_db == 0.5
    with pytest.raises(ValueError, match="an uncertainty needs a calibration"):
        UNCALIBRATED.with_uncertainty(0.5)
    with pytest.raises(ValueError, match="that of the calibration, which is unknown: give both"):
        Calibration(120.0).with_uncertainty(microphone_db=0.5)


def test_the_calibrators_uncertainty_is_kept_and_older_records_have_none(tmp_path):
    path = tmp_path / "calibrations.jsonl"
    write_records([record(channel=1), record(channel=2, calibrator_uncertainty_db=0.25)], path)
    old, new = read_records(path)
    assert "uncertainty" not in path.read_text().splitlines()[0]
    assert old.calibration.uncertainty_db is None
    assert new.calibration.uncertainty_db == pytest.approx(np.hypot(0.25, 1.0))


def test_a_record_keeps_the_gain_of_the_input_and_the_name_of_the_device(tmp_path):
    path = tmp_path / "calibrations.jsonl"
    gain = InputGain((80.0, 75.5), port="analog-input-mic")
    write_records([record(input_gain=gain, name="UMIK-1"), record(channel=2)], path)
    new, old = read_records(path)
    assert (new.input_gain, new.title, new.calibration.input_gain) == (gain, "UMIK-1", gain)
    assert "on 'UMIK-1' channel 1" in new.calibration.source
    assert (old.input_gain, old.title, old.calibration.input_gain) == (None, "virtual_mic", None)
    assert "input_gain" not in path.read_text().splitlines()[1]
    again = Calibration.from_dict(json.loads(json.dumps(asdict(new.calibration))))
    assert again == Calibration.from_dict(asdict(new.calibration)) == new.calibration


def test_devices_of_one_name_are_told_apart_by_what_they_are_kept_by():
    channels = ("a", 1, "Mic"), ("a", 2, "Mic"), ("b", 1, "Mic"), ("c", 1, "")
    kept = [Kept(*one, record(*one, name=name)) for *one, name in channels]
    assert titles_of(kept) == ["Mic (a)", "Mic (a)", "Mic (b)", "c"]


def test_records_are_kept_by_device_and_channel(tmp_path):
    path = tmp_path / "new" / "calibrations.jsonl"
    assert read_records(path) == []
    write_records([record(channel=1), record(channel=2, measured=-20.0)], path)
    write_records([record(channel=1, measured=-25.0), record('a "b"\n\u00e9', 1)], path)
    assert len(path.read_text().splitlines()) == 3
    by_key = {(r.device, r.channel): r.full_scale_db_spl for r in read_records(path)}
    expected = {("virtual_mic", 1): 119.0, ("virtual_mic", 2): 114.0, ('a "b"\n\u00e9', 1): 124.0}
    assert by_key == expected
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_channels_without_a_record_are_uncalibrated(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    write_records([record(channel=2)])
    left, right = calibrations_of({"virtual_mic"}, (1, 2))
    assert left is UNCALIBRATED
    assert right.full_scale_db_spl == 124.0
    assert calibrations_of({"another"}, (2,)) == [UNCALIBRATED]


GOOD = json.loads(json.dumps(vars(record())))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{not json", "not JSON"),
        ("[1, 2]", "not a record"),
        (json.dumps({**GOOD, "chanel": 1}), "the keys are"),
        (json.dumps({**GOOD, "channel": "1"}), "channel has the invalid value '1'"),
        (json.dumps({**GOOD, "measured_dbfs": True}), "measured_dbfs has the invalid value True"),
        (json.dumps({**GOOD, "measured_dbfs": -400.0}), "0 to 250 dB SPL"),
        (
            json.dumps({**GOOD, "calibrator_uncertainty_db": "1"}),
            "calibrator_uncertainty_db has the invalid value '1",
        ),
        (json.dumps({**GOOD, "calibrator_uncertainty_db": -1}), "give 0 to 20 dB"),
        (json.dumps({**GOOD, "input_gain": {"percent": 50}}), "give percent, muted and port"),
        (json.dumps({**GOOD, "input_gain": 50}), "input_gain has the invalid value 50"),
        (json.dumps({**GOOD, "name": 1}), "name has the invalid value 1"),
        ("[" * 500_000, "nested too deeply"),  # Python 3.14 reads tens of thousands
        (json.dumps({**GOOD, "channel": 10**399}), "channel is 1000*[.][.][.], which is out"),
        (json.dumps({**GOOD, "frequency_hz": math.nan}), "frequency_hz is nan, which is out"),
    ],
)
def test_a_broken_file_is_named_with_its_line_and_kept(tmp_path, line, said):
    path = tmp_path / "calibrations.jsonl"
    text = json.dumps(GOOD) + "\n" + line + "\n"
    path.write_text(text)
    for use in (lambda: read_records(path), lambda: write_records([record()], path)):
        with pytest.raises(CalibrationError, match=rf"calibrations.jsonl, line 2: .*{said}"):
            use()
    assert path.read_text() == text


def test_a_file_is_read_within_its_bound_and_written_through_no_link(tmp_path):
    path, victim = tmp_path / "calibrations.jsonl", tmp_path / "victim"
    path.write_bytes(b" " * ((1 << 20) + 1))
    with pytest.raises(CalibrationError, match="has more than 1048576 bytes"):
        read_records(path)
    with pytest.raises(CalibrationError, match="is a folder"):
        read_records(tmp_path)
    victim.write_text("kept")
    path.unlink()
    (tmp_path / f"calibrations.jsonl.{os.getpid()}").symlink_to(victim)
    write_records([record(device="\ud800\x1b[2J")], path)
    assert victim.read_text() == "kept"
    assert read_records(path) == [record(device="\ud800\x1b[2J")]


@pytest.mark.parametrize("fs", [16000, 44100, 48000, 192000])
@pytest.mark.parametrize("frequency", [250.0, 987.654, 1000.0])
def test_measured_tone(fs, frequency):
    time_s = np.arange(round(0.2 * fs)) / fs
    tone = measure_tone(0.01 + 0.05 * np.sin(2 * np.pi * frequency * time_s + 1.0), fs)
    assert tone.level_dbfs == pytest.approx(20 * np.log10(0.05), abs=0.001)
    assert tone.frequency == pytest.approx(frequency, abs=0.01)
    assert tone.residual_db < -50
    assert not tone.clipped


@pytest.mark.parametrize("top", [1.0, 0.3])
def test_clipping_is_seen_at_full_scale_and_below(top):
    tone = np.sin(2 * np.pi * 1000 * np.arange(9600) / 48000)
    assert measure_tone(np.clip(1.1 * top * tone, -top, top), 48000).clipped
    assert not measure_tone(0.9 * top * tone, 48000).clipped


FS = 48000
TIME_S = np.arange(8 * FS) / FS


def sine(level_dbfs, frequency=1000.0):
    return 10 ** (np.asarray(level_dbfs) / 20) * np.sin(2 * np.pi * frequency * TIME_S)


def listen(x, size=4410, frequency=1000.0):
    check = CalibratorCheck(FS, frequency)
    for at in range(0, len(x), size):
        check.push(x[at : at + size].astype(np.float32))
    return check.finish()


def noise(rms):
    return rms * np.random.default_rng(1).standard_normal(len(TIME_S))


@pytest.mark.parametrize("size", [441, 8193])
def test_a_tone_is_found_after_silence_and_talk(size):
    x = np.concatenate([np.zeros(3 * FS), noise(0.05)[:FS], sine(-26.0) + noise(1e-3)])
    assert listen(x, size).level_dbfs == pytest.approx(-26.0, abs=0.005)


def test_another_calibrator_frequency():
    found = listen(sine(-20.0, 250.0), frequency=250.0)
    assert found.frequency == pytest.approx(250.0, abs=0.01)
    assert found.level_dbfs == pytest.approx(-20.0, abs=0.001)


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    ("x", "said"),
    [
        (lambda: sine(-20.0, 250.0), r"wrong frequency: 250\.0 Hz instead of 1000 Hz"),
        (lambda: sine(-20.0, 1025.0), r"wrong frequency: 1025\.0 Hz"),
        (lambda: noise(0.1), "not a tone"),
        (lambda: noise(0.5), "not a tone"),
        (lambda: sine(-20.0) + sine(-25.0, 1300.0), "not a tone"),
        (lambda: sine(-20.0 + 0.1 * TIME_S), "level drifts: it changed by 0.2"),
        (lambda: sine(-20.0 + np.sin(2 * np.pi * TIME_S)), "level drifts"),
        (lambda: np.clip(sine(1.0), -1.0, 1.0), "clipped"),
        (lambda: np.clip(sine(20.0), -1.0, 1.0), "clipped"),
        (lambda: 0.3 * np.clip(sine(1.0), -1.0, 1.0), "clipped"),
        (lambda: sine(-80.0), r"too quiet \(-80\.0 dBFS\)"),
        (lambda: 0.0 * TIME_S, "digital silence"),
        (lambda: np.concatenate([sine(-20.0)[: 2 * FS], 0.0 * TIME_S]), "was there for 2.0 s only"),
        (lambda: sine(-20.0)[:1000], "there was no sound"),
        (lambda: np.where(TIME_S == 1.0, np.nan, sine(-20.0)), "NaN or infinity"),
    ],
)
def test_anything_else_is_refused_with_its_reason(x, said):
    with pytest.raises(Refused, match=said):
        listen(x())


def test_a_fault_that_lasts_ends_the_wait():
    check = CalibratorCheck(FS)
    with pytest.raises(Refused, match="wrong frequency"):
        check.push(sine(-20.0, 250.0)[: round(6.2 * FS)])


def test_a_tone_with_a_gap_every_second_is_refused():
    check = CalibratorCheck(FS)
    for _ in range(8):
        assert check.push(sine(-20.0)[:FS]) is None
        check.interrupt()
    with pytest.raises(Refused, match=r"sound was lost \(8 times\), and 3 s of the tone"):
        check.finish()


def test_a_level_that_swings_as_often_as_it_is_measured_is_not_steady():
    swinging = sine(-20.0) * (1 + 0.1 * np.sin(2 * np.pi * 5 * TIME_S))
    with pytest.raises(Refused, match=r"level drifts: it changed by 1\.\d+ dB in 0\.2 s"):
        listen(swinging)
    assert listen(sine(-20.0) + noise(0.007)).level_dbfs == pytest.approx(-20.0, abs=0.02)


def test_a_converter_clips_at_its_own_end():
    tone = sine(-0.06)
    with pytest.raises(Refused, match="the tone is clipped"):
        CalibratorCheck(FS, clips_at=127 / 128).push(tone)
    assert CalibratorCheck(FS, clips_at=DEVICE_CLIPS_AT).push(tone)
    check = CalibratorCheck(FS, clips_at=None)
    assert check.push(sine(6.0)).level_dbfs == pytest.approx(6.0, abs=0.001), "floats have no end"


def test_a_recording_of_a_tone_with_two_levels_is_refused():
    two = np.concatenate([sine(-26.0)[: 4 * FS], sine(-20.0)[: 4 * FS]])
    check = CalibratorCheck(FS, recorded=True)
    check.push(two)
    with pytest.raises(Refused, match=r"two levels: -26\.00 dBFS and later -20\.00 dBFS; give"):
        check.finish()
    assert listen(two).level_dbfs == pytest.approx(-26.0, abs=0.001), "who listens accepts it"
