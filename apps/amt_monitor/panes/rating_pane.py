"""Audible tones in their spectrum, and impulses that can be left out."""

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from pyqtgraph.Qt import QtCore, QtWidgets

from amt_monitor.panes.bands_pane import LOWEST_PLOT
from amt_monitor.panes.reading_pane import ReadingPane
from amt_monitor.plot.curve_layers import CurveLayer
from amt_monitor.plot.frequency_plot import FrequencyColumns, FrequencyPlot
from amt_monitor.plot.line_layers import LabelledMaximum, MarkerLayer, MaximumLayer
from amt_monitor.plot.plot import PlotAxis
from amt_stream.core.words import elapsed_text
from amt_stream.dsp.functional.rating.tones import critical_band
from amt_stream.dsp.scales import P0
from amt_stream.meters.accumulators.rating import Impulse, impulse_adjustment
from amt_stream.meters.catalog import Entry
from amt_stream.meters.frames import Frames, impulse_event
from amt_stream.meters.rows import reading_text
from amt_stream.meters.rows.limit_words import silence
from amt_stream.views.frame_follower import FrameFollower
from amt_stream.views.reading_cell import ReadingCell

if TYPE_CHECKING:
    from amt_stream.engine import Engine
    from amt_stream.sessions.outputs import FollowedReadings
    from amt_stream.views.view_state import ViewState

STEP_DB, SPAN_DB, LEAST_TOP_DB = 20.0, 80.0, 40.0

HEADINGS = ("Counted", "At", "LD, dB", "OR, dB/s", "P", "K_I, dB", "Why not")
WHY = len(HEADINGS) - 1

CHECKED, UNCHECKED = QtCore.Qt.CheckState.Checked, QtCore.Qt.CheckState.Unchecked


class TonePlot(FrequencyPlot):
    """The last spectrum with its tone, the critical band about it, and the masked threshold.

    Two vertical lines are the limits of the band; the dashed line is the level from which on the
    noise in the band does not hide a tone.
    """

    def __init__(self) -> None:
        super().__init__("tone_plot")
        self.setMinimumHeight(LOWEST_PLOT)
        self.setAccessibleName("spectrum with the most audible tone")
        self.spectrum, self.threshold = CurveLayer("left"), CurveLayer("accent", dashed=True)
        self.tone, self.band = MaximumLayer(), MarkerLayer("second")
        self.set_layers((self.band, self.spectrum, self.threshold, self.tone))
        self._columns = FrequencyColumns()
        self.set_unit("dB(A)", False)

    def show_tone(self, values: Any, channel: int, frame: int, line_hz: float) -> None:
        """Show the spectrum that this frame completes."""
        power = values.spectrum[channel, frame].astype(np.float64)
        self._columns.fit(len(power), line_hz, self.inside.width())
        level_db = self._columns.highest(10 * np.log10(np.maximum(power, 1e-20) / P0**2))
        self.spectrum.set(self._columns.x, level_db)
        highest = float(level_db.max())
        hz, level, audible = (
            float(v[channel, frame]) for v in (values.hz, values.level, values.audibility)
        )
        if not values.tones[channel, frame]:
            self.tone.set(())
            self.band.set(())
            self.threshold.clear()
        else:
            low, width = critical_band(hz)
            ends = np.log10([low, low + width])
            self.band.set([(float(lg), "") for lg in ends])
            self.threshold.set(ends, np.full(2, level - audible))
            text = f"{reading_text('_hz', hz)} Hz  {reading_text('_db', audible)} dB audible"
            self.tone.set([LabelledMaximum(float(np.log10(hz)), level, text, "ink")])
            highest = max(highest, level)
        top = max(LEAST_TOP_DB, STEP_DB * np.ceil((highest + 6) / STEP_DB))
        steps = np.arange(top - SPAN_DB, top + 1, STEP_DB).tolist()
        self.set_axes(y=PlotAxis(steps[0], float(top), [(v, f"{v:g}") for v in steps]))

    def forget(self) -> None:
        """Draw no spectrum."""
        self.spectrum.clear()
        self.threshold.clear()
        self.tone.set(())
        self.band.set(())


class ImpulseList(QtWidgets.QTreeWidget):
    """The impulses, the newest first; one without a check mark is left out, for a reason.

    changed: time of an impulse, whether it counts, and why not
    """

    changed = QtCore.Signal(float, bool, str)

    def __init__(self) -> None:
        super().__init__(objectName="impulse_list")
        self.setAccessibleName("impulses, the newest first; those without a check are left out")
        self.setHeaderLabels(list(HEADINGS))
        self.setRootIsDecorated(False)
        self.setUniformRowHeights(True)
        self.setTabKeyNavigation(False)
        self.setEditTriggers(self.EditTrigger.NoEditTriggers)
        self.itemChanged.connect(self._tell)
        self.itemDoubleClicked.connect(self._ask_why)
        self._shown: Sequence[Impulse] = ()
        self._why = dict[float, str]()

    def show_impulses(self, impulses: Sequence[Impulse]) -> None:
        if impulses == self._shown or self.state() == self.State.EditingState:
            return
        self._shown = impulses
        self.blockSignals(True)
        self.clear()
        self.addTopLevelItems([_item(one, self._why) for one in reversed(impulses)])
        self.blockSignals(False)
        for column in range(len(HEADINGS)):
            self.resizeColumnToContents(column)

    def _tell(self, item: QtWidgets.QTreeWidgetItem, column: int) -> None:
        one = self._shown[len(self._shown) - 1 - self.indexOfTopLevelItem(item)]
        counts, why = item.checkState(0) == CHECKED, item.text(WHY).strip()
        if (column == 0 and counts == one.left_out) or column == WHY:
            self._why[one.time_s] = why
            self.changed.emit(one.time_s, counts, "" if counts else why)

    def _ask_why(self, item: QtWidgets.QTreeWidgetItem) -> None:
        if item.checkState(0) == UNCHECKED:
            self.editItem(item, WHY)


def _item(one: Impulse, why: Mapping[float, str]) -> QtWidgets.QTreeWidgetItem:
    numbers = (one.difference_db, one.rate_db_s, one.prominence)
    ki_db = impulse_adjustment(one.prominence)
    texts = [f"{value:.1f}" for value in (*numbers, ki_db)]
    reason = why.get(one.time_s, "") if one.left_out else ""
    item = QtWidgets.QTreeWidgetItem(["", elapsed_text(one.time_s), *texts, reason])
    flags = QtCore.Qt.ItemFlag
    item.setFlags(item.flags() | flags.ItemIsUserCheckable | flags.ItemIsEditable)
    item.setCheckState(0, UNCHECKED if one.left_out else CHECKED)
    return item


CELLS = {
    "tonal_audibility": (
        "a spectrum each 3 s",
        "tone_dl_db tone_hz",
        "tone_mean_dl_db kt_db tone_n",
    ),
    "impulses": ("onsets each 20 ms", "ki_db impulse_max_p", "impulse_p impulse_ld_db"),
    "rating": (
        "LAeq with adjustments",
        "rating_db",
        "rating_laeq_db kt_db ki_db tone_hz impulse_n",
    ),
}
"""Of each model: a word about it, its large readings, and small ones."""


class RatingPane(ReadingPane):
    """Tones, impulses or both, of `TonalAudibility`, `Impulses` or `Rating`.

    The spectrum is that of the channel where the tone is more audible.
    """

    def __init__(self, entry: Entry, names: Collection[str]) -> None:
        about, *cells = CELLS[entry.name]
        groups, lines = ([[ReadingCell(name)] for name in some.split()] for some in cells)
        super().__init__(entry, about, groups, lines, names)
        self.plot = TonePlot() if "tone_hz" in names else None
        self.impulses = ImpulseList() if "impulse_p" in names else None
        place = self.body.indexOf(self.grid)
        for widget in (self.plot, self.impulses):
            if widget is not None:
                self.body.insertWidget(place, widget, 3)
                place += 1
        if self.impulses is not None:
            self.impulses.changed.connect(self._leave_out)
        self._follower = FrameFollower()
        self._engine: Engine | None = None

    def take_frames(self, engine: "Engine", readings: "FollowedReadings | None") -> None:
        self._engine = engine
        for frames in self._follower.new(engine, self.model):
            if self.plot is not None:
                self._take_spectra(frames, engine.models[self.model])
        if self.impulses is not None and readings is not None:
            mine: Any = readings.rows.readings.get(self.model)
            self.impulses.show_impulses([] if mine is None else mine.impulses)

    def _take_spectra(self, frames: Frames, model: Any) -> None:
        values, line_hz = frames.values, float(model.frequencies[1])
        complete: NDArray[np.intp] = np.flatnonzero(values.complete[0] > 0)
        if self.plot is not None and len(complete):
            frame = int(complete[-1])
            channel = int(np.argmax(values.audibility[:, frame]))
            self.plot.show_tone(values, channel, frame, line_hz)

    def _leave_out(self, time_s: float, counts: bool, why: str) -> None:
        """Leave out the impulse that began at this time, or count it again."""
        if self._engine is not None:
            self._engine.tell_event(impulse_event(counts, time_s, why))

    def show_status(self, view: "ViewState") -> None:
        super().show_status(view)
        if self.plot is not None:
            self.plot.rest(bool(silence(view.held)))

    def lose(self) -> None:
        if self.plot is not None:
            self.plot.forget()

    def restart(self) -> None:
        self._follower.clear()
        if self.plot is not None:
            self.plot.forget()
