"""CSV for Excel and workbooks: spreadsheets open them, and the commands read them back."""

import csv
import io
import json
from datetime import datetime

import numpy as np
import pandas
import pytest
from openpyxl import load_workbook

from amt_stream import measure
from amt_stream.sessions.results import read_results

FS = 48000
NOISE = 0.01 * np.random.default_rng(5).standard_normal(round(2.3 * FS))
BEGAN = ["--began", "2026-11-20T23:29:59", "--zone", "Europe/Berlin"]
KEPT = ["plain", "excel", "excel-de"]


@pytest.fixture
def sound(sound_file):
    return sound_file(NOISE, name="=SUM(A1),ä;.wav")


def in_excel(content, dialect):
    """Cells as the program of a language sees them: text, and numbers with its decimal sign."""
    mark = b"\xef\xbb\xbf"
    assert content.startswith(mark) == (dialect != "plain")
    text = content.decode("utf-8-sig")
    lines = [line for line in text.splitlines(keepends=True) if not line.startswith("#")]
    comma = dialect == "excel-de"
    rows = [*csv.reader(lines, delimiter=";" if comma else ",")]
    return [[_number(cell, comma) for cell in row] for row in rows]


def _number(cell, comma):
    assert not cell.startswith(("=", "+", "@")), cell
    try:
        return float(cell.replace(",", ".") if comma and "." not in cell else cell)
    except ValueError:
        assert not cell.startswith("-"), cell
        return cell


@pytest.mark.parametrize("dialect", KEPT)
@pytest.mark.parametrize("form", [[], ["--interval", "1s"]])
def test_rows_and_intervals(said, sound, tmp_path, dialect, form):
    typed = ["analyze", sound, "--model", "spl", "--full-scale-db", "100", *BEGAN, *form]
    status, _, err = said(*typed, "--csv-dialect", dialect, "--out", "x.csv", "--local-time")
    assert status == 0, err
    names, *rows = in_excel((tmp_path / "x.csv").read_bytes(), dialect)
    found = measure(str(sound), None, "spl", 100.0, interval=1 if form else None)
    table = found.intervals if form else found.rows
    level = "lafmax_db" if form else "laf_db"
    column = [row[names.index(level)] or np.nan for row in rows]
    np.testing.assert_array_equal(column, table[level])
    point = "," if dialect == "excel-de" else "."
    assert rows[0][names.index("local_time")] == f"2026-11-20 23:29:59{point}000"
    status, out, err = said("lden", "x.csv", "--format", "json")
    assert status == 0, err
    told = json.loads(out)
    assert (told["clock"], told["whole"]["lday_db"]) == ("Europe/Berlin", None)
    if form:
        assert told["whole"]["lnight_db"] == pytest.approx(found.summary["laeq_db"], abs=1e-3)
    else:
        assert list(read_results("x.csv").rows["laf_db"][1:]) == list(table["laf_db"][1:])
        assert said("report", "x.csv", "--force")[0] == 0
        assert said("compare", "x.csv", "x.csv")[0] == 0


def assert_table(done, dialect):
    assert done.status == 0, done.err
    names, *rows = in_excel(done.out.encode(), dialect)
    assert {len(row) for row in rows} == {len(names)}


@pytest.mark.parametrize(
    "dialect", ["excel-de", *(pytest.param(one, marks=pytest.mark.soak) for one in KEPT[:2])]
)
def test_shares_that_a_command_prints(run, sound, dialect):
    typed = "--lowest-hz", 8000, "--format", "csv", "--csv-dialect", dialect
    assert_table(run("explain", sound, *typed), dialect)


@pytest.mark.parametrize("dialect", KEPT)
def test_other_tables_that_a_command_prints(run, sound, dialect):
    typed = ["analyze", sound.name, "--full-scale-db", 100, "--model", "spl", "--summary"]
    # As on Windows, where a redirected standard output has the code page of the system.
    output = {} if dialect == "plain" else {"PYTHONIOENCODING": "cp1252"}
    summary = run(*typed, "--format", "csv", "--csv-dialect", dialect, **output)
    assert summary.status == 0, summary.err
    names, line = in_excel(summary.out.encode(), dialect)
    assert line[names.index("name")] == "'=SUM(A1),ä;.wav"
    assert (
        line[names.index("laeq_db")] == measure(str(sound), None, "spl", 100.0).summary["laeq_db"]
    )
    run("analyze", sound, "--model", "spl", *BEGAN, "--interval", "1s", "--out", "x.jsonl")
    assert_table(run("lden", "x.jsonl", "--format", "csv", "--csv-dialect", dialect), dialect)
    assert run("lden", "x.jsonl", "--csv-dialect", "excel").status == 2


def test_pandas_reads_the_semicolons(said, sound):
    said("analyze", sound, "--model", "spl", "--csv-dialect", "excel-de", "--out", "x.csv")
    table = pandas.read_csv("x.csv", sep=";", decimal=",", comment="#")
    assert table["laf_db"].dtype == np.float64


def test_a_workbook_of_intervals(said, sound, tmp_path):
    typed = ["analyze", sound, "--model", "spl", "--full-scale-db", "100", "--interval", "1s"]
    assert said(*typed, *BEGAN, "--out", "x.xlsx")[0] == 0
    book = load_workbook(tmp_path / "x.xlsx")
    names, *rows = book["intervals"].iter_rows(values_only=True)
    found = measure(str(sound), None, "spl", 100.0, interval=1)
    assert [row[names.index("laeq_db")] for row in rows] == list(found.intervals["laeq_db"])
    assert rows[1][names.index("local")] == datetime(2026, 11, 20, 23, 30)
    assert rows[-1][names.index("partial")] is True
    status, out, err = said("lden", "x.xlsx", "--format", "json")
    assert status == 0, err
    told = json.loads(out)
    assert told["clock"] == "Europe/Berlin"
    assert told["whole"]["lnight_db"] == pytest.approx(found.summary["laeq_db"], abs=1e-3)


def test_a_workbook_of_whole_sounds(said, sound, sound_file, tmp_path):
    sound_file(NOISE / 2, name="b.wav")
    typed = [
        "analyze",
        sound.name,
        "b.wav",
        "--full-scale-db",
        "100",
        "--summary",
        "--out",
        "x.xlsx",
    ]
    status, _, err = said(*typed, "--columns", "laeq_db,l90_db", "--interval", "1s")
    assert status == 0, err
    book = load_workbook(tmp_path / "x.xlsx")
    names, first, second = book["sounds"].iter_rows(values_only=True)
    assert names == ("name", "channels", "duration_s", "calibrated", "laeq_db", "l90_db")
    assert (first[0], book["sounds"]["A2"].data_type) == (sound.name, "s")
    assert first[4] - second[4] == pytest.approx(20 * np.log10(2), abs=1e-3)
    heads, *rows = book["intervals"].iter_rows(values_only=True)
    assert heads[:3] == ("name", "channels", "time_s")
    assert [row[0] for row in rows] == [first[0]] * 3 + ["b.wav"] * 3
    status, _, err = said(*typed, "--columns", "laeq_db")
    assert status == 1
    assert "exists: --force overwrites it" in err


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        (["--out", "x.xlsx"], "rows are too many for a sheet, so choose csv or parquet"),
        (["--format", "xlsx", "--interval", "1s"], "xlsx needs a file or a folder"),
        (["--csv-dialect", "excel", "--format", "jsonl"], "--csv-dialect is for CSV"),
    ],
)
def test_what_is_no_table_for_a_spreadsheet(said, sound, typed, words):
    status, out, err = said("analyze", sound, "--model", "spl", *typed)
    assert (status, out) == (2, "")
    assert words in err


def test_what_powershell_saves_is_read(said, sound, tmp_path):
    """Its > writes UTF-16 with a mark, and ends lines as Windows does."""
    typed = ["analyze", sound, "--model", "spl", "--full-scale-db", "100", *BEGAN, "--format"]
    for format in ("csv", "jsonl"):
        text = said(*typed, format)[1]
        path = tmp_path / f"x.{format}"
        path.write_bytes(text.replace("\n", "\r\n").encode("utf-16"))
        rows = read_results(path).rows
        assert len(rows) == 231
        assert np.isfinite(rows["laf_db"][1:]).all()
        assert io.BytesIO(path.read_bytes()).read(2) == b"\xff\xfe"


def test_a_table_of_sounds_says_what_is_wrong_with_one(said, sound_file):
    noise = np.random.default_rng(3).standard_normal(48000)
    good = sound_file(0.02 * noise, name="good.wav", subtype="PCM_16")
    loud = sound_file(np.clip(noise, -1, 1), name="loud.wav", subtype="PCM_16")
    short = sound_file(0.02 * noise, name="short.wav", subtype="PCM_16")
    short.write_bytes(short.read_bytes()[:-20000])
    typed = ["--model", "spl", "--summary", "--format", "csv", "--columns", "laeq_db"]
    status, out, _ = said("analyze", good, loud, short, *typed)
    assert status == 1
    heads, *lines = csv.reader(out.splitlines())
    assert heads[-2:] == ["laeq_db", "remarks"]
    assert [line[-1] for line in lines] == [
        "",
        "clipped for 1 s",
        "its header says 48000 samples, but there are 38000",
    ]
    _, out, _ = said("analyze", good, *typed)
    assert out.splitlines()[0].endswith("laeq_db")
