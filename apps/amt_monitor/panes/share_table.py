"""Draws shares by band and ear: bars to the left and to the right of an axis for each quality."""

from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pyqtgraph.Qt import QtCore, QtGui, QtWidgets

from amt_monitor.base.theme import Role, axis_size, colors_of, set_font, theme
from amt_monitor.panes.pane import FEW
from amt_monitor.plot.history_traces import top_of

Align = QtCore.Qt.AlignmentFlag

BAR, HIGHEST_BAR = 0.62, 14
"""Height of a bar relative to its row, and at most, in pixels."""

LEAST_ROW = 12
"""Pixels."""

BETWEEN = 20
"""Pixels between qualities."""

GAP = 6
"""Pixels between bars and texts."""

OVERLAP = 0.8
"""Least distance of numbers in lines of text."""

SMALLEST_TOP = 0.1
"""The least share that a bar of full length shows."""

EARS: tuple[Role, Role] = ("left", "right")


class ShareColumn(NamedTuple):
    """A quality of the table.

    title, words: the heading, and the text beside it
    shares: (ear, band), low frequencies first; None has no bars
    numbers: texts of each row, beside the bars of each ear (ear, band)
    greatest: ears and bands of the greatest share
    """

    title: str
    words: str
    shares: NDArray[np.float64] | None
    numbers: Sequence[Sequence[str]]
    greatest: Collection[tuple[int, int]] = ()


class ShareTable(QtWidgets.QWidget):
    """Columns over common bands, high frequencies at the top; of one channel bars go to the right.

    bands: their names, low frequencies first
    """

    def __init__(self, bands: Sequence[str]) -> None:
        super().__init__(objectName="share_table")
        self.setAttribute(QtCore.Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.bands = tuple(bands)
        self.columns: tuple[ShareColumn, ...] = ()
        self._tops: dict[str, float] = {}
        set_font(self, False, axis_size(self))
        theme.changed.connect(self.update)

    def minimumSizeHint(self) -> QtCore.QSize:
        line = self.fontMetrics().height()
        return QtCore.QSize(20 * line, 2 * line + len(self.bands) * LEAST_ROW)

    def show_columns(self, columns: Sequence[ShareColumn]) -> None:
        """Show these; scales grow at once, and shrink by half at a time."""
        self.columns = tuple(columns)
        for one in columns:
            if one.shares is not None and np.isfinite(one.shares).any():
                top = max(SMALLEST_TOP, top_of(float(np.nanmax(one.shares))))
                before = self._tops.get(one.title, top)
                self._tops[one.title] = top if top > before or 2 * top < before else before
        self.update()

    def paintEvent(self, event: QtGui.QPaintEvent) -> None:
        painter = QtGui.QPainter(self)
        colors = colors_of(self)
        painter.fillRect(self.rect(), QtGui.QColor(colors.paper))
        metrics = self.fontMetrics()
        line = metrics.height()
        names = max(map(metrics.horizontalAdvance, self.bands))
        bars = sum(1 for one in self.columns if one.shares is not None)
        texts = sum(map(self._texts_width, self.columns))
        gaps = names + BETWEEN * len(self.columns)
        wide = max(2.0, (self.width() - gaps - texts) / max(1, bars))
        row = (self.height() - 2 * line) / len(self.bands)
        painter.setPen(QtGui.QColor(colors.second))
        every = max(1, int(np.ceil(OVERLAP * line / row)))
        for band, name in enumerate(self.bands):
            if band % every == (len(self.bands) - 1) % every:
                room = QtCore.QRectF(0, self._row_top(band, row), names, row)
                self._write(painter, name, room, Align.AlignRight)
        x = float(names)
        for one in self.columns:
            x += BETWEEN
            room = self._texts_width(one) + (wide if one.shares is not None else 0.0)
            self._paint_column(painter, one, QtCore.QRectF(x, 0, room, self.height()), row)
            x += room

    def _row_top(self, band: int, row: float) -> float:
        return 2 * self.fontMetrics().height() + (len(self.bands) - 1 - band) * row

    def _number_widths(self, one: ShareColumn) -> list[int]:
        metrics = self.fontMetrics()
        wide = [max(map(metrics.horizontalAdvance, texts), default=0) for texts in one.numbers]
        return [each + GAP if each else 0 for each in wide]

    def _texts_width(self, one: ShareColumn) -> float:
        least = 0 if one.shares is not None else self.fontMetrics().horizontalAdvance(one.title)
        return max(float(sum(self._number_widths(one))), least)

    def _paint_column(
        self, painter: QtGui.QPainter, one: ShareColumn, room: QtCore.QRectF, row: float
    ) -> None:
        colors, metrics = colors_of(self), self.fontMetrics()
        line, numbers = metrics.height(), self._number_widths(one)
        ears = len(one.numbers)
        left = numbers[0] if ears == 2 else 0
        inside = QtCore.QRectF(room.left() + left, room.top(), room.width() - sum(numbers), 0)
        middle = round(inside.center().x() if ears == 2 else inside.left()) + 0.5
        self._paint_heading(painter, one, room)
        if ears == 2 and one.shares is not None:
            for side, role in enumerate(EARS):
                painter.setPen(QtGui.QColor(getattr(colors, role)))
                beside = QtCore.QRectF(middle - 100 - GAP, line, 100, line)
                if side:
                    beside.moveLeft(middle + GAP)
                self._write(painter, role, beside, Align.AlignLeft if side else Align.AlignRight)
        top = self._tops.get(one.title, 1.0)
        length = inside.width() / ears if ears else 0.0
        high = min(HIGHEST_BAR, max(2.0, round(BAR * row)))
        for band in range(len(self.bands)):
            y = self._row_top(band, row)
            for ear in range(ears):
                outwards = 1 if ear or ears == 1 else -1
                if one.shares is not None and np.isfinite(share := one.shares[ear, band]):
                    reach = outwards * length * min(1.0, share / top)
                    bar = QtCore.QRectF(middle, round(y + (row - high) / 2), reach, high)
                    role = EARS[ear] if ears == 2 else "accent"
                    painter.fillRect(bar.normalized(), QtGui.QColor(getattr(colors, role)))
        for ear in range(ears):
            wide = numbers[ear] - GAP
            at = room.right() - wide if ear or ears == 1 else room.left()
            for band in self._apart(one, ear, row):
                of_greatest = (ear, band) in one.greatest
                written: Role = "ink" if of_greatest else "second"
                if one.shares is None and ears == 2:
                    written = EARS[ear]  # nothing else says which ear it is of
                painter.setPen(QtGui.QColor(getattr(colors, written)))
                beside = QtCore.QRectF(at, self._row_top(band, row), wide, row)
                self._write(painter, one.numbers[ear][band], beside, Align.AlignRight)
        if one.shares is not None:
            painter.setPen(QtGui.QColor(colors.outline))
            bottom = self._row_top(0, row) + row
            painter.drawLine(QtCore.QLineF(middle, 2 * line, middle, bottom))

    def _apart(self, one: ShareColumn, ear: int, row: float) -> Iterator[int]:
        """The bands whose numbers do not overlap, those of the greatest shares or numbers first."""
        great = one.shares[ear] if one.shares is not None else one.numbers[ear]
        taken: list[int] = []
        for band in np.argsort([-abs(float(v or 0)) for v in great], kind="stable").tolist():
            near = OVERLAP * self.fontMetrics().height() / row
            if one.numbers[ear][band] and all(abs(band - other) >= near for other in taken):
                taken.append(band)
                yield band

    def _paint_heading(
        self, painter: QtGui.QPainter, one: ShareColumn, room: QtCore.QRectF
    ) -> None:
        colors = colors_of(self)
        bold = QtGui.QFont(self.font())
        bold.setWeight(bold.Weight.DemiBold)
        metrics = QtGui.QFontMetricsF(bold)
        painter.setFont(bold)
        painter.setPen(QtGui.QColor(colors.ink))
        painter.drawText(QtCore.QPointF(room.left(), metrics.ascent()), one.title)
        painter.setFont(self.font())
        after = room.left() + metrics.horizontalAdvance(one.title) + GAP
        left = self.fontMetrics().elidedText(
            one.words, QtCore.Qt.TextElideMode.ElideRight, int(room.right() - after)
        )
        if left == one.words or len(left) > FEW:
            painter.drawText(QtCore.QPointF(after, metrics.ascent()), left)

    def _write(self, painter: QtGui.QPainter, text: str, room: QtCore.QRectF, side: Any) -> None:
        # Rows may be lower than a line.
        line = self.fontMetrics().height()
        if room.height() < line:
            room = room.adjusted(0, (room.height() - line) / 2, 0, (line - room.height()) / 2)
        painter.drawText(room, side | Align.AlignVCenter, text)
