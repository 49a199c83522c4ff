"""What a screen reader says about the window, read through Qt's accessibility interface.

PyQt6 does not have that interface, so the window runs by PySide6, in a process of its own.
"""

import json

import pytest

from amt_monitor.panes.history_pane import SPANS
from amt_stream.meters.state_signs import SIGNS
from tests.apps.pyside import run_by_pyside

PROGRAM = """
import json
import sys
from amt_monitor.window.application import application
from amt_stream.cli.commands.monitor import run_monitor
from PySide6.QtGui import QAccessible
from PySide6.QtTest import QTest
from pyqtgraph.Qt import QtCore, QtWidgets

app, told = application(), {}
BOXES = QtWidgets.QComboBox | QtWidgets.QAbstractSpinBox | QtWidgets.QScrollBar

def found(window):
    tab = QtCore.Qt.FocusPolicy.TabFocus
    for one in window.findChildren(QtWidgets.QWidget):
        is_control = isinstance(one, QtWidgets.QAbstractButton | QtWidgets.QComboBox)
        if not one.isVisible() or not one.isEnabled() or one.window() is not window:
            continue
        inner = isinstance(one.parent(), BOXES | QtWidgets.QTabBar)
        if inner or isinstance(one, QtWidgets.QMenuBar):
            continue
        if (is_control or one.focusPolicy() & tab == tab) and one.focusProxy() is None:
            yield one

def spoken(one):
    interface = QAccessible.queryAccessibleInterface(one)
    text = interface.text(QAccessible.Text.Name)
    if not text and interface.role() == QAccessible.Role.PageTabList:
        tabs = map(interface.child, range(interface.childCount()))
        text = ", ".join(tab.text(QAccessible.Text.Name) for tab in tabs)
    return interface.role().name, text, one.objectName()

def read(name, window):
    window.activateWindow()
    QTest.qWaitForWindowActive(window)
    controls, reached = [*found(window)], set()
    for _ in range(3 * len(controls) + 20):
        if (now := window.focusWidget()) is not None:
            reached.add(now)
        QTest.keyClick(now or window, QtCore.Qt.Key.Key_Tab)
    far = [spoken(one) for one in controls if one not in reached and not is_in_group(one)]
    told[name] = {"controls": [spoken(one) for one in controls], "not reached": far}

def is_in_group(one):
    # Of radio buttons, Tab reaches the checked one; the arrow keys choose another.
    return isinstance(one, QtWidgets.QRadioButton | QtWidgets.QTabBar)

def look():
    shown = [w for w in app.topLevelWidgets() if w.objectName() == "amt_monitor"]
    if not shown or shown[0].updater.shown is None or "begun" in told:
        return
    window, told["begun"] = shown[0], True
    read("main", window)
    told["state"] = spoken(window.bar.chip)[1]
    for command in ("choose_limits", "choose_settings", "calibrations", "keys"):
        window.actions_by_name[command].trigger()
        dialogs = [w for w in app.topLevelWidgets() if isinstance(w, QtWidgets.QDialog)]
        dialog = next(w for w in dialogs if w.isVisible())
        read(command, dialog)
        dialog.reject()
    print(json.dumps(told))
    window.close_now()

timer = QtCore.QTimer()
timer.timeout.connect(look)
timer.start(100)
run_monitor(["--source", "demo", "--duration", "60", "--model", "moore2016,third_octave"])
"""


@pytest.fixture(scope="module")
def told(xvfb, tmp_path_factory):
    folder = str(tmp_path_factory.mktemp("config"))
    return json.loads(run_by_pyside(PROGRAM, XDG_CONFIG_HOME=folder))


def test_the_state_and_the_spans_of_the_history_are_heard(told):
    state, clock = told["state"].split(", ")[0], told["state"].split(", ")[-1]
    assert state in SIGNS
    assert clock.startswith("00:")
    names = {name for _, name, _ in told["main"]["controls"]}
    assert {f"show {text}" for text in SPANS} <= names


LEAST = {"main": 20, "choose_limits": 10, "choose_settings": 7, "calibrations": 2, "keys": 1}


@pytest.mark.parametrize("name", LEAST)
def test_every_control_is_named_and_reached_by_tab(told, name):
    controls = told[name]["controls"]
    assert len(controls) >= LEAST[name]
    assert not [one for one in controls if not one[1].strip()]
    assert not told[name]["not reached"]
