"""What a person reads off octaves and third octaves: levels F and S, maxima, equivalent levels."""

import re
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from amt_stream.dsp.design import FORGETS, band_name
from amt_stream.meters.accumulators import loops
from amt_stream.meters.accumulators.level import finite, level_db
from amt_stream.meters.accumulators.meter import FRAME_S, FrameMeter
from amt_stream.meters.accumulators.rolling import RollingLevel
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


class BandSums(NamedTuple):
    """Sums and maxima of all that was measured so far in each band, and the powers of the moment.

    sums: of mean squares (band,) in Pa^2; counts: of frames (band,)
    highest, now: powers (2, band) in Pa^2, the latter NaN after a frame that is not valid
    """

    sums: Values
    counts: Values
    highest: Values
    now: Values


class ThirdOctaveMeter(FrameMeter):
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

    kept: ClassVar[tuple[str, ...]] = ("paused", "rolling", "_running")
    kept += ("_taken", "_invalid", "_excluded")

    def __init__(
        self, nominal: Sequence[float], columns: Sequence[str] = (), fraction: int = 3
    ) -> None:
        super().__init__(columns)
        self.nominal = tuple(nominal)
        self.bands = {band_name(f): k for k, f in enumerate(self.nominal)}
        self.rolling: dict[str, RollingLevel] = {}
        # The band of each.
        self._rolls: dict[str, int] = {}
        # Rows of powers by name: kinds of levels, of each its bands, and after them rolling levels.
        rows = {
            f"{what}_{band}_db": place * len(self.bands) + k
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
                rows[name] = len(WHATS) * len(self.bands) + len(self.rolling) - 1
        self.refuse_unknown(rows)
        self._rows = np.array([rows[name] for name in self.columns], np.int64)
        waits = np.vstack(forgotten_s(np.array(self.nominal), fraction))
        # Frames after a fault until the power counts, and until each level does (3, band).
        self._waits = np.ceil(waits / FRAME_S - 1e-6)
        nothing = np.full((len(LEVELS), len(self.bands)), np.nan)
        self._running = BandSums(nothing[0], nothing[1], nothing, nothing)
        loops.compile_loops()
        self.reset()

    def reset(self) -> None:
        """Forget what was measured; a pause goes on, and so do levels that are of the sound."""
        # A year of frames, summed one after another in float64, rounds by less than 2e-6 dB.
        bands, now = len(self.bands), self._running.now
        self._running = BandSums(np.zeros(bands), np.zeros(bands), np.zeros_like(now), now)
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
        valid, since_s = self.marks(mean_square, valid, since_s)
        bands = len(self.bands)
        powers = np.empty((len(WHATS) * bands + len(self.rolling), count))
        of_bands, squares = powers[: len(WHATS) * bands], np.empty((bands, count))
        heard = loops.measure_bands(
            *(mean_square, power, highest, valid, since_s),
            *(FRAME_S, self._waits, self.paused, *self._running),
            *(squares, of_bands.reshape(len(WHATS), bands, count)),
        )
        self._taken += count
        if not self.paused:
            self._excluded += count - heard
        for row, (name, level) in enumerate(self.rolling.items(), len(WHATS) * bands):
            level.follow(squares[self._rolls[name]], powers[row])
        return level_db(powers[self._rows])

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
        settled = known & (since >= self._waits[..., None])
        so_far, there = self._running, settled[0]
        so_far.sums[:] += np.where(there, shares * mean_square, 0.0).sum(-1)
        so_far.counts[:] += part * there[:, 0]
        tops = np.where(settled[1:], highest, 0.0).max(-1)
        np.maximum(so_far.highest, tops, out=so_far.highest)

    def skip(self, count: int) -> None:
        super().skip(count)
        for level in self.rolling.values():
            level.skip(count)

    def reading(self) -> dict[str, float | None]:
        """All readings by name, in dB and seconds; None where there is none, as of silence.

        measured_s is the time that the topmost band counts; low ones wait after faults.
        """
        sums, counts, highest, now = self._running
        spectra = {
            **dict(zip(LEVELS, level_db(now), strict=True)),
            "lzeq": level_db(sums / np.where(counts > 0, counts, np.nan)),
            **{f"{n}max": v for n, v in zip(LEVELS, level_db(highest), strict=True)},
        }
        return {
            **{
                f"{what}_{band}_db": finite(levels[k])
                for what, levels in spectra.items()
                for band, k in self.bands.items()
            },
            **{name: finite(level.level_db) for name, level in self.rolling.items()},
            "measured_s": float(counts[-1]) * FRAME_S,
            "excluded_s": self._excluded * FRAME_S,
        }
