"""Runs the window until the program's exit code."""

import gc
import os
import signal
import sys
import time

from pyqtgraph.Qt import QtCore
from pyqtgraph.util.garbage_collector import GarbageCollector

from amt_monitor.actions.limit_actions import ChangeLimits
from amt_monitor.actions.measurement_actions import MakeLog
from amt_monitor.actions.presets_menu import PresetOf
from amt_monitor.base.settings import Settings
from amt_monitor.base.theme import theme
from amt_monitor.window.application import application
from amt_monitor.window.main_window import MainWindow
from amt_stream.core.start_memory import give_back_code
from amt_stream.views.measurement_control import MakeEngine

ENDS = ("SIGINT", "SIGTERM", "SIGHUP")
ONE_S = 0.1
"""Signals within this time count as one."""
STARTED_MS = 5000
"""From the first readings until all code of the start has run."""


def run_window(
    make_engine: MakeEngine,
    make_log: MakeLog | None = None,
    preset_of: PresetOf | None = None,
    change_limits: ChangeLimits | None = None,
    *,
    duration: float | None = None,
) -> int:
    """Show the meter until it is closed, or has measured for `duration` seconds.

    make_engine: `make_engine(request)` makes an engine for a `MeasurementRequest`, not yet
        started; to resume a measurement it attaches `request.resumed` and restores its snapshot
    make_log: `make_log(engine, folder)` makes a log; without it the window offers no logging
    preset_of: `preset_of(engine)` gives the preset of an engine; without it none can be saved
    change_limits: `change_limits(engine, limits)` lets other limits judge a running engine, or
        returns why it cannot; without it, other limits begin a new measurement

    Returns the exit code: 0; 3 when the device was lost, or 1 when it could not be used, and
    nothing was started after that; 130 after Ctrl+C, 143 after SIGTERM, 129 after SIGHUP. A second
    one of these ends the process at once.
    """
    app = application()
    settings = Settings()
    theme.choose(settings.get("theme", theme.choice))
    window = MainWindow(make_engine, make_log, settings, preset_of, change_limits)
    signals: list[int] = []
    asked_at = 0.0

    def end(number: int, _: object) -> None:
        nonlocal asked_at
        if signals and time.monotonic() - asked_at > ONE_S:
            os._exit(128 + number)
        if not signals:
            signals.append(number)
            asked_at = time.monotonic()
            window.close_now()

    def count_down() -> None:
        if window.measurement.busy:
            QtCore.QTimer.singleShot(50, count_down)
        else:
            QtCore.QTimer.singleShot(round(1000 * (duration or 0)), window.close_now)

    def spare_what_stays() -> None:
        # A garbage collection scans all imported modules: 0.2 s in which no thread runs Python.
        if window.updater.shown is None:
            QtCore.QTimer.singleShot(500, spare_what_stays)
        else:
            gc.freeze()
            QtCore.QTimer.singleShot(STARTED_MS, give_back_code)

    before = {
        number: signal.signal(number, end)
        for number in (getattr(signal, name) for name in ENDS if hasattr(signal, name))
        if signal.getsignal(number) is not signal.SIG_IGN
    }
    # Collected in an engine's thread, garbage might hold a widget of the main thread.
    collector = GarbageCollector()
    spare_what_stays()
    # Painting must not keep the device's callback waiting for the interpreter's lock.
    switch_interval = sys.getswitchinterval()
    sys.setswitchinterval(0.0005)
    try:
        if duration is not None:
            count_down()
        window.show()
        app.exec()
    finally:
        sys.setswitchinterval(switch_interval)
        collector.timer.stop()
        gc.enable()
        for number, handler in before.items():
            signal.signal(number, handler)
        window.close_now()
    return 128 + signals[0] if signals else window.exit_code()
