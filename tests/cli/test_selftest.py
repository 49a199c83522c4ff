"""`amt-stream selftest` as a stranger runs it."""

import os
import platform
import shutil
import subprocess
from pathlib import Path

import pytest
import torch

import amt_stream
from tests.cli.conftest import Done

PACKAGE = Path(amt_stream.__file__).parent


@pytest.fixture(scope="module")
def wrong(tmp_path_factory):
    """A copy of the package whose critical bands end 2 % too high; set as PYTHONPATH."""
    folder = tmp_path_factory.mktemp("wrong")
    shutil.copytree(PACKAGE, folder / "amt_stream")
    table = folder / "amt_stream" / "dsp" / "data" / "zwicker_bands.csv"
    lines = table.read_text().splitlines()
    first = next(n for n, line in enumerate(lines) if line[0] not in "#b")
    for n, line in enumerate(lines[first:], first):
        *others, upper = line.split(",")
        lines[n] = ",".join([*others, str(1.02 * float(upper))])
    table.write_text("\n".join(lines) + "\n")
    return str(folder)


def test_rows_and_report(run, tmp_path):
    report = tmp_path / "reports" / "out.md"
    report.parent.mkdir()
    report.write_text("old")
    done = run("selftest", "--model", "zwicker,spl", "--report", "reports/out.md", "--force")
    assert (done.status, done.err) == (0, "")
    table, closing = (part.splitlines() for part in done.out.split("\n\n"))
    heading, *rows = table
    for word in ("model", "expected", "got", "deviation", "tolerance", "source"):
        assert word in heading
    assert {row.split()[0] for row in rows} == {"pass"}
    assert {row.split()[1] for row in rows} == {"zwicker", "spl"}
    assert any(
        "83.2957 sone" in row and "ISO 532-1:2017, Annex B, signal 1 " in row for row in rows
    )
    zwicker, spl, both, statement = closing
    assert zwicker.startswith("zwicker: ")
    assert spl.startswith("spl: ")
    assert both.startswith(f"in all: {len(rows)} of {len(rows)} passed, worst deviation ")
    for words in ("published descriptions", "published values (worst deviation", "not certified"):
        assert words in statement

    told = report.read_text()
    assert told.startswith("# Verification of amt_stream")
    for words in (amt_stream.__version__, platform.python_version(), torch.__version__, statement):
        assert words in told
    assert sum(line.startswith("| pass |") for line in told.splitlines()) == len(rows)
    assert list(report.parent.iterdir()) == [report]


def test_a_wrong_constant_fails_and_is_named(command, wrong, tmp_path):
    call = [*command, "selftest", "--model", "zwicker", "--report", "out.md"]
    started = {"cwd": tmp_path, "env": {**os.environ, "PYTHONPATH": wrong}}
    done = Done(subprocess.run(call, check=False, capture_output=True, **started))
    assert done.status == 1
    failed = [line for line in done.out.splitlines() if line.startswith("FAIL")]
    assert len(done.lines) == len(failed) > 1
    assert done.lines[0] == "amt-stream: failed: zwicker, 28 third-octave levels: N"
    assert f"{len(failed)} of " in done.out.splitlines()[-1]
    report = (tmp_path / "out.md").read_text()
    assert report.count("| FAIL |") == len(failed)
    assert "not verified" in report
    assert "verified against" not in report


@pytest.mark.quick
@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["--model", "loud"], 2, "give one or more of moore2016"),
        (["--model", "king2019"], 2, "king2019 has no checks: give some of moore2016"),
        (["--faults", "--model", "spl"], 2, "--faults tests no model and writes no report"),
        (["--report", "there.md"], 1, "there.md exists: --force overwrites it"),
        (["--report", ".", "--force"], 1, ". exists"),
        (["--report", "there.md/out.md"], 1, "there.md/out.md cannot be written: "),
    ],
)
def test_refusals(run, tmp_path, arguments, status, said):
    """Told at once, before anything is tested."""
    (tmp_path / "there.md").write_text("mine")
    done = run("selftest", *arguments)
    assert (done.status, done.out) == (status, "")
    assert said in done.lines[-1]
    assert status == 2 or len(done.lines) == 1
    assert (tmp_path / "there.md").read_text() == "mine"
    assert list(tmp_path.iterdir()) == [tmp_path / "there.md"]
