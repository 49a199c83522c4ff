"""The first start after an installation, when nothing is compiled yet."""

import os
import subprocess
import sys
import time

import pytest

from amt_stream.core.compiling import WORDS

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
