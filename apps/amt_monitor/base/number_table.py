"""A table of small numbers: words, number, unit; decimal points are aligned."""

import math
from collections.abc import Sequence

from pyqtgraph.Qt import QtCore, QtWidgets

from amt_monitor.base.big_number import WIDEST_SIGN, Extent, label_in, resize_text, text_width
from amt_monitor.base.theme import tint
from amt_stream.meters.rows import NO_READING
from amt_stream.meters.rows.words import SIGNS, widest_text
from amt_stream.views.reading_cell import ReadingCell

LINE = 1.35
"""Height of a line relative to its letters."""
BETWEEN = 1.6
"""Gap between columns, likewise."""
PAIRS = ("sone", "phon"), ("Hz", "dB")
"""Pairs of units that stand side by side."""
LONGEST = ("188", "-88", ">120")
"""Digits before the point, except for frequencies."""
NOW = "Now"


class NumberTable(QtWidgets.QWidget):
    """Readings in lines, in as many columns as fit; the last ones are left out.

    lines: the cells of each; readings of all that was counted come first
    """

    def __init__(self, lines: Sequence[Sequence[ReadingCell]]) -> None:
        super().__init__()
        counted = [line for line in lines if line[0].caption.counted]
        others = [line for line in lines if not line[0].caption.counted]
        self._items: list[_Line | QtWidgets.QLabel] = []
        self._items += [_Line(line, self) for line in counted]
        if counted and others:
            self._items.append(label_in(NOW, self))
        self._items += [_Line(line, self) for line in others]
        self._lines = [item for item in self._items if isinstance(item, _Line)]
        cells = [cell for line in lines for cell in line]
        units = {cell.caption.unit for cell in cells}
        self._second = {unit for first, unit in PAIRS if first in units}
        self._widths: dict[tuple[int, bool], int] = {}
        self._has_sign = False  # a number has had one, so that there is room for it
        self._cells: list[list[ReadingCell]] = [[], []]
        for cell in cells:
            self._cells[self._column(cell)].append(cell)
        self._decimals = [
            max((_decimals(cell.caption.unit) for cell in column), default=0)
            for column in self._cells
        ]

    def __len__(self) -> int:
        """Lines, headings included."""
        return len(self._items)

    @property
    def numbers(self) -> list[tuple[ReadingCell, QtWidgets.QLabel]]:
        return [(cell, number) for line in self._lines for cell, number, _ in line.parts]

    def show_number(self, number: QtWidgets.QLabel, cell: ReadingCell, text: str) -> bool:
        """Write a number with its decimal point aligned; returns whether it needs more room now."""
        if text == number.text():
            return False
        number.setText(text)
        number.setAccessibleName(f"{cell.caption.spoken}, {text} {cell.caption.unit}")
        self._align(number, cell, text)
        if self._has_sign or not text.startswith(tuple(SIGNS.values())):
            return False
        self._has_sign = True
        self._widths.clear()
        return True

    def line_height(self, size: int) -> int:
        return round(LINE * size)

    def extent(self, size: int, deep: int, count: int, short: bool = False) -> Extent:
        """The size of the first `count` lines, `deep` of them in a column.

        short: with symbols alone, not with words before them
        """
        columns = self._columns(deep, count)
        wide = len(columns) * self._width(size, short) + (len(columns) - 1) * round(BETWEEN * size)
        return Extent(wide, max(map(len, columns), default=0) * self.line_height(size))

    def shape_in(
        self, size: int, room: Extent, short: bool = False, least: int = 1
    ) -> tuple[int, int]:
        """How many lines fit at this size, and how many of them in a column.

        least: show none if fewer fit
        """
        between = round(BETWEEN * size)
        most = room.height // self.line_height(size)
        across = (room.width + between) // (self._width(size, short) + between)
        if across < 1 or most < 1:
            return 0, 0
        for count in range(min(len(self), across * most), least - 1, -1):
            if isinstance(self._items[count - 1], QtWidgets.QLabel):
                continue
            for deep in range(math.ceil(count / across), min(most, count) + 1):
                if len(self._columns(deep, count)) <= across:
                    return count, deep
        return 0, 0

    def arrange(self, size: int, deep: int, count: int, short: bool = False, step: int = 0) -> None:
        """Show the first `count` lines, `deep` of them in a column.

        step: from a column to the next, where there is room for it
        """
        for line in self._lines:
            line.abbreviate(short)
        columns, wide = self._columns(deep, count), self._width(size, short)
        least = wide + round(BETWEEN * size)
        if step < least or (len(columns) - 1) * step + wide > self.width():
            step = least
        high = self.line_height(size)
        words = self._words_width(size, short)
        widths = [(self._number_width(k, size), self._unit_width(k, size)) for k in (0, 1)]
        for item in self._items[count:]:
            item.setVisible(False)
        for across, column in enumerate(columns):
            for down, item in enumerate(column):
                place = QtCore.QPoint(across * step, down * high)
                item.setVisible(True)
                if isinstance(item, _Line):
                    self._put(item, place, size, words, widths)
                else:
                    resize_text(item, size, bold=True)
                    item.setGeometry(place.x(), place.y(), self._width(size, short), high)

    def _columns(self, deep: int, count: int) -> list[list["_Line | QtWidgets.QLabel"]]:
        columns: list[list[_Line | QtWidgets.QLabel]] = []
        for item in self._items[:count]:
            last = columns[-1] if columns else None
            # A heading must not end a column.
            alone = isinstance(item, QtWidgets.QLabel) and len(last or ()) + 1 == deep > 1
            if last is None or len(last) >= deep or alone:
                columns.append([])
            columns[-1].append(item)
        return columns

    def _put(
        self,
        line: "_Line",
        place: QtCore.QPoint,
        size: int,
        words: int,
        widths: Sequence[tuple[int, int]],
    ) -> None:
        """words, widths: that of all words, and those of numbers and units in each column"""
        high, gap = self.line_height(size), round(0.4 * size)
        resize_text(line.words, size)
        line.words.setGeometry(place.x(), place.y(), words, high)
        for cell, number, unit in line.parts:
            left = place.x() + words + gap
            column = self._column(cell)
            if column:
                left += sum(widths[0]) + 2 * gap
            wide, beside = widths[column]
            for label in (number, unit):
                resize_text(label, size)
            number.setGeometry(left, place.y(), wide, high)
            unit.setGeometry(left + wide + gap, place.y(), beside, high)
            self._align(number, cell, number.text())

    def _align(self, number: QtWidgets.QLabel, cell: ReadingCell, text: str) -> None:
        decimals = self._decimals[self._column(cell)]
        _, point, after = text.partition(".")
        missing = "" if point else "."
        missing += "0" * (decimals - len(after))
        if text == NO_READING:
            missing = ""
        number.setContentsMargins(0, 0, number.fontMetrics().horizontalAdvance(missing), 0)

    def _column(self, cell: ReadingCell) -> int:
        return int(cell.caption.unit in self._second)

    def _width(self, size: int, short: bool) -> int:
        if (size, short) not in self._widths:
            self._widths[size, short] = self._measured(size, short)
        return self._widths[size, short]

    def _measured(self, size: int, short: bool) -> int:
        wide = self._words_width(size, short)
        for column in (0, 1):
            if self._cells[column]:
                wide += round(0.4 * size) + self._column_width(column, size)
        return wide

    def _words_width(self, size: int, short: bool) -> int:
        return max((text_width(line.text(short), size) for line in self._lines), default=0)

    def _column_width(self, column: int, size: int) -> int:
        gap = round(0.4 * size)
        return self._number_width(column, size) + gap + self._unit_width(column, size)

    def _number_width(self, column: int, size: int) -> int:
        """The longest text before the point, and the longest after it."""
        of_hertz = any(cell.caption.unit == "Hz" for cell in self._cells[column])
        longest = max(text_width(text, size) for text in (*LONGEST, *["18888"] * of_hertz))
        longest += text_width(WIDEST_SIGN, size) if self._has_sign else 0
        return longest + text_width("." + "0" * self._decimals[column], size)

    def _unit_width(self, column: int, size: int) -> int:
        return max((text_width(c.caption.unit, size) for c in self._cells[column]), default=0)


def _decimals(unit: str) -> int:
    """Digits after the point for which there is room: one at least."""
    return max(1, len(widest_text(unit).partition(".")[2]))


class _Line:
    """The labels of cells with one caption."""

    def __init__(self, cells: Sequence[ReadingCell], parent: QtWidgets.QWidget) -> None:
        self.caption = cells[0].caption
        self.words = label_in(self.text(short=False), parent)
        tint(self.words, "second")
        self.parts = []
        for cell in cells:
            number, unit = label_in(NO_READING, parent), label_in(cell.caption.unit, parent)
            number.setObjectName(cell.shown_as)
            align = QtCore.Qt.AlignmentFlag
            number.setAlignment(align.AlignRight | align.AlignVCenter)
            tint(unit, "second")
            number.setToolTip(cell.caption.sentence)
            number.setAccessibleDescription(cell.caption.sentence)
            self.parts.append((cell, number, unit))
        self.words.setToolTip(f"{self.caption.spoken}: {self.caption.sentence}")

    def text(self, short: bool) -> str:
        """The symbol alone, or words and symbol, so that a reading has one name in every size."""
        words, symbol = self.caption.words, self.caption.symbol
        return (symbol if short else f"{words}  {symbol}".rstrip()) or words

    def abbreviate(self, short: bool) -> None:
        self.words.setText(self.text(short))

    def setVisible(self, visible: bool) -> None:
        self.words.setVisible(visible)
        for _, number, unit in self.parts:
            number.setVisible(visible)
            unit.setVisible(visible)
