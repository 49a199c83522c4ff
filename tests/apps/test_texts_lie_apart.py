"""In every size and theme each text lies inside its window, whole, and on no other text."""

import pytest
from pyqtgraph.Qt import QtCore, QtGui, QtWidgets

from amt_monitor.panes.pane import ElidedLabel
from amt_monitor.panes.reading_pane import pane_of
from amt_monitor.plot.plot import Plot
from amt_stream.meters.calibration import UNCALIBRATED
from tests.apps.texts import THEMES, cut_texts, engine_of, faults_in, overlapping, texts_of

SIZES = (1280, 800), (1024, 600), (820, 560)
"""The soak test has twelve, and all layouts."""


@pytest.mark.cases(1)
@pytest.mark.quick
@pytest.mark.parametrize("calibration", [None, UNCALIBRATED])
def test_no_text_is_cut_or_lies_on_another(qtbot, open_window, calibration):
    window = open_window(engine_of("loudness and level", calibration))
    window.first_start.skip.click()
    faults, count = faults_in(qtbot, window, SIZES, THEMES)
    assert not faults
    assert count > 60 * len(SIZES) * len(THEMES)


@pytest.mark.cases(2)
@pytest.mark.parametrize("layout", ["loudness and level", "five models", "programme"])
def test_what_stands_beside_a_title_is_whole(qtbot, open_window, layout):
    window = open_window(engine_of(layout))
    window.first_start.skip.click()
    for size in SIZES[:2]:
        window.resize(*size)
        qtbot.waitUntil(lambda size=size: (window.width(), window.height()) == size)
        window.area.restore_default()
        qtbot.wait(300)
        shown = {one.text(): one.shown for one in window.findChildren(ElidedLabel) if on(one)}
        assert any(shown.values())
        assert not [text for text in shown.values() if text.endswith("\N{HORIZONTAL ELLIPSIS}")]
        if layout == "loudness and level":
            assert "higher" in shown["IEC 61672, higher of both channels"]


def on(widget):
    """Whether it is inside its window; Qt puts a dock behind a tab out of it."""
    place = QtCore.QRect(widget.mapTo(widget.window(), QtCore.QPoint()), widget.size())
    return widget.isVisible() and widget.window().rect().contains(place) and place.width() > 0


class Crowded(Plot):
    """Paints two texts on each other, one of them beyond its edge."""

    def __init__(self):
        super().__init__("crowded")

    def _paint_layers(self, painter: QtGui.QPainter) -> None:
        painter.drawText(self.rect().bottomRight() / 2, "first")
        painter.drawText(self.rect().adjusted(0, 0, 0, 0), 0x84, "a text that is far too long " * 5)


def test_painted_texts_are_seen_by_the_test(qtbot):
    window, plot = QtWidgets.QWidget(), Crowded()
    qtbot.addWidget(window)
    plot.setParent(window)
    window.resize(300, 100)
    plot.resize(300, 100)
    window.show()
    qtbot.waitExposed(window)
    texts = texts_of(window)
    assert [pair[0] for pair in overlapping(texts)] == ["first"]
    assert len(cut_texts(texts)) == 1


def test_a_name_with_an_and_is_written_as_one(qtbot):
    pane = pane_of("gm2002", ["gm2002_ltl_sone"])
    qtbot.addWidget(pane)
    heading = pane.head_bar.findChild(QtWidgets.QLabel, "gm2002_title")
    plain = QtWidgets.QLabel("Glasberg & Moore 2002")
    plain.setFont(heading.font())
    assert abs(heading.sizeHint().width() - plain.sizeHint().width()) <= 4
