"""How long a person waits: from the command to a window, and to its first number."""

import os
import subprocess
import sys
import time
from statistics import median

import pytest

CHILD = """
import sys, time
from pyqtgraph.Qt import QtCore
from amt_monitor.window.pane_docks import on_screen
from amt_monitor.window.main_window import MainWindow
from amt_stream.cli import main

begun = float(sys.argv.pop(1))
before = MainWindow.__init__

def init(self, *given, **named):
    before(self, *given, **named)
    timer = QtCore.QTimer(self)
    seen = []

    def look():
        if on_screen(self) and not seen:
            seen.append(time.monotonic() - begun)
        if self.updater.shown is not None:
            timer.stop()
            print(f"{seen[0]:.2f} {time.monotonic() - begun:.2f}", flush=True)
            self.close_now()

    timer.timeout.connect(look)
    timer.start(10)

MainWindow.__init__ = init
sys.exit(main())
"""


@pytest.mark.bench
def test_time_to_a_window_and_to_its_first_number(qapp, tmp_path):
    found = []
    for _ in range(4):
        command = [sys.executable, "-c", CHILD, str(time.monotonic()), "meter", "--source", "demo"]
        environment = {**os.environ, "XDG_CONFIG_HOME": str(tmp_path)}
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
        found.append([float(word) for word in done.stdout.split()])
    # The first brings files and kernels into memory.
    windows, numbers = zip(*found[1:], strict=True)
    print(
        f"\nwindow seen after {median(windows):.2f} s, first number after {median(numbers):.2f} s"
    )
