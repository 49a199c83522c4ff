"""The meters of the input level."""

from pyqtgraph.Qt import QtCore, QtGui

from amt_monitor.base.theme import theme
from amt_monitor.panes.level_pane import LevelMeters


def test_the_meters_use_the_width_of_a_narrow_pane(qtbot):
    meters = LevelMeters()
    qtbot.addWidget(meters)
    meters.show()
    qtbot.waitExposed(meters)
    for width in (124, 180):
        meters.resize(width, 150)
        qtbot.waitUntil(lambda width=width: meters.width() == width)
        left, right = meters._grooves
        assert right.right() - left.left() > 0.6 * width
        assert left.width() == right.width() == round(0.2 * width)
        assert not left.intersects(right)


def test_a_clip_stays_until_a_click(qtbot):
    meters = LevelMeters()
    qtbot.addWidget(meters)
    meters.resize(140, 200)
    meters.full_scale_db = (120.0,)
    left, right = meters.ears
    left.follow(0.0, 120.0, clipped=True)
    right.follow(0.0, 86.0)
    left.follow(60.0, 30.0)
    assert left.clipped
    assert not right.clipped
    assert meters.headroom(1) == "-34 dBFS"
    qtbot.mouseClick(meters, QtCore.Qt.MouseButton.LeftButton)
    assert not left.clipped


def test_the_meters_are_empty_while_nothing_is_measured(qtbot, open_window, tone_engine):
    window = open_window(tone_engine)
    pane = window.area.docks["levels"].pane
    meters, accent = pane.meters, QtGui.QColor(theme.colors.accent)

    def filled():
        picture = meters.grab().toImage()
        places = [groove.center().x() for groove in meters._grooves]
        return [picture.pixelColor(x, meters._grooves[0].bottom() - 2) == accent for x in places]

    qtbot.waitUntil(lambda: filled() == [True, True], timeout=5000)
    meters.ears[0].clipped = True
    qtbot.keyClick(window, QtCore.Qt.Key.Key_S)
    qtbot.waitUntil(lambda: filled() == [False, False], timeout=5000)
    qtbot.wait(300)  # longer than numbers stand
    assert filled() == [False, False]
    assert pane.texts() == ("40.0", "40.0"), "the last ones"
    assert meters.ears[0].clipped
    qtbot.keyClick(window, QtCore.Qt.Key.Key_S)
    qtbot.waitUntil(lambda: filled() == [True, True], timeout=15000)
