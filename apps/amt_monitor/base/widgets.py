"""Makes the usual widgets: labels, buttons, choices, tables, questions."""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from pyqtgraph.Qt import QtCore, QtGui, QtWidgets

from amt_monitor.base.theme import Role, tint

Button = QtWidgets.QDialogButtonBox.StandardButton
Clicked = Callable[[], object]
ButtonRole = QtWidgets.QDialogButtonBox.ButtonRole


def plain_label(
    name: str = "", text: str = "", *, wrap: bool = False, role: Role | None = None
) -> QtWidgets.QLabel:
    """A label of plain text, in the color of a role."""
    label = QtWidgets.QLabel(text, objectName=name, textFormat=QtCore.Qt.TextFormat.PlainText)
    label.setWordWrap(wrap)
    if role is not None:
        tint(label, role)
    return label


def tied(text: str) -> str:
    """`text` whose units, and words of limits, stay on the lines of their numbers."""
    return re.sub(r"(?<=\d) |(?<=limit|least) (?=\d)", "\N{NO-BREAK SPACE}", text)


def tool_button(
    name: str, text: str, about: str, clicked: Clicked | None = None
) -> QtWidgets.QToolButton:
    """A button that the Tab key reaches."""
    button = QtWidgets.QToolButton(
        objectName=name, text=text, toolTip=about, focusPolicy=QtCore.Qt.FocusPolicy.StrongFocus
    )
    if clicked is not None:
        button.clicked.connect(lambda _: clicked())
    return button


def push_button(name: str, text: str, clicked: Clicked) -> QtWidgets.QPushButton:
    button = QtWidgets.QPushButton(text, objectName=name)
    button.clicked.connect(lambda _: clicked())
    return button


def add_choice(
    menu: QtWidgets.QMenu,
    text: str,
    chosen: bool,
    choose: Clicked,
    name: str = "",
    about: str = "",
    data: object = None,
) -> QtGui.QAction:
    """Add a line with a check mark to a menu."""
    action = menu.addAction(text)
    action.setObjectName(name)
    action.setToolTip(about)
    action.setData(data)
    action.setCheckable(True)
    action.setChecked(chosen)
    action.triggered.connect(lambda _: choose())
    return action


def combo_box(
    about: str, items: Iterable[str | tuple[str, Any]], changed: Clicked
) -> QtWidgets.QComboBox:
    """A choice of texts, with data where they are given; `about` is for screen readers."""
    box = QtWidgets.QComboBox(accessibleName=about)
    for item in items:
        box.addItem(*((item,) if isinstance(item, str) else item))
    box.currentIndexChanged.connect(lambda _: changed())
    return box


class SearchedComboBox(QtWidgets.QComboBox):
    """A choice of many texts, of which those with the typed letters are offered.

    items: texts, each with its data
    """

    def __init__(self, about: str, items: Iterable[tuple[str, str]], changed: Clicked) -> None:
        super().__init__(accessibleName=about, editable=True)
        self.setInsertPolicy(self.InsertPolicy.NoInsert)
        for item in items:
            self.addItem(*item)
        completer = QtWidgets.QCompleter(self.model(), self)
        completer.setCompletionMode(completer.CompletionMode.PopupCompletion)
        completer.setFilterMode(QtCore.Qt.MatchFlag.MatchContains)
        completer.setCaseSensitivity(QtCore.Qt.CaseSensitivity.CaseInsensitive)
        self.setCompleter(completer)
        self.currentIndexChanged.connect(lambda _: changed())
        self.editTextChanged.connect(lambda _: changed())

    def place_of(self, text: str) -> int | None:
        """The item with this text or data, or else the only one with these letters."""
        texts = [self.itemText(k).casefold() for k in range(self.count())]
        wanted, data = text.casefold(), [self.itemData(k) for k in range(self.count())]
        same = [k for k, one in enumerate(texts) if one == wanted or data[k] == text]
        same = same or [k for k, one in enumerate(texts) if one.endswith(f"({wanted})")]
        found = same or [k for k, one in enumerate(texts) if wanted and wanted in one]
        return found[0] if len(found) == 1 or same else None


def read_only_table(about: str, headings: Sequence[str], rows: int = 0) -> QtWidgets.QTableWidget:
    """A table that cannot be edited; `about` is for screen readers."""
    table = QtWidgets.QTableWidget(rows, len(headings), accessibleName=about)
    table.setHorizontalHeaderLabels(list(headings))
    table.setEditTriggers(table.EditTrigger.NoEditTriggers)
    table.setSelectionBehavior(table.SelectionBehavior.SelectRows)
    table.verticalHeader().hide()
    table.verticalHeader().setDefaultSectionSize(round(1.5 * table.fontMetrics().height()))
    table.horizontalHeader().setStretchLastSection(True)
    return table


def table_cell(text: str, about: str, right: bool = False) -> QtWidgets.QTableWidgetItem:
    item = QtWidgets.QTableWidgetItem(text)
    item.setToolTip(about)
    if right:
        item.setTextAlignment(
            QtCore.Qt.AlignmentFlag.AlignRight | QtCore.Qt.AlignmentFlag.AlignVCenter
        )
    return item


_ASKED = QtCore.QEvent.Type.LayoutRequest
_LETTERS = QtCore.QEvent.Type.FontChange, QtCore.QEvent.Type.StyleChange


class SteadyBox(QtWidgets.QWidget):
    """Holds a widget whose text changes often, and asks for a layout only if its size hint changes.

    Qt lays out the whole window for each new text of a label. Where the widget's size is ignored,
    its hint is too.

    one_line: it is a line of text of any width, so that its size hint depends on its font alone
    """

    def __init__(self, held: QtWidgets.QWidget, one_line: bool = False) -> None:
        super().__init__()
        self._held, self._hint, self._one_line = held, QtCore.QSize(), one_line
        held.setParent(self)
        self.setSizePolicy(held.sizePolicy())

    def sizeHint(self) -> QtCore.QSize:
        self._hint, policy = self._held.sizeHint(), self._held.sizePolicy()
        if policy.horizontalPolicy() == policy.Policy.Ignored:
            self._hint.setWidth(0)
        if policy.verticalPolicy() == policy.Policy.Ignored:
            self._hint.setHeight(0)
        return self._hint

    def minimumSizeHint(self) -> QtCore.QSize:
        return self.sizeHint()

    def resizeEvent(self, event: QtGui.QResizeEvent) -> None:
        self._held.setGeometry(self.rect())

    def event(self, event: QtCore.QEvent) -> bool:
        # Qt sends it to a widget without a layout, while that is visible.
        if event.type() == _ASKED and not (self._one_line and self._hint.isValid()):
            if self._hint != self.sizeHint():
                self.updateGeometry()
        elif event.type() in _LETTERS:
            self.updateGeometry()
        return super().event(event)


class DialogButtons(QtWidgets.QDialogButtonBox):
    """The buttons of a dialog, without icons: the usual ones are black in dark themes too."""

    def __init__(self, dialog: QtWidgets.QDialog, standard: Any = Button.Close) -> None:
        super().__init__(standard)
        self.accepted.connect(dialog.accept)
        self.rejected.connect(dialog.reject)

    def add(
        self, name: str, text: str, clicked: Clicked, role: Any = ButtonRole.ActionRole
    ) -> QtWidgets.QPushButton:
        """Add a button; Enter does not press it."""
        button = self.addButton(text, role)
        button.setObjectName(name)
        button.setAutoDefault(False)
        button.clicked.connect(lambda _: clicked())
        return button

    def showEvent(self, event: QtGui.QShowEvent) -> None:
        for button in self.buttons():
            button.setIcon(QtGui.QIcon())
        super().showEvent(event)


def set_up_spin(box: QtWidgets.QSpinBox | QtWidgets.QDoubleSpinBox, unit: str, name: str) -> None:
    """Give it a unit, a name for screen readers, and the decimal point of all other numbers.

    What is typed replaces its value, however it was entered.
    """
    box.setLocale(QtCore.QLocale.c())
    box.setSuffix(f" {unit}" if unit else "")
    box.setAccessibleName(name)
    box.installEventFilter(_SelectsAll(box))


class _SelectsAll(QtCore.QObject):
    """Selects the text of a spin box that gets the focus by a click too."""

    def eventFilter(self, box: QtCore.QObject | None, event: QtCore.QEvent | None) -> bool:
        if event is not None and event.type() == event.Type.FocusIn:
            assert isinstance(box, QtWidgets.QAbstractSpinBox)
            QtCore.QTimer.singleShot(0, box.selectAll)  # after the click has placed its cursor
        return super().eventFilter(box, event)


def add_all(layout: QtWidgets.QBoxLayout, *parts: QtWidgets.QWidget | QtWidgets.QLayout) -> None:
    for part in parts:
        if isinstance(part, QtWidgets.QLayout):
            layout.addLayout(part)
        else:
            layout.addWidget(part)


def ask(
    over: QtWidgets.QWidget,
    question: str,
    about: str,
    verb: str,
    action: Clicked,
    otherwise: Clicked = lambda: None,
) -> None:
    """Ask before an action that discards something; Enter, pressed in haste, cancels."""
    box = QtWidgets.QMessageBox(over, objectName="question", text=question, informativeText=about)
    yes = box.addButton(verb, box.ButtonRole.DestructiveRole)
    box.setDefaultButton(box.addButton("Cancel", box.ButtonRole.RejectRole))
    box.finished.connect(lambda _: action() if box.clickedButton() is yes else otherwise())
    box.open()


def ask_text(
    over: QtWidgets.QWidget | None,
    title: str,
    label: str,
    accepted: Callable[[str], object],
    text: str = "",
) -> None:
    dialog = QtWidgets.QInputDialog(over, windowTitle=title)
    dialog.setLabelText(label)
    dialog.setTextValue(text)
    dialog.textValueSelected.connect(accepted)
    dialog.sizeHint()  # makes its buttons
    remove_button_icons(dialog)
    dialog.open()


def remove_button_icons(dialog: QtWidgets.QWidget) -> None:
    """Remove the marks that some desktops put on buttons: a red cross on Cancel says "wrong"."""
    for box in dialog.findChildren(QtWidgets.QDialogButtonBox):
        for button in box.buttons():
            button.setIcon(QtGui.QIcon())
