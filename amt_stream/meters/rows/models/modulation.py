"""Modulation spectra as text, decibels and rows."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from amt_stream.meters.frames import Frames
from amt_stream.meters.names import SIDES
from amt_stream.meters.rows.block import in_seven_digits
from amt_stream.meters.rows.column import Column
from amt_stream.meters.rows.readings import Uncounted

RANGE_DB = 30.0
"""Displayed range in dB below the strongest cell."""


class Strongest(NamedTuple):
    """The strongest cell of a modulation spectrum: its indices, center frequencies and rms.

    `ears` are 0 for left and 1 for right, or both if they agree. `rms` is in units of the model.
    """

    ears: tuple[int, ...]
    band: int
    modulation: int
    band_hz: float
    modulation_hz: float
    rms: float

    @property
    def where(self) -> str:
        """Its center frequencies as text."""
        return f"{hz_text(self.modulation_hz)} Hz in {hz_text(self.band_hz)} Hz"

    @property
    def ear(self) -> str:
        return "both ears" if len(self.ears) > 1 else f"{SIDES[self.ears[0]]} ear"

    def __str__(self) -> str:
        return f"{self.where}, {self.ear}, rms {self.rms:.3g}"


def strongest(
    rms: NDArray[np.floating], fc: NDArray[np.floating], mfc: NDArray[np.floating]
) -> Strongest | None:
    """The strongest cell of `rms` (ear, band, modulation); None without modulation.

    A band around 0 Hz is the slow mean and not a modulation, so it is ignored.
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
    """A frequency as short text: 2, 5.2, 94, 1056."""
    return f"{f:.1f}".removesuffix(".0") if f < 100 else f"{f:.0f}"


class ModulationReadings(Uncounted):
    """The strength of each cell of a `ModulationSpectrumOutput`: a row per ear, band, modulation.

    fc, mfc: centers of the auditory bands and of the modulation filters in hertz
    mask: (band, modulation) which cells exist; None for all
    """

    keys = (
        Column("ear", "", "ear"),
        Column("band_hz", "Hz", "center of the auditory band"),
        Column("modulation_hz", "Hz", "center of the modulation filter"),
    )

    def __init__(
        self,
        model: str,
        fc: NDArray[np.floating],
        mfc: NDArray[np.floating],
        mask: NDArray[np.bool_] | None = None,
    ) -> None:
        there = np.ones((len(fc), len(mfc)), np.bool_) if mask is None else mask
        self._places = tuple(np.nonzero(there))
        band, modulation = self._places
        self.cells = tuple(
            (ear, *pair)
            for ear in SIDES
            for pair in zip(
                in_seven_digits(fc[band]), in_seven_digits(mfc[modulation]), strict=True
            )
        )
        rms = Column("rms", "model units", "modulation, running rms", model)
        super().__init__(model, [rms], ["rms"])

    def take(self, frames: Frames) -> NDArray[np.float64]:
        band, modulation = self._places
        # An index on one axis and two apart from it: numpy puts the cells last.
        rms = frames.values.rms[:, :, band, modulation]
        cells = np.moveaxis(rms, 0, 1).reshape(rms.shape[1], -1, 1)
        return cells.repeat(len(self.columns), axis=2).astype(np.float64)


def modulation_readings(channels: int, model: Any) -> ModulationReadings:
    """Make the readings of a `ModulationSpectrum`, which always has both ears."""
    return ModulationReadings(model.model, *map(np.asarray, (model.fc, model.mfc, model.mask)))
