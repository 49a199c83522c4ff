"""`amt-stream report`: one page of a log or of a file of rows, in a file."""

import re

import pytest

from tests.report.conftest import measure_into


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
    assert "night-report.html exists: say --force to overwrite it" in err
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

    refused("no session", tmp_path)
    refused("cannot be read: No such file", "gone.csv")
    refused("give a name that ends in .html or .pdf", log, "--out", "a.doc", status=2)
    refused("no time zone", log, "--zone", "Nowhere/Here", status=2)
    refused("there are 1", log, "--run", "3")
    (tmp_path / "night-report.html").mkdir()
    refused("is a folder", log)
