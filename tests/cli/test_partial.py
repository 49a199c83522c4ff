"""A target in a background from another file, as a user analyzes both."""

import json

import numpy as np
import pytest
import soundfile

from amt_stream.dsp.scales import pa_to_db_spl
from tests.dsp.metrology.test_partial import FS, noise, tone

FULL_SCALE_DB = pa_to_db_spl(1 / np.sqrt(2))
"""Of a file in pascal."""


@pytest.fixture
def summary_of(said):
    def analyze(*args, full_scale_db=FULL_SCALE_DB):
        level = [] if full_scale_db is None else ["--full-scale-db", full_scale_db]
        status, out, err = said("analyze", *args, "--summary", *level)
        return (json.loads(out) if out else None), err, status

    return analyze


def write(name, *sounds, fs=FS):
    soundfile.write(name, np.stack(sounds, 1), fs, subtype="FLOAT")


def test_of_two_files_it_is_that_of_both_as_channels(summary_of):
    target, background = tone(75, 2), noise(40, 3)
    write("alarm.wav", target)
    write("machine.wav", background)
    write("both.wav", target, background[: len(target)])
    apart, said, status = summary_of("alarm.wav", "--background", "machine.wav")
    together, _, _ = summary_of("both.wav", "--model", "partial")
    assert status == 0
    assert "steady" not in said
    for name in ("partial_max_ltl_sone", "target_max_sone", "background_max_sone"):
        assert apart[name] == pytest.approx(together[name], rel=1e-6)
    assert apart["audible_n50_db"] == pytest.approx(16, abs=2)
    assert 1 < apart["partial_max_ltl_sone"] < apart["target_max_sone"]


def test_a_shorter_background_counts_as_steady(summary_of):
    write("alarm.wav", tone(75, 2))
    write("machine.wav", noise(40, 1.5))
    found, said, status = summary_of("alarm.wav", "--background", "machine.wav")
    assert status == 0
    assert "machine.wav is shorter than alarm.wav: it counts as steady, by its mean" in said
    assert found["audible_n50_db"] == pytest.approx(16, abs=2)


def test_the_file_that_is_clipped_is_told(summary_of, said):
    """In integers, whatever the other file is in; beyond full scale in floating point is sound."""
    loud = np.clip(noise(40, 1) / 0.01, -1, 1)
    for name, kind, x in (
        ("soft", "PCM_16", 1e-3 * np.sign(loud)),
        ("float", "FLOAT", 2 * np.sign(loud)),
        ("clipped", "PCM_16", np.sign(loud)),
        ("long", "PCM_16", np.sign(np.concatenate([loud, loud]))),
    ):
        soundfile.write(f"{name}.wav", x, FS, kind)
    ends = "clipped.wav is clipped: the background is at least so loud"
    for target, background, is_clipped in (
        ("soft", "float", False),
        ("float", "clipped", True),
        ("soft", "clipped", True),
    ):
        found, words, _ = summary_of(f"{target}.wav", "--background", f"{background}.wav")
        assert (ends in words) == is_clipped
        assert (found["statistics"]["partial"]["clipped_s"] > 0) == is_clipped
        assert "at least what they say" not in words
    assert ends in summary_of("long.wav", "--background", "clipped.wav")[1]
    at = "--background", "clipped.wav", "--full-scale-db", 100, "--format", "jsonl"
    header = json.loads(said("analyze", "soft.wav", *at)[1].splitlines()[0])
    if_clipped = {one["name"]: one.get("if_clipped") for one in header["header"]["columns"]}
    assert if_clipped["partial_ltl_sone"] == if_clipped["audible_db"] == "uncertain"
    assert if_clipped["background_sone"] == "at least"


def test_two_ears(summary_of):
    write("alarm.wav", tone(75, 1), tone(70, 1))
    write("machine.wav", noise(40, 1), noise(40, 1, seed=2))
    found, said, status = summary_of("alarm.wav", "--background", "machine.wav")
    assert status == 0
    assert "does not say" not in said
    assert found["channels"] == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("background", "options", "words"),
    [
        (([noise(40, 1)], 16000), (), "32000 Hz and machine.wav 16000 Hz: give two recordings of"),
        (([noise(40, 1)] * 2, FS), (), "1 channel and machine.wav has 2 channels: give one of"),
        (([noise(40, 0.5)], FS), (), "the background has 0.5"),
        (([noise(40, 1)], FS), ("--model", "spl"), "leave out --model, --preset and --channels"),
        (None, (), "there is no file machine.wav"),
    ],
)
def test_what_does_not_fit_is_refused(summary_of, background, options, words):
    write("alarm.wav", tone(75, 1))
    if background is not None:
        sounds, fs = background
        write("machine.wav", *sounds, fs=fs)
    found, said, status = summary_of("alarm.wav", "--background", "machine.wav", *options)
    assert found is None
    assert status != 0
    assert words in said
    assert "Traceback" not in said


def test_another_calibration_is_refused(summary_of, tmp_path):
    write("alarm.wav", tone(75, 1))
    write("machine.wav", noise(40, 1))
    (tmp_path / "levels.csv").write_text(
        "file,channel,full_scale_db\nalarm.wav,,90\nmachine.wav,,94\n", "utf-8"
    )
    args = "alarm.wav", "--background", "machine.wav", "--calibrations", "levels.csv"
    found, said, status = summary_of(*args, full_scale_db=None)
    assert (found, status) == (None, 1)
    assert "alarm.wav is calibrated as 90 dB SPL at full scale and machine.wav as 94" in said


def test_an_analysis_in_another_background_is_not_resumed(said):
    write("alarm.wav", tone(75, 1))
    write("bell.wav", tone(70, 1))
    args = "analyze", "alarm.wav", "bell.wav", "--background", "machine.wav", "--out", "rows"
    level = "--full-scale-db", FULL_SCALE_DB
    write("machine.wav", noise(40, 1))
    status, _, err = said(*args, *level)
    assert status == 0, err
    status, _, err = said(*args, *level, "--resume")
    assert status == 0, err
    write("machine.wav", noise(40, 1.5))
    status, _, err = said(*args, *level, "--resume")
    assert status != 0
    assert "background" in err


def test_a_file_of_one_channel_is_refused(summary_of):
    write("alarm.wav", tone(75, 1))
    found, said, status = summary_of("alarm.wav", "--model", "partial")
    assert (found, status) == (None, 1)
    assert "1 channel: give the target and the background as channels 1 and 2" in said


def live(said, *options):
    """The last row of `meter` on heard.wav, in the background of machine.wav."""
    asked = "--source", "heard.wav", "--full-scale-db", FULL_SCALE_DB, "--format", "jsonl"
    status, out, err = said("meter", "--background", "machine.wav", *asked, *options)
    lines = [json.loads(line) for line in out.splitlines()]
    return [one for one in lines if "time_s" in one][-1], err, status


def test_live_the_background_is_taken_from_what_the_microphone_hears(said, summary_of):
    target = tone(75, 4)
    write("machine.wav", noise(40, 10))
    write("heard.wav", target + noise(40, 4, seed=3))
    write("alarm.wav", target)
    row, err, status = live(said)
    assert status == 0
    assert "the background is machine.wav, 10.0 s: right only if it is steady" in err
    apart, _, _ = summary_of("alarm.wav", "--background", "machine.wav")
    # What of a noise is above its mean counts with the target.
    assert row["partial_ltl_sone"] == pytest.approx(apart["partial_max_ltl_sone"], rel=0.2)
    assert row["audible_db"] == pytest.approx(apart["audible_n50_db"], abs=0.5)


def test_a_log_over_a_stored_background_names_it_and_is_not_measured_again(said):
    write("machine.wav", noise(40, 1))
    write("heard.wav", noise(40, 1, seed=3))
    asked = "--source", "heard.wav", "--full-scale-db", FULL_SCALE_DB, "--quiet", "--log-sound"
    status, _, err = said("meter", "--background", "machine.wav", "--log", "night", *asked)
    assert status == 0, err
    status, _, err = said("replay", "night")
    assert status != 0
    assert "night was measured over machine.wav, of which it has no copy: it cannot be" in err


def test_live_a_background_alone_has_no_target(said):
    write("machine.wav", noise(40, 2))
    write("heard.wav", noise(40, 4, seed=3))
    row, err, _ = live(said)
    assert "2.0 s, 10 s are better" in err
    _, out, _ = said(
        *("meter", "--background", "machine.wav", "--source", "heard.wav", "--duration", 1),
        *("--full-scale-db", FULL_SCALE_DB, "--format", "jsonl"),
    )
    columns = json.loads(out.splitlines()[0])["header"]["columns"]
    notes = {one["name"]: one.get("note", "") for one in columns}
    for name in ("partial_ltl_sone", "audible_db"):
        assert notes[name].endswith("over a stored background: right only if it is steady")
    assert row["audible_db"] < 0
    assert row["background_sone"] > 5


@pytest.mark.parametrize(
    ("channels", "options", "words"),
    [
        (2, (), "machine.wav has 2 channels and heard.wav 1: give as many"),
        (1, ("--model", "spl"), "--background is for the model partial, and not for spl"),
        (0, (), "there is no file machine.wav"),
    ],
)
def test_live_a_background_that_does_not_fit_is_refused(said, channels, options, words):
    write("heard.wav", tone(75, 1))
    if channels:
        write("machine.wav", *[noise(40, 1)] * channels)
    asked = "--source", "heard.wav", "--full-scale-db", FULL_SCALE_DB, "--format", "jsonl"
    status, out, err = said("meter", "--background", "machine.wav", *asked, *options)
    assert (status != 0, out) == (True, "")
    assert words in err
    assert "Traceback" not in err
