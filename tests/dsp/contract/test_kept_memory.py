"""Memory of large blocks, which a thread keeps for the next block."""

import subprocess
import sys

import pytest

PAGES = """
import resource, threading
import torch
from amt_stream.dsp.functional.compiler.threads import work_alone

def block():
    parts = [torch.ones(2**20) for _ in range(30)]
    return sum(parts)

def run():
    work_alone()
    for _ in range(3):
        block()
    before = resource.getrusage(resource.RUSAGE_THREAD).ru_minflt
    for _ in range(10):
        block()
    print(resource.getrusage(resource.RUSAGE_THREAD).ru_minflt - before)

thread = threading.Thread(target=run)
thread.start()
thread.join()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="page faults of a thread are counted on Linux")
def test_another_thread_keeps_the_memory_of_its_blocks():
    """30 parts of 4 MiB need two heaps of a thread: without `M_TOP_PAD` each block clears one."""
    run = subprocess.run([sys.executable, "-c", PAGES], capture_output=True, text=True, check=True)
    assert int(run.stdout) < 1000
