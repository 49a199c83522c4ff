"""Detection of sound events in rows."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from amt_stream.meters.accumulators.limit_state import RED, STATES
from amt_stream.meters.frames import Event
from amt_stream.meters.names import limit_in
from amt_stream.meters.rows.background import BackgroundLevel
from amt_stream.meters.rows.block import MICROPHONE, Rows, is_named, unix_s
from amt_stream.meters.rows.captions import sign_of
from amt_stream.meters.rows.limit_monitor import LimitMonitor
from amt_stream.meters.rows.readings import column_named
from amt_stream.meters.rows.words import reading_text
from amt_stream.meters.triggers import Trigger

SOUND_BEGIN, SOUND_END = "sound_begin", "sound_end"
"""The kinds of sound events."""

FAR = 1e9
"""The value for NaN, far below any threshold."""


@dataclass(frozen=True)
class Spotted:
    """The begin or the end of a sound event.

    sample, time_s, utc: its time, as in `Event`
    samples: duration, at an end
    worst: value of the column at the begin; at the end the highest, or the lowest for a lower
        threshold
    red: names of the limits that were red at the begin, for an event of limits
    clipped: whether `worst` may include clipped sound
    """

    trigger: Trigger
    is_begin: bool
    sample: int
    time_s: float
    utc: float
    worst: float
    samples: int = 0
    microphone: str = ""
    red: str = ""
    clipped: bool = False

    def event(self, fs: float) -> Event:
        """The `Event` for sinks."""
        if self.is_begin:
            text = f"{self.trigger.limit.name} begins: {self._reading('is')}"
            text += "" if self.red else f", {self.trigger.words}"
        else:
            text = f"{self.trigger.limit.name} has ended after {self.samples / fs:.2f} s: "
            text += self._reading("was")
            most = "at least" if self.trigger.limit.below else "at most"
            text += "" if self.red else f" {most}"
        kind = SOUND_BEGIN if self.is_begin else SOUND_END
        return Event(kind, self.sample, self.time_s, self.utc, self.samples, text, self.microphone)

    def _reading(self, verb: str) -> str:
        if self.red:
            return f"{self.red} {verb} red"
        name = self.trigger.limit.column
        sign = sign_of(column_named(name)) if self.clipped else ""
        return f"{name} {verb} {reading_text(name, self.worst, sign)}"


class Spotter:
    """Detects sound events in rows in order, separately for each microphone.

    A column counts whether or not it is calibrated; NaN is never an event. An event that lasts
    longer than the rows has no end.

    step_s: seconds between rows
    fs: sampling rate of the input in hertz
    """

    def __init__(self, triggers: Sequence[Trigger], step_s: float, fs: float) -> None:
        self._triggers, self._step_s, self._fs = tuple(triggers), step_s, fs
        self._watches: dict[tuple[str, str], _Watch] = {}

    def __call__(self, rows: Rows) -> list[Spotted]:
        """What these rows tell, in the order of time."""
        if not (self._triggers and len(rows)):
            return []
        whose = rows[MICROPHONE] if MICROPHONE in rows.columns else np.full(len(rows), "", object)
        found: list[Spotted] = []
        for microphone in dict.fromkeys(whose.tolist()):
            own = rows.where(whose == microphone)
            for trigger in self._triggers:
                key = microphone, trigger.limit.name
                if key not in self._watches:
                    self._watches[key] = _Watch(trigger, self._step_s, self._fs, microphone)
                found += self._watches[key](own)
        return sorted(found, key=lambda one: one.sample)


class _Watch:
    """The state of one trigger for one microphone."""

    def __init__(self, trigger: Trigger, step_s: float, fs: float, microphone: str) -> None:
        self._trigger, self._fs, self._microphone = trigger, fs, microphone
        self._monitor = LimitMonitor(trigger.limit, step_s)
        self._background = BackgroundLevel() if trigger.over_background else None
        self._began: Spotted | None = None
        self._worst, self._clipped = math.nan, False
        self._red_then = ""
        self._reported = False

    def __call__(self, rows: Rows) -> Iterator[Spotted]:
        limit, time_s = self._trigger.limit, rows["time_s"]
        values = self._values(rows)
        seen = values - (0.0 if self._background is None else self._background(time_s, values))
        seen = np.where(np.isfinite(seen), seen, -limit.sign * FAR)
        # Uncalibrated and clipped values count too.
        states = self._monitor.update(
            (*row, True, False, True) for row in zip(time_s.tolist(), seen.tolist(), strict=True)
        )
        for at, state in enumerate(states):
            if state != STATES[RED]:
                if self._reported:
                    yield self._spotted(rows, at, limit.hold_s, False)
                self._began, self._reported = None, False
                continue
            if self._began is None:
                self._worst, self._clipped = float(values[at]), False
                self._red_then = self._red(rows, at) if self._trigger.is_alarm else ""
                self._began = self._spotted(rows, at, 0.0, True)
            elif limit.sign * values[at] > limit.sign * self._worst:
                self._worst = float(values[at])
            self._clipped |= is_named(self._trigger.limit.column, rows["clipped_columns"][at])
            still = limit.sign * (seen[at] - limit.threshold) > -limit.hysteresis
            lasted_s = time_s[at] - self._began.time_s
            if still and not self._reported and lasted_s >= self._trigger.for_s - 1e-6:
                self._reported = True
                yield replace(self._began, worst=self._worst, clipped=self._clipped)

    def _values(self, rows: Rows) -> NDArray[np.float64]:
        if not self._trigger.is_alarm:
            return rows[self._trigger.limit.column]
        names = filter(limit_in, rows.columns)
        return np.array([rows[name] == STATES[RED] for name in names]).any(axis=0).astype(float)

    def _red(self, rows: Rows, at: int) -> str:
        """Names of the red limits of a row."""
        states = filter(limit_in, rows.columns)
        return " and ".join(limit_in(one) for one in states if rows[one][at] == STATES[RED])

    def _spotted(self, rows: Rows, at: int, ago_s: float, is_begin: bool) -> Spotted:
        began = 0 if self._began is None else self._began.sample
        sample = max(began, int(rows["sample"][at]) - round(ago_s * self._fs))
        return Spotted(
            self._trigger,
            is_begin,
            sample,
            sample / self._fs,
            float(unix_s(rows["utc"][at])) - ago_s,
            self._worst,
            0 if is_begin else sample - began,
            self._microphone,
            self._red_then,
            self._clipped,
        )
