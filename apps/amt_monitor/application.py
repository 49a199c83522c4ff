"""The Qt application: its name, its icon, its desktop file."""

import sys
from importlib.resources import as_file, files

from pyqtgraph.Qt import QtGui, QtWidgets

from amt_stream import __version__

NAME = "amt-monitor"
"""The name of the program, of its icon and of its desktop file."""


def application() -> QtWidgets.QApplication:
    """The application of this process [main-thread].

    Wayland takes the icon of a window from the desktop file of this name.
    """
    app = QtWidgets.QApplication.instance() or QtWidgets.QApplication([NAME, *sys.argv[1:]])
    app.setApplicationName(NAME)
    app.setApplicationVersion(__version__)
    app.setDesktopFileName(NAME)
    app.setWindowIcon(icon())
    return app


def icon() -> QtGui.QIcon:
    with as_file(files("amt_monitor") / "icons" / f"{NAME}.png") as path:
        return QtGui.QIcon(QtGui.QPixmap(str(path)))
