"""The dialog in which limits are added, changed and removed."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from pyqtgraph.Qt import QtCore, QtGui, QtWidgets

from amt_monitor.base import widgets
from amt_monitor.base.message_bar import begun
from amt_monitor.plot.history_traces import symbol_of
from amt_stream.core.errors import Refusal
from amt_stream.core.safe_text import plain
from amt_stream.core.settings import tables_in
from amt_stream.meters.limits import Limit, LimitError, refuse_twice
from amt_stream.meters.norms import load_norm, norms_folder, shipped_norms
from amt_stream.meters.rows import column_named
from amt_stream.meters.rows.captions import caption_of

USUAL = ("laf_db", "laeq_15min_db", "laeq_30min_db", "lcpeak_db", "ltl_phon", "integrated_lufs")
"""Readings that are offered whether or not their models run."""

HEADS = ("Reading", "Limit", "Amber from", "Unit", "Source")
LOWEST, HIGHEST = -1000.0, 1e6
NO_AMBER = LOWEST
"""The value that stands for no warning."""

Key = QtCore.Qt.Key
ENTER = Key.Key_Return, Key.Key_Enter

SIDES = ("at most", "at least")


class LimitsDialog(QtWidgets.QDialog):
    """Lists limits; `chosen` has them when the dialog is accepted and they were changed.

    limits: the present ones
    readings: names of the columns that are measured
    """

    chosen = QtCore.Signal(tuple)

    def __init__(
        self,
        limits: Sequence[Limit],
        readings: Iterable[str],
        parent: QtWidgets.QWidget | None = None,
    ) -> None:
        super().__init__(parent, objectName="limits_dialog", windowTitle="Limits")
        self.resize(760, 520)
        self._before = self.limits = tuple(limits)
        self.table = widgets.read_only_table("limits", HEADS)
        self.table.setTabKeyNavigation(False)
        self.table.setSelectionMode(self.table.SelectionMode.SingleSelection)
        self.table.itemSelectionChanged.connect(self._select)
        self.table.installEventFilter(self)
        self.problem = widgets.plain_label("problem", wrap=True)
        about = "They judge from now on, and are kept for the next start."
        column = QtWidgets.QVBoxLayout(self)
        column.addWidget(self.table, 1)
        column.addWidget(self._norms())
        column.addWidget(self._own(readings))
        column.addWidget(self.problem)
        column.addWidget(widgets.plain_label("about", about, wrap=True, role="second"))
        buttons = widgets.DialogButtons(self, widgets.Button.Ok | widgets.Button.Cancel)
        self.removing = buttons.add("remove", "&Remove", self.remove)
        column.addWidget(buttons)
        self._show(0)

    def _norms(self) -> QtWidgets.QGroupBox:
        names = shipped_norms()
        self.norm = widgets.combo_box(
            "norm", [(_norm_words(name), name) for name in names], self._tell
        )
        self.norm.setSizeAdjustPolicy(
            QtWidgets.QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon
        )
        self.source = widgets.plain_label("source", wrap=True, role="second")
        row, box = QtWidgets.QHBoxLayout(), QtWidgets.QGroupBox("From a norm")
        label = QtWidgets.QLabel("&Norm")
        label.setBuddy(self.norm)
        row.addWidget(label)
        row.addWidget(self.norm, 1)
        row.addWidget(widgets.push_button("add_norm", "Add the nor&m", self.add_norm))
        column = QtWidgets.QVBoxLayout(box)
        column.addLayout(row)
        column.addWidget(self.source)
        self._tell()
        return box

    def _own(self, readings: Iterable[str]) -> QtWidgets.QGroupBox:
        names = [name for name in dict.fromkeys((*USUAL, *readings)) if column_named(name)]
        self.reading = widgets.SearchedComboBox("reading", _named(names), self._name_unit)
        self.reading.installEventFilter(self)
        self.side = widgets.combo_box("side", SIDES, lambda: None)
        self.value, self.amber = (QtWidgets.QDoubleSpinBox() for _ in range(2))
        for spin, name in ((self.value, "value"), (self.amber, "amber from")):
            widgets.set_up_spin(spin, "", name)
            spin.installEventFilter(self)
            spin.setRange(LOWEST, HIGHEST)
            spin.setDecimals(1)
        self.value.setValue(85.0)
        self.amber.setSpecialValueText("none")
        self.amber.setValue(NO_AMBER)
        box = QtWidgets.QGroupBox("A reading and a value")
        grid = QtWidgets.QGridLayout(box)
        for at, (text, widget) in enumerate(
            (
                ("Readin&g", self.reading),
                ("Si&de", self.side),
                ("&Value", self.value),
                ("Am&ber from", self.amber),
            )
        ):
            label = QtWidgets.QLabel(text)
            label.setBuddy(widget)
            grid.addWidget(label, 0, at)
            grid.addWidget(widget, 1, at)
        grid.setColumnStretch(0, 1)
        self.adding = widgets.push_button("add", "&Add", self.add)
        self.changing = widgets.push_button("change", "C&hange", self.change)
        grid.addWidget(self.adding, 1, 4)
        grid.addWidget(self.changing, 1, 5)
        self._name_unit()
        return box

    @property
    def row(self) -> int | None:
        rows = self.table.selectionModel().selectedRows()
        return rows[0].row() if rows else None

    def add(self) -> None:
        self._try(lambda: (*self.limits, self._given()))

    def add_norm(self) -> None:
        """Add the limits of the norm that are not there yet."""
        more = load_norm(self.norm.currentData())
        self._try(lambda: (*self.limits, *(one for one in more if one not in self.limits)))

    def change(self) -> None:
        """Replace the selected limit; how one of the same reading is judged stays."""
        row = self.row
        if row is None:
            return
        before = self.limits[row]

        def given() -> Limit:
            now = self._given()
            if now.column != before.column:
                return now
            kept = {key: getattr(before, key) for key in ("hysteresis", "hold_s", "at_end")}
            return replace(now, ahead_s=before.ahead_s, **kept)

        self._try(lambda: (*self.limits[:row], given(), *self.limits[row + 1 :]), row)

    def remove(self) -> None:
        row = self.row
        if row is not None:
            self._try(lambda: (*self.limits[:row], *self.limits[row + 1 :]), row)

    def accept(self) -> None:
        super().accept()
        if self.limits != self._before:
            self.chosen.emit(self.limits)

    def eventFilter(self, widget: QtCore.QObject | None, event: QtCore.QEvent | None) -> bool:
        """Delete removes the selected limit; Enter adds the typed one; the dialog stays open."""
        if not isinstance(event, QtGui.QKeyEvent):
            return False
        keys, action = (
            ((Key.Key_Delete,), self.remove) if widget is self.table else (ENTER, self.add)
        )
        if event.key() not in keys:
            return False
        if event.type() == event.Type.KeyPress:
            action()
        return True

    def _given(self) -> Limit:
        name = self._column
        if column_named(name) is None:
            raise LimitError(f"there is no reading {name!r}: choose one of the list")
        amber = self.amber.value() if self.amber.value() > NO_AMBER else None
        below = self.side.currentIndex() == 1
        return Limit(name, self.value.value(), below=below, amber=amber)

    @property
    def _column(self) -> str:
        """The reading that is named by its words, its symbol or its column."""
        text = self.reading.currentText().strip()
        place = self.reading.place_of(text)
        if place is not None:
            return str(self.reading.itemData(place))
        # A symbol of any window, such as LAeq,5min.
        column = f"{text.lower().replace(',', '_')}_db"
        return column if column_named(column) is not None else text

    def _try(self, made: Callable[[], tuple[Limit, ...]], row: int | None = None) -> None:
        try:
            limits = made()
            refuse_twice(limits)
        except Refusal as refusal:
            self.problem.setText(begun(plain(refusal)))
            return
        self.limits = limits
        self._show(len(limits) - 1 if row is None else min(row, len(limits) - 1))

    def _show(self, row: int | None) -> None:
        self.problem.setText("")
        self.table.setRowCount(len(self.limits))
        for at, one in enumerate(self.limits):
            unit = caption_of(one.column).unit
            amber = "-" if one.amber is None else f"{one.amber:g}"
            limit = f"{SIDES[one.below]} {one.threshold:g}"
            for place, text in enumerate((symbol_of(one.column), limit, amber, unit, one.source)):
                self.table.setItem(
                    at, place, widgets.table_cell(plain(text), plain(_words(one.column)))
                )
        self.table.resizeColumnsToContents()
        self.table.clearSelection()
        if row is not None and row >= 0:
            self.table.selectRow(row)
        self._select()

    def _select(self) -> None:
        row = self.row
        self.removing.setEnabled(row is not None)
        self.changing.setEnabled(row is not None)
        if row is not None and row < len(self.limits):
            one = self.limits[row]
            if self.reading.findData(one.column) < 0:
                self.reading.addItem(caption_of(one.column).listed, one.column)
            self.reading.setEditText(self.reading.itemText(self.reading.findData(one.column)))
            self.side.setCurrentIndex(one.below)
            self.value.setValue(one.threshold)
            self.amber.setValue(NO_AMBER if one.amber is None else one.amber)

    def _tell(self) -> None:
        limits = load_norm(self.norm.currentData())
        words = ", ".join(
            f"{symbol_of(one.column)} {SIDES[one.below]} {one.threshold:g} "
            f"{caption_of(one.column).unit}"
            for one in limits
        )
        self.source.setText(plain(f"{words}. Source: {limits[0].source}"))

    def _name_unit(self) -> None:
        # What is typed to search for is no reading, and has no unit.
        name = self._column
        unit = "" if column_named(name) is None else caption_of(name).unit
        for spin in (self.value, self.amber):
            spin.setSuffix(f" {unit}".rstrip())


def _words(name: str) -> str:
    """A reading as in the list."""
    return caption_of(name).spoken


def _named(names: Iterable[str]) -> list[tuple[str, str]]:
    """Each reading in words, with its unit where others have the same, and its column."""
    named = [(_words(name), name) for name in names]
    words = [one for one, _ in named]
    return [(caption_of(name).listed if words.count(one) > 1 else one, name) for one, name in named]


def _norm_words(name: str) -> str:
    return str(tables_in(norms_folder() / f"{name}.toml").get("description", name))
