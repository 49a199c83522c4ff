"""Draw apps/amt_monitor/icons/amt-monitor.png of the SVG beside it: `python tools/icon.py`."""

from pathlib import Path

from pyqtgraph.Qt import QtCore, QtGui, QtSvg

ICONS = Path(__file__).resolve().parent.parent / "apps" / "amt_monitor" / "icons"
SIZE = 256


def drawn() -> QtGui.QImage:
    """The icon in pixels, on nothing."""
    image = QtGui.QImage(SIZE, SIZE, QtGui.QImage.Format.Format_ARGB32)
    image.fill(QtCore.Qt.GlobalColor.transparent)
    painter = QtGui.QPainter(image)
    QtSvg.QSvgRenderer(str(ICONS / "amt-monitor.svg")).render(painter)
    painter.end()
    return image


if __name__ == "__main__":
    drawn().save(str(ICONS / "amt-monitor.png"))
