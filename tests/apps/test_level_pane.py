"""The meters of the input level."""

from pyqtgraph.Qt import QtCore

from amt_monitor.level_pane import LevelMeters


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
