"""The badge that says that the calibration is missing."""

from pyqtgraph.Qt import QtCore, QtGui, QtWidgets

from amt_monitor.base.theme import colors_of, hatching

LEAST_ENDS = 4
"""Smallest width in pixels of the hatching at each end."""


PRESSING = QtCore.Qt.Key.Key_Return, QtCore.Qt.Key.Key_Enter
"""Keys that press what has the focus; the space bar pauses wherever it is."""


class Badge(QtWidgets.QWidget):
    """That the calibration is missing: words in an amber frame, whose hatched ends need no color.

    `clicked` follows a click, and Enter where it takes the focus.
    """

    clicked = QtCore.Signal()

    def __init__(self) -> None:
        super().__init__(objectName="badge")
        self.text = ""

    def show_text(self, text: str) -> None:
        """Show these words, or nothing for ""."""
        if text != self.text:
            self.text = text
            self.setAccessibleName(text)
            self.setToolTip(text)
            self.updateGeometry()
            self.update()

    def mouseReleaseEvent(self, event: QtGui.QMouseEvent) -> None:
        if self.text and self.rect().contains(event.position().toPoint()):
            self.clicked.emit()

    def keyPressEvent(self, event: QtGui.QKeyEvent) -> None:
        if self.text and event.key() in PRESSING:
            self.clicked.emit()
        else:
            super().keyPressEvent(event)

    def sizeHint(self) -> QtCore.QSize:
        metrics = self.fontMetrics()
        wide = metrics.horizontalAdvance(self.text) + 3 * metrics.height() if self.text else 0
        return QtCore.QSize(wide, metrics.height() + 6)

    def minimumSizeHint(self) -> QtCore.QSize:
        """The words whole, with the thinnest ends."""
        metrics = self.fontMetrics()
        wide = metrics.horizontalAdvance(self.text) + 2 * LEAST_ENDS + 6 if self.text else 0
        return QtCore.QSize(wide, self.sizeHint().height())

    def paintEvent(self, event: QtGui.QPaintEvent) -> None:
        if not self.text:
            return
        colors = colors_of(self)
        painter = QtGui.QPainter(self)
        frame = self.rect().adjusted(0, 0, -1, -1)
        # Words take precedence over hatching.
        spare = (frame.width() - self.fontMetrics().horizontalAdvance(self.text)) // 2 - 2
        inset = max(LEAST_ENDS, min(self.fontMetrics().height(), spare))
        painter.fillRect(frame, hatching(colors.amber))
        painter.fillRect(frame.adjusted(inset, 0, -inset, 0), QtGui.QColor(colors.paper))
        painter.setPen(QtGui.QPen(QtGui.QColor(colors.amber), 1))
        painter.drawRect(frame)
        painter.setPen(QtGui.QColor(colors.ink))
        room, side = frame.width() - 2 * inset, QtCore.Qt.TextElideMode.ElideRight
        text = self.fontMetrics().elidedText(self.text, side, room)
        painter.drawText(frame, QtCore.Qt.AlignmentFlag.AlignCenter, text)
