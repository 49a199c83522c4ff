"""A plot over a logarithmic frequency axis, with a cursor."""

import numpy as np
from numpy.typing import NDArray
from pyqtgraph.Qt import QtCore, QtGui

from amt_monitor.plot.plot import Plot, PlotAxis, Ticks
from amt_stream.meters.accumulators.spectrum import HIGHEST_HZ, LOWEST_HZ

Levels = NDArray[np.floating]

HZ_TICKS = (20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000)
HZ_LINES = [d * 10**e for e in (1, 2, 3, 4) for d in range(1, 10)]
STEPS = 300
"""Steps of the cursor from one end to the other."""


class FrequencyPlot(Plot):
    """From 20 Hz to 20 kHz; positions are lg of hertz.

    The cursor follows the mouse; Left and Right move it, Escape removes it.
    """

    pointed = QtCore.Signal()

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.setMouseTracking(True)
        self.setFocusPolicy(QtCore.Qt.FocusPolicy.StrongFocus)
        self.cursor_lg: float | None = None
        """Frequency of the cursor, or None."""
        ticks = [(float(np.log10(f)), hertz_text(f)) for f in HZ_TICKS]
        lines = [float(np.log10(f)) for f in HZ_LINES if LOWEST_HZ <= f <= HIGHEST_HZ]
        low, high = np.log10((LOWEST_HZ, HIGHEST_HZ)).tolist()
        self.set_axes(PlotAxis(low, high, with_unit(ticks, "Hz"), lines))

    def point(self, lg: float | None) -> None:
        """Put the cursor at a frequency; None removes it."""
        if lg is not None:
            lg = min(max(lg, self.x.low), self.x.high)
        if lg != self.cursor_lg:
            self.cursor_lg = lg
            self.pointed.emit()

    def mouseMoveEvent(self, event: QtGui.QMouseEvent) -> None:
        self.point(self.values(event.position())[0])

    def leaveEvent(self, event: QtCore.QEvent) -> None:
        self.point(None)

    def keyPressEvent(self, event: QtGui.QKeyEvent) -> None:
        keys = QtCore.Qt.Key
        if event.key() in (keys.Key_Left, keys.Key_Right):
            step = (self.x.high - self.x.low) / STEPS * (-1 if event.key() == keys.Key_Left else 1)
            middle = (self.x.low + self.x.high) / 2
            self.point((middle if self.cursor_lg is None else self.cursor_lg) + step)
        elif event.key() == keys.Key_Escape and self.cursor_lg is not None:
            self.point(None)
        else:
            super().keyPressEvent(event)


class FrequencyColumns:
    """Assigns bins to columns of pixels; of several bins the highest is drawn.

    x: position of each column in lg of hertz; that of the bin where it is only one
    shown: the bins that are on the axis
    """

    def __init__(self) -> None:
        self.x = np.empty(0)
        self.shown = slice(0)
        self._first = np.empty(0, np.int64)
        self._of: tuple[int, float, int] | None = None

    def fit(self, bins: int, bin_hz: float, width: int) -> None:
        """For this number of bins on an axis of this width in pixels."""
        if self._of == (bins, bin_hz, width):
            return
        self._of = bins, bin_hz, width
        # One beyond each end, so that the line reaches the edge.
        low = max(1, int(LOWEST_HZ / bin_hz))
        high = min(bins, int(np.ceil(HIGHEST_HZ / bin_hz)) + 1)
        self.shown = slice(low, high)
        place = np.log10(np.arange(low, high) * bin_hz)
        pixel = np.floor((place - np.log10(LOWEST_HZ)) * width / np.log10(HIGHEST_HZ / LOWEST_HZ))
        self._first = np.flatnonzero(np.diff(pixel, prepend=np.nan))
        counts = np.diff(self._first, append=high - low)
        self.x = np.add.reduceat(place, self._first) / counts

    def highest(self, level_db: Levels) -> Levels:
        return np.maximum.reduceat(level_db[self.shown], self._first)


def with_unit(ticks: Ticks, unit: str) -> Ticks:
    """The same ticks; the first one, for which there is always room, names the unit."""
    (value, text), *others = ticks
    return [(value, f"{text} {unit}"), *others]


def hertz_text(f: int) -> str:
    return f"{f // 1000}k" if f >= 1000 else str(f)
