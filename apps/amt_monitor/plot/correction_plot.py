"""The gain of a correction over frequency."""

import numpy as np

from amt_monitor.plot.curve_layers import CurveLayer
from amt_monitor.plot.plot import Plot, PlotAxis
from amt_stream.meters.correction import Correction

LOW_HZ, HIGH_HZ = 10.0, 24000.0
TICKS = ((20, "20"), (100, "100"), (1000, "1k"), (10000, "10k"), (20000, "20k"))
LINES = tuple(d * m for d in (10, 100, 1000, 10000) for m in range(1, 10))
TOPS_DB = (1.0, 3.0, 6.0, 12.0, 24.0, 48.0, 96.0)


class CorrectionPlot(Plot):
    """Its gain in dB, positive where readings are raised."""

    def __init__(self) -> None:
        super().__init__("correction_plot")
        self.setMinimumHeight(8 * self.fontMetrics().height())
        self._curve = CurveLayer("accent")
        self._zero = CurveLayer("second", dashed=True)
        self.add(self._zero)
        self.add(self._curve)
        self.set_unit("dB added to readings, over Hz", False)
        self.show_correction(None)

    def show_correction(self, correction: Correction | None) -> None:
        hz = np.geomspace(LOW_HZ, HIGH_HZ, 400)
        gain = np.zeros_like(hz) if correction is None else correction.gain_db(hz)
        top = next((one for one in TOPS_DB if np.abs(gain).max() <= one), TOPS_DB[-1])
        ticks = [(float(db), f"{db:+g}" if db else "0") for db in (-top, -top / 2, 0, top / 2, top)]
        lines = [float(np.log10(f)) for f in LINES if LOW_HZ <= f <= HIGH_HZ]
        along = PlotAxis(
            float(np.log10(LOW_HZ)),
            float(np.log10(HIGH_HZ)),
            [(float(np.log10(f)), text) for f, text in TICKS],
            lines,
        )
        self.set_axes(along, PlotAxis(-top, top, ticks))
        x = np.log10(hz)
        self._zero.set(x[[0, -1]], [0.0, 0.0])
        self._curve.set(x, gain if correction is not None else np.full_like(hz, np.nan))
        words = "none" if correction is None else correction.in_words()
        self.setAccessibleName(f"what the correction adds to readings: {words}")
