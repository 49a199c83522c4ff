"""The window used hard: nothing leaks, nothing is thrown, no thread is left."""

import gc
import sys
import threading

import pytest
from pyqtgraph.Qt import QtCore, QtWidgets

from amt_monitor.base.settings import Settings
from amt_monitor.window.main_window import MainWindow
from amt_stream.engine import Engine, MicrophoneSource, SignalSource, Tone
from amt_stream.meters.presets import Preset
from tests.soak.memory import resident_mb

FS = 48000


@pytest.mark.soak
def test_starts_switches_sizes_and_layouts(record, qtbot, tmp_path, virtual_mic, monkeypatch):
    thrown = []
    monkeypatch.setattr(sys, "excepthook", lambda *what: thrown.append(what))
    monkeypatch.setattr(threading, "excepthook", thrown.append)
    models = Preset().models(FS, 2, specific_loudness=True)

    def make(wanted):
        if wanted.device is not None:
            return Engine(MicrophoneSource(wanted.device), models)
        return Engine(SignalSource([Tone(1000.0, level_db=60.0)], FS), models)

    threads = set(threading.enumerate())
    window = MainWindow(make, settings=Settings(tmp_path / "monitor.json"))
    qtbot.addWidget(window)
    window.show()

    def state(*words):
        qtbot.waitUntil(lambda: window.measurement.state in words, timeout=30000)
        window.show_state()

    qtbot.waitUntil(lambda: window.updater.shown is not None, timeout=60000)
    began_mb, began_widgets = 0.0, 0
    for k in range(100):
        window.targets.measurement.stop()
        state("stopped")
        window.targets.measurement.new_measurement()
        state("running")
        if k == 49:
            gc.collect()
            began_mb, began_widgets = resident_mb(), len(QtWidgets.QApplication.allWidgets())
    qtbot.waitUntil(lambda: window.device.findData("virtual_mic") > 0, timeout=15000)
    place = window.device.findData("virtual_mic")
    for k in range(50):
        window.device.setCurrentIndex(place if k % 2 == 0 else 0)
        window.targets.measurement.change_input()
        state("running")
    for k in range(200):
        window.resize(1024 + 7 * (k % 50), 600 + 11 * (k % 30))
        qtbot.wait(5)
    docks = list(window.area.docks.values())
    for k in range(20):
        dock = docks[k % len(docks)]
        dock.setVisible(not dock.isVisible())
        qtbot.wait(20)
        window.area.restore_default()
        qtbot.wait(20)
    qtbot.wait(1000)
    gc.collect()
    grown = resident_mb() - began_mb
    widgets = len(QtWidgets.QApplication.allWidgets()) - began_widgets
    total = resident_mb()
    assert window.measurement.engine.health.lost_samples == 0
    window.close_now()
    qtbot.waitUntil(lambda: set(threading.enumerate()) <= threads, timeout=15000)
    record(
        "window: 100 starts and stops, 50 switches of device, 200 sizes, 20 layouts",
        f"memory {total:.0f} MB, {grown:+.1f} MB since the fiftieth start; {widgets:+d} widgets; "
        f"{len(thrown)} exceptions, no thread left",
    )
    assert not thrown
    # Heaps of threads that are gone keep some.
    assert grown < 40
    assert widgets <= 4
    assert QtCore.QCoreApplication.instance() is not None
