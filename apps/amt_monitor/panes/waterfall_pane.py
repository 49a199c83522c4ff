"""Specific loudness of the last minute as colors."""

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from amt_monitor.base.widgets import combo_box
from amt_monitor.panes.pane import Pane
from amt_monitor.panes.spectrum_pane import CAM_HIGH, CAM_LOW, HZ_TICKS, UNIT
from amt_monitor.plot.frequency_plot import hertz_text
from amt_monitor.plot.plot import Plot, PlotAxis
from amt_monitor.plot.time_plot import ago
from amt_monitor.plot.waterfall_layer import WaterfallLayer
from amt_stream.dsp.scales import hz_to_erb_number
from amt_stream.meters.state_signs import is_away
from amt_stream.views.color_range import EasedRange
from amt_stream.views.frame_follower import FrameFollower
from amt_stream.views.view_state import specific_in

if TYPE_CHECKING:
    from amt_stream.engine import Engine, Frames
    from amt_stream.sessions.outputs import FollowedReadings
    from amt_stream.views.view_state import ViewState

CHANNELS, COLUMNS, COLUMN_S = 150, 600, 0.1
SPAN_S = COLUMNS * COLUMN_S
DECADES = 2
AUTOMATIC = f"automatic, {UNIT}"
TOPS = (0.2, 1.0, 5.0, 20.0)
EARS = ("louder ear", "left ear", "right ear")


class CurvesOf(NamedTuple):
    """The model and microphone whose frames are drawn, and their curves (ear, frame, row)."""

    model: str
    microphone: str
    curves: "Callable[[Frames], NDArray[np.floating]]"


def curves_of(
    engine: "Engine", model: str, curves: "Callable[[Frames], NDArray[np.floating]]"
) -> CurvesOf | None:
    """Those of the microphone of the model's newest frame, if there is one."""
    frames = engine.histories[model].latest if model in engine.histories else None
    return None if frames is None else CurvesOf(model, frames.microphone, curves)


class LastMinutePane(Pane):
    """Curves of every frame of the last minute as colors, the newest at the right.

    ears: the choice of one of two channels, or of the greater of both
    """

    def __init__(
        self,
        name: str,
        title: str,
        about: str,
        plot: Plot,
        rows: int,
        y: PlotAxis,
        ears: Sequence[str],
    ) -> None:
        super().__init__(name, title, about)
        self.plot = plot
        times = [(float(t), ago(float(t))) for t in range(-round(SPAN_S), 1, 10)]
        self.plot.set_axes(PlotAxis(-SPAN_S, 0.0, times, ()), y)
        self._follower = FrameFollower()
        self.colors = WaterfallLayer(2, rows, COLUMNS, COLUMN_S)
        self.plot.add(self.colors)
        self.ear = combo_box("ear", ears, self._choose_ear)
        self.head.addWidget(self.ear)
        self.body.addWidget(self.plot, 1)

    def followed(self, engine: "Engine") -> CurvesOf | None:
        """What is drawn of an engine, if there is a frame of it."""
        raise NotImplementedError

    def move(self, view: "ViewState") -> None:
        # A column is painted when the next one begins.
        if int(view.newest.end_s / COLUMN_S) != self.colors.newest:
            self.take_frames(view.engine, view.readings)

    def take_frames(self, engine: "Engine", readings: "FollowedReadings | None") -> None:
        if (of := self.followed(engine)) is None:
            return
        if new := self._follower.new(engine, of.model, of.microphone):
            time_s = np.concatenate([one.time_s for one in new])
            curves = np.concatenate([of.curves(one) for one in new], axis=1)
            columns = np.flatnonzero(np.diff(time_s // COLUMN_S, prepend=-np.inf))
            greatest = np.fmax.reduceat(curves, columns, axis=1)
            for k, first in enumerate(columns.tolist()):
                self.draw(float(time_s[first]), greatest[:, k])

    def draw(self, time_s: float, curves: np.ndarray) -> None:
        """Add curves (ear, row) at a time."""
        self.colors.show(time_s, curves)

    def show_status(self, view: "ViewState") -> None:
        super().show_status(view)
        self.colors.hold("frozen" in view.held)
        self.colors.lose(is_away(view.held))

    def restart(self) -> None:
        self.colors.clear()
        self._follower.clear()

    def _choose_ear(self) -> None:
        self.colors.choose(self.ear.currentIndex() - 1 if self.ear.currentIndex() else None)


class WaterfallPane(LastMinutePane):
    """Short-term specific loudness over time, low frequencies at the bottom.

    The colors cover the 5th to the 99.9th percentile of what is heard in that minute, or two
    decades below the chosen top of the scale.
    """

    def __init__(self) -> None:
        cams = [(float(hz_to_erb_number(f)), hertz_text(f)) for f in HZ_TICKS]
        y = PlotAxis(CAM_LOW, CAM_HIGH, cams, ())
        plot = Plot("waterfall_plot", key=True)
        title = "Specific loudness, last minute"
        super().__init__("waterfall", title, "Hz", plot, CHANNELS, y, EARS)
        self.plot.setAccessibleName("specific loudness of the last minute as colors")
        tops = [(f"{top / 10**DECADES:g} to {top:g} {UNIT}", top) for top in TOPS]
        self._range = EasedRange((-DECADES, 0.0))
        self.top = combo_box("range of the colors", [(AUTOMATIC, None), *tops], self._choose_range)
        self.head.addWidget(self.top)
        self._choose_range()

    def followed(self, engine: "Engine") -> CurvesOf | None:
        newest = specific_in(engine)
        if newest is None:
            return None
        return CurvesOf(newest.model, newest.microphone, lambda one: one.values.specific_loudness)

    def draw(self, time_s: float, curves: np.ndarray) -> None:
        super().draw(time_s, np.log10(np.maximum(curves, 1e-6)))

    def read(self, view: "ViewState") -> None:
        # What is frozen keeps its colors.
        if "frozen" not in view.held or not self._range.is_known:
            self.fit()

    def restart(self) -> None:
        super().restart()
        self._choose_range()

    def texts(self) -> tuple[str, ...]:
        return (self.plot.accessibleDescription(),)

    def fit(self) -> None:
        """Fit the colors to the minute, unless their range is fixed."""
        if self.top.currentData() is None:
            self._set_colors(*self._range.follow(self.colors.shown, self.colors.until_s))

    def _choose_range(self) -> None:
        self._range.reset()
        if (top := self.top.currentData()) is None:
            self._set_colors(*self._range.range)
            self.fit()
        else:
            self._set_colors(np.log10(top) - DECADES, np.log10(top))

    def _set_colors(self, low: float, high: float) -> None:
        self.colors.set_colors(float(low), float(high), log_ticks(low, high))
        least, most = (float(f"{10**end:.2g}") for end in (low, high))
        self.plot.setAccessibleDescription(f"colors from {least:g} to {most:g} {UNIT}")


def log_ticks(low: float, high: float) -> tuple[tuple[float, str], ...]:
    """1, 2 and 5 times powers of ten between two common logarithms, powers of ten first."""
    powers = range(math.floor(low), math.ceil(high) + 1)
    values = [(math.log10(step) + power, step, power) for step in (1, 2, 5) for power in powers]
    return tuple(
        (place, f"{step * 10.0**power:g}")
        for place, step, power in values
        if low - 1e-9 <= place <= high + 1e-9
    )
