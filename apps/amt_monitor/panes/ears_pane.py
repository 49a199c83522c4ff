"""The loudness in each ear, and how much the other ear inhibits it."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from pyqtgraph.Qt import QtWidgets

from amt_monitor.panes.pane import Pane
from amt_monitor.panes.spectrum_pane import CAM_HIGH, CAM_LOW
from amt_monitor.plot.history_traces import ticks_of, top_of
from amt_monitor.plot.level_bar import LevelBar, LevelBarScale
from amt_stream.meters.rows.words import NO_READING

if TYPE_CHECKING:
    from amt_stream.views.view_state import ViewState

EARS = ("left", "right")
QUIETEST_SONE = 0.01


class EarLoudness(NamedTuple):
    """Short-term loudness in sone (ear,), with the other ear and alone."""

    together: np.ndarray
    alone: np.ndarray

    @classmethod
    def of(cls, values: Any) -> "EarLoudness":
        specific = values.specific_loudness[:, -1]
        step = (CAM_HIGH - CAM_LOW) / (specific.shape[-1] - 1)
        return cls(values.stl_ears[:, -1], step * specific.sum(axis=-1))

    @property
    def known(self) -> bool:
        """Whether the model runs, and heard sound."""
        return bool(np.isfinite(self).all())


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
        self.sum = QtWidgets.QLabel()
        self.sum.setObjectName("ears_sum")
        self.body.addWidget(self.sum)

    def move(self, view: "ViewState") -> None:
        ears = ears_in(view)
        if ears is None:
            return
        if not ears.known:
            for bar in self.bars:
                bar.set_level(0.0, 0.0)
            return
        self._fit(float(max(ears.alone.max(), ears.together.max())))
        for bar, loudness, alone in zip(self.bars, *ears, strict=True):
            bar.set_level(float(loudness), float(alone))

    def read(self, view: "ViewState") -> None:
        ears = ears_in(view)
        if ears is None:
            return
        if not ears.known:
            for bar in self.bars:
                bar.set_text(NO_READING, False)
            self.sum.setText("")
            return
        for bar, loudness, alone in zip(self.bars, *ears, strict=True):
            text = f"{loudness:.2f} sone, alone {alone:.2f}, {inhibited_text(loudness, alone)}"
            bar.set_text(text, view.reading_status().uncalibrated)
        both, alone = float(ears.together.sum()), float(ears.alone.sum())
        self.sum.setText(f"together {both:.2f} sone, {inhibited_text(both, alone)}")

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


def ears_in(view: "ViewState") -> EarLoudness | None:
    for frames in view.frames.values():
        values = frames.values
        if hasattr(values, "stl_ears") and getattr(values, "specific_loudness", None) is not None:
            return EarLoudness.of(values)
    return None
