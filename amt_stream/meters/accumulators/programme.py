"""Programme loudness: momentary, short-term, integrated, range and peaks."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from amt_stream.meters.accumulators import gating
from amt_stream.meters.accumulators.gating import (
    EXCLUDED,
    MEASURED,
    PEAKS,
    SHORT_TERM,
    TAKEN,
    TOPS,
    UNHEARD,
    UNMEASURED,
    WINDOWS,
    GatedEnergies,
)
from amt_stream.meters.accumulators.level import finite
from amt_stream.meters.accumulators.meter import Meter

FRAME_RATE = 100

Values = NDArray[np.float64]


@dataclass(frozen=True)
class DisplayScale:
    """The range of a display, from `low` to `high` in LU re the target (EBU Tech 3341)."""

    low: float
    high: float


EBU_9 = DisplayScale(-18.0, 9.0)
EBU_18 = DisplayScale(-36.0, 18.0)


COLUMNS = (
    "momentary_lufs",
    "short_term_lufs",
    "integrated_lufs",
    "lra_lu",
    "max_momentary_lufs",
    "max_short_term_lufs",
    "true_peak_dbtp",
    "sample_peak_dbfs",
)


class ProgrammeLoudness(Meter):
    """Readings of programme loudness (ITU-R BS.1770-5, EBU R 128, Tech 3341 and 3342).

    target_lufs: what is 0 LU
    columns: readings that `update` returns after each frame, of `COLUMNS`

    Momentary (400 ms) and short-term (3 s) loudness are ungated and continue through pauses and
    resets. Other readings count only windows that are completely within the measurement: after the
    last reset, and without pauses or invalid frames (gaps, invalid samples). Invalid frames are in
    no reading: momentary loudness is unknown for 400 ms after them, and short-term loudness for 3
    s. There is no settling from silence: the method begins with filters at rest, and the first
    frame counts. Integrated loudness is within 0.03 LU of the exact value and the loudness range
    within 0.05 LU, for any duration; below a minute the range has little meaning. As columns both
    are updated every 0.1 s, with each of their blocks.

    Raises ValueError for a column that it does not have.
    """

    kept: ClassVar[tuple[str, ...]] = ("paused", "_past", "_now", "_blocks", "_ranged")
    kept += ("_frames", "_running")

    def __init__(self, target_lufs: float = -23.0, columns: Sequence[str] = COLUMNS[:2]) -> None:
        super().__init__(columns)
        self.refuse_unknown(COLUMNS)
        self.target_lufs = target_lufs
        self._rows = [COLUMNS.index(name) for name in self.columns]
        self._renewed = np.array([name in self.columns for name in ("integrated_lufs", "lra_lu")])
        # The last frames, oldest first; unknown until the sound is long enough.
        self._past: Values = np.full(SHORT_TERM - 1, np.nan)
        self._now = np.full(len(WINDOWS), np.nan)
        self._frames = np.zeros(5, np.int64)
        self.reset()

    def reset(self) -> None:
        """Restart integration and maxima; a pause continues."""
        self.begin_part()
        self._frames[UNHEARD] = self._frames[TAKEN]

    def begin_part(self) -> None:
        """Restart like `reset`, but maxima include all windows that end from now on."""
        self._blocks, self._ranged = GatedEnergies(), GatedEnergies()
        self._running = gating.NOTHING.copy()
        self._frames[MEASURED] = self._frames[EXCLUDED] = 0
        self._frames[UNMEASURED] = self._frames[TAKEN]
        # Of a frame, of the sound in the one that its end lies in.
        self._part = 0.0

    def relative(self, level_lufs: Any) -> Any:
        """A loudness in LU re the target."""
        return level_lufs - self.target_lufs

    def update(
        self,
        energy: NDArray[np.floating],
        true_peak: NDArray[np.floating],
        sample_peak: NDArray[np.floating],
        valid: NDArray[np.bool_] | None = None,
    ) -> Values:
        """Take the output of `BS1770`, (n,) and (channel, n) peaks.

        Returns the columns (column, n) at the ends of these frames, by default momentary and
        short-term loudness; NaN if unknown, minus infinity for silence.
        """
        count = len(energy)
        if not count:
            return np.empty((len(self.columns), 0))
        if valid is not None and not valid.all():
            energy = np.where(valid, energy, np.nan)
        energies = np.concatenate([self._past, energy])
        self._past = energies[count:].copy()
        means, levels = _levels(energies)
        told = np.empty((len(self._running), count))
        self._now = levels[:, -1].copy()
        both, at, window = (self._blocks, self._ranged), 0, 0
        given = energies[SHORT_TERM - 1 :], means, levels, true_peak, sample_peak, self.paused, True
        while True:
            gated = tuple((one.counts, one.sums) for one in both)
            state = self._renewed, gated, self._frames, self._running, told
            at, window = gating.follow(at, *given, *state)
            if at == count:
                return _readings(levels, told)[self._rows]
            both[window].reach(gating.class_of(levels[window, at]))

    def tail(
        self,
        energy: NDArray[np.floating],
        true_peak: NDArray[np.floating],
        sample_peak: NDArray[np.floating],
        valid: NDArray[np.bool_],
        part: float,
    ) -> None:
        """Take frames after the end of the sound; arrays are those of `update`.

        They count in peaks, and in the highest momentary and short-term loudness if the sound is
        long enough, but in no gated block, as none extends past the end (BS.1770-5). Of their time
        only the `part` of the first frame counts.
        """
        if self.paused or not len(energy):
            return
        energies = np.concatenate([self._past, np.where(valid, energy, np.nan)])
        lasted = self._frames[TAKEN] - self._frames[UNHEARD]
        tops, peaks = self._running[TOPS], self._running[PEAKS]
        _, levels = _levels(energies)
        for k, window in enumerate(WINDOWS):
            if lasted >= window:
                tops[k] = np.fmax.reduce(levels[k], initial=tops[k])
        for k, given in enumerate((true_peak, sample_peak)):
            peaks[k] = np.fmax.reduce(np.where(valid, given, 0.0), axis=None, initial=peaks[k])
        self._part = part if valid[0] else 0.0

    def skip(self, count: int) -> None:
        """Skip missing frames, which are left out; no block spans them."""
        if not self.paused:
            self._frames[EXCLUDED] += count
        unknown = np.full(min(count, len(self._past)), np.nan)
        self._past = np.concatenate([self._past, unknown])[len(unknown) :]
        self._frames[TAKEN] += count
        self._frames[[UNMEASURED, UNHEARD]] = self._frames[TAKEN]

    def reading(self) -> dict[str, float | None]:
        """All readings by name, in LUFS, LU, dBTP, dBFS and seconds; None without a value."""
        gating.compile_gating()
        running = self._running.copy()
        gating.tell_mean(self._blocks.counts, self._blocks.sums, running)
        gating.tell_range(self._ranged.counts, self._ranged.sums, running)
        readings = _readings(self._now[:, None], running[:, None])[:, 0]
        return {
            **{name: finite(value) for name, value in zip(COLUMNS, readings, strict=True)},
            "measured_s": (int(self._frames[MEASURED]) + self._part) / FRAME_RATE,
            "excluded_s": int(self._frames[EXCLUDED]) / FRAME_RATE,
        }


def _levels(energies: Values) -> tuple[Values, Values]:
    """Energies and LUFS (2, n) of the windows that end with each frame after `SHORT_TERM` - 1."""
    gating.compile_gating()
    means, levels = np.empty((2, len(WINDOWS), len(energies) - SHORT_TERM + 1))
    gating.window_levels(energies, means, levels)
    return means, levels


def _readings(levels: Values, told: Values) -> Values:
    """What `COLUMNS` names (column, n), from levels of both windows and what `follow` tells."""
    out = np.empty((len(COLUMNS), levels.shape[1]))
    gating.tell_readings(levels, told, out)
    return out
