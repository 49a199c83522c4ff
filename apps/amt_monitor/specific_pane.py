"""A quality of ECMA-418-2 in bands: the last minute as colors, and the strongest band in words."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from amt_monitor.history_traces import top_of
from amt_monitor.plot import Plot, PlotAxis
from amt_monitor.spectrogram_pane import CHANNELS
from amt_monitor.spectrum_pane import HZ_TICKS, hertz_text
from amt_monitor.waterfall_pane import CurvesOf, LastMinutePane
from amt_monitor.widgets import plain_label
from amt_stream.dsp.functional.ecma418 import BANDS, CENTERS
from amt_stream.meters.catalog import Entry
from amt_stream.meters.rows import reading_text

if TYPE_CHECKING:
    from amt_monitor.view_state import ViewState
    from amt_stream.engine import Engine, Frames


class SpecificQuality(NamedTuple):
    """A quality in bands.

    name: as in "specific roughness"
    letter: output of the model that has its value
    least: up to this value nothing is named
    strongest: sentence on the band with the highest specific value; `{band}` is its center
        frequency, and `{hz}` the model's frequency or rate
    smallest_top: of the color scale
    """

    name: str
    letter: str
    least: float
    strongest: str
    smallest_top: float


SPECIFIC = {
    "ecma_loudness": SpecificQuality("loudness", "n", 0.02, "loudest at {band} Hz", 0.1),
    "ecma_tonality": SpecificQuality("tonality", "t", 0.02, "strongest tone at {hz} Hz", 0.1),
    "ecma_roughness": SpecificQuality(
        "roughness", "r", 0.02, "roughest at {band} Hz, modulated by {hz} Hz", 0.05
    ),
    "ecma_fluctuation": SpecificQuality("fluctuation", "f", 0.02, "most at {band} Hz", 0.05),
}
"""The models of which there is a pane."""


class SpecificQualityPane(LastMinutePane):
    """Specific values over time, low frequencies at the bottom, and the strongest band now.

    The colors begin at 0 and end above the highest value of the last minute.

    entry: the model in the catalog
    model: its name in the engine
    """

    def __init__(self, entry: Entry, model: str) -> None:
        self._of, self._model = SPECIFIC[entry.name], model
        (output,) = (one for one in entry.outputs.values() if one.field == "specific")
        self._unit = output.unit
        ticks = [(float(band_at(f)), hertz_text(f)) for f in HZ_TICKS]
        plot = Plot(f"specific_{entry.name}_plot")
        title = specific_title(entry.name)
        y = PlotAxis(0.0, float(BANDS), ticks, ())
        super().__init__(f"specific_{entry.name}", title, "Hz", plot, BANDS, y, CHANNELS)
        plot.setAccessibleName(f"specific {self._of.name} of the last minute as colors")
        self.strongest = plain_label("strongest")
        self.scale = plain_label("scale", role="second")
        for label in (self.strongest, self.scale):
            self.put_in_head(label)
        self.fit()

    def followed(self, engine: "Engine") -> CurvesOf | None:
        frames = engine.histories[self._model].latest if self._model in engine.histories else None
        if frames is None:
            return None
        return CurvesOf(self._model, frames.microphone, _of_both)

    def read(self, view: "ViewState") -> None:
        if (frames := view.frames.get(self._model)) is not None:
            self.strongest.setText(self.words(frames))
            self.plot.setAccessibleDescription(self.strongest.text())
        self.fit()

    def words(self, frames: "Frames", place: int = -1) -> str:
        """What is strongest in a frame, by default the last one; nothing if it is too weak."""
        values = frames.values
        each = getattr(values, self._of.letter)[:, place]
        channel = int(np.argmax(np.nan_to_num(each)))
        if not each[channel] > self._of.least:
            return ""
        band = int(np.argmax(np.nan_to_num(values.specific[channel, place])))
        hz = getattr(values, "hz", None)
        return self._of.strongest.format(
            band=reading_text("_hz", round(float(CENTERS[band]), -1)),
            hz="" if hz is None else reading_text("_hz", float(hz[channel, place])),
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
        self.colors.set_colors(0.0, top)
        self.scale.setText(f"0 to {top:g} {self._unit}")


def specific_title(model: str) -> str:
    """Title of the pane of a model."""
    return f"Specific {SPECIFIC[model].name}, last minute"


def band_at(hz: float) -> float:
    """The place of a frequency on the axis of bands; the center of the first band is at 0.5."""
    return float(np.interp(hz, CENTERS, np.arange(BANDS) + 0.5))


def _of_both(frames: "Frames") -> "np.ndarray":
    specific = frames.values.specific
    return np.broadcast_to(specific, (2, *specific.shape[1:]))
