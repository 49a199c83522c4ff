"""What a log keeps, and what becomes of it."""

import json
import sqlite3
from contextlib import closing

import numpy as np
import pytest

from amt_stream.meters.calibration import Calibration
from amt_stream.meters.frames import Event
from amt_stream.sessions import Session, SessionError, SessionLog, verify
from amt_stream.sessions import log_writer as sessions
from amt_stream.sessions.results import read_results
from tests.sessions.conftest import HOUR, LOUD

FORMATS = ["sqlite", "csv", "jsonl", "parquet"]
HEADS = {"csv": b"# schema: 2", "jsonl": b'{"header"', "parquet": b"PAR1"}
GAP = Event("gap", 48000, 1.0, HOUR, 4800, "the device lost it")


@pytest.mark.parametrize("format", FORMATS)
def test_a_session_holds_what_was_measured(written, table, at, tmp_path, format):
    folder = written(tmp_path / "night", format, events=[GAP])
    again = table()
    rows = [row for one in at(lambda s: HOUR - 2.05 + s) for row in again.rows(one)]
    rows += list(again.rows.rest(5.0))
    session = Session(folder)
    assert list(session.rows()) == rows
    assert [row["time_s"] for row in rows] == [n / 10 for n in range(51)]
    assert session.events() == [GAP]
    (description,) = session.descriptions.values()
    assert description["header"]["columns"] == again.header()["columns"]
    assert description["preset"]["model"]["name"] == "spl"
    assert description["rows"]["columns"] == "laf_db,laeq_db"
    assert {"amt_stream", "torch", "numba"} <= set(description["versions"])
    summary = json.loads((folder / "summary.json").read_text())["summary"]
    assert summary["laeq_db"] == rows[-1]["laeq_db"]
    verdict = verify(folder)
    assert (verdict.word, verdict.open, verdict.running) == ("intact", [], False)
    assert [event for _, _, event in verdict.gaps] == [GAP]


@pytest.mark.parametrize("format", FORMATS[1:])
def test_parts_are_of_an_hour(written, tmp_path, format):
    folder = written(tmp_path / "night", format)
    names = [path.name for path in sorted(folder.glob("rows-*"))]
    assert names == [f"rows-20261122T13Z.{format}", f"rows-20261122T14Z.{format}"]
    utc = [row["utc"] for row in Session(folder).rows()]
    assert utc[0] == "2026-11-22T13:59:57.950Z"
    assert utc == sorted(utc)
    head = (folder / names[1]).read_bytes()
    assert head.startswith(HEADS[format])


@pytest.mark.parametrize("told_at_s", [2.5, 2.25])
@pytest.mark.parametrize("format", FORMATS)
def test_rows_stand_under_a_header_with_their_own_calibration(
    new_log, at, tmp_path, format, told_at_s, until, monkeypatch
):
    """The last rows before it come after it, and after it was written, since frames lag."""
    monkeypatch.setattr(sessions, "FLUSH_S", 0.05)
    folder = tmp_path / "night"
    changed = Event("calibrated", 120_000, 2.5, HOUR, 0, "read from here on with another")
    with new_log(folder, format) as log:
        for one in at(lambda time_s: HOUR + time_s):
            if one.time_s[-1] > told_at_s and log.table.sound.calibration == [LOUD]:
                log.table.calibrate(Calibration(94.0))
                log.event(changed)
                until(lambda: not (log._writer._waiting.count or log._writer.disk.writing_since))
            log(one)
    session = Session(folder)
    assert [row["sample"] for row in session.rows()] == [4800 * n for n in range(51)]
    assert session.events() == [changed]
    assert [(level, samples[0]) for level, samples in headed(session, format)] == [
        (100.0, 0),
        (94.0, 124_800),
    ]
    assert verify(folder).word == "intact"


def headed(session, format):
    """Of each header of the rows the level of full scale, and their samples."""
    if format != "sqlite":
        for path in session.files(1, "rows"):
            found = read_results(path)
            yield found.header["calibration"][0]["full_scale_db_spl"], found.rows["sample"]
        return
    with closing(sqlite3.connect(session.path / "rows.sqlite")) as database:
        headers = database.execute("SELECT first, header FROM headers ORDER BY first").fetchall()
        for first, header in headers:
            samples = database.execute("SELECT sample FROM rows WHERE id >= ?", (first,))
            level = json.loads(header)["calibration"][0]["full_scale_db_spl"]
            yield level, [sample for (sample,) in samples]


@pytest.mark.parametrize("format", FORMATS)
def test_a_clock_that_jumps_changes_no_order(written, tmp_path, format):
    """On by a day after 2 s; back by an hour after 4 s, which an engine does not let happen."""
    clock = lambda s: HOUR + s + (86400 if s > 2 else 0) - (90000 if s > 4 else 0)  # noqa: E731
    folder = written(tmp_path / "night", format, clock)
    samples = [row["sample"] for row in Session(folder).rows()]
    assert samples == [4800 * n for n in range(51)]
    assert verify(folder).word == "intact"
    if format == "csv":
        assert len(list(folder.glob("rows-*"))) == 2


@pytest.mark.parametrize("format", FORMATS)
def test_a_session_is_gone_on_with(written, new_log, at, tmp_path, format):
    folder = written(tmp_path / "night", format)
    before = {path: path.read_bytes() for path in folder.glob("rows-*")}
    first = list(Session(folder).rows(1))
    with new_log(folder, format, columns="lceq_db") as log:
        assert log.folder.run == 2
        for one in at(lambda s: HOUR - 60 + s):
            log(one)
    session = Session(folder)
    assert session.runs == (1, 2)
    rows = list(session.rows(2))
    assert len(rows) == 51
    assert all(row["lceq_db"] is not None for row in rows[1:])
    assert [{k: row[k] for k in first[0]} for row in session.rows(1)] == first
    assert all(path.read_bytes() == data for path, data in before.items())
    assert verify(folder).word == "intact"


@pytest.mark.parametrize("chained", [False, True])
def test_a_part_that_was_just_made_parquet_is_there_once(written, new_log, tmp_path, chained):
    """The run ended before the text was gone, or before the chain told of it."""
    folder = written(tmp_path / "night", "parquet")
    rows = list(Session(folder).rows())
    (folder / "rows-20261122T14Z.jsonl").write_text('{"time_s": 2.0}\n')
    if not chained:
        chain = (folder / "chain.jsonl").read_text().splitlines(keepends=True)
        (place,) = [n for n, line in enumerate(chain) if "rows-20261122T14Z" in line]
        (folder / "chain.jsonl").write_text("".join(chain[:place]))
    with new_log(folder, "parquet"):
        pass
    assert list(Session(folder).rows(1)) == rows
    assert verify(folder).word == "intact"
    assert not list(folder.glob("rows-*.jsonl"))


def test_parquet_reads_as_a_table(written, tmp_path):
    import pandas

    folder = written(tmp_path / "night", "parquet")
    table = pandas.read_parquet(sorted(folder.glob("rows-*.parquet")))
    assert table["sample"].tolist() == [4800 * n for n in range(51)]
    assert str(table["utc"].dt.tz) == "UTC"


def test_what_is_no_session_is_refused(new_log, written, tmp_path):
    other = tmp_path / "music"
    other.mkdir()
    (other / "song.wav").write_bytes(b"")
    file = tmp_path / "file"
    file.write_text("")
    for path, why in ((other, "is not a session"), (file, "is not a folder")):
        with pytest.raises(SessionError, match=why):
            new_log(path)
    assert [path.name for path in other.iterdir()] == ["song.wav"]
    folder = written(tmp_path / "night")
    with new_log(folder), pytest.raises(SessionError, match="a running meter writes"):
        new_log(folder)
    with pytest.raises(SessionError, match="cannot be written"):
        new_log("/proc/self/night")
    with pytest.raises(SessionError, match="cannot be"):
        new_log(tmp_path / "a\0b")


def test_others_read_the_database_while_it_is_written(new_log, at, tmp_path, until):
    with new_log(tmp_path / "night") as log:
        for one in at(lambda s: HOUR + s):
            log(one)
        reader = sqlite3.connect(f"file:{log.path}/rows.sqlite?mode=ro", uri=True)
        until(lambda: reader.execute("SELECT count(*) FROM rows").fetchone() == (51,))
        verdict = verify(log.path)
        assert verdict.running
        assert verdict.word == "intact"
        assert verdict.open == ["51 rows of rows.sqlite"]
        reader.close()


@pytest.mark.parametrize("format", ["csv", "jsonl"])
def test_a_torn_row_is_moved_aside_and_said(written, new_log, tmp_path, format):
    folder = written(tmp_path / "night", format)
    part = folder / f"rows-20261122T14Z.{format}"
    chain = folder / "chain.jsonl"
    lines = chain.read_bytes().splitlines(keepends=True)
    # As a sudden end leaves it: the last part not closed, its last row and the chain's line torn.
    chain.write_bytes(b"".join(lines[:2]) + lines[2][:40])
    (folder / "summary.json").unlink()
    whole = list(Session(folder).rows())
    with part.open("rb+") as file:
        file.truncate(part.stat().st_size - 7)
    assert list(Session(folder).rows()) == whole[:-1]
    assert verify(folder).open == [part.name]
    with new_log(folder, format) as log:
        repaired = " ".join(log.folder.repaired)
    assert f"incomplete last row of {part.name} were moved to {part.name}.torn" in repaired
    assert "chain.jsonl.torn" in repaired
    assert (folder / "chain.jsonl.torn").read_bytes() == lines[2][:40]
    assert list(Session(folder).rows(1)) == whole[:-1]
    assert verify(folder).word == "intact"


def test_drafts_of_a_run_that_was_killed_are_removed(written, new_log, tmp_path):
    folder = written(tmp_path / "night", "csv")
    for name in (".session-2.json.123", ".probe.7", ".mine"):
        (folder / name).write_text("{")
    with new_log(folder, "csv"):
        pass
    assert [path.name for path in folder.glob(".*")] == [".mine"]


def test_a_damaged_database_is_kept_and_another_begun(written, new_log, at, tmp_path):
    folder = written(tmp_path / "night")
    (folder / "rows.sqlite").write_bytes(b"not a database at all" * 100)
    with new_log(folder) as log:
        for one in at(lambda s: HOUR + s):
            log(one)
    assert "rows.sqlite.damaged" in " ".join(log.folder.repaired)
    assert (folder / "rows.sqlite.damaged").read_bytes().startswith(b"not a database")
    assert len(list(Session(folder).rows())) == 51
    assert verify(folder).word == "gapped"


def test_a_log_is_closed_by_its_engine(table, tmp_path):
    from amt_stream.engine import Engine, demo_source
    from amt_stream.meters.presets import Preset

    log = SessionLog(tmp_path / "night", table())
    source = demo_source(duration=1.0, paced=False)
    with Engine(source, Preset(("spl",)).models(source.fs, 2), [log]) as engine:
        assert engine.wait(60)
    rows = list(Session(log.path).rows())
    assert [row["time_s"] for row in rows] == [n / 10 for n in range(11)]
    assert verify(log.path).word == "intact"
    np.testing.assert_allclose(rows[-1]["laeq_db"], rows[-2]["laeq_db"], atol=1.0)
