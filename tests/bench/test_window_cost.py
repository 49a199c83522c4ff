"""What the whole program costs with its window on a screen: CPU seconds per second."""

import json
import os
import subprocess
import sys

import pytest

CHILD = """
import json, resource, statistics, sys, time
from pathlib import Path
from pyqtgraph.Qt import QtCore, QtTest
from amt_monitor.window.main_window import MainWindow
from amt_stream.cli import main
from amt_stream.engine import Engine, demo_source
from amt_stream.meters.presets import load_preset

seconds, found, before = float(sys.argv.pop(1)), {}, MainWindow.__init__

def shares(seconds, wait):
    "Of a core, that process and main thread take: medians of pieces of 2 s."
    pieces = []
    for _ in range(round(seconds / 2)):
        begun = time.process_time(), time.thread_time(), time.monotonic()
        wait(2.0)
        *used, wall = (now - then for now, then in zip(
            (time.process_time(), time.thread_time(), time.monotonic()), begun))
        pieces.append([one / wall for one in used])
    return [*map(statistics.median, zip(*pieces))]

def look(window):
    if window.updater.shown is None:
        QtCore.QTimer.singleShot(100, lambda: look(window))
        return
    wait = lambda seconds: QtTest.QTest.qWait(round(1000 * seconds))
    wait(6.0)
    drawn, pane = [], window.area.docks["specific_loudness"].pane
    move = pane.move
    pane.move = lambda view: (drawn.append(None), move(view))
    begun = time.monotonic()
    found["both"], found["window"] = shares(seconds, wait)
    found["frames"] = len(drawn) / (time.monotonic() - begun)
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    found["memory"] = pages * resource.getpagesize() / 1e6
    found["size"] = f"{window.width()} x {window.height()}"
    window.hide()
    wait(1.5)
    _, found["hidden"] = shares(max(10, seconds / 10), wait)
    found["overruns"] = window.measurement.engine.health.overruns
    window.show()  # a hidden one that is closed ends no program
    window.close_now()

def init(self, *given, **named):
    before(self, *given, **named)
    look(self)

MainWindow.__init__ = init
code = main()
source, preset = demo_source(), load_preset("moore2016")
model = preset.models(source.fs, 2, specific_loudness=True)
with Engine(source, model, **preset.engine_settings):
    time.sleep(6.0)
    found["alone"], _ = shares(max(10, seconds / 10), time.sleep)
print(json.dumps(found))
sys.exit(code)
"""


def window_cost(folder, *options, seconds=20):
    """CPU share of window, engine and demo source together, in words and as a number.

    In words also that of the window alone, seen and hidden, that of the same engine without a
    window, and the memory: medians of pieces of 2 s, for `seconds` while it is seen, and for a
    tenth of them, 10 s at least, else. The X server is another process.
    """
    command = [sys.executable, "-c", CHILD, str(seconds), "meter", "--source", "demo", *options]
    environment = {**os.environ, "XDG_CONFIG_HOME": str(folder)}
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment, check=True)
    found = json.loads(done.stdout)
    assert found["overruns"] == 0
    both, window, hidden, alone = (
        f"{100 * found[one]:.1f} %" for one in ("both", "window", "hidden", "alone")
    )
    words = (
        f"{found['size']}, {found['frames']:.1f} frames per second, {seconds} s: {both} of one "
        f"core, of it window {window}, hidden {hidden}; engine without a window {alone}; "
        f"{found['memory']:.0f} MB of memory"
    )
    return words, found["both"]


@pytest.mark.bench
@pytest.mark.parametrize("options", [(), ("--microphone-uncertainty", "1")])
def test_cpu_of_window_and_engine(xvfb, tmp_path, options):
    words, _ = window_cost(tmp_path, *options)
    print(f"\nwindow {' '.join(options)}: {words}")
