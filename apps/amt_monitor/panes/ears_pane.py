"""The loudness in each ear, and how much the other ear inhibits it."""

import numpy as np
from pyqtgraph.Qt import QtWidgets

from amt_monitor.panes.pane import Pane
from amt_monitor.panes.spectrum_pane import CAM_HIGH, CAM_LOW
from amt_monitor.plot.history_traces import ticks_of, top_of
from amt_monitor.plot.level_bar import LevelBar, LevelBarScale
from amt_stream.meters.rows.words import NO_READING
from amt_stream.views.view_state import ViewState

QUIETEST_SONE = 0.01


class EarsPane(Pane):
    """A bar for the loudness in each ear; a line for its loudness alone."""

    def __init__(self) -> None:
        super().__init__(
            "ears", "Ears and inhibition", "short-term loudness in sone; line: one ear alone"
        )
        self._top = 1.0
        scale = LevelBarScale(0.0, self._top, (0.0, self._top))
        self.bars = [
            LevelBar("ear_left", "Left", scale, "left"),
            LevelBar("ear_right", "Right", scale, "right"),
        ]
        for bar in self.bars:
            bar.setMinimumHeight(2 * bar.fontMetrics().height() + 12)
            self.body.addWidget(bar, 1)
        self.sum = QtWidgets.QLabel(objectName="ears_sum")
        self.body.addWidget(self.sum)

    def move(self, view: ViewState) -> None:
        ears = ears_in(view)
        if ears is None:
            return
        levels = np.nan_to_num(ears)  # of a model that rests
        self._fit(float(levels.max()))
        for bar, loudness, alone in zip(self.bars, *levels, strict=True):
            bar.set_level(float(loudness), float(alone))

    def read(self, view: ViewState) -> None:
        ears = ears_in(view)
        if ears is None:
            return
        for bar, loudness, alone in zip(self.bars, *ears, strict=True):
            text = f"{loudness:.2f} sone, alone {alone:.2f}, {inhibited_text(loudness, alone)}"
            text = NO_READING if np.isnan(loudness) else text
            bar.set_text(text, view.reading_status().uncalibrated)
        both, alone = map(float, ears.sum(axis=-1))
        text = f"together {both:.2f} sone, {inhibited_text(both, alone)}"
        self.sum.setText("" if np.isnan(both) else text)

    def lose(self) -> None:
        for bar in self.bars:
            bar.set_level(0.0)
            bar.set_text(NO_READING, False)
        self.sum.setText("")

    def texts(self) -> tuple[str, ...]:
        return (*(bar.text for bar in self.bars), self.sum.text())

    def _fit(self, most: float) -> None:
        if not self._top / 6 <= most <= self._top:
            self._top = max(0.1, top_of(most))
            ticks = tuple(value for value, _ in ticks_of(0.0, self._top))
            for bar in self.bars:
                bar.set_scale(LevelBarScale(0.0, self._top, ticks))


def inhibited_text(together: float, alone: float) -> str:
    if alone < QUIETEST_SONE:
        return "nothing to inhibit"
    return f"{100 * (1 - together / alone):.0f} % inhibited"


def ears_in(view: ViewState) -> np.ndarray | None:
    """Short-term loudness in sone (2, ear): with the other ear, and alone."""
    for frames in view.frames.values():
        values = frames.values
        specific = getattr(values, "specific_loudness", None)
        if hasattr(values, "stl_ears") and specific is not None:
            step = (CAM_HIGH - CAM_LOW) / (specific.shape[-1] - 1)
            return np.stack((values.stl_ears[:, -1], step * specific[:, -1].sum(axis=-1)))
    return None
