"""amt-stream-station in a clean environment: what it takes of disk, memory and time."""

import os
import re
import subprocess
import sys
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
def station(tmp_path_factory):
    """The command of the station, installed from its wheel."""
    wanted = [f"{model}:48000:2" for model in MODELS]
    subprocess.run([sys.executable, "tools/station/build.py", *wanted], cwd=ROOT, check=True)
    folder = tmp_path_factory.mktemp("station")
    venv.create(folder, with_pip=True)
    before = megabytes(folder)
    wheels = (ROOT / "dist").glob(f"amt_stream_station-{__version__}-*.whl")
    wheel = max(wheels, key=lambda path: path.stat().st_mtime)
    subprocess.run([folder / "bin" / "pip", "install", "-q", wheel], check=True)
    added = megabytes(folder) - before
    print(f"\nadded to Python: {added:.0f} MB")
    assert added <= 120
    return folder / "bin" / "amt-stream"


@pytest.mark.parametrize("models", ["spl", "moore2016,spl,zwicker,bs1770"])
def test_a_meter(station, models):
    asked = "meter", "--source", "demo", "--model", models, "--format", "csv", "--duration", "2"
    times = []
    for _ in range(3):
        began = os.times()
        run = subprocess.run(
            ["/usr/bin/time", "-f", "%M kB", station, *asked],
            capture_output=True,
            text=True,
            check=True,
        )
        after = os.times()
        cpu = after.children_user + after.children_system - began.children_user
        times.append(cpu - began.children_system)
    (kilobytes,) = re.findall(r"(\d+) kB", run.stderr)
    print(f"\n{models}: {min(times):.2f} CPU s for 2 s of sound, {int(kilobytes) / 1e3:.0f} MB")
    assert int(kilobytes) <= 100_000
    assert "0 samples lost" in run.stderr
    assert run.stdout.count("\n2.0,") == 1
