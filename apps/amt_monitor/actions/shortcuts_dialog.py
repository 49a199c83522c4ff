"""The list of keys."""

from pyqtgraph.Qt import QtWidgets

from amt_monitor.actions.window_commands import COMMANDS
from amt_monitor.base.widgets import DialogButtons


class ShortcutsDialog(QtWidgets.QDialog):
    """The commands and their keys."""

    def __init__(self, parent: QtWidgets.QWidget) -> None:
        super().__init__(parent, objectName="keys_sheet", windowTitle="Keys")
        grid = QtWidgets.QGridLayout(self)
        grid.setHorizontalSpacing(16)
        for row, command in enumerate(COMMANDS):
            texts = f"<b>{command.key}</b>", command.text.replace("&", ""), command.about
            for column, text in enumerate(texts):
                grid.addWidget(QtWidgets.QLabel(text), row, column)
        grid.addWidget(DialogButtons(self), len(COMMANDS), 0, 1, 3)
