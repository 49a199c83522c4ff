"""Memory that only the start of a program needs."""

import sys
from pathlib import Path

LARGE = 8 << 20
"""Bytes of a library in memory from which they are worth giving back."""

DONT_NEED = 4
"""MADV_DONTNEED of Linux."""


def give_back_code() -> int:
    """Give back the code of large libraries; the system reads again what still runs [any-thread].

    Importing torch and linking kernels runs code of 90 MB and more, hardly any of which a running
    measurement needs. Only what is unchanged since it was read from its file is given back.

    Returns bytes; 0 where the system is not Linux.
    """
    if sys.platform != "linux":
        return 0
    import ctypes

    madvise = ctypes.CDLL(None).madvise
    madvise.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    given = 0
    for first, end, resident in _unchanged(Path("/proc/self/smaps").read_text("utf-8")):
        if resident >= LARGE and not madvise(first, end - first, DONT_NEED):
            given += resident
    return given


def _unchanged(smaps: str) -> list[tuple[int, int, int]]:
    """First byte, end and resident bytes of each read-only part of a library that is unchanged.

    Only of libraries, which stay where they are: in place of another file there may be other memory
    by the time that it is given back.
    """
    found, lines = [], iter(smaps.splitlines())
    at, resident = (0, 0), 0
    for line in lines:
        name, *rest = line.split(maxsplit=5)
        if not name.endswith(":"):
            first, end = (int(place, 16) for place in name.split("-"))
            of_library = rest[0] in ("r--p", "r-xp") and len(rest) > 4 and ".so" in rest[4]
            at = (first, end) if of_library else (0, 0)
        elif name == "Rss:":
            resident = int(rest[0]) << 10
        elif name == "Anonymous:" and at[1] and rest[0] == "0":
            found.append((*at, resident))
    return found
