"""Lays out the numbers of a pane: a main number, others half as large, the rest in a table."""

from collections.abc import Iterator, Sequence
from itertools import product, starmap
from typing import NamedTuple

from pyqtgraph.Qt import QtCore, QtGui, QtWidgets

from amt_monitor.base.big_number import LARGEST, SMALLEST, BigNumber, Extent, caption_size
from amt_monitor.base.number_table import NumberTable

Group = Sequence[BigNumber]
"""Numbers under one caption, the first largest."""

LEAST = 26
"""Smallest main number; below it the table is cut."""
TABLE = (12, 15)
"""Pixels of the table's letters."""
TABLE_SHARE = 0.16
"""The largest letters of the table beside a large main number, relative to it."""
STEP = 4
"""Sizes are multiples of it, so that neighboring panes match."""
GIVES_WAY = 0.7
"""How far the main number shrinks for the table; then the last lines are left out."""
WORDS = 0.7
"""The table uses symbols if words would make everything smaller than this."""
HERO, HERO_SHARE = (56, 132), 0.11
"""The largest main number of tiles: pixels, and the share of the window's height between them."""
BELOW = 0.45
"""The numbers below the main one of a tile, relative to it."""
SPREAD = 1.5
"""Columns are spread to this multiple of their width at most."""


class GroupBox(NamedTuple):
    """Position of a group; sizes of its first and of its other numbers."""

    x: int
    y: int
    size: int
    beside: int


class GridPlan(NamedTuple):
    """Positions of the groups, and possible positions of the table."""

    extent: Extent
    boxes: list[GroupBox]
    places: list[tuple[int, int]]


class GridOption(NamedTuple):
    """A layout for any size of the main number.

    in_line: the others stand beside the main number, not below it, `across` in a row
    place: index of the table's position
    short: symbols in the table, not words
    """

    in_line: bool
    across: int
    place: int
    short: bool


class GridLayout(NamedTuple):
    """A complete layout; the table has so many lines, `deep` of them in a column."""

    extent: Extent
    boxes: list[GroupBox]
    table: QtCore.QRect
    lines: int
    deep: int
    letters: int
    short: bool


class NumberGrid(QtWidgets.QWidget):
    """Groups of numbers and a table, as large as possible.

    groups: the first has the main number
    tiles: the groups are equal, side by side, the numbers of each below each other

    `resized` follows a change of `free_size`, the size of the main number that there is room for.
    """

    resized = QtCore.Signal()

    def __init__(
        self, groups: Sequence[Group], table: NumberTable | None, tiles: bool = False
    ) -> None:
        super().__init__()
        self.groups, self.table, self._tiles = list(groups), table, tiles and len(groups) > 1
        for group in groups:
            for number in group:
                number.setParent(self)
        if table is not None:
            table.setParent(self)
        ignored = QtWidgets.QSizePolicy.Policy.Ignored
        self.setSizePolicy(ignored, ignored)
        self.form: GridLayout | None = None
        self.free_size = 0
        self._most = LARGEST
        self._extents: dict[tuple[int, int, int], Extent] = {}
        self.setMinimumSize(*self._least())

    def arrange_again(self) -> None:
        """Numbers need more or less room than before."""
        self._extents.clear()
        self.setMinimumSize(*self._least())
        self._fill()

    def resizeEvent(self, event: QtGui.QResizeEvent) -> None:
        self._fill()

    def limit_size(self, most: int) -> None:
        """Make the main number no larger, so that it matches those of other panes."""
        most = max(LEAST, most // STEP * STEP)
        before, self._most = min(self._most, self.free_size), most
        if min(most, self.free_size) != before:
            self._fill()

    def _fill(self) -> None:
        """Lay out for the present room."""
        room, most = Extent(self.width(), self.height()), self._most
        self._most = LARGEST
        form = self._best(room)
        free_size, self._most = form.boxes[0].size if form.boxes else 0, most
        self.form = form if free_size <= most else self._best(room)
        self._arrange(self.form)
        if free_size != self.free_size:
            self.free_size = free_size
            self.resized.emit()

    def _least(self) -> Extent:
        if not self.groups:
            return Extent(0, 0)
        if self._tiles:
            way = GridOption(True, len(self.groups) - 1, 0, False)
            return self._plan(way, LEAST, 0).extent
        others = [self._of(k, SMALLEST, SMALLEST).width for k in range(1, len(self.groups))]
        narrow = max([self._of(0, LEAST, SMALLEST).width, *others])
        return Extent(
            narrow, self._plan(GridOption(False, 1, 0, False), LEAST, narrow).extent.height
        )

    def _best(self, room: Extent) -> GridLayout:
        """The largest layout that shows everything, if its numbers are not too small."""
        ways = [*self._ways()]
        bare = max(self._largest(way, room, 0) for way in ways)
        # What matches other panes does not give way: the table does.
        least = bare if self._most < LARGEST else round(bare * GIVES_WAY)
        least = max(LEAST, least // STEP * STEP)
        lines = len(self.table) if self.table is not None else 0
        whole = {way: self._largest(way, room, lines) for way in ways}
        best = max(ways, key=lambda way: whole[way] * (WORDS if way.short else 1))
        if whole[best] >= least:
            return self._grown(best, whole[best], room)
        cut = [self._form(way, least, room) for way in ways]
        fitting = [form for form in cut if _fits(form.extent, room)]
        if not fitting:
            return self._form(ways[0], SMALLEST, room)
        return max(fitting, key=lambda form: (form.lines, not form.short))

    def _ways(self) -> Iterator[GridOption]:
        if self._tiles:
            across = len(self.groups) - 1
            return iter([GridOption(True, across, 0, short) for short in (False, True)])
        acrosses = range(1, max(2, len(self.groups)))
        places = (0, 1) if self.groups else (0,)
        in_line = (False, True) if len(self.groups) > 1 else (False,)
        tables = (False, True) if self.table is not None else (False,)
        return starmap(GridOption, product(in_line, acrosses, places, tables))

    def _largest(self, way: GridOption, room: Extent, lines: int) -> int:
        """The largest size that shows so many lines of the table; 0 if none does."""

        def fits(size: int) -> bool:
            form = (
                self._form(way, size, room, least=lines) if lines else self._bare(way, size, room)
            )
            return form.lines >= lines and _fits(form.extent, room)

        if not self.groups:
            return LEAST if fits(LEAST) else 0
        largest = LARGEST
        if self._tiles:
            largest = min(max(HERO[0], round(HERO_SHARE * self.window().height())), HERO[1])
        low, high = LEAST // STEP - 1, min(largest, self._most) // STEP
        while low < high:
            middle = (low + high + 1) // 2
            if fits(max(LEAST, middle * STEP)):
                low = middle
            else:
                high = middle - 1
        return 0 if low < LEAST // STEP else max(LEAST, low * STEP)

    def _grown(self, way: GridOption, size: int, room: Extent) -> GridLayout:
        """With the largest letters of the table that fit."""
        form = self._form(way, size, room)
        largest = max(TABLE[1], round(TABLE_SHARE * size))
        for letters in range(form.letters + 1, min(largest, _beside_size(size)) + 1):
            larger = self._form(way, size, room, letters, form.lines)
            if larger.lines < form.lines or not _fits(larger.extent, room):
                break
            form = larger
        return form

    def _form(
        self, way: GridOption, size: int, room: Extent, letters: int = 0, least: int = 1
    ) -> GridLayout:
        plan, letters = self._plan(way, size, room.width), letters or _table_size(size)
        if self.table is None:
            return self._bare(way, size, room)
        x, y = plan.places[way.place]
        left = Extent(room.width - x, room.height - y)
        lines, deep = self.table.shape_in(letters, left, way.short, least)
        needed = self.table.extent(letters, deep, lines, way.short)
        wide, high = (
            max(plan.extent.width, x + needed.width),
            max(plan.extent.height, y + needed.height),
        )
        table = QtCore.QRect(x, y, *needed)
        extent = Extent(wide, high) if lines else plan.extent
        return GridLayout(extent, plan.boxes, table, lines, deep, letters, way.short)

    def _bare(self, way: GridOption, size: int, room: Extent) -> GridLayout:
        plan = self._plan(way, size, room.width)
        return GridLayout(plan.extent, plan.boxes, QtCore.QRect(), 0, 0, TABLE[0], way.short)

    def _plan(self, way: GridOption, size: int, width: int) -> GridPlan:
        if not self.groups:
            return GridPlan(Extent(0, 0), [], [(0, 0)])
        if self._tiles:
            return self._tiled(size, width)
        half = _beside_size(size)
        ruling = self._of(0, size, half)
        first = GroupBox(0, 0, size, half)
        if way.in_line:
            left = ruling.width + _gap(size)
            inner, others = self._others(half, way.across, width - left)
            boxes = [first, *(box._replace(x=box.x + left) for box in others)]
            extent = Extent(left + inner.width, max(ruling.height, inner.height))
            below = [(0, extent.height), (left, inner.height)]
            return GridPlan(extent, boxes, [(x, y + _line_gap(half)) for x, y in below])
        top = ruling.height + _line_gap(size)
        inner, others = self._others(half, way.across, width)
        boxes = [first, *(box._replace(y=box.y + top) for box in others)]
        high = top + inner.height if others else ruling.height
        extent = Extent(max(ruling.width, inner.width), high)
        return GridPlan(
            extent, boxes, [(0, high + _line_gap(half)), (extent.width + _gap(size), 0)]
        )

    def _tiled(self, size: int, width: int) -> GridPlan:
        below, count = max(SMALLEST, round(BELOW * size)), len(self.groups)
        extents = [self._of(place, size, below) for place in range(count)]
        step = max(*(extent.width for extent in extents), (width - _gap(size)) // count)
        step += _gap(size)
        boxes = [GroupBox(place * step, 0, size, below) for place in range(count)]
        high = max(extent.height for extent in extents)
        extent = Extent((count - 1) * step + extents[-1].width, high)
        return GridPlan(extent, boxes, [(0, high + _line_gap(size))])

    def _others(self, size: int, across: int, width: int) -> tuple[Extent, list[GroupBox]]:
        """The groups except the main one, `across` in a row, spread over a width."""
        extents = [self._of(k, size, size) for k in range(1, len(self.groups))]
        if not extents:
            return Extent(0, 0), []
        across = min(across, len(extents))
        needed = max(extent.width for extent in extents)
        step = needed + _gap(size)
        step = max(step, min((width - needed) // max(1, across - 1), round(SPREAD * step)))
        line = max(extent.height for extent in extents) + _line_gap(size)
        boxes = [
            GroupBox(place % across * step, place // across * line, size, size)
            for place in range(len(extents))
        ]
        return Extent((across - 1) * step + needed, boxes[-1].y + line - _line_gap(size)), boxes

    def _of(self, place: int, size: int, beside: int) -> Extent:
        key = place, size, beside
        if key not in self._extents:
            ruling, *others = self.groups[place]
            first = ruling.extent(size)
            if self._tiles:
                below = [number.extent(beside) for number in others]
                high = first.height + sum(one.height for one in below)
                self._extents[key] = Extent(max(first.width, *(e.width for e in below), 0), high)
                return self._extents[key]
            wide = ruling.body_width(size)
            wide += sum(_gap(beside) + number.body_width(beside) for number in others)
            self._extents[key] = Extent(max(wide, first.width), first.height)
        return self._extents[key]

    def _arrange(self, form: GridLayout) -> None:
        for group, box in zip(self.groups, form.boxes, strict=True):
            left, below = box.x, box.y
            for number in group:
                size = box.size if number is group[0] else box.beside
                number.set_size(size)
                top = box.y + group[0].baseline - number.baseline
                if self._tiles:
                    number.setGeometry(box.x, below, *number.extent(size))
                    below += number.extent(size).height
                    continue
                number.setGeometry(left, top, *number.extent(size))
                left += number.body_width(size) + _gap(box.beside)
        if self.table is not None:
            self.table.setVisible(form.lines > 0)
            self.table.setGeometry(form.table)
            step = form.boxes[1].x if self._tiles else 0
            if step:
                self.table.resize(self.width() - form.table.x(), form.table.height())
            self.table.arrange(form.letters, form.deep, form.lines, form.short, step)


def _beside_size(size: int) -> int:
    return max(SMALLEST, size // 2)


def _table_size(size: int) -> int:
    return min(max(TABLE[0], size // 5), TABLE[1])


def _gap(size: int) -> int:
    return max(8, size // 3)


def _line_gap(size: int) -> int:
    return max(2, caption_size(size) // 4)


def _fits(needed: Extent, room: Extent) -> bool:
    return needed.width <= room.width and needed.height <= room.height
