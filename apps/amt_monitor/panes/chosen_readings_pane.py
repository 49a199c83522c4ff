"""A pane of readings that the user has chosen, of all models."""

from collections.abc import Callable, Iterable, Sequence

from pyqtgraph.Qt import QtCore, QtGui, QtWidgets

from amt_monitor.base.reading_grid import ReadingGrid
from amt_monitor.base.widgets import Button, DialogButtons, add_all, tool_button
from amt_monitor.panes.pane import Pane
from amt_stream.core.safe_text import plain
from amt_stream.meters.rows.captions import caption_of
from amt_stream.meters.state_signs import is_away
from amt_stream.views.reading_cell import ReadingCell
from amt_stream.views.view_state import ViewState

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
        super().__init__(parent, objectName="choose_numbers", windowTitle="Choose numbers")
        self.resize(480, 420)
        self._order = list(chosen)
        self.search = QtWidgets.QLineEdit(
            placeholderText="Search", accessibleName="search for a reading", clearButtonEnabled=True
        )
        self.search.textChanged.connect(self._filter)
        self.list = QtWidgets.QListWidget(accessibleName="readings")
        for name in dict.fromkeys((*chosen, *names)):
            self.list.addItem(_item(name, name in self._order))
        self.list.itemChanged.connect(self._note)
        self.about = QtWidgets.QLabel(wordWrap=True, minimumHeight=3 * self.fontMetrics().height())
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


LARGE = 3
"""So many numbers are large; the others stand in the table."""

USUAL = 2
"""So many are shown if none were chosen."""


class ChosenReadingsPane(Pane):
    """The chosen readings, the first largest.

    chosen: names from the settings; those of other models are preserved
    keep: called with the names when others are chosen
    """

    def __init__(self, chosen: Sequence[str], keep: Callable[[list[str]], object]) -> None:
        super().__init__("numbers", "Numbers")
        self._chosen, self._keep = list(chosen), keep
        self._model_of: dict[str, str] = {}
        self._shown: list[str] | None = None
        self.choose = tool_button("choose_numbers_button", "Choose...", "", self.ask)
        self.head.addWidget(self.choose)
        self.grid = ReadingGrid((), ())
        self.head.addWidget(self.grid.elapsed_box)
        self.body.addWidget(self.grid, 1)

    def ask(self) -> None:
        dialog = ChooseReadingsDialog(self._model_of, self._shown or [], self.window())
        dialog.accepted.connect(lambda: self.take_names(dialog.chosen))
        dialog.setAttribute(QtCore.Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.open()

    def take_names(self, names: Sequence[str]) -> None:
        """Show these readings and store the choice; without names, show the default ones."""
        others = [name for name in self._chosen if name not in self._model_of]
        self._chosen = [*names, *others]
        self._keep(self._chosen)
        self._fill()

    def read(self, view: ViewState) -> None:
        readings = view.readings
        models = readings.models if readings is not None else ()
        there = {name: one for one in models for name in (readings.of(one) if readings else ())}
        if there != self._model_of or self._shown is None:
            self._model_of = there
            self._fill()
        self.grid.show_readings(view.values)
        self.grid.show_elapsed(
            [view.measured_by(self._model_of[name], name) for name in self.grid.counted]
        )

    def show_status(self, view: ViewState) -> None:
        super().show_status(view)
        status = {
            name: view.number_status(name, self._model_of[name]) for name in self._shown or ()
        }
        self.grid.doubt(
            lambda name: (status[name].grey, status[name].uncalibrated, status[name].settling)
        )
        self.grid.lose(view.values if is_away(view.held) else None)

    def texts(self) -> tuple[str, ...]:
        return tuple(label.text() for _, label in self.grid.numbers)

    def _fill(self) -> None:
        """Rebuild the numbers if others are to be shown."""
        wanted = [name for name in self._chosen if name in self._model_of]
        names = wanted or [*self._model_of][:USUAL]
        if names == self._shown:
            return
        self._shown = names
        large, small = names[:LARGE], names[LARGE:]
        old = self.grid
        self.grid = ReadingGrid(
            [[ReadingCell(name)] for name in large], [[ReadingCell(name)] for name in small]
        )
        self.body.replaceWidget(old, self.grid)
        self.head.replaceWidget(old.elapsed_box, self.grid.elapsed_box)
        old.elapsed_box.deleteLater()
        old.hide()
        old.deleteLater()
        self.body.setStretchFactor(self.grid, 1)
