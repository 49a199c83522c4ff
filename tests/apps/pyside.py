"""A program that runs the window by PySide6, in a process of its own: two bindings go into none."""

import os
import subprocess
import sys

import pytest


def run_by_pyside(program, **environment):
    """What a program prints; it fails for anything on standard error.

    What fails in a slot ends nothing there: it is printed.
    """
    pytest.importorskip("PySide6")
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        check=False,
        capture_output=True,
        text=True,
        env={
            **os.environ,
            "PYQTGRAPH_QT_LIB": "PySide6",
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            **environment,
        },
    )
    assert done.stderr == "", done.stderr
    return done.stdout
