"""What a person reads off octaves and third octaves: levels F and S, maxima, equivalent levels."""

import math
import re
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from amt_stream.dsp.design import FORGETS, band_name
from amt_stream.meters.accumulators.level import finite, level_db
from amt_stream.meters.accumulators.meter import Meter
from amt_stream.meters.accumulators.rolling import RollingLevel
from amt_stream.meters.accumulators.sound_level import FRAME_S
from amt_stream.meters.names import NameForm, window_s

LEVELS = ("lzf", "lzs")
"""Time-weighted levels, in the order of `ThirdOctaves`."""

TIME_CONSTANTS_S = np.array([[0.125], [1.0]])

WHATS = (*LEVELS, "lzeq", *(f"{level}max" for level in LEVELS))
BAND = re.compile(r"\d+(?:_\d+)?hz")
NAME = NameForm("{what}_{band}{window}_db", what=WHATS, band=BAND)

Powers = NDArray[np.floating]
Values = NDArray[np.float64]


def forgotten_s(midbands: Values, fraction: int) -> tuple[Values, Values]:
    """Seconds after a fault until a band that has fallen by 50 dB is within 0.05 dB.

    Its power (band,), and its levels F and S (2, band).

    fraction: of an octave, is a band
    """
    memory = fraction * FORGETS / midbands
    return memory, memory + np.log(1e5 / (10**0.005 - 1)) * TIME_CONSTANTS_S


class ThirdOctaveMeter(Meter):
    """Levels in third octaves, or octaves, of one channel since the last reset.

    nominal: nominal midband frequencies of the bands in Hz
    columns: readings that `update` gives after each frame: levels of the moment, as `lzf_1000hz_db`
        and `lzs_31_5hz_db`, their maxima `lzfmax_1000hz_db` and `lzsmax_1000hz_db`, equivalent
        levels `lzeq_1000hz_db`, and those of the last so many seconds, minutes or hours, as
        `lzeq_1000hz_10min_db` (see `RollingLevel`)
    fraction: 3 for third octaves, 1 for octaves

    `update` takes what `ThirdOctaves` or `Octaves` gives of a channel, a frame per 10 ms. Levels of
    the moment and of a rolling window are of the sound: they go on through a pause and a reset. All
    others are of the measurement: of frames after the last reset, outside pauses, that are valid.
    After what was not heard a band waits until its filter has forgotten, 32 cycles or, of octaves,
    11, and its maxima for 16 time constants more.

    Raises ValueError for a column that it does not have.
    """

    kept: ClassVar[tuple[str, ...]] = ("paused", "rolling", "_rolled", "_now", "_sums", "_counts")
    kept += ("_highest", "_taken", "_invalid", "_excluded")

    def __init__(
        self, nominal: Sequence[float], columns: Sequence[str] = (), fraction: int = 3
    ) -> None:
        super().__init__(columns)
        self.nominal = tuple(nominal)
        self.bands = {band_name(f): k for k, f in enumerate(self.nominal)}
        self.rolling: dict[str, RollingLevel] = {}
        # The band of each.
        self._rolls: dict[str, int] = {}
        known = {
            f"{what}_{band}_db": (place, k)
            for band, k in self.bands.items()
            for place, what in enumerate(WHATS)
        }
        for name in self.columns:
            match = NAME.read(name)
            if (
                match
                and match["what"] == "lzeq"
                and match["window"]
                and match["band"] in self.bands
            ):
                self.rolling[name] = RollingLevel(window_s(match["window"]), FRAME_S)
                self._rolls[name] = self.bands[match["band"]]
        self.refuse_unknown([*known, *self.rolling])
        # Which columns are of bands, and of each the kind of level and the band.
        self._of_bands = [k for k, name in enumerate(self.columns) if name in known]
        parts = [known[self.columns[k]] for k in self._of_bands]
        self._parts = np.array(parts, np.int64).reshape(-1, 2).T
        self._of_windows = [self.columns.index(name) for name in self.rolling]
        midbands = np.array(self.nominal)
        memory, forgotten = forgotten_s(midbands, fraction)
        self._memory, self._forgotten = (
            np.ceil(v / FRAME_S - 1e-6)[..., None] for v in (memory, forgotten)
        )
        self._now = np.full((len(LEVELS), len(self.nominal)), np.nan)
        self._rolled = dict.fromkeys(self.rolling, math.nan)
        # Frames so far, and the number of the last that was not valid.
        self._taken, self._invalid = 0, -math.inf
        self.reset()

    def reset(self) -> None:
        """Forget what was measured; a pause goes on, and so do levels that are of the sound."""
        bands = len(self.nominal)
        # A year of frames, summed one after another in float64, rounds by less than 2e-6 dB.
        self._sums, self._counts = np.zeros(bands), np.zeros(bands)
        self._highest = np.zeros((len(LEVELS), bands))
        self._excluded = 0

    def update(
        self,
        mean_square: Powers,
        power: Powers,
        highest: Powers,
        valid: NDArray[np.bool_] | None = None,
        since_s: Values | None = None,
    ) -> Values:
        """Take frames into account; gives the columns (column, n) after each.

        mean_square: (band, n) in Pa^2; power, highest: (2, band, n) in Pa^2
        valid: (n,) which frames may count; all, where it is not given
        since_s: (n,) how long ago the last fault ended, which bands have to forget; where it is not
            given, each frame that is not valid is one

        A column is NaN where there is nothing yet, and not finite for silence.
        """
        count = mean_square.shape[-1]
        if not count:
            return np.empty((len(self.columns), 0))
        known = np.asarray(np.isfinite(mean_square).all(0))
        valid = known if valid is None else known & valid
        since = self._since(valid, since_s)
        there = valid & (since >= self._memory)
        settled = valid & (since >= self._forgotten)
        self._now = np.where(valid[-1], power[..., -1], np.nan).astype(np.float64)
        self._taken += count
        if not self.paused:
            self._excluded += count - int(np.count_nonzero(valid))
        powers = np.concatenate(
            [
                np.where(valid, power, np.nan),
                self._equivalent(mean_square, there & (not self.paused))[None],
                self._maxima(highest, settled & (not self.paused)),
            ],
            dtype=np.float64,
        )
        out = np.empty((len(self.columns), count))
        out[self._of_bands] = level_db(powers[*self._parts])
        for place, (name, level) in zip(self._of_windows, self.rolling.items(), strict=True):
            band = self._rolls[name]
            out[place] = level.add(np.where(there[band], mean_square[band], np.nan))
            self._rolled[name] = float(out[place, -1])
        return out

    def tail(
        self,
        mean_square: Powers,
        power: Powers,
        highest: Powers,
        shares: Values,
        since_s: Values,
        part: float,
    ) -> None:
        """Take frames after the end of the sound into account, arrays as of `update`.

        They count in maxima, and their energy in equivalent levels, of each so much as `shares`
        (n,) tells; of their time only the `part` of the first counts that is still sound.
        """
        if self.paused or not mean_square.shape[-1]:
            return
        since = np.rint(since_s / FRAME_S)
        known = np.asarray(np.isfinite(mean_square).all(0)) & (shares > 0)
        there = known & (since >= self._memory)
        self._sums += np.where(there, shares * mean_square, 0.0).sum(-1)
        self._counts += part * there[:, 0]
        settled = known & (since >= self._forgotten)
        self._highest = np.maximum(self._highest, np.where(settled, highest, 0.0).max(-1))

    def skip(self, count: int) -> None:
        super().skip(count)
        for level in self.rolling.values():
            level.skip(count)
        self._taken += count

    def _since(self, valid: NDArray[np.bool_], since_s: Values | None) -> Values:
        """Frames (n,) since the last fault."""
        if since_s is not None:
            # Whole frames, but for what floats do.
            return np.asarray(np.rint(since_s / FRAME_S))
        number = self._taken + np.arange(len(valid))
        last = np.maximum.accumulate(np.where(valid, self._invalid, number))
        self._invalid = float(last[-1])
        return np.asarray(number - last, np.float64)

    def _equivalent(self, mean_square: Powers, measured: NDArray[np.bool_]) -> Values:
        """Mean squares (band, n) of all that was `measured` up to each frame."""
        # One frame after another, however they are cut into blocks.
        squares = np.where(measured, mean_square, 0.0)
        sums = np.concatenate([self._sums[:, None], squares], 1, dtype=np.float64).cumsum(1)[:, 1:]
        counts = self._counts[:, None] + measured.cumsum(1)
        self._sums, self._counts = sums[:, -1].copy(), counts[:, -1].copy()
        return np.asarray(sums / np.where(counts > 0, counts, np.nan))

    def _maxima(self, highest: Powers, settled: NDArray[np.bool_]) -> Values:
        """The highest powers (2, band, n) up to each frame, of those that have `settled`."""
        so_far = np.maximum.accumulate(np.where(settled, highest, 0.0).astype(np.float64), -1)
        so_far = np.maximum(so_far, self._highest[..., None])
        self._highest = so_far[..., -1].copy()
        return np.asarray(so_far)

    def reading(self) -> dict[str, float | None]:
        """All readings by name, in dB and seconds; None where there is none, as of silence.

        measured_s is the time that the topmost band counts; low ones wait after faults.
        """
        counts = np.where(self._counts > 0, self._counts, np.nan)
        spectra = {
            **dict(zip(LEVELS, level_db(self._now), strict=True)),
            "lzeq": level_db(self._sums / counts),
            **{f"{n}max": v for n, v in zip(LEVELS, level_db(self._highest), strict=True)},
        }
        return {
            **{
                f"{what}_{band}_db": finite(levels[k])
                for what, levels in spectra.items()
                for band, k in self.bands.items()
            },
            **{name: finite(value) for name, value in self._rolled.items()},
            "measured_s": float(self._counts[-1]) * FRAME_S,
            "excluded_s": self._excluded * FRAME_S,
        }
