"""What the parts of the window have in common: a title, and the mark of doubt."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pyqtgraph.Qt import QtCore, QtGui, QtWidgets

from amt_monitor.plot_export import PICTURES, offer
from amt_monitor.theme import colors_of, hatching, tint

if TYPE_CHECKING:
    from amt_monitor.view_state import ViewState
    from amt_stream.engine import Engine
    from amt_stream.meters.rows import Rows
    from amt_stream.sessions.outputs import FollowedReadings


LEAST_ENDS = 4
"""Pixels that are hatched at each end of a badge, at least."""


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
            self.setToolTip(text)
            self.updateGeometry()
            self.update()

    def sizeHint(self) -> QtCore.QSize:
        metrics = self.fontMetrics()
        wide = metrics.horizontalAdvance(self.text) + 3 * metrics.height() if self.text else 0
        return QtCore.QSize(wide, metrics.height() + 6)

    def minimumSizeHint(self) -> QtCore.QSize:
        # A doubt that comes makes no pane wider.
        return QtCore.QSize(0, self.sizeHint().height())

    def paintEvent(self, event: QtGui.QPaintEvent) -> None:
        if not self.text:
            return
        colors = colors_of(self)
        color = colors.amber if self._uncalibrated else colors.second
        painter = QtGui.QPainter(self)
        frame = self.rect().adjusted(0, 0, -1, -1)
        # Where there is little room, words have it before the hatching.
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
    """A line that is cut with dots where there is no room for it, and asks for none."""

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

    title, about: rich text of this program; whoever has them from elsewhere escapes them
    """

    alone = False
    """Whether it is in a window of its own."""

    def __init__(self, name: str, title: str, about: str = "") -> None:
        super().__init__()
        self.setObjectName(name)
        self.setBackgroundRole(QtGui.QPalette.ColorRole.Base)
        self.setAutoFillBackground(True)
        self.badge = Badge()
        self.view: ViewState | None = None
        """The last that was judged."""
        heading, self.about = QtWidgets.QLabel(f"<b>{title}</b>"), QtWidgets.QLabel(about)
        heading.setObjectName(f"{name}_title")
        tint(self.about, "second")
        self.head_bar = QtWidgets.QWidget()
        """Title and badge; a dock has them in its own bar."""
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

    def begin_anew(self) -> None:
        """Forget what was measured before: another measurement that reads the same begins."""

    def move(self, view: "ViewState") -> None:
        """Paint what moves, thirty times a second at most, while it is seen."""

    def read(self, view: "ViewState") -> None:
        """Write what is read, five times a second, while it is seen."""

    def take(self, rows: "Sequence[Rows]") -> None:
        """Be handed every row of readings once, also while it is not seen."""

    def hear(self, engine: "Engine", readings: "FollowedReadings | None") -> None:
        """Take in the frames that are new, five times a second, also while it is not seen.

        `FrameFollower` finds them; a pane that draws them at once asks it before it moves.
        """

    def judge(self, view: "ViewState") -> None:
        """Say why what is shown is to be doubted."""
        self.view = view
        doubts = view.doubts()
        self.mark(doubts.words, doubts.uncalibrated)

    def head_of_export(self) -> dict[str, Any]:
        """What is told above what is kept of this pane, as data for JSON."""
        return {} if self.view is None else self.view.header

    def contextMenuEvent(self, event: QtGui.QContextMenuEvent) -> None:
        """Offer to keep a picture of the plot, where there is one."""
        plot = getattr(self, "plot", None)
        if plot is None:
            event.ignore()
            return
        menu = QtWidgets.QMenu(self)
        menu.setAttribute(QtCore.Qt.WidgetAttribute.WA_DeleteOnClose)
        offer(menu, PICTURES, plot, self.head_of_export, _no_rows)
        menu.popup(event.globalPos())

    def texts(self) -> tuple[str, ...]:
        """What is written there now."""
        return ()

    def mark(self, words: Sequence[str], uncalibrated: bool) -> None:
        """Say why these readings are to be doubted; no words, no doubt.

        That there is no calibration is said by the window, where the pane is in it.
        """
        told = uncalibrated and self.alone
        self.badge.show_words([*(["uncalibrated"] if told else []), *words], told)


def _no_rows() -> "Rows":
    raise LookupError("a picture has no rows")
