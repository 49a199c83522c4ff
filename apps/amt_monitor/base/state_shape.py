"""The shapes of states, as on the chip."""

from functools import cache

from pyqtgraph.Qt import QtCore, QtGui

from amt_stream.meters.state_signs import SIDE, SIGNS


def paint_shape(
    painter: QtGui.QPainter, state: str, left: float, top: float, side: float, color: QtGui.QColor
) -> None:
    """Fill the shape of a state in a square.

    state: a key of `SIGNS`
    """
    painter.save()
    painter.setRenderHint(QtGui.QPainter.RenderHint.Antialiasing)
    painter.translate(left, top)
    painter.scale(side / SIDE, side / SIDE)
    painter.fillPath(_path(state), color)
    painter.restore()


@cache
def _path(state: str) -> QtGui.QPainterPath:
    path = QtGui.QPainterPath()
    path.setFillRule(QtCore.Qt.FillRule.WindingFill)
    for outline in SIGNS[state].shape:
        path.addPolygon(QtGui.QPolygonF([QtCore.QPointF(*point) for point in outline]))
    return path
