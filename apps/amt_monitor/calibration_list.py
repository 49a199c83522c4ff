"""A dialog that lists all stored calibrations."""

from datetime import UTC, datetime

from pyqtgraph.Qt import QtCore, QtWidgets

from amt_monitor.dialog_buttons import DialogButtons
from amt_monitor.theme import tint
from amt_stream.core.errors import Refusal
from amt_stream.core.safe_text import plain
from amt_stream.meters.calibration import Kept, kept_channels

COLUMNS = ("Device", "Channel", "Full scale", "Made", "State", "Correction")


class CalibrationList(QtWidgets.QDialog):
    """The calibrations of all devices and channels, with a button that deletes one.

    changed: emitted when one was deleted
    """

    changed = QtCore.Signal()

    def __init__(self, parent: QtWidgets.QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("calibration_list")
        self.setWindowTitle("Calibrations")
        self.resize(860, 320)
        self.kept: list[Kept] = []
        self.table = QtWidgets.QTableWidget(0, len(COLUMNS))
        self.table.setAccessibleName("stored calibrations")
        self.table.setHorizontalHeaderLabels(COLUMNS)
        self.table.verticalHeader().hide()
        view = QtWidgets.QAbstractItemView
        self.table.setSelectionBehavior(view.SelectionBehavior.SelectRows)
        self.table.setSelectionMode(view.SelectionMode.SingleSelection)
        self.table.setEditTriggers(view.EditTrigger.NoEditTriggers)
        self.table.setTabKeyNavigation(False)
        self.table.setWordWrap(False)
        self.table.horizontalHeader().setStretchLastSection(True)
        self.message = QtWidgets.QLabel()
        self.message.setWordWrap(True)
        self.message.setTextFormat(QtCore.Qt.TextFormat.PlainText)
        tint(self.message, "second")
        buttons = DialogButtons(QtWidgets.QDialogButtonBox.StandardButton.Close)
        self.forget = buttons.addButton(
            "&Forget", QtWidgets.QDialogButtonBox.ButtonRole.DestructiveRole
        )
        self.forget.setToolTip("delete the calibration and the correction of this channel")
        self.forget.clicked.connect(self._ask)
        buttons.rejected.connect(self.reject)
        self.table.itemSelectionChanged.connect(self._choose)
        column = QtWidgets.QVBoxLayout(self)
        column.addWidget(self.table, 1)
        column.addWidget(self.message)
        column.addWidget(buttons)
        self.read()

    def read(self) -> None:
        """List the stored calibrations."""
        try:
            self.kept = kept_channels()
        except Refusal as refusal:
            self.kept = []
            self._say(str(refusal))
        else:
            self._say("" if self.kept else "No calibration is stored yet.")
        self.table.setRowCount(len(self.kept))
        for row, one in enumerate(self.kept):
            for column, text in enumerate(_told(one)):
                item = QtWidgets.QTableWidgetItem(plain(text))
                item.setToolTip(plain(one.calibration))
                self.table.setItem(row, column, item)
        self.table.resizeColumnsToContents()
        if self.kept:
            self.table.selectRow(0)
        self._choose()

    @property
    def chosen(self) -> Kept | None:
        rows = self.table.selectionModel().selectedRows()
        return self.kept[rows[0].row()] if rows else None

    def _choose(self) -> None:
        self.forget.setEnabled(self.chosen is not None)

    def _ask(self) -> None:
        one = self.chosen
        if one is None:
            return
        box = QtWidgets.QMessageBox(self)
        box.setObjectName("question")
        box.setText(plain(f"Forget channel {one.channel} of {one.device}?"))
        box.setInformativeText(plain(one.calibration))
        role = QtWidgets.QMessageBox.ButtonRole
        yes = box.addButton("Forget", role.DestructiveRole)
        box.setDefaultButton(box.addButton("Cancel", role.RejectRole))
        box.finished.connect(lambda _: self._forget(one) if box.clickedButton() is yes else None)
        box.open()

    def _forget(self, one: Kept) -> None:
        try:
            one.forget()
        except Refusal as refusal:
            self._say(str(refusal))
            return
        self.read()
        self.changed.emit()

    def _say(self, sentence: str) -> None:
        self.message.setText(plain(sentence))
        self.message.setVisible(bool(sentence))


def _told(one: Kept) -> tuple[str, ...]:
    """The cells of a row."""
    calibration = one.calibration
    correction = calibration.correction
    level = f"{calibration.full_scale_db_spl:.2f} dB SPL" if calibration.calibrated else "-"
    return (
        one.device,
        str(one.channel),
        level,
        "-" if calibration.date is None else calibration.date[:10],
        calibration_state(one),
        "-" if correction is None else correction.name,
    )


def calibration_state(one: Kept, now: datetime | None = None) -> str:
    """How old the calibration is, and whether it is overdue."""
    calibration, now = one.calibration, now or datetime.now(UTC)
    until, days = calibration.valid_until, calibration.valid_days
    if not calibration.calibrated:
        return "not calibrated"
    if until is None or days is None:
        return "age unknown"
    age = max(0.0, days - (until - now).total_seconds() / 86400)
    old = "today" if age < 1 else f"{age:.0f} days old"
    return f"{old}: overdue" if calibration.reminder(now) else old
