"""What the self-test printed before modules and settings got new names, it prints now."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.soak
BEFORE = Path(__file__).parents[1] / "data" / "before" / "selftest.txt"


def test_the_self_test_prints_the_same_digits(record):
    command = [sys.executable, "-m", "amt_stream", "selftest"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    before, now = BEFORE.read_text(encoding="utf-8").splitlines(), done.stdout.splitlines()
    same = sum(one == other for one, other in zip(before, now, strict=True))
    record("lines of the self-test as before", f"{same} of {len(before)}")
    assert now == before
