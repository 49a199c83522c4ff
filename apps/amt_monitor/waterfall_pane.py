"""Specific loudness of the last minute as colors."""

from typing import TYPE_CHECKING

import numpy as np

from amt_monitor.frame_follower import FrameFollower
from amt_monitor.pane import Pane
from amt_monitor.plot import Plot, PlotAxis
from amt_monitor.spectrum_pane import CAM_HIGH, CAM_LOW, HZ_TICKS, UNIT, hertz_text
from amt_monitor.time_plot import ago
from amt_monitor.view_state import specific_in
from amt_monitor.waterfall_layer import WaterfallLayer
from amt_monitor.widgets import combo_box
from amt_stream.dsp.scales import hz_to_erb_number

if TYPE_CHECKING:
    from amt_monitor.view_state import ViewState
    from amt_stream.engine import Engine
    from amt_stream.sessions.outputs import FollowedReadings

CHANNELS, COLUMNS, COLUMN_S = 150, 600, 0.1
DECADES = 2
TOPS = (0.2, 1.0, 5.0, 20.0)
EARS = ("louder ear", "left ear", "right ear")


class WaterfallPane(Pane):
    """Short-term specific loudness over time, low frequencies at the bottom.

    The colors cover two decades below the chosen top of the scale.
    """

    def __init__(self) -> None:
        super().__init__("waterfall", "Specific loudness, last minute", "Hz")
        self.plot = Plot("waterfall_plot")
        self.plot.setAccessibleName("specific loudness of the last minute as colors")
        span = COLUMNS * COLUMN_S
        times = [(float(t), ago(float(t))) for t in range(-round(span), 1, 10)]
        cams = [(float(hz_to_erb_number(f)), hertz_text(f)) for f in HZ_TICKS]
        self.plot.set_axes(PlotAxis(-span, 0.0, times, ()), PlotAxis(CAM_LOW, CAM_HIGH, cams, ()))
        self._follower = FrameFollower()
        self.colors = WaterfallLayer(2, CHANNELS, COLUMNS, COLUMN_S)
        self.plot.add(self.colors)
        self.ear = combo_box("ear", EARS, self._choose_ear)
        tops = [(f"{top / 10**DECADES:g} to {top:g} {UNIT}", top) for top in TOPS]
        self.top = combo_box("top of the color scale", tops, self._set_colors)
        self.top.setCurrentIndex(1)
        for widget in (self.ear, self.top):
            self.head.insertWidget(self.head.count() - 1, widget)
        self._set_colors()
        self.body.addWidget(self.plot, 1)

    def move(self, view: "ViewState") -> None:
        self.take_frames(view.engine, view.readings)

    def take_frames(self, engine: "Engine", readings: "FollowedReadings | None") -> None:
        if (newest := specific_in(engine)) is None:
            return
        if new := self._follower.new(engine, newest.model, newest.microphone):
            time_s = np.concatenate([one.time_s for one in new])
            curves = np.concatenate([one.values.specific_loudness for one in new], axis=1)
            columns = np.flatnonzero(np.diff(time_s // COLUMN_S, prepend=-np.inf))
            greatest = np.fmax.reduceat(curves, columns, axis=1)
            for k, first in enumerate(columns.tolist()):
                self.draw(float(time_s[first]), greatest[:, k])

    def show_status(self, view: "ViewState") -> None:
        super().show_status(view)
        self.colors.hold("frozen" in view.held)

    def draw(self, time_s: float, specific_loudness: np.ndarray) -> None:
        self.colors.show(time_s, np.log10(np.maximum(specific_loudness, 1e-6)))

    def restart(self) -> None:
        self.colors.clear()
        self._follower.clear()

    def _choose_ear(self) -> None:
        self.colors.choose(self.ear.currentIndex() - 1 if self.ear.currentIndex() else None)

    def _set_colors(self) -> None:
        high = float(np.log10(self.top.currentData()))
        self.colors.set_colors(high - DECADES, high)
