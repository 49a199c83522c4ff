"""What was measured, read back: the same numbers wherever they were kept."""

import json
from dataclasses import replace

import numpy as np
import pytest

from amt_stream.engine import Engine, PushSource
from amt_stream.engine.microphone.microphones import Microphone
from amt_stream.meters.limits import limit_from_text
from amt_stream.meters.presets import Preset
from amt_stream.meters.rows.block import unix_s
from amt_stream.meters.specification import RowSettings
from amt_stream.meters.table import Sound, Table
from amt_stream.offline.measure import measure
from amt_stream.sessions import Session, SessionError, SessionLog
from amt_stream.sessions.outputs import CsvWriter, JsonLinesWriter, ParquetWriter
from amt_stream.sessions.results import Results, ResultsError, read_results
from tests.sessions.report.conftest import FS, MARK, SURE, measure_into

NOISE = 0.01 * np.random.default_rng(1).standard_normal((FS, 2))


def test_a_log_is_read_with_its_rows_summary_gap_and_marks(log):
    found = read_results(log)
    session = Session(log)
    rows = list(session.rows())
    assert len(found.rows) == len(rows) == 41
    assert found.rows["laf_db"].tolist()[5:] == [row["laf_db"] for row in rows][5:]
    assert (
        found.summary["laeq_db"]
        == json.loads((log / "summary.json").read_text())["summary"]["laeq_db"]
    )
    (gap,) = found.stretches
    assert (gap.fault, gap.begin_s, gap.end_s) == ("gap", 2.5, 3.5)
    assert gap.text == "pushed sound lost it"
    assert [mark.text for mark in found.marks] == [MARK]
    first = np.datetime64(rows[0]["utc"].removesuffix("Z"), "ms")
    assert found.clock.utc(0.0) == pytest.approx(float(unix_s(first)), abs=1e-4)
    assert found.calibrated
    assert found.proof.head == session.entries[-1]["hash"]


@pytest.mark.parametrize("format", ["csv", "jsonl", "parquet"])
def test_every_format_of_logs_is_read_alike(log, tmp_path, format):
    found = read_results(measure_into(tmp_path / "log", format=format))
    usual = read_results(log)
    assert found.rows.columns == usual.rows.columns
    np.testing.assert_array_equal(found.rows["laf_db"], usual.rows["laf_db"])
    assert found.limits == usual.limits
    assert [one.text for one in found.stretches] == [one.text for one in usual.stretches]


def test_limits_counted_from_rows_are_those_of_the_summary(log):
    found = read_results(log)
    broken_off = replace(found, summary={})
    assert broken_off.limits == found.limits
    assert [one["exceeded"] for one in found.limits] == [True, None], "1 s of 4 s is missing"
    assert found.limits[1]["unjudged_s"] == pytest.approx(1.1)


def test_only_the_columns_that_are_wanted_are_read_and_those_of_limits(log):
    found = read_results(log, lambda column: column.name == "las_db")
    readings = {name for name in found.rows.columns if name.endswith("_db")}
    assert readings == {"laf_db", "las_db", "laeq_2s_db"}
    assert "laeq_db" in found.last


@pytest.mark.parametrize(
    ("ending", "writer"),
    [("csv", CsvWriter), ("jsonl", JsonLinesWriter), ("parquet", ParquetWriter)],
)
def test_files_of_rows_are_read_as_measure_gave_them(tmp_path, ending, writer):
    given = measure(NOISE, FS, "spl", calibration=100.0, step_ms=100, limits=["laf_db>20"])
    path = tmp_path / f"rows.{ending}"
    with path.open("w", encoding="utf-8", newline="\n") as file:
        rows = writer(file, given.header)
        rows.write(given.rows)
        rows.finish(given.summary)
    found, direct = read_results(path), Results.of_measured(given)
    np.testing.assert_array_equal(found.rows["laf_db"], direct.rows["laf_db"])
    assert found.clock is None
    assert found.limits == direct.limits
    assert bool(found.summary) == (ending != "csv")


def test_what_holds_no_results_is_refused_in_a_sentence(log, tmp_path):
    def refused(path, match, error=ResultsError, **more):
        with pytest.raises(error, match=match):
            read_results(path, **more)

    refused(tmp_path / "none.csv", "cannot be read: No such file")
    refused(tmp_path, "not a session", SessionError)
    (tmp_path / "a.txt").write_text("x")
    refused(tmp_path / "a.txt", "give the folder of a log")
    (tmp_path / "a.csv").write_text("time_s\n1\n")
    refused(tmp_path / "a.csv", "models is missing")
    refused(log, "there are 1", SessionError, run=7)
    refused(log, "no microphone called 'desk'", microphone="desk")


DAMAGES = {
    "columns": 3,
    "models": [{"name": 3}],
    "calibration": [{"channel": 1, "calibrated": True, "full_scale_db_spl": "loud"}],
    "source": {"name": "x", "fs": None, "channels": [1]},
    "step_ms": "slow",
    "statistics": {},
}


@pytest.mark.parametrize("key", DAMAGES)
def test_a_header_that_is_none_is_refused(tmp_path, key):
    given = measure(NOISE, FS, "spl", calibration=100.0, step_ms=100)
    path = tmp_path / "rows.jsonl"
    header = json.dumps({"header": {**given.header, key: DAMAGES[key]}})
    path.write_text(header + "\n" + json.dumps(next(iter(given.rows))) + "\n")
    with pytest.raises(ResultsError):
        read_results(path)


def test_a_row_that_is_none_is_refused(tmp_path):
    given = measure(NOISE, FS, "spl", calibration=100.0, step_ms=100)
    path = tmp_path / "rows.jsonl"
    row = {**next(iter(given.rows)), "laf_db": "loud"}
    path.write_text(json.dumps({"header": given.header}) + "\n" + json.dumps(row) + "\n")
    with pytest.raises(ResultsError, match="invalid rows"):
        read_results(path)


def test_of_several_microphones_one_is_chosen(tmp_path):
    preset = Preset(("spl",), limits=(limit_from_text("laf_db>50"),))
    models = preset.models(FS, 1)
    rows = (("desk", (1,)), ("door", (2,)))
    table = Table(
        preset, models, Sound("two", FS, (1, 2), [SURE], None, microphones=rows), RowSettings(100)
    )
    source, log = PushSource(FS, 2, live=False), SessionLog(tmp_path / "two", table)
    heard = [Microphone(channels, name, SURE) for name, channels in rows]
    with log, Engine(source, models, [log], microphones=heard) as engine, source:
        source.push(NOISE * [1.0, 0.1])
        source.close()
        assert engine.wait(60)
    with pytest.raises(ResultsError, match="choose one of desk, door"):
        read_results(tmp_path / "two")
    desk, door = (read_results(tmp_path / "two", microphone=name) for name, _ in rows)
    assert desk.summary["laeq_db"] == pytest.approx(door.summary["laeq_db"] + 20, abs=0.1)
    assert desk.rows["laf_db"][-1] == pytest.approx(door.rows["laf_db"][-1] + 20, abs=0.5)
    assert [one.limits[0]["exceeded"] for one in (desk, door)] == [True, False]
    assert (door.name, door.header["source"]["channels"]) == ("two, door", [2])
    assert [one["channel"] for one in door.header["calibration"]] == [2]
    with pytest.raises(ResultsError, match="choose one of"):
        read_results(tmp_path / "two", microphone="attic")
