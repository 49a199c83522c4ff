"""Programme loudness: momentary, short-term, integrated, range and peaks."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from amt_stream.core.saved_state import Resumable, Unfitting
from amt_stream.meters.accumulators.extremes import Maximum
from amt_stream.meters.accumulators.meter import Meter

FRAME_RATE = 100
MOMENTARY, SHORT_TERM = 40, 300
"""Frames in 400 ms and in 3 s."""
GRID = 10
"""Frames between gating blocks, and between values of the loudness range."""

ABSOLUTE_GATE = -70.0
"""The absolute gate in LUFS."""
INTEGRATED_GATE, RANGE_GATE = 10.0, 20.0
"""Relative gates in LU below the mean above the absolute gate."""

OVER_MOMENTARY, OVER_SHORT_TERM = np.full(MOMENTARY, 1 / MOMENTARY), np.full(SHORT_TERM, 1 / 300)

Energies = NDArray[np.float64]


def lufs(energy: Any) -> Any:
    """Loudness in LUFS of a weighted energy; minus infinity for 0 (ITU-R BS.1770-5, Annex 1)."""
    with np.errstate(divide="ignore"):
        return -0.691 + 10 * np.log10(energy)


@dataclass(frozen=True)
class DisplayScale:
    """The range of a display, from `low` to `high` in LU re the target (EBU Tech 3341)."""

    low: float
    high: float


EBU_9 = DisplayScale(-18.0, 9.0)
EBU_18 = DisplayScale(-36.0, 18.0)


class GatedEnergies(Resumable):
    """Energies of blocks in classes of 0.01 LU from -70 LUFS on: years in 128 kB.

    Each class has a count and a sum of energies. Blocks louder than 10 LUFS, as of sound that has
    no full scale, make more classes; those above 300 LUFS count in the top class. Blocks that are
    not above -70 LUFS do not count (the absolute gate).
    """

    WIDTH = 0.01
    MOST = round((300.0 - ABSOLUTE_GATE) / WIDTH)
    kept = growing = ("used",)

    def __init__(self) -> None:
        classes = round((10.0 - ABSOLUTE_GATE) / self.WIDTH)
        self.counts: NDArray[np.int64] = np.zeros(classes, np.int64)
        self.sums: Energies = np.zeros(classes)

    def _reach(self, places: NDArray[np.int64]) -> None:
        """Make as many classes as these places need."""
        more = int(places.max(initial=0)) + 1 - len(self.counts)
        if more > 0:
            self.counts = np.append(self.counts, np.zeros(more, np.int64))
            self.sums = np.append(self.sums, np.zeros(more))

    def add(self, energies: Energies) -> None:
        """Count `energies` (n,); NaN is ignored."""
        levels = lufs(energies)
        heard = levels > ABSOLUTE_GATE
        places = ((levels[heard] - ABSOLUTE_GATE) / self.WIDTH).astype(np.int64)
        places = np.minimum(places, self.MOST - 1)
        self._reach(places)
        np.add.at(self.counts, places, 1)
        np.add.at(self.sums, places, energies[heard])

    @property
    def used(self) -> tuple[NDArray[np.int64], Energies]:
        """Indices and counts (2, n), and sums (n,), of the classes that are not empty."""
        places = np.flatnonzero(self.counts)
        return np.stack([places, self.counts[places]]), self.sums[places]

    @used.setter
    def used(self, given: tuple[NDArray[np.int64], Energies]) -> None:
        (places, counts), sums = given
        outside = (places < 0) | (places >= self.MOST)
        if len(places) != len(sums) or outside.any():
            raise Unfitting(f"energies in up to {self.MOST} classes: the state has others")
        self._reach(places)
        self.counts[:], self.sums[:] = 0, 0.0
        self.counts[places], self.sums[places] = counts, sums

    def gate_lufs(self, below: float) -> float:
        """Loudness of the mean energy of all, less `below` LU; NaN without blocks."""
        count = self.counts.sum()
        return float(lufs(self.sums.sum() / count)) - below if count else math.nan

    def above(self, below: float) -> slice:
        """The classes above that gate; none without blocks."""
        gate = self.gate_lufs(below)
        if math.isnan(gate):
            return slice(0, 0)
        place = min(max(0, int((gate - ABSOLUTE_GATE) / self.WIDTH)), len(self.counts) - 1)
        # The class in which the gate lies goes with the mean of what is in it.
        mean = self.sums[place] / max(1, self.counts[place])
        return slice(place if lufs(mean) > gate else place + 1, None)

    def mean_lufs(self) -> float | None:
        """Loudness of the mean energy above the relative gate of integrated loudness."""
        kept = self.above(INTEGRATED_GATE)
        count = self.counts[kept].sum()
        return float(lufs(self.sums[kept].sum() / count)) if count else None

    def range_lu(self) -> float | None:
        """The level exceeded 5 % of the time less that exceeded 90 % (EBU Tech 3342).

        Nearest ranks of the levels above the relative gate; None for fewer than two.
        """
        kept = self.above(RANGE_GATE)
        ranks = np.cumsum(self.counts[kept])
        if not len(ranks) or ranks[-1] < 2:
            return None
        wanted = [math.floor((ranks[-1] - 1) * p + 0.5) for p in (0.10, 0.95)]
        places = kept.start + np.searchsorted(ranks, wanted, side="right")
        low, high = lufs(self.sums[places] / self.counts[places])
        return float(high - low)


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
    scale: `EBU_9` or `EBU_18`, the range of a display
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

    kept: ClassVar[tuple[str, ...]] = ("paused", "_past", "_count", "_unmeasured", "_held")
    kept += ("momentary_lufs", "short_term_lufs", "_blocks", "_ranged", "_measured", "_excluded")
    kept += ("max_momentary", "max_short_term", "true_peaks", "sample_peaks", "_unheard")
    growing = ("true_peaks", "sample_peaks")

    def __init__(
        self,
        target_lufs: float = -23.0,
        scale: DisplayScale = EBU_9,
        columns: Sequence[str] = COLUMNS[:2],
    ) -> None:
        super().__init__(columns)
        self.refuse_unknown(COLUMNS)
        self.target_lufs, self.scale = target_lufs, scale
        # The last frames, oldest first; unknown until the sound is long enough.
        self._past: Energies = np.full(SHORT_TERM - 1, np.nan)
        self._count = self._unheard = 0
        self.momentary_lufs = self.short_term_lufs = math.nan
        self.reset()

    def reset(self) -> None:
        """Restart integration and maxima; a pause continues."""
        self.begin_part()
        self._unheard = self._count

    def begin_part(self) -> None:
        """Restart like `reset`, but maxima include all windows that end from now on."""
        self._blocks, self._ranged = GatedEnergies(), GatedEnergies()
        self.max_momentary, self.max_short_term = Maximum(), Maximum()
        # Of each channel, once there are any.
        self.true_peaks, self.sample_peaks = np.zeros(1), np.zeros(1)
        self._measured = self._excluded = 0
        # Of a frame, of the sound in the one that its end lies in.
        self._part = 0.0
        # Number of frames up to and with the last one that was not measured, of `_unheard`
        # whatever part it was in.
        self._unmeasured = self._count
        self._held = {"integrated_lufs": math.nan, "lra_lu": math.nan}

    def relative(self, level_lufs: Any) -> Any:
        """A loudness in LU re the target."""
        return level_lufs - self.target_lufs

    def update(
        self,
        energy: NDArray[np.floating],
        true_peak: NDArray[np.floating],
        sample_peak: NDArray[np.floating],
        valid: NDArray[np.bool_] | None = None,
    ) -> Energies:
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
        momentary = np.correlate(energies[SHORT_TERM - MOMENTARY :], OVER_MOMENTARY)
        short_term = np.correlate(energies, OVER_SHORT_TERM)
        end = np.arange(self._count + 1, self._count + count + 1)
        on_grid = range(-(self._count + 1) % GRID, count, GRID)
        self._count += count
        levels: Energies = lufs(np.stack([momentary, short_term]))
        self.momentary_lufs, self.short_term_lufs = float(levels[0][-1]), float(levels[1][-1])
        measured = ~np.isnan(energy)
        if self.paused:
            measured[:] = False
        heard = int(np.count_nonzero(measured))
        if not self.paused:
            self._measured += heard
            self._excluded += count - heard
        last: Any = self._unmeasured
        unheard: Any = self._unheard
        if heard < count:
            last, unheard = (
                np.maximum.accumulate(np.where(measured, v, end)) for v in (last, unheard)
            )
            self._unmeasured, self._unheard = int(last[-1]), int(unheard[-1])
        whole, lasted = end - last >= MOMENTARY, end - unheard >= MOMENTARY
        readings = {
            "momentary_lufs": levels[0],
            "short_term_lufs": levels[1],
            **self._renew(self._blocks, momentary, whole, on_grid, "integrated_lufs"),
            **self._top(self.max_momentary, levels[0], lasted, end, "max_momentary_lufs"),
        }
        whole, lasted = end - last >= SHORT_TERM, end - unheard >= SHORT_TERM
        readings |= self._renew(self._ranged, short_term, whole, on_grid, "lra_lu")
        readings |= self._top(self.max_short_term, levels[1], lasted, end, "max_short_term_lufs")
        if heard < count:
            true_peak, sample_peak = (
                np.where(measured, v, np.nan) for v in (true_peak, sample_peak)
            )
        true_peaks = _highest(self.true_peaks, true_peak)
        sample_peaks = _highest(self.sample_peaks, sample_peak)
        self.true_peaks, self.sample_peaks = true_peaks[:, -1], sample_peaks[:, -1]
        if "true_peak_dbtp" in self.columns:
            readings["true_peak_dbtp"] = decibels(true_peaks.max(0))
        if "sample_peak_dbfs" in self.columns:
            readings["sample_peak_dbfs"] = decibels(sample_peaks.max(0))
        return self.in_order(readings, count)

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
        count = len(energy)
        if self.paused or not count:
            return
        energies = np.concatenate([self._past, np.where(valid, energy, np.nan)])
        end = np.arange(self._count + 1, self._count + count + 1)
        lasted = self._count - self._unheard
        for highest, window, over in (
            (self.max_momentary, MOMENTARY, OVER_MOMENTARY),
            (self.max_short_term, SHORT_TERM, OVER_SHORT_TERM),
        ):
            if lasted >= window:
                means = np.correlate(energies[SHORT_TERM - window :], over)
                highest.add(end / FRAME_RATE, lufs(means))
        self.true_peaks, self.sample_peaks = (
            np.fmax(before, np.where(valid, peaks, 0.0).max(1))
            for before, peaks in (
                (self.true_peaks, true_peak),
                (self.sample_peaks, sample_peak),
            )
        )
        self._part = part if valid[0] else 0.0

    def skip(self, count: int) -> None:
        """Skip missing frames, which are left out; no block spans them."""
        super().skip(count)
        unknown = np.full(min(count, len(self._past)), np.nan)
        self._past = np.concatenate([self._past, unknown])[len(unknown) :]
        self._count += count
        self._unmeasured = self._unheard = self._count

    def _renew(
        self,
        blocks: GatedEnergies,
        means: Energies,
        whole: NDArray[np.bool_],
        on_grid: range,
        column: str,
    ) -> dict[str, Energies]:
        """Count the blocks that end on the grid, and return the column (n,) if it is chosen."""
        if column not in self.columns:
            if on_grid:
                due = slice(on_grid.start, on_grid.stop, on_grid.step)
                blocks.add(means[due][whole[due]])
            return {}
        out = np.empty(len(means))
        at = 0
        for k in on_grid:
            out[at:k] = self._held[column]
            blocks.add(means[k : k + 1][whole[k : k + 1]])
            value = blocks.range_lu() if column == "lra_lu" else blocks.mean_lufs()
            self._held[column] = math.nan if value is None else value
            at = k
        out[at:] = self._held[column]
        return {column: out}

    def _top(
        self,
        highest: Maximum,
        level: Energies,
        whole: NDArray[np.bool_],
        end: NDArray[np.integer],
        column: str,
    ) -> dict[str, Energies]:
        """Hold the highest level, and return the column (n,) if it is chosen."""
        if column not in self.columns and not np.count_nonzero(whole & (level > highest.value)):
            return {}
        return {column: highest.add(end / FRAME_RATE, np.where(whole, level, np.nan))}

    def reading(self) -> dict[str, float | None]:
        """All readings by name, in LUFS, LU, dBTP, dBFS and seconds; None without a value."""
        return {
            "momentary_lufs": _known(self.momentary_lufs),
            "short_term_lufs": _known(self.short_term_lufs),
            "integrated_lufs": self._blocks.mean_lufs(),
            "lra_lu": self._ranged.range_lu(),
            "max_momentary_lufs": _known(self.max_momentary.value),
            "max_short_term_lufs": _known(self.max_short_term.value),
            "true_peak_dbtp": _known(float(decibels(self.true_peaks.max()))),
            "sample_peak_dbfs": _known(float(decibels(self.sample_peaks.max()))),
            "measured_s": (self._measured + self._part) / FRAME_RATE,
            "excluded_s": self._excluded / FRAME_RATE,
        }


def _highest(before: Energies, peaks: NDArray[np.floating]) -> Energies:
    """Running maxima (channel, n) of `peaks` (channel, n), starting from `before` (channel,)."""
    first = np.fmax(before[:, None], peaks[:, :1], dtype=np.float64)
    if peaks.shape[1] == 1:
        return first
    return np.fmax.accumulate(np.concatenate([first, peaks[:, 1:]], 1, dtype=np.float64), 1)


def _known(level: float) -> float | None:
    """A level, or None for silence or a sound that is too short."""
    return level if math.isfinite(level) else None


def decibels(peak: Any) -> Any:
    """Level of a peak in dB re full scale; minus infinity for 0."""
    with np.errstate(divide="ignore"):
        return 20 * np.log10(peak)
