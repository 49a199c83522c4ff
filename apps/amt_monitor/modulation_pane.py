"""The modulation spectrum of one ear as a map, and the scale of its colors."""

from typing import Any

import numpy as np
import pyqtgraph as pg
from pyqtgraph.Qt import QtCore, QtWidgets

from amt_monitor.pane import Pane, Plot, thin_pen
from amt_monitor.theme import theme
from amt_stream.rows import RANGE_DB, hz_text

HZ_TICKS = (100, 200, 500, 1000, 2000, 5000, 10000)
# Even in lightness, and the color-blind see the same steps (Nunez, Anderton & Renslow 2018).
COLORS = "cividis"


class ModulationPane(Pane):
    """Auditory bands from left to right, modulation bands from slow to fast, colors for level.

    The strongest cell has a frame. Cells that the model does not have stay empty.
    """

    def __init__(self, ear: str) -> None:
        super().__init__(f"modulation_{ear}", f"Modulation spectrum, {ear} ear")
        self.plot = Plot(f"modulation_{ear}_plot")
        self.plot.hideAxis("top")
        self.plot.getAxis("left").setWidth(64)
        self.plot.getAxis("left").setLabel("modulation frequency, Hz", color=theme.colors.ink)
        self.plot.getAxis("bottom").setLabel(
            "center of the auditory band, Hz", color=theme.colors.ink
        )
        self.image = pg.ImageItem(axisOrder="col-major", levels=(-RANGE_DB, 0.0))
        self.image.setColorMap(COLORS)
        self.frame = QtWidgets.QGraphicsRectItem()
        self.frame.setPen(thin_pen("#000000"))
        for item in (self.image, self.frame):
            self.plot.addItem(item, ignoreBounds=True)
        self.body.addWidget(self.plot, 1)
        self._mask: Any = None

    def set_bands(self, fc: np.ndarray, mfc: np.ndarray, mask: np.ndarray) -> None:
        """Name the bands (band,) and (modulation,) on the axes; `mask` says which cells exist."""
        self._mask = mask
        centers = np.arange(len(fc)) + 0.5
        named = [f for f in HZ_TICKS if fc[0] <= f <= fc[-1]]
        places = np.interp(np.log(named), np.log(fc), centers).tolist()
        self.plot.getAxis("bottom").setTicks([list(zip(places, map(str, named), strict=True))])
        rows = [(m + 0.5, hz_text(f) if f else "mean") for m, f in enumerate(mfc)]
        self.plot.getAxis("left").setTicks([rows])
        self.plot.setXRange(0, len(fc), padding=0)
        self.plot.setYRange(0, len(mfc), padding=0)

    def draw(self, level_db: np.ndarray, framed: tuple[int, int] | None) -> None:
        """Show `(band, modulation)` in dB, and the frame around one cell of it."""
        self.image.setImage(np.where(self._mask, level_db, np.nan), autoLevels=False)
        self.frame.setVisible(framed is not None)
        if framed is not None:
            self.frame.setRect(QtCore.QRectF(*framed, 1.0, 1.0))


class ColorScale(pg.GraphicsLayoutWidget):
    """What the colors stand for."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("color_scale")
        self.setBackground(theme.colors.paper)
        self.setFixedWidth(92)
        bar = pg.ColorBarItem(values=(-RANGE_DB, 0.0), colorMap=COLORS, interactive=False)
        bar.getAxis("left").setLabel("dB relative to the strongest", color=theme.colors.ink)
        bar.axis.setTextPen(theme.colors.ink)
        self.addItem(bar)
