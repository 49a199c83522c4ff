"""Some hundred files and command lines as nobody means them; `make soak` tries 10,000 of each."""

import os
import re

import pytest

from tests.cli import fuzz

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


def tried(forks, kind, count, seed, folder):
    """What was tried and refused, in words; fails with what went wrong."""
    with (folder / "out").open("w+b") as both:  # libraries write into it what they find in a file
        streams = dict.fromkeys(("stdout", "stderr"), both.fileno())
        call = fuzz.__file__, kind, count, seed, folder
        with forks.begin(*call, options=["program"], **streams) as trials:
            status = trials.wait()
        both.seek(0)
        out = both.read().decode(errors="replace")
    assert status == 0, out[-5000:]
    last = re.findall(r"(\d+) tried, (\d+) refused, 0 wrong", out)[-1]
    return tuple(map(int, last))


@pytest.mark.parametrize(("kind", "count"), COUNTS.items())
def test_whatever_comes_is_done_or_refused_in_a_sentence(forks, tmp_path, kind, count):
    trials, refused = tried(forks, kind, count, 1, tmp_path)
    assert trials == count
    assert 0 < refused < count or kind == "snapshots"
