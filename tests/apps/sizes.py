"""Whether what is written in a window has the room that it asks for.

As a program it opens the meter as the command line does, and prints what is cut:
`python -m tests.apps.sizes FOLDER 1024x600 --source demo --model spl`.
"""

import sys
import time
from pathlib import Path

from pyqtgraph.Qt import QtCore, QtWidgets

from amt_monitor.panes.pane import ElidedLabel


def cut(window):
    """Labels and buttons that are seen and have less room than they ask for."""
    found = []
    # Qt puts a dock that is behind a tab out of the window.
    docks = window.findChildren(QtWidgets.QDockWidget)
    behind = [dock for dock in docks if not window.rect().intersects(dock.geometry())]
    for widget in window.findChildren(QtWidgets.QWidget):
        if not isinstance(widget, QtWidgets.QLabel | QtWidgets.QAbstractButton):
            continue
        if isinstance(widget, ElidedLabel) or not (widget.isVisible() and widget.text()):
            continue  # an elided one has all of its words in a tooltip
        if any(dock.isAncestorOf(widget) for dock in behind):
            continue
        wrapped = isinstance(widget, QtWidgets.QLabel) and widget.wordWrap()
        needs = widget.heightForWidth(widget.width()) if wrapped else widget.sizeHint().width()
        has = widget.height() if wrapped else widget.width()
        place = QtCore.QRect(widget.mapTo(widget.window(), QtCore.QPoint()), widget.size())
        inside = widget.window().rect().contains(place)
        if needs > has + 1 or not inside:
            found.append((widget.objectName(), widget.text(), needs, has, inside))
    return found


def main(folder, size, *words):
    from amt_monitor.base.settings import Settings
    from amt_monitor.window.application import application
    from amt_monitor.window.main_window import MainWindow
    from amt_stream.cli.command import build_parser
    from amt_stream.cli.preset import chosen_preset, with_microphones
    from amt_stream.cli.window import Maker

    app = application()
    args = build_parser().parse_args(["meter", *words])
    preset = chosen_preset(args)
    args = with_microphones(args, preset)
    maker = Maker(args, preset)
    window = MainWindow(maker.engine, maker.log, Settings(Path(folder) / "monitor.json"))
    window.resize(*map(int, size.split("x")))
    window.show()

    def turn(until, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end and not until():
            app.processEvents()
            time.sleep(0.01)
        return until()

    assert turn(lambda: window.updater.shown is not None, 100), "no readings"
    turn(lambda: False, 1.0)
    window.area.restore_default()
    turn(lambda: False, 1.0)
    found = cut(window)
    window.close_now()
    for one in found:
        print(*one)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
