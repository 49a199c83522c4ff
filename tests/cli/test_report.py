"""`amt-stream report`: one page of a log or of a file of rows, in a file."""

import json
import re
import shutil
import sqlite3
from contextlib import closing

import pytest

from amt_stream.sessions import verify
from tests.sessions.report.conftest import measure_into


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    return measure_into(tmp_path_factory.mktemp("logs") / "night")


def test_it_writes_a_page_and_overwrites_nothing(said, log, tmp_path):
    status, out, err = said("report", log, "--place", "hall <2>", "--zone", "Asia/Tokyo")
    assert (status, out) == (0, "")
    page = tmp_path / "night-report.html"
    assert f"{page.name}: report of {log}" in err
    text = page.read_text()
    assert "hall &lt;2&gt;" in text
    assert "UTC+09:00" in text
    status, _, err = said("report", log)
    assert status == 1
    assert "night-report.html exists: --force overwrites it" in err
    assert page.read_text() == text
    assert said("report", log, "--force")[0] == 0
    assert page.read_text() != text


def test_it_writes_one_page_of_pdf(run, log, tmp_path):
    pytest.importorskip("pyqtgraph")
    assert run("report", log, "--out", "night.pdf", "--note", "line\n" * 60).status == 0
    pdf = (tmp_path / "night.pdf").read_bytes()
    assert pdf.startswith(b"%PDF")
    assert len(re.findall(rb"/Type\s*/Page\b", pdf)) == 1


def test_what_cannot_be_reported_is_said_in_a_sentence(said, log, tmp_path):
    def refused(match, *arguments, status=1):
        given, _, err = said("report", *arguments)
        assert given == status
        assert match in err.splitlines()[-1]

    refused("not a session", tmp_path)
    refused("cannot be read: No such file", "gone.csv")
    refused("give a name that ends in .html or .pdf", log, "--out", "a.doc", status=2)
    refused("not a time zone", log, "--zone", "Nowhere/Here", status=2)
    refused("there are 1", log, "--run", "3")
    (tmp_path / "night-report.html").mkdir()
    refused("is a folder", log)


def calibrated_anew(folder):
    path = folder / "session.json"
    told = json.loads(path.read_text())
    told["header"]["calibration"][0]["full_scale_db_spl"] -= 3.0
    path.write_text(json.dumps(told))


def louder(folder):
    with closing(sqlite3.connect(folder / "rows.sqlite")) as connection, connection:
        connection.execute("UPDATE rows SET laf_db = laf_db - 3 WHERE id = 7")


def a_row_more(folder):
    with closing(sqlite3.connect(folder / "rows.sqlite")) as connection, connection:
        last = connection.execute("SELECT * FROM rows ORDER BY id DESC LIMIT 1").fetchone()
        places = ", ".join("?" * len(last))
        connection.execute(f"INSERT INTO rows VALUES ({places})", (last[0] + 1, *last[1:]))


def no_summary(folder):
    (folder / "summary.json").unlink()


@pytest.mark.parametrize(
    ("change", "badge", "words"),
    [
        (lambda folder: None, "", "intact: 4 closed parts as written, last hash "),
        (calibrated_anew, "EDITED", "edited: session.json was edited"),
        (louder, "EDITED", "were edited"),
        (no_summary, "INCOMPLETE", "incomplete: summary.json is missing"),
        (a_row_more, "", "No hash covers 1 rows of rows.sqlite: the run was interrupted"),
    ],
)
def test_the_page_says_whether_the_log_is_as_it_was_written(
    said, log, tmp_path, change, badge, words
):
    shutil.copytree(log, tmp_path / "copy")
    change(tmp_path / "copy")
    status, _, err = said("report", "copy")
    assert status == 0
    page = (tmp_path / "copy-report.html").read_text()
    for told in (page, err):
        assert words in told
        assert verify("copy").head in told
    assert re.findall(">(EDITED|INCOMPLETE)<", page) == [badge] * bool(badge)
    status, out, _ = said("compare", "copy", log)
    assert status == 0
    assert (words in out) == (change.__name__ != "<lambda>")
