"""The Qt application: its name, its icon, its font, its desktop file."""

import os
import sys
from importlib.resources import as_file, files

from pyqtgraph.Qt import QtCore, QtGui, QtWidgets

from amt_monitor.base.qt_messages import hear_qt
from amt_monitor.base.widgets import remove_button_icons
from amt_stream import __version__

NAME = "amt-monitor"
"""The name of the program, of its icon and of its desktop file."""

FAMILY = "Inter amt"
"""The font in `fonts`: Inter 4.1 with tabular digits, letters of Latin, Greek and Cyrillic."""

TEXT = 13
"""Pixels of a text; a desktop with larger ones keeps them."""


def application() -> QtWidgets.QApplication:
    """The application of this process [main-thread].

    Wayland takes the icon of a window from the desktop file of this name.
    """
    # Qt would split what takes microseconds among threads, and wake them 500 times a second.
    os.environ.setdefault("QT_NO_GUI_THREADPOOL", "1")
    hear_qt()
    app = QtWidgets.QApplication.instance() or QtWidgets.QApplication([NAME, *sys.argv[1:]])
    assert isinstance(app, QtWidgets.QApplication)
    app.setApplicationName(NAME)
    app.setApplicationVersion(__version__)
    app.setDesktopFileName(NAME)
    app.setWindowIcon(icon())
    app.setStyle("Fusion")
    use_font(app)
    app.focusWindowChanged.connect(_follow_focus)
    return app


def _follow_focus(_: QtGui.QWindow | None) -> None:
    """Remove the icons of buttons in every dialog that is opened, those of Qt too."""
    window = QtWidgets.QApplication.activeWindow()
    if isinstance(window, QtWidgets.QDialog):
        remove_button_icons(window)


def use_font(app: QtWidgets.QApplication) -> None:
    """Write in the bundled font, and in the desktop's where a letter is missing."""
    font = app.font()
    if font.family() == FAMILY:
        return
    for file in (files("amt_monitor") / "fonts").iterdir():
        if file.name.endswith(".ttf"):
            QtGui.QFontDatabase.addApplicationFontFromData(QtCore.QByteArray(file.read_bytes()))
    size = QtGui.QFontInfo(font).pixelSize()
    font.setFamilies([FAMILY, font.family()])
    font.setPixelSize(max(TEXT, size))
    app.setFont(font)


def icon() -> QtGui.QIcon:
    with as_file(files("amt_monitor") / "icons" / f"{NAME}.png") as path:
        return QtGui.QIcon(QtGui.QPixmap(str(path)))
