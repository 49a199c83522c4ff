"""A log that was told to keep a table of intervals, in each of its formats."""

import csv
import json
import sqlite3
from datetime import UTC

import pytest

from amt_stream.meters.frames import Snapshot
from amt_stream.meters.presets import Preset
from amt_stream.meters.specification import RowSettings
from amt_stream.meters.table import Sound, Table
from amt_stream.sessions import Session, SessionLog, verify
from amt_stream.sessions.results import read_results
from amt_stream.sessions.snapshot import SNAPSHOT
from tests.sessions.conftest import FS, HOUR, LOUD

FORMATS = ["sqlite", "csv", "jsonl", "parquet"]


def table_of():
    preset = Preset(("spl",))
    sound = Sound("a sound", FS, (1, 2), [LOUD], None)
    return Table(preset, preset.models(FS, 2), sound, RowSettings(100, interval=1, zone=UTC))


@pytest.fixture
def night(at, tmp_path):
    """A log of 5 s over the end of an hour, with the intervals that it should have."""

    def make(format):
        frames = at(lambda time_s: HOUR - 2.05 + time_s)
        plain = table_of()
        for one in frames:
            plain.rows(one)
        with SessionLog(tmp_path / "night", table_of(), format=format) as log:
            for one in frames:
                log(one)
            log.ended(5.0)
        return tmp_path / "night", [*plain.rows.intervals_ended(5.0)]

    return make


@pytest.mark.parametrize("format", FORMATS)
def test_a_log_keeps_its_intervals(night, format):
    folder, expected = night(format)
    kept = Session(folder).intervals()
    assert kept == expected
    assert [row["utc"][11:] for row in kept] == [
        *("13:59:57.950Z", "13:59:58.000Z", "13:59:59.000Z"),
        *("14:00:00.000Z", "14:00:01.000Z", "14:00:02.000Z"),
    ]
    assert [row["partial"] for row in kept] == [True, False, False, False, False, True]
    (description,) = Session(folder).descriptions.values()
    interval = description["header"]["interval"]
    assert (interval["seconds"], interval["clock"]) == (1, "UTC")
    assert [c["name"] for c in interval["columns"] if c["model"]] == [
        *("laeq_db", "lafmax_db", "lafmin_db", "l10_db", "l50_db", "l90_db", "lcpeak_db")
    ]
    verdict = verify(folder)
    assert (verdict.word, verdict.open) == ("intact", [])


@pytest.mark.parametrize("format", FORMATS)
def test_an_edited_interval_is_found(night, format):
    folder, _ = night(format)
    assert verify(folder).word == "intact"
    if format == "sqlite":
        with sqlite3.connect(folder / "rows.sqlite") as connection:
            connection.execute("UPDATE intervals SET laeq_db = laeq_db - 1 WHERE id = 2")
        connection.close()
    else:
        part = max(folder.glob("intervals-*"))
        data = bytearray(part.read_bytes())
        data[len(data) // 2] ^= 1
        part.write_bytes(data)
    assert verify(folder).word == "edited"


def test_intervals_as_text_say_what_they_are(night):
    folder, expected = night("csv")
    part = min(folder.glob("intervals-*.csv"))
    lines = part.read_text().splitlines()
    about = {k: json.loads(v) for k, v in (x[2:].split(": ", 1) for x in lines if x[0] == "#")}
    assert about["interval"] == {"seconds": 1, "clock": "UTC"}
    rows = list(csv.DictReader(line for line in lines if line[0] != "#"))
    assert [float(row["laeq_db"]) for row in rows] == [
        row["laeq_db"] for row in expected[: len(rows)]
    ]
    assert {c["name"] for c in about["columns"]} < set(rows[0])


@pytest.mark.cases(2)
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("ends", ["in order", "at once"])
def test_a_restored_log_has_each_interval_once(at, tmp_path, format, ends, until):
    """Whether the first run ended, with a partial interval, or wrote one after its snapshot."""
    frames, folder = at(lambda time_s: HOUR + time_s), tmp_path / "night"
    whole = table_of()
    for one in frames:
        whole.rows(one)
    with SessionLog(folder, table_of(), format=format) as log:
        for one in frames[:56]:
            log(one)
        log.snapshot(Snapshot(280 * 480, HOUR + 2.8, {"x": 0}))
        until((folder / SNAPSHOT).exists)
        for one in frames[56:66]:
            log(one)
        if ends == "in order":
            log.ended(3.3)
    with SessionLog(folder, table_of(), format=format, restore=True) as log:
        for one in frames[56:]:
            log(one)
        log.ended(5.0)
    table = read_results(folder).intervals
    assert table["end_s"].tolist() == [1, 2, 3, 4, 5]
    assert [*table] == [*whole.rows.intervals_ended(5.0)]
    assert verify(folder).word == "intact"
