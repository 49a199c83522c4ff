"""What only the start of a program needs is given back, and comes again when it is needed."""

import subprocess
import sys

import pytest

from amt_stream.core import start_memory

SMAPS = """\
7f00-7f10 r-xp 00000000 08:01 12 /lib/large.so
Rss:               16384 kB
Anonymous:             0 kB
7f10-7f20 r--p 00010000 08:01 12 /lib/large.so
Rss:               16384 kB
Anonymous:             4 kB
7f20-7f30 rw-p 00020000 08:01 12 /lib/large.so
Rss:               16384 kB
Anonymous:             0 kB
7f30-7f38 r--p 00000000 00:00 0
Rss:               16384 kB
Anonymous:             0 kB
7f38-7f40 r--p 00000000 08:01 13 /home/a recording.wav
Rss:               16384 kB
Anonymous:             0 kB
7f40-7f50 r-xp 00000000 00:00 0 [vdso]
Rss:                   4 kB
Anonymous:             0 kB
"""


def test_only_unchanged_parts_of_libraries_are_given_back():
    assert start_memory._unchanged(SMAPS) == [(0x7F00, 0x7F10, 16 << 20)]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux gives code back")
def test_code_that_was_given_back_still_runs():
    """Of torch, in a process of its own."""
    code = """
import torch
from amt_stream.core.start_memory import give_back_code
from tests.soak.memory import resident_mb
wanted, before = torch.fft.rfft(torch.arange(8.0)).abs().sum(), resident_mb()
given = give_back_code()
after = resident_mb()
assert torch.fft.rfft(torch.arange(8.0)).abs().sum() == wanted
print(given / 2**20, before - after)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    given, less = map(float, done.stdout.split())
    assert given > 30
    assert less == pytest.approx(given, rel=0.2)
