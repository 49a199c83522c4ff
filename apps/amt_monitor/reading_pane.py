"""The readings of one model: what a person looks for large, the rest small."""

from collections.abc import Collection, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from pyqtgraph.Qt import QtWidgets

from amt_monitor.big_number import BigNumber
from amt_monitor.cell import Cell
from amt_monitor.number_grid import NumberGrid
from amt_monitor.number_table import NumberTable
from amt_monitor.pane import Elided, Pane
from amt_monitor.theme import Role, tint
from amt_monitor.top_bar import clock
from amt_stream import catalog
from amt_stream.catalog import Entry

if TYPE_CHECKING:
    from amt_monitor.look import Look

WIDEST_BAND = "± 100 %"
BAND = "as far as the uncertainty of the level goes, k = 2"
BOUNDS = ("_low_", "_high_")
"""In names of readings that are shown as what a number may be off."""


class ReadingPane(Pane):
    """Groups of large numbers, of which the first rules, and a table of small ones.

    about: one line beside the title
    large: cells of each group; those after the first stand under its caption
    small: cells of each line of the table; what nobody named has a line of its own
    names: of all readings that there are; cells of others are left out
    """

    def __init__(
        self,
        entry: Entry,
        about: str,
        large: Sequence[Sequence[Cell]],
        small: Sequence[Sequence[Cell]],
        names: Collection[str],
    ) -> None:
        super().__init__(entry.name, f"<big>{escape(entry.title)}</big>")
        self.head.insertWidget(1, Elided(about), 1)
        self.head_bar.setToolTip(entry.method)
        self.model = entry.name
        """What its model is called in the engine."""
        groups, lines = _there(large, names), _there(small, names)
        named = {cell.name for line in (*groups, *lines) for cell in line}
        lines += [[Cell(n)] for n in names if n not in named and not any(b in n for b in BOUNDS)]
        if large and not groups and lines:
            groups, lines = (
                [lines[0][:1]],
                [lines[0][1:], *lines[1:]] if lines[0][1:] else lines[1:],
            )
        self._large: list[tuple[Cell, BigNumber]] = []
        made = [[self._big(cell, cell is group[0], names) for cell in group] for group in groups]
        self.table = NumberTable(lines) if lines else None
        self.grid = NumberGrid(made, self.table)
        self.body.addWidget(self.grid, 1)

    @property
    def numbers(self) -> list[tuple[Cell, QtWidgets.QLabel]]:
        """All that are written, large ones first."""
        large = [(cell, number.digits) for cell, number in self._large]
        return large + (self.table.numbers if self.table else [])

    def show_readings(self, found: Mapping[str, Any]) -> None:
        """Write the readings that were found; those that are None are not there yet."""
        for cell, number in self._large:
            number.show_text(cell.write(found.get(cell.name)))
        if self.table is not None:
            for cell, label in self.table.numbers:
                self.table.show_number(label, cell, cell.write(found.get(cell.name)))

    def show_elapsed(self, measured_s: float) -> None:
        """Write beside what is made of all that was counted how long that is."""
        time = clock(measured_s)
        for _, number in self._large:
            if number.caption.counted and number.captioned:
                number.show_note(time, "the time that it is made of")
        if self.table is not None:
            self.table.show_elapsed(time)

    def draw(self, found: Mapping[str, Any]) -> None:
        """Move what moves, of the readings that were found; numbers alone do not."""

    def texts(self) -> tuple[str, ...]:
        """What is written there now."""
        return tuple(label.text() for _, label in self.numbers)

    def show_band(self, name: str, text: str) -> None:
        """Write beside a large number how far it may be off; nothing where that is not known."""
        for cell, number in self._large:
            if cell.name == name:
                number.show_note(text and f"± {text}", BAND)

    def doubt(self, grey: bool, uncalibrated: bool) -> None:
        """Grey numbers are not to be read off; hatched ones have no calibration."""
        role: Role | None = "second" if grey else None
        for _, label in self.numbers:
            tint(label, role, hatched=uncalibrated)

    def move(self, look: "Look") -> None:
        self.draw(look.values)

    def read(self, look: "Look") -> None:
        self.show_readings(look.values)
        self.show_elapsed(look.measured_s)

    def judge(self, look: "Look") -> None:
        doubts = look.doubts(self.model)
        self.mark(doubts.words, doubts.uncalibrated)
        self.doubt(doubts.grey, doubts.uncalibrated)

    def _big(self, cell: Cell, captioned: bool, names: Collection[str]) -> BigNumber:
        stem, _, unit = cell.name.rpartition("_")
        banded = f"{stem}_low_{unit}" in names
        spare = "00:00:00" if cell.caption.counted and captioned else WIDEST_BAND if banded else ""
        number = BigNumber(cell.shown_as, cell.caption, captioned, spare)
        self._large.append((cell, number))
        return number


def _there(lines: Sequence[Sequence[Cell]], names: Collection[str]) -> list[list[Cell]]:
    """Those cells that there are, without lines that have none."""
    found = ([cell for cell in line if cell.name in names] for line in lines)
    return [line for line in found if line]


def plain_pane(entry: Entry, names: Collection[str]) -> ReadingPane:
    """The pane of a model that brings none: its first reading large, the others small."""
    return ReadingPane(entry, entry.method, [[Cell(name)] for name in [*names][:1]], (), names)


def pane_of(model: str, names: Collection[str]) -> ReadingPane:
    """The pane of a model of the catalog, for the readings of these names."""
    entry = catalog.entry(model)
    make = plain_pane if entry.pane is None else entry.load("pane")
    pane: ReadingPane = make(entry, names)
    return pane
