"""A plot paints what it is given, where the axes say, and only what has changed."""

import numpy as np
import pytest
from pyqtgraph.Qt import QtCore, QtGui

from amt_monitor.base.theme import DARK, LIGHT, theme
from amt_monitor.plot import curve_layers
from amt_monitor.plot.curve_layers import CurveLayer, FillBetweenLayer
from amt_monitor.plot.image_layers import ImageLayer, color_table
from amt_monitor.plot.plot import Plot, PlotAxis
from tests.apps.expose import expose

DECADES = [(float(v), str(v)) for v in range(0, 101, 20)]


@pytest.fixture
def plot(qtbot):
    plot = Plot("plot")
    plot.set_axes(PlotAxis(0.0, 100.0, DECADES), PlotAxis(0.0, 100.0, DECADES))
    return expose(qtbot, plot, 400, 300)


def color_at(plot, x, y):
    ((across, up),) = plot.points([x], [y]).tolist()
    return plot.grab().toImage().pixelColor(round(across), round(up)).name()


def test_the_smallest_plot_still_has_room_for_its_curves(plot):
    plot.top = [(50.0, "50")]
    plot.resize(plot.minimumSizeHint())
    plot.grab()
    assert plot.inside.height() >= 0.4 * plot.height()
    assert plot.inside.width() >= 0.4 * plot.width()


def test_a_line_goes_through_its_points(plot):
    curve = CurveLayer("right", width=5)
    plot.add(curve)
    curve.set([10.0, 50.0, 90.0], [30.0, 30.0, 70.0])
    assert color_at(plot, 30.0, 30.0) == color_at(plot, 90.0, 70.0) == LIGHT.right
    assert color_at(plot, 30.0, 35.0) == LIGHT.paper


def test_a_line_is_broken_where_nothing_is_known(plot):
    curve, between = CurveLayer("left", width=3), FillBetweenLayer("red", opacity=1.0)
    plot.add(between)
    plot.add(curve)
    y = np.array([np.nan, 50.0, 50.0, np.nan, 50.0, 50.0])
    curve.set([0.0, 10.0, 30.0, 50.0, 70.0, 90.0], y)
    between.set([0.0, 10.0, 30.0, 50.0, 70.0, 90.0], y - 40.0, y - 20.0)
    assert color_at(plot, 21.0, 50.0) == color_at(plot, 81.0, 50.0) == LIGHT.left
    assert color_at(plot, 21.0, 22.0) == color_at(plot, 81.0, 22.0) == LIGHT.red
    for y in (22.0, 50.0):
        assert color_at(plot, 50.0, y) == LIGHT.paper


@pytest.mark.parametrize("dashed", [False, True])
def test_a_line_in_pieces_looks_like_a_whole_one(plot, monkeypatch, dashed):
    curve = CurveLayer("ink", dashed, width=1.5)
    plot.add(curve)
    x = np.linspace(0.0, 100.0, 150)
    y = 50.0 + np.random.default_rng(1).normal(0.0, 10.0, 150).cumsum() / 10.0
    y[70:75] = np.nan
    curve.set(x, y)
    in_pieces = grey_values(plot)
    monkeypatch.setattr(curve_layers, "PIECE", 1000)
    curve.place()
    differ = np.abs(in_pieces - grey_values(plot))
    assert differ.any()
    assert np.count_nonzero(differ > 60) < 0.02 * np.count_nonzero(in_pieces < 200)


def grey_values(plot):
    picture = plot.grab().toImage().convertToFormat(QtGui.QImage.Format.Format_Grayscale8)
    return np.array(
        [
            [picture.pixelColor(x, y).red() for x in range(plot.width())]
            for y in range(plot.height())
        ]
    )


def test_values_and_places_belong_together(plot):
    ((across, up),) = plot.points([25.0], [75.0]).tolist()
    assert plot.values(QtCore.QPointF(across, up)) == pytest.approx((25.0, 75.0), abs=0.5)


class Painted(QtCore.QObject):
    """The areas that a widget was asked to paint."""

    def __init__(self, widget):
        super().__init__()
        self.areas = []
        widget.installEventFilter(self)

    def eventFilter(self, _, event):
        if event.type() == QtCore.QEvent.Type.Paint:
            self.areas.append(event.region().boundingRect())
        return False


def test_only_what_has_changed_is_painted(qtbot, plot):
    curve = CurveLayer("left")
    plot.add(curve)
    x, y = np.arange(0.0, 101.0, 10.0), np.full(11, 50.0)
    painted = Painted(plot)
    curve.set(x, y)
    qtbot.waitUntil(lambda: bool(painted.areas))
    qtbot.wait(100)
    painted.areas.clear()
    curve.set(x, y + 1e-6)
    qtbot.wait(100)
    assert not painted.areas
    y[8] = 60.0
    curve.set(x, y)
    qtbot.waitUntil(lambda: bool(painted.areas))
    (left, _), (right, _) = plot.points([70.0, 90.0], [0.0, 0.0]).tolist()
    (area,) = painted.areas
    assert left - 4 <= area.left()
    assert area.right() <= right + 4
    assert area.height() < 60


def test_a_picture_is_in_the_colors_of_its_values(plot):
    picture = ImageLayer(0.0, 10.0)
    plot.add(picture)
    picture.set_extent(0.0, 0.0, 100.0, 100.0)
    picture.set([[0.0, 10.0], [np.nan, 5.0]])
    colors = [QtGui.QColor(number).name() for number in color_table()]
    assert color_at(plot, 25.0, 25.0) == colors[0]
    assert color_at(plot, 75.0, 25.0) == colors[254]
    assert color_at(plot, 75.0, 75.0) == colors[127]
    assert color_at(plot, 25.0, 75.0) == LIGHT.paper


def test_another_theme_is_painted_at_once(qtbot, plot):
    curve = CurveLayer("left", width=3)
    plot.add(curve)
    curve.set([0.0, 100.0], [50.0, 50.0])
    before = theme.choice
    try:
        theme.choose("dark")
        assert color_at(plot, 30.0, 50.0) == DARK.left
        assert color_at(plot, 30.0, 30.0) == DARK.paper
    finally:
        theme.choose(before)
