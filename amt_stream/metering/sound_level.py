"""What a person reads off a sound level meter (IEC 61672-1:2013, and percentile levels)."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from amt_stream.metering.histogram import Histogram
from amt_stream.metering.pausable import Pausable
from amt_stream.scales import P0

FRAME_S = 0.01
WEIGHTINGS = ("a", "c", "z")
LEVELS = ("laf", "lcf", "lzf", "las", "lcs", "lzs", "lai")
"""Time-weighted levels, in the order of `SoundLevel`."""

# Frames in which a level has settled: five times its time constant, rounded up. The lowest I is of
# no use.
SETTLED = np.array([63, 63, 63, 500, 500, 500])

PERCENTS = (1, 5, 10, 50, 90, 95, 99)

Powers = NDArray[np.floating]


class SoundLevelMeter(Pausable):
    """Levels of one channel since the last reset: equivalent, exposure, peak, extreme, percentile.

    short_s: length of the short equivalent levels, a multiple of 0.01 s

    `update` takes what `SoundLevel` gives of a channel, a frame per 10 ms, from the start of the
    sound. Time-weighted and short equivalent levels go on through a pause or a reset; what is
    measured counts only frames after the last reset, outside pauses, that are valid (no gap, no
    fault, nothing that still settles). The lowest levels are of frames at which the level had
    settled for five time constants since the sound began or was last not valid. Percentile levels
    are of A-weighted F levels, every 10 ms, in classes of 0.05 dB from 0 to 150 dB: within 0.025 dB
    of the exact, days of them in 24 kB; what is below 0 dB counts in the lowest class.

    Raises ValueError for another `short_s`.
    """

    def __init__(self, short_s: float = 1.0) -> None:
        frames = round(short_s / FRAME_S)
        if frames < 1 or not math.isclose(frames * FRAME_S, short_s):
            raise ValueError(f"short_s is {short_s}: give a multiple of {FRAME_S} s")
        self.short_s = short_s
        self._short_frames = frames
        self._short_sum = np.zeros(len(WEIGHTINGS))
        self._short_count = 0
        self._short = np.full(len(WEIGHTINGS), np.nan)
        self._now = np.full(len(LEVELS), np.nan)
        self._sounding = 0  # frames since the sound began, or since one that was not valid
        self.reset()

    def reset(self) -> None:
        """Forget what was measured; a pause goes on, and so do levels that run."""
        self.histogram = Histogram(0.0, 150.0, 0.05)
        # A year of frames, summed one after another in float64, rounds by less than 2e-6 dB.
        self._sum = np.zeros(len(WEIGHTINGS))
        self._highest = np.full(len(LEVELS), -np.inf)
        self._lowest = np.full(len(SETTLED), np.inf)
        self._peak = 0.0
        self._measured = self._excluded = 0

    def update(
        self,
        mean_square: Powers,
        power: Powers,
        highest: Powers,
        lowest: Powers,
        c_peak: Powers,
        valid: NDArray[np.bool_] | None = None,
    ) -> NDArray[np.float64]:
        """Take frames into account; gives the short equivalent levels that they complete.

        mean_square: (3, n) in Pa^2; power, highest, lowest: (7, n) in Pa^2; c_peak: (n,) in pascal
        valid: (n,); all, where it is not given

        Short levels (3, k) are of A, C and Z, in dB; NaN where a frame was not valid, or silent.
        """
        count = len(c_peak)
        if not count:
            return np.empty((len(WEIGHTINGS), 0))
        known = np.asarray(np.isfinite(mean_square).all(0))
        if valid is not None:
            known &= valid
        squares = np.where(known, mean_square, np.nan).astype(np.float64)
        self._now = np.where(known[-1], power[:, -1], np.nan)
        broken = np.maximum.accumulate(np.where(known, -1 - self._sounding, np.arange(count)))
        sounding = np.arange(count) - broken
        self._sounding = int(sounding[-1])
        if not self.paused:
            rows: tuple[NDArray[Any], ...]
            rows = squares, power, highest, lowest, c_peak, sounding
            if not known.all():
                rows = tuple(v[..., known] for v in rows)
            if rows[-1].size:
                self._measure(*rows)
            self._excluded += count - rows[-1].size
        return self._short_levels(squares)

    def _measure(
        self,
        squares: Powers,
        power: Powers,
        highest: Powers,
        lowest: Powers,
        c_peak: Powers,
        sounding: NDArray[np.integer],
    ) -> None:
        """Count frames that are valid; with each, `sounding` of them in a row were."""
        self._measured += sounding.size
        self._sum += squares.sum(-1)
        self.histogram.add(level_db(power[0]))
        self._highest = np.maximum(self._highest, highest.max(-1))
        lows = lowest[: SETTLED.size]
        if sounding.min() < SETTLED.max():
            lows = np.where(sounding >= SETTLED[:, None], lows, np.inf)
        self._lowest = np.minimum(self._lowest, lows.min(-1))
        self._peak = max(self._peak, float(c_peak.max()))

    def _short_levels(self, squares: NDArray[np.float64]) -> NDArray[np.float64]:
        """Short equivalent levels (3, k), on a grid that began with the sound."""
        found = []
        at, count = 0, squares.shape[1]
        while at < count:
            taken = min(self._short_frames - self._short_count, count - at)
            self._short_sum += squares[:, at : at + taken].sum(-1)
            self._short_count += taken
            at += taken
            if self._short_count == self._short_frames:
                levels = level_db(self._short_sum / self._short_frames)
                self._short = np.where(np.isfinite(levels), levels, np.nan)
                found.append(self._short)
                self._short_sum, self._short_count = np.zeros(len(WEIGHTINGS)), 0
        return np.stack(found, -1) if found else np.empty((len(WEIGHTINGS), 0))

    @property
    def measured_s(self) -> float:
        """The time T that equivalent levels are of."""
        return self._measured * FRAME_S

    def reading(self) -> dict[str, float | None]:
        """All readings by name, in dB and seconds; None where there is none, as of silence."""
        equivalent = level_db(self._sum / max(1, self._measured))
        exposure = equivalent[0] + 10 * math.log10(self.measured_s or math.nan)
        named = {
            **dict(zip(LEVELS, level_db(self._now), strict=True)),
            **{f"l{w}eq": v for w, v in zip(WEIGHTINGS, equivalent, strict=True)},
            "lae": exposure,
            "lcpeak": level_db(np.square(self._peak)),
            **{f"{v}max": v_db for v, v_db in zip(LEVELS, level_db(self._highest), strict=True)},
            **{f"{v}min": v_db for v, v_db in zip(LEVELS, level_db(self._lowest), strict=False)},
            **{f"laf{p}": self.histogram.exceeded(p) for p in PERCENTS},
            **{f"short_l{w}eq": v for w, v in zip(WEIGHTINGS, self._short, strict=True)},
        }
        return {
            **{f"{name}_db": finite(value) for name, value in named.items()},
            "measured_s": self.measured_s,
            "excluded_s": self._excluded * FRAME_S,
        }


def level_db(power: NDArray[np.floating]) -> NDArray[np.float64]:
    """Level in dB re 20 uPa of a mean square in Pa^2; minus infinity for silence."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return 10 * np.log10(np.asarray(power, np.float64) / P0**2)


def finite(level: float | None) -> float | None:
    """A level as a plain float, or None where there is none."""
    return float(level) if level is not None and math.isfinite(level) else None
