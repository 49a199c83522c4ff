"""The first start after an installation, when nothing is compiled yet."""

import csv
import os
import subprocess
import sys
import time

import pytest

from amt_stream.core.compiling import WORDS
from amt_stream.meters import catalog

pytestmark = pytest.mark.soak

METER = ["meter", "--source", "demo", "--fast", "--duration", "0.1", "--format", "csv"]


def test_the_first_start_says_that_it_compiles_and_the_second_does_not(tmp_path, record):
    pty = pytest.importorskip("pty")
    empty = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    took_s = []
    for times in (1, 0):
        ours, theirs = pty.openpty()
        call = [sys.executable, "-m", "amt_stream", *METER, "--model", "spl"]
        began = time.monotonic()
        subprocess.run(call, check=True, stdout=subprocess.DEVNULL, stderr=theirs, env=empty)
        took_s.append(time.monotonic() - began)
        assert os.read(ours, 65536).decode().count(WORDS) == times
        os.close(ours)
        os.close(theirs)
    record("the meter of levels, first start and second", "{:.0f} s, {:.0f} s".format(*took_s))


@pytest.mark.parametrize("model", catalog.models_side_by_side())
def test_the_first_start_of_a_live_measurement_loses_nothing(model, tmp_path, record):
    """What comes while the models are compiled waits, and nothing is compiled later."""
    meter = ["meter", "--source", "demo", "--format", "csv", "--step-ms", "100", "--duration", "5"]
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "amt_stream", *meter, "--model", model],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
    )
    took_s = time.monotonic() - began
    assert "0 samples lost" in done.stderr
    assert "cannot keep up" not in done.stderr
    lines = [line for line in done.stdout.splitlines() if not line.startswith("#")]
    assert [float(row["time_s"]) for row in csv.DictReader(lines)] == [n / 10 for n in range(51)]
    record(f"5 s of {model} at its first start", f"{took_s:.0f} s, nothing lost")
