"""A plot that repaints only what changes."""

import math
from collections.abc import Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from pyqtgraph.Qt import QtCore, QtGui, QtWidgets

from amt_monitor.base.state_shape import paint_shape
from amt_monitor.base.theme import Colors, Role, axis_size, set_font, theme

Item = TypeVar("Item")
Ticks = Sequence[tuple[float, str]]
Values = Sequence[float] | NDArray[Any]
FAR = 4
"""Heights outside the plot beyond which points are cut off: large numbers overflow."""
FINE, SEEN = 1 / 16, 1 / 4
"""Precision of points in an exported picture, and on the screen, in pixels."""
TIE = 1e-6
"""Pixels to the right, so that the rounding of a point halfway stays the same while it moves."""
# Enums of Qt take a microsecond to look up.
SMOOTH, INTERSECT = QtGui.QPainter.RenderHint.Antialiasing, QtCore.Qt.ClipOperation.IntersectClip
GAP = 7
"""Pixels between a plot and the numbers below it: the lowest number at its left needs them."""
LANE = 14
"""Pixels of the lane above a plot for its unit."""
STRIP = 10
"""Pixels of the strip below a plot for the states of the sound."""


class PlotAxis(NamedTuple):
    """From `low` to `high`, with labels at some values and grid lines at others.

    lines: by default at the labels
    """

    low: float = 0.0
    high: float = 1.0
    ticks: Ticks = ()
    lines: Sequence[float] | None = None
    caption: str = ""

    @property
    def lined(self) -> Sequence[float]:
        return [value for value, _ in self.ticks] if self.lines is None else self.lines


class LegendEntry(NamedTuple):
    """A line and its label, or a state of the strip below the plot: its key in `SIGNS`."""

    role: Role
    dashed: bool
    text: str
    state: str = ""


SIDES = [LegendEntry("left", False, "left"), LegendEntry("right", True, "right")]


def sides_text(colors: Colors) -> str:
    """The same as rich text."""
    return (
        f"<span style='color:{colors.left}'>&#9473;&#9473; left</span> &nbsp; "
        f"<span style='color:{colors.right}'>&#9477;&#9477; right</span>"
    )


MEASURED = "left", "right", "accent"
"""Roles of curves and bars that are grey while nothing is measured."""


class Layer:
    """A part of a plot. It reports the areas that change; the plot asks it to paint."""

    plot: "Plot"
    smooth = False
    """Whether its edges are antialiased."""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to paint."""
        return False

    def join(self, plot: "Plot") -> None:
        self.plot = plot

    def place(self) -> None:
        """The size, the ranges or the colors of the plot have changed."""

    def paint(self, painter: QtGui.QPainter) -> None:
        """Paint inside the axes; only what lies outside the plot is clipped."""
        raise NotImplementedError


class ItemLayer(Layer, Generic[Item]):
    """A layer of items; it is painted again when they change."""

    items: tuple[Item, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not self.items

    def set(self, items: Sequence[Item]) -> None:
        if tuple(items) != self.items:
            self.items = tuple(items)
            self.plot.update(self.plot.inside.united(self.plot.strip))


THIN = 1.5
"""Pixels of a thin line."""

KEY, KEY_LEFT = 10, 6
"""Pixels of the color scale at the right of a plot, and before it."""
WIDEST_KEY = "0.0005"
"""The widest number beside it."""

UNIT_LEFT = 5
"""Pixels from the axis to the unit."""

LEAST_LINES = 7
"""Least height in lines of text."""


class Plot(QtWidgets.QWidget):
    """Layers on a grid between two axes; grid and labels are cached as an image.

    top: labels of a second scale above, for values along the same axis
    strip: whether there is room for a strip of states below the plot, and for the unit above it
    key: whether there is room for a color scale with its numbers at the right
    """

    def __init__(self, name: str, strip: bool = False, key: bool = False) -> None:
        super().__init__()
        self.setObjectName(name)
        self.setAttribute(QtCore.Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.x, self.y = PlotAxis(), PlotAxis()
        self.top: Ticks = ()
        self.unit_text = ""
        self.inside, self.strip = QtCore.QRect(), QtCore.QRect()
        self._stripped, self._keyed = strip, key
        self.layers: list[Layer] = []
        self.legend: list[LegendEntry] = []
        self.colors = theme.colors
        set_font(self, False, axis_size(self))
        self._ground: QtGui.QPixmap | None = None
        self.kept = False
        """Whether an export is being painted."""
        self._resting = False
        theme.changed.connect(self._recolor)

    def minimumSizeHint(self) -> QtCore.QSize:
        line = self.fontMetrics().height()
        return QtCore.QSize(LEAST_LINES * line, LEAST_LINES * line)

    def add(self, layer: Layer) -> None:
        layer.join(self)
        self.layers.append(layer)

    def set_layers(self, layers: Sequence[Layer]) -> None:
        self.layers.clear()
        for layer in layers:
            self.add(layer)
        self._renew()

    def set_axes(
        self, x: PlotAxis | None = None, y: PlotAxis | None = None, top: Ticks = ()
    ) -> None:
        """Set the ranges; None leaves one unchanged."""
        axes = x or self.x, y or self.y, top or self.top
        if axes != (self.x, self.y, self.top):
            self.x, self.y, self.top = axes
            self._arrange()

    def set_unit(self, unit: str, uncalibrated: bool) -> None:
        """Show the unit of the readings, and whether they are uncalibrated."""
        text = ", ".join(filter(None, (unit, "uncalibrated" * uncalibrated)))
        if text != self.unit_text:
            self.unit_text = text
            self._renew()

    @property
    def grain(self) -> float:
        return 1 / FINE if self.kept else self.devicePixelRatioF() / SEEN

    def points(self, x: Values, y: Values) -> NDArray[np.float64]:
        area, grain = self.inside, self.grain
        wide, high = area.width() - 1, area.height() - 1
        # Columns that lie together are read and written faster.
        across, up = places = np.empty((2, len(x)))
        across[:] = (np.asarray(x) - self.x.low) * (wide / (self.x.high - self.x.low))
        up[:] = (np.asarray(y) - self.y.low) * (-high / (self.y.high - self.y.low))
        np.minimum(up, FAR * high, out=up)
        np.maximum(up, -FAR * high, out=up)
        across += area.left() + TIE
        up += area.bottom()
        if grain != 1.0:
            places *= grain
        np.rint(places, out=places)
        if grain != 1.0:
            places /= grain
        return places.T

    def values(self, place: QtCore.QPointF) -> tuple[float, float]:
        across = (place.x() - self.inside.left()) / max(1, self.inside.width() - 1)
        up = (self.inside.bottom() - place.y()) / max(1, self.inside.height() - 1)
        return (
            self.x.low + across * (self.x.high - self.x.low),
            self.y.low + up * (self.y.high - self.y.low),
        )

    def rest(self, resting: bool) -> None:
        """Draw in grey on the screen, as the curves are the last of a stopped measurement."""
        if resting != self._resting:
            self._resting = resting
            self.update()

    def color(self, role: Role) -> QtGui.QColor:
        grey = self._resting and not self.kept and role in MEASURED
        return QtGui.QColor(getattr(self.colors, "second" if grey else role))

    def pen(self, role: Role, width: float = 1.0, dashed: bool = False) -> QtGui.QPen:
        pen = QtGui.QPen(self.color(role), width)
        pen.setCosmetic(width <= 1.0)
        if dashed:
            pen.setStyle(QtCore.Qt.PenStyle.DashLine)
        elif width > 1.0:
            joins = QtCore.Qt.PenJoinStyle
            # On a thin line a bevel looks the same, and takes half the time.
            pen.setJoinStyle(joins.RoundJoin if width > THIN else joins.BevelJoin)
            pen.setCapStyle(QtCore.Qt.PenCapStyle.RoundCap)
        return pen

    def render_on(self, painter: QtGui.QPainter, colors: Colors) -> None:
        """Paint an export in these colors."""
        self.colors, self.kept = colors, True
        try:
            self._place()
            painter.setRenderHint(QtGui.QPainter.RenderHint.Antialiasing)
            painter.setFont(self.font())
            self._paint_ground(painter)
            self._paint_layers(painter)
            painter.setClipping(False)
            self._paint_legend(painter)
        finally:
            self.colors, self.kept = theme.colors, False
            self._place()

    def _paint_legend(self, painter: QtGui.QPainter) -> None:
        """The legend of an export; on the screen it stands beside the plot."""
        metrics, area = painter.fontMetrics(), self.inside
        x = area.left() + 5.0
        # Below the line with the unit.
        y = area.top() + 2.0 + metrics.height() * 1.5
        for role, dashed, text, state in self.legend:
            if state:
                paint_shape(painter, state, x + 7, y - STRIP / 2, STRIP, self.color(role))
            else:
                painter.setPen(self.pen(role, 2.0, dashed))
                painter.drawLine(QtCore.QLineF(x, y, x + 24, y))
            painter.setPen(self.pen("ink"))
            painter.drawText(QtCore.QPointF(x + 30, y + metrics.ascent() / 2 - 1), text)
            x += 46 + metrics.horizontalAdvance(text)

    def paintEvent(self, event: QtGui.QPaintEvent) -> None:
        ratio = self.devicePixelRatioF()
        if self._ground is None or self._ground.devicePixelRatio() != ratio:
            self._ground = QtGui.QPixmap(self.size() * ratio)
            self._ground.setDevicePixelRatio(ratio)
            on_ground = QtGui.QPainter(self._ground)
            on_ground.setFont(self.font())
            self._paint_ground(on_ground)
            on_ground.end()
        painter = QtGui.QPainter(self)
        painter.drawPixmap(0, 0, self._ground)
        self._paint_layers(painter)
        if self.hasFocus():
            painter.setClipping(False)
            painter.setPen(QtGui.QColor(self.colors.accent))
            painter.drawRect(self.inside.adjusted(-1, -1, 0, 0))

    def resizeEvent(self, event: QtGui.QResizeEvent) -> None:
        self._arrange()

    def focusInEvent(self, event: QtGui.QFocusEvent) -> None:
        self.update()

    def focusOutEvent(self, event: QtGui.QFocusEvent) -> None:
        self.update()

    def changeEvent(self, event: QtCore.QEvent) -> None:
        if event.type() == QtCore.QEvent.Type.FontChange:
            self._arrange()
        super().changeEvent(event)

    def _recolor(self) -> None:
        self.colors = theme.colors
        self._renew()

    def _renew(self) -> None:
        self._ground = None
        self._place()
        self.update()

    def _arrange(self) -> None:
        """Fit the labels; the rest is inside."""
        metrics = self.fontMetrics()
        line = metrics.height()
        texts = [text for _, text in self.y.ticks]
        # The same width in all plots with this font, so that they line up.
        left = max(map(metrics.horizontalAdvance, [*texts, "0000"])) + 10
        left += line + 2 if self.y.caption else 0
        last = self.x.ticks[-1][1] if self.x.ticks else ""
        right = max(10, metrics.horizontalAdvance(last) // 2 + 4)
        high = max(LANE, line)
        if self._keyed:
            right = max(right, KEY_LEFT + KEY + metrics.horizontalAdvance(WIDEST_KEY) + 6)
        above = line + 4 if self.top else high + 2 if self._stripped else line // 2 + 2
        strip = STRIP if self._stripped else 0
        below = line + GAP + 1 + strip + (line if self.x.caption else 0)
        self.inside = inside = self.rect().adjusted(left, above, -right, -below)
        self.strip = QtCore.QRect(left, inside.bottom() + 3, inside.width(), strip)
        self._renew()

    def _place(self) -> None:
        for layer in self.layers:
            layer.place()

    def _paint_layers(self, painter: QtGui.QPainter) -> None:
        painter.setClipRect(self.inside.united(self.strip))
        self.paint_layers(painter, self.layers)

    def paint_layers(self, painter: QtGui.QPainter, layers: Sequence[Layer]) -> None:
        for layer in layers:
            if layer.is_empty:
                continue
            painter.save()
            if layer.smooth:
                painter.setClipRect(self.inside, INTERSECT)
                painter.setRenderHint(SMOOTH)
            layer.paint(painter)
            painter.restore()

    def _paint_ground(self, painter: QtGui.QPainter) -> None:
        area, align = self.inside, QtCore.Qt.AlignmentFlag
        painter.fillRect(self.rect(), QtGui.QColor(self.colors.paper))
        if area.width() < 2 or area.height() < 2:
            return
        painter.setPen(self.pen("grid"))
        for x in self._places(self.x, self.x.lined)[:, 0]:
            painter.drawLine(round(x), area.top(), round(x), area.bottom())
        for y in self._places(self.y, self.y.lined)[:, 1]:
            painter.drawLine(area.left(), round(y), area.right(), round(y))
        painter.setPen(self.pen("second"))
        line = painter.fontMetrics().height()
        self._paint_along(painter, self.x.ticks, area.bottom() + GAP + self.strip.height())
        # Not left of the plot, where the topmost number beside it may be.
        self._paint_along(painter, self.top, area.top() - 3 - line, area.left())
        taken = float(self.height() + line)
        places = self._places(self.y, [value for value, _ in self.y.ticks])[:, 1]
        for y, (_, text) in sorted(zip(places.tolist(), self.y.ticks, strict=True), reverse=True):
            if y + line <= taken:
                taken = y
                room = QtCore.QRectF(0, y - line / 2, area.left() - 6, line)
                painter.drawText(room, align.AlignRight | align.AlignVCenter, text)
        if self.x.caption:
            below = QtCore.QRectF(area.left(), self.height() - line, area.width(), line)
            painter.drawText(below, align.AlignCenter, _fitting(painter, self.x.caption, below))
        if self.y.caption:
            painter.save()
            painter.translate(0, area.bottom())
            painter.rotate(-90)
            beside = QtCore.QRectF(0, 0, area.height(), line)
            painter.drawText(beside, align.AlignCenter, _fitting(painter, self.y.caption, beside))
            painter.restore()
        painter.setPen(self.pen("ink"))
        if self._stripped:
            room = QtCore.QRect(area.left(), 0, area.width(), max(LANE, line))
            painter.drawText(room, align.AlignLeft | align.AlignVCenter, self.unit_text)
        elif self.unit_text:
            wide = painter.fontMetrics().horizontalAdvance(self.unit_text)
            room = QtCore.QRect(area.left() + UNIT_LEFT, area.top() + 2, wide, line)
            # No grid lines behind the letters.
            painter.fillRect(room.adjusted(-2, 0, 2, 0), QtGui.QColor(self.colors.paper))
            painter.drawText(room, align.AlignLeft, self.unit_text)

    def _places(self, axis: PlotAxis, values: Sequence[float]) -> NDArray[np.float64]:
        if axis is self.x:
            return self.points(values, np.zeros(len(values)))
        return self.points(np.zeros(len(values)), values)

    def _paint_along(
        self, painter: QtGui.QPainter, ticks: Ticks, top: float, least: float = 0.0
    ) -> None:
        """Labels below or above, from `least`; those that would overlap are left out."""
        metrics, taken = painter.fontMetrics(), -1.0
        places = self._places(self.x, [value for value, _ in ticks])[:, 0].tolist()
        for x, (_, text) in sorted(zip(places, ticks, strict=True)):
            wide = metrics.horizontalAdvance(text)
            left = min(max(least, x - wide / 2), self.width() - wide)
            if left > taken:
                taken = left + wide + 4
                painter.drawText(QtCore.QPointF(left, top + metrics.ascent()), text)


def _fitting(painter: QtGui.QPainter, text: str, room: QtCore.QRectF) -> str:
    """The text, shortened with dots if it is too long."""
    side = QtCore.Qt.TextElideMode.ElideRight
    return painter.fontMetrics().elidedText(text, side, int(room.width()))


def area_of(points: NDArray[np.float64], margin: int = 2) -> QtCore.QRect:
    """The smallest rectangle around points (point, 2); empty without points."""
    if not len(points):
        return QtCore.QRect()
    # By columns: numpy takes four times as long over both at once.
    x, y = np.ascontiguousarray(points.T)
    left, top = float(np.fmin.reduce(x)), float(np.fmin.reduce(y))
    right, bottom = float(np.fmax.reduce(x)), float(np.fmax.reduce(y))
    if top != top or left != left:
        return QtCore.QRect()
    corner = QtCore.QPoint(math.floor(left) - margin, math.floor(top) - margin)
    return QtCore.QRect(
        corner, QtCore.QPoint(math.ceil(right) + margin, math.ceil(bottom) + margin)
    )


def changed_area(
    before: NDArray[np.float64], after: NDArray[np.float64], margin: int = 2
) -> QtCore.QRect:
    """The rectangle in which a line has changed; empty if it has not."""
    if before.shape == after.shape:
        # NaN never equals NaN.
        differ = (before != after) & ((before == before) | (after == after))
        changed = differ.ravel().nonzero()[0]
        if not len(changed):
            return QtCore.QRect()
        # A point moves the lines to both neighbors.
        part = slice(max(0, int(changed[0]) // 2 - 1), int(changed[-1]) // 2 + 2)
        before, after = before[part], after[part]
    return area_of(np.concatenate((before, after)), margin)
