"""Some hundred files and command lines as nobody means them; `make soak` tries 10,000 of each."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COUNTS = {
    "presets": 100,
    "sounds": 100,
    "calibrations": 100,
    "corrections": 100,
    "sessions": 100,
    "results": 50,
    "snapshots": 100,
    "commands": 30,
}

pytestmark = pytest.mark.skipif(os.name == "nt", reason="pipes, links and limits of POSIX")


def tried(kind, count, seed, folder, timeout):
    """What was tried and refused, in words; fails with what went wrong."""
    call = [sys.executable, "-m", "tests.cli.fuzz", kind, str(count), str(seed), str(folder)]
    done = subprocess.run(
        call, check=False, cwd=ROOT, capture_output=True, timeout=timeout, stdin=subprocess.DEVNULL
    )
    # Libraries write to the same streams, whatever they find in a file.
    out = done.stdout.decode(errors="replace")
    assert done.returncode == 0, out[-5000:] + done.stderr.decode(errors="replace")[-2000:]
    last = re.findall(r"(\d+) tried, (\d+) refused, 0 wrong", out)[-1]
    return tuple(map(int, last))


@pytest.mark.parametrize(("kind", "count"), COUNTS.items())
def test_whatever_comes_is_done_or_refused_in_a_sentence(tmp_path, kind, count):
    trials, refused = tried(kind, count, 1, tmp_path, 110)
    assert trials == count
    assert 0 < refused < count or kind == "snapshots"
