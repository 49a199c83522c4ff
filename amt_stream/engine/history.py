"""Times and marks of frames, and a history of the last minute."""

import contextlib
import math
import threading
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from amt_stream.core.saved_state import Resumable
from amt_stream.engine.thread_check import thread_checked
from amt_stream.meters.frames import (
    Chunk,
    Event,
    Fault,
    Frames,
    HasNote,
    HearsEnd,
    HearsEvents,
    HearsSnapshots,
    HearsSound,
    Snapshot,
    scalar_field,
)

__all__ = ["Chunk", "Event", "Fault", "FrameClock", "Frames", "HasNote", "HearsEnd", "HearsEvents"]
__all__ += ["HearsSnapshots", "HearsSound", "History", "Marks", "Snapshot"]


Level = Callable[[NDArray[np.int64]], NDArray[np.float32]]
"""Gives the level of each row (row, n) at the frames of these indices (n,)."""


LEFT_S = 0.5
"""Seconds of frames that may wait for a reader to store them."""


class FrameClock:
    """Time of a frame from its index n: (n / ratio - latency) / fs, exact in integers."""

    def __init__(self, ratio: Fraction, latency: Fraction, fs: int) -> None:
        self.ratio, self.latency, self.fs = Fraction(ratio), Fraction(latency), fs
        self._step = self.ratio.denominator * self.latency.denominator
        self._delay = self.latency.numerator * self.ratio.numerator
        self._unit = self.ratio.numerator * self.latency.denominator
        self.frame_rate = float(self.ratio * self.fs)

    def time_s(self, index: Any) -> Any:
        """Time of one frame, or of each of an array."""
        return (index * self._step - self._delay) / (self._unit * self.fs)

    def sample(self, index: Any) -> Any:
        """Input sample of one frame, or of each of an array."""
        return (index * self._step - self._delay) // self._unit

    def position(self, index: int) -> Fraction:
        """Input position that frame `index` stands for."""
        return index / self.ratio - self.latency

    def first_from(self, position: Fraction | int) -> int:
        """Index of the first frame that stands for `position` or later."""
        return int(-(-(position * self._unit + self._delay) // self._step))

    def first_after(self, position: Fraction | int) -> int:
        """Index of the first frame that stands for a position after `position`."""
        return int((position * self._unit + self._delay) // self._step) + 1

    def covering(self, start: int, stop: int) -> tuple[int, int]:
        """Range of the frames whose analysis includes any of the samples [start, stop)."""
        reach = 2 * max(self._delay, 0)
        return start * self._unit // self._step, -(-(stop * self._unit + reach) // self._step)


@dataclass(slots=True, eq=False)
class Run:
    """Frames [low, high) without a mark: a compact form of their arrays.

    calm_from: sample since which nothing was marked; minus infinity if nothing ever was
    start, forget: sample until which frames rise from silence, and how long they settle
    epoch: UTC of the first sample
    level: gives the level of each row at frames
    """

    clock: FrameClock
    low: int
    high: int
    calm_from: float
    start: int
    forget: int
    epoch: float
    level: Level
    _ends_s: tuple[float, float] | None = field(default=None, init=False)
    _calm_s: float | None = field(default=None, init=False)

    def __len__(self) -> int:
        return self.high - self.low

    @property
    def ends_s(self) -> tuple[float, float]:
        """Time of the first and the last frame."""
        if self._ends_s is None:
            self._ends_s = self.clock.time_s(self.low), self.clock.time_s(self.high - 1)
        return self._ends_s

    @property
    def calm_s(self) -> float:
        """`since_s` of the first frame, which is the smallest."""
        if self._calm_s is None:
            self._calm_s = float(self.clock.sample(self.low) - self.calm_from) / self.clock.fs
        return self._calm_s

    @property
    def settled(self) -> bool:
        sample: int = self.clock.sample(self.low)
        return sample >= self.start and sample - self.calm_from >= self.forget

    def make(self, name: str) -> Any:
        """The array of this name, as in `Frames` [any-thread]."""
        if name == "since_s" and math.isinf(self.calm_from):
            return np.full(len(self), math.inf)
        index = np.arange(self.low, self.high, dtype=np.int64)
        if name == "time_s":
            return self.clock.time_s(index)
        if name == "sample":
            return self.clock.sample(index)
        if name == "utc":
            return self.epoch + self.clock.time_s(index)
        if name == "fault":
            return np.zeros(len(index), np.uint8)
        if name == "level_db":
            return self.level(index)
        sample = self.clock.sample(index)
        since = sample - self.calm_from
        if name == "settling":
            return (since < self.forget) | (sample < self.start)
        return since / self.clock.fs

    def joined(self, after: "Run") -> "Run | None":
        """This run and the next as one; None if they are not contiguous and alike."""
        mine = (self.clock, self.high, self.calm_from, self.start, self.forget)
        if mine != (after.clock, after.low, after.calm_from, after.start, after.forget):
            return None
        # Not by `replace`, which takes ten times as long.
        return Run(
            self.clock,
            self.low,
            after.high,
            self.calm_from,
            self.start,
            self.forget,
            self.epoch,
            self.level,
        )


class Marked(NamedTuple):
    """For n frames: faults, whether they settle, and seconds since the last disturbance ended."""

    fault: NDArray[np.uint8]
    settling: NDArray[np.bool_]
    since_s: NDArray[np.float64]


class Marks(Resumable):
    """Which frames depend on marked samples, and how long ago these ended.

    Frame n depends on input before (n + 1) / ratio and stands for n / ratio - latency, the middle
    of its analysis, which thus reaches back to about n / ratio - 2 latency. (With a negative
    latency it stands for its own end and reaches back to n / ratio.) Samples [start, stop)
    therefore put their fault on every frame with (n + 1) / ratio > start and n / ratio - 2 latency
    < stop. From the first of these on, `since_s` counts from `stop`, and until `forget` samples
    after it they are settling (the memory of the model's slow stages). OVERLOAD and STALL alone
    mean late, not wrong, and CLIP that the sound may have been louder: no sample is known to be
    missing, so they cause no settling. Frames before `start` still rise from the initial silence.
    """

    kept = ("noted", "_calm_from")
    growing = ("noted",)

    def __init__(self, clock: FrameClock, start: int, forget: int) -> None:
        self.clock, self.start, self.forget = clock, start, forget
        self._marks: list[tuple[int, int, int]] = []
        # End of the last disturbance that all later frames depend on.
        self._calm_from: float = -math.inf

    @property
    def noted(self) -> NDArray[np.int64]:
        """Fault, start and stop (n, 3) of the marks for later frames."""
        return np.array(self._marks, np.int64).reshape(-1, 3)

    @noted.setter
    def noted(self, given: NDArray[np.int64]) -> None:
        self._marks = [(bits, start, stop) for bits, start, stop in given.tolist()]

    def add(self, fault: int, start: int, stop: int) -> None:
        """Mark input samples [start, stop); fault 0 only causes settling."""
        first, _ = self.clock.covering(start, stop)
        for i, (bits, old_start, old_stop) in enumerate(self._marks):
            if bits == fault and first <= self.clock.covering(old_start, old_stop)[1]:
                self._marks[i] = (fault, old_start, max(stop, old_stop))
                return
        self._marks.append((fault, start, stop))

    def add_all(self, fault: int, places: NDArray[np.int64]) -> None:
        """Mark the input samples `places`, ascending.

        Nearby places, whose marks `add` would join, are joined first, so that any block costs only
        a few marks.
        """
        if not len(places):
            return
        ends = np.flatnonzero(np.diff(places) > self._joined_within)
        starts = places[np.append(0, ends + 1)]
        for start, last in zip(starts.tolist(), places[np.append(ends, -1)].tolist(), strict=True):
            self.add(fault, start, last + 1)

    @property
    def _joined_within(self) -> int:
        """Largest distance of two samples whose marked frames are surely contiguous."""
        return math.floor(2 * max(self.clock.latency, Fraction(0)) + 1 / self.clock.ratio)

    def calm(self, low: int, high: int, epoch: float, level: Level) -> Run | None:
        """Frames [low, high) as a Run, or None if marks are pending."""
        if self._marks:
            return None
        return Run(self.clock, low, high, self._calm_from, self.start, self.forget, epoch, level)

    def rows(self, index: NDArray[np.int64]) -> Marked:
        """The marks of the frames `index`, which never go back."""
        fault = np.zeros(len(index), np.uint8)
        calm_from = np.full(len(index), self._calm_from)
        kept = []
        for bits, start, stop in self._marks:
            first, end = self.clock.covering(start, stop)
            fault[(index >= first) & (index < end)] |= np.uint8(bits)
            if not bits or bits & ~(Fault.OVERLOAD | Fault.STALL | Fault.CLIP):
                np.maximum(calm_from, stop, out=calm_from, where=index >= first)
            if end > index[-1]:
                kept.append((bits, start, stop))
        self._marks = kept
        self._calm_from = float(calm_from[-1])
        sample = self.clock.sample(index)
        since = sample - calm_from
        settling = (since < self.forget) | (sample < self.start)
        return Marked(fault, settling, since / self.clock.fs)


@thread_checked
class History:
    """The rows of the last `seconds`.

    `read` gives a record array with `time_s`, `sample`, `fault`, `settling` and every scalar output
    of the model (`rows.stl` or `rows["stl"]`). The writer never waits: it queues frames, and
    readers store their rows, or the writer itself occasionally.

    A history that continues from the one `before` it keeps the count, so that readers miss nothing,
    and the rows, if they have all its fields.
    """

    def __init__(
        self,
        fields: tuple[str, ...],
        frame_rate: float,
        seconds: float,
        before: "History | None" = None,
    ) -> None:
        self.latest: Frames | None = None
        self.marked_s = -math.inf
        """End of the last frames that were not calm: later ones have no fault [any-thread]."""
        self.fields, self.frame_rate = fields, frame_rate
        columns: list[tuple[str, type]] = [
            ("time_s", np.float64),
            ("sample", np.int64),
            ("fault", np.uint8),
            ("settling", np.bool_),
            *((name, np.float32) for name in fields),
        ]
        self._ring = np.zeros(max(1, math.ceil(seconds * frame_rate)), np.dtype(columns))
        self._first = self._count = self._written = 0 if before is None else before.count
        self._left: deque[Frames] = deque()
        self._most_left = math.ceil(LEFT_S * frame_rate)
        self._lock = threading.Lock()
        if before is not None and set(fields) <= set(before.fields):
            self._take_over(before)

    def _take_over(self, before: "History") -> None:
        rows = before.since(self._count - len(self._ring))
        self._first = self._count - len(rows)
        places = np.arange(self._first, self._count) % len(self._ring)
        for name in ("time_s", "sample", "fault", "settling", *self.fields):
            self._ring[name][places] = rows[name]
        self.latest, self.marked_s = before.latest, before.marked_s

    def write(self, frames: Frames) -> None:
        """Append rows [model-thread]."""
        self._left.append(frames)
        self._count += len(frames)
        if frames.later is None:
            self.marked_s = frames.end_s
        self.latest = frames
        # If the lock is taken, the reader stores them.
        if self._count - self._written >= self._most_left and self._lock.acquire(blocking=False):
            try:
                self._write_down()
            finally:
                self._lock.release()

    def _write_down(self) -> None:
        """Store the rows of all queued frames; the caller holds the lock."""
        left = []
        with contextlib.suppress(IndexError):
            while True:
                left.append(self._left.popleft())
        if not left:
            return
        count = sum(map(len, left))
        kept = min(count, len(self._ring))
        places = np.arange(self._written + count - kept, self._written + count) % len(self._ring)
        found = {name: np.concatenate(parts) for name, parts in _times(left).items()}
        for name in self.fields:
            found[name] = np.concatenate([scalar_field(frames.values, name) for frames in left])
        for name, column in found.items():
            self._ring[name][places] = column[count - kept :]
        self._written += count

    @property
    def count(self) -> int:
        """Number of rows written since the start [any-thread]."""
        return self._count

    def read(self, seconds: float | None = None) -> np.recarray:
        """Copy the rows of the last `seconds`, by default all [any-thread]."""
        rows = self.since(0)
        if seconds is None or not len(rows):
            return rows
        first = np.searchsorted(rows.time_s, rows.time_s[-1] - seconds, side="right")
        return rows[first:].view(np.recarray)

    def since(self, count: int) -> np.recarray:
        """Copy the available rows after the first `count` [any-thread]."""
        with self._lock:
            self._write_down()
            start = max(count, self._written - len(self._ring), self._first)
            rows = self._ring[np.arange(start, self._written) % len(self._ring)]
        return rows.view(np.recarray)


def _times(left: Iterable[Frames]) -> dict[str, list[np.ndarray]]:
    """Times and marks of frames; contiguous unmarked ones are computed together."""
    parts: list[Frames | Run] = []
    for frames in left:
        run, before = frames.later, parts[-1] if parts else None
        joined = None
        if isinstance(run, Run) and isinstance(before, Run):
            joined = before.joined(run)
        if joined is not None:
            parts[-1] = joined
        else:
            parts.append(run if isinstance(run, Run) else frames)
    return {
        name: [one.make(name) if isinstance(one, Run) else getattr(one, name) for one in parts]
        for name in ("time_s", "sample", "fault", "settling")
    }
