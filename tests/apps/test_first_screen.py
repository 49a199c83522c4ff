"""The first start on a small screen: the window with its frame lies on it, status line and all."""

import json
import os
import subprocess
import sys

import pytest

from tests.conftest import require_programs

START = """
import json, sys, time
from pathlib import Path
from pyqtgraph.Qt import QtCore, QtWidgets
from amt_monitor.window.application import application
from amt_monitor.window.main_window import MainWindow
from amt_monitor.base.settings import Settings
from amt_stream.core.errors import Refusal

class NoInput(Refusal, RuntimeError): pass

def make_engine(request):
    raise NoInput("nothing is measured")

app = application()
window = MainWindow(make_engine, settings=Settings(Path(sys.argv[1]) / "monitor.json"))
sizes = [[window.width(), window.height()]]
if len(sys.argv) > 2:
    window.move(*map(int, sys.argv[2:]))  # as some window systems place it
room = window.screen().availableGeometry()
left = iter(range(600))

def tell():
    if next(left, None) is not None and not room.contains(window.frameGeometry()):
        return
    bar = window.statusBar()
    bottom = bar.mapToGlobal(QtCore.QPoint(0, bar.height())).y()
    print(json.dumps({
        "first": sizes[0],
        "frame": window.frameGeometry().getRect(),
        "status": [bar.isVisible(), bottom],
        "title": app.style().pixelMetric(QtWidgets.QStyle.PixelMetric.PM_TitleBarHeight),
        "screen": window.screen().availableGeometry().getRect(),
    }))
    app.quit()

looks = QtCore.QTimer(interval=50)
looks.timeout.connect(tell)
window.show()
looks.start()
app.exec()
window.close_now()
"""


@pytest.fixture(params=["1280x800", "1024x600"])
def screen(request):
    """A screen of this size; gives its number and size."""
    require_programs("Xvfb")
    read_end, write_end = os.pipe()
    command = ["Xvfb", "-displayfd", str(write_end), "-screen", "0", f"{request.param}x24"]
    server = subprocess.Popen(
        [*command, "-nolisten", "tcp"], pass_fds=[write_end], stderr=subprocess.DEVNULL
    )
    os.close(write_end)
    with os.fdopen(read_end) as ready:
        number = ready.readline().strip()
    yield number, tuple(map(int, request.param.split("x")))
    server.terminate()
    server.wait()


@pytest.mark.cases(2)
@pytest.mark.parametrize("place", [(), ("200", "100")], ids=["corner", "off the screen"])
def test_the_window_fits_the_screen_with_its_title_bar(screen, tmp_path, place):
    number, (width, height) = screen
    environment = {**os.environ, "DISPLAY": f":{number}", "QT_QPA_PLATFORM": "xcb"}
    command = [sys.executable, "-c", START, str(tmp_path), *place]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    found = json.loads(ended.stdout.splitlines()[-1])
    assert found["screen"] == [0, 0, width, height]
    # Before a frame is known, room is left for it.
    assert found["title"] > 10
    assert found["first"] == [min(1280, width), min(800, height - found["title"])]
    x, y, wide, high = found["frame"]
    assert x >= 0 <= y
    assert (x + wide <= width, y + high <= height) == (True, True)
    assert found["status"][0]
    assert found["status"][1] <= height
