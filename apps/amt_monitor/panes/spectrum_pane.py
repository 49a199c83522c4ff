"""Specific loudness along the auditory frequency scale."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from pyqtgraph.Qt import QtWidgets

from amt_monitor.base.theme import ThemedLabel
from amt_monitor.base.widgets import tool_button
from amt_monitor.panes.pane import Pane
from amt_monitor.plot.curve_layers import CurveLayer, FillBelowLayer, FillBetweenLayer
from amt_monitor.plot.frequency_plot import hertz_text, with_unit
from amt_monitor.plot.history_traces import ticks_of, top_of
from amt_monitor.plot.plot import SIDES, Plot, PlotAxis, sides_text
from amt_stream.dsp.scales import hz_to_erb_number
from amt_stream.meters.rows.limit_words import silence
from amt_stream.views.peak_hold import PeakHold
from amt_stream.views.view_state import specific_in

if TYPE_CHECKING:
    from amt_stream.engine import Engine
    from amt_stream.sessions.outputs import FollowedReadings
    from amt_stream.views.view_state import ViewState

CAM_LOW, CAM_HIGH = 1.75, 39.0
CAM_TICKS = range(5, 36, 5)
HZ_TICKS = (50, 100, 200, 500, 1000, 2000, 5000, 10000, 15000)
HOLD_FRAMES = 150
LEAST = 0.1
UNIT = "sone/Cam"


class SpectrumPane(Pane):
    """Short-term specific loudness of both ears in the latest frame.

    The maximum of the last 2 s is filled; the maximum since the last reset is a second line; both
    cover all frames. The scale grows at once and shrinks after five seconds.
    """

    def __init__(self) -> None:
        super().__init__("specific_loudness", "Specific loudness now")
        self.head_bar.setToolTip(
            "short-term, before binaural inhibition; below in Cam, above in Hz"
        )
        self.head.insertWidget(2, ThemedLabel(sides_text))
        self.plot = Plot("specific_loudness_plot")
        cams = PlotAxis(
            CAM_LOW, CAM_HIGH, with_unit([(float(cam), f"{cam}") for cam in CAM_TICKS], "Cam")
        )
        self.plot.set_axes(
            cams,
            top=with_unit([(float(hz_to_erb_number(f)), hertz_text(f)) for f in HZ_TICKS], "Hz"),
        )
        self.curves = [CurveLayer("left"), CurveLayer("right", dashed=True)]
        self.filled = [FillBetweenLayer("left", 0.18), FillBetweenLayer("right", 0.18)]
        below = FillBelowLayer(self.curves[0], 0.12)
        self.greatest = [CurveLayer("second"), CurveLayer("second", dashed=True)]
        self.plot.set_layers((below, *self.filled, *self.greatest, *self.curves))
        self.plot.legend = SIDES
        self.plot.setAccessibleName("specific loudness of both ears")
        self._held = PeakHold()
        self._cam = np.empty(0)
        self._shown: NDArray[np.floating] | None = None
        self.hold = self._switch("hold", "Hold", "Maximum of the last 2 s")
        self.most = self._switch("most", "Max", "Maximum since the last reset")
        self._quiet_frames = 0
        self._top = 0.0
        self._set_top(1.0)
        self.plot.set_unit(UNIT, False)
        self.body.addWidget(self.plot, 1)

    def draw(self, specific_loudness: np.ndarray) -> None:
        self._shown = specific_loudness
        if (points := specific_loudness.shape[-1]) != len(self._cam):
            self._cam = np.linspace(CAM_LOW, CAM_HIGH, points)
        cam = self._cam
        for curve, values in zip(self.curves, specific_loudness, strict=True):
            curve.set(cam, values)
        held = self._held.held if self.hold.isChecked() else None
        for filled, values in zip(self.filled, _each(held), strict=True):
            filled.set(cam[: len(values)], np.zeros(len(values)), values)
        greatest = self._held.greatest if self.most.isChecked() else None
        for curve, values in zip(self.greatest, _each(greatest), strict=True):
            curve.set(cam[: len(values)], values)
        shown = [v for v in (specific_loudness, held, greatest) if v is not None]
        peak = max(float(np.fmax.reduce(v, axis=None)) for v in shown)
        needed = max(LEAST, top_of(peak)) if peak == peak else self._top
        self._quiet_frames = self._quiet_frames + 1 if needed < self._top else 0
        if needed > self._top or self._quiet_frames > HOLD_FRAMES:
            self._set_top(needed)

    def take_frames(self, engine: "Engine", readings: "FollowedReadings | None") -> None:
        if (newest := specific_in(engine)) is None:
            return
        specific = lambda frames: frames.values.specific_loudness  # noqa: E731
        self._held.take_frames(engine, readings, newest.model, specific, newest.microphone)

    def move(self, view: "ViewState") -> None:
        specific = view.specific_loudness
        if self.hold.isChecked() or self.most.isChecked():
            self.take_frames(view.engine, view.readings)
        if specific is not None:
            self.draw(specific[:, -1])

    def show_status(self, view: "ViewState") -> None:
        super().show_status(view)
        self.plot.set_unit(UNIT, view.reading_status().uncalibrated)
        self._held.stand_still("frozen" in view.held)
        self.plot.rest(bool(silence(view.held)))

    def lose(self) -> None:
        self._shown = None
        for curve, filled in zip(self.curves, self.filled, strict=True):
            curve.clear()
            filled.clear()

    def restart(self) -> None:
        self._held.clear()

    def _switch(self, name: str, text: str, about: str) -> QtWidgets.QToolButton:
        button = tool_button(name, text, f"{about}, of all frames")
        button.setCheckable(True)
        button.toggled.connect(lambda _: self._draw_again())
        self.head.addWidget(button)
        return button

    def _draw_again(self) -> None:
        if self._shown is not None:
            self.draw(self._shown)

    def _set_top(self, top: float) -> None:
        if top != self._top:
            self._top, self._quiet_frames = top, 0
            self.plot.set_axes(y=PlotAxis(0.0, top, ticks_of(0.0, top)))


def _each(curves: NDArray[np.floating] | None) -> Sequence[NDArray[np.floating]]:
    """The curve of each ear; empty ones for None."""
    return [np.empty(0)] * 2 if curves is None else [*curves]
