"""The strongest line of a spectrum: that of each moment, and the highest since the last reset."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from amt_stream.meters.accumulators.meter import Meter

LOWEST_HZ, HIGHEST_HZ = 20.0, 20_000.0

SILENCE_DB = -100.0
"""A spectrum that is nowhere higher has no line."""

NEARLY_BINS = 0.02
"""So far from its place a tone of 20 Hz may be read, as its mirror image below 0 Hz leaks."""

COLUMNS = ("max_hz", "max_db")


class Line(NamedTuple):
    """Frequency in Hz and level in dB; NaN where there is none."""

    hz: NDArray[np.float64]
    level_db: NDArray[np.float64]


def strongest_line(level_db: NDArray[np.floating], bin_hz: float) -> Line:
    """What is highest in spectra (..., bin), from 20 Hz to 20 kHz: `Line` of arrays (...,).

    As `NarrowBandSpectrum` gives them. Of a tone it is the true frequency and level, whatever bins
    it stands between: the two highest tell where. There is none where all is silent, and the skirt
    of what lies beyond is none.
    """
    first = max(1, int(LOWEST_HZ / bin_hz + 0.5))
    last = min(level_db.shape[-1] - 2, int(HIGHEST_HZ / bin_hz + 0.5))
    below, here, above = (level_db[..., first + k : last + 1 + k] for k in (-1, 0, 1))
    stands_out = (here > SILENCE_DB) & (here >= below) & (here >= above)
    for edge in (first, last):
        # The line of this bin may stand on either side of the limit.
        hz = _line_at(level_db, np.full(level_db.shape[:-1], edge), bin_hz).hz
        nearly_hz = NEARLY_BINS * bin_hz
        stands_out[..., edge - first] &= hz >= LOWEST_HZ - nearly_hz
        stands_out[..., edge - first] &= hz <= HIGHEST_HZ + nearly_hz
    place = first + np.argmax(np.where(stands_out, here, -np.inf), axis=-1)
    hz, level = _line_at(level_db, place, bin_hz)
    there = stands_out.any(axis=-1)
    return Line(np.where(there, hz, np.nan), np.where(there, level, np.nan))


def _line_at(level_db: NDArray[np.floating], place: NDArray[np.int64], bin_hz: float) -> Line:
    """The line that is highest in the bin (...,) of spectra (..., bin)."""
    below, top, above = (
        np.take_along_axis(level_db, place[..., None] + k, axis=-1)[..., 0].astype(np.float64)
        for k in (-1, 0, 1)
    )
    # A tone d bins aside of one reads sinc(d) / (1 - d^2) there, under a Hann window; the ratio to
    # the next bin is (1 + d) / (2 - d) (Harris 1978).
    ratio = 10 ** ((np.maximum(below, above) - top) / 20)
    aside = np.clip((2 * ratio - 1) / (ratio + 1), 0.0, 0.5)
    hz = (place.astype(np.float64) + np.where(above > below, aside, -aside)) * bin_hz
    return Line(hz, top - 20 * np.log10(np.sinc(aside) / (1 - aside**2)))


class SpectrumMeter(Meter):
    """The highest line of a spectrum since the last reset: its frequency and its level.

    frame_rate: frames per second
    columns: readings that `update` gives after each frame: `max_hz`, `max_db`

    Raises ValueError for a column that it does not have.
    """

    kept = ("paused", "_highest", "_counted", "_excluded")

    def __init__(self, frame_rate: float, columns: Sequence[str] = COLUMNS) -> None:
        super().__init__(columns)
        self.refuse_unknown(COLUMNS)
        self.frame_rate = frame_rate
        self.reset()

    def reset(self) -> None:
        """Forget what was measured; a pause goes on."""
        self._highest = np.full(2, np.nan)
        self._counted = self._excluded = 0
        # Of a frame, of the sound in the one that its end lies in.
        self._part = 0.0

    def update(
        self,
        hz: NDArray[np.floating],
        level_db: NDArray[np.floating],
        valid: NDArray[np.bool_] | None = None,
    ) -> NDArray[np.float64]:
        """Take frames (n,) into account; gives the columns (column, n) after each.

        hz, level_db: of the strongest line of each, NaN where there is none
        valid: which frames may count; all, where it is not given

        A column is NaN where there is nothing yet.
        """
        count = len(hz)
        counted = np.full(count, not self.paused)
        if valid is not None:
            counted &= valid
        if not self.paused:
            self._counted += int(np.count_nonzero(counted))
            self._excluded += count - int(np.count_nonzero(counted))
        both = np.concatenate([self._highest[:, None], np.stack([hz, level_db])], axis=1)
        level = np.where(np.isnan(both[1]), -np.inf, both[1])
        level[1:][~counted] = -np.inf
        new = level[1:] > np.maximum.accumulate(level)[:-1]
        place = np.maximum.accumulate(np.where(new, np.arange(1, count + 1), 0))
        readings = both[:, place]
        if count:
            self._highest = readings[:, -1].copy()
        return readings[[COLUMNS.index(name) for name in self.columns]].astype(np.float64)

    def tail(
        self,
        hz: NDArray[np.floating],
        level_db: NDArray[np.floating],
        shares: NDArray[np.floating],
        part: float,
    ) -> None:
        """Take frames after the end of the sound into account, arrays as of `update`.

        Lines count where `shares` (n,) are above 0; of their time only the `part` of the first that
        is still sound.
        """
        if self.paused or not len(hz):
            return
        there = np.where((shares > 0) & ~np.isnan(level_db), level_db, -np.inf)
        place = int(there.argmax())
        if there[place] > np.nan_to_num(self._highest[1], nan=-np.inf):
            self._highest = np.array([hz[place], level_db[place]], np.float64)
        self._part = part if shares[0] else 0.0

    def reading(self) -> dict[str, float | None]:
        """All readings by name, in Hz, dB and seconds; None where there is none yet."""
        known = not np.isnan(self._highest[1])
        highest = dict(zip(COLUMNS, self._highest.tolist(), strict=True))
        return {
            **(highest if known else dict.fromkeys(COLUMNS)),
            "measured_s": (self._counted + self._part) / self.frame_rate,
            "excluded_s": self._excluded / self.frame_rate,
        }
