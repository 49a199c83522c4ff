"""The tests of everything that a kernel computes, with numba's checks of every index.

A kernel that reads or writes beyond an array then raises. Compiled code is kept in a folder of its
own: what was compiled without the checks would run without them.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.soak

ROOT = Path(__file__).parents[2]
PLACES = ("dsp/kernels", "dsp/contract", "dsp/parity", "dsp/metrology", "engine")

BEYOND = """
import numpy as np
from amt_stream.dsp.functional.compiler.tiles import load
load(np.zeros((2, 3)), 0, 2, 0, 5, np.zeros((8, 2)))
"""


def test_every_index_lies_within_its_array(tmp_path, record):
    checked = {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path / "numba")}
    run = {"cwd": ROOT, "env": {**os.environ, **checked}, "capture_output": True, "text": True}
    beyond = subprocess.run([sys.executable, "-c", BEYOND], check=False, **run)
    assert "IndexError" in beyond.stderr, "the checks are off"
    places = [f"tests/{place}" for place in PLACES]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *places]
    done = subprocess.run(command, check=False, **run)
    assert done.returncode == 0, done.stdout[-20_000:]
    closing = next(line for line in reversed(done.stdout.splitlines()) if " passed" in line)
    names = (Path(place).name for place in PLACES)
    record(f"tests of {', '.join(names)} with bounds checks", closing)
