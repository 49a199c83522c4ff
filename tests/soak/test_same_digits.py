"""What the self-test printed when each way of a sound got a column, it prints now.

To the last digit on the computer that printed it: compiled loops round by what a processor offers.
"""

import math
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.soak
BEFORE = Path(__file__).parents[1] / "data" / "before" / "selftest.txt"
NUMBER = re.compile(r"(?<= )[+-]?\d+(?:\.\d+)?(?:e[+-]\d+)?(?= )")
ROUNDING = 5e-6
"""Of single precision, with which another processor rounds otherwise: share of a reading."""


def agree(before: str, now: str) -> bool:
    """Whether two numbers of the self-test differ by rounding alone; deviations are in percent."""
    if before[0] in "+-":
        return abs(float(before) - float(now)) <= 100 * ROUNDING
    return math.isclose(float(before), float(now), rel_tol=ROUNDING)


def words(line: str) -> list[str]:
    return NUMBER.sub("#", line).split()


def of_before(before: list[str], now: list[str]) -> list[str]:
    """Those of the lines now that stood before too, in their order; others have come since."""
    found, left = [], iter(now)
    for line in before:
        found.append(next((one for one in left if words(one) == words(line)), ""))
        assert found[-1], f"no longer printed: {line}"
    return found


def test_the_self_test_prints_the_same_digits(record):
    command = [sys.executable, "-m", "amt_stream", "selftest"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    # Without the verdict at the end, which counts the lines.
    before = BEFORE.read_text(encoding="utf-8").split("\n\n")[0].splitlines()
    now = of_before(before, done.stdout.splitlines())
    same = sum(a.split() == b.split() for a, b in zip(before, now, strict=True))
    record("lines of the self-test as before", f"{same} of {len(before)}, others by rounding")
    for one, other in zip(before, now, strict=True):
        pairs = zip(NUMBER.findall(one), NUMBER.findall(other), strict=True)
        assert all(agree(*pair) for pair in pairs), f"{one}\n{other}"
