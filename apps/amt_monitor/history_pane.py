"""Short-term and long-term loudness over the last minute."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from pyqtgraph.Qt import QtWidgets

from amt_monitor.curve import Curve
from amt_monitor.envelope import Columns, Envelope, stretches
from amt_monitor.pane import Pane
from amt_monitor.plot import Axis, Plot
from amt_monitor.stretches import Stretch, Stretches
from amt_monitor.theme import Colors, ThemedLabel
from amt_stream.rows import FAULT_WORDS
from amt_stream.scales import sone_to_phon

if TYPE_CHECKING:
    from amt_monitor.look import Look

SECONDS = 60.0
COLUMN_S, JOINED, RECENT = 0.1, 5, 10
TIMES = range(-60, 1, 10)
SCALES = {"phon": range(0, 121, 20), "sone": range(0, 41, 10)}


class HistoryPane(Pane):
    """Both curves as they are, unsmoothed; each shows the range of every 100 ms."""

    def __init__(self) -> None:
        super().__init__("history", "Loudness", "last 60 s")
        self.envelope = Envelope(("stl", "ltl"), SECONDS, COLUMN_S)
        self.scale = QtWidgets.QComboBox()
        self.scale.setObjectName("scale")
        for unit, ticks in SCALES.items():
            self.scale.addItem(f"0 to {ticks[-1]} {unit}", unit)
        self.scale.currentIndexChanged.connect(self._rescale)
        self.head.insertWidget(1, self.scale)
        self.head.insertWidget(3, ThemedLabel(_legend))
        self.plot = Plot("history_plot")
        self.marks = Stretches()
        self.curves = [Curve("stl"), Curve("ltl")]
        for layer in (self.marks, *self.curves):
            self.plot.add(layer)
        self.body.addWidget(self.plot, 1)
        self._uncalibrated = False
        self._rescale()

    @property
    def unit(self) -> str:
        return self.scale.currentData()

    def mark(self, words: Sequence[str], uncalibrated: bool) -> None:
        super().mark(words, uncalibrated)
        if uncalibrated != self._uncalibrated:
            self._uncalibrated = uncalibrated
            self._rescale()

    def draw(self) -> None:
        columns = self.envelope.columns()
        # Columns stand still on the screen until the next one begins.
        age = columns.start_s - columns.start_s[-1] - COLUMN_S
        x = np.repeat(age + 0.5 * COLUMN_S, 2)
        y = np.stack((columns.low, columns.high), axis=-1).reshape(len(self.curves), -1)
        if self.unit == "phon":
            y = sone_to_phon(y, "iso532-3")
        for curve, values in zip(self.curves, y, strict=True):
            curve.set(x, values)
        self.marks.set(_marked(columns, age))

    def move(self, look: "Look") -> None:
        if look.loudness_history is not None:
            self.envelope.follow(look.loudness_history)
            self.draw()

    def recent_fault(self) -> int:
        """Faults of the last second or so: a short one must be seen beside the numbers too."""
        return int(np.bitwise_or.reduce(self.envelope.columns().fault[-RECENT:]))

    def _rescale(self) -> None:
        ticks = SCALES[self.unit]
        along = Axis(TIMES[0], TIMES[-1], [(t, f"{t} s") for t in TIMES])
        self.plot.set_axes(along, Axis(ticks[0], ticks[-1], [(v, str(v)) for v in ticks]))
        self.plot.set_unit(self.unit, self._uncalibrated)
        if self.envelope.now_s:
            self.draw()


def _marked(columns: Columns, age: np.ndarray) -> list[Stretch]:
    """Lane, beginning, end and word of everything that is marked."""
    lanes = [(columns.settling, "settling")]
    if columns.fault.any():
        lanes += [(columns.fault & bit > 0, word) for bit, word in FAULT_WORDS.items()]
    return [
        Stretch(lane, float(age[first]), float(age[last]) + COLUMN_S, word)
        for lane, (marked, word) in enumerate(lanes)
        for first, last in stretches(marked, JOINED)
    ]


def _legend(colors: Colors) -> str:
    """Which line is which: the one that moves slowly is the stronger color."""
    return (
        f"<b style='color:{colors.ltl}'>&#9473;&#9473; LTL</b> &nbsp; "
        f"<span style='color:{colors.stl}'>&#9473;&#9473; STL</span>"
    )
