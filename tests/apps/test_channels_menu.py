"""The menu sends one of two channels to both ears, and then each channel to its own ear again."""

import numpy as np
import pytest
import soundfile
from pyqtgraph.Qt import QtGui

from amt_monitor.actions.channels_menu import channels_words
from amt_monitor.base.settings import Settings
from amt_monitor.window.main_window import MainWindow
from amt_stream.cli.command import build_parser
from amt_stream.cli.preset import chosen_preset
from amt_stream.cli.window import Maker
from amt_stream.views.health_text import health_lines

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
    qtbot.waitUntil(lambda: opened.updater.shown is not None, timeout=60000)
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
    levels = lambda: window.updater.shown.texts.get("levels")  # noqa: E731
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


@pytest.fixture
def film(tmp_path):
    """A sound of six channels that does not say what they are for; the second is the loudest."""
    tone = np.sin(2 * np.pi * 1000 * np.arange(60 * FS) / FS)
    levels = 10 ** (np.array([-40, -24, -34, -36, -30, -12]) / 20)
    path = tmp_path / "film.wav"
    soundfile.write(path, np.outer(tone, levels).astype(np.float32), FS, subtype="FLOAT")
    return path


def test_a_layout_of_more_channels(qtbot, tmp_path, film):
    words = ["meter", "--source", str(film), "--full-scale-db", "100", "--model", "bs1770,spl"]
    args = build_parser().parse_args([*words, "--layout", "5.1"])
    maker = Maker(args, chosen_preset(args))
    window = MainWindow(maker.engine, maker.log, Settings(tmp_path / "monitor.json"), maker.preset)
    window.show()
    try:
        qtbot.waitUntil(lambda: window.updater.shown is not None, timeout=60000)
        levels = lambda: window.updater.shown.texts.get("levels")  # noqa: E731
        qtbot.waitUntil(lambda: levels() == ("60.0", "76.0"), timeout=10000)
        window.menus.channels.fill()
        offered = [one.objectName() for one in window.menus.channels.actions()]
        assert [name for name in offered if name.startswith("layout")] == [
            "layout_5.1",
            "layout_6.0",
        ]
        engine = window.measurement.engine
        lines = {one.what: one.words for one in health_lines(engine)}
        assert lines["Input"] == "film.wav, 48000 Hz, 6 channels: 5.1 (L R C LFE Ls Rs)"
        assert "spl hears channel 1 (L) as left and 2 (R) as right" in lines["Channels"]
        choose(qtbot, window, "layout_6.0")
        assert checked(window) == ["layout_6.0"]
        engine = window.measurement.engine
        assert engine.source.description.layout.name == "6.0"
        assert engine.models["bs1770"].layout.name == "6.0"
        choose(qtbot, window, "channels_1_2")
        assert window.measurement.running_request.layout is None
        assert window.measurement.engine.heard.channels == (1, 2)
    finally:
        window.close_now()
