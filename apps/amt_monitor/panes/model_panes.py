"""The panes of the shipped models."""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from pyqtgraph.Qt import QtCore, QtGui, QtWidgets

from amt_monitor.base.theme import tint
from amt_monitor.base.widgets import combo_box
from amt_monitor.panes.bands_pane import LOWEST_PLOT
from amt_monitor.panes.reading_pane import ReadingPane
from amt_monitor.plot.curve_layers import CurveLayer
from amt_monitor.plot.frequency_plot import FrequencyPlot
from amt_monitor.plot.level_bar import LevelBar, LevelBarScale
from amt_monitor.plot.plot import PlotAxis
from amt_stream.meters.accumulators import EBU_9, EBU_18
from amt_stream.meters.catalog import Entry
from amt_stream.meters.rows import band_texts, signed_text
from amt_stream.meters.rows.limit_words import silence
from amt_stream.meters.rows.models.annoyance import USUAL as ANNOYANCE
from amt_stream.meters.state_signs import is_away
from amt_stream.views.reading_cell import ReadingCell

if TYPE_CHECKING:
    from amt_stream.engine import Engine
    from amt_stream.sessions.outputs import FollowedReadings
    from amt_stream.views.view_state import ViewState

TARGET_LUFS = -23.0
"""0 LU (EBU R 128)."""

PEAK_LIMIT_DBTP = -1.0
"""The limit of the true peak (EBU R 128)."""

ECMA = "ECMA-418-2:2025"
HIGHER = ", higher of both channels"

EBU_SCALES = {
    "EBU +9": LevelBarScale(EBU_9.low, EBU_9.high, tuple(range(-18, 10, 3)), signed=True),
    "EBU +18": LevelBarScale(EBU_18.low, EBU_18.high, tuple(range(-36, 19, 6)), signed=True),
}
LOW = 260
"""Pixels: in a lower pane the bars stand side by side."""
BESIDE = QtWidgets.QBoxLayout.Direction.LeftToRight
BELOW = QtWidgets.QBoxLayout.Direction.TopToBottom

PEAK_SCALE = LevelBarScale(-40.0, 3.0, (-40, -30, -20, -10, 0))


def lu_text(level_lufs: float) -> str:
    return signed_text(level_lufs - TARGET_LUFS)


class LoudnessPane(ReadingPane):
    """A model of the Moore family.

    prefix: of the names of its readings
    """

    def __init__(self, entry: Entry, about: str, names: Collection[str], prefix: str = "") -> None:
        self._prefix = prefix
        large = self._pair("ltl"), self._pair("stl")
        small = (
            self._pair("max_ltl"),
            self._pair("max_stl"),
            [ReadingCell(f"{prefix}ltl_n5_phon")],
        )
        super().__init__(entry, about, large, small, names, tiles=True)

    def _pair(self, reading: str) -> list[ReadingCell]:
        return [ReadingCell(f"{self._prefix}{reading}_{unit}") for unit in ("sone", "phon")]

    def show_readings(self, found: Mapping[str, Any]) -> None:
        super().show_readings(found)
        for name in ("ltl", "stl"):
            stem = f"{self._prefix}{name}"
            sone, low, high = (found.get(f"{stem}{edge}_sone") for edge in ("", "_low", "_high"))
            widths = ("", "")
            if sone is not None and low is not None and high is not None:
                widths = band_texts(sone, low, high)
            for unit, width in zip(("sone", "phon"), widths, strict=True):
                self.grid.show_band(f"{stem}_{unit}", width)


def moore2016_pane(entry: Entry, names: Collection[str]) -> LoudnessPane:
    return LoudnessPane(entry, "ISO 532-3, both ears", names)


def gm2002_pane(entry: Entry, names: Collection[str]) -> LoudnessPane:
    return LoudnessPane(entry, "ANSI S3.4-2007, both ears", names, "gm2002_")


def zwicker_pane(entry: Entry, names: Collection[str]) -> ReadingPane:

    def pair(reading: str) -> list[ReadingCell]:
        return [ReadingCell(f"zwicker_{reading}_{unit}") for unit in ("sone", "phon")]

    large = pair("n"), [ReadingCell("zwicker_n5_sone")], [ReadingCell("zwicker_nmax_sone")]
    small = (
        *([ReadingCell(name)] for name in ANNOYANCE),
        [ReadingCell("zwicker_n5_phon")],
        [ReadingCell("zwicker_n50_sone")],
        pair("n_left"),
        pair("n_right"),
    )
    about = "ISO 532-1, time-varying"
    if "zwicker_n_left_sone" in names:
        about += ", louder of both channels"
    return ReadingPane(entry, about, large, small, names)


def ecma_pane(entry: Entry, names: Collection[str]) -> ReadingPane:

    def cells(metric: str, *ends: str) -> list[ReadingCell]:
        return [ReadingCell(f"ecma_{metric}_{end}") for end in ends]

    large = (
        cells("loudness", "sone"),
        cells("tonality", "tu", "hz"),
        cells("roughness", "asper", "hz"),
        cells("fluctuation", "vacil"),
    )
    small = (
        cells("loudness", "mean_sone"),
        cells("loudness", "n5_sone"),
        cells("tonality", "mean_tu"),
        cells("roughness", "r10_asper"),
        cells("fluctuation", "f10_vacil"),
    )
    about = f"{ECMA}, fluctuation provisional"
    return ReadingPane(entry, about, large, small, names, tiles=True)


EARS = ", both ears"
METRICS: dict[str, tuple[str, str, str, str]] = {
    "ecma_loudness": (f"{ECMA}, clause 8", "sone mean_sone max_sone", "n5 n50", EARS),
    "ecma_tonality": (f"{ECMA}, clause 6", "tu,hz mean_tu max_tu", "t5", HIGHER),
    "ecma_roughness": (f"{ECMA}, clause 7", "asper,hz r10_asper max_asper", "mean r50", EARS),
    "ecma_fluctuation": (
        f"{ECMA}, clause 9, provisional",
        "vacil f10_vacil max_vacil",
        "mean f50",
        EARS,
    ),
    "daniel_weber": ("Daniel & Weber (1997)", "asper r10_asper max_asper", "mean r50", HIGHER),
}
"""Of each metric: its method, the ends of the names of its large readings, its other statistics,
and how two channels become one number."""


def metric_pane(entry: Entry, names: Collection[str]) -> ReadingPane:
    """A metric with its statistics."""
    about, large, small, of_both = METRICS[entry.name]
    ends = [cells.split(",") for cells in large.split()]
    unit = ends[0][0]
    first = [[ReadingCell(f"{entry.name}_{end}") for end in cells] for cells in ends]
    then = [
        [ReadingCell(f"{entry.name}_{end}_{unit}")] for end in (*small.split(), "left", "right")
    ]
    if f"{entry.name}_left_{unit}" in names:
        about += of_both
    return ReadingPane(entry, about, first, then, names)


def sound_level_pane(entry: Entry, names: Collection[str]) -> ReadingPane:
    about = "IEC 61672"
    if "laf_left_db" in names:
        about += ", higher of both channels"
    large = [[ReadingCell(f"{name}_db")] for name in ("laf", "laeq", "lafmax")]
    order = ("lcpeak", "l10", "l50", "l90", "laeq_1s", "las", "lai", "laf_left", "laf_right")
    small = [[ReadingCell(f"{name}_db")] for name in (*order, "lcf", "lcs", "lzf", "lzs")]
    return ReadingPane(entry, about, large, small, names)


class ProgrammePane(ReadingPane):
    """Programme loudness, with bars for momentary loudness and true peak."""

    def __init__(self, entry: Entry, names: Collection[str]) -> None:
        large = [
            [ReadingCell(f"{name}_lufs"), ReadingCell(f"{name}_lufs", f"{name}_lu", lu_text)]
            for name in ("integrated", "momentary", "short_term")
        ]
        order = ("lra_lu", "true_peak_dbtp", "max_momentary_lufs", "max_short_term_lufs")
        about = f"ITU-R BS.1770, EBU R 128; 0 LU = {TARGET_LUFS:g} LUFS"
        super().__init__(entry, about, large, [[ReadingCell(name)] for name in order], names)
        self.scale = combo_box("scale", EBU_SCALES, self._rescale)
        self.scale.setObjectName("scale")
        self.head.addWidget(self.scale)
        first = EBU_SCALES[self.scale.currentText()]
        self.momentary = LevelBar(
            "bar_momentary", "M in LU, target at 0", first, limit=0.0, over="accent"
        )
        self.peak = LevelBar("bar_peak", "True peak in dBTP", PEAK_SCALE, limit=PEAK_LIMIT_DBTP)
        self._bars = QtWidgets.QBoxLayout(BESIDE, spacing=12)
        self.body.addLayout(self._bars)
        for bar in (self.momentary, self.peak):
            bar.setMinimumHeight(2 * bar.fontMetrics().height() + 10)
            self._bars.addWidget(bar)
        self._peak_number = self.findChild(QtWidgets.QLabel, "true_peak_dbtp")
        self._over = False

    def show_readings(self, found: Mapping[str, Any]) -> None:
        super().show_readings(found)
        self.draw(found)

    def draw(self, found: Mapping[str, Any]) -> None:
        """Move the bars; their lines are the maxima."""
        now, highest = found.get("momentary_lufs"), found.get("max_momentary_lufs")
        peak = found.get("true_peak_dbtp")
        low = self.momentary.scale.low
        self.momentary.set_level(
            low if now is None else now - TARGET_LUFS,
            None if highest is None else highest - TARGET_LUFS,
        )
        self.momentary.set_text("" if highest is None else f"max {lu_text(highest)}", False)
        self.peak.set_level(PEAK_SCALE.low if peak is None else peak)
        self._over = peak is not None and peak > PEAK_LIMIT_DBTP
        limit = f"limit {PEAK_LIMIT_DBTP:g} dBTP"
        self.peak.set_text(f"over the {limit}" if self._over else limit, False)

    def lose(self) -> None:
        self.draw({})

    def doubt(self, grey: bool, uncalibrated: bool) -> None:
        super().doubt(grey, uncalibrated)
        if self._over and not grey and self._peak_number is not None:
            tint(self._peak_number, "red", hatched=uncalibrated)

    def resizeEvent(self, event: QtGui.QResizeEvent) -> None:
        self._bars.setDirection(BESIDE if self.height() < LOW else BELOW)

    def minimumSizeHint(self) -> QtCore.QSize:
        """With the bars beside each other, as they are in the least height."""
        least = super().minimumSizeHint()
        if self._bars.direction() == BELOW:
            least -= QtCore.QSize(0, self.peak.minimumHeight() + self._bars.spacing())
        return least

    def _rescale(self) -> None:
        self.momentary.set_scale(EBU_SCALES[self.scale.currentText()])


AUDIBLE = PlotAxis(-20.0, 60.0, [(float(db), f"{db}") for db in range(-20, 61, 20)])
"""Audibility of a target in dB."""


class PartialPane(ReadingPane):
    """Of `PartialLoudness`. A target is inaudible below the dashed line, its masked threshold."""

    def __init__(self, entry: Entry, names: Collection[str]) -> None:
        large = [[ReadingCell("partial_ltl_sone")], [ReadingCell("audible_db")]]
        small = [
            [ReadingCell(name)]
            for name in (
                "partial_stl_sone",
                "target_sone",
                "background_sone",
                "lost_share",
                "audible_hz",
            )
        ]
        super().__init__(entry, "target above background, both ears", large, small, names)
        self.plot = FrequencyPlot("partial_plot")
        self.plot.setMinimumHeight(LOWEST_PLOT)
        self.plot.setAccessibleName("audibility of the target by frequency")
        self.audibility, self.threshold = CurveLayer("left"), CurveLayer("accent", dashed=True)
        self.plot.set_layers((self.threshold, self.audibility))
        self.plot.set_unit("dB above masked threshold", False)
        self.plot.set_axes(y=AUDIBLE)
        self.body.insertWidget(self.body.indexOf(self.grid), self.plot, 3)
        self._lg_hz = np.empty(0)

    def take_frames(self, engine: "Engine", readings: "FollowedReadings | None") -> None:
        self._lg_hz = np.log10(engine.models[self.model].frequencies)

    def show_status(self, view: "ViewState") -> None:
        super().show_status(view)
        self.plot.rest(bool(silence(view.held)))
        frames = view.frames.get(self.model)
        if frames is None or is_away(view.held) or not len(self._lg_hz):
            self.restart()
            return
        db = np.clip(frames.values.audibility_db[-1], AUDIBLE.low, AUDIBLE.high)
        self.audibility.set(self._lg_hz, db)
        self.threshold.set(self._lg_hz[[0, -1]], np.zeros(2))

    def restart(self) -> None:
        self.audibility.clear()
        self.threshold.clear()
