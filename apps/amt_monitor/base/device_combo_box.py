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


TITLE = QtCore.Qt.ItemDataRole.UserRole + 1
"""The name of a device, without the words that distinguish entries of the same name."""


class DeviceComboBox(QtWidgets.QComboBox):
    """Input devices by name; the first entry is the one that is used unless another is chosen.

    It looks for devices again whenever it is opened.

    first: what the first entry is
    """

    chosen = QtCore.Signal()

    def __init__(self, first: str = "as started") -> None:
        super().__init__()
        self._first = first
        self.setObjectName("device")
        self.setMinimumContentsLength(12)
        policy = QtWidgets.QSizePolicy.Policy
        self.setSizePolicy(policy.Expanding, policy.Fixed)
        self.setMaximumWidth(LETTERS * self.fontMetrics().averageCharWidth())
        adjust = QtWidgets.QComboBox.SizeAdjustPolicy
        self.setSizeAdjustPolicy(adjust.AdjustToMinimumContentsLengthWithIcon)
        self.addItem(first)
        self._listing = QtCore.QProcess(self)
        self._listing.finished.connect(self._listed)
        self.activated.connect(lambda _: self.chosen.emit())

    @property
    def device(self) -> str | int | None:
        return self.currentData()

    def choose(self, device: str | int | None) -> None:
        self.setCurrentIndex(max(0, self.findData(device)))

    def name_first(self, name: str) -> None:
        """Name the device of the first entry."""
        text = plain(f"{name} ({self._first})")
        if text != self.itemText(0):  # Qt would lay out the list again
            self.setItemText(0, text)
            self.setItemData(0, plain(name), TITLE)

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
        text = self.currentData(TITLE) or option.currentText
        return self.fontMetrics().elidedText(text, side, room - INSET)

    def wheelEvent(self, event: QtGui.QWheelEvent) -> None:
        # The mouse wheel over the closed list must not end a measurement.
        event.ignore()

    def open_list(self) -> None:
        """Open the list, and let the keyboard choose."""
        self.setFocus()
        self.showPopup()

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
                plain(_entry(d, names.count(d["name"]) > 1)),
                d["name"] if names.count(d["name"]) == 1 else _otherwise(d),
                plain(d["title"]),
            )
            for d in devices
        ]
        listed = [(self.itemText(i), self.itemData(i)) for i in range(1, self.count())]
        if [(text, device) for text, device, _ in entries] == listed:
            return
        current, chosen = self.currentText(), self.device
        while self.count() > 1:
            self.removeItem(1)
        for text, device, title in entries:
            self.addItem(text, device)
            self.setItemData(self.count() - 1, title, TITLE)
        place = self.findText(current)
        if place < 0 and chosen is not None:
            place = self.findData(chosen)  # chosen by its name alone
        if place < 0 and chosen is not None:
            self.addItem(current, chosen)  # chosen, and just removed
            place = self.count() - 1
        self.setCurrentIndex(max(0, place))


def _entry(device: dict[str, Any], several: bool) -> str:
    """The name of a device, with words such as "default" that distinguish it from others."""
    name, behind, host_api = device["name"], device["behind"], device["host_api"]
    is_name = is_alias(name, host_api)
    details = [name] if is_name and device["title"] != name else []
    details += [behind if behind and not is_name else host_api] if several else []
    details += ["what is played"] if device["played"] else []
    return f"{device['title']} ({', '.join(details)})" if details else str(device["title"])


def _otherwise(device: dict[str, Any]) -> str | int:
    """Distinguishes devices of the same name: the index, or the name in the sound server."""
    behind, host_api, name = device["behind"], device["host_api"], device["name"]
    return device["index"] if behind is None or is_alias(name, host_api) else behind
