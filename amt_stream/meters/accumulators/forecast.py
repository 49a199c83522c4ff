"""Forecasts of an equivalent level and its limit: the level still allowed, and the time left."""

import math
from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from amt_stream.core.saved_state import Resumable
from amt_stream.dsp.scales import P0
from amt_stream.meters.accumulators.dose import DAY_S
from amt_stream.meters.accumulators.level import level_db
from amt_stream.meters.accumulators.meter import FRAME_S
from amt_stream.meters.accumulators.rolling import RollingLevel
from amt_stream.meters.level_names import AHEAD, EXPOSURE, read_level

PRESENT_S = 10.0
"""Seconds of the level that is assumed to continue."""

RENEWED_S = 1.0
Values = NDArray[np.float64]


def limit_power(text: str) -> float:
    """The mean square in Pa^2 of a limit in a name."""
    return float(P0**2 * 10 ** (float(text.replace("p", ".")) / 10))


class Forecasts(Resumable):
    """Two kinds of columns for limits of levels that are columns of `SoundLevelMeter` too.

    allowed: the highest steady level in dB from now on that keeps the level within its limit until
        the window has no present sound left, or the eight hours are over; NaN if the limit is
        exceeded
    until: seconds until the limit is exceeded if the level of the last 10 s continues; NaN if it is
        not

    columns: names of columns; those of forecasts are used, such as
        `laeq_15min_allowed_99p5_db` and `laeq_15min_until_99p5_s`
    levels: levels with forecasts; `rolling` are the rolling ones among them

    Both are updated every second of sound; for a window they are accurate within 0.005 dB and 0.1 %
    of its length. Time before the start counts as silence, and missing sound is left out.
    """

    kept: ClassVar[tuple[str, ...]] = ("_held", "_present")

    def __init__(self, columns: Sequence[str]) -> None:
        self._due = round(RENEWED_S / FRAME_S)
        limits_of: dict[str, list[str]] = {}
        ahead = [(name, one) for name in columns if (one := read_level(name)) and one.kind in AHEAD]
        self.names = tuple(name for name, _ in ahead)
        self._places: list[tuple[str, int, int]] = []
        for _, (kind, parts) in ahead:
            limits = limits_of.setdefault(parts["of"], [])
            if parts["limit"] not in limits:
                limits.append(parts["limit"])
            self._places.append((parts["of"], limits.index(parts["limit"]), AHEAD.index(kind)))
        self._powers = {k: [limit_power(one) for one in v] for k, v in limits_of.items()}
        self._held = {level: np.full((len(v), 2), np.nan) for level, v in limits_of.items()}
        self.levels = tuple(limits_of)
        self.rolling = tuple(level for level in self.levels if level != EXPOSURE)
        self._present = RollingLevel(PRESENT_S, FRAME_S) if EXPOSURE in self.levels else None

    def take_over(self, before: "Forecasts") -> None:
        fresh = self._held
        super().take_over(before)
        for level, powers in self._powers.items():
            rows = dict(
                zip(before._powers.get(level, ()), before._held.get(level, ()), strict=True)
            )
            self._held[level] = np.stack(
                [rows.get(power, own) for power, own in zip(powers, fresh[level], strict=True)]
            )

    def columns(self, found: Mapping[str, Values]) -> dict[str, Values]:
        """The columns (n,) by name, from the results of `follow` and `expose`."""
        placed = zip(self.names, self._places, strict=True)
        return {name: found[level][place, kind] for name, (level, place, kind) in placed}

    def skip(self, count: int) -> None:
        """Skip missing frames."""
        if self._present is not None:
            self._present.skip(count)

    def reset(self) -> None:
        """Restart the exposure of the day, but not the windows."""
        if EXPOSURE in self._held:
            self._held[EXPOSURE][:] = np.nan

    def _in_pieces(self, count: int, taken: int) -> list[slice]:
        """Slices of frames up to each update, and the rest; `taken` frames came before."""
        ends = [*range(-taken % self._due or self._due, count + 1, self._due)]
        starts = [0, *ends]
        return [slice(a, b) for a, b in zip(starts, [*ends, count], strict=True)]

    def follow(
        self, level: str, rolling: RollingLevel, squares: Values, taken: int
    ) -> tuple[Values, Values]:
        """Update a rolling level with mean squares (n,); returns it and forecasts (limit, kind, n).

        taken: number of frames before these
        """
        levels = np.empty(len(squares))
        out = np.empty((*self._held[level].shape, len(squares)))
        for part in self._in_pieces(len(squares), taken):
            levels[part] = rolling.add(squares[part])
            out[..., part] = self._held[level][..., None]
            if part.stop > part.start and (taken + part.stop) % self._due == 0:
                for k, power in enumerate(self._powers[level]):
                    self._held[level][k] = self._of_window(rolling, power, taken + part.stop)
                out[..., part.stop - 1] = self._held[level]
        return levels, out

    def _of_window(self, rolling: RollingLevel, power: float, taken: int) -> tuple[float, float]:
        places, (sums, counts) = rolling.ahead()
        time = rolling.slot * places
        silent = np.maximum(rolling.length - taken - time, 0)
        left = power * (counts + time + silent) - sums
        if left[0] < 0:
            return math.nan, 0.0
        highest = left[1:] / time[1:]
        newest = rolling.length - round(PRESENT_S / FRAME_S)
        last = int(np.searchsorted(time, newest))
        passed = highest * counts[last] < sums[last]
        until = float(time[1 + passed.argmax()]) * FRAME_S if passed.any() else math.nan
        return _level(highest.min()), until

    def expose(self, sums: Values, counts: Values, squares: Values, taken: int) -> Values:
        """Forecasts (limit, kind, n) of a day, given the exposure after each frame (n,).

        sums: sums of mean squares
        counts: numbers of frames
        squares: mean squares of the frames, NaN for none
        """
        assert self._present is not None
        present = P0**2 * 10 ** (self._present.add(squares) / 10)
        out = np.empty((*self._held[EXPOSURE].shape, len(squares)))
        for part in self._in_pieces(len(squares), taken):
            out[..., part] = self._held[EXPOSURE][..., None]
            at = part.stop - 1
            if part.stop > part.start and (taken + part.stop) % self._due == 0:
                for k, power in enumerate(self._powers[EXPOSURE]):
                    self._held[EXPOSURE][k] = self._of_day(power, sums[at], counts[at], present[at])
                out[..., at] = self._held[EXPOSURE]
        return out

    def _of_day(self, power: float, heard: float, count: float, now: float) -> tuple[float, float]:
        frames = DAY_S / FRAME_S
        left, rest = power * frames - heard, frames - count
        if left < 0:
            return math.nan, 0.0
        if rest <= 0:
            return math.nan, math.nan
        return _level(left / rest), left / now * FRAME_S if now * rest > left else math.nan


def _level(power: float) -> float:
    return float(level_db(np.array(power))) if power > 0 else math.nan
