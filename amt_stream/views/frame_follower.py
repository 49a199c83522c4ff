"""Reads the new frames of a model, each once."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from amt_stream.meters.frames import Event, Frames
from amt_stream.sessions.counted_time import counted_from, pauses

if TYPE_CHECKING:
    from amt_stream.engine import Engine
    from amt_stream.sessions.outputs import FollowedReadings


class FrameFollower:
    """Gives the new frames of a model, and which of them count [main-thread].

    Frames count as in statistics: not after a fault until they have settled, not in a pause, not
    before the last reset. An engine keeps frames for 4 s: call it more often.
    """

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Start again, with the frames that the engine still has."""
        self._engine: Engine | None = None
        self._heard_s = -math.inf
        self._last_event: Event | None = None
        self._pauses: list[tuple[float, float]] = []
        self.from_s = 0.0
        """Start of the counted time."""

    def new(self, engine: "Engine", model: str, row: str = "") -> list[Frames]:
        """The frames since the last call, the oldest first."""
        if engine is not self._engine:
            self._engine, self._heard_s = engine, -math.inf
        found = engine.recent(model, self._heard_s, row)
        if found:
            self._heard_s = found[-1].end_s
        return found

    def counts(
        self, new: Sequence[Frames], readings: "FollowedReadings | None"
    ) -> NDArray[np.bool_]:
        """Which of their frames (n,) count."""
        engine = self._engine
        assert engine is not None, "call new first"
        self._follow_events(engine.events if readings is None else readings.events)
        of_model = None if readings is None else readings.rows.readings.get(new[0].model)
        found = []
        for frames in new:
            every = np.ones(len(frames), np.bool_) if of_model is None else of_model.counted(frames)
            found.append(self._of_measurement(frames, every))
        return np.concatenate(found)

    def _follow_events(self, events: tuple[Event, ...]) -> None:
        if events and events[-1] is not self._last_event:
            self._last_event = events[-1]
            self.from_s, self._pauses = counted_from(events), pauses(events)

    def _of_measurement(self, frames: Frames, counts: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Leave out frames before the last reset, and those in a pause."""
        if frames.begin_s <= self.from_s:
            counts = counts & (frames.time_s > self.from_s)
        for start_s, end_s in self._pauses:
            if start_s < frames.end_s and frames.begin_s <= end_s:
                counts = counts & ~((frames.time_s > start_s) & (frames.time_s <= end_s))
        return counts
