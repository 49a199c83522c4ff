"""`meter --log --restore` and `replay`."""

import json

import pytest

from amt_stream.sessions import Session
from amt_stream.sessions.replay import replay_session

SPL = ["meter", "--fast", "--source", "demo", "--model", "spl", "--log", "night"]
SPL += ["--full-scale-db", "100", "--log-sound", "wav", "--log-format", "jsonl"]


def rows_of(folder):
    session = Session(folder)
    rows = [row for run in session.runs for row in session.rows(run)]
    return [{k: v for k, v in row.items() if k != "utc"} for row in rows]


@pytest.mark.parametrize("shown", [["--quiet"], ["--format", "csv"]])
def test_a_measurement_goes_on(run, tmp_path, shown):
    """What it shows goes on too: the average of the whole sound, not of the rest of it."""
    done = run(*SPL, "--duration", 1.1, "--restore", *shown)
    assert "night has no run to continue, so run 1 begins" in done.err
    done = run(*SPL, "--duration", 2, "--restore", *shown)
    assert done.status == 0, done.err
    assert "2 s measured" in done.err
    rows = rows_of(tmp_path / "night")
    assert [row["time_s"] for row in rows] == [n / 10 for n in range(21)]
    assert next(event.kind for event in Session(tmp_path / "night").events(2)) == "restored"
    if "csv" in shown:
        last = next(row for row in rows if row["time_s"] == float(done.rows["time_s"][-1]))
        assert float(done.rows["laeq_db"][-1]) == last["laeq_db"]
    assert replay_session(tmp_path / "night").same


def test_what_is_not_the_same_is_refused(run, tmp_path):
    assert run(*SPL, "--duration", 0.5, "--quiet").status == 0
    rows = rows_of(tmp_path / "night")
    done = run(*SPL, "--duration", 1, "--quiet", "--restore", "--full-scale-db", 94)
    assert done.status == 1
    assert "calibration.1.full_scale_db_spl was 100.0 and is 94.0" in done.err
    assert len(done.err.splitlines()) == 1
    assert rows_of(tmp_path / "night") == rows


def test_what_cannot_go_on_is_wrong_usage(run):
    assert run("meter", "--source", "demo", "--restore").status == 2
    assert run("meter", "--source", "-", "--log", "night", "--restore").status == 2


def test_replay_says_what_differs(run, tmp_path):
    assert run(*SPL, "--duration", 1, "--quiet").status == 0
    (path,) = (tmp_path / "night").glob("rows-*.jsonl")
    lines = path.read_text().splitlines()
    lines[4] = json.dumps(json.loads(lines[4]) | {"laf_db": 1.0})
    path.write_text("\n".join(lines) + "\n")
    done = run("replay", "night")
    assert done.status == 1
    assert done.out.startswith("run 1: 11 rows: different, SHA-256 ")
    assert "the row at 0.3 s, sample 14400: laf_db was 1.0 and is " in done.out
