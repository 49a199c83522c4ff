"""A plot over a logarithmic frequency axis, with a cursor."""

import numpy as np
from numpy.typing import NDArray

from amt_monitor.plot.cursor_plot import CursorPlot
from amt_monitor.plot.plot import PlotAxis, Ticks
from amt_stream.meters.accumulators.spectrum import HIGHEST_HZ, LOWEST_HZ

Levels = NDArray[np.floating]

HZ_TICKS = (20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000)
HZ_LINES = [d * 10**e for e in (1, 2, 3, 4) for d in range(1, 10)]
STEPS = 300
"""Steps of the cursor from one end to the other."""


class FrequencyPlot(CursorPlot):
    """From 20 Hz to 20 kHz; positions are lg of hertz. Left and Right move the cursor."""

    def __init__(self, name: str) -> None:
        low, high = np.log10((LOWEST_HZ, HIGHEST_HZ)).tolist()
        super().__init__(name, ((high - low) / STEPS, 0.0))
        ticks = [(float(np.log10(f)), hertz_text(f)) for f in HZ_TICKS]
        lines = [float(np.log10(f)) for f in HZ_LINES if LOWEST_HZ <= f <= HIGHEST_HZ]
        self.set_axes(PlotAxis(low, high, with_unit(ticks, "Hz"), lines))


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
