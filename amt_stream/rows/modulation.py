"""Modulation spectra in words, decibels and rows, the same wherever they are shown."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from amt_stream.frames import Frames
from amt_stream.rows.row import Row

MODULATION_COLUMNS = ("time_s", "ear", "band_hz", "modulation_hz", "rms")
EARS = ("left", "right")
RANGE_DB = 30.0
"""Below the strongest cell by that much, nothing is shown."""


class Strongest(NamedTuple):
    """The cell of a modulation spectrum where most moves: its place, its centers, its rms.

    `ears` are 0 for left and 1 for right; both where they agree. `rms` is in units of the model.
    """

    ears: tuple[int, ...]
    band: int
    modulation: int
    band_hz: float
    modulation_hz: float
    rms: float

    @property
    def where(self) -> str:
        """Its centers in words."""
        return f"{hz_text(self.modulation_hz)} Hz in {hz_text(self.band_hz)} Hz"

    @property
    def ear(self) -> str:
        """Its ears in words."""
        return "both ears" if len(self.ears) > 1 else f"{EARS[self.ears[0]]} ear"

    def __str__(self) -> str:
        return f"{self.where}, {self.ear}, rms {self.rms:.3g}"


def strongest(
    rms: NDArray[np.floating], fc: NDArray[np.floating], mfc: NDArray[np.floating]
) -> Strongest | None:
    """The strongest cell of `rms` (ear, band, modulation); None where nothing moves.

    A band around 0 Hz is the slow mean and no modulation: it cannot be the strongest.
    """
    moving = np.where(mfc > 0, rms, 0.0)
    ear, band, modulation = np.unravel_index(int(np.argmax(moving)), moving.shape)
    peak = float(moving[ear, band, modulation])
    if not peak > 0:
        return None
    both = np.allclose(rms[0], rms[1], rtol=1e-3, atol=1e-3 * peak)
    return Strongest(
        ears=(0, 1) if both else (int(ear),),
        band=int(band),
        modulation=int(modulation),
        band_hz=float(fc[band]),
        modulation_hz=float(mfc[modulation]),
        rms=peak,
    )


def below_db(rms: NDArray[np.floating], peak: float) -> NDArray[np.float64]:
    """Level of each cell in dB relative to `peak`, from -RANGE_DB to 0."""
    if not peak > 0:
        return np.full(np.shape(rms), -RANGE_DB)
    level = 20.0 * np.log10(np.maximum(rms / peak, 1e-6))
    return np.clip(level, -RANGE_DB, 0.0)


def hz_text(f: float) -> str:
    """A frequency to be read at a glance: 2, 5.2, 94, 1056."""
    return f"{f:.1f}".removesuffix(".0") if f < 100 else f"{f:.0f}"


class ModulationRows:
    """MODULATION_COLUMNS of frames of `ModulationSpectrumOutput`: a row per ear, band, modulation.

    `mask` (band, modulation) says which cells there are; without it, all.
    """

    def __init__(
        self,
        fc: NDArray[np.floating],
        mfc: NDArray[np.floating],
        mask: NDArray[np.bool_] | None = None,
    ) -> None:
        there = np.ones((len(fc), len(mfc)), np.bool_) if mask is None else mask
        self._cells = tuple(np.nonzero(there))
        band, modulation = self._cells
        self._names = [
            (ear, float(f"{fc[b]:.7g}"), float(f"{mfc[m]:.7g}"))
            for ear in EARS
            for b, m in zip(band, modulation, strict=True)
        ]

    def __call__(self, frames: Frames, chosen: Sequence[int]) -> Iterable[list[Row]]:
        """The rows of each of the `chosen` frames."""
        band, modulation = self._cells
        for i in chosen:
            rms = frames.values.rms[:, i, band, modulation].ravel().tolist()
            time_s = round(float(frames.time_s[i]), 6)
            yield [
                (time_s, *name, float(f"{v:.7g}")) for name, v in zip(self._names, rms, strict=True)
            ]
