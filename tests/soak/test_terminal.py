"""What the terminal's screen costs beside the engine, on a real terminal.

As a program it shows the demo sound on its terminal, and prints to standard error what the thread
of the screen took of a core.
"""

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
import threading
import time

import pytest

from amt_stream.cli.terminal.app import MeterApp
from amt_stream.cli.terminal.driver import driver_class
from tests.cli.test_terminal import SIZES, made

pytestmark = pytest.mark.soak

BEGUN_S, MEASURED_S = 5.0, 20.0
MOST = 5.0
"""Percent of a core."""


@pytest.mark.parametrize("size", SIZES)
def test_the_screen_takes_little_of_a_core(record, size):
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", *reversed(size), 0, 0))
    screen = subprocess.Popen(
        [sys.executable, "-m", "tests.soak.test_terminal"],
        stdin=theirs,
        stdout=theirs,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor"},
    )
    os.close(theirs)
    threading.Thread(target=_drain, args=(ours,)).start()
    _, said = screen.communicate(timeout=120)
    percent = float(said.split()[-1])
    record(
        "the terminal's screen of {} x {}, beside the engine".format(*size),
        f"{percent} % of a core",
    )
    assert percent < MOST


def _drain(ours):
    try:
        while os.read(ours, 65536):
            pass
    except OSError:  # the terminal is closed
        os.close(ours)


def main():
    engine, meter = made("--source", "demo")
    app = MeterApp(meter, driver_class=driver_class(sys.stdout))
    taken = []

    def look():
        taken.append((time.thread_time(), time.monotonic()))

    def end():
        look()
        app.action_leave()

    app.call_later(lambda: (app.set_timer(BEGUN_S, look), app.set_timer(BEGUN_S + MEASURED_S, end)))
    with engine:
        app.run()
    (busy, began), (later, ended) = taken
    print(f"{100 * (later - busy) / (ended - began):.1f}", file=sys.stderr)


if __name__ == "__main__":
    main()
