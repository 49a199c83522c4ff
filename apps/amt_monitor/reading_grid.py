"""Readings by name in a grid: they are written as what is read comes."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from pyqtgraph.Qt import QtWidgets

from amt_monitor.big_number import BigNumber
from amt_monitor.number_grid import NumberGrid
from amt_monitor.number_table import NumberTable
from amt_monitor.reading_captions import caption_of
from amt_monitor.reading_cell import ReadingCell
from amt_monitor.top_bar import elapsed_text

WIDEST_BAND = "± 100 %"
BAND = "as far as the uncertainty of the level goes, k = 2"
COUNTED = "the time that it is made of"


class ReadingGrid(NumberGrid):
    """Cells as large numbers, and below or beside them as a table.

    large: of each group; those after the first stand under its caption
    small: of each line of the table
    banded: names of readings, among them the bounds of those that may be off
    """

    def __init__(
        self,
        large: Sequence[Sequence[ReadingCell]],
        small: Sequence[Sequence[ReadingCell]],
        banded: Collection[str] = (),
    ) -> None:
        self._large: list[tuple[ReadingCell, BigNumber]] = []
        groups = [[self._big(cell, cell is group[0], banded) for cell in group] for group in large]
        super().__init__(groups, NumberTable(small) if small else None)

    @property
    def numbers(self) -> list[tuple[ReadingCell, QtWidgets.QLabel]]:
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
        time = elapsed_text(measured_s)
        for _, number in self._large:
            if number.caption.counted and number.captioned:
                number.show_note(time, COUNTED)
        if self.table is not None:
            self.table.show_elapsed(time)

    def show_band(self, name: str, text: str) -> None:
        """Write beside a large number how far it may be off; nothing where that is not known."""
        for cell, number in self._large:
            if cell.name == name:
                number.show_note(text and f"± {text}", BAND)

    def _big(self, cell: ReadingCell, captioned: bool, banded: Collection[str]) -> BigNumber:
        has_band = any(caption_of(name).bound_of == cell.name for name in banded)
        spare = WIDEST_BAND if has_band else ""
        if cell.caption.counted and captioned:
            spare = "00:00:00"
        number = BigNumber(cell.shown_as, cell.caption, captioned, spare)
        self._large.append((cell, number))
        return number
