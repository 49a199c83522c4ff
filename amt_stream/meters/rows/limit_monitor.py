"""Monitoring of a limit, row by row."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from amt_stream.core.json_types import JsonDict
from amt_stream.core.saved_state import Resumable
from amt_stream.meters.frames import SAME_TIME_S
from amt_stream.meters.limits import AMBER, COLORS, GREEN, RED, STATES, UNCALIBRATED, UNKNOWN, Limit

EXCEEDED, KEPT, KEPT_SO_FAR, NOT_KNOWN = "exceeded", "kept", "kept so far", "not known"
VERDICTS = (EXCEEDED, KEPT, KEPT_SO_FAR, "above so far", "below so far", NOT_KNOWN)
"""The results of a limit, as text."""


@dataclass
class Stood:
    """The result of a limit over all counted rows.

    state: state at the last row, one of STATES; "unknown" before the first row
    times: how often it turned red
    seconds: duration of each of STATES
    microphone: name of the microphone, if there are several
    worst, worst_s: the highest value (the lowest for a lower limit) of rows with a complete window,
        and its time; without such rows, or if only the end counts, the last value
    whole: whether the window of a rolling column was complete at any time; true for other columns
    heard_s, window_s: sound in the window at the last row, and its length
    projection: lowest possible level of an incomplete window, if silence follows
    """

    limit: Limit
    state: str
    times: int
    seconds: Mapping[str, float]
    worst: float | None
    worst_s: float | None
    whole: bool = True
    heard_s: float = 0.0
    window_s: float = 0.0
    projection: float | None = None
    microphone: str = ""

    @property
    def verdict(self) -> str:
        """One of VERDICTS; "above so far" while an incomplete window is not decisive."""
        if self.exceeded is None:
            return NOT_KNOWN
        if self.exceeded:
            return EXCEEDED
        if self.whole:
            return KEPT
        above = self.limit.is_beyond(self.worst)
        return f"{self.limit.side} so far" if above else KEPT_SO_FAR

    @property
    def exceeded(self) -> bool | None:
        """Whether it was red, or ended red if only the end counts; None if unknown."""
        if self.limit.at_end:
            return self.state == STATES[RED] if self.state in COLORS else None
        red_s, known_s = self.seconds[STATES[RED]], sum(self.seconds[name] for name in COLORS)
        return red_s > 0 if known_s else None

    def to_dict(self) -> JsonDict:
        """Data for summaries."""
        return {
            **self.limit.to_dict(),
            "state": self.state,
            "exceeded": self.exceeded,
            "verdict": self.verdict,
            "times": self.times,
            **{f"{name}_s": round(value, 3) for name, value in self.seconds.items()},
            "worst": self.worst,
            "worst_s": self.worst_s,
            "whole": self.whole,
            **({} if self.whole else self._of_window),
        }

    @property
    def _of_window(self) -> JsonDict:
        """Data of a window that was never complete."""
        data = {"heard_s": round(self.heard_s, 3), "window_s": self.window_s}
        return data | ({} if self.projection is None else {"projection": self.projection})


class LimitMonitor(Resumable):
    """Determines the state of a limit of one column, row by row.

    step_s: seconds between rows
    window_s: window of a rolling column; until it is complete, a value above the limit is amber,
        and red only if even silence for the rest of the window could not help. The window begins
        with the first value, and again after silence of its length
    adds_up: whether the column is an equivalent level, for which that can be decided

    Red is reported immediately. A state improves when the value was better than the threshold by
    the hysteresis for `hold_s` without interruption, to the worst state of that time. Rows without
    a value, or with clipped sound, whose true level is unknown, are "unknown" unless they are red;
    uncalibrated rows are "uncalibrated". Both are ignored otherwise.
    """

    kept: ClassVar[tuple[str, ...]] = ("_level", "_calm_s", "_calm_level", "_began_s", "_last")
    kept += ("_times", "_rows", "_worst", "_worst_s", "_heard_s", "_known_s", "_row_s", "_sure_at")
    kept += ("_was_whole", "_from_s", "_begins", "_paused", "_pauses", "_clipped")
    growing: ClassVar[tuple[str, ...]] = ("_pauses",)

    def __init__(
        self, limit: Limit, step_s: float, window_s: float = 0.0, adds_up: bool = False
    ) -> None:
        self.limit = limit
        self._step_s, self._window_s = step_s, window_s
        self._adds_up = adds_up and not limit.below
        self._top = limit.sign * limit.threshold
        self._warn = self._top if limit.amber is None else limit.sign * limit.amber
        self._began_s = self._known_s = self._row_s = math.nan
        self._heard_s = 0.0
        # Pauses: pairs of a time, and 1 for the begin of a pause or 0 for its end.
        self._paused, self._pauses = False, np.zeros((0, 2))
        self._level, self._calm_s, self._calm_level = GREEN, math.nan, GREEN
        self._clipped = False
        self.reset()

    def pause(self, paused: bool, time_s: float = -math.inf) -> None:
        """Pause or continue the counting of rows after `time_s`."""
        self._pauses = np.append(self._pauses, [[time_s, paused]], axis=0)

    def reset(self, time_s: float = -math.inf) -> None:
        """Restart the result up to `time_s`, and the state for the rows after it."""
        self._from_s, self._begins = time_s, True
        self._was_whole, self._sure_at = False, math.nan
        self._last, self._times = UNKNOWN, 0
        self._rows = [0] * len(STATES)
        self._worst = self._worst_s = math.nan

    def update(self, rows: Iterable[tuple[float, float, bool, bool]]) -> list[str]:
        """The state at each row as text.

        Of each its time in seconds, the value, NaN for none, and whether it is calibrated and
        whether the sound was clipped.
        """
        return [STATES[self._take(*row)] for row in rows]

    def update_end(self, time_s: float, value: float, calibrated: bool) -> None:
        """Update with the value at the end of the sound.

        If the last row is at the same time, this adds no row unless the state changes, and its
        clipping still applies.
        """
        again = time_s <= self._row_s + SAME_TIME_S
        self._take(time_s, value, calibrated, again and self._clipped, again)

    def _take(
        self, time_s: float, value: float, calibrated: bool, clipped: bool, again: bool = False
    ) -> int:
        """The state of a row as an index of STATES; `again` updates the last row."""
        while len(self._pauses) and self._pauses[0, 0] < time_s - SAME_TIME_S:
            self._paused, self._pauses = bool(self._pauses[0, 1]), self._pauses[1:]
        after = bool(time_s > self._from_s + SAME_TIME_S)
        counts = after and not self._paused
        if after and self._begins:
            self._level, self._calm_s, self._calm_level = GREEN, math.nan, GREEN
            self._begins = False
        if not (calibrated and math.isfinite(value)):
            state = UNKNOWN if calibrated else UNCALIBRATED
        else:
            self._hear(time_s)
            signed = self.limit.sign * value
            sure = self._sure(signed)
            self._turn(time_s, signed, sure, counts)
            state = UNKNOWN if clipped and self._level < RED else self._level
            if counts:
                self._compare(time_s, signed, sure)
        self._row_s, self._clipped = time_s, clipped
        self._rows[state] += counts and not (again and state == self._last)
        self._last = state if after else self._last
        return state

    def _hear(self, time_s: float) -> None:
        """Continue or restart the window at a row with a value."""
        if not time_s - self._known_s < max(self._window_s, self._step_s) - SAME_TIME_S:
            # The window includes the time since the row before, which has no value.
            before_s = time_s if math.isnan(self._row_s) else self._row_s
            self._began_s = max(before_s, time_s - self._step_s)
        self._known_s = time_s
        self._heard_s = time_s - self._began_s

    def _compare(self, time_s: float, signed: float, sure: float) -> None:
        """Update the worst value with a counted row."""
        first = self._whole and not self._was_whole
        self._was_whole = self._was_whole or self._whole
        self._sure_at = sure
        if self.limit.at_end or not self._was_whole or first:
            worse = True
        else:
            # For a restarted window, its lowest possible level.
            signed = sure
            worse = (self._whole or sure > self._top) and sure > self.limit.sign * self._worst
        if worse:
            self._worst, self._worst_s = self.limit.sign * signed, time_s

    def _turn(self, time_s: float, signed: float, sure: float, counts: bool) -> None:
        """Update the state with a value; higher is worse."""
        now = self._rank(signed, sure, 0.0)
        if now >= self._level:
            self._times += now == RED != self._level and counts
            self._level, self._calm_s = now, math.nan
            return
        still = self._rank(signed, sure, self.limit.hysteresis)
        if still >= self._level:
            self._calm_s = math.nan
            return
        if math.isnan(self._calm_s):
            self._calm_s, self._calm_level = time_s, GREEN
        self._calm_level = max(self._calm_level, still)
        # Two times that differ by less are the same.
        if time_s - self._calm_s >= self.limit.hold_s - 1e-6:
            self._level, self._calm_s = self._calm_level, math.nan

    def _rank(self, signed: float, sure: float, back: float) -> int:
        """The rank of a value, less `back` for hysteresis."""
        if sure > self._top - back:
            return RED
        return AMBER if signed > self._warn - back else GREEN

    @property
    def _whole(self) -> bool:
        return bool(self._heard_s >= self._window_s - SAME_TIME_S)

    def _sure(self, signed: float) -> float:
        """The lowest possible value of the column over its whole window."""
        if self._whole:
            return signed
        if not self._adds_up or self._heard_s <= 0:
            return -math.inf
        return signed + 10 * math.log10(self._heard_s / self._window_s)

    @property
    def stood(self) -> Stood:
        """The result so far."""
        there = not math.isnan(self._worst)
        projected = there and self._adds_up and not self._was_whole and self._sure_at > -math.inf
        return Stood(
            self.limit,
            STATES[self._last],
            self._times,
            {name: n * self._step_s for name, n in zip(STATES, self._rows, strict=True)},
            self._worst if there else None,
            self._worst_s if there else None,
            self._was_whole or not self._window_s,
            self._heard_s,
            self._window_s,
            self.limit.sign * self._sure_at if projected else None,
        )
