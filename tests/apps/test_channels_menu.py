"""The menu sends one of two channels to both ears, and then each channel to its own ear again."""

import numpy as np
import pytest
import soundfile
from pyqtgraph.Qt import QtGui

from amt_monitor.channels_menu import channels_words
from amt_monitor.main_window import MainWindow
from amt_monitor.settings import Settings
from amt_stream.cli.command import build_parser
from amt_stream.cli.preset import chosen_preset
from amt_stream.cli.window import Maker

FS = 48000


@pytest.fixture
def window(qtbot, tmp_path):
    """It plays a sound whose right channel is 20 dB below the left one."""
    tone = 0.1 * np.sin(2 * np.pi * 1000 * np.arange(60 * FS) / FS)
    path = tmp_path / "tone.wav"
    soundfile.write(path, np.stack([tone, 0.1 * tone], 1), FS, subtype="FLOAT")
    words = ["meter", "--source", str(path), "--full-scale-db", "100", "--model", "spl"]
    args = build_parser().parse_args(words)
    maker = Maker(args, chosen_preset(args))
    opened = MainWindow(maker.engine, maker.log, Settings(tmp_path / "monitor.json"), maker.preset)
    opened.show()
    qtbot.waitUntil(lambda: opened.shown is not None, timeout=60000)
    yield opened
    opened.close_now()


def choose(qtbot, window, name):
    begun = window.measurement.begun
    window.menus.channels.fill()
    window.menus.channels.findChild(QtGui.QAction, name).trigger()
    qtbot.waitUntil(lambda: window.measurement.begun > begun, timeout=20000)
    qtbot.waitUntil(lambda: window.area.begun == window.measurement.begun, timeout=20000)


def checked(window):
    window.menus.channels.fill()
    return [one.objectName() for one in window.menus.channels.actions() if one.isChecked()]


def test_a_channel_for_both_ears_and_two_again(qtbot, window):
    levels = lambda: window.shown.texts.get("levels")  # noqa: E731
    left, right = "80.0", "60.0"
    qtbot.waitUntil(lambda: levels() == (left, right), timeout=10000)
    assert checked(window) == ["channels_usual"]
    for channel, level in ((2, right), (1, left)):
        choose(qtbot, window, f"channels_{channel}")
        qtbot.waitUntil(lambda level=level: levels() == (level, level), timeout=10000)
        assert len(window.measurement.engine.calibration) == 1
        assert checked(window) == [f"channels_{channel}"]
    choose(qtbot, window, "channels_1_2")
    qtbot.waitUntil(lambda: levels() == (left, right), timeout=10000)


def test_channels_in_words():
    told = [channels_words(one) for one in (None, (1, 2), (3,))]
    assert told == ["As usual", "1 left, 2 right", "3 for both ears"]
