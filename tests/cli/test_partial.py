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
