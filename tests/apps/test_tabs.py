"""Tabs of panes that have no room beside each other."""

from pyqtgraph.Qt import QtCore

from amt_monitor.base.theme import theme
from tests.apps.texts import engine_of, faults_of, tab_bars

SMALL = 820, 560
LEAST = 800, 520


def covered(window):
    """Each tab bar with the pane that it lies over."""
    panes = [dock.pane for dock in window.area.docks.values() if dock.is_seen]
    boxes = {
        pane.objectName(): QtCore.QRect(pane.mapTo(window, QtCore.QPoint()), pane.size())
        for pane in panes
        if pane.window() is window
    }
    return [
        (bar.tabText(0), name)
        for bar in tab_bars(window)
        for name, box in boxes.items()
        if box.intersects(bar.geometry())
    ]


def resize(qtbot, window, size):
    window.resize(*size)
    qtbot.waitUntil(lambda: (window.width(), window.height()) == size)


def test_no_tab_bar_lies_over_a_pane(qtbot, open_window):
    """In the smallest window too, with the first steps above the panes and without them."""
    window = open_window(engine_of("loudness and level"))
    assert (window.minimumWidth(), window.minimumHeight()) == LEAST
    sizes = [LEAST, SMALL, (1280, 800)]
    assert window.first_start.isVisible()
    for size in (*sizes, None, *sizes):
        if size is None:
            window.first_start.skip.click()
            continue
        resize(qtbot, window, size)
        window.area.restore_default()
        small = size[0] < 1000
        qtbot.waitUntil(lambda small=small: bool(tab_bars(window)) == small)
        qtbot.waitUntil(lambda: covered(window) == [])
        for dock in [one for one in window.area.docks.values() if not one.isVisible()]:
            dock.toggleViewAction().trigger()
            qtbot.wait(50)
            dock.close()
        qtbot.waitUntil(lambda: covered(window) == [])


def test_tabs_of_another_layout_are_gone_at_once(qtbot, open_window):
    """Before Qt lays anything out."""
    window = open_window(engine_of("loudness and level"))
    for size in ((1024, 600), (1024, 768)):
        resize(qtbot, window, size)
        window.area.restore_default()
    assert covered(window) == []


def test_the_history_is_a_tab_of_the_numbers_where_both_have_no_room(qtbot, open_window):
    window = open_window(engine_of("programme"))
    assert window.first_start.isVisible()
    resize(qtbot, window, LEAST)
    window.area.restore_default()
    qtbot.waitUntil(lambda: covered(window) == [] and faults_of(window) == [])
    window.first_start.skip.click()
    qtbot.waitUntil(lambda: window.area.docks["history"].is_seen)
    assert window.area.docks["bs1770"].is_seen
    assert covered(window) == []


def test_a_window_that_is_made_small_has_tabs_until_it_is_large_again(qtbot, open_window):
    """By hand, without restoring a layout."""
    window = open_window(engine_of("five models"))
    window.first_start.skip.click()
    resize(qtbot, window, (1280, 800))
    seen = lambda: {name for name, dock in window.area.docks.items() if dock.is_seen}  # noqa: E731
    whole = {*window.area.docks} - {"limits", "distribution", "numbers", "events", "health", "ears"}
    qtbot.waitUntil(lambda: seen() == whole)
    for size in ((1024, 600), LEAST):
        resize(qtbot, window, size)
        qtbot.waitUntil(lambda: covered(window) == [] and faults_of(window) == [])
        assert len(tab_bars(window)) > 0
        window.area.keep()
    resize(qtbot, window, (1280, 800))
    qtbot.waitUntil(lambda: seen() == whole and tab_bars(window) == [])
    assert covered(window) == []


def test_what_is_closed_in_a_small_window_stays_closed(qtbot, open_window):
    window = open_window(engine_of("five models"))
    window.first_start.skip.click()
    resize(qtbot, window, (1280, 800))
    qtbot.waitUntil(lambda: window.area.docks["zwicker"].is_seen)
    resize(qtbot, window, LEAST)
    qtbot.waitUntil(lambda: len(tab_bars(window)) > 0)
    window.area.docks["zwicker"].close()
    resize(qtbot, window, (1280, 800))
    qtbot.waitUntil(lambda: tab_bars(window) == [] and window.area.docks["history"].is_seen)
    assert window.area.docks["zwicker"].isHidden()


def test_what_was_closed_or_opened_stays_so_where_there_is_less_room(qtbot, open_window):
    """In a smaller window, and while a message takes room."""
    window = open_window(engine_of("five models"))
    window.first_start.skip.click()
    resize(qtbot, window, (1280, 800))
    qtbot.waitUntil(lambda: window.area.docks["zwicker"].is_seen)
    window.area.docks["zwicker"].close()
    window.area.docks["events"].toggleViewAction().trigger()
    for size in ((1280, 800), LEAST, (1280, 800)):
        resize(qtbot, window, size)
        for words in ("the disk is full: make room", ""):
            window.say(words)
            window.show_state()
            qtbot.waitUntil(lambda: not window.area.has_other_room)
            assert window.area.docks["zwicker"].isHidden(), (size, words)
            assert not window.area.docks["events"].isHidden(), (size, words)
            qtbot.waitUntil(lambda: covered(window) == [])
    assert window.area.docks["history"].is_seen


def test_the_tab_in_front_is_filled(qtbot, open_window):
    window, before = open_window(engine_of("five models")), theme.choice
    resize(qtbot, window, SMALL)
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
