"""What `verify` sees: every byte that was changed, every part and row that is gone."""

import json
import sqlite3

import pytest

from amt_stream.cli.verify import lines
from amt_stream.frames import Event
from amt_stream.session import Session, SessionError, Verdict, verify
from tests.session.conftest import HOUR

GAP = Event("gap", 48000, 1.0, HOUR - 1.0, 4800, "the device lost it")


@pytest.mark.parametrize("name", ["rows-20261122T13Z.csv", "session.json", "summary.json"])
def test_an_edited_part_is_named(written, tmp_path, name):
    folder = written(tmp_path / "night", "csv")
    data = bytearray((folder / name).read_bytes())
    data[len(data) // 2] ^= 1
    (folder / name).write_bytes(data)
    verdict = verify(folder)
    assert verdict.word == "edited"
    assert verdict.edited[0] == f"{name} was edited"


def test_a_missing_part_is_named(written, tmp_path):
    folder = written(tmp_path / "night", "jsonl", events=[GAP])
    (folder / "rows-20261122T13Z.jsonl").unlink()
    verdict = verify(folder)
    assert (verdict.word, verdict.missing) == ("gapped", ["rows-20261122T13Z.jsonl is missing"])


def test_an_added_part_is_named(written, tmp_path):
    folder = written(tmp_path / "night", "csv")
    for name in ("rows-20261122T15Z.csv", "rows-20261122T16Z.csv"):
        (folder / name).write_bytes((folder / "rows-20261122T14Z.csv").read_bytes())
    verdict = verify(folder)
    assert verdict.open == ["rows-20261122T16Z.csv"]
    assert verdict.edited == ["rows-20261122T15Z.csv was added: the chain does not tell of it"]


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ("UPDATE rows SET laeq_db = laeq_db + 1 WHERE id = 30", "edited"),
        ("UPDATE events SET samples = 0", "edited"),
        ("DELETE FROM rows WHERE id = 7", "gapped"),
        ("INSERT INTO rows (time_s) VALUES (9.0)", "intact"),
        ("ALTER TABLE rows DROP COLUMN laeq_db", "edited"),
        ("DROP TABLE rows", "edited"),
    ],
)
def test_a_changed_row_of_the_database_is_seen(written, tmp_path, change, word):
    folder = written(tmp_path / "night", events=[GAP])
    with sqlite3.connect(folder / "rows.sqlite") as connection:
        connection.execute(change)
    connection.close()
    verdict = verify(folder)
    assert verdict.word == word
    if word == "intact":
        assert verdict.open == ["1 rows of rows.sqlite"]
    elif "id = 30" in change:
        assert verdict.edited == ["rows 22 to 51 of rows.sqlite (20261122T14Z) were edited"]


def test_the_chain_itself_is_checked(written, tmp_path):
    folder = written(tmp_path / "night", "csv")
    chain = folder / "chain.jsonl"
    lines = chain.read_text().splitlines()
    assert verify(folder).head == json.loads(lines[-1])["hash"]

    chain.write_text("\n".join([lines[0], *lines[2:], ""]))
    verdict = verify(folder)
    assert verdict.word == "gapped"
    assert verdict.missing == ["the chain: 1 entries are missing before line 2"]

    forged = json.loads(lines[1]) | {"sha256": "0" * 64}
    chain.write_text("\n".join([lines[0], json.dumps(forged), *lines[2:], ""]))
    verdict = verify(folder)
    assert "the chain: line 2 was edited" in verdict.edited

    chain.write_text("\n".join([lines[0], "nonsense", *lines[2:], ""]))
    with pytest.raises(SessionError, match="line 2 is no entry of a chain"):
        verify(folder)


def test_what_is_no_session_is_said(tmp_path):
    with pytest.raises(SessionError, match="no such folder"):
        verify(tmp_path / "nothing")
    with pytest.raises(SessionError, match="is no session"):
        verify(tmp_path)
    (tmp_path / "chain.jsonl").write_text("[" * 100000 + "\n\n")
    with pytest.raises(SessionError, match="line 1 is no entry"):
        verify(tmp_path)


@pytest.mark.parametrize("format", ["sqlite", "csv"])
def test_gaps_of_sound_are_told_and_are_no_fault_of_the_log(written, tmp_path, format):
    verdict = verify(written(tmp_path / "night", format, events=[GAP]))
    assert verdict.gaps == [(1, 48000.0, GAP)]
    assert verdict.word == "intact"
    assert Session(tmp_path / "night").events(1) == [GAP]


@pytest.mark.parametrize("name", ["samples", "time_s"])
def test_a_number_that_no_meter_counts_to_is_no_event(written, tmp_path, name):
    path = written(tmp_path / "night", "jsonl", events=[GAP])
    file = next(path.glob("events-*.jsonl"))
    told = json.loads(file.read_text())
    file.write_text(json.dumps(told | {name: 10**400}) + "\n")
    assert "has an event that is none" in "\n".join(verify(path).edited)


@pytest.mark.parametrize("utc", [1e18, -1e18, 1e300, float("nan")])
def test_a_gap_at_no_time_is_told_all_the_same(utc):
    gap = Event("gap", 0, 0.0, utc, 480)
    told = lines(Verdict(gaps=[(1, 48000.0, gap)]))
    assert f"UTC {utc}" in told[-1]
