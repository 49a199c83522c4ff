"""The boxes of all texts of a window: of its labels, its controls, and what it paints itself.

LAYOUTS are the measurements whose default layouts differ most.
"""

from contextlib import contextmanager
from itertools import combinations
from typing import NamedTuple

from pyqtgraph.Qt import QtCore, QtGui, QtWidgets

from amt_monitor.base.theme import theme
from amt_monitor.plot.plot import Plot
from amt_stream.engine import Engine, SignalSource, Tone
from amt_stream.meters.limits import Limit
from amt_stream.meters.presets import Preset
from amt_stream.meters.rows import JoinedRows, readings_of
from amt_stream.sessions.outputs import FollowedReadings
from tests.apps.sizes import cut

FS = 48000
LIMITS = Limit("laf_db", 85.0), Limit("laeq_db", 80.0)
LAYOUTS = {
    "loudness": (("moore2016",), ()),
    "loudness and level": (("moore2016", "spl"), LIMITS),
    "five models": (("moore2016", "gm2002", "zwicker", "bs1770", "spl"), ()),
    "bands": (("spl", "third_octave", "spectrum"), LIMITS),
    "programme": (("bs1770", "spl"), LIMITS[:1]),
    "modulation": (("king2019",), ()),
    "sound quality": (("spl", "ecma_loudness", "ecma_tonality", "ecma_roughness"), ()),
}
"""Models and limits."""
THEMES = "light", "dark", "contrast"

NATIVE = (
    QtWidgets.QAbstractButton,
    QtWidgets.QComboBox,
    QtWidgets.QTabBar,
    QtWidgets.QMenuBar,
    QtWidgets.QLineEdit,
    QtWidgets.QAbstractItemView,
)
"""Controls that Qt paints, each with a room of its own for its text."""


class Text(NamedTuple):
    """A text, the box of its ink in the window, and the box that it must stay in."""

    text: str
    box: QtCore.QRectF
    room: QtCore.QRectF

    @property
    def is_cut(self):
        return not self.room.adjusted(-1, -1, 1, 1).contains(self.box)


def texts_of(window):
    """All texts that are seen."""
    found = []
    for widget in window.findChildren(QtWidgets.QWidget):
        if not widget.isVisible() or widget.visibleRegion().isEmpty():
            continue
        if _paints(widget):
            found += _painted(widget, window)
        elif isinstance(widget, NATIVE) and not isinstance(widget.parent(), NATIVE):
            room = _rect(widget, window)
            needed = min(widget.sizeHint().width(), widget.width() + 1)
            wide = needed if isinstance(widget, QtWidgets.QAbstractButton) else widget.width()
            box = QtCore.QRectF(room.left(), room.top(), wide, room.height())
            found.append(Text(f"<{type(widget).__name__} {_words(widget)}>", box, room))
        elif isinstance(widget, QtWidgets.QLabel) and widget.text():
            found.append(_label(widget, window))
    return found


def overlapping(texts):
    """The pairs of texts that lie on each other."""
    pairs = combinations(texts, 2)
    return [(one.text, other.text) for one, other in pairs if one.box.intersects(other.box)]


def cut_texts(texts):
    return [(one.text, one.box, one.room) for one in texts if one.is_cut]


def _paints(widget):
    return (type(widget).paintEvent.__module__ or "").startswith("amt_monitor")


def _words(widget):
    return widget.text() if isinstance(widget, QtWidgets.QAbstractButton) else widget.objectName()


def _rect(widget, window):
    corner = widget.mapTo(window, QtCore.QPoint())
    return QtCore.QRectF(QtCore.QRect(corner, widget.size()))


def _label(label, window):
    room = _rect(label, window)
    text, metrics = label.text(), label.fontMetrics()
    rich = label.textFormat() == QtCore.Qt.TextFormat.RichText
    if rich or label.wordWrap() or QtCore.Qt.mightBeRichText(text):
        hint = label.sizeHint()
        wide = label.width() if label.wordWrap() else hint.width()
        high = label.heightForWidth(label.width()) if label.wordWrap() else hint.height()
        top = room.top() + (room.height() - high) / 2
        return Text(text, QtCore.QRectF(room.left(), top, wide, high), room)
    inside = QtCore.QRectF(label.contentsRect())
    inside.translate(room.topLeft())
    advance = metrics.horizontalAdvance(text)
    align = QtCore.Qt.AlignmentFlag
    free = inside.width() - advance
    left = inside.left() + max(0, label.indent())
    if label.alignment() & align.AlignRight:
        left = inside.right() - advance
    elif label.alignment() & align.AlignHCenter:
        left = inside.left() + free / 2
    base = inside.top() + (inside.height() - metrics.height()) / 2 + metrics.ascent()
    return Text(text, _ink(metrics, text).translated(left, base), room)


def _ink(metrics, text):
    """The box of the ink of a line of text that begins at (0, 0) of its base line."""
    return QtCore.QRectF(metrics.tightBoundingRect(text))


def _painted(widget, window):
    """What a widget paints; a plot paints its ground anew."""
    if isinstance(widget, Plot):
        widget._ground = None
    room = _rect(widget, window)
    with recorded() as boxes:
        widget.render(QtGui.QPixmap(widget.size()), QtCore.QPoint(), flags=FLAT)
    return [Text(text, box.translated(room.topLeft()), room) for text, box in boxes]


FLAT = QtWidgets.QWidget.RenderFlag.DrawWindowBackground


@contextmanager
def recorded():
    """Collects each text that is painted meanwhile, with its box."""
    found, before = [], vars(QtGui.QPainter)["drawText"]

    def draw(painter, *given):
        box, text = _box(painter, *given)
        if text:
            found.append((text, painter.worldTransform().mapRect(box)))
        return before.__get__(painter)(*given)

    QtGui.QPainter.drawText = draw
    try:
        yield found
    finally:
        QtGui.QPainter.drawText = before


def _box(painter, *given):
    metrics, text = painter.fontMetrics(), str(given[-1])
    ink = _ink(metrics, text)
    if len(given) == 2:
        return ink.translated(QtCore.QPointF(given[0])), text
    room, align = QtCore.QRectF(given[0]), int(given[1])
    flag = QtCore.Qt.AlignmentFlag
    left, top = room.left(), room.top()
    if align & flag.AlignRight.value:
        left = room.right() - metrics.horizontalAdvance(text)
    elif align & flag.AlignHCenter.value:
        left = room.left() + (room.width() - metrics.horizontalAdvance(text)) / 2
    if align & flag.AlignVCenter.value:
        top = room.top() + (room.height() - metrics.height()) / 2
    elif align & flag.AlignBottom.value:
        top = room.bottom() - metrics.height()
    return ink.translated(left, top + metrics.ascent()), text


def engine_of(layout, calibration=None):
    """Makes the engine of a layout, for a loud tone, by default with its calibration."""
    names, limits = LAYOUTS[layout]

    def make(wanted):
        source = SignalSource([Tone(1000.0, level_db=80.0)], FS)
        table = None
        models = Preset(names).models(FS, 2, specific_loudness=True)
        if names != ("king2019",):
            table = JoinedRows(readings_of([*names], 2), 100, FS, limits=[*limits])
        sinks = [] if table is None else [FollowedReadings(table)]
        return Engine(source, models, sinks, calibration=calibration)

    return make


def faults_in(qtbot, window, sizes, themes):
    """What is cut or lies on something else, by size and theme; and how many texts there were."""
    faults, count, before = [], 0, theme.choice
    try:
        for size in sizes:
            window.resize(*size)
            qtbot.waitUntil(lambda size=size: (window.width(), window.height()) == size)
            window.area.restore_default()
            qtbot.wait(300)
            for choice in themes:
                theme.choose(choice)
                qtbot.wait(50)
                texts, found = _looked_at(window)
                for _ in range(20 if found else 0):
                    qtbot.wait(300)  # a message may have come, which is laid out a moment later
                    texts, found = _looked_at(window)
                    if not found:
                        break
                count += len(texts)
                faults += [(size, choice, one) for one in found]
    finally:
        theme.choose(before)
    return faults, count


def tab_bars(window):
    """Those that are seen with more than one tab: Qt keeps others for later."""
    direct = window.findChildren(QtWidgets.QTabBar)
    return [bar for bar in direct if bar.parent() is window and bar.isVisible() and bar.count() > 1]


def faults_of(window):
    """The texts that are cut or covered."""
    return _looked_at(window)[1]


def _looked_at(window):
    texts = texts_of(window)
    return texts, [*cut(window), *cut_texts(texts), *overlapping(texts)]
