"""Starting this program's child processes, also from a frozen program."""

import os
import runpy
import subprocess
import sys
from collections.abc import Sequence
from multiprocessing.spawn import get_executable

RUN = "--run-module"
NICE = 5
"""Gives about a quarter of the CPU time of a normal process under full load."""

BELOW_NORMAL = 0x4000
"""The Windows priority class that corresponds to NICE."""

_entry: list[str] = []


class NoInterpreter(RuntimeError):
    """The program is frozen and has no Python interpreter to run a module with."""


def be_interpreter() -> None:
    """Run a module and exit if this process was started for that; else note that it can be.

    Call it first in a frozen program: it has no separate Python, so it must serve as its own
    interpreter [main-thread].
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
    """Whether this program runs its own modules, because `be_interpreter` was called."""
    return bool(_entry)


def interpreter() -> str:
    """The Python executable; a program without one must name it to multiprocessing."""
    named = get_executable()
    python = os.fsdecode(named) if named else ""
    if not python or (getattr(sys, "frozen", False) and python == sys.executable):
        raise NoInterpreter(
            "this program has no interpreter: name one by multiprocessing.set_executable"
        )
    return python


def stand_back() -> None:
    """Lower this process's priority, so that audio processes run first [main-thread]."""
    if sys.platform == "win32":
        import ctypes

        kernel32 = ctypes.windll.kernel32
        kernel32.GetCurrentProcess.restype = ctypes.c_void_p
        kernel32.SetPriorityClass.argtypes = (ctypes.c_void_p, ctypes.c_uint32)
        kernel32.SetPriorityClass(kernel32.GetCurrentProcess(), BELOW_NORMAL)
    else:
        os.nice(NICE)


def plain_environment() -> dict[str, str]:
    """The environment for a foreign program whose output is read: not in the user's language."""
    return {**outside_environment(), "LC_ALL": "C"}


def printed_by(command: Sequence[str], within_s: float) -> list[str]:
    """The output lines of a foreign program; [] if it is missing or takes longer."""
    try:
        done = subprocess.run(
            command,
            check=False,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=plain_environment(),
            timeout=within_s,
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    return done.stdout.decode(errors="replace").splitlines()


def outside_environment() -> dict[str, str]:
    """The environment for a foreign program.

    A frozen program points LD_LIBRARY_PATH at its own libraries, which other programs cannot use.
    """
    environment = dict(os.environ)
    if getattr(sys, "frozen", False) and sys.platform.startswith("linux"):
        before = environment.pop("LD_LIBRARY_PATH_ORIG", None)
        environment.pop("LD_LIBRARY_PATH", None)
        if before is not None:
            environment["LD_LIBRARY_PATH"] = before
    return environment
