"""Processes of this program's own: how one is started, also of a program that is frozen."""

import os
import runpy
import sys
from multiprocessing.spawn import get_executable

RUN = "--run-module"
NICE = 5
"""A quarter of what others get, where all want all of it."""

BELOW_NORMAL = 0x4000
"""The same on Windows, by its own name."""

_entry: list[str] = []


class NoInterpreter(RuntimeError):
    """The program is frozen, and nothing of it runs a module."""


def be_interpreter() -> None:
    """Run a module and end, where this process was started for that; else, know that it can.

    For the entry of a frozen program, before all else: what is one file has no Python beside it, so
    it has to be one itself [main-thread].
    """
    _entry[:] = [sys.executable, RUN]
    if sys.argv[1:2] != [RUN]:
        return
    module, *arguments = sys.argv[2:]
    sys.argv[:] = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
    sys.exit(0)


def module_command(module: str, *arguments: str) -> list[str]:
    """The command that runs a module as a program. Raises NoInterpreter [any-thread]."""
    return [*(_entry or [interpreter(), "-m"]), module, *arguments]


def is_own_interpreter() -> bool:
    """Whether this program is what runs its modules: `be_interpreter` was called."""
    return bool(_entry)


def interpreter() -> str:
    """The Python: a program that has none of its own names one to multiprocessing."""
    named = get_executable()
    python = os.fsdecode(named) if named else ""
    if not python or (getattr(sys, "frozen", False) and python == sys.executable):
        raise NoInterpreter(
            "this program has no interpreter: name one by multiprocessing.set_executable"
        )
    return python


def stand_back() -> None:
    """Let others have the processor first, as whoever hears the sound [main-thread]."""
    if sys.platform == "win32":
        import ctypes

        kernel32 = ctypes.windll.kernel32
        kernel32.GetCurrentProcess.restype = ctypes.c_void_p
        kernel32.SetPriorityClass.argtypes = (ctypes.c_void_p, ctypes.c_uint32)
        kernel32.SetPriorityClass(kernel32.GetCurrentProcess(), BELOW_NORMAL)
    else:
        os.nice(NICE)


def outside_environment() -> dict[str, str]:
    """The environment for a program that is no part of this one.

    One that is frozen has the system look for libraries among its own, which fit nobody else.
    """
    environment = dict(os.environ)
    if getattr(sys, "frozen", False) and sys.platform.startswith("linux"):
        before = environment.pop("LD_LIBRARY_PATH_ORIG", None)
        environment.pop("LD_LIBRARY_PATH", None)
        if before is not None:
            environment["LD_LIBRARY_PATH"] = before
    return environment
