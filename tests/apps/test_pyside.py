"""The window by the other binding of Qt, PySide6."""

import pytest

from tests.apps.pyside import run_by_pyside

# A second after it is there it is looked at.
PROGRAM = """
import sys
from amt_monitor.window.application import application
from amt_stream.cli.commands.monitor import run_monitor
from pyqtgraph.Qt import QT_LIB, QtCore, QtWidgets

app, ticks = application(), []

def look():
    shown = [w for w in app.topLevelWidgets() if w.isVisible() and w.windowTitle()]
    ticks.extend(shown)
    if len(ticks) == 10:
        picture = shown[0].grab().toImage()
        size = picture.width(), picture.height()
        points = [(x, y) for x in range(0, size[0], 3) for y in range(0, size[1], 3)]
        colors = {picture.pixel(x, y) for x, y in points}
        print(QT_LIB, len(shown), min(len(colors), 20))

timer = QtCore.QTimer()
timer.timeout.connect(look)
timer.start(100)
status = run_monitor(["--source", "demo", "--duration", "3"])
loaded = {name.partition(".")[0] for name in sys.modules}
print(status, sorted(loaded & {"PySide6", "PyQt6"}))
"""


@pytest.mark.soak
def test_the_window_runs_by_pyside(xvfb):
    assert run_by_pyside(PROGRAM) == "PySide6 1 20\n0 ['PySide6']\n"


def test_the_binding_keeps_the_references_that_it_is_given():
    """6.12.0 takes one of None in each call: before Python 3.12 a window ends within minutes."""
    program = (
        "import sys; from pyqtgraph.Qt import QtCore\n"
        "one, before = QtCore.QObject(), sys.getrefcount(None)\n"
        "for _ in range(5000): one.setObjectName('x')\n"
        "print(before - sys.getrefcount(None) < 1000)\n"
    )
    assert run_by_pyside(program) == "True\n"
