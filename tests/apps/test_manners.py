"""All of the window by keyboard, in words for a screen reader, and nothing cut."""

import pytest
from pyqtgraph.Qt import QtCore, QtGui, QtWidgets

from amt_monitor.base.badge import LEAST_ENDS, Badge
from amt_monitor.base.message_bar import MessageBar
from amt_monitor.base.theme import theme
from amt_monitor.window.top_bar import DEVICE, StateChip, TopBar
from tests.apps.sizes import cut

Key, Button = QtCore.Qt.Key, QtCore.Qt.MouseButton.LeftButton


def reached_by_tab(window):
    """All that can be used just now, as the Tab key would come to it."""
    tab = QtCore.Qt.FocusPolicy.TabFocus
    return {
        widget
        for widget in window.findChildren(QtWidgets.QWidget)
        if isinstance(widget, QtWidgets.QAbstractButton | QtWidgets.QComboBox)
        or widget.focusPolicy() & tab == tab
        if widget.isVisible() and widget.isEnabled() and widget.window() is window
        if not isinstance(widget, QtWidgets.QMenuBar | QtWidgets.QTabBar)
        if not isinstance(widget.parent(), QtWidgets.QTabBar)
    }


def spoken(widget):
    """What a screen reader says of it; of a choice the words on it are its value."""
    text = getattr(widget, "text", str)() if not isinstance(widget, QtWidgets.QComboBox) else ""
    return widget.accessibleName() or text


def test_every_control_is_reached_by_tab_and_has_a_name(qtbot, open_window, tone_engine):
    window = open_window(tone_engine)
    window.resize(1280, 1000)
    wanted = reached_by_tab(window)
    assert len(wanted) > 12
    first = window.bar.buttons["pause"]
    first.setFocus()
    reached = [first]
    for _ in range(2 * len(wanted)):
        qtbot.keyClick(window.focusWidget() or window, Key.Key_Tab)
        if window.focusWidget() in reached:
            break
        reached.append(window.focusWidget())
    missing = [(type(one).__name__, one.objectName(), spoken(one)) for one in wanted - {*reached}]
    assert not missing
    unnamed = [(type(one).__name__, one.objectName()) for one in wanted if not spoken(one)]
    assert not unnamed
    # Buttons of the bar come first, from left to right.
    bar = [one for one in reached if window.bar.isAncestorOf(one)]
    assert bar == sorted(bar, key=lambda one: one.x())


def test_enter_presses_and_space_pauses(qtbot, open_window, tone_engine):
    window = open_window(tone_engine)
    freeze = window.bar.buttons["freeze"]
    freeze.setFocus()
    qtbot.keyClick(freeze, Key.Key_Return)
    assert window.updater.frozen
    qtbot.keyClick(freeze, Key.Key_Enter)
    assert not window.updater.frozen
    qtbot.keyClick(freeze, Key.Key_Space)
    qtbot.waitUntil(lambda: window.measurement.paused, timeout=5000)
    window.device.setFocus()
    qtbot.keyClick(window.device, Key.Key_Return)
    qtbot.waitUntil(window.device.view().isVisible, timeout=5000)
    window.device.hidePopup()
    close = next(
        one
        for one in window.area.docks["history"].findChildren(QtWidgets.QToolButton)
        if one.accessibleName().startswith("Close")
    )
    close.setFocus()
    qtbot.keyClick(close, Key.Key_Return)
    assert not window.area.docks["history"].isVisible()


def test_keys_do_the_same_in_the_window_of_a_pane(qtbot, open_window, tone_engine):
    window = open_window(tone_engine)
    dock = window.area.docks["history"]
    dock.open_alone()
    own, button = dock.pane.window(), dock.pane.choice
    with qtbot.waitActive(own):
        own.activateWindow()
    button.setFocus()
    qtbot.keyClick(button, Key.Key_Space)
    qtbot.waitUntil(lambda: window.measurement.paused, timeout=5000)
    qtbot.keyClick(own, Key.Key_S)
    qtbot.waitUntil(lambda: window.measurement.state == "stopped", timeout=15000)
    qtbot.keyClick(own, Key.Key_Escape)
    qtbot.waitUntil(lambda: dock.pane.window() is window, timeout=5000)


def test_menus_open_by_alt(qtbot, open_window, tone_engine):
    window = open_window(tone_engine)
    actions = window.findChild(QtWidgets.QMenuBar).actions()
    assert [action.text() for action in actions] == ["&File", "&Measure", "&View", "&Help"]
    for menu, key in zip((action.menu() for action in actions), "FMVH", strict=True):
        qtbot.keyClick(window, key.lower(), QtCore.Qt.KeyboardModifier.AltModifier)
        qtbot.waitUntil(menu.isVisible, timeout=5000)
        qtbot.keyClick(menu, Key.Key_Escape)
        qtbot.waitUntil(lambda menu=menu: not menu.isVisible(), timeout=5000)
        window.setFocus()
        texts = [action.text() for action in menu.actions() if action.text()]
        letters = [text.partition("&")[2][:1].lower() for text in texts]
        assert len(set(letters)) == len(letters), f"two of one letter, or of none: {texts}"


def test_a_narrow_badge_keeps_its_word(qtbot):
    badge = Badge()
    qtbot.addWidget(badge)
    badge.show_text("lost")
    wide = badge.fontMetrics().horizontalAdvance("lost")
    badge.resize(wide + 14, badge.sizeHint().height())
    picture = badge.grab().toImage()
    dark = QtGui.QColor(theme.colors.amber).lightness() - 20
    inside = range(LEAST_ENDS + 2, badge.width() - LEAST_ENDS - 2)
    lines = range(2, badge.height() - 2)
    written = [x for x in inside if any(picture.pixelColor(x, y).lightness() < dark for y in lines)]
    assert written[-1] - written[0] > 0.7 * wide


@pytest.mark.parametrize("words", ["uncalibrated", "channel 2 uncalibrated"])
def test_the_badge_of_the_calibration_is_whole_in_each_width(qtbot, words):
    texts = {"pause": "Pause", "stop": "Stop", "reset": "Reset", "mark": "Marker", "log": "Log"}
    actions = [QtGui.QAction(text) for text in texts.values()]
    for action, name in zip(actions, texts, strict=True):
        action.setObjectName(name)
    room = QtWidgets.QWidget()
    qtbot.addWidget(room)
    bar = TopBar(actions)
    bar.setParent(room)
    room.show()
    qtbot.waitExposed(room)
    bar.chip.show_states(["uncalibrated"], "00:00:05")
    bar.calibration.show_text(words)
    styles = set()
    for width in (800, 900, 960, 1024, 1100, 1280):
        bar.resize(width, 44)
        bar.layout().activate()
        needed = bar.calibration.fontMetrics().horizontalAdvance(words) + 2 * LEAST_ENDS
        assert bar.calibration.width() > needed, width
        parts = bar.chip, *bar.buttons.values(), bar.device, bar.calibration
        assert all(one.width() >= one.minimumSizeHint().width() for one in parts), width
        assert bar.device.width() >= DEVICE
        styles.add(bar.buttons["log"].toolButtonStyle())
    assert len(styles) == 2, "words where there is room, and only there"


@pytest.mark.cases(1)
@pytest.mark.parametrize("frozen", [False, True])
def test_the_bar_comes_to_rest_at_any_width(qtbot, open_window, tone_engine, frozen):
    """It showed and hid the words of its buttons forever where it had room for nearly all."""
    window = open_window(tone_engine)
    window.first_start.skip.click()
    qtbot.waitUntil(lambda: "settling" not in window.bar.chip.states)
    if frozen:
        window.freeze()
    bar, requests = window.bar, []

    class Requests(QtCore.QObject):
        def eventFilter(self, watched, event):
            if event.type() == QtCore.QEvent.Type.LayoutRequest:
                requests.append(bar.width())
            return False

    counter = Requests()
    bar.installEventFilter(counter)
    styles = set()
    for width in range(840, 980, 10):
        window.resize(width, 600)
        qtbot.waitUntil(lambda width=width: bar.width() == width)
        qtbot.wait(50)
        requests.clear()
        qtbot.wait(100)
        assert len(requests) < 10, width
        styles.add(bar.buttons["log"].toolButtonStyle())
    bar.removeEventFilter(counter)
    assert len(styles) == 2, "words where there is room, and only there"


def test_messages_do_not_cover_each_other_and_can_be_dismissed(qtbot):
    line = MessageBar()
    qtbot.addWidget(line)
    line.say(["a\x1b[2Jb", "", "the disk is full: make room", "a\x1b[2Jb"])
    line.resize(800, 60)
    line.show()
    assert line.text == "a\\x1b[2Jb\nThe disk is full: make room"
    qtbot.mouseClick(line.button, Button)
    assert not line.isVisible()
    line.say(["the disk is full: make room", "one more"])
    assert line.text == "One more"
    line.say([])
    line.say(["the disk is full: make room"])
    assert line.text == "The disk is full: make room"
    line.say(["usb_mic is gone: put it back"])
    assert line.text == "usb_mic is gone: put it back"
    assert line.isVisible()
    picture = line.grab().toImage()
    size = picture.width(), picture.height()
    found = {picture.pixelColor(x, y).name() for x in range(size[0]) for y in range(size[1])}
    assert not {theme.colors.red, theme.colors.amber, theme.colors.green} & found


def test_what_happens_again_is_said_again(qtbot, open_window, tone_engine):
    window = open_window(tone_engine)
    said = lambda: window.message.text  # noqa: E731
    for _ in range(2):
        qtbot.keyClick(window, Key.Key_I)
        assert "o sound is in memory:" in said()
        window.message.dismiss()
        window.show_state()
        assert "o sound is in memory:" not in said()
    for _ in range(2):
        qtbot.keyClick(window, Key.Key_R)
        qtbot.waitUntil(window.message.undo.isVisible, timeout=5000)
        assert "Readings were reset" in said()
        qtbot.wait(200)
        window.show_state()
        window.message.dismiss()
        qtbot.wait(500)
        assert "Readings were reset" not in said()


def test_the_first_steps_give_way_to_a_message_where_there_is_no_room_for_both(
    qtbot, open_window, tone_engine
):
    window = open_window(tone_engine)
    window.first_start.ask()
    for height, both in ((600, False), (800, True)):
        window.resize(1024, height)
        qtbot.waitUntil(lambda height=height: window.height() == height, timeout=5000)
        window.say("the disk is full: make room")
        assert (window.message.isVisible(), window.first_start.isVisible()) == (True, both)
        qtbot.mouseClick(window.message.button, Button)
        qtbot.waitUntil(window.first_start.isVisible, timeout=5000)
        window.say("")


@pytest.mark.parametrize("size", [(1024, 600), pytest.param((1280, 800), marks=pytest.mark.soak)])
def test_nothing_is_cut(qtbot, open_window, tone_engine, size):
    window = open_window(tone_engine)
    window.resize(*size)
    qtbot.waitUntil(lambda: (window.width(), window.height()) == size, timeout=5000)
    window.area.restore_default()
    qtbot.waitUntil(lambda: cut(window) == [])


def test_the_state_is_whole_without_room_for_its_clock(qtbot):
    chip = StateChip(18)
    qtbot.addWidget(chip)
    chip.show_states(["too slow", "settling"], "00:00:12")
    for width, texts in (
        (chip.sizeHint().width(), ["Too slow", "settling", "00:00:12"]),
        (chip.sizeHint().width() - 1, ["Too slow", "settling"]),
        (chip.minimumSizeHint().width(), ["Too slow"]),
    ):
        chip.resize(width, 32)
        assert [text.strip(" \N{MIDDLE DOT}") for text, _, _ in chip.shown_parts] == texts
    assert chip.accessibleName() == "too slow, settling, 00:00:12"


def test_panes_have_frames_in_high_contrast(qtbot, open_window, tone_engine):
    window, before = open_window(tone_engine), theme.choice
    theme.choose("contrast")
    try:
        for dock in window.area.docks.values():
            if dock.isVisible() and window.rect().contains(dock.geometry()):
                edge = dock.geometry().bottomLeft() + QtCore.QPoint(20, 1)
                color = window.grab().toImage().pixelColor(edge)
                assert color == QtGui.QColor(theme.colors.outline), dock.kind.name
    finally:
        theme.choose(before)


def test_enter_in_haste_presses_nothing(qtbot, open_window, tone_engine):
    window = open_window(tone_engine)
    pressed = []
    for name, action in window.actions_by_name.items():
        action.triggered.connect(lambda _=False, name=name: pressed.append(name))
    qtbot.keyClick(window.focusWidget() or window, Key.Key_Return)
    assert not pressed
    assert not window.measurement.paused
