"""A window on a screen of our own, with real engines behind it."""

import pytest
from pyqtgraph.Qt import QtCore

from amt_stream.dsp.models import Moore2016
from amt_stream.engine import Engine, SignalSource, Tone


@pytest.fixture(scope="session")
def model():
    """One model for all engines: a stage keeps no state, and making it takes time."""
    return Moore2016(fs=48000, specific_loudness=True)


@pytest.fixture(autouse=True)
def devices(request, monkeypatch):
    """Devices are looked for where a test has one: that takes two processes for each window."""
    from amt_monitor.base.device_combo_box import DeviceComboBox

    if "virtual_mic" not in request.fixturenames:
        monkeypatch.setattr(DeviceComboBox, "refresh", lambda self: None)


@pytest.fixture
def tone_engine(model):
    """Makes engines that measure the tone of 1 sone; keywords go to Engine."""

    def make(device=None, **settings):
        source = SignalSource([Tone(1000.0, level_db=40.0)])
        return Engine(source, model, **settings)

    return make


@pytest.fixture
def open_window(qtbot, tmp_path):
    """Opens a window, waits until it is on the screen, closes it in the end."""
    from amt_monitor.base.settings import Settings
    from amt_monitor.window.main_window import MainWindow

    windows = []

    def make(make_engine, readings=True, **settings):
        kept = Settings(tmp_path / "monitor.json")
        window = MainWindow(make_engine, settings=kept, **settings)
        windows.append(window)
        window.show()
        with qtbot.waitActive(window):
            # There is no window manager to give it the keyboard.
            window.activateWindow()
        if readings:
            qtbot.waitUntil(lambda: window.updater.shown is not None, timeout=15000)
        return window

    yield make
    for window in windows:
        window.close_now()
        window.deleteLater()
    # Here, and not when some thread collects garbage: widgets belong to this one.
    QtCore.QCoreApplication.sendPostedEvents(None, QtCore.QEvent.Type.DeferredDelete)
