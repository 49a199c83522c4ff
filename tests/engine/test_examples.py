"""The examples of ways in and out of an engine run, are short, and say what is true."""

import re
import runpy
from pathlib import Path

import pytest

APPS = Path(__file__).parents[2] / "apps"


@pytest.fixture
def run(capsys):
    """Runs an example as a program; gives the lines that it prints."""

    def run(name: str) -> list[str]:
        path = APPS / f"{name}.py"
        assert len(path.read_text().splitlines()) < 40
        runpy.run_path(str(path), run_name="__main__")
        said = capsys.readouterr()
        assert said.err == ""
        return said.out.splitlines()

    return run


def test_a_program_pushes_its_own_sound(run):
    (line,) = run("push")
    assert line.startswith("96000 samples heard")
    assert float(re.search(r"'ltl_phon': ([\d.]+)", line)[1]) == pytest.approx(60.0, abs=0.2)
    assert "'calibrated': True" in line


def test_an_asyncio_program_gets_rows_beside_its_work(run):
    *rows, work = run("rows_async")
    assert [line.split()[0] for line in rows] == [f"{0.2 * n:.1f}" for n in range(11)]
    assert float(rows[-2].split()[2]) == pytest.approx(60.0, abs=0.2)
    assert int(work.split()[0]) > 20


def test_a_display_looks_when_it_likes(run):
    levels = [float(line.split()[2]) for line in run("poll")]
    assert len(levels) >= 4
    assert max(levels) == pytest.approx(63.3, abs=1.0)


def test_an_alarm_is_called_with_rows(run):
    lines = [line.split() for line in run("alarm")]
    # The tone of 60 dB from 4.5 to 8.5 s, met after some time constants of F.
    assert [float(line[0]) for line in lines[:2]] == pytest.approx([4.65, 8.6], abs=0.1)
    assert [line[4] for line in lines[:2]] == ["above", "below"]
    assert len(lines) % 2 == 0


def test_a_gain_is_found_by_the_gradient_of_loudness(forks):
    """In a process of its own, as its gradients take more than 1 GB."""
    done = forks.run(APPS / "fit_gain.py", options=["program"])
    assert (done.returncode, done.stderr) == (0, b"")
    *_, found = done.stdout.decode().splitlines()
    # A tone of 1 kHz at 40 dB SPL is 1 sone loud, and this one is at 50 dB.
    assert float(found.split()[0]) == pytest.approx(-10.0, abs=0.1)
