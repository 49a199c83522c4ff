"""The readings of one model: what a person looks for large, the rest small."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

from pyqtgraph.Qt import QtCore, QtGui, QtWidgets

from amt_monitor.pane import Pane
from amt_monitor.theme import Colors, Role, ThemedLabel, tint
from amt_stream import catalog
from amt_stream.catalog import Entry

if TYPE_CHECKING:
    from amt_monitor.look import Look

NONE = "---"
WIDEST = ("888.8", "-88.8", "+88.8", "0.888")
SMALLEST, LARGEST = 14, 130
LINE_HEIGHT = 1.2
MARGINS = 16
FIRST = 100
"""Rows have what room they can use before any is left between them."""
SMALLEST_UNIT, UNIT_ROOM = 12, 46
SMALLEST_BAND = 11


def tenths(value: float) -> str:
    """Two digits after a rounding to tenths never read -0.0."""
    return f"{round(value, 1) + 0.0:.1f}"


class Cell(NamedTuple):
    """A reading by its name in the sink, and how it is written.

    `about` stands beside the caption; without both it goes with the cell before. `label` is the
    name of the widget where that of the reading is taken.
    """

    caption: str
    name: str
    unit: str
    text: Callable[[float], str] = tenths
    about: str = ""
    label: str = ""


class Row(NamedTuple):
    """Cells beside each other, and how high they are compared with other rows.

    largest: size of the numbers, as a fraction of what would fill the width
    """

    weight: int
    cells: Sequence[Cell]
    largest: float = 1.0


class ReadingPane(Pane):
    """Rows of large numbers, below them small ones, `across` in a line.

    share: of the window's height
    names: of all readings that there are; cells of others are left out
    """

    def __init__(
        self,
        entry: Entry,
        about: str,
        rows: Sequence[Row],
        small: Sequence[Cell],
        across: int,
        share: int,
        names: Collection[str],
    ) -> None:
        super().__init__(entry.name, f"<big>{escape(entry.title)}</big>", about)
        self.share = share
        self.model = entry.name
        """What its model is called in the engine."""
        self._rows: list[_LargeRow] = []
        self._bands: dict[str, QtWidgets.QLabel] = {}
        self._numbers: list[tuple[Cell, QtWidgets.QLabel]] = []
        for row in rows:
            cells = [cell for cell in row.cells if cell.name in names]
            if not cells:
                continue
            widget = _LargeRow(cells, row.largest)
            self._rows.append(widget)
            self._numbers += widget.numbers
            self._bands |= widget.bands
            self.body.addWidget(widget, FIRST * row.weight)
            self.body.addStretch(1)
        grid = QtWidgets.QGridLayout()
        grid.setHorizontalSpacing(4)
        grid.setVerticalSpacing(0)
        for place, cell in enumerate(cell for cell in small if cell.name in names):
            number = _number(cell)
            number.setMinimumWidth(number.fontMetrics().horizontalAdvance("-888.8"))
            self._numbers.append((cell, number))
            labels = QtWidgets.QLabel(cell.caption), number, QtWidgets.QLabel(cell.unit)
            for i, label in enumerate(labels):
                grid.addWidget(label, place // across, 4 * (place % across) + i)
            grid.setColumnMinimumWidth(4 * (place % across) + 3, 16)
        grid.setColumnStretch(4 * across, 1)
        self.body.addLayout(grid)
        # Below the numbers, where it is seen with them and has room for several words.
        self.head.removeWidget(self.badge)
        self.body.addWidget(self.badge, 0, QtCore.Qt.AlignmentFlag.AlignRight)
        narrow = max((len(row.cells) for row in rows), default=0) * (
            round(3.4 * SMALLEST) + UNIT_ROOM
        )
        self.setMinimumWidth(MARGINS + max(narrow, grid.minimumSize().width()))

    def show_readings(self, found: Mapping[str, Any]) -> None:
        """Write the readings that were found; those that are None are not there yet."""
        for cell, number in self._numbers:
            value = found.get(cell.name)
            number.setText(NONE if value is None else cell.text(value))

    def draw(self, found: Mapping[str, Any]) -> None:
        """Move what moves, of the readings that were found; numbers alone do not."""

    def texts(self) -> tuple[str, ...]:
        """What is written there now."""
        return tuple(number.text() for _, number in self._numbers)

    def show_band(self, name: str, text: str) -> None:
        """Write beside a large number how far it may be off; nothing where that is not known."""
        if name in self._bands:
            self._bands[name].setText(text and f"± {text}")

    def doubt(self, grey: bool, uncalibrated: bool) -> None:
        """Grey numbers are not to be read off; hatched ones have no calibration."""
        role: Role | None = "second" if grey else None
        for _, number in self._numbers:
            tint(number, role, hatched=uncalibrated)
        for band in self._bands.values():
            tint(band, role)

    def move(self, look: "Look") -> None:
        self.draw(look.values)

    def read(self, look: "Look") -> None:
        self.show_readings(look.values)

    def judge(self, look: "Look") -> None:
        doubts = look.doubts(self.model)
        self.mark(doubts.words, doubts.uncalibrated)
        self.doubt(doubts.grey, doubts.uncalibrated)

    def resizeEvent(self, event: QtGui.QResizeEvent) -> None:
        for row in self._rows:
            row.fit(self.width() - MARGINS, self.height())


UNITS = {"db": "dB", "lufs": "LUFS", "lu": "LU", "dbtp": "dBTP", "hz": "Hz"}
"""Units as names of readings end in them, where they are written otherwise."""


def plain_cell(name: str, text: Callable[[float], str] = tenths) -> Cell:
    """A reading as its name tells it."""
    stem, _, unit = name.rpartition("_")
    return Cell(stem.replace("_", " "), name, UNITS.get(unit, unit), text)


def plain_pane(entry: Entry, names: Collection[str]) -> ReadingPane:
    """The pane of a model that brings none: its first reading large, the others small."""
    cells = [plain_cell(name) for name in names]
    large, small = [Row(1, cells[:1])], cells[1:]
    return ReadingPane(entry, escape(entry.method), large, small, 2, 3, names)


def pane_of(model: str, names: Collection[str]) -> ReadingPane:
    """The pane of a model of the catalog, for the readings of these names."""
    entry = catalog.entry(model)
    make = plain_pane if entry.pane is None else entry.load("pane")
    pane: ReadingPane = make(entry, names)
    return pane


class _LargeRow(QtWidgets.QWidget):
    """Large numbers with their units, each below its caption, as large as there is room."""

    def __init__(self, cells: Sequence[Cell], largest: float) -> None:
        super().__init__()
        self._largest, self._widest_step = largest, 0
        self._parts = []
        for cell in cells:
            caption = ThemedLabel(partial(_heading, cell))
            band = QtWidgets.QLabel()
            band.setObjectName(f"{cell.name}_band")
            band.setToolTip("as far as the uncertainty of the level goes, k = 2")
            labels = caption, _number(cell), QtWidgets.QLabel(cell.unit), band
            for label in labels:
                label.setParent(self)
            self._parts.append((cell, *labels))
        self._line = self.fontMetrics().height() if any(cell.caption for cell in cells) else 0
        ignored = QtWidgets.QSizePolicy.Policy.Ignored
        self.setSizePolicy(ignored, ignored)
        self.setMinimumHeight(self._line + SMALLEST + 4)

    @property
    def numbers(self) -> list[tuple[Cell, QtWidgets.QLabel]]:
        return [(cell, number) for cell, _, number, *_ in self._parts]

    @property
    def bands(self) -> dict[str, QtWidgets.QLabel]:
        return {cell.name: band for cell, *_, band in self._parts}

    def fit(self, width: int, height: int) -> None:
        """No higher than numbers are that fill their columns, in a pane of that size."""
        # In a wide and low pane numbers would stand far from their captions.
        self._widest_step = height
        self.setMaximumHeight(self._line + math.ceil(LINE_HEIGHT * self._widest(width)))
        self._arrange()

    def resizeEvent(self, event: QtGui.QResizeEvent) -> None:
        self._arrange()

    def _arrange(self) -> None:
        step = self._step(self.width())
        high = (self.height() - self._line) / LINE_HEIGHT
        size = max(SMALLEST, min(self._widest(self.width()), int(high)))
        for place, (_, caption, number, unit, band) in enumerate(self._parts):
            left = place * step
            caption.setGeometry(left, 0, self._captioned(place) * step - 4, self._line)
            _resize(number, size, bold=True)
            _resize(unit, max(SMALLEST_UNIT, size // 4))
            metrics, small = number.fontMetrics(), unit.fontMetrics()
            width = max(map(metrics.horizontalAdvance, WIDEST))
            # Numbers of several rows end below each other; one that is alone begins at the left.
            before = width if len(self._parts) == 1 else step - max(UNIT_ROOM, int(0.7 * size))
            number.setGeometry(left + before - width, self._line, width, metrics.height())
            top = self._line + metrics.ascent() - small.ascent()
            room = step - before - 4
            unit.setGeometry(left + before + 4, top, room, small.height())
            _resize(band, max(SMALLEST_BAND, size // 5))
            line = band.fontMetrics().height()
            band.setGeometry(left + before + 4, top - line, room, line)

    def _step(self, width: int) -> int:
        """From one column to the next."""
        return min(width // len(self._parts), self._widest_step)

    def _widest(self, width: int) -> int:
        """Size of the digits that fill a column."""
        step = self._step(width)
        # A bold number is at most 3.4 times as wide as high, a unit of a quarter of its size 0.7.
        size = self._largest * min((step - 8) / 4.1, (step - UNIT_ROOM) / 3.4, LARGEST)
        return max(SMALLEST, int(size))

    def _captioned(self, place: int) -> int:
        """How many cells the caption of one goes for."""
        following = [bool(cell.caption) for cell, *_ in self._parts[place + 1 :]]
        return 1 + (following.index(True) if True in following else len(following))


def _heading(cell: Cell, colors: Colors) -> str:
    if not cell.caption:
        return ""
    return f'<b>{cell.caption}</b> <span style="color: {colors.second}">{cell.about}</span>'


def _number(cell: Cell) -> QtWidgets.QLabel:
    number = QtWidgets.QLabel(NONE)
    number.setObjectName(cell.label or cell.name)
    align = QtCore.Qt.AlignmentFlag
    number.setAlignment(align.AlignRight | align.AlignTop)
    return number


def _resize(label: QtWidgets.QLabel, pixels: int, bold: bool = False) -> None:
    font = label.font()
    font.setPixelSize(pixels)
    font.setBold(bold)
    label.setFont(font)
