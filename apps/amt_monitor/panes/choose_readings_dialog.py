"""A dialog that chooses readings."""

from collections.abc import Iterable, Sequence

from pyqtgraph.Qt import QtCore, QtGui, QtWidgets

from amt_monitor.base.widgets import Button, DialogButtons, add_all
from amt_stream.core.safe_text import plain
from amt_stream.meters.rows.captions import caption_of

NAME = QtCore.Qt.ItemDataRole.UserRole


class ChooseReadingsDialog(QtWidgets.QDialog):
    """A searchable list of readings, the chosen ones first.

    From the search field, Down goes to the list; there Space toggles; Enter is OK.

    names: of all readings
    chosen: of those that are shown, in their order
    """

    def __init__(
        self, names: Iterable[str], chosen: Sequence[str], parent: QtWidgets.QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.setObjectName("choose_numbers")
        self.setWindowTitle("Choose numbers")
        self.resize(480, 420)
        self._order = list(chosen)
        self.search = QtWidgets.QLineEdit()
        self.search.setPlaceholderText("Search")
        self.search.setAccessibleName("search for a reading")
        self.search.setClearButtonEnabled(True)
        self.search.textChanged.connect(self._filter)
        self.list = QtWidgets.QListWidget()
        self.list.setAccessibleName("readings")
        for name in dict.fromkeys((*chosen, *names)):
            self.list.addItem(_item(name, name in self._order))
        self.list.itemChanged.connect(self._note)
        self.about = QtWidgets.QLabel()
        self.about.setWordWrap(True)
        self.about.setMinimumHeight(3 * self.fontMetrics().height())
        self.about.setAlignment(QtCore.Qt.AlignmentFlag.AlignTop)
        self.list.currentItemChanged.connect(self._describe)
        self.buttons = DialogButtons(self, Button.Ok | Button.Cancel)
        down = QtGui.QShortcut(QtGui.QKeySequence("Down"), self.search)
        down.setContext(QtCore.Qt.ShortcutContext.WidgetShortcut)
        down.activated.connect(self._go_to_list)
        column = QtWidgets.QVBoxLayout(self)
        hint = QtWidgets.QLabel("The first is the largest; three are large.")
        add_all(column, hint, self.search, self.list, self.about, self.buttons)
        column.setStretchFactor(self.list, 1)

    @property
    def chosen(self) -> list[str]:
        return list(self._order)

    def _note(self, item: QtWidgets.QListWidgetItem) -> None:
        name = item.data(NAME)
        if name in self._order:
            self._order.remove(name)
        if item.checkState() == QtCore.Qt.CheckState.Checked:
            self._order.append(name)

    def _filter(self, text: str) -> None:
        words = text.casefold().split()
        for item in self._items():
            text = f"{item.text()} {item.data(NAME)}".casefold()
            item.setHidden(not all(word in text for word in words))

    def _describe(self, item: QtWidgets.QListWidgetItem | None, *_: object) -> None:
        self.about.setText("" if item is None else item.toolTip())

    def _go_to_list(self) -> None:
        first = next((item for item in self._items() if not item.isHidden()), None)
        if first is not None:
            self.list.setCurrentItem(first)
            self.list.setFocus()

    def _items(self) -> list[QtWidgets.QListWidgetItem]:
        found = (self.list.item(row) for row in range(self.list.count()))
        return [item for item in found if item is not None]


def _item(name: str, taken: bool) -> QtWidgets.QListWidgetItem:
    caption = caption_of(name)
    item = QtWidgets.QListWidgetItem(plain(caption.listed))
    item.setData(NAME, name)
    item.setToolTip(plain(caption.sentence))
    state = QtCore.Qt.CheckState
    item.setCheckState(state.Checked if taken else state.Unchecked)
    return item
