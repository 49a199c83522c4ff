"""Modulation transfer and STI of the STIPA test signal: of the last 25 s, and of all."""

from collections.abc import Sequence
from enum import IntFlag
from functools import cache
from math import nan
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from amt_stream.core.saved_state import Resumable
from amt_stream.dsp.scales import P0
from amt_stream.dsp.stipa_signal import (
    CELL_S,
    DEPTH,
    MODULATIONS,
    OCTAVES,
    PERIOD_S,
    WAVES,
    cell_waves,
)
from amt_stream.meters.accumulators.meter import Meter
from amt_stream.meters.accumulators.sti import deviation, sti

Values = NDArray[np.float64]

BANDS = len(OCTAVES)
WINDOW_S = 25.0
CELLS = round(WINDOW_S / CELL_S)
RENEWED = 5
"""Cells from one reading to the next."""

PERIOD = round(PERIOD_S / CELL_S)

LEAST_S, VALID_S = 3.0, 15.0
"""Of measured sound, from which there are numbers, and from which they can be valid."""

LEAST_CELLS = round(LEAST_S / CELL_S)

SETTLE_S = 1.0
"""At the start of the sound, which is left out."""

LEAST_POWER = 1e-30

DEEPEST = 1.3
"""Modulation transfer above which the sound is not the signal, or has impulses in it."""

QUIET_DB = 55.0
"""Below the loudest octave, an octave is without energy: so much leaks from others. The
quietest of the signal is at 24.5 dB."""

MOST_LOST = 0.2
"""Share of the time that may be missing or clipped."""

AUDIBLE_M, STANDS_OUT, BESIDE, LEAST_BANDS = 0.02, 8.0, (2, 3, 4, 5), 3
"""A modulation of the signal is there if it is at least so deep, and its power so many times that
of modulations beside it; how many widths of a line these are away; in how many octaves both are, as
a beat of music has both in up to two."""


class Reason(IntFlag):
    """Why an STI is not valid."""

    SHORT = 1
    DEEP = 2
    EMPTY_BAND = 4
    LOST = 8
    NO_SIGNAL = 16


WORDS = {
    Reason.NO_SIGNAL: "no signal: play the STIPA test signal",
    Reason.SHORT: "less than 15 s",
    Reason.DEEP: "modulation above 1.3: impulses, or another signal",
    Reason.EMPTY_BAND: "a band without energy",
    Reason.LOST: "clipped or missing sound",
}


def reason_words(reasons: Reason) -> list[str]:
    """Reasons as sentences, the most important first."""
    return [words for reason, words in WORDS.items() if reason & reasons]


class StiResult(NamedTuple):
    """A measurement of the test signal; levels and values by octave from 125 Hz.

    m: modulation transfer values (7, 2), as measured
    level_db: (7,) with the noise that was there, NaN in silence; in dB SPL if it is calibrated
    sti: with the masking and the threshold of hearing, if there are levels
    mti: modulation transfer indices (7,)
    seconds: how long it was measured
    sd: standard deviation of the STI
    reasons: why it is not valid
    """

    m: Values
    level_db: Values
    sti: float
    mti: Values
    seconds: float
    sd: float
    reasons: Reason


TOTAL = "_total"
"""What names of readings have, that are of all since the last reset."""


def stipa_names(total: str = "") -> tuple[str, ...]:
    """Names of the readings of the window, or of all since the last reset."""
    of_all = [f"sti{total}{part}" for part in ("", "_sd", "_s", "_valid", "_reasons")]
    by_band = [f"{key}{total}_{f}" for key in ("mti", "m1", "m2", "leq") for f in OCTAVES]
    return (*of_all, *by_band)


COLUMNS = (*stipa_names(), *stipa_names(TOTAL))


def _numbers(result: StiResult | None, total: str) -> dict[str, float]:
    """The readings of a measurement by name, NaN without one."""
    keys = stipa_names(total)
    if result is None:
        return dict.fromkeys(keys, nan)
    first = [result.sti, result.sd, result.seconds, float(not result.reasons), result.reasons]
    by_band = np.concatenate([result.mti, *result.m.T, result.level_db]).tolist()
    return dict(zip(keys, [*map(float, first), *by_band], strict=True))


class _Piece(Resumable):
    """Sums of cells whose phases belong together."""

    kept = ("sums", "products", "cells")

    def __init__(self) -> None:
        self.sums, self.products = np.zeros((BANDS, WAVES)), np.zeros((BANDS, WAVES, WAVES))
        self.cells = 0

    def add(self, sums: Values, products: Values) -> None:
        """Add a cell, turned to the phases of the piece."""
        self.sums = self.sums + sums
        self.products = self.products + products
        self.cells += 1


class _Folded(Resumable):
    """Depths of modulations and means of pieces, each times its cells."""

    kept = ("depths", "means", "cells")

    def __init__(self) -> None:
        self.depths, self.means, self.cells = np.zeros((BANDS, 2)), np.zeros(BANDS), 0

    def add(self, piece: _Piece) -> None:
        depths, means, _ = _fitted(piece.sums, piece.products)
        self.depths = self.depths + piece.cells * depths
        self.means = self.means + piece.cells * means
        self.cells += piece.cells

    def join(self, other: "_Folded") -> None:
        """Add all pieces of another one."""
        self.depths, self.means = self.depths + other.depths, self.means + other.means
        self.cells += other.cells


@cache
def _tables() -> tuple[Values, Values]:
    """For each cell of a period (1000, 7, 5, 5): what turns its sums to phases from the start of
    the period, and the products of the waves of each band with each other, so turned."""
    waves = [cell_waves(band) for band in range(BANDS)]
    own = np.stack([one @ one.T / one.shape[1] for one in waves])
    turn = np.zeros((PERIOD, BANDS, WAVES, WAVES))
    turn[..., 0, 0] = 1.0
    angle = 2 * np.pi * np.array(MODULATIONS) * (CELL_S * np.arange(PERIOD))[:, None, None]
    for k, at in enumerate((1, 3)):
        cos, sin = np.cos(angle[..., k]), np.sin(angle[..., k])
        turn[..., at, at], turn[..., at, at + 1] = cos, -sin
        turn[..., at + 1, at], turn[..., at + 1, at + 1] = sin, cos
    return turn, turn @ own @ turn.swapaxes(-1, -2)


class StipaMeter(Meter):
    """The STI of one channel, over a sliding window of 25 s and of all since the last reset.

    Cells with missing or clipped sound are left out. Least squares find mean and modulations of the
    rest, so that no whole number of periods is needed. Of all sound it is the mean over pieces of
    25 s, as the clocks of player and meter drift apart in a longer one.

    columns: readings that `update` gives after each frame, of `COLUMNS`
    """

    kept = (
        *("paused", "calibrated", "_counted", "_excluded", "_origin", "_present", "_last"),
        *("_ring", "_index", "_piece", "_folded"),
    )

    def __init__(self, columns: Sequence[str] = COLUMNS) -> None:
        super().__init__(columns)
        self.refuse_unknown(COLUMNS)
        self.calibrated = False
        self.reset()

    def reset(self) -> None:
        """Forget what was measured; a pause goes on."""
        self._counted = self._excluded = 0
        # Time at which the first cell ends; later ones are numbered from it.
        self._origin = nan
        self._present = False
        self._last = np.full(len(self.columns), nan)
        self._ring = np.zeros((CELLS, BANDS, WAVES))
        self._index = np.full(CELLS, -1)
        self._piece = _Piece()
        self._folded = _Folded()

    def update(
        self,
        cells: Values,
        time_s: Values,
        counted: NDArray[np.bool_],
        inside: NDArray[np.bool_] | None = None,
    ) -> Values:
        """Take cells (n, 7, 5) into account; gives the columns (column, n) after each.

        time_s: when each ends
        counted: which are whole and not clipped
        inside: which are of the part that is measured; all, where it is not given
        """
        out = np.empty((len(self.columns), len(time_s)))
        for k, end_s in enumerate(time_s.tolist()):
            at = self._place(end_s)
            if not self.paused:
                self._counted += bool(counted[k])
                self._excluded += not counted[k] and (inside is None or bool(inside[k]))
            if counted[k]:
                self._count(cells[k], at)
            self._index[self._index <= at - CELLS] = -1
            if at % RENEWED == RENEWED - 1:
                self._present = self._stands_out()
                self._renew()
            if self._piece.cells == CELLS:
                self._fold()
            out[:, k] = self._last
        return out

    def _place(self, end_s: float) -> int:
        """The number of the cell that ends at this time."""
        at = (end_s - self._origin) / CELL_S
        if not abs(at - np.round(at)) < 0.01:
            # The first cell, or one after a gap with another phase.
            self._fold()
            self._origin, at = end_s, 0.0
            self._index[:] = -1
        return round(at)

    def _count(self, cell: Values, at: int) -> None:
        turn, products = _tables()
        turned = (turn[at % PERIOD] @ cell[..., None])[..., 0]
        self._ring[at % CELLS], self._index[at % CELLS] = turned, at
        if not self.paused:
            self._piece.add(turned, products[at % PERIOD])

    def _fold(self) -> None:
        """Add the present piece to the earlier ones, if it is of the test signal."""
        if self._present and self._piece.cells >= LEAST_CELLS:
            self._folded.add(self._piece)
        self._piece = _Piece()

    def _renew(self) -> None:
        own = _numbers(self.now, "") | _numbers(self.overall, TOTAL)
        self._last = np.array([own[name] for name in self.columns])

    def _window(self) -> tuple[Values, Values, Values]:
        """Numbers of the cells of the window, their sums and their products."""
        there = self._index >= 0
        index = self._index[there]
        return index, self._ring[there], _tables()[1][index % PERIOD]

    def _stands_out(self) -> bool:
        """Whether both modulations of three octaves stand out of what is beside them."""
        index, sums, products = self._window()
        if len(index) < LEAST_CELLS:
            return False
        depths, means, fit = _fitted(sums.sum(0), products.sum(0))
        rest = sums - (products @ fit[..., None])[..., 0]
        widths = (1 + np.ptp(index)) / np.array([side * k for k in BESIDE for side in (1, -1)])
        slow = np.exp(-2j * np.pi * index / widths[:, None])  # (beside, cell)
        waves = rest[..., 1::2] - 1j * rest[..., 2::2]
        beside = np.square(np.abs(np.tensordot(slow, waves, 1))).mean(0)
        line = np.square(len(index) / 2 * depths)
        there = (line > STANDS_OUT * beside) & (depths > AUDIBLE_M * DEPTH * means[:, None])
        return bool(there.all(-1).sum() >= LEAST_BANDS)

    @property
    def now(self) -> StiResult | None:
        """Of the last 25 s; None without 3 s of them."""
        index, sums, products = self._window()
        if len(index) < LEAST_CELLS:
            return None
        span = int(np.ptp(index)) + 1
        depths, means, _ = _fitted(sums.sum(0), products.sum(0))
        return self._result(depths, means, len(index), span - len(index))

    @property
    def overall(self) -> StiResult | None:
        """Of all since the last reset; None without 3 s of it."""
        total = _Folded()
        total.join(self._folded)
        # A piece that has only begun would add little but chance.
        if self._piece.cells >= LEAST_CELLS * (2 if total.cells else 1):
            total.add(self._piece)
        if not total.cells:
            return None
        depths, means = total.depths / total.cells, total.means / total.cells
        return self._result(depths, means, total.cells, self._excluded)

    def _result(self, depths: Values, means: Values, cells: int, lost: int) -> StiResult:
        there = means > 0
        m = np.where(there[:, None], depths / np.where(there, DEPTH * means, 1.0)[:, None], 0.0)
        level_db = 10 * np.log10(np.maximum(means, LEAST_POWER) / P0**2)
        value, mti = sti(m, level_db if self.calibrated else None)
        seconds = round(cells * CELL_S, 1)
        why = {
            Reason.SHORT: seconds < VALID_S,
            Reason.DEEP: bool((m > DEEPEST).any()),
            Reason.EMPTY_BAND: bool((level_db < level_db.max() - QUIET_DB).any()),
            Reason.LOST: lost > MOST_LOST * (cells + lost),
            Reason.NO_SIGNAL: not self._present,
        }
        reasons = Reason(sum(one for one, holds in why.items() if holds))
        level_db = np.where(means > LEAST_POWER, level_db, nan)
        return StiResult(m, level_db, value, mti, seconds, float(deviation(seconds)), reasons)

    def reading(self) -> dict[str, float | None]:
        """The readings of all since the last reset, and seconds; None where there is none."""
        found = _numbers(self.overall, TOTAL)
        own: dict[str, float | None] = {k: None if v != v else v for k, v in found.items()}
        return own | {
            "measured_s": self._counted * CELL_S,
            "excluded_s": self._excluded * CELL_S,
        }


def _fitted(sums: Values, products: Values) -> tuple[Values, Values, Values]:
    """Depth (7, 2) of both modulations and mean (7,) of an intensity; all five numbers (7, 5)."""
    fit = np.asarray(np.linalg.solve(products, sums[..., None])[..., 0], np.float64)
    return np.asarray(np.hypot(fit[:, 1::2], fit[:, 2::2])), fit[:, 0], fit
