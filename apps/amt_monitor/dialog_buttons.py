from pyqtgraph.Qt import QtGui, QtWidgets


class DialogButtons(QtWidgets.QDialogButtonBox):
    """Buttons without icons: the usual icons are black, on a dark background too."""

    def showEvent(self, event: QtGui.QShowEvent) -> None:
        for button in self.buttons():
            button.setIcon(QtGui.QIcon())
        super().showEvent(event)
