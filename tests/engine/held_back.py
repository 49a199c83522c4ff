"""A computer that leaves a program too little time: a fifth of a core."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from amt_stream.engine.models.slowness import BUSY, LIMITED

GROUPS = Path("/sys/fs/cgroup/cpu"), Path("/sys/fs/cgroup")
OTHERS = 5


@contextlib.contextmanager
def held_back(process: int) -> Iterator[str]:
    """Leave a process a fifth of a core; gives the cause as the engine says it.

    The system limits it, or where a user may not ask for that, others keep its core busy.
    """
    with contextlib.ExitStack() as stack:
        if stack.enter_context(_limited(process)):
            yield LIMITED
        else:
            stack.enter_context(_beside_others(process))
            yield BUSY


@contextlib.contextmanager
def _limited(process: int) -> Iterator[bool]:
    """Limit a process by a group of its own; gives whether the system allows it."""
    root = next((one for one in GROUPS if (one / "cgroup.procs").exists()), GROUPS[-1])
    group = root / f"amt_stream_{process}"
    try:
        group.mkdir()
        name = "cpu.cfs_quota_us" if root.name == "cpu" else "cpu.max"
        (group / name).write_text("20000")  # of 100,000
        (group / "cgroup.procs").write_text(str(process))
    except OSError:
        with contextlib.suppress(OSError):
            group.rmdir()
        yield False
        return
    try:
        yield True
    finally:
        with contextlib.suppress(ProcessLookupError):  # it has ended
            (root / "cgroup.procs").write_text(str(process))
        group.rmdir()


@contextlib.contextmanager
def _beside_others(process: int) -> Iterator[None]:
    """Share the core of a process with others."""
    core = min(os.sched_getaffinity(0))
    for thread in Path(f"/proc/{process}/task").iterdir():
        os.sched_setaffinity(int(thread.name), {core})
    spin = "while True: pass"
    others = [subprocess.Popen([sys.executable, "-c", spin]) for _ in range(OTHERS)]
    try:
        for one in others:
            os.sched_setaffinity(one.pid, {core})
        yield
    finally:
        for one in others:
            one.kill()
            one.wait()
