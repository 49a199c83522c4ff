"""Tables as spreadsheets save them, and cells that no spreadsheet runs or misreads."""

import contextlib
import csv
import io
import json
import random

import pytest

from amt_stream.core.files import decoded
from amt_stream.core.safe_text import json_comment
from amt_stream.core.tables import (
    DIALECTS,
    TableError,
    decimal_number,
    lines_in,
    records_in,
    separator_of,
    whole_number,
)
from amt_stream.core.workbooks import read_workbook, write_workbook

ROWS = [["a.wav", "1", "120,5"], ["", "", "94"]]
TEXTS = {
    "semicolons": "file;channel;level\na.wav;1;120,5\n;;94\n",
    "tabs": "file\tchannel\tlevel\na.wav\t1\t120,5\n\t\t94\n",
    "quoted": 'file,channel,level\n"a.wav","1","120,5"\n,,94\n',
    "sep": "sep=;\nfile;channel;level\na.wav;1;120,5\n;;94\n",
    "empty cells and lines": "\n;;;;\nfile;channel;level;;\na.wav;1;120,5;;\n;;;;\n;;94;;\n;;;\n",
    "comments": "# by hand\nfile;channel;level\n# old;1;3\na.wav;1;120,5\n;;94",
    "capitals and blanks": " File ; Channel;LEVEL\n a.wav;1 ;120,5\n;; 94\n",
}


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_a_table_is_read_as_any_program_saves_it(name, ending, encoding):
    content = TEXTS[name].replace("\n", ending).encode(encoding)
    names, records = records_in(lines_in(decoded(content)))
    assert names == ["file", "channel", "level"]
    assert [[*row.values()] for _, row in records] == ROWS


def test_lines_are_numbered_as_an_editor_numbers_them():
    text = 'sep=;\n# remark\nfile;level\n\n"two\nlines";1\nb;2\n'
    assert [place for place, _ in records_in(lines_in(text))[1]] == [6, 7]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,b\n1,120,5\n", "line 2 has 3 cells for 2 columns: separate cells by semicolons"),
        ("a;b\n1\n", "line 2 has 1 cell for 2 columns: give an empty cell"),
        ('a;b\n"1;2\n3;4\n', "has a quote or a character out of place"),
    ],
)
def test_what_is_no_table_is_refused(text, words):
    with pytest.raises(TableError, match=words):
        records_in(lines_in(text))


def test_an_umlaut_of_western_windows_is_one():
    assert decoded("Bühne, 23 °C".encode("cp1252")) == "Bühne, 23 °C"
    assert decoded("Bühne".encode("utf-16-be").join([b"\xfe\xff", b""])) == "Bühne"
    with pytest.raises(UnicodeDecodeError):
        decoded(b"\x81\x8d")


@pytest.mark.parametrize(
    ("text", "value"),
    [("120,5", 120.5), ("-26,30", -26.3), ("\u221226,5", -26.5), (" 94 ", 94.0), (",5", 0.5)],
)
def test_a_number_has_a_point_or_a_comma(text, value):
    assert decimal_number(text) == value


@pytest.mark.parametrize("text", ["1.234,5", "1,234,5", "", "120 dB", "1,2.3"])
def test_what_is_no_number_is_refused(text):
    with pytest.raises(ValueError, match="is not a number"):
        decimal_number(text)


def test_a_channel_is_a_whole_number():
    assert whole_number("2,0") == whole_number("2.0") == whole_number("2") == 2
    with pytest.raises(ValueError, match="is not a whole number"):
        whole_number("1,5")


CELLS = [
    "a;b",
    'say "x"',
    "1,2",
    "",
    "a\tb",
    "=1+1",
    " =1",
    "@SUM(A1)",
    "-2+3|cmd",
    "\uff1dx",
    "ok",
]


@pytest.mark.parametrize("name", DIALECTS)
def test_cells_come_back_and_none_is_a_formula(name):
    dialect = DIALECTS[name]
    line = dialect.line([*CELLS, 1.5, 3, True, None])
    (cells,) = csv.reader([line], delimiter=dialect.separator)
    for given, cell in zip(CELLS, cells, strict=False):
        assert cell.lstrip()[:1] not in [*"=+-@", "\uff1d"]
        assert given.replace("\t", r"\t") in (cell, cell.removeprefix("'"))
    assert cells[len(CELLS) :] == ["1,5" if name == "excel-de" else "1.5", "3", "true", ""]
    assert separator_of("x".join([dialect.separator] * 3)) == dialect.separator


def test_a_header_divided_by_a_spreadsheet_has_no_formula():
    header = {"name": 'a,=HYPERLINK(1);@x, -2|cmd.wav"', "list": ["=a", "+b"], "numbers": [1, -2]}
    text = json_comment(header)
    assert json.loads(text) == header
    for separator in ",;":
        for cell in text.split(separator):
            bare = cell.strip(' "[]{}')
            assert not bare.startswith(("=", "+", "@")), cell
            assert not bare.startswith("-") or float(bare) == -2


def test_a_line_of_a_dialect_is_read_by_its_own_rules():
    for dialect in DIALECTS.values():
        text = dialect.begin + dialect.line(["file", "level"]) + dialect.line(["ä;b,c.wav", 120.5])
        _, ((_, row),) = records_in(lines_in(decoded(text.encode())))
        assert (row["file"], decimal_number(row["level"])) == ("ä;b,c.wav", 120.5)
        assert io.StringIO(text).read(1) == ("\ufeff" if dialect.mark else "f")


def test_a_damaged_workbook_is_refused_in_a_sentence(tmp_path):
    path = tmp_path / "table.xlsx"
    with path.open("wb") as file:
        write_workbook(file, {"a": [["file", "level"], ["x.wav", 94.5], [None, True]]})
    assert [*read_workbook(path)] == [("file", "level"), ("x.wav", 94.5), (None, True)]
    with pytest.raises(TableError, match="has no sheet b: there are a"):
        list(read_workbook(path, "b"))
    rng, whole, read = random.Random(4), path.read_bytes(), 0
    for _ in range(200):
        content = bytearray(whole)
        for _ in range(rng.randint(1, 6)):
            content[rng.randrange(len(content))] = rng.randrange(256)
        path.write_bytes(content[: rng.choice([None, rng.randrange(len(content))])])
        with contextlib.suppress(TableError):
            list(read_workbook(path))
            read += 1
    assert read < 100
