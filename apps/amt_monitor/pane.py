"""What the parts of the window have in common: a title, and the mark of doubt."""

from collections.abc import Sequence

from pyqtgraph.Qt import QtCore, QtGui, QtWidgets

from amt_monitor.theme import hatching, theme, tint


class Badge(QtWidgets.QWidget):
    """Words in a frame with hatched ends: hatching is seen where color is not.

    The frame of what has no calibration is amber.
    """

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("badge")
        self.text = ""
        self._uncalibrated = False

    def show_words(self, words: Sequence[str], uncalibrated: bool) -> None:
        text = " · ".join(words)
        if (text, uncalibrated) != (self.text, self._uncalibrated):
            self.text, self._uncalibrated = text, uncalibrated
            self.setAccessibleName(text)
            self.updateGeometry()
            self.update()

    def sizeHint(self) -> QtCore.QSize:
        metrics = self.fontMetrics()
        wide = metrics.horizontalAdvance(self.text) + 3 * metrics.height() if self.text else 0
        return QtCore.QSize(wide, metrics.height() + 6)

    def minimumSizeHint(self) -> QtCore.QSize:
        return self.sizeHint()

    def paintEvent(self, event: QtGui.QPaintEvent) -> None:
        if not self.text:
            return
        colors = theme.colors
        color = colors.amber if self._uncalibrated else colors.second
        painter = QtGui.QPainter(self)
        frame = self.rect().adjusted(0, 0, -1, -1)
        inset = self.fontMetrics().height()
        painter.fillRect(frame, hatching(color))
        painter.fillRect(frame.adjusted(inset, 0, -inset, 0), QtGui.QColor(colors.paper))
        painter.setPen(QtGui.QPen(QtGui.QColor(color), 1))
        painter.drawRect(frame)
        painter.setPen(QtGui.QColor(colors.ink))
        painter.drawText(frame, QtCore.Qt.AlignmentFlag.AlignCenter, self.text)


class Pane(QtWidgets.QWidget):
    """A part of the window with a title and a badge.

    title, about: rich text of this program; whoever has them from elsewhere escapes them
    """

    def __init__(self, name: str, title: str, about: str = "") -> None:
        super().__init__()
        self.setObjectName(name)
        self.setBackgroundRole(QtGui.QPalette.ColorRole.Base)
        self.setAutoFillBackground(True)
        self.badge = Badge()
        heading, self.about = QtWidgets.QLabel(f"<b>{title}</b>"), QtWidgets.QLabel(about)
        heading.setObjectName(f"{name}_title")
        tint(self.about, "second")
        self.head = QtWidgets.QHBoxLayout()
        self.head.addWidget(heading)
        self.head.addWidget(self.about)
        self.head.addStretch(1)
        self.head.addWidget(self.badge)
        self.body = QtWidgets.QVBoxLayout(self)
        self.body.setContentsMargins(8, 4, 8, 4)
        self.body.setSpacing(2)
        self.body.addLayout(self.head)

    def mark(self, words: Sequence[str], uncalibrated: bool) -> None:
        """Say why these readings are to be doubted; no words, no doubt."""
        self.badge.show_words(words, uncalibrated)
