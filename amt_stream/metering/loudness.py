"""What a person reads off a loudness model that has run for a while."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from amt_stream.metering.extremes import Events, Hold, Maximum, TimeAbove
from amt_stream.metering.histogram import Histogram, RollingHistogram
from amt_stream.metering.pausable import Pausable

PERCENTS = (1, 5, 10, 50, 90, 95, 99)


class LoudnessMeter(Pausable):
    """Maxima, percentiles and time above a limit of loudness level in phon, since the last reset.

    frame_rate: frames per second of what is given to `update`
    limit_phon: of the time above it, and none without
    event_phon: short-term loudness level with which an event begins (`Events`)
    hold_s, window_s: of the peak hold and of the rolling percentiles

    Loudness is given as a level, because its classes are even on that scale; percentiles are those
    of long-term loudness, ours and of no standard. Pausing stops counting and touches nothing that
    runs. Frames that are not valid (a gap, what was no sound, a model that still settles) count for
    nothing but `excluded_s`.
    """

    def __init__(
        self,
        frame_rate: float = 1000.0,
        limit_phon: float | None = None,
        event_phon: float = 20.0,
        hold_s: float = 3.0,
        window_s: float = 3600.0,
    ) -> None:
        if not frame_rate > 0:
            raise ValueError(f"frame_rate is {frame_rate}: give frames per second, above 0")
        self.frame_rate = frame_rate
        self._settings: dict[str, Any] = {
            "limit_phon": limit_phon,
            "event_phon": event_phon,
            "hold_s": hold_s,
            "window_s": window_s,
        }
        self.reset()

    def reset(self) -> None:
        """Forget all readings; a pause goes on."""
        period_s, settings = 1 / self.frame_rate, self._settings
        self.max_stl, self.max_ltl = Maximum(), Maximum()
        self.hold_stl, self.hold_ltl = Hold(settings["hold_s"]), Hold(settings["hold_s"])
        self.events = Events(settings["event_phon"])
        self.histogram = Histogram()
        self.rolling = RollingHistogram(period_s, settings["window_s"])
        limit = settings["limit_phon"]
        self.above = None if limit is None else TimeAbove(limit, period_s)
        self._counted = self._excluded = 0

    def update(
        self,
        time_s: NDArray[np.float64],
        stl_phon: NDArray[np.floating],
        ltl_phon: NDArray[np.floating],
        valid: NDArray[np.bool_] | None = None,
    ) -> None:
        """Take frames (n,) into account: their time, short- and long-term loudness level."""
        if self.paused:
            return
        if valid is None:
            valid = np.ones(len(time_s), np.bool_)
        stl = np.where(valid, stl_phon, np.nan)
        ltl = np.where(valid, ltl_phon, np.nan)
        heard = int(np.count_nonzero(~np.isnan(ltl)))
        self._counted += heard
        self._excluded += len(time_s) - heard
        self.max_stl.add(time_s, stl)
        self.max_ltl.add(time_s, ltl)
        self.hold_stl.add(time_s, stl)
        self.hold_ltl.add(time_s, ltl)
        self.events.add(time_s, stl, ltl)
        self.histogram.add(ltl)
        self.rolling.add(ltl)
        if self.above is not None:
            self.above.add(ltl)

    def reading(self) -> dict[str, float | None]:
        """All readings by name, in phon and seconds; None where there is none yet."""
        rolling = self.rolling.histogram()
        found = [*self.events.events, *([self.events.present] if self.events.present else [])]
        return {
            "max_stl_phon": self.max_stl.value if self.max_stl.time_s is not None else None,
            "t_max_stl_s": self.max_stl.time_s,
            "max_ltl_phon": self.max_ltl.value if self.max_ltl.time_s is not None else None,
            "t_max_ltl_s": self.max_ltl.time_s,
            "hold_stl_phon": self.hold_stl.value,
            "hold_ltl_phon": self.hold_ltl.value,
            "event_max_ltl_phon": found[-1].maximum if found else None,
            **{f"n{p}_phon": self.histogram.exceeded(p) for p in PERCENTS},
            **{f"rolling_n{p}_phon": rolling.exceeded(p) for p in PERCENTS},
            "above_limit_s": None if self.above is None else self.above.seconds,
            "counted_s": self._counted / self.frame_rate,
            "excluded_s": self._excluded / self.frame_rate,
        }
