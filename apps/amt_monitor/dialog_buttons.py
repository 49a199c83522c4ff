"""The buttons at the foot of a dialog."""

from pyqtgraph.Qt import QtGui, QtWidgets


class DialogButtons(QtWidgets.QDialogButtonBox):
    """All of them have words alone: the icons of the usual ones are black, on a dark ground too."""

    def showEvent(self, event: QtGui.QShowEvent) -> None:
        for button in self.buttons():
            button.setIcon(QtGui.QIcon())
        super().showEvent(event)
