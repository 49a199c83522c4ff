"""What `docs/embedding.md` shows: each program runs, and says what is true."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.service.served import ROOT, Served, forks, is_row

PAGE = (ROOT / "docs" / "embedding.md").read_text()


def is_short(program):
    assert len((ROOT / "apps" / program).read_text().splitlines()) < 40


def lines_of(program, **environment):
    """What a program of apps/ prints; it is whole, and short."""
    is_short(program)
    given = {"options": ["program"], "environment": {**os.environ, **environment}}
    done = forks().run(ROOT / "apps" / program, **given)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode().splitlines()


def test_every_program_that_it_names_is_there():
    named = re.findall(r"\]\((\.\./apps/\S+?)\)", PAGE)
    assert len(named) >= 8
    assert all((ROOT / "docs" / path).is_file() for path in named)
    for code in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        ast.parse(code)
        assert len(code.splitlines()) < 40


def test_a_window_of_ones_own_gets_rows():
    said = lines_of("qt_window.py", QT_QPA_PLATFORM="offscreen")
    levels = [float(line.split()[2]) for line in said]
    assert len(levels) >= 14
    assert max(levels) == pytest.approx(63.3, abs=1.0)


def test_a_line_of_a_notebook_is_the_newest_row():
    said = lines_of("notebook.py")
    assert float(said[-2].split()[3]) == pytest.approx(60.0, abs=0.5)


def test_another_language_talks_over_standard_input_and_output():
    here = str(Path(sys.executable).parent)
    path = f"{here}{os.pathsep}{os.environ['PATH']}"
    is_short("meter.mjs")
    demo = ["--source", "demo", "--preset", "low-power", "--step-ms", "100"]
    done = subprocess.run(
        ["node", ROOT / "apps" / "meter.mjs", *demo],
        cwd=ROOT, capture_output=True, text=True, timeout=60, check=True,
        env={**os.environ, "PATH": path},
    )  # fmt: skip
    said = done.stdout.splitlines()
    assert sum("phon" in line for line in said) >= 10
    assert "mark: ten rows" in said
    assert "marked" in said


def test_a_lab_reads_what_is_measured():
    with Served("--source", "demo", "--model", "spl", "--columns", "laf_db", "--lsl") as served:
        served.until(is_row)
        said = lines_of("lsl_inlet.py")
    assert len(said) == 10
    pattern = r"\d+\.\d{3} laf_db=(\S+) valid=[01] settling=[01] calibrated=1 fault=0"
    found = [re.fullmatch(pattern, line)[1] for line in said]
    assert len(set(found)) > 1 or found[0] not in ("nan", "0")
