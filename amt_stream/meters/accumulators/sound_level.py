"""What a person reads off a sound level meter (IEC 61672-1:2013, and percentile levels)."""

import math
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from amt_stream.meters.accumulators import loops
from amt_stream.meters.accumulators.dose import DAY_S, Dose
from amt_stream.meters.accumulators.forecast import Forecasts
from amt_stream.meters.accumulators.level import finite, level_db
from amt_stream.meters.accumulators.level_memory import SHORTEST_S, LevelMemory
from amt_stream.meters.accumulators.meter import FRAME_S, FrameMeter
from amt_stream.meters.accumulators.percentiles import PERCENTS, RENEWED_S, Percentiles
from amt_stream.meters.accumulators.rolling import RollingLevel
from amt_stream.meters.level_names import EXPOSURE, FORMS, WEIGHTINGS, read_level
from amt_stream.meters.names import window_s

RENEWED = round(RENEWED_S / FRAME_S)
LEVELS = ("laf", "lcf", "lzf", "las", "lcs", "lzs", "lai", "lci", "lzi")
"""Time-weighted levels, in the order of `SoundLevel`."""

TIME_CONSTANTS_S = np.repeat([0.125, 1.0, 0.035], len(WEIGHTINGS))
"""With which they rise, I by its attack."""

RISE_S = 5 * TIME_CONSTANTS_S
"""In which a level (9,) rises from silence to within 0.03 dB."""

RISEN = np.ceil(RISE_S / FRAME_S).astype(np.int64)
"""The first frame (9,), counted from 1, that is not of the rise."""

MEMORY_S, DECAY_S = 0.12, 1.5
"""In which the frequency weightings forget a sound 50 dB louder; time constant of what I holds."""

FORGOTTEN_S = MEMORY_S + np.log(1e5 / (10**0.005 - 1)) * TIME_CONSTANTS_S
FORGOTTEN_S[6:] += np.log(1e5) * DECAY_S
"""Seconds after a fault until a level (9,) that has fallen by 50 dB is within 0.05 dB."""

FORGOTTEN = np.ceil(FORGOTTEN_S / FRAME_S).astype(np.int64)
"""The same in frames (9,)."""

INTERVALS_S = (3, 5)
"""Of which the highest A-weighted F level is taken, for `laft3eq_db` and `laft5eq_db`."""

INTERVALS = np.array([round(seconds / FRAME_S) for seconds in INTERVALS_S])
"""The same in frames (2,)."""

Powers = NDArray[np.floating]
Values = NDArray[np.float64]


class Running(NamedTuple):
    """Sums and extremes of all that was measured so far.

    sums: of mean squares (3, 1) in Pa^2; counts: of frames (1,)
    highest, lowest: powers (9, 1) and (18, 1) in Pa^2, the lowest after the rise and in it
    peak: (3, 1) in pascal
    impulse: (2, 3) of the means of I: sums in Pa^2, counts of frames
    intervals: (2, 4) of those of 3 s and 5 s: frames and highest power of the one that goes on, -1
        for none; sum of the highest of those before in Pa^2, and how many they were
    """

    sums: Values
    counts: Values
    highest: Values
    lowest: Values
    peak: Values
    impulse: Values
    intervals: Values

    @classmethod
    def nothing(cls) -> Self:
        weightings, levels = len(WEIGHTINGS), len(LEVELS)
        return cls(
            np.zeros((weightings, 1)),
            np.zeros(1),
            np.zeros((levels, 1)),
            np.full((2 * levels, 1), np.inf),
            np.zeros((weightings, 1)),
            np.zeros((2, weightings)),
            np.tile([0.0, -1.0, 0.0, 0.0], (len(INTERVALS), 1)),
        )

    def powers(self) -> Values:
        """What `RUNNING` names, as powers (reading, 1)."""
        out = np.empty((len(RUNNING), 1))
        loops.tell(*self, out, 0)
        return out


RUNNING = (
    *(f"l{weighting}eq_db" for weighting in WEIGHTINGS),
    *(f"l{weighting}ieq_db" for weighting in WEIGHTINGS),
    *(f"l{weighting}peak_db" for weighting in WEIGHTINGS),
    *(f"{level}max_db" for level in LEVELS),
    *(f"{level}min_db" for level in LEVELS),
    *(f"laft{seconds}eq_db" for seconds in INTERVALS_S),
)
"""Readings of all that was measured, in the order of `loops.tell`."""

FAST = len(RUNNING)
SUM = FAST + len(LEVELS)
SQUARES = SUM + 2
NOW = SQUARES + len(WEIGHTINGS)
TOLD = NOW + len(LEVELS)
"""Rows of what `loops.measure_frames` tells: after `RUNNING` the powers of `LEVELS` that count, a
sum and a count, mean squares, and the powers of `LEVELS` that are there; and how many they are."""

DIFFERENCES = {
    f"{name}_minus_laeq_db": (RUNNING.index(f"{name}_db"), RUNNING.index("laeq_db"))
    for name in ("lceq", "laieq", "laft3eq", "laft5eq")
}
"""Of two of these each."""

ON_REQUEST = f"{EXPOSURE}_db"
"""One more, of which only somebody who asks for it can make anything."""


def exposure_db(equivalent_db: Any, counts: Any) -> Any:
    """Exposure level of an equivalent level of so many frames, for arrays and compiled loops."""
    return equivalent_db + 10 * np.log10(counts * FRAME_S)


def exposures_db(equivalent_db: Values, counts: Values) -> dict[str, Values]:
    """Exposure levels (n,) of an A-weighted level of so many frames, by name.

    They are levels of 1 s and, as LEX,8h (ISO 1999), of 8 h with the same energy.
    """
    with np.errstate(divide="ignore"):
        of_a_second = exposure_db(equivalent_db, counts)
    return {"lae_db": of_a_second, ON_REQUEST: of_a_second - 10 * math.log10(DAY_S)}


def difference_db(one: Values, other: Values) -> Values:
    """How much higher the level of a power is than that of another; NaN where both are silence."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(10 * np.log10(one / other))


class SoundLevelMeter(FrameMeter):
    """Levels of one channel since the last reset: equivalent, exposure, peak, extreme, percentile.

    columns: readings that `update` gives after each frame: of those of `reading` all but the levels
        of the moment, any percentile level, and levels of the last so many seconds, minutes or
        hours, such as `laeq_1s_db`, `lceq_15min_db` (see `RollingLevel`) or `l90_10min_db` (see
        `RollingHistogram`); LEX,8h, `lex_8h_db`; dose and TWA, `dose_90_5_80_percent` and
        `twa_90_5_80_db` (see `Dose`); and forecasts of limits (see `Forecasts`)

    LAIeq is the mean power of what I shows, from the first frame on. LAFT3 and LAFT5 (DIN 45641)
    are the mean power of the highest A-weighted F level in each whole interval of 3 s or 5 s that
    was measured. LCeq - LAeq and its like, `lceq_minus_laeq_db`, are differences of levels.

    `update` takes what `SoundLevel` gives of a channel, a frame per 10 ms. Levels of the moment
    and of a rolling window are of the sound: they go on through a pause and a reset. All others
    are of the measurement: of frames after the last reset, outside pauses, that are valid. A
    time-weighted level rises from silence where the sound begins, for five time constants: F
    0.63 s, S 5 s, I (by its attack) 0.18 s. In percentiles and minima, frames of that time
    count only where they are not lower than all that came later. After what was not heard a
    level may have to fall: its statistics wait for 16 time constants, F 2.1 s, S 16 s, I 18 s.
    Equivalent levels, exposure and peak have no such times.

    Percentile levels are of A-weighted F levels where their name says no other, `l90_db` the same
    as `laf90_db`, and `lcs90_db` of C-weighted S levels. They are of values every 10 ms, in classes
    of 0.05 dB: within 0.025 dB of the exact, days of them in 24 kB for a range of 150 dB. What is
    below -300 dB is silence, and a percentile that lies there has no level. As columns they are
    renewed every 0.1 s. Those of other levels than A-weighted F are calculated only where `columns`
    names them.

    Raises ValueError for a column that it does not have.
    """

    kept: ClassVar[tuple[str, ...]] = ("paused", "percentiles", "rolling", "_now")
    kept += ("_running", "_taken", "_invalid", "_excluded", "doses", "forecasts")

    def __init__(self, columns: Sequence[str] = ()) -> None:
        super().__init__(columns)
        asked: dict[str, dict[str, tuple[int, str]]] = {LEVELS[0]: {}}
        self.forecasts = Forecasts(self.columns)
        self.rolling: dict[str, RollingLevel] = {}
        # By the name of a dose: of its average, and of a rolling level its weighting.
        self.doses: dict[str, Dose] = {}
        self._averages: dict[str, str] = {}
        self._weighted: dict[str, int] = {}
        for name in (*self.columns, *(f"{level}_db" for level in self.forecasts.rolling)):
            if (one := read_level(name)) is None:
                continue
            window = one.part("window")
            if one.kind == "exceeded":
                asked.setdefault(one.timed, {})[name] = int(one.part("percent")), window
            elif one.kind == "eq" and window:
                self.rolling[name] = RollingLevel(window_s(window), FRAME_S)
                self._weighted[name] = WEIGHTINGS.index(one.weighting)
            elif one.kind in ("dose", "twa"):
                dose = FORMS["dose"].write(**one.parts)
                self.doses[dose] = Dose.of(one)
                self._averages[dose] = FORMS["twa"].write(**one.parts)
        self._exceeded = {level: tuple(asked[level]) for level in LEVELS if level in asked}
        self.percentiles = {
            level: Percentiles([*asked[level].values()], FRAME_S) for level in self._exceeded
        }
        running = (*RUNNING, "lae_db", ON_REQUEST, *DIFFERENCES)
        offered = [*running, *self.rolling]
        offered += [name for names in self._exceeded.values() for name in names]
        offered += [*self._averages.keys(), *self._averages.values()]
        examples = "l10_db", "l90_10min_db", "laeq_1s_db", "laeq_15min_db"
        self.refuse_unknown([*offered, *self.forecasts.names, *examples])
        self._differences = [name for name in self.columns if name in DIFFERENCES]
        own = [name for name in RUNNING if name in self.columns]
        ahead = [f"{of}_db" for of in self.forecasts.rolling]
        self._rolls = [name for name in self.rolling if name not in ahead]
        self.told = TOLD + len(self._rolls)
        """How many rows `measure` writes."""
        settled = [FAST + LEVELS.index(level) for level in self._exceeded]
        settled += [RUNNING.index(name) for name in own]
        self.rows = np.array([*range(NOW, TOLD), *settled, *range(TOLD, self.told)])
        """Rows of `measure` whose levels are the first rows of what `follow` completes."""
        names = [*(f"{level}_db" for level in LEVELS), *self._exceeded, *own, *self._rolls]
        names += [name for name in dict.fromkeys(self.columns) if name not in names]
        self.places = {name: row for row, name in enumerate(names)}
        """Rows of what `follow` completes: levels of the moment, levels that have settled by their
        key, and columns."""
        self._now = np.full(len(LEVELS), np.nan)
        self.memory: LevelMemory | None = None
        """Where rolling levels begin that become columns while it runs; None if none will."""
        self.reset()

    def take_over(self, before: Self) -> None:
        super().take_over(before)
        self.memory = before.memory
        for name, level in self.rolling.items():
            if name in before.rolling or level.window_s < SHORTEST_S:
                continue
            if self.memory is not None:
                self.memory.fill(level, self._weighted[name])

    def reset(self) -> None:
        """Forget what was measured; a pause goes on, and so do levels that are of the sound."""
        for percentiles in self.percentiles.values():
            percentiles.reset()
        # A year of frames, summed one after another in float64, rounds by less than 2e-6 dB.
        self._running = Running.nothing()
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
        impulse: Powers,
        peak: Powers,
        valid: NDArray[np.bool_] | None = None,
        since_s: Values | None = None,
        begin_s: float | None = None,
    ) -> Values:
        """Take frames into account; gives the columns (column, n) after each.

        mean_square: (3, n) in Pa^2; power, highest, lowest: (9, n) in Pa^2
        impulse: (3, n) in Pa^2; peak: (3, n) in pascal
        valid: (n,) which frames may count; all, where it is not given
        since_s: (n,) how long ago the last fault ended, which levels have to forget; where it is
            not given, each frame that is not valid is one
        begin_s: when the first of them ends, in seconds of sound; where it is not given, they
            follow those before, or begin with the sound

        A column is NaN where there is nothing yet, and not finite for silence.
        """
        count = peak.shape[-1]
        if not count:
            return np.empty((len(self.columns), 0))
        valid, since_s = self.marks(mean_square, valid, since_s)
        powers, table = np.empty((self.told, count)), np.empty((len(self.places), count))
        values = mean_square, power, highest, lowest, impulse, peak
        self.measure(values, valid, np.ones(count, np.bool_), since_s, begin_s, powers)
        table[: len(self.rows)] = level_db(powers[self.rows])
        self.follow(powers, table)
        return table[[self.places[name] for name in self.columns]]

    def measure(
        self,
        values: Sequence[Powers],
        valid: NDArray[np.bool_],
        there: NDArray[np.bool_],
        since_s: Values,
        begin_s: float | None,
        out: Values,
    ) -> None:
        """Take frames into account; writes powers (told, n).

        values, valid, since_s, begin_s: as of `update`, the first in its order
        there: (n,) which frames are of complete sound, so that there is a level of the moment

        `follow` must come next, with the levels of these powers.
        """
        power, count = values[1], values[-1].shape[-1]
        if begin_s is not None:
            self._taken = round(begin_s / FRAME_S) - 1
        rules = FRAME_S, self._taken, RISEN, FORGOTTEN, INTERVALS, self.paused
        heard = loops.measure_frames(*values, valid, there, since_s, *rules, *self._running, out)
        if not self.paused:
            self._excluded += count - heard
        known = not math.isnan(out[SQUARES, -1])
        self._now = power[:, -1].copy() if known else np.full(len(power), np.nan)
        squares = out[SQUARES:NOW]
        if self.memory is not None:
            self.memory.add(squares, self._taken)
        for row, name in enumerate(self._rolls, TOLD):
            self.rolling[name].follow(squares[self._weighted[name]], out[row])

    def follow(self, powers: Values, table: Values) -> None:
        """Complete the table (place, n) after each frame, whose first rows are levels of `rows`.

        powers: what `measure` wrote of the frames
        """
        count, before = table.shape[1], self._taken
        self._taken += count
        due = range(-(before + 1) % RENEWED, count, RENEWED)
        for level, percentiles in self.percentiles.items():
            # A level that has settled is of a valid frame.
            now, rising = table[self.places[level]], int(RISEN[LEVELS.index(level)]) - before - 1
            measured = np.full(count, np.nan) if self.paused else now
            told = percentiles.add(measured, now, due, min(max(0, rising), count))
            for name, values in zip(self._exceeded[level], told, strict=True):
                table[self.places[name]] = values
        for name, values in self._asked(powers, before):
            table[self.places[name]] = values

    def _asked(self, powers: Values, before: int) -> Iterator[tuple[str, Values]]:
        """The columns (n,) of differences, exposure, doses and forecasts that are asked for."""
        for name in self._differences:
            yield name, difference_db(*(powers[row] for row in DIFFERENCES[name]))
        if "lae_db" in self.places or ON_REQUEST in self.places:
            found = exposures_db(level_db(powers[0]), powers[SUM + 1])
            yield from ((name, found[name]) for name in found if name in self.places)
        for name, dose in self.doses.items():
            measured = ~np.isnan(powers[SQUARES]) & (not self.paused)
            percent = dose.add(powers[NOW + LEVELS.index("las")], measured, FRAME_S)
            both = {name: percent, self._averages[name]: dose.average_db(percent)}
            yield from ((name, both[name]) for name in both if name in self.places)
        if self.forecasts.names:
            yield from self._foreseen(powers, before)

    def _foreseen(self, powers: Values, before: int) -> Iterator[tuple[str, Values]]:
        """Forecasts, and the rolling levels that have them."""
        ahead, squares = {}, powers[SQUARES:NOW]
        for of in self.forecasts.rolling:
            name = f"{of}_db"
            given = self.rolling[name], squares[self._weighted[name]], before
            levels, ahead[of] = self.forecasts.follow(of, *given)
            if name in self.places:
                yield name, levels
        if EXPOSURE in self.forecasts.levels:
            counted = powers[SUM], powers[SUM + 1]
            ahead[EXPOSURE] = self.forecasts.expose(*counted, squares[0], before)
        yield from self.forecasts.columns(ahead).items()

    def tail(
        self,
        values: Sequence[Powers],
        valid: NDArray[np.bool_],
        shares: Values,
        since_s: Values,
        part: float,
    ) -> None:
        """Take frames after the end of the sound into account, the first six arrays of `update`.

        shares: (n,) how much of the energy of each counts; where none does, the peak does

        They count in maxima, and their energy in equivalent levels and exposure; of their time, and
        in the mean of I, which holds, only the `part` of the first counts that is still sound. Of a
        sound shorter than a frame that is the only one, and stands for all of it in percentiles and
        minima.
        """
        mean_square, power, highest, _, impulse, peak = values
        if self.paused or not peak.shape[-1]:
            return
        so_far = self._running
        sane = np.asarray(np.isfinite(mean_square).all(0))
        peaks = np.where(sane & valid, peak, 0.0).max(1)
        np.maximum(so_far.peak[:, 0], peaks, out=so_far.peak[:, 0])
        known = sane & (shares > 0)
        so_far.sums[:, 0] += np.where(known, shares * mean_square, 0.0).sum(1)
        if known[0]:
            so_far.counts[0] += part
        settled = known & (np.rint(since_s / FRAME_S) >= FORGOTTEN[:, None])
        tops = np.where(settled, highest, 0.0).max(1)
        np.maximum(so_far.highest[:, 0], tops, out=so_far.highest[:, 0])
        held = settled[len(LEVELS) - len(WEIGHTINGS) :, 0]
        so_far.impulse[:, held] += part * np.stack([impulse[held, 0], np.ones(held.sum())])
        if not self._taken and known[0]:
            # Of a rise what it has reached: it begins from nothing.
            so_far.lowest[len(LEVELS) :, 0] = power[:, 0]
            for level, percentiles in self.percentiles.items():
                now = level_db(power[LEVELS.index(level), :1])
                percentiles.add(now, now, (), 0)

    def skip(self, count: int) -> None:
        super().skip(count)
        for percentiles in self.percentiles.values():
            percentiles.skip(count)
        for level in self.rolling.values():
            level.skip(count)
        self.forecasts.skip(count)

    def _dosed(self) -> Iterator[tuple[str, float]]:
        for name, dose in self.doses.items():
            yield name, dose.percent
            yield self._averages[name], dose.average_db(dose.percent)

    def reading(self) -> dict[str, float | None]:
        """All readings by name, in dB and seconds; None where there is none, as of silence."""
        histogram = self.percentiles[LEVELS[0]].histogram
        now = zip(LEVELS, level_db(self._now), strict=True)
        powers = self._running.powers()
        running = dict(zip(RUNNING, level_db(powers), strict=True))
        pairs = {name: powers[[*rows]] for name, rows in DIFFERENCES.items()}
        running |= {name: difference_db(*pair) for name, pair in pairs.items()}
        running |= exposures_db(running["laeq_db"], self._running.counts)
        return {
            **{f"{name}_db": finite(value) for name, value in now},
            **{n: finite(v[0]) for n, v in running.items() if n != ON_REQUEST or n in self.columns},
            **{name: finite(value) for name, value in self._dosed()},
            **{f"l{p}_db": finite(histogram.exceeded(p)) for p in PERCENTS},
            **{
                name: finite(value)
                for level, names in self._exceeded.items()
                for name, value in zip(names, self.percentiles[level].readings(), strict=True)
            },
            **{name: finite(level.level_db) for name, level in self.rolling.items()},
            "measured_s": float(self._running.counts[0]) * FRAME_S,
            "excluded_s": self._excluded * FRAME_S,
        }
