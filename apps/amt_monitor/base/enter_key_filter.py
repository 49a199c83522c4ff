"""Enter presses the focused button and opens the focused list."""

import contextlib

from pyqtgraph.Qt import QtCore, QtGui, QtWidgets

KEYS = (QtCore.Qt.Key.Key_Return, QtCore.Qt.Key.Key_Enter)


class EnterKeyFilter(QtCore.QObject):
    """For a window and its children. In dialogs Enter presses the default button, as usual."""

    def __init__(self, window: QtWidgets.QWidget) -> None:
        super().__init__(window)
        self._window = window
        self._filtered: QtWidgets.QWidget | None = None
        application = QtWidgets.QApplication.instance()
        assert isinstance(application, QtWidgets.QApplication)
        application.focusChanged.connect(self._follow)

    def _follow(self, _: QtWidgets.QWidget | None, now: QtWidgets.QWidget | None) -> None:
        # Only the focused widget is filtered: a filter for all would slow down every event.
        if self._filtered is not None:
            with contextlib.suppress(RuntimeError):  # it may be deleted
                self._filtered.removeEventFilter(self)
            self._filtered = None
        kinds = QtWidgets.QAbstractButton, QtWidgets.QComboBox
        if isinstance(now, kinds) and not isinstance(now.window(), QtWidgets.QDialog):
            now.installEventFilter(self)
            self._filtered = now

    def eventFilter(self, widget: QtCore.QObject | None, event: QtCore.QEvent | None) -> bool:
        if not isinstance(event, QtGui.QKeyEvent) or event.key() not in KEYS:
            return False
        if event.type() != QtCore.QEvent.Type.KeyPress or event.isAutoRepeat():
            return False
        if isinstance(widget, QtWidgets.QComboBox):
            widget.showPopup()
        elif isinstance(widget, QtWidgets.QToolButton) and widget.menu() is not None:
            widget.showMenu()
        elif isinstance(widget, QtWidgets.QAbstractButton):
            widget.click()
        return True
