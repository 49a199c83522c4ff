"""What a person reads off a sound level meter (IEC 61672-1:2013, and percentile levels)."""

import math
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from amt_stream.metering.dose import DAY_S, DOSE, Dose
from amt_stream.metering.forecast import EXPOSURE, Forecasts
from amt_stream.metering.meter import Meter
from amt_stream.metering.percentiles import PERCENTS, RENEWED_S, Percentiles
from amt_stream.metering.rolling import RollingLevel, level_db
from amt_stream.metering.window import WINDOW, window_s

FRAME_S = 0.01
RENEWED = round(RENEWED_S / FRAME_S)
WEIGHTINGS = ("a", "c", "z")
LEVELS = ("laf", "lcf", "lzf", "las", "lcs", "lzs", "lai")
"""Time-weighted levels, in the order of `SoundLevel`."""

TIME_CONSTANTS_S = np.array([0.125, 0.125, 0.125, 1.0, 1.0, 1.0, 0.035])
"""With which they rise, I by its attack."""

SETTLED = np.ceil(5 * TIME_CONSTANTS_S / FRAME_S).astype(int)[:, None]
"""Frames (7, 1) with the last of which a level tells of the sound and not of silence before it."""

MEMORY_S, DECAY_S = 0.12, 1.5
"""In which the frequency weightings forget a sound 50 dB louder; time constant of what I holds."""

FORGOTTEN_S = MEMORY_S + np.log(1e5 / (10**0.005 - 1)) * TIME_CONSTANTS_S
FORGOTTEN_S[-1] += np.log(1e5) * DECAY_S
"""Seconds after a fault until a level (7,) that has fallen by 50 dB is within 0.05 dB."""

FORGOTTEN = np.ceil(FORGOTTEN_S / FRAME_S).astype(int)[:, None]
"""The same in frames (7, 1)."""

LOWEST = 6
"""The first levels, of which the lowest is told; that of I is of no use."""

Powers = NDArray[np.floating]
Values = NDArray[np.float64]


class Running(NamedTuple):
    """Sums and extremes of what was measured up to each of n frames.

    sums: of mean squares (3, n) in Pa^2; counts: of frames (n,); highest, lowest: powers (7, n) and
    (6, n) in Pa^2; peak: (n,) in pascal
    """

    sums: Values
    counts: Values
    highest: Values
    lowest: Values
    peak: Values

    def equivalent_db(self, weighting: int) -> Values:
        return level_db(self.sums[weighting] / np.where(self.counts > 0, self.counts, np.nan))

    def exposure_db(self) -> Values:
        """Of A: that of 1 s with the same energy."""
        with np.errstate(divide="ignore"):
            return self.equivalent_db(0) + 10 * np.log10(self.counts * FRAME_S)

    def day_db(self) -> Values:
        """LEX,8h (ISO 1999): of A, that of eight hours with the same energy."""
        return self.exposure_db() - 10 * math.log10(DAY_S)

    def highest_db(self, level: int) -> Values:
        return level_db(self.highest[level])

    def lowest_db(self, level: int) -> Values:
        return level_db(self.lowest[level])

    def peak_db(self) -> Values:
        return level_db(np.square(self.peak))


NOTHING = Running(
    np.zeros((len(WEIGHTINGS), 1)),
    np.zeros(1),
    np.zeros((len(LEVELS), 1)),
    np.full((LOWEST, 1), np.inf),
    np.zeros(1),
)

RUNNING: dict[str, Callable[[Running], Values]] = {
    **{f"l{w}eq_db": partial(Running.equivalent_db, weighting=k) for k, w in enumerate(WEIGHTINGS)},
    "lae_db": Running.exposure_db,
    "lcpeak_db": Running.peak_db,
    **{f"{LEVELS[k]}max_db": partial(Running.highest_db, level=k) for k in range(len(LEVELS))},
    **{
        f"{name}min_db": partial(Running.lowest_db, level=k)
        for k, name in enumerate(LEVELS[:LOWEST])
    },
}
"""Readings of all that was measured, (n,) in dB; not finite where there is none, as of silence."""


ON_REQUEST: dict[str, Callable[[Running], Values]] = {f"{EXPOSURE}_db": Running.day_db}
"""Those of which only somebody who asks for them can make anything."""


class SoundLevelMeter(Meter):
    """Levels of one channel since the last reset: equivalent, exposure, peak, extreme, percentile.

    columns: readings that `update` gives after each frame: of those of `reading` all but the levels
        of the moment, any percentile level, and levels of the last so many seconds, minutes or
        hours, such as `laeq_1s_db`, `lceq_15min_db` (see `RollingLevel`) or `l90_10min_db` (see
        `RollingHistogram`); LEX,8h, `lex_8h_db`; dose and TWA, `dose_90_5_80_percent` and
        `twa_90_5_80_db` (see `Dose`); and forecasts of limits (see `Forecasts`)
    after_silence: the sound truly came after silence, as a burst does: from its first frame on its
        levels are right and count

    `update` takes what `SoundLevel` gives of a channel, a frame per 10 ms, from the start of the
    sound. Levels of the moment and of a rolling window are of the sound: they go on through a pause
    and a reset. All others are of the measurement: of frames after the last reset, outside pauses,
    that are valid. A time-weighted level rises from silence where the sound begins. That time is in
    none of its statistics: five time constants, for F 0.63 s, for S 5 s, for I (by its attack)
    0.18 s. After what was not heard it may have to fall as well: they wait for 16 time constants,
    F 2.1 s, S 16 s, I 18 s. Equivalent levels, exposure and peak have no such times.

    Percentile levels are of A-weighted F levels, every 10 ms, in classes of 0.05 dB from 0 to
    150 dB: within 0.025 dB of the exact, days of them in 24 kB; what is below 0 dB counts in the
    lowest class. As columns they are renewed every 0.1 s.

    Raises ValueError for a column that it does not have.
    """

    kept: ClassVar[tuple[str, ...]] = ("paused", "percentiles", "rolling", "_rolled", "_now")
    kept += ("_running", "_taken", "_invalid", "_excluded", "doses", "forecasts")

    def __init__(self, columns: Sequence[str] = (), after_silence: bool = False) -> None:
        super().__init__(columns)
        self.percentiles = Percentiles(
            self.columns, ("l", "_db"), FRAME_S, low=0.0, high=150.0, width=0.05
        )
        self.forecasts = Forecasts(self.columns, FRAME_S)
        self.rolling: dict[str, RollingLevel] = {}
        for name in (*self.columns, *(f"{level}_db" for level in self.forecasts.rolling)):
            if match := re.fullmatch(rf"l[acz]eq_({WINDOW})_db", name):
                self.rolling[name] = RollingLevel(window_s(match[1]), FRAME_S)
        stems = [name.rpartition("_")[0] for name in self.columns]
        self.doses = {
            stem.partition("_")[2]: Dose.named(stem) for stem in stems if DOSE.fullmatch(stem)
        }
        offered = [*RUNNING, *ON_REQUEST, *self.rolling, *self.percentiles.names]
        for key in self.doses:
            offered += [f"dose_{key}_percent", f"twa_{key}_db"]
        examples = "l10_db", "l90_10min_db", "laeq_1s_db", "laeq_15min_db"
        self.refuse_unknown([*offered, *self.forecasts.names, *examples])
        self._now = np.full(len(LEVELS), np.nan)
        self._rolled = dict.fromkeys(self.rolling, math.nan)
        self._after_silence = after_silence
        # Frames so far, and the number of the last that was not valid.
        self._taken, self._invalid = 0, -math.inf
        self.reset()

    def reset(self) -> None:
        """Forget what was measured; a pause goes on, and so do levels that are of the sound."""
        self.percentiles.reset()
        # A year of frames, summed one after another in float64, rounds by less than 2e-6 dB.
        self._running = NOTHING
        self._excluded = 0
        for dose in self.doses.values():
            dose.reset()
        self.forecasts.reset()

    def update(
        self,
        mean_square: Powers,
        power: Powers,
        highest: Powers,
        lowest: Powers,
        c_peak: Powers,
        valid: NDArray[np.bool_] | None = None,
        since_s: Values | None = None,
    ) -> Values:
        """Take frames into account; gives the columns (column, n) after each.

        mean_square: (3, n) in Pa^2; power, highest, lowest: (7, n) in Pa^2; c_peak: (n,) in pascal
        valid: (n,) which frames may count; all, where it is not given
        since_s: (n,) how long ago the last fault ended, which levels have to forget; where it is
            not given, each frame that is not valid is one

        A column is NaN where there is nothing yet, and not finite for silence.
        """
        count = len(c_peak)
        if not count:
            return np.empty((len(self.columns), 0))
        known = np.asarray(np.isfinite(mean_square).all(0))
        valid = known if valid is None else known & valid
        settled = valid & self._settled(valid, since_s)
        due = range(-(self._taken + 1) % RENEWED, count, RENEWED)
        self._now = np.where(valid[-1], power[:, -1], np.nan)
        self._taken += count

        measured = np.zeros(count, bool) if self.paused else valid
        counted = settled & measured if self.paused else settled
        running = self._measure(measured, counted, mean_square, highest, lowest, c_peak)
        fast = np.where(settled[0], level_db(power[0]), np.nan)
        # A level that has settled is of a valid frame.
        exceeded = self.percentiles.add(np.full(count, np.nan) if self.paused else fast, fast, due)
        if not self.paused:
            self._excluded += count - int(np.count_nonzero(valid))
        found = dict(zip(self.percentiles.names, exceeded, strict=True))
        found |= self._roll(np.where(valid, mean_square, np.nan), running)
        found |= {n: value(running) for n, value in self._told.items() if n in self.columns}
        for key, dose in self.doses.items():
            percent = dose.add(power[LEVELS.index("las")], measured, FRAME_S)
            found |= {f"dose_{key}_percent": percent, f"twa_{key}_db": dose.average_db(percent)}
        return self.in_order(found, count)

    def _roll(self, squares: Values, running: Running) -> dict[str, Values]:
        """Rolling levels after each of n frames (3, n), NaN for none, and forecasts."""
        found, ahead = {}, {}
        before = self._taken - squares.shape[1]
        for name, level in self.rolling.items():
            stem, weighted = name.removesuffix("_db"), squares[WEIGHTINGS.index(name[1])]
            if stem in self.forecasts.rolling:
                found[name], ahead[stem] = self.forecasts.follow(stem, level, weighted, before)
            else:
                found[name] = level.add(weighted)
            self._rolled[name] = float(found[name][-1])
        if EXPOSURE in self.forecasts.levels:
            sums, counts = running.sums[0], running.counts
            ahead[EXPOSURE] = self.forecasts.expose(sums, counts, squares[0], before)
        return found | self.forecasts.columns(ahead)

    def skip(self, count: int) -> None:
        """So many frames are not there: they are left out, and windows move on."""
        self.percentiles.skip(count)
        for level in self.rolling.values():
            level.skip(count)
        self.forecasts.skip(count)
        self._taken += count
        self._excluded += 0 if self.paused else count

    def _settled(self, valid: NDArray[np.bool_], since_s: Values | None) -> NDArray[np.bool_]:
        """Which levels (7, n) have risen from the start, and have forgotten the last fault."""
        number = self._taken + np.arange(len(valid))
        if since_s is None:
            last = np.maximum.accumulate(np.where(valid, self._invalid, number))
            self._invalid = float(last[-1])
            since = np.asarray(number - last, np.float64)
        else:
            # Whole frames, but for what floats do.
            since = np.rint(since_s / FRAME_S)
        risen = (number + 1 >= SETTLED) | self._after_silence
        forgotten: NDArray[np.bool_] = since >= FORGOTTEN
        return risen & forgotten

    def _measure(
        self,
        measured: NDArray[np.bool_],
        settled: NDArray[np.bool_],
        squares: Powers,
        highest: Powers,
        lowest: Powers,
        c_peak: Powers,
    ) -> Running:
        """Count frames that are `measured`, and levels (7, n) where they have `settled`."""
        before, lowest = self._running, lowest[:LOWEST]
        if not settled.all():
            squares, c_peak = np.where(measured, squares, 0.0), np.where(measured, c_peak, 0.0)
            highest = np.where(settled, highest, 0.0)
            lowest = np.where(settled[:LOWEST], lowest, np.inf)
        running = Running(
            _after(np.add, before.sums, squares),
            _after(np.add, before.counts, measured),
            _after(np.maximum, before.highest, highest),
            _after(np.minimum, before.lowest, lowest),
            _after(np.maximum, before.peak, c_peak),
        )
        self._running = Running(*(v[..., -1:] for v in running))
        return running

    @property
    def measured_s(self) -> float:
        """The time T that equivalent levels are of."""
        return float(self._running.counts[0]) * FRAME_S

    def covered_s(self, column: str) -> float:
        """How much of its window a rolling level counts."""
        return self.rolling[column].covered_s

    @property
    def _told(self) -> dict[str, Callable[[Running], Values]]:
        return RUNNING | {n: value for n, value in ON_REQUEST.items() if n in self.columns}

    def _dosed(self) -> Iterator[tuple[str, float]]:
        for key, dose in self.doses.items():
            yield f"dose_{key}_percent", dose.percent
            yield f"twa_{key}_db", dose.average_db(dose.percent)

    def reading(self) -> dict[str, float | None]:
        """All readings by name, in dB and seconds; None where there is none, as of silence."""
        histogram = self.percentiles.histogram
        now = zip(LEVELS, level_db(self._now), strict=True)
        return {
            **{f"{name}_db": finite(value) for name, value in now},
            **{name: finite(value(self._running)[0]) for name, value in self._told.items()},
            **{name: finite(value) for name, value in self._dosed()},
            **{f"l{p}_db": histogram.exceeded(p) for p in PERCENTS},
            **self.percentiles.reading(),
            **{name: finite(value) for name, value in self._rolled.items()},
            "measured_s": self.measured_s,
            "excluded_s": self._excluded * FRAME_S,
        }


def _after(operation: np.ufunc, before: Values, values: NDArray[np.generic]) -> Values:
    """`operation` over all `values` (..., n) so far, after each; they go on from `before`."""
    if values.shape[-1] == 1:
        return operation(before, values, dtype=np.float64)
    joined = np.concatenate([before, values], -1, dtype=np.float64)
    return operation.accumulate(joined, -1)[..., 1:]


def finite(level: float | None) -> float | None:
    """A level as a plain float, or None where there is none."""
    return float(level) if level is not None and math.isfinite(level) else None
