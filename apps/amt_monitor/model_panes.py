"""A pane for each model that runs beside others."""

from collections.abc import Collection, Mapping
from typing import Any

from pyqtgraph.Qt import QtWidgets

from amt_monitor.bar import Bar, BarScale
from amt_monitor.numbers import sone_text
from amt_monitor.reading_pane import FIRST, Cell, ReadingPane, Row, plain_cell, tenths
from amt_monitor.theme import tint
from amt_stream.catalog import Entry
from amt_stream.metering import EBU_9, EBU_18
from amt_stream.rows import HIGHEST_PHON, band_texts

TARGET_LUFS = -23.0
"""What is 0 LU (EBU R 128)."""

PEAK_LIMIT_DBTP = -1.0
"""What no true peak is to exceed (EBU R 128)."""

EBU_SCALES = {
    "EBU +9": BarScale(EBU_9.low, EBU_9.high, tuple(range(-18, 10, 3)), signed=True),
    "EBU +18": BarScale(EBU_18.low, EBU_18.high, tuple(range(-36, 19, 6)), signed=True),
}
PEAK_SCALE = BarScale(-40.0, 3.0, (-40, -30, -20, -10, 0))


def lu_text(level_lufs: float) -> str:
    """A loudness relative to the target, with its sign."""
    return f"{round(level_lufs - TARGET_LUFS, 1) + 0.0:+.1f}"


def table_phon(phon: float) -> str:
    """Loudness level by a table that ends at 120 phon."""
    return f">{HIGHEST_PHON:.0f}" if phon >= HIGHEST_PHON else tenths(phon)


class LoudnessPane(ReadingPane):
    """A model of the Moore family.

    ltl, stl: time constants in words
    prefix: of the names of its readings
    """

    def __init__(
        self,
        entry: Entry,
        about: str,
        ltl: str,
        stl: str,
        names: Collection[str],
        prefix: str = "",
    ) -> None:
        self._prefix = prefix
        rows = (
            Row(1, self._pair("LTL", "ltl", f"long-term, {ltl}")),
            Row(1, self._pair("STL", "stl", f"short-term, {stl}")),
        )
        small = (
            *self._pair("max LTL", "max_ltl"),
            *self._pair("max STL", "max_stl"),
            Cell("LTL N5", f"{self._prefix}ltl_n5_phon", "phon", table_phon),
        )
        super().__init__(entry, about, rows, small, 2, 3, names)

    def _pair(self, caption: str, reading: str, about: str = "") -> list[Cell]:
        return [
            Cell(caption, f"{self._prefix}{reading}_sone", "sone", sone_text, about),
            Cell("", f"{self._prefix}{reading}_phon", "phon", table_phon),
        ]

    def show_readings(self, found: Mapping[str, Any]) -> None:
        super().show_readings(found)
        for name in ("ltl", "stl"):
            stem = f"{self._prefix}{name}"
            sone, low, high = (found.get(f"{stem}{edge}_sone") for edge in ("", "_low", "_high"))
            widths = ("", "")
            if sone is not None and low is not None and high is not None:
                widths = band_texts(sone, low, high)
            for unit, width in zip(("sone", "phon"), widths, strict=True):
                self.show_band(f"{stem}_{unit}", width)


def moore2016_pane(entry: Entry, names: Collection[str]) -> LoudnessPane:
    """Of Moore2016."""
    about = "ISO 532-3, both ears"
    return LoudnessPane(entry, about, "99 ms up, 0.75 s down", "22 ms up, 30 ms down", names)


def gm2002_pane(entry: Entry, names: Collection[str]) -> LoudnessPane:
    """Of Glasberg2002."""
    ltl, stl = "99 ms up, 2 s down", "22 ms up, 50 ms down"
    return LoudnessPane(entry, "ANSI S3.4-2007", ltl, stl, names, "gm2002_")


def zwicker_pane(entry: Entry, names: Collection[str]) -> ReadingPane:
    """Of ZwickerTimeVarying."""
    both = "louder of both channels" if "zwicker_n_left_sone" in names else ""

    def sone(caption: str, reading: str, about: str = "") -> Cell:
        return Cell(caption, f"zwicker_{reading}_sone", "sone", sone_text, about)

    def phon(caption: str, reading: str) -> Cell:
        return Cell(caption, f"zwicker_{reading}_phon", "phon")

    rows = (
        Row(1, (sone("N", "n", both), phon("", "n"))),
        Row(1, (sone("N5", "n5", "5 % of time"), sone("Nmax", "nmax"))),
    )
    small = (
        *(phon("N5", "n5"), sone("N50", "n50")),
        *(sone("N left", "n_left"), phon("", "n_left")),
        *(sone("N right", "n_right"), phon("", "n_right")),
        *(plain_cell(name, sone_text) for name in names if name.endswith("_acum")),
    )
    about = "ISO 532-1, time-varying"
    return ReadingPane(entry, about, rows, small, 2, 3, names)


def sound_level_pane(entry: Entry, names: Collection[str]) -> ReadingPane:
    """Of SoundLevel."""
    two = "laf_left_db" in names
    both = ", higher of both channels" if two else ""
    rows = (
        Row(5, [Cell("LAF", "laf_db", "dB", about=f"A-weighted, fast{both}")]),
        Row(
            4,
            (
                Cell("LAeq", "laeq_db", "dB"),
                Cell("LAFmax", "lafmax_db", "dB"),
                Cell("LCpeak", "lcpeak_db", "dB"),
            ),
        ),
        Row(
            3,
            (
                Cell("LAF10", "l10_db", "dB", about="10 % of time"),
                Cell("LAF50", "l50_db", "dB", about="50 % of time"),
                Cell("LAF90", "l90_db", "dB", about="90 % of time"),
            ),
        ),
    )
    small = [
        Cell(caption, f"{caption.lower().replace(' ', '_')}_db", "dB")
        for caption in ("LAF left", "LAS", "LCF", "LZF", "LAF right", "LAI", "LCS", "LZS")
    ]
    across = 4 if two else 3
    return ReadingPane(entry, "IEC 61672", rows, small, across, 4, names)


class ProgrammePane(ReadingPane):
    """Programme loudness, with bars for momentary loudness and true peak."""

    def __init__(self, entry: Entry, names: Collection[str]) -> None:
        main = (
            ("M", "momentary", "momentary, 0.4 s"),
            ("S", "short_term", "short-term, 3 s"),
            ("I", "integrated", "integrated"),
        )
        lufs = [Cell(c, f"{name}_lufs", "LUFS", about=about) for c, name, about in main]
        lu = [Cell("", f"{name}_lufs", "LU", lu_text, label=f"{name}_lu") for _, name, _ in main]
        rows = (
            Row(5, lufs),
            Row(2, lu, largest=0.6),
            Row(
                4,
                (
                    Cell("LRA", "lra_lu", "LU"),
                    Cell("True peak", "true_peak_dbtp", "dBTP"),
                    Cell("max M", "max_momentary_lufs", "LUFS"),
                    Cell("max S", "max_short_term_lufs", "LUFS"),
                ),
            ),
        )
        about = f"ITU-R BS.1770, EBU R 128; 0 LU = {TARGET_LUFS:g} LUFS"
        super().__init__(entry, about, rows, (), 1, 4, names)
        self.scale = QtWidgets.QComboBox()
        self.scale.setObjectName("scale")
        self.scale.addItems(list(EBU_SCALES))
        self.scale.currentTextChanged.connect(self._rescale)
        self.head.addWidget(self.scale)
        first = EBU_SCALES[self.scale.currentText()]
        self.momentary = Bar("bar_momentary", "M in LU", first, limit=0.0, over="amber")
        self.peak = Bar("bar_peak", "True peak in dBTP", PEAK_SCALE, limit=PEAK_LIMIT_DBTP)
        for bar in (self.momentary, self.peak):
            bar.setMinimumHeight(2 * bar.fontMetrics().height() + 10)
            self.body.insertWidget(self.body.indexOf(self.badge) - 1, bar, 3 * FIRST)
        self._peak_number = self.findChild(QtWidgets.QLabel, "true_peak_dbtp")
        self._over = False

    def show_readings(self, found: Mapping[str, Any]) -> None:
        super().show_readings(found)
        self.draw(found)

    def draw(self, found: Mapping[str, Any]) -> None:
        """Move the bars; the lines in them are the maxima."""
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

    def doubt(self, grey: bool, uncalibrated: bool) -> None:
        super().doubt(grey, uncalibrated)
        if self._over and not grey:
            tint(self._peak_number, "red", hatched=uncalibrated)

    def _rescale(self, name: str) -> None:
        self.momentary.set_scale(EBU_SCALES[name])
