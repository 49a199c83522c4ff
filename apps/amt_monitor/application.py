"""The application, as a desktop knows it: its name, its icon, its entry in the menu."""

import sys
from importlib.resources import as_file, files

from pyqtgraph.Qt import QtGui, QtWidgets

from amt_stream import __version__

NAME = "amt-monitor"
"""Of the program, of its icon and of its desktop file."""


def application() -> QtWidgets.QApplication:
    """The one of this process, with name and icon [main-thread].

    Wayland has neither of a window: it finds the icon by the name of the desktop file.
    """
    app = QtWidgets.QApplication.instance() or QtWidgets.QApplication([NAME, *sys.argv[1:]])
    app.setApplicationName(NAME)
    app.setApplicationVersion(__version__)
    app.setDesktopFileName(NAME)
    app.setWindowIcon(icon())
    return app


def icon() -> QtGui.QIcon:
    """The icon of its windows."""
    with as_file(files("amt_monitor") / "icons" / f"{NAME}.png") as path:
        return QtGui.QIcon(QtGui.QPixmap(str(path)))
