"""A quality of ECMA-418-2 in bands: the last minute as colors, and the strongest band in words."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from amt_monitor.base.widgets import plain_label
from amt_monitor.panes.spectrogram_pane import CHANNELS
from amt_monitor.panes.spectrum_pane import HZ_TICKS
from amt_monitor.panes.waterfall_pane import CurvesOf, LastMinutePane, curves_of
from amt_monitor.plot.frequency_plot import hertz_text
from amt_monitor.plot.history_traces import ticks_of, top_of
from amt_monitor.plot.plot import Plot, PlotAxis
from amt_stream.meters.catalog import Entry
from amt_stream.meters.rows import reading_text
from amt_stream.meters.rows.models.band_shares import LEAST_VALUE

if TYPE_CHECKING:
    from amt_stream.engine import Engine, Frames
    from amt_stream.views.view_state import ViewState


class SpecificQuality(NamedTuple):
    """A quality in bands.

    name: as in "specific roughness"
    value, specific, hz: outputs of the model that have its value, that in bands, and a frequency
        or rate, if there is one
    strongest: sentence on the band with the highest specific value; `{band}` is its center
        frequency, and `{hz}` the model's frequency or rate
    smallest_top: of the color scale
    """

    name: str
    value: str
    strongest: str
    smallest_top: float
    specific: str = "specific"
    hz: str = ""


QUALITIES = (
    SpecificQuality("loudness", "n", "loudest at {band} Hz", 0.1),
    SpecificQuality("tonality", "t", "strongest tone at {hz} Hz", 0.1, hz="hz"),
    SpecificQuality("roughness", "r", "roughest at {band} Hz, modulated by {hz} Hz", 0.05, hz="hz"),
    SpecificQuality("fluctuation", "f", "most at {band} Hz", 0.05),
)

OF_ALL = {"tonality": "tone_hz", "roughness": "modulation_hz"}
"""The frequency or rate of a quality in the output of a model of all."""

SPECIFIC = {
    **{f"ecma_{one.name}": (one,) for one in QUALITIES},
    "ecma": tuple(
        one._replace(specific=f"specific_{one.value}", hz=OF_ALL.get(one.name, ""))
        for one in QUALITIES
    ),
}
"""The qualities of which a model has a pane each."""


class SpecificQualityPane(LastMinutePane):
    """Specific values over time, low frequencies at the bottom, and the strongest band now.

    The colors begin at 0 and end above the highest value of the last minute.

    entry: the model in the catalog
    model: its name in the engine
    quality: one of those that it has in `SPECIFIC`
    """

    def __init__(self, entry: Entry, model: str, quality: SpecificQuality) -> None:
        self._of, self._model = quality, model
        (output,) = (one for one in entry.outputs.values() if one.field == quality.specific)
        self._unit = output.unit
        ticks = [(float(band_at(f)), hertz_text(f)) for f in HZ_TICKS]
        name = specific_name(entry.name, quality)
        plot = Plot(f"{name}_plot", key=True)
        bands = len(_centers())
        y = PlotAxis(0.0, float(bands), ticks, ())
        super().__init__(name, specific_title(quality), "Hz", plot, bands, y, CHANNELS)
        plot.setAccessibleName(f"specific {self._of.name} of the last minute as colors")
        self.strongest = plain_label("strongest")
        self.scale = plain_label("scale", role="second")
        for label in (self.strongest, self.scale):
            self.head.addWidget(label)
        self.fit()

    def followed(self, engine: "Engine") -> CurvesOf | None:
        return curves_of(engine, self._model, self._of_both)

    def _of_both(self, frames: "Frames") -> np.ndarray:
        specific = getattr(frames.values, self._of.specific)
        return np.broadcast_to(specific, (2, *specific.shape[1:]))

    def read(self, view: "ViewState") -> None:
        if (frames := view.frames.get(self._model)) is not None:
            self.strongest.setText(self.words(frames))
            self.plot.setAccessibleDescription(self.strongest.text())
        self.fit()

    def words(self, frames: "Frames", place: int = -1) -> str:
        """What is strongest in a frame, by default the last one; nothing if it is too weak."""
        values = frames.values
        each = getattr(values, self._of.value)[:, place]
        channel = int(np.argmax(np.nan_to_num(each)))
        if not each[channel] > LEAST_VALUE:
            return ""
        specific = getattr(values, self._of.specific)[channel, place]
        band, hz = int(np.argmax(np.nan_to_num(specific))), None
        if self._of.hz:
            hz = float(getattr(values, self._of.hz)[channel, place])
        return self._of.strongest.format(
            band=reading_text("_hz", round(float(_centers()[band]), -1)), hz=reading_text("_hz", hz)
        )

    def restart(self) -> None:
        super().restart()
        self.fit()

    def texts(self) -> tuple[str, ...]:
        return self.strongest.text(), self.scale.text()

    def fit(self) -> None:
        """Fit the colors to the highest value of the minute."""
        highest = self.colors.highest
        least = self._of.smallest_top
        top = max(least, top_of(highest)) if np.isfinite(highest) else least
        self.colors.set_colors(0.0, top, ticks_of(0.0, top))
        self.scale.setText(f"0 to {top:g} {self._unit}")


def specific_name(model: str, quality: SpecificQuality) -> str:
    """Name of the pane of a quality of a catalog model."""
    return f"specific_{model}_{quality.name}" if len(SPECIFIC[model]) > 1 else f"specific_{model}"


def specific_title(quality: SpecificQuality) -> str:
    """Title of the pane of a quality."""
    return f"Specific {quality.name}, last minute"


def band_at(hz: float) -> float:
    """The place of a frequency on the axis of bands; the center of the first band is at 0.5."""
    centers = _centers()
    return float(np.interp(hz, centers, np.arange(len(centers)) + 0.5))


def _centers() -> NDArray[np.float64]:
    """Center frequencies of the bands in Hz."""
    from amt_stream.dsp.functional.ecma418.bands import CENTERS  # torch is slow to import

    return CENTERS
