"""A meter of another package, installed beside ours, is offered wherever ours are.

It is the template that others copy: built and installed here as theirs will be.
"""

import dataclasses
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
import soundfile

from amt_stream.meters.catalog import Entry
from amt_stream.meters.entry import ReadingsTake, Takes
from tests.cli.conftest import Done, Table
from tests.cli.forks import Forks

ROOT = Path(__file__).parents[2]
TEMPLATE = ROOT / "apps" / "plugin_template"
LEVEL_DB = 80.0


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The folder into which a copy of the template is installed."""
    copy, target = tmp_path_factory.mktemp("copy") / "mine", tmp_path_factory.mktemp("installed")
    shutil.copytree(TEMPLATE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    pip = [sys.executable, "-m", "pip", "install", "--no-index", "--no-deps", "-q"]
    done = subprocess.run(
        [*pip, "--no-build-isolation", "--target", target, copy], check=False, capture_output=True
    )
    assert done.returncode == 0, done.stderr.decode()
    return target


@pytest.fixture(scope="module")
def its_forks(installed):
    """A process that finds the package from its start."""
    if not hasattr(os, "fork"):
        pytest.skip("commands run in forks, which are POSIX")
    with Forks(installed, models=["spl"]) as forks:
        yield forks


@pytest.fixture
def run(tmp_path, its_forks):
    """Run the command, or a program, where the package is installed."""

    def wait_for(*arguments, options=(), **settings):
        given = {"environment": {**os.environ, **settings}, "folder": tmp_path}
        return Done(its_forks.run(*arguments, options=options, **given))

    return wait_for


@pytest.fixture
def tone(tmp_path):
    """A tone of 80 dB SPL where full scale is 100 dB SPL, 0.5 s in one channel."""
    t = np.arange(24000) / 48000
    path = tmp_path / "tone.wav"
    soundfile.write(path, 0.1 * np.sin(2 * np.pi * 1000 * t), 48000, subtype="FLOAT")
    return path


@pytest.mark.cases(2)
@pytest.mark.parametrize("command", ["meter", "analyze", "selftest"])
def test_help_offers_it(run, command):
    done = run(command, "--help")
    assert done.status == 0
    assert "partial, stipa, toy," in " ".join(done.out.split())
    if command != "selftest":
        assert re.search(r"\n  toy +mean square over 10 ms: no method", done.out)


def test_analyze_gives_its_rows_beside_others(run, tone):
    done = run("analyze", tone, "--model", "toy,spl", "--full-scale-db", 100, "--field", "diffuse")
    assert done.status == 0, done.err
    rows = Table(done.out).rows
    np.testing.assert_allclose(rows["toy_db"][1:].astype(float), LEVEL_DB, atol=0.01)
    assert "laf_db" in rows


def test_meter_gives_its_rows(run, tone):
    listen = ["meter", "--source", tone, "--fast", "--model", "toy", "--full-scale-db", 100]
    done = run(*listen, "--format", "csv")
    assert done.status == 0, done.err
    assert float(Table(done.out).rows["toy_db"][-1]) == pytest.approx(LEVEL_DB, abs=0.01)
    done = run(*listen, "--terminal")
    assert "Toy 80.0 dB" in done.out
    assert "Toymax 80.0 dB" in done.out


def test_its_self_test_runs(run):
    done = run("selftest", "--model", "toy")
    assert done.status == 0, done.out
    assert "in all: 5 of 5 passed" in done.out


LOOK = """
import sys
from pyqtgraph.Qt import QtCore, QtWidgets
from amt_stream.cli import main

app = QtWidgets.QApplication([])

def look():
    labels = app.findChildren(QtWidgets.QLabel) or app.allWidgets()
    told = {w.objectName(): w.text() for w in labels if isinstance(w, QtWidgets.QLabel)}
    numbers = [told.get(name, "---") for name in ("toy_db", "toymax_db")]
    if "---" in numbers or min(map(float, numbers)) < 30:
        return  # the sound begins in silence
    timer.stop()
    for name in ("toy_title", "toy_db", "toymax_db"):
        print(name, told[name], flush=True)
    app.closeAllWindows()

timer = QtCore.QTimer()
timer.timeout.connect(look)
timer.start(100)
sys.exit(main(sys.argv[1:]))
"""


def test_the_window_shows_it(run):
    """It brings no pane: a plain one shows its readings."""
    listen = ["meter", "--source", "demo", "--model", "toy", "--duration", 20]
    done = run(LOOK, *listen, options=["code"], QT_QPA_PLATFORM="offscreen")
    assert done.status == 0, done.err
    shown = dict(line.split(" ", 1) for line in done.out.splitlines())
    assert "Toy &amp; Sons" in shown["toy_title"]
    assert 30 < float(shown["toy_db"]) <= float(shown["toymax_db"]) < 100


def test_the_program_of_the_page_runs(tmp_path, run):
    """`FieldReadings` and `catalog.add`, as the page shows them."""
    page = (ROOT / "docs" / "plugin.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    path = tmp_path / "rms.py"
    path.write_text(program, encoding="utf-8")
    done = run(path, options=["program"])
    assert done.status == 0, done.err
    assert float(done.out) == pytest.approx(1.0, rel=1e-6)


def test_the_page_names_every_field_of_an_entry():
    page = (ROOT / "docs" / "plugin.md").read_text(encoding="utf-8")
    table = page.partition("\n## Entry\n")[2].partition("\n## ")[0]
    cells = re.findall(r"^\| (`.*?`) \|", table, re.MULTILINE)
    named = [name for cell in cells for name in re.findall(r"`(\w+)`", cell)]
    assert sorted(named) == sorted(field.name for field in dataclasses.fields(Entry))
    for kind in (Takes, ReadingsTake):
        assert [word for word in get_args(kind) if f"`{word}`" not in table] == []
