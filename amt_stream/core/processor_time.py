"""Processor time as the system reports it: of a thread, of this program, and of the computer.

Linux tells all of it; where a system does not, the result is None.
"""

import contextlib
import os
from pathlib import Path, PurePosixPath
from typing import NamedTuple

PROC = Path("/proc")
CGROUPS = Path("/sys/fs/cgroup")
NS = 1e-9

STOLEN = 8
"""Place of the time that a hypervisor gave to others, in a line of /proc/stat."""

SECONDS_OF = {"throttled_usec": 1e-6, "throttled_time": NS}
"""Names of the time throttled in versions 2 and 1 of cgroups, and their units."""


class Throttled(NamedTuple):
    """How often a limit of processor time has stopped this program, and for how long."""

    times: int
    seconds: float


def waited_s(thread: int) -> float | None:
    """Seconds that a thread of this program was ready to run and had no processor.

    A limit of processor time counts; sleep, and a stop by a signal, do not.

    thread: its native id
    """
    # Of "time on a processor, time waiting for one, number of turns", in ns.
    fields = _first_line(PROC / "self" / "task" / str(thread) / "schedstat").split()
    return NS * int(fields[1]) if len(fields) == 3 else None


def all_waited_s() -> dict[int, float]:
    """`waited_s` of each thread of this program, by its native id."""
    with contextlib.suppress(OSError):
        threads = [int(one.name) for one in (PROC / "self" / "task").iterdir()]
        return {one: waited for one in threads if (waited := waited_s(one)) is not None}
    return {}


def throttled() -> Throttled | None:
    """By the limits of all groups that this program is in."""
    found = [one for group in _groups() if (one := _throttled_in(group)) is not None]
    if not found:
        return None
    return Throttled(sum(one.times for one in found), sum(one.seconds for one in found))


def stolen_s() -> float | None:
    """Processor seconds that a hypervisor took from the whole computer."""
    fields = _first_line(PROC / "stat").split()
    if len(fields) <= STOLEN:
        return None
    return int(fields[STOLEN]) / os.sysconf("SC_CLK_TCK")


def _groups() -> list[Path]:
    """The folders of the groups that limit the processor time of this program."""
    found = []
    for line in _text(PROC / "self" / "cgroup").splitlines():
        number, _, rest = line.partition(":")
        kinds, _, path = rest.partition(":")
        if number == "0":
            roots = [CGROUPS, CGROUPS / "unified"]
        elif "cpu" in kinds.split(","):
            roots = [CGROUPS / kinds, CGROUPS / "cpu"]
        else:
            continue
        inner = PurePosixPath(path.lstrip("/"))
        # In a container a path may be that outside; the root is then its own group.
        there = [root for root in roots if (root / "cgroup.procs").exists()]
        found += [root / one for root in there[:1] for one in (inner, *inner.parents)]
    return found


def _throttled_in(group: Path) -> Throttled | None:
    times, seconds = None, 0.0
    for line in _text(group / "cpu.stat").splitlines():
        name, _, value = line.partition(" ")
        if name == "nr_throttled":
            times = int(value)
        elif name in SECONDS_OF:
            seconds = SECONDS_OF[name] * int(value)
    return None if times is None else Throttled(times, seconds)


def _text(path: Path) -> str:
    with contextlib.suppress(OSError):
        return path.read_text(encoding="ascii", errors="replace")
    return ""


def _first_line(path: Path) -> str:
    return _text(path).partition("\n")[0]
