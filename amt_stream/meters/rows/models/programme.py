"""Readings of programme loudness."""

import math
from dataclasses import replace
from numbers import Real

import numpy as np
from numpy.typing import NDArray

from amt_stream.meters.accumulators import ProgrammeLoudness
from amt_stream.meters.accumulators.gating import compile_gating
from amt_stream.meters.frames import Frames
from amt_stream.meters.rows.column import HIGHEST, RENEWED, Column, Meaning
from amt_stream.meters.rows.readings import MeteredReadings, Summary

DUAL_MONO = 2.0
"""Factor of energy for a mono programme on two loudspeakers, 3.01 LU."""

SETTLE_S = 0.1
"""Seconds after a fault: the high-pass at 38 Hz has then forgotten a sound 50 dB louder."""

BS1770 = "ITU-R BS.1770, EBU R 128."
M, S = "momentary loudness, 0.4 s", "short-term loudness, 3 s"
SETTLES_S = {"momentary_lufs": SETTLE_S + 0.4, "short_term_lufs": SETTLE_S + 3.0}

MEANINGS = {
    "momentary_lufs": Meaning(
        M, "instantaneous", "Momentary", "M", f"Loudness of the last 0.4 s. {BS1770}"
    ),
    "short_term_lufs": Meaning(
        S, "instantaneous", "Short-term", "S", f"Loudness of the last 3 s. {BS1770}"
    ),
    "integrated_lufs": Meaning(
        "loudness",
        "integrated, gated",
        "Integrated",
        "I",
        "Loudness of all that was counted, without what is below -70 LUFS or 10 LU below the rest. "
        + BS1770,
        RENEWED,
    ),
    "lra_lu": Meaning(
        "loudness range",
        "range, gated",
        "Loudness range",
        "LRA",
        "From the soft to the loud parts: 10 to 95 % of short-term loudness, gated. EBU Tech 3342.",
        RENEWED,
    ),
    "max_momentary_lufs": Meaning(
        M, "maximum", "Highest momentary", "M max", f"{HIGHEST} Loudness of 0.4 s. {BS1770}"
    ),
    "max_short_term_lufs": Meaning(
        S, "maximum", "Highest short-term", "S max", f"{HIGHEST} Loudness of 3 s. {BS1770}"
    ),
    "true_peak_dbtp": Meaning(
        "true peak",
        "maximum",
        "True peak",
        "TP",
        "The highest peak, also between samples; of all channels the highest. Programmes stay "
        f"below -1 dBTP. {BS1770}",
    ),
    "sample_peak_dbfs": Meaning(
        "sample peak",
        "maximum",
        "Sample peak",
        "SP",
        "The largest sample, full scale being 0 dB; of all channels the largest.",
    ),
}
UNITS = dict.fromkeys(MEANINGS, "LUFS")
UNITS |= {"lra_lu": "LU", "true_peak_dbtp": "dBTP", "sample_peak_dbfs": "dBFS"}
RELATIVE = {
    "momentary_lufs": "momentary_lu",
    "short_term_lufs": "short_term_lu",
    "integrated_lufs": "integrated_lu",
    "max_momentary_lufs": "max_momentary_lu",
    "max_short_term_lufs": "max_short_term_lu",
}
"""Names of the same, relative to a target."""

USUAL = ("momentary_lufs", "short_term_lufs", "integrated_lufs", "lra_lu", "true_peak_dbtp")


class ProgrammeReadings(MeteredReadings):
    """Momentary, short-term and integrated loudness of a programme, its range and its peaks.

    target_lufs: target loudness, 0 LU of relative columns such as `integrated_lu`; without it there
        are none
    dual_mono: whether one channel counts as two

    Momentary and short-term loudness begin once the sound is as long as their windows.

    Raises ValueError for dual mono with several channels, and for an invalid target.
    """

    headlines = (
        "integrated_lufs",
        "lra_lu",
        "true_peak_dbtp",
        "max_momentary_lufs",
        "max_short_term_lufs",
    )
    of_interval = headlines

    def __init__(
        self, channels: int, target_lufs: float | None = None, dual_mono: bool = False
    ) -> None:
        if dual_mono and channels > 1:
            raise ValueError(
                f"dual mono is for one channel, and the sound has {channels}: choose one of them"
            )
        number = target_lufs is None or isinstance(target_lufs, Real)
        if not number or not math.isfinite(target_lufs or 0.0):
            raise ValueError(f"target_lufs is {target_lufs!r}: give a loudness in LUFS")
        self._gain = DUAL_MONO if dual_mono else 1.0
        self._zero_lufs = target_lufs or 0.0
        self._relative: dict[str, str] = {}
        offered = [_column(name) for name in MEANINGS]
        usual = list(USUAL)
        if target_lufs is not None:
            for column in tuple(offered):
                if column.unit == "LUFS":
                    name = RELATIVE[column.name]
                    self._relative[name] = column.name
                    quantity = f"{column.quantity}, re {target_lufs:g} LUFS"
                    about = f"{column.about} Relative to the target."
                    relative = replace(column, name=name, unit="LU", quantity=quantity, about=about)
                    offered.append(relative)
                    if column.name in USUAL:
                        usual.append(name)
        super().__init__("bs1770", offered, usual)

    def renew(self) -> None:
        absolute = [self._relative.get(c.name, c.name) for c in self.columns]
        self._meters = [ProgrammeLoudness(columns=absolute)]
        # What is taken off each column.
        zeros = [self._zero_lufs if c.name in self._relative else 0.0 for c in self.columns]
        self._zeros = np.array(zeros)

    def compile(self) -> None:
        compile_gating()

    def begin_interval(self) -> None:
        self._meters[0].begin_part()

    def take(self, frames: Frames) -> NDArray[np.float64]:
        given, (meter,) = frames.values, self.meters
        counted = self.counted(frames, SETTLE_S)
        energy = given.energy * self._gain
        readings = meter.update(energy, given.true_peak, given.sample_peak, counted)
        return np.subtract(readings.T, self._zeros, order="C")

    def tail(self, frames: Frames) -> None:
        given, (meter,) = frames.values, self.meters
        counted = self.counted(frames, SETTLE_S)
        energy = given.energy * self._gain
        meter.tail(energy, given.true_peak, given.sample_peak, counted, frames.part)

    def summary(self) -> Summary:
        left_out = ("momentary_lufs", "short_term_lufs", "measured_s", "excluded_s")
        values = {name: v for name, v in self._meters[0].reading().items() if name not in left_out}
        for name, of in self._relative.items():
            value = values.get(of)
            if of in values:
                values[name] = None if value is None else value - self._zero_lufs
        return values


def _column(name: str) -> Column:
    column = MEANINGS[name].column(name, UNITS[name], "bs1770", "", "", "")
    return replace(column, settle_s=SETTLES_S.get(name, 0.0))
