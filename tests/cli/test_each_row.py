"""Several microphones of one source, each with rows of its own."""

import json
from importlib import resources

import jsonschema
import numpy as np
import pytest

from amt_stream.sessions import Session
from amt_stream.sessions.replay import replay_session
from tests.cli.conftest import Table

SCHEMA = json.loads(resources.files("amt_stream.dsp.data").joinpath("rows.schema.json").read_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
SHOWN = ["--step-ms", 100, "--full-scale-db", 100, "--model", "spl"]
DESK_AND_DOOR = ["-c", "desk=1,2", "-c", "door=4,3"]


@pytest.fixture
def four_channels(sound_file, tone):
    """A file of four channels, each louder than the one before."""
    parts = [tone(level, 1.0)[:, :1] for level in (50, 60, 70, 80)]
    return sound_file(np.concatenate(parts, axis=1))


@pytest.fixture
def meter(said, four_channels):
    """Rows of that file."""
    return lambda *typed: said("meter", "--source", four_channels, "--fast", *typed)


def sounding(row):
    """All of it but its name, and what the clock says."""
    return {name: value for name, value in row.items() if name not in ("row", "utc")}


def test_rows_of_each_are_those_of_a_run_of_its_own(meter):
    status, out, err = meter(*DESK_AND_DOOR, *SHOWN, "--format", "jsonl")
    assert status == 0, err
    header, *rows, summary = map(json.loads, out.splitlines())
    for line in (header, *rows, summary):
        VALIDATOR.validate(line)
    assert header["header"]["source"]["microphones"] == {"desk": [1, 2], "door": [4, 3]}
    assert header["header"]["source"]["channels"] == [1, 2, 4, 3]
    assert header["header"]["columns"][0]["name"] == "row"
    assert [row["row"] for row in rows[:4]] == ["desk", "door", "desk", "door"]
    for name, channels in (("desk", "1,2"), ("door", "4,3")):
        _, out, _ = meter("-c", channels, *SHOWN, "--format", "jsonl")
        _, *expected, total = map(json.loads, out.splitlines())
        mine = [row for row in rows if row["row"] == name]
        assert [sounding(row) for row in mine] == [sounding(row) for row in expected]
        told = summary["summary"]["microphones"][name]
        assert told == {key: total["summary"][key] for key in told}
    # Left and right are as they were typed.
    assert rows[-1]["laf_left_db"] == pytest.approx(80, abs=0.3)
    assert rows[-1]["laf_right_db"] == pytest.approx(70, abs=0.3)


def test_a_preset_has_rows_by_name(meter, tmp_path):
    (tmp_path / "mine.toml").write_text(
        '[model]\nname = "spl"\n[meter]\nmicrophones = { desk = [1], door = [3] }\n'
    )
    given = ["--preset", "mine.toml", "--full-scale-db", 100, "--format", "csv"]
    status, out, err = meter(*given)
    assert status == 0, err
    found = Table(out)
    assert list(found.rows)[:4] == ["time_s", "utc", "sample", "row"]
    door = found.rows["row"] == "door"
    assert float(found.rows["laf_db"][~door][-1]) == pytest.approx(50, abs=0.3)
    assert float(found.rows["laf_db"][door][-1]) == pytest.approx(70, abs=0.3)
    # What is typed wins.
    status, out, err = meter(*given, "-c", 4)
    assert "row" not in Table(out).rows


@pytest.mark.parametrize("log_format", ["sqlite", "csv"])
def test_a_log_has_rows_of_each_and_is_replayed(meter, said, tmp_path, log_format):
    typed = ["-c", "1", "-c", "2", "-c", "3", "--quiet", "--log", "night", "--log-sound", "wav"]
    status, _, err = meter(*typed, *SHOWN, "--log-format", log_format)
    assert status == 0, err
    rows = list(Session(tmp_path / "night").rows())
    assert [row["row"] for row in rows] == ["1", "2", "3"] * 11
    assert [row["time_s"] for row in rows[::3]] == pytest.approx([n / 10 for n in range(11)])
    assert said("verify", "night")[0] == 0
    replayed = replay_session(tmp_path / "night")
    assert replayed.same, replayed.differs
    assert replayed.rows == len(rows)


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        (["-c", "1", "-c", "2"], "2 microphones cannot be shown, only written"),
        (["-c", "1", "-c", "1", "--format", "csv"], "two microphones are called '1'"),
        (["-c", "1", "-c", "7", "--format", "csv"], "has no channel 7"),
        (["-c", "a,b=1", "--format", "csv"], "give a printable name"),
        (["-c", "@SUM(A1)=1", "--format", "csv"], "a spreadsheet takes that for a formula"),
        (["-c", "+2-3=1", "--format", "csv"], "a spreadsheet takes that for a formula"),
        (["-c", "\uff1d1+1=1", "--format", "csv"], "a spreadsheet takes that for a formula"),
        (["-c", "desk=1,2,3", "--format", "csv"], "give one channel"),
        (["-c", "1", "-c", "2,3", "--format", "csv"], "measures each channel on its own"),
        (
            ["-c", "1", "-c", "2", "--quiet", "--log", "n", "--restore"],
            "--restore continues one microphone",
        ),
    ],
)
def test_what_cannot_be_rows_is_refused_in_a_sentence(meter, typed, told):
    status, out, err = meter(*typed, "--model", "spl")
    assert status != 0
    assert not out
    assert told in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    "given", ["[1, 2]", "{ desk = [1, 2, 3] }", '{ "a,b" = [1] }', '{ "+1" = [1] }', "{}"]
)
def test_a_preset_whose_rows_are_none_is_refused(meter, tmp_path, given):
    (tmp_path / "mine.toml").write_text(f'[model]\nname = "spl"\n[meter]\nmicrophones = {given}\n')
    status, _, err = meter("--preset", "mine.toml", "--format", "csv")
    assert status == 1
    assert "meter.microphones is" in err
