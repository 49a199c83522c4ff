"""The icon in the tray, which shows the worst limit."""

from pyqtgraph.Qt import QtCore, QtGui, QtWidgets

from amt_monitor.base.theme import theme
from amt_monitor.panes.limits_pane import paint_light
from amt_monitor.window.application import icon

SIDE = 64


class TrayIcon(QtCore.QObject):
    """An icon in the tray, if the desktop has one.

    `asked` is emitted when the user clicks it.
    """

    asked = QtCore.Signal()

    def __init__(self, parent: QtCore.QObject) -> None:
        super().__init__(parent)
        self._icon: QtWidgets.QSystemTrayIcon | None = None
        self._state: str | None = None

    @property
    def is_there(self) -> bool:
        return self._icon is not None and self._icon.isVisible()

    def show_if(self, wanted: bool) -> None:
        there = wanted and QtWidgets.QSystemTrayIcon.isSystemTrayAvailable()
        if there and self._icon is None:
            self._icon = QtWidgets.QSystemTrayIcon(self)
            self._icon.activated.connect(lambda _: self.asked.emit())
            self._state = None
        elif not there and self._icon is not None:
            self._icon.hide()
            self._icon.deleteLater()
            self._icon = None

    def tell(self, state: str, words: str) -> None:
        """Show the state of the worst limit, "" without limits; words as tooltip."""
        if self._icon is None:
            return
        if state != self._state:
            self._state = state
            self._icon.setIcon(light_icon(state) if state else icon())
        self._icon.setToolTip(words)
        self._icon.setVisible(True)


def light_icon(state: str) -> QtGui.QIcon:
    picture = QtGui.QPixmap(SIDE, SIDE)
    picture.fill(QtCore.Qt.GlobalColor.transparent)
    painter = QtGui.QPainter(picture)
    painter.setRenderHint(QtGui.QPainter.RenderHint.Antialiasing)
    area = QtCore.QRectF(4, 4, SIDE - 8, SIDE - 8)
    paint_light(painter, area, state, theme.colors)
    painter.end()
    return QtGui.QIcon(picture)
