"""Impulses of a recording that a person leaves out of its rating level."""

import csv
import json

import numpy as np
import pytest
import soundfile

from tests.meters.test_rating import FS, sound


@pytest.fixture
def analyzed(said):
    def analyze(*args, files=("fan.wav",), model="rating"):
        asked = "analyze", *files, "--model", model, "--full-scale-db", 90, *args
        status, out, err = said(*asked)
        assert (status == 0) == bool(out)
        return out or err

    return analyze


@pytest.fixture
def summary_of(analyzed):
    return lambda *args, **more: json.loads(analyzed("--summary", *args, **more))


def column(rows, name):
    lines = [line for line in rows.splitlines() if not line.startswith("#")]
    return {row[name] for row in csv.DictReader(lines)} - {""}


@pytest.fixture
def times(analyzed):
    """When the two impulses began, as rows say."""
    for name in ("fan.wav", "other.wav"):
        soundfile.write(name, sound(), FS, subtype="FLOAT")
    return sorted(column(analyzed(), "impulse_s"), key=float)


def test_neither_rows_nor_summary_count_them(summary_of, analyzed, times):
    before, after = summary_of(), summary_of("--without-impulses", times[1])
    assert (before["impulse_n"], after["impulse_n"]) == (2, 1)
    assert after["ki_db"] < before["ki_db"]
    assert after["rating_db"] == pytest.approx(
        before["rating_db"] - before["ki_db"] + after["ki_db"]
    )
    assert after["left_out_impulses_s"] == [float(times[1])]
    rows = analyzed("--without-impulses", ",".join(times))
    assert {float(value) for value in column(rows, "ki_db")} == {0.0}
    assert f"# left_out_impulses_s: [{', '.join(times)}]" in rows


def test_a_report_of_the_rows_says_which(analyzed, said, times, tmp_path):
    rows = tmp_path / "fan.csv"
    rows.write_text(analyzed("--without-impulses", times[1]))
    assert said("report", rows)[0] == 0
    assert "impulse left out" in (tmp_path / "fan.csv-report.html").read_text()


def test_intervals_do_not_count_them(summary_of, times):
    parts = "--interval", "5", "--without-impulses"
    before, after = (summary_of(*parts[:2], *more) for more in ((), (*parts[2:], times[1])))
    adjustments = [[bool(one["ki_db"]) for one in each["intervals"]] for each in (before, after)]
    assert adjustments == [[True, True, False], [True, False, False]]


def test_both_channels_leave_one_out_though_it_reached_them_apart(summary_of, times):
    both = np.stack([sound(), np.roll(sound(), int(0.03 * FS)) / 2], 1)
    soundfile.write("fan.wav", both, FS, subtype="FLOAT")
    after = summary_of("--without-impulses", times[1])
    assert after["ki_db"] == pytest.approx(summary_of("--to", "7")["ki_db"], abs=0.3)


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    ("asked", "more", "words"),
    [
        ("5", {}, "no impulse began at 5 s, as --without-impulses has it: impulses began at 4.0"),
        ("4", {"model": "spl"}, "is for the models impulses and rating, and not for spl"),
        ("4", {"files": ("fan.wav", "other.wav")}, "is for one sound, and these are 2: give one"),
        ("soon", {}, "'soon' is not a number from 0"),
    ],
)
def test_what_cannot_be_left_out_is_refused(analyzed, times, asked, more, words):
    assert words in analyzed("--summary", "--without-impulses", asked, **more)
