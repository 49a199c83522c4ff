"""Logs and files of rows that somebody has edited: each command says so in one sentence."""

import json
import sqlite3
from contextlib import closing

import pytest


@pytest.fixture
def rows(printed, sound_file, tone, tmp_path):
    """Makes a file of rows in which one line has another value; "" for no line at all."""
    text = printed("analyze", sound_file(tone(70.0, 0.3)), "--format", "jsonl", "--model", "spl")

    def make(key, value):
        lines = [json.loads(line) for line in text.splitlines()]
        lines[3][key] = value
        told = "\n".join(map(json.dumps, lines)).replace("Infinity", "1e999")
        path = tmp_path / "rows.jsonl"
        path.write_text(told if key else "")
        return path

    return make


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("", "", "has an invalid header or summary"),
        ("utc", 5, "has invalid rows (ValueError: utc is 5)"),
        ("utc", "99999-01-01T00:00:00Z", "utc is '99999-01-01T00:00:00Z'"),
        ("utc", "0001-01-01T00:00:00Z", "utc is 0001-01-01"),
        ("time_s", float("inf"), "time_s is inf in row 3"),
        ("time_s", -1, "time_s is -1.0 in row 3"),
        ("sample", 10**40, "has invalid rows (OverflowError: "),
        ("laf_db", [], "has invalid rows ("),
        ("laf_db", -1e300, "laf_db is -1e+300 in row 3"),
        ("fault", 3, "has invalid rows (KeyError: 3)"),
        ("settling_columns", True, "settling_columns is True in row 3"),
    ],
)
def test_a_file_of_rows_that_was_edited_is_refused_in_a_sentence(said, rows, key, value, words):
    path = rows(key, value)
    for command in (["report", path], ["compare", path, path]):
        status, out, err = said(*command)
        assert (status, out) == (1, "")
        assert len(err.splitlines()) == 1
        assert words in err


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    ("table", "column", "value", "words"),
    [
        ("rows", "time_s", b"\xff\x00", "has invalid rows"),
        ("rows", "utc", 5, "has invalid rows"),
        ("rows", "sample", "soon", "has invalid rows"),
        ("rows", "laf_db", "loud", "has invalid rows"),
        ("rows", "settling_columns", None, "has invalid rows"),
        ("events", "time_s", 1e18, "has an invalid event"),
        ("events", "sample", "x" * 5000, "has an invalid event"),
    ],
)
def test_a_database_that_was_edited_is_refused_in_a_sentence(
    said, sound_file, tone, table, column, value, words
):
    path = sound_file(tone(70.0, 1.2))
    command = ["meter", "--source", path, "--fast", "--quiet", "--model", "spl", "--log", "night"]
    limit = ["--limit", "laf_db>60", "--full-scale-db", 100]
    assert said(*command, "--log-sound", "wav", *limit)[0] == 0
    with closing(sqlite3.connect("night/rows.sqlite")) as connection, connection:
        connection.execute(f"UPDATE {table} SET {column} = ? WHERE id = 1", (value,))
    status, out, err = said("report", "night")
    assert (status, out) == (1, "")
    assert len(err.splitlines()) == 1
    assert words in err
    assert len(err) < 500
    status, out, err = said("replay", "night")
    assert status == (column != "utc")  # which no sound tells
    assert len(err.splitlines()) <= 1
    assert out or " has an invalid " in err
