"""A meter's window, from its opening to the program's exit code."""

import signal
import sys

from pyqtgraph.Qt import QtCore, QtWidgets

from amt_monitor.loudness_window import LoudnessWindow
from amt_monitor.meter_window import MeterWindow
from amt_monitor.switch import MakeEngine


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
    nothing was started after that; 130 after Ctrl+C, 143 after SIGTERM.
    """
    app = QtWidgets.QApplication.instance() or QtWidgets.QApplication(sys.argv[:1])
    window = window_type(make_engine, title)
    signals: list[int] = []

    def end(number: int, _: object) -> None:
        signals.append(number)
        window.close()

    def count_down() -> None:
        if window.switch.busy:
            QtCore.QTimer.singleShot(50, count_down)
        else:
            QtCore.QTimer.singleShot(round(1000 * (duration or 0)), window.close)

    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
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
