"""The choice of the input; looking for devices does not disturb the running stream."""

import json
from typing import Any

from pyqtgraph.Qt import QtCore, QtGui, QtWidgets

from amt_stream.core.processes import module_command
from amt_stream.core.safe_text import plain
from amt_stream.engine.devices.identity import is_alias

LETTERS = 60
"""Largest width in characters."""

INSET = 2
"""Pixels at the sides of its text together."""


class DeviceComboBox(QtWidgets.QComboBox):
    """Input devices by name; the first entry is the input that the program was started with.

    It looks for devices again whenever it is opened.
    """

    chosen = QtCore.Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("device")
        self.setMinimumContentsLength(12)
        policy = QtWidgets.QSizePolicy.Policy
        self.setSizePolicy(policy.Expanding, policy.Fixed)
        self.setMaximumWidth(LETTERS * self.fontMetrics().averageCharWidth())
        adjust = QtWidgets.QComboBox.SizeAdjustPolicy
        self.setSizeAdjustPolicy(adjust.AdjustToMinimumContentsLengthWithIcon)
        self.addItem("as started")
        self._listing = QtCore.QProcess(self)
        self._listing.finished.connect(self._listed)
        self.activated.connect(lambda _: self.chosen.emit())

    @property
    def device(self) -> str | int | None:
        return self.currentData()

    def choose(self, device: str | int | None) -> None:
        self.setCurrentIndex(max(0, self.findData(device)))

    def name_first(self, name: str) -> None:
        """Name the input that the program was started with."""
        text = plain(f"{name} (as started)")
        if text != self.itemText(0):  # Qt would lay out the list again
            self.setItemText(0, text)

    def refresh(self) -> None:
        if self._listing.state() == QtCore.QProcess.ProcessState.NotRunning:
            # In a process, so that a sound system that hangs does not block the window.
            program, *arguments = module_command("amt_stream.engine.devices.listing")
            self._listing.start(program, arguments)

    def close_listing(self) -> None:
        self._listing.blockSignals(True)
        self._listing.kill()
        self._listing.waitForFinished(2000)

    def paintEvent(self, event: QtGui.QPaintEvent) -> None:
        painter, option = QtWidgets.QStylePainter(self), QtWidgets.QStyleOptionComboBox()
        self.initStyleOption(option)
        painter.drawComplexControl(QtWidgets.QStyle.ComplexControl.CC_ComboBox, option)
        option.currentText = self.shown_text
        painter.drawControl(QtWidgets.QStyle.ControlElement.CE_ComboBoxLabel, option)

    @property
    def shown_text(self) -> str:
        """What is chosen, as far as it has room."""
        option = QtWidgets.QStyleOptionComboBox()
        self.initStyleOption(option)
        kind, part = QtWidgets.QStyle.ComplexControl.CC_ComboBox, QtWidgets.QStyle.SubControl
        room = self.style().subControlRect(kind, option, part.SC_ComboBoxEditField, self).width()
        side = QtCore.Qt.TextElideMode.ElideRight
        return self.fontMetrics().elidedText(option.currentText, side, room - INSET)

    def wheelEvent(self, event: QtGui.QWheelEvent) -> None:
        # The mouse wheel over the closed list must not end a measurement.
        event.ignore()

    def showPopup(self) -> None:
        self.refresh()
        super().showPopup()

    def _listed(self, exit_code: int) -> None:
        output = bytes(self._listing.readAllStandardOutput())
        if exit_code != 0:
            return  # a sound server that hangs lists no devices
        devices = json.loads(output)
        names = [device["name"] for device in devices]
        entries = [
            # By name where that is unique: indices change when devices come and go.
            (
                plain(f"{d['name']} ({'what is played' if d['played'] else d['host_api']})"),
                d["name"] if names.count(d["name"]) == 1 else _otherwise(d),
            )
            for d in devices
        ]
        if entries == [(self.itemText(i), self.itemData(i)) for i in range(1, self.count())]:
            return
        current, chosen = self.currentText(), self.device
        while self.count() > 1:
            self.removeItem(1)
        for text, device in entries:
            self.addItem(text, device)
        place = self.findText(current)
        if place < 0 and chosen is not None:
            place = self.findData(chosen)  # chosen by its name alone
        if place < 0 and chosen is not None:
            self.addItem(current, chosen)  # chosen, and just removed
            place = self.count() - 1
        self.setCurrentIndex(max(0, place))


def _otherwise(device: dict[str, Any]) -> str | int:
    """Distinguishes devices of the same name: the index, or the name in the sound server."""
    behind, host_api, name = device["behind"], device["host_api"], device["name"]
    return device["index"] if behind is None or is_alias(name, host_api) else behind
