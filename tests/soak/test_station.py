"""amt-stream-station in a clean environment: what it takes of disk, memory and time."""

import os
import re
import subprocess
import sys
import time
import venv
from pathlib import Path

import pytest

from amt_stream import __version__

pytestmark = pytest.mark.soak

ROOT = Path(__file__).parents[2]
MODELS = ("moore2016", "spl", "zwicker", "bs1770")


def megabytes(folder):
    return sum(p.stat().st_size for p in folder.rglob("*") if p.is_file()) / 1e6


@pytest.fixture(scope="module")
def station(tmp_path_factory, record):
    """The command of the station, installed from its wheel."""
    wanted = [f"{model}:48000:2" for model in MODELS]
    subprocess.run([sys.executable, "tools/station/build.py", *wanted], cwd=ROOT, check=True)
    folder = tmp_path_factory.mktemp("station")
    venv.create(folder, with_pip=True)
    before = megabytes(folder)
    wheels = (ROOT / "dist").glob(f"amt_stream_station-{__version__}-*.whl")
    wheel = max(wheels, key=lambda path: path.stat().st_mtime)
    install = folder / "bin" / "pip", "install", "-q"
    subprocess.run([*install, wheel], check=True)
    added = megabytes(folder) - before
    record("amt-stream-station with four models, beyond Python", f"{added:.0f} MB on disk")
    assert added <= 120
    subprocess.run([*install, "-c", ROOT / "constraints.txt", f"{wheel}[app]"], check=True)
    return folder / "bin" / "amt-stream"


def timed(*command, **where):
    """Run a command that tells its memory at the end of standard error, as "75000 kB"."""
    whole = "/usr/bin/time", "-f", "%M kB", *command
    return subprocess.run(whole, capture_output=True, text=True, check=True, **where)


@pytest.fixture
def alone():
    """The variables of a process that finds no package of this tree."""
    return {key: v for key, v in os.environ.items() if key != "PYTHONPATH"}


@pytest.mark.parametrize("models", ["spl", "moore2016,spl,zwicker,bs1770"])
def test_a_meter(station, tmp_path, record, alone, models):
    asked = "meter", "--source", "demo", "--model", models, "--format", "csv", "--duration", "2"
    times = []
    for _ in range(3):
        began = os.times()
        run = timed(station, *asked, cwd=tmp_path, env=alone)
        after = os.times()
        cpu = after.children_user + after.children_system - began.children_user
        times.append(cpu - began.children_system)
    (kilobytes,) = re.findall(r"(\d+) kB", run.stderr)
    began = time.perf_counter()
    with subprocess.Popen([station, *asked], stdout=subprocess.PIPE, text=True, env=alone) as meter:
        next(line for line in meter.stdout if line[:1].isdigit())
        first_s = time.perf_counter() - began
    record(
        f"amt-stream-station: meter of {models}, 2 s of sound",
        f"first row after {first_s:.2f} s; {min(times):.2f} CPU s; {int(kilobytes) / 1e3:.0f} MB",
    )
    assert int(kilobytes) <= 100_000
    assert "0 samples lost" in run.stderr
    assert run.stdout.count("\n2.0,") == 1


@pytest.mark.parametrize("models", ["spl", "moore2016,spl,zwicker,bs1770"])
def test_the_window(station, tmp_path, record, xvfb, alone, models):
    asked = "meter", "--source", "demo", "--model", models, "--duration", "10"
    alone |= {"DISPLAY": os.environ["DISPLAY"]}
    run = timed(station, *asked, cwd=tmp_path, env=alone)
    (kilobytes,) = re.findall(r"^(\d+) kB$", run.stderr, re.MULTILINE)
    record(f"amt-stream-station: window with {models}, 10 s", f"{int(kilobytes) / 1e3:.0f} MB")
    assert "terminal" not in run.stderr
    assert int(kilobytes) <= 200_000
