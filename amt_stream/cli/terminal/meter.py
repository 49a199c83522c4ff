"""What the terminal shows of an engine, and what its keys do."""

import math
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from amt_stream.cli.terminal.keys import WHEN_STOPPED
from amt_stream.cli.watch import SILENT
from amt_stream.core.errors import Refusal
from amt_stream.core.since_reset import SinceReset
from amt_stream.dsp.contract import takes_pascal
from amt_stream.engine.run_state import EngineEnded
from amt_stream.meters.frames import Frames
from amt_stream.meters.rows import Strongest, strongest
from amt_stream.meters.state_signs import AWAY
from amt_stream.sessions import SessionLog
from amt_stream.sessions.counted_time import counted_from, follow_reset
from amt_stream.sessions.events import keeper_in
from amt_stream.sessions.outputs import FollowedReadings
from amt_stream.views.view_state import ViewState

if TYPE_CHECKING:
    from amt_stream.engine.engine import Engine

LOST_S = 2.0
"""Seconds without sound from a stalled device after which its readings are no longer shown."""

CAN_UNDO = "readings were reset: U restores them within 10 s"


MAX_EDGES = "max_ltl_low_sone", "max_ltl_high_sone"


class Spectrum(NamedTuple):
    """A modulation spectrum: the rms of the cells (ear, band, modulation), at a time."""

    time_s: float
    rms: NDArray[np.float32]
    fc: NDArray[np.float64]
    mfc: NDArray[np.float64]
    model: str

    @property
    def strongest(self) -> Strongest | None:
        return strongest(self.rms, self.fc, self.mfc)


class _Highest(NamedTuple):
    """The highest edges of the band from a time on, in sone."""

    from_s: float
    low: float = 0.0
    high: float = 0.0

    def with_rows(self, rows: np.recarray) -> "_Highest":
        rows = rows[rows.time_s > self.from_s]
        low, high = (float(edge.max(initial=0.0)) for edge in (rows.ltl_low, rows.ltl_high))
        return _Highest(self.from_s, max(self.low, low), max(self.high, high))


class HighestBand:
    """The uncertainty band of the highest long-term loudness since the last reset, in sone."""

    def __init__(self) -> None:
        self._seen = 0
        self._highest = SinceReset(_Highest(0.0))
        self._is_known = False

    def take(self, engine: "Engine", paused: bool) -> None:
        """Update it with the new frames."""
        history = engine.history
        count, rows = history.count, history.since(self._seen)
        self._seen = count
        if paused or "ltl_low" not in history.fields:
            return
        self._is_known = True
        follow_reset(self._highest, _Highest(counted_from(engine.events)))
        self._highest.change(lambda highest: highest.with_rows(rows))

    @property
    def values(self) -> dict[str, float]:
        """Its columns; none without a band."""
        return dict(zip(MAX_EDGES, self._highest.now[1:], strict=True)) if self._is_known else {}


class TerminalMeter:
    """An engine that runs, its readings, and what keys do to it.

    readings: None for a model that gives cells, as a modulation spectrum does
    make_log: makes a log of the engine
    end_s: the end of the measurement in seconds of sound
    """

    def __init__(
        self,
        engine: "Engine",
        readings: FollowedReadings | None,
        make_log: Callable[[], SessionLog],
        end_s: float = math.inf,
    ) -> None:
        self.engine, self.readings, self.end_s = engine, readings, end_s
        self.keeper = keeper_in(engine.sinks)
        self.paused = self.stopped = False
        self.highest_band = HighestBand()
        self.message = ""
        """The result of the last key."""
        self._make_log = make_log
        self._marks = 0
        self._silent_at: float | None = None
        self.away_at_end = ""
        """Why the device gave no sound at the end, if it gave none."""

    @property
    def has_ended(self) -> bool:
        """Whether the engine has ended, other than by the user's stop."""
        engine = self.engine
        return engine.error is not None or (engine.wait(0.0) and not self.stopped)

    @property
    def has_reached_end(self) -> bool:
        latest = self.engine.history.latest
        return latest is not None and float(latest.time_s[-1]) >= self.end_s

    @property
    def log_now(self) -> SessionLog | None:
        return next((sink for sink in self.engine.sinks if isinstance(sink, SessionLog)), None)

    @property
    def away(self) -> str:
        """Why the device gives no sound, if it gives none."""
        return "silent" if self.engine.device_state == "silent" else "lost"

    @property
    def lost_s(self) -> float:
        """Seconds since which the device gives no sound; 0 while it does, or stalls for short."""
        state, now = self.engine.device_state, time.monotonic()
        if self.stopped or state not in SILENT:
            self._silent_at = None
            return 0.0
        self._silent_at = self._silent_at or now
        lost_s = now - self._silent_at
        return lost_s if state in AWAY or lost_s >= LOST_S else 0.0

    @property
    def states(self) -> tuple[str, ...]:
        """Why the readings stand still."""
        states = {"stopped": self.stopped, "paused": self.paused and not self.stopped}
        states |= {self.away_at_end: bool(self.away_at_end)}
        return tuple(word for word, so in states.items() if so)

    def view(self) -> ViewState | None:
        """The newest readings; None before the first frame."""
        self.highest_band.take(self.engine, self.paused)
        return ViewState.at(self.engine, self.readings)

    @property
    def newest(self) -> ViewState | None:
        """The newest frames without readings, which is cheap; None before the first frame."""
        return ViewState.at(self.engine, None)

    def spectrum(self) -> Spectrum | None:
        """The newest modulation spectrum before the end; None before the first frame."""
        name, model = next(iter(self.engine.models.items()))
        latest = self.engine.history.latest
        if latest is None or not hasattr(latest.values, "rms"):
            return None
        found = [latest]
        if latest.end_s > self.end_s:
            found = self.engine.recent(name, self.end_s - 1.0)
        for frames in reversed(found):
            count = int(np.searchsorted(frames.time_s, self.end_s, side="right"))
            if count:
                rms, time_s = frames.values.rms[:, count - 1], float(frames.time_s[count - 1])
                return Spectrum(time_s, rms, np.asarray(model.fc), np.asarray(model.mfc), name)
        return None

    def act(self, name: str) -> None:
        """Do what a key does; `name` is that of a method."""
        if self.stopped and name not in WHEN_STOPPED:
            return
        try:
            getattr(self, name)()
        except EngineEnded as error:
            self.message = str(error)

    def pause(self) -> None:
        (self.engine.unpause if self.paused else self.engine.pause)()
        self.paused = not self.paused

    def stop(self) -> None:
        self.stopped = True
        self.engine.stop()
        if self.readings is not None:
            self.readings.sum_up()

    def reset_readings(self) -> None:
        self.engine.reset_readings()
        self.message = CAN_UNDO

    def undo_reset(self) -> None:
        try:
            self.engine.undo_reset()
        except ValueError as error:
            self.message = str(error)
        else:
            self.message = "the reset of readings was undone"

    def reset_filters(self) -> None:
        self.engine.reset_filters()

    def next_mark(self) -> str:
        """The note of a mark without one."""
        reported = sum(event.kind == "mark" for event in self.engine.events)
        return f"mark {max(reported, self._marks) + 1}"

    def mark(self, text: str, at: Frames | None) -> None:
        """Mark the moment of these frames with a note."""
        try:
            if at is None:
                self.engine.mark(text)
            else:
                self.engine.tell_event(at.moment("mark", text))
        except EngineEnded as error:
            self.message = str(error)
            return
        self._marks += 1  # the event is reported a moment later
        self.message = f"marked: {text}"

    def log(self) -> None:
        log = self.log_now
        if log is not None:
            self.engine.detach(log)
            self.message = f"no longer logged in {log.path}"
            return
        try:
            log = self._make_log()
        except (Refusal, OSError) as error:
            self.message = str(error)
        else:
            self.engine.attach(log, log.table.rows.begin)
            self.message = f"logged in {log.path}"

    def replay(self) -> None:
        """Write the last sound to a file, in a thread as the disk may be slow."""
        keeper = self.keeper
        if keeper is None:
            self.message = "no sound is held in memory: start with --event-folder"
            return

        def write() -> None:
            try:
                self.message = f"written: {keeper.replay().name}"
            except Refusal as refusal:
                self.message = str(refusal)

        threading.Thread(target=write, name="replay", daemon=True).start()


def is_uncalibrated(engine: "Engine") -> bool:
    """Whether a model needs a calibration that the input lacks."""
    pascal = any(map(takes_pascal, engine.models.values()))
    return pascal and not all(one.calibrated for one in engine.calibration)
