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


def test_spans_are_excluded_and_said(said, log, tmp_path):
    status, _, err = said("report", log, "--exclude", "0.5..1.5", "--exclude", "3..3.5")
    assert status == 0
    assert "Excluded 0.5..1.5: " in err
    assert "; 3..3.5: " in err
    page = (tmp_path / "night-report.html").read_text()
    assert "SPANS EXCLUDED" in page
    assert "excluded from this report 2 times, 1.5 s in all" in page
    status, _, err = said("report", log, "--exclude", "song", "--force")
    assert status == 1
    assert "has no mark and no sound event 'song': its marks are singer" in err
    assert (tmp_path / "night-report.html").read_text() == page


def test_it_writes_one_page_of_pdf(run, log, tmp_path):
    pytest.importorskip("pyqtgraph")
    assert run("report", log, "--out", "night.pdf", "--note", "line\n" * 60).status == 0
    pdf = (tmp_path / "night.pdf").read_bytes()
    assert pdf.startswith(b"%PDF")
    assert len(re.findall(rb"/Type\s*/Page\b", pdf)) == 1


def test_a_pdf_says_that_it_is_pdf_a_and_has_no_transparency(run, log, tmp_path):
    pytest.importorskip("pyqtgraph")
    logo = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="3"><circle r="2"/></svg>'
    (tmp_path / "logo.svg").write_text(logo)
    (tmp_path / "own.toml").write_text(
        '[model]\nname = "spl"\n[report]\npaper = "letter"\nlogo = "logo.svg"\ncompany = "Q"\n'
    )
    done = run("report", log, log, "--out", "two.pdf", "--preset", "own.toml")
    assert done.status == 0
    pdf = (tmp_path / "two.pdf").read_bytes()
    assert len(re.findall(rb"/Type\s*/Page\b", pdf)) == 3
    sizes = re.findall(rb"/MediaBox \[0 0 (\S+) (\S+)\]", pdf)
    assert {tuple(map(float, size)) for size in sizes} == {(612.0, 792.0)}
    assert b"/OutputIntents" in pdf
    assert b'pdfaid:part="1" pdfaid:conformance="B"' in pdf
    assert {float(share) for share in re.findall(rb"/[cC][aA] ([\d.]+)", pdf)} <= {1.0}
    assert set(re.findall(rb"/SMask\s*(\S+?)>?>?\s", pdf)) <= {b"/None"}


def test_several_logs_make_one_report(said, log, tmp_path):
    shutil.copytree(log, tmp_path / "copy")
    status, _, err = said("report", log, "copy", "--company", "Q & A", "--out", "two.html")
    assert status == 0
    assert "two.html: report of" in err
    page = (tmp_path / "two.html").read_text()
    assert "Q &amp; A" in page
    assert "Compared with A" in page
    assert "B: copy" in page
    status, _, err = said("report", log, "copy", "--run", "1", "--force")
    assert status == 2
    assert "--run 1 is of one log, and there are 2: give one" in err
    status, _, err = said("report", log, "--logo", "gone.png")
    assert status == 1
    assert "the logo gone.png cannot be read: No such file or directory" in err


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
        (a_row_more, "", "No hash covers 1 row of rows.sqlite: the run was interrupted"),
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
