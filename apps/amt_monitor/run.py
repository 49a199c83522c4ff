"""A meter's window, from its opening to the program's exit code."""

import os
import signal
import sys
import time

from pyqtgraph.Qt import QtCore

from amt_monitor.application import application
from amt_monitor.loudness_window import LoudnessWindow
from amt_monitor.meter_window import MeterWindow
from amt_monitor.switch import MakeEngine
from amt_monitor.theme import theme

ENDS = ("SIGINT", "SIGTERM", "SIGHUP")
ONE_S = 0.1
"""Signals that come together are one."""


def run_window(
    make_engine: MakeEngine,
    window_type: type[MeterWindow] = LoudnessWindow,
    *,
    duration: float | None = None,
    title: str = "amt_stream",
) -> int:
    """Show the meter until it is closed, or has measured for `duration` seconds.

    window_type: which window fits what the engine's models give; the engines of a `ReadingsWindow`
        have a sink `LatestReadings`
    make_engine: `make_engine(device)` gives a new engine, not yet started, for an input device;
        None is the one that the command line names

    Returns the exit code: 0; 3 when the device was lost, or 1 when it could not be used, and
    nothing was started after that; 130 after Ctrl+C, 143 after SIGTERM, 129 after SIGHUP. A second
    one of these ends the process at once.
    """
    app = application()
    theme.choose(theme.choice)
    window = window_type(make_engine, title)
    signals: list[int] = []
    asked_at = 0.0

    def end(number: int, _: object) -> None:
        nonlocal asked_at
        if signals and time.monotonic() - asked_at > ONE_S:
            os._exit(128 + number)
        if not signals:
            signals.append(number)
            asked_at = time.monotonic()
            window.close()

    def count_down() -> None:
        if window.switch.busy:
            QtCore.QTimer.singleShot(50, count_down)
        else:
            QtCore.QTimer.singleShot(round(1000 * (duration or 0)), window.close)

    before = {
        number: signal.signal(number, end)
        for number in (getattr(signal, name) for name in ENDS if hasattr(signal, name))
        if signal.getsignal(number) is not signal.SIG_IGN
    }
    # A painting window must not keep the device's callback waiting for the interpreter's lock.
    switch_interval = sys.getswitchinterval()
    sys.setswitchinterval(0.0005)
    try:
        if duration is not None:
            count_down()
        window.show()
        app.exec()
    finally:
        sys.setswitchinterval(switch_interval)
        for number, handler in before.items():
            signal.signal(number, handler)
        window.close()
    return 128 + signals[0] if signals else window.exit_code()
