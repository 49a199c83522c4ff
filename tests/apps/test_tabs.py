"""Tabs of panes that have no room beside each other."""

from pyqtgraph.Qt import QtWidgets

from amt_monitor.theme import theme
from tests.apps.texts import engine_of

SMALL = 820, 560


def tab_bars(window):
    """Those that are seen with more than one tab: Qt keeps others for later."""
    direct = window.findChildren(QtWidgets.QTabBar)
    return [bar for bar in direct if bar.parent() is window and bar.isVisible() and bar.count() > 1]


def test_the_tab_in_front_is_filled(qtbot, open_window):
    window, before = open_window(engine_of("five models")), theme.choice
    window.resize(*SMALL)
    qtbot.waitUntil(lambda: (window.width(), window.height()) == SMALL)
    window.area.restore_default()
    qtbot.waitUntil(lambda: len(tab_bars(window)) > 0)
    try:
        for choice in ("light", "dark", "contrast"):
            theme.choose(choice)
            qtbot.wait(50)
            (bar, *_) = tab_bars(window)
            picture = bar.grab().toImage()
            at = [bar.tabRect(k).topLeft() for k in range(2)]
            front, behind = (picture.pixelColor(one.x() + 4, one.y() + 5).name() for one in at)
            assert bar.currentIndex() == 0
            assert (front, behind) == (theme.colors.accent, theme.colors.paper)
    finally:
        theme.choose(before)
