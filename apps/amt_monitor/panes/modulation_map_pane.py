"""The modulation spectrum of one ear as a map, and its color scale."""

from typing import Any

import numpy as np
from pyqtgraph.Qt import QtWidgets

from amt_monitor.panes.pane import Pane
from amt_monitor.plot.image_layers import FrameLayer, ImageLayer
from amt_monitor.plot.plot import Plot, PlotAxis
from amt_stream.meters.rows import RANGE_DB, hz_text

HZ_TICKS = (100, 200, 500, 1000, 2000, 5000, 10000)
SCALE_TICKS = range(-int(RANGE_DB), 1, 10)


class ModulationMapPane(Pane):
    """Auditory bands from left to right, modulation bands from slow to fast, level as color.

    The strongest cell is framed. Cells that the model does not have stay empty.
    """

    def __init__(self, ear: str) -> None:
        super().__init__(f"modulation_{ear}", f"Modulation spectrum, {ear} ear")
        self.plot = Plot(f"modulation_{ear}_plot")
        self.image, self.frame = ImageLayer(-RANGE_DB, 0.0), FrameLayer()
        self.plot.set_layers((self.image, self.frame))
        self.body.addWidget(self.plot, 1)
        self.level_db = np.empty((0, 0))
        self._mask: Any = None

    def set_bands(self, fc: np.ndarray, mfc: np.ndarray, mask: np.ndarray) -> None:
        self._mask = mask
        centers = np.arange(len(fc)) + 0.5
        named = [f for f in HZ_TICKS if fc[0] <= f <= fc[-1]]
        places = np.interp(np.log(named), np.log(fc), centers).tolist()
        rows = [(m + 0.5, hz_text(f) if f else "mean") for m, f in enumerate(mfc)]
        along = list(zip(places, map(str, named), strict=True))
        self.plot.set_axes(
            PlotAxis(0, len(fc), along, (), "center of the auditory band, Hz"),
            PlotAxis(0, len(mfc), rows, (), "modulation frequency, Hz"),
        )
        self.image.set_extent(0, 0, len(fc), len(mfc))

    def draw(self, level_db: np.ndarray, framed: tuple[int, int] | None) -> None:
        self.level_db = np.where(self._mask, level_db, np.nan)
        self.image.set(self.level_db.T)
        band, modulation = framed or (0, 0)
        self.frame.set(framed and (band, modulation, band + 1, modulation + 1))


class ColorScale(QtWidgets.QWidget):
    """The color scale."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("color_scale")
        self.plot = Plot("color_scale_plot")
        ticks = [(float(db), str(db)) for db in SCALE_TICKS]
        beside = PlotAxis(-RANGE_DB, 0.0, ticks, (), "dB relative to the strongest")
        self.plot.set_axes(PlotAxis(0, 1), beside)
        scale = ImageLayer(-RANGE_DB, 0.0)
        self.plot.add(scale)
        scale.set_extent(0, -RANGE_DB, 1, 0)
        scale.set(np.linspace(-RANGE_DB, 0.0, 128)[:, None])
        layout = QtWidgets.QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.plot)
        self.setFixedWidth(92)
