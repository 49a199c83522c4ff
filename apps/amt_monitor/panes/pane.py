"""The base class of panes, with their title."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pyqtgraph.Qt import QtCore, QtGui, QtWidgets

from amt_monitor.base.theme import set_font, tint
from amt_monitor.plot.plot_export import PICTURES, offer
from amt_stream.meters.state_signs import is_away

if TYPE_CHECKING:
    from amt_stream.engine import Engine
    from amt_stream.meters.rows import Rows
    from amt_stream.sessions.outputs import FollowedReadings
    from amt_stream.views.view_state import ViewState


FEW = 4
"""Letters, dots included, that say nothing of a text."""


class ElidedLabel(QtWidgets.QLabel):
    """A label that shortens its text with dots, or leaves it out, instead of asking for room.

    shorter: texts in its place, none longer than the one before; they are preferred to dots
    """

    def __init__(self, text: str, *shorter: str) -> None:
        super().__init__(text)
        self._shorter = shorter
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
        align = QtCore.Qt.AlignmentFlag
        painter.drawText(self.rect(), align.AlignLeft | align.AlignVCenter, self.shown)

    @property
    def shown(self) -> str:
        """What there is room for."""
        metrics, room = self.fontMetrics(), self.width()
        for text in (self.text(), *self._shorter):
            if metrics.horizontalAdvance(text) <= room:
                return text
        side = QtCore.Qt.TextElideMode.ElideRight
        text = metrics.elidedText((self.text(), *self._shorter)[-1], side, room)
        return text if len(text) > FEW else ""


class Pane(QtWidgets.QWidget):
    """A part of the window with a title.

    title, about: rich text; escape what comes from elsewhere
    """

    def __init__(self, name: str, title: str, about: str = "") -> None:
        super().__init__(objectName=name)
        self.setBackgroundRole(QtGui.QPalette.ColorRole.Base)
        self.setAutoFillBackground(True)
        self.view: ViewState | None = None
        """The last view that was judged."""
        heading, self.about = QtWidgets.QLabel(title), QtWidgets.QLabel(about)
        heading.setTextFormat(QtCore.Qt.TextFormat.RichText)
        set_font(heading, True)
        heading.setObjectName(f"{name}_title")
        tint(self.about, "second")
        self.head_bar = QtWidgets.QWidget()
        """The title and the widgets beside it; a dock moves them into its title bar."""
        self.head = QtWidgets.QHBoxLayout(self.head_bar)
        self.head.setContentsMargins(0, 0, 0, 0)
        self.head.addWidget(heading)
        self.head.addWidget(self.about)
        self.head.addStretch(1)
        self.body = QtWidgets.QVBoxLayout(self)
        self.body.setContentsMargins(8, 4, 8, 4)
        self.body.setSpacing(2)
        self.body.addWidget(self.head_bar)

    def restart(self) -> None:
        """Start again: another measurement with the same columns begins."""

    def change_limits(self, view: "ViewState") -> None:
        """Take over other limits, and the columns that came with them."""

    def leave(self) -> None:
        """End what runs for it: it is removed."""

    def move(self, view: "ViewState") -> None:
        """Draw what moves, up to 30 times a second, while visible."""

    def read(self, view: "ViewState") -> None:
        """Write numbers, five times a second, while visible."""

    def take(self, rows: "Sequence[Rows]") -> None:
        """Take new rows, each once, also while hidden."""

    def take_frames(self, engine: "Engine", readings: "FollowedReadings | None") -> None:
        """Read new frames, five times a second, or once while the window is hidden.

        `FrameFollower` finds them; a pane that draws them at once asks it before it moves.
        """

    def show_status(self, view: "ViewState") -> None:
        """Show how reliable the readings are."""
        self.view = view
        if is_away(view.held):
            self.lose()

    def lose(self) -> None:
        """Clear what shows the sound of now: the microphone is lost or silent."""

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


def _no_rows() -> "Rows":
    raise LookupError("a picture has no rows")
