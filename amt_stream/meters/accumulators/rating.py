"""Adjustments for tones and impulses, and the rating level, since the last reset."""

from collections.abc import Iterable
from math import inf, log10, nan
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from amt_stream.meters.accumulators.meter import Meter

FRAME_S = 0.1

INTERVAL_S = 1800.0
"""Intervals of which each has its adjustments (NT ACOU 112, ISO 1996-1)."""

LEAST_SHARE = 0.5
"""Of the time that is measured, for a rating level of it."""

PROMINENT = 5.0
"""Prominence above which an onset is an impulse that is adjusted for."""

TONE_STEPS = (0.0, 2.0, 4.0, 6.0, 9.0, 12.0)
"""Audibilities in dB above which the adjustment is 1, 2 ... 6 dB (ISO 1996-2:2017, Table J.1)."""

NO_TONE_DB = -10.0
REFERENCE = 4e-10

KEPT_INTERVALS, KEPT_IMPULSES = 48, 16
"""Intervals whose impulses can still be left out, and the most prominent of each."""

RISE_S = 1.0
"""After a start or a fault, in which the level F rises and no onset is one."""

SAME_IMPULSE_S = 0.05
"""Two that began no farther apart are one, as two channels hear it."""

SECONDS, ENERGY, SPECTRA, AUDIBLE, IMPULSES, LISTENED, BEST, BEST_HZ = range(8)
ADJUSTED, RATED, MOST = range(8, 11)
"""What is known of an interval: seconds, energy, spectra and the sum of their audibility as a power
ratio, the number of impulses and of frames in which one would be known, and audibility and
frequency of the most audible tone; of those no longer kept also adjusted energy, the seconds that
have both adjustments, and the highest prominence."""

EMPTY = np.array([[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, NO_TONE_DB, nan]])
"""An interval without anything."""

TIME, PROMINENCE, *_, LEFT_OUT = range(5)
"""What is known of an impulse."""

NOW = (
    *("tone_dl", "tone_hz", "tone_u", "tone_age"),
    *("impulse_s", "impulse_p", "impulse_or", "impulse_ld"),
)
"""Readings of the last spectrum, and of the last impulse."""

COLUMNS = (
    *NOW,
    *(
        "tone_mean_dl",
        "tone_max_hz",
        "tone_n",
        "tone_discarded",
        "kt",
        "impulse_max_p",
        "impulse_n",
        "ki",
    ),
    *("laeq", "rating"),
)


class Rated(NamedTuple):
    """An interval: LAeq and adjustments for tones and impulses in dB, and its seconds."""

    laeq_db: float
    kt_db: float
    ki_db: float
    seconds: float


class Impulse(NamedTuple):
    """An onset whose prominence is above 5.

    time_s: when it begins, in seconds of sound
    prominence: P
    rate_db_s, difference_db: onset rate OR, and level difference LD
    left_out: whether it is not adjusted for
    """

    time_s: float
    prominence: float
    rate_db_s: float
    difference_db: float
    left_out: bool = False


def tone_adjustment(audibility_db: float) -> float:
    """The adjustment K_T in dB for a mean audibility in dB."""
    return float(sum(audibility_db > step for step in TONE_STEPS))


def impulse_adjustment(prominence: float) -> float:
    """The adjustment K_I in dB for a prominence."""
    return max(0.0, 1.8 * (prominence - PROMINENT))


def rated_db(laeq_db: float, kt_db: float, ki_db: float, combine: str = "sum") -> float:
    """The rating level of an interval; combine: "sum" of the adjustments or their "max"."""
    return laeq_db + (kt_db + ki_db if combine == "sum" else max(kt_db, ki_db))


def rating_level(intervals: Iterable[Rated], combine: str = "sum") -> float:
    """The rating level in dB of intervals, averaged by energy; NaN without any."""
    each = [(one.seconds, rated_db(*one[:3], combine)) for one in intervals]
    seconds = sum(duration for duration, _ in each)
    energy = sum(duration * 10 ** (level / 10) for duration, level in each)
    return 10 * log10(energy / seconds) if seconds else nan


def _mean_db(interval: NDArray[np.float64]) -> float:
    """Mean audibility in dB; NaN without a spectrum."""
    there = interval[SPECTRA] > 0
    return 10 * log10(interval[AUDIBLE] / interval[SPECTRA]) if there else nan


class Values(NamedTuple):
    """A channel of a model's frames (n, ...), as in `RatingOutput`; None for what it lacks."""

    complete: NDArray[np.floating] | None = None
    audibility: NDArray[np.floating] | None = None
    hz: NDArray[np.floating] | None = None
    uncertainty: NDArray[np.floating] | None = None
    mean_square: NDArray[np.floating] | None = None
    onsets: NDArray[np.floating] | None = None


class RatingMeter(Meter):
    """Tones, impulses, A-weighted level and rating level of one channel.

    The adjustment for tones of an interval is that of the mean audibility of its spectra, that for
    impulses of its most prominent one; adjusted levels of intervals are averaged by energy. Time
    without measurement is in no interval. Impulses of the last 48 intervals can be left out, and
    those that are still to come.

    columns: readings that `update` gives after each frame, of `COLUMNS`
    combine: "sum" or "max" of the adjustments
    expected_s: times of impulses that are left out when they come; a reset keeps them
    """

    kept = (
        *("paused", "_counted", "_excluded", "_intervals", "_impulses"),
        *("_folded", "_closed", "_last", "_waiting", "_discarded", "_since", "expected_s"),
    )
    growing = ("_intervals", "_impulses", "expected_s")

    def __init__(self, columns: tuple[str, ...] = COLUMNS, combine: str = "sum") -> None:
        super().__init__(columns)
        self.refuse_unknown(COLUMNS)
        self.combine = combine
        self.expected_s = np.empty(0)
        self.reset()

    def reset(self) -> None:
        """Forget what was measured; a pause goes on."""
        self._counted = self._excluded = self._discarded = 0
        self._intervals = EMPTY.copy()
        self._impulses = np.full((1, KEPT_IMPULSES, 5), nan)
        # Of intervals that are no longer kept.
        self._folded = np.array([*EMPTY[0], 0.0, 0.0, -inf])
        # Adjusted energy, its seconds, and highest prominence of all but the last interval.
        self._closed = self._folded[ADJUSTED:].copy()
        # Audibility, frequency, uncertainty and age of the tone; the last impulse.
        self._last = np.full(8, nan)
        # Prominence of an onset that ended, as long as a next rise may be one with it.
        self._waiting = -inf
        # Frames since the last that no spectrum may have, and that no statistic of one may have:
        # also one before a reset or in a pause.
        self._since = np.zeros(2, int)

    def update(
        self,
        values: Values,
        time_s: NDArray[np.float64],
        counted: NDArray[np.bool_],
        clean: NDArray[np.bool_],
        since_s: NDArray[np.float64],
        spectrum_s: float,
    ) -> NDArray[np.float64]:
        """Take frames (n,) into account; gives the columns (column, n) after each.

        counted: which may count
        clean: which have neither a fault nor clipped sound, so that a spectrum may have them
        since_s: of each frame, since the last fault
        spectrum_s: duration of a spectrum
        """
        out = np.empty((len(self.columns), len(time_s)))
        for k, at in enumerate(time_s.tolist()):
            self._since = (self._since + 1) * (clean[k], not self.paused)
            self._last[3] += FRAME_S
            if values.complete is not None and values.complete[k]:
                self._take_spectrum(values, k, bool(counted[k]), spectrum_s)
            if not self.paused:
                if counted[k]:
                    self._count(values, k, min(at, float(since_s[k])))
                else:
                    self._excluded += 1
            self._waiting = -inf
            if values.onsets is not None and counted[k]:
                self._take_onsets(values.onsets[k], at, float(since_s[k]))
            found = self._readings()
            out[:, k] = [found[name] for name in self.columns]
        return out

    def skip(self, count: int) -> None:
        super().skip(count)
        self._since[0] = 0

    def _take_spectrum(self, values: Values, k: int, counts: bool, spectrum_s: float) -> None:
        """A spectrum with a fault in it is thrown away."""
        # The first frame of a spectrum may end after it began.
        clean, heard = self._since >= spectrum_s / FRAME_S - 0.5
        if not (counts and clean):
            self._discarded += int(heard)
            return
        assert values.audibility is not None
        assert values.hz is not None
        assert values.uncertainty is not None
        audible = float(values.audibility[k])
        there = audible > NO_TONE_DB
        self._last[0] = audible if there else nan
        self._last[1] = values.hz[k] if there else nan
        self._last[2] = values.uncertainty[k] if there else nan
        self._last[3] = 0.0
        if heard:
            self._intervals[-1, SPECTRA] += 1
            self._intervals[-1, AUDIBLE] += 10 ** (audible / 10)
            if audible > self._intervals[-1, BEST]:
                self._intervals[-1, BEST : BEST_HZ + 1] = audible, values.hz[k]

    def _count(self, values: Values, k: int, since_s: float) -> None:
        """Count the level of a frame, in a new interval if the last one is full.

        since_s: since the start, and since the last fault
        """
        self._counted += 1
        if self._intervals[-1, SECONDS] >= INTERVAL_S - FRAME_S / 2:
            if len(self._intervals) == KEPT_INTERVALS:
                self._folded[:BEST] += self._intervals[0, :BEST]
                self._folded[BEST : BEST_HZ + 1] = self._best
                self._folded[ADJUSTED : RATED + 1] += self._adjusted(0)
                self._folded[MOST] = max(self._folded[MOST], self._most(0))
                self._intervals, self._impulses = self._intervals[1:], self._impulses[1:]
            self._intervals = np.concatenate([self._intervals, EMPTY])
            empty = np.full((1, KEPT_IMPULSES, 5), nan)
            self._impulses = np.concatenate([self._impulses, empty])
            self._sum_up()
        self._intervals[-1, SECONDS] += FRAME_S
        self._intervals[-1, LISTENED] += since_s > RISE_S + FRAME_S / 2
        if values.mean_square is not None:
            self._intervals[-1, ENERGY] += FRAME_S * float(values.mean_square[k])

    def _take_onsets(self, onsets: NDArray[np.floating], time_s: float, since_s: float) -> None:
        """Take the onsets (5, 8) of a frame, at each 20 ms."""
        for step in np.flatnonzero(onsets[:, 5] > PROMINENT):
            began_ago, _, _, rise, rate, prominence = onsets[step, :6].tolist()
            late = FRAME_S * (1 - (step + 1) / len(onsets))
            # After a fault, the level F rises from the silence in its place.
            if since_s - late - began_ago < RISE_S:
                continue
            began_s = time_s - late - began_ago
            expected = self._is_expected(began_s)
            self.expected_s, out = self.expected_s[~expected], bool(expected.any())
            found = np.array([began_s, prominence, rate, rise, out])
            self._last[4:] = found[:4]
            if self.paused:
                continue
            self._intervals[-1, IMPULSES] += not out
            kept = self._impulses[-1]
            least = int(np.argmin(np.nan_to_num(kept[:, PROMINENCE], nan=-inf)))
            if not kept[least, PROMINENCE] > prominence:
                kept[least] = found
        prominence, began_ago = onsets[-1, 6:].tolist()
        waits = prominence > PROMINENT and since_s - began_ago >= RISE_S and not self.paused
        waits = waits and not self._is_expected(time_s - began_ago).any()
        self._waiting = prominence if waits else -inf

    def tail(
        self, values: Values, shares: NDArray[np.float64], time_s: NDArray[np.float64]
    ) -> None:
        """Take frames after the end of the sound, of which these shares of the energy count."""
        if self.paused:
            return
        for k, share in enumerate(shares.tolist()):
            if values.mean_square is not None:
                self._intervals[-1, ENERGY] += FRAME_S * share * float(values.mean_square[k])
            if values.onsets is not None and share:
                self._take_onsets(values.onsets[k], float(time_s[k]), inf)

    @property
    def impulses(self) -> list[Impulse]:
        """The impulses that are kept, in order of time."""
        rows = self._impulses.reshape(-1, 5)
        rows = rows[~np.isnan(rows[:, TIME])]
        rows = rows[np.argsort(rows[:, TIME])]
        return [Impulse(*row[:4], left_out=row[4] > 0) for row in rows.tolist()]  # type: ignore[misc]

    def has_impulse(self, time_s: float) -> bool:
        """Whether an impulse that is kept, left out or not, began at this time."""
        return bool(self._is_kept(time_s).any())

    def _is_kept(self, time_s: float) -> NDArray[np.bool_]:
        return np.abs(self._impulses[..., TIME] - time_s) <= SAME_IMPULSE_S

    def leave_out(self, time_s: float, out: bool = True) -> None:
        """Leave out the impulse that began at this time, or count it again.

        One that is still to come is left out when it comes.
        """
        found = self._is_kept(time_s)
        changed = found & (self._impulses[..., LEFT_OUT] != out)
        self._impulses[changed, LEFT_OUT] = out
        self._intervals[:, IMPULSES] += np.where(out, -1, 1) * changed.sum(1)
        self._sum_up()
        self.expected_s = self.expected_s[~self._is_expected(time_s)]
        if out and not found.any():
            self.expected_s = np.append(self.expected_s, time_s)[-KEPT_INTERVALS * KEPT_IMPULSES :]

    def _is_expected(self, time_s: float) -> NDArray[np.bool_]:
        """Which of the impulses that are still to come this one is."""
        return np.abs(self.expected_s - time_s) <= SAME_IMPULSE_S

    @property
    def _best(self) -> NDArray[np.float64]:
        """Audibility and frequency of the most audible tone of all."""
        rows = np.concatenate([self._intervals, self._folded[None, :ADJUSTED]])
        best: NDArray[np.float64] = rows[np.argmax(rows[:, BEST]), BEST : BEST_HZ + 1]
        return best

    def _most(self, k: int) -> float:
        """The highest prominence in an interval; minus infinity without an impulse."""
        rows = self._impulses[k]
        waiting = self._waiting if k == -1 else -inf
        return float(np.max(rows[:, PROMINENCE], initial=waiting, where=rows[:, LEFT_OUT] == 0))

    def _adjusted(self, k: int) -> NDArray[np.float64]:
        """Energy of an interval with its adjustments, and its seconds; 0 if one is not known."""
        one = self._intervals[k]
        if not (one[SPECTRA] and one[LISTENED]):
            return np.zeros(2)
        kt, ki = tone_adjustment(_mean_db(one)), impulse_adjustment(self._most(k))
        factor = 10 ** (rated_db(0.0, kt, ki, self.combine) / 10)
        return np.array([one[ENERGY] * factor, one[SECONDS]])

    def _sum_up(self) -> None:
        """Sum up all but the last interval, which change only here."""
        closed = range(len(self._intervals) - 1)
        *adjusted, most = self._folded[ADJUSTED:]
        self._closed[:2] = sum(map(self._adjusted, closed), np.array(adjusted))
        self._closed[2] = max([most, *map(self._most, closed)])

    def _level(self, energy: float, seconds: float) -> float:
        """The level in dB; none without energy, or if too little of the time was measured."""
        whole_s = FRAME_S * (self._counted + self._excluded)
        there = energy > 0 and seconds > 0 and seconds > LEAST_SHARE * whole_s - FRAME_S / 2
        return 10 * log10(energy / seconds / REFERENCE) if there else nan

    def _readings(self) -> dict[str, float]:
        """All readings, NaN where there is none."""
        total = self._folded[:BEST] + self._intervals[:, :BEST].sum(0)
        most = max(float(self._closed[2]), self._most(-1))
        adjusted, rated_s = (self._closed[:2] + self._adjusted(-1)).tolist()
        mean_db = _mean_db(total)
        now = dict(zip(NOW, self._last.tolist(), strict=True))
        return now | {
            "tone_mean_dl": mean_db if mean_db > NO_TONE_DB + 1e-6 else nan,
            "tone_max_hz": float(self._best[1]),
            "tone_n": float(total[SPECTRA]),
            "tone_discarded": float(self._discarded),
            "kt": tone_adjustment(mean_db) if total[SPECTRA] else nan,
            "impulse_max_p": most if most > -inf else nan,
            "impulse_n": float(total[IMPULSES]),
            "ki": impulse_adjustment(most) if total[LISTENED] else nan,
            "laeq": self._level(total[ENERGY], total[SECONDS]),
            "rating": self._level(adjusted, rated_s),
        }

    def reading(self) -> dict[str, float | None]:
        """The readings by name; None where there is none yet."""
        found = self._readings()
        return {
            **{name: None if np.isnan(value) else value for name, value in found.items()},
            "measured_s": self._counted * FRAME_S,
            "excluded_s": self._excluded * FRAME_S,
        }
