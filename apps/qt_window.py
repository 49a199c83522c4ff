"""A window of one's own: rows cross from the sink's thread to Qt's by a signal.

python apps/qt_window.py        a tone that goes up and down, for three seconds
"""

from typing import Any

from pyqtgraph.Qt import QtCore, QtWidgets

from amt_stream import Engine, Moore2016, RowSink, am_tone_source


class Bridge(QtCore.QObject):
    """Its signal is given in one thread and heard in that of the window."""

    row = QtCore.Signal(dict)


def main() -> None:
    app = QtWidgets.QApplication([])
    label = QtWidgets.QLabel("--- phon")
    bridge = Bridge()

    def show(row: dict[str, Any]) -> None:
        label.setText(f"{row['stl_phon']:.1f} phon")
        print(f"{row['time_s']:4.1f} s {label.text()}")

    bridge.row.connect(show)
    source = am_tone_source(duration=3.0)
    sink = RowSink(bridge.row.emit, step_ms=200)
    with Engine(source, Moore2016(fs=source.fs), [sink]):
        label.show()
        QtCore.QTimer.singleShot(3500, app.quit)
        app.exec()


if __name__ == "__main__":
    main()
