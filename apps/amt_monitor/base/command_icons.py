"""Icons of the commands in the top bar, drawn in the ink of the theme."""

from pyqtgraph.Qt import QtCore, QtGui

SIDE = 16
"""Pixels; shapes are drawn in this square."""


def command_icon(name: str, color: str) -> QtGui.QIcon:
    """The icon of "pause", "play", "stop", "reset_readings", "mark", "log" or "freeze"."""
    pixmap = QtGui.QPixmap(3 * SIDE, 3 * SIDE)  # for screens of any scale
    pixmap.fill(QtCore.Qt.GlobalColor.transparent)
    painter = QtGui.QPainter(pixmap)
    painter.setRenderHint(QtGui.QPainter.RenderHint.Antialiasing)
    painter.scale(3, 3)
    pen = QtGui.QPen(QtGui.QColor(color), 1.5)
    pen.setCapStyle(QtCore.Qt.PenCapStyle.RoundCap)
    path = QtGui.QPainterPath()
    filled = name in ("pause", "play", "stop", "log")
    match name:
        case "pause":
            path.addRoundedRect(QtCore.QRectF(4, 3, 3, 10), 1, 1)
            path.addRoundedRect(QtCore.QRectF(9, 3, 3, 10), 1, 1)
        case "play":
            path.addPolygon(_polygon((4, 3), (13, 8), (4, 13), (4, 3)))
        case "stop":
            path.addRoundedRect(QtCore.QRectF(4, 4, 8, 8), 1, 1)
        case "log":
            path.addEllipse(QtCore.QPointF(8, 8), 4.5, 4.5)
        case "reset_readings":
            path.arcMoveTo(QtCore.QRectF(3, 3, 10, 10), 60)
            path.arcTo(QtCore.QRectF(3, 3, 10, 10), 60, 300)
            path.addPolygon(_polygon((10.5, 1), (10.5, 4.5), (14, 4.5)))
        case "mark":
            path.addPolygon(_polygon((4, 14), (4, 3), (12, 3), (9.5, 6), (12, 9), (4, 9)))
        case "freeze":
            for x, y in ((0, 5.5), (4.8, 2.75), (4.8, -2.75)):
                path.moveTo(8 - x, 8 - y)
                path.lineTo(8 + x, 8 + y)
    if filled:
        painter.fillPath(path, QtGui.QColor(color))
    else:
        painter.strokePath(path, pen)
    painter.end()
    return QtGui.QIcon(pixmap)


def _polygon(*points: tuple[float, float]) -> QtGui.QPolygonF:
    return QtGui.QPolygonF([QtCore.QPointF(x, y) for x, y in points])
