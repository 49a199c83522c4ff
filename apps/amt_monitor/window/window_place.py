"""The place of a window on the screen, in the settings."""

from pyqtgraph.Qt import QtCore, QtWidgets

from amt_monitor.base.settings import Settings

PLACE = "place"
"""The settings' key for the place."""

FRAMED_MS = 100
"""After a window is shown, until the window system has put its frame around it."""


class WindowPlace:
    """Stores and restores the place of a window; a new one fits on the screen with its frame."""

    def __init__(self, window: QtWidgets.QWidget, settings: Settings) -> None:
        self._window, self._settings = window, settings
        if place := settings.get(PLACE, ""):
            # Qt moves a window from a screen that is gone to one that is there.
            window.restoreGeometry(QtCore.QByteArray.fromBase64(place.encode()))
        else:
            framed = QtCore.QTimer(window, singleShot=True, interval=FRAMED_MS)
            framed.timeout.connect(self._fit_screen)
            framed.start()

    def keep(self) -> None:
        place = bytes(self._window.saveGeometry().toBase64().data()).decode()
        self._settings.put(**{PLACE: place})

    def _fit_screen(self) -> None:
        window = self._window
        room, frame = window.screen().availableGeometry(), window.frameGeometry()
        window.resize(window.size().boundedTo(room.size() - frame.size() + window.size()))
        place, frame = window.pos(), window.frameGeometry()
        over = frame.bottomRight() - room.bottomRight()
        place -= QtCore.QPoint(max(0, over.x()), max(0, over.y()))
        window.move(max(room.left(), place.x()), max(room.top(), place.y()))
