"""Statistics of a loudness model."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from amt_stream.meters.accumulators.extremes import Events, Hold, Maximum, TimeAbove
from amt_stream.meters.accumulators.percentiles import PercentileMeter, still_rising

RISE_S = 0.5
"""Five time constants of the rise of long-term loudness, after which it is within 1 %."""

Values = NDArray[np.float64]


class LoudnessMeter(PercentileMeter):
    """Maxima and percentiles of loudness level in phon, since the last reset.

    frame_rate: frames per second for `update`
    columns: readings that `update` returns after each frame: `max_stl_phon`, `max_ltl_phon`, any
        percentile, such as `ltl_n5_phon`, and those of the last seconds, minutes or hours, such as
        `ltl_n5_10min_phon` (see `RollingHistogram`)
    limit_phon: limit for the time above it, or None
    event_phon: short-term loudness level at which an event begins (`Events`)
    hold_s: seconds of the peak hold, or None

    Loudness is a level, as classes are even on that scale. Percentiles are of long-term loudness,
    not from a standard, and within 0.025 phon of the exact value; as columns they are updated every
    0.1 s. All readings are of the same frames: valid ones after the last reset, outside pauses. In
    percentiles, frames before 0.5 s count only if they are not lower than all later ones. Rolling
    windows continue through pauses and resets.

    Raises ValueError for a frame rate that is not positive and for a column that it does not have.
    """

    kept = (*PercentileMeter.kept, "max_stl", "events", "holds", "above", "_measured")

    def __init__(
        self,
        frame_rate: float = 1000.0,
        columns: Sequence[str] = (),
        limit_phon: float | None = None,
        event_phon: float = 20.0,
        hold_s: float | None = None,
    ) -> None:
        if not frame_rate > 0:
            raise ValueError(f"frame_rate is {frame_rate}: give frames per second, above 0")
        self.frame_rate = frame_rate
        self._limit_phon, self._event_phon, self._hold_s = limit_phon, event_phon, hold_s
        examples = "max_stl_phon", "max_ltl_phon", "ltl_n5_phon", "ltl_n5_10min_phon"
        super().__init__(columns, examples, ("ltl_n", "_phon"), 1 / frame_rate)

    def reset(self) -> None:
        super().reset()
        self._measured = 0
        self.max_stl = Maximum()
        self.events = Events(self._event_phon)
        self.holds: dict[str, Hold] = {}
        if self._hold_s is not None:
            self.holds = {name: Hold(self._hold_s) for name in ("hold_stl_phon", "hold_ltl_phon")}
        self.above: TimeAbove | None = None
        if self._limit_phon is not None:
            self.above = TimeAbove(self._limit_phon, 1 / self.frame_rate)

    def update(
        self,
        time_s: Values,
        stl_phon: NDArray[np.floating],
        ltl_phon: NDArray[np.floating],
        valid: NDArray[np.bool_] | None = None,
    ) -> Values:
        """Take frames (n,), and return the columns (column, n) after each.

        time_s: times of the frames
        stl_phon, ltl_phon: short- and long-term loudness level
        valid: which frames may count, by default all

        Columns are not finite before the first value.
        """
        known = ~np.isnan(ltl_phon) if valid is None else valid & ~np.isnan(ltl_phon)
        count = int(np.count_nonzero(known))
        stl, ltl = np.asarray(stl_phon, np.float64), np.asarray(ltl_phon, np.float64)
        heard = ltl = ltl if count == len(known) else np.where(known, ltl, np.nan)
        if self.paused or count < len(known):
            measured = known & (not self.paused)
            stl, ltl = (np.where(measured, phon, np.nan) for phon in (stl, ltl))
        due, rising = self._renewals.due(time_s), still_rising(time_s, RISE_S)
        found = self.percentiles.add(ltl, heard, due, rising)
        if not self.paused:
            self._measured += count
            self._excluded += len(known) - count
            self.events.add(time_s, stl, ltl)
            for hold, phon in zip(self.holds.values(), (stl, ltl), strict=False):
                hold.add(time_s, phon)
            if self.above is not None:
                self.above.add(ltl)
        found["max_stl_phon"] = self.max_stl.add(time_s, stl)
        found["max_ltl_phon"] = self.maximum.add(time_s, ltl)
        return self.in_order(found, len(time_s))

    def tail(  # type: ignore[override]
        self,
        time_s: Values,
        stl_phon: NDArray[np.floating],
        ltl_phon: NDArray[np.floating],
        valid: NDArray[np.bool_],
    ) -> None:
        """Take frames (n,) after the end of the sound, for maxima and its event."""
        if self.paused:
            return
        stl, ltl = (
            np.where(valid, np.asarray(phon, np.float64), np.nan) for phon in (stl_phon, ltl_phon)
        )
        self.max_stl.add(time_s, stl)
        self.maximum.add(time_s, ltl)
        self.events.add(time_s, stl, ltl)

    def reading(self) -> dict[str, float | None]:
        """All readings by name, in phon and seconds; None where there is none yet."""
        found = [*self.events.events, *([self.events.present] if self.events.present else [])]
        return {
            "max_stl_phon": self.max_stl.known,
            "t_max_stl_s": self.max_stl.time_s,
            "max_ltl_phon": self.maximum.known,
            "t_max_ltl_s": self.maximum.time_s,
            **{name: hold.value for name, hold in self.holds.items()},
            "event_max_ltl_phon": found[-1].maximum if found else None,
            **self.percentile_readings("ltl_n{}_phon"),
            **({} if self.above is None else {"above_limit_s": self.above.seconds}),
            "measured_s": self._measured / self.frame_rate,
            "excluded_s": self._excluded / self.frame_rate,
        }
