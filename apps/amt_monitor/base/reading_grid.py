"""A grid of readings."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from pyqtgraph.Qt import QtWidgets

from amt_monitor.base.big_number import BigNumber
from amt_monitor.base.number_grid import NumberGrid
from amt_monitor.base.number_table import NumberTable
from amt_monitor.base.theme import tint
from amt_monitor.base.widgets import SteadyBox, plain_label
from amt_stream.core.words import elapsed_text
from amt_stream.meters.rows import NO_READING
from amt_stream.meters.rows.captions import caption_of
from amt_stream.views.reading_cell import ReadingCell

WIDEST_BAND = "± 100 %"
BAND = "follows from the uncertainty of the level, k = 2"
COUNTED = (
    "the time that averages and maxima cover, and the time in which their model was switched off, "
    "because processing could not keep up"
)


class ReadingGrid(NumberGrid):
    """Cells as large numbers, and as a table.

    large: cells of each group; the first one's caption is that of the group
    small: cells of each line of the table
    banded: names of readings, among them lower and upper bounds
    """

    def __init__(
        self,
        large: Sequence[Sequence[ReadingCell]],
        small: Sequence[Sequence[ReadingCell]],
        banded: Collection[str] = (),
        tiles: bool = False,
    ) -> None:
        self.elapsed = plain_label("counted_for", role="second")
        self.elapsed.setToolTip(COUNTED)
        self.elapsed_box = SteadyBox(self.elapsed)
        self._large: list[tuple[ReadingCell, BigNumber]] = []
        groups = [[self._big(cell, cell is group[0], banded) for cell in group] for group in large]
        super().__init__(groups, NumberTable(small) if small else None, tiles)
        self.counted = [cell.name for cell, _ in self.numbers if cell.caption.counted]
        """Names of the statistics of all that was counted."""
        self.show_elapsed([(0.0, 0.0)])  # its width counts from the beginning

    @property
    def numbers(self) -> list[tuple[ReadingCell, QtWidgets.QLabel]]:
        large = [(cell, number.digits) for cell, number in self._large]
        return large + (self.table.numbers if self.table else [])

    def show_readings(self, found: Mapping[str, Any]) -> None:
        wider = [number.show_text(cell.write(found)) for cell, number in self._large]
        if self.table is not None:
            wider += [
                self.table.show_number(label, cell, cell.write(found))
                for cell, label in self.table.numbers
            ]
        if any(wider):
            self.arrange_again()

    def lose(self, found: Mapping[str, Any] | None) -> None:
        """Write dashes while the microphone is lost; None when it is not."""
        for cell, number in self._large:
            number.lose("" if found is None else cell.write(found))
            if found is not None:
                number.show_note("")  # no band beside dashes
        if self.table is not None and found is not None:
            for cell, label in self.table.numbers:
                self.table.show_number(label, cell, NO_READING)

    def doubt(self, doubt_of: Callable[[str], tuple[bool, bool, str]]) -> None:
        """Grey and hatch numbers that are not reliable, and say why.

        doubt_of: returns for a reading whether it is grey, whether it is uncalibrated, and why it
            is settling, in words
        """
        moved = False
        for cell, number in self._large:
            grey, uncalibrated, settling = doubt_of(cell.name)
            moved |= number.doubt("second" if grey else None, uncalibrated, settling)
        for cell, label in self.table.numbers if self.table is not None else ():
            grey, uncalibrated, _ = doubt_of(cell.name)
            tint(label, "second" if grey else None, hatched=uncalibrated)
        if moved:
            self.arrange_again()

    def show_elapsed(self, covered: Collection[tuple[float, float]]) -> None:
        """Write once the time that averages and maxima cover, and how long their model was off.

        covered: both in seconds, of each statistic
        """
        if not (self.counted and covered):
            return
        measured_s, off_s = zip(*covered, strict=True)
        least, most = elapsed_text(min(measured_s)), elapsed_text(max(measured_s))
        off = f", off {elapsed_text(max(off_s))}" if any(off_s) else ""
        self.elapsed.setText(f"Measured {least if least == most else f'{least} to {most}'}{off}")

    def show_band(self, name: str, text: str) -> None:
        """Write the uncertainty beside a large number; "" if unknown."""
        for cell, number in self._large:
            if cell.name == name:
                number.show_note(text and f"± {text}", BAND)

    def _big(self, cell: ReadingCell, captioned: bool, banded: Collection[str]) -> BigNumber:
        has_band = any(caption_of(name).bound_of == cell.name for name in banded)
        spare = WIDEST_BAND if has_band else ""
        number = BigNumber(cell.shown_as, cell.caption, captioned, spare)
        self._large.append((cell, number))
        return number
