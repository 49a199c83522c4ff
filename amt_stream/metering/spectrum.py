"""The strongest line of a spectrum: that of each moment, and the highest since the last reset."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from amt_stream.metering.meter import Meter

LOWEST_HZ, HIGHEST_HZ = 20.0, 20_000.0

SILENCE_DB = -100.0
"""A spectrum that is nowhere higher has no line."""

COLUMNS = ("max_hz", "max_db")


class Line(NamedTuple):
    """Frequency in Hz and level in dB; NaN where there is none."""

    hz: NDArray[np.float64]
    level_db: NDArray[np.float64]


def strongest_line(level_db: NDArray[np.floating], bin_hz: float) -> Line:
    """What is highest in spectra (..., bin), from 20 Hz to 20 kHz: `Line` of arrays (...,).

    As `NarrowBandSpectrum` gives them. Of a tone it is the true frequency and level, whatever bins
    it stands between: the two highest tell where. There is none where all is silent.
    """
    first = max(1, int(np.ceil(LOWEST_HZ / bin_hz)))
    stop = min(level_db.shape[-1] - 1, int(HIGHEST_HZ / bin_hz) + 1)
    place = first + np.argmax(level_db[..., first:stop], axis=-1)[..., None]
    below, top, above = (
        np.take_along_axis(level_db, place + k, axis=-1)[..., 0].astype(np.float64)
        for k in (-1, 0, 1)
    )
    # A tone d bins aside of one reads sinc(d) / (1 - d^2) there, under a Hann window; the ratio to
    # the next bin is (1 + d) / (2 - d) (Harris 1978).
    ratio = 10 ** ((np.maximum(below, above) - top) / 20)
    aside = np.clip((2 * ratio - 1) / (ratio + 1), 0.0, 0.5)
    hz = (place[..., 0] + np.where(above > below, aside, -aside)) * bin_hz
    level = top - 20 * np.log10(np.sinc(aside) / (1 - aside**2))
    there = top > SILENCE_DB
    return Line(np.where(there, hz, np.nan), np.where(there, level, np.nan))


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
        told = both[:, place]
        if count:
            self._highest = told[:, -1].copy()
        return self.in_order(dict(zip(COLUMNS, told, strict=True)), count)

    def skip(self, count: int) -> None:
        """So many frames are not there: they are left out."""
        self._excluded += 0 if self.paused else count

    def reading(self) -> dict[str, float | None]:
        """All readings by name, in Hz, dB and seconds; None where there is none yet."""
        known = not np.isnan(self._highest[1])
        highest = dict(zip(COLUMNS, self._highest.tolist(), strict=True))
        return {
            **(highest if known else dict.fromkeys(COLUMNS)),
            "measured_s": self._counted / self.frame_rate,
            "excluded_s": self._excluded / self.frame_rate,
        }
