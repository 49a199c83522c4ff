"""A dialog that lists all stored calibrations."""

from datetime import UTC, datetime

from pyqtgraph.Qt import QtCore, QtWidgets

from amt_monitor.base import widgets
from amt_stream.core.errors import Refusal
from amt_stream.core.safe_text import plain
from amt_stream.core.words import counted
from amt_stream.meters.calibration import Kept, kept_channels, titles_of

COLUMNS = ("Device", "Channel", "Full scale", "Made", "State", "Correction")


class CalibrationList(QtWidgets.QDialog):
    """The calibrations of all devices and channels, with a button that deletes one.

    changed: emitted when one was deleted
    """

    changed = QtCore.Signal()

    def __init__(self, parent: QtWidgets.QWidget | None = None) -> None:
        super().__init__(parent, objectName="calibration_list", windowTitle="Calibrations")
        self.resize(860, 320)
        self.kept: list[Kept] = []
        self.table = widgets.read_only_table("stored calibrations", COLUMNS)
        self.table.setSelectionMode(self.table.SelectionMode.SingleSelection)
        self.table.setTabKeyNavigation(False)
        self.table.setWordWrap(False)
        self.message = widgets.plain_label(wrap=True, role="second")
        buttons = widgets.DialogButtons(self)
        self.forget = buttons.add(
            "forget", "&Forget", self._ask, widgets.ButtonRole.DestructiveRole
        )
        self.forget.setToolTip("delete the calibration and the correction of this channel")
        self.table.itemSelectionChanged.connect(self._choose)
        widgets.add_all(QtWidgets.QVBoxLayout(self), self.table, self.message, buttons)
        self.read()

    def read(self) -> None:
        try:
            self.kept = kept_channels()
        except Refusal as refusal:
            self.kept = []
            self._say(str(refusal))
        else:
            self._say("" if self.kept else "No calibration is stored yet.")
        self.table.setRowCount(len(self.kept))
        for row, (one, title) in enumerate(zip(self.kept, titles_of(self.kept), strict=True)):
            for column, text in enumerate((title, *_cells(one))):
                self.table.setItem(
                    row, column, widgets.table_cell(plain(text), plain(one.calibration))
                )
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
        if (one := self.chosen) is not None:
            question = plain(f"Forget channel {one.channel} of {one.title}?")
            widgets.ask(self, question, plain(one.calibration), "Forget", lambda: self._forget(one))

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


def _cells(one: Kept) -> tuple[str, ...]:
    calibration = one.calibration
    correction = calibration.correction
    level = f"{calibration.full_scale_db_spl:.2f} dB SPL" if calibration.calibrated else "-"
    return (
        str(one.channel),
        level,
        "-" if calibration.date is None else calibration.date[:10],
        calibration_state(one),
        "-" if correction is None else correction.name,
    )


def calibration_state(one: Kept) -> str:
    """How old the calibration is, and whether it is overdue."""
    calibration, now = one.calibration, datetime.now(UTC)
    until, days = calibration.valid_until, calibration.valid_days
    if not calibration.calibrated:
        return "not calibrated"
    if until is None or days is None:
        return "age unknown"
    age = max(0.0, days - (until - now).total_seconds() / 86400)
    old = "today" if age < 1 else f"{counted(round(age), 'day')} old"
    return f"{old}: overdue" if calibration.reminder(now) else old
