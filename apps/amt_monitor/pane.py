"""The base class of panes, with title and badge."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pyqtgraph.Qt import QtCore, QtGui, QtWidgets

from amt_monitor.plot_export import PICTURES, offer
from amt_monitor.theme import colors_of, hatching, set_font, tint

if TYPE_CHECKING:
    from amt_monitor.view_state import ViewState
    from amt_stream.engine import Engine
    from amt_stream.meters.rows import Rows
    from amt_stream.sessions.outputs import FollowedReadings


LEAST_ENDS = 4
"""Smallest width in pixels of the hatching at each end."""


PRESSING = QtCore.Qt.Key.Key_Return, QtCore.Qt.Key.Key_Enter
"""Keys that press what has the focus; the space bar pauses wherever it is."""


class Badge(QtWidgets.QWidget):
    """Words in a frame with hatched ends, which show without color.

    The frame is amber where the calibration is missing. `clicked` follows a click, and Enter
    where it takes the focus.
    """

    clicked = QtCore.Signal()

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
        # A badge that appears must not widen the pane.
        return QtCore.QSize(0, self.sizeHint().height())

    def paintEvent(self, event: QtGui.QPaintEvent) -> None:
        if not self.text:
            return
        colors = colors_of(self)
        color = colors.amber if self._uncalibrated else colors.second
        painter = QtGui.QPainter(self)
        frame = self.rect().adjusted(0, 0, -1, -1)
        # Words take precedence over hatching.
        spare = (frame.width() - self.fontMetrics().horizontalAdvance(self.text)) // 2 - 2
        inset = max(LEAST_ENDS, min(self.fontMetrics().height(), spare))
        painter.fillRect(frame, hatching(color))
        painter.fillRect(frame.adjusted(inset, 0, -inset, 0), QtGui.QColor(colors.paper))
        painter.setPen(QtGui.QPen(QtGui.QColor(color), 1))
        painter.drawRect(frame)
        painter.setPen(QtGui.QColor(colors.ink))
        room, side = frame.width() - 2 * inset, QtCore.Qt.TextElideMode.ElideRight
        text = self.fontMetrics().elidedText(self.text, side, room)
        painter.drawText(frame, QtCore.Qt.AlignmentFlag.AlignCenter, text)


class ElidedLabel(QtWidgets.QLabel):
    """A label that shortens its text with dots instead of asking for room."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.setTextFormat(QtCore.Qt.TextFormat.PlainText)
        self.setToolTip(text)
        tint(self, "second")

    def sizeHint(self) -> QtCore.QSize:
        return QtCore.QSize(0, self.fontMetrics().height())

    def minimumSizeHint(self) -> QtCore.QSize:
        return self.sizeHint()

    def paintEvent(self, event: QtGui.QPaintEvent) -> None:
        painter = QtGui.QPainter(self)
        painter.setPen(self.palette().color(self.foregroundRole()))
        side = QtCore.Qt.TextElideMode.ElideRight
        text = self.fontMetrics().elidedText(self.text(), side, self.width())
        align = QtCore.Qt.AlignmentFlag
        painter.drawText(self.rect(), align.AlignLeft | align.AlignVCenter, text)


class Pane(QtWidgets.QWidget):
    """A part of the window with a title and a badge.

    title, about: rich text; escape what comes from elsewhere
    """

    alone = False
    """Whether it is in its own window."""

    def __init__(self, name: str, title: str, about: str = "") -> None:
        super().__init__()
        self.setObjectName(name)
        self.setBackgroundRole(QtGui.QPalette.ColorRole.Base)
        self.setAutoFillBackground(True)
        self.badge = Badge()
        self.view: ViewState | None = None
        """The last view that was judged."""
        heading, self.about = QtWidgets.QLabel(title), QtWidgets.QLabel(about)
        heading.setTextFormat(QtCore.Qt.TextFormat.RichText)
        set_font(heading, True)
        heading.setObjectName(f"{name}_title")
        tint(self.about, "second")
        self.head_bar = QtWidgets.QWidget()
        """Title and badge; a dock puts them into its title bar."""
        self.head = QtWidgets.QHBoxLayout(self.head_bar)
        self.head.setContentsMargins(0, 0, 0, 0)
        self.head.addWidget(heading)
        self.head.addWidget(self.about)
        self.head.addStretch(1)
        self.head.addWidget(self.badge)
        self.body = QtWidgets.QVBoxLayout(self)
        self.body.setContentsMargins(8, 4, 8, 4)
        self.body.setSpacing(2)
        self.body.addWidget(self.head_bar)

    def restart(self) -> None:
        """Start again: another measurement with the same columns begins."""

    def move(self, view: "ViewState") -> None:
        """Draw what moves, up to 30 times a second, while visible."""

    def read(self, view: "ViewState") -> None:
        """Write numbers, five times a second, while visible."""

    def take(self, rows: "Sequence[Rows]") -> None:
        """Take new rows, each once, also while hidden."""

    def take_frames(self, engine: "Engine", readings: "FollowedReadings | None") -> None:
        """Read new frames, five times a second, also while hidden.

        `FrameFollower` finds them; a pane that draws them at once asks it before it moves.
        """

    def show_status(self, view: "ViewState") -> None:
        """Show why readings are doubtful."""
        self.view = view
        status = view.reading_status()
        self.mark(status.words, status.uncalibrated)

    def head_of_export(self) -> dict[str, Any]:
        return {} if self.view is None else self.view.header

    def contextMenuEvent(self, event: QtGui.QContextMenuEvent) -> None:
        plot = getattr(self, "plot", None)
        if plot is None:
            event.ignore()
            return
        menu = QtWidgets.QMenu(self)
        menu.setAttribute(QtCore.Qt.WidgetAttribute.WA_DeleteOnClose)
        offer(menu, PICTURES, plot, self.head_of_export, _no_rows)
        menu.popup(event.globalPos())

    def texts(self) -> tuple[str, ...]:
        return ()

    def mark(self, words: Sequence[str], uncalibrated: bool) -> None:
        """Show why readings are doubtful; without words they are not.

        Only a pane in its own window says "uncalibrated": elsewhere the main window does.
        """
        told = uncalibrated and self.alone
        self.badge.show_words([*(["uncalibrated"] if told else []), *words], told)


def _no_rows() -> "Rows":
    raise LookupError("a picture has no rows")
