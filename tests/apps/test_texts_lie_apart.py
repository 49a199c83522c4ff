"""In every size and theme each text lies inside its window, whole, and on no other text."""

from itertools import combinations

import pytest
from pyqtgraph.Qt import QtCore, QtWidgets

from amt_monitor.pane import ElidedLabel
from amt_monitor.reading_pane import pane_of
from amt_monitor.theme import theme
from amt_stream.engine import Engine, SignalSource, Tone
from amt_stream.meters.limits import Limit
from amt_stream.meters.presets import Preset
from amt_stream.meters.rows import JoinedRows, readings_of
from amt_stream.sessions.outputs import FollowedReadings
from tests.apps.sizes import cut

FS = 48000
SIZES = (1280, 800), (1024, 600), (820, 560)


def boxes(window):
    """The box of each text that is seen, in the window."""
    found = []
    for label in window.findChildren(QtWidgets.QLabel):
        if not (label.isVisible() and label.text()) or label.visibleRegion().isEmpty():
            continue
        if isinstance(label, ElidedLabel) or label.wordWrap():
            wide = label.width()
        else:
            wide = min(label.width(), label.sizeHint().width())
        right = bool(label.alignment() & QtCore.Qt.AlignmentFlag.AlignRight)
        left = label.width() - wide if right else 0
        corner = label.mapTo(window, QtCore.QPoint(left, 0))
        metrics = label.fontMetrics()
        high = min(label.height(), metrics.tightBoundingRect("0").height())
        if not label.wordWrap():
            corner.setY(corner.y() + (label.height() - high) // 2)
        else:
            high = label.height()
        found.append((QtCore.QRect(corner, QtCore.QSize(wide, high)), label.text()))
    return found


@pytest.mark.parametrize("choice", ["light", "dark", "contrast"])
def test_no_text_is_cut_or_lies_on_another(qtbot, open_window, model, choice):
    level = Preset(("spl",)).models(FS, 2)["spl"]

    def make_engine(wanted):
        names = ["moore2016", "spl"]
        table = JoinedRows(readings_of(names, 2), 100, FS, limits=[Limit("laf_db", 85.0)])
        source = SignalSource([Tone(1000.0, level_db=80.0)])
        models = {"moore2016": model, "spl": level}
        return Engine(source, models, [FollowedReadings(table)])

    before = theme.choice
    theme.choose(choice)
    try:
        window = open_window(make_engine)
        window.first_start.closed.emit()
        window.first_start.hide()
        for size in SIZES:
            window.resize(*size)
            qtbot.waitUntil(lambda size=size: (window.width(), window.height()) == size)
            window.area.restore_default()
            qtbot.wait(400)
            assert not cut(window), size
            for (one, text), (other, told) in combinations(boxes(window), 2):
                assert not one.intersects(other), (size, text, told)
    finally:
        theme.choose(before)


def test_a_name_with_an_and_is_written_as_one(qtbot):
    pane = pane_of("gm2002", ["gm2002_ltl_sone"])
    qtbot.addWidget(pane)
    heading = pane.head_bar.findChild(QtWidgets.QLabel, "gm2002_title")
    plain = QtWidgets.QLabel("Glasberg & Moore 2002")
    plain.setFont(heading.font())
    assert abs(heading.sizeHint().width() - plain.sizeHint().width()) <= 4
