"""The sink that holds the latest sound and writes files of events."""

import re
import socket
import threading
from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as TooLate
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from amt_stream.core.files import why
from amt_stream.core.json_types import JsonDict
from amt_stream.engine.thread_check import thread_checked
from amt_stream.meters.frames import Chunk, Event, Frames
from amt_stream.meters.rows import Rows
from amt_stream.meters.rows.spotted import Spotted, Spotter
from amt_stream.meters.table import Table
from amt_stream.meters.triggers import AFTER_S, BEFORE_S, KEPT_S, LONGEST_S
from amt_stream.sessions import SessionLog
from amt_stream.sessions.events.memory import SampleSpan, SoundMemory
from amt_stream.sessions.events.recording import WriterThread, write_recording
from amt_stream.sessions.files import SessionError, as_session_error
from amt_stream.sessions.sound import refuse_sound

LAG_S = 5.0
"""Largest delay of rows after their sound in seconds; memory holds this much more."""

GAP_S = 1.0
"""A longer gap in seconds ends a file, so that no file is mostly silence."""

PATIENCE_S = 10.0
TOLD = 100

REPLAY = "replay"
SOUND_KEPT = "sound_kept"


def keeper_in(sinks: Iterable[object]) -> "SoundKeeper | None":
    """The `SoundKeeper` among these sinks, if any."""
    return next((sink for sink in sinks if isinstance(sink, SoundKeeper)), None)


def tables_of_files(sinks: Iterable[object]) -> list[Table]:
    """Tables of logs and keepers among these sinks, whose headers are in files."""
    return [sink.table for sink in sinks if isinstance(sink, SessionLog | SoundKeeper)]


@dataclass
class _OpenEvent:
    """A sound event that is not in files yet, from sample `start` on; `end` once known."""

    began: Spotted
    start: int
    part: int = 1
    end: Spotted | None = None


@thread_checked
class SoundKeeper:
    """A sink that holds the last seconds of sound in memory, and writes files of events.

        keeper = SoundKeeper("sounds", table, fs=48000, channels=2)
        with Engine(source, models, [keeper]) as engine:
            path = keeper.replay(10)

    A file is 24-bit FLAC with all channels of the source, uncalibrated. Its comment is JSON: the
    calibration of each channel, the header of the rows, the rows of that time, gaps (silence in the
    file) and the event. If a disk fails, the sound is lost; `note` says so, and later an event; the
    measurement continues.

    folder: folder of the files, made with the first of them
    table: makes the rows; for this keeper only, as it counts. Events are those of its preset
    fs, channels: of the source
    keep_s: seconds of sound in memory, and the longest file; a longer event is in several files
    before_s, after_s: seconds of sound before and after an event in its file
    longest_s: longest stored part of one event in seconds
    tell: called with an event for each file

    Raises SessionError for an unusable folder, and for what FLAC cannot store.
    """

    hears_tail = True

    def __init__(
        self,
        folder: str | Path,
        table: Table,
        *,
        fs: int,
        channels: int,
        keep_s: float = KEPT_S,
        before_s: float = BEFORE_S,
        after_s: float = AFTER_S,
        longest_s: float = LONGEST_S,
        tell: Callable[[Event], None] = lambda event: None,
    ) -> None:
        refuse_sound("flac", fs, channels)
        if before_s > keep_s:
            raise SessionError(
                f"files begin {before_s:g} s before an event, and {keep_s:g} s of sound are in "
                "memory: hold more"
            )
        self.folder, self.table, self.keep_s = Path(folder), table, keep_s
        with as_session_error(self.folder, "written"):
            self.folder.mkdir(parents=True, exist_ok=True)
        self.tell = tell
        self.files = 0
        """Number of written files [any-thread]."""
        self.last_events: deque[Event] = deque(maxlen=TOLD)
        """The last events of files, which an ended engine no longer reports."""
        self._fs = fs
        self._before, self._after, self._longest, self._most = (
            round(seconds * fs) for seconds in (before_s, after_s, longest_s, keep_s)
        )
        # When an event is detected, the sound before it must still be in memory.
        lags = [LAG_S + trigger.for_s for trigger in table.triggers]
        self._memory = SoundMemory(fs, channels, keep_s + max(lags, default=0.0))
        self._rows: deque[Rows] = deque()
        self._spot = Spotter(table.triggers, table.rows.step_ms / 1000, fs)
        self._running: list[_OpenEvent] = []
        self._trouble = ""
        self._host = socket.gethostname()
        # Guards rows and their state, as any thread may call `replay`.
        self._lock = threading.Lock()
        self._writer = WriterThread(f"sounds {folder}")

    @property
    def words(self) -> str:
        """Text for meters about the sound in memory [any-thread]."""
        return f"the last {self.keep_s:g} s of sound are in memory"

    @property
    def needed(self) -> Collection[str]:
        """Models that limits, triggers of events and chosen columns need [any-thread]."""
        return self.table.rows.needed

    @property
    def note(self) -> str:
        """Its fault as one sentence, or "" [any-thread]."""
        return self._trouble

    def __call__(self, frames: Frames) -> None:
        """[sink-thread]"""
        with self._lock:
            self._take(self.table.rows(frames))

    def sound(self, chunk: Chunk) -> None:
        """[sink-thread]"""
        with self._lock:
            if chunk.sample - self._memory.end > GAP_S * self._fs:
                self._break(chunk.sample)
            self._memory.add(chunk)

    def event(self, event: Event) -> None:
        """[sink-thread]"""
        with self._lock:
            self.table.event(event)

    def ended(self, end_s: float | None) -> None:
        """[sink-thread]"""
        with self._lock:
            self._take(self.table.rows.rest(end_s))
            for running in self._running:
                self._cut(running, self._stop(running))
            self._running = []

    def close(self, timeout: float | None = None) -> bool:
        """Write what waits; returns False if the disk did not write it within `timeout` seconds."""
        return self._writer.close(timeout)

    def replay(self, seconds: float | None = None) -> Path:
        """Write a file of the last seconds, or of all sound in memory [any-thread].

        Raises SessionError if there is no sound yet, or it cannot be written.
        """
        with self._lock:
            stretch = self._last(self.keep_s if seconds is None else seconds)
            written = self._write(REPLAY, stretch, {"event": None})
        try:
            return written.result(PATIENCE_S)
        except TooLate:
            raise SessionError(
                f"the disk of {self.folder} did not write the sound within {PATIENCE_S:g} s; it "
                "is written as soon as possible"
            ) from None
        except OSError as error:
            raise SessionError(f"no file in {self.folder}: {why(error)}") from error

    def write_last(self, folder: Path, seconds: float) -> Path:
        """Write the last seconds of the measured channels elsewhere: at most two [any-thread].

        The file has their calibrations. Raises SessionError if there is no sound yet, and OSError.
        """
        with self._lock:
            stretch = self._last(seconds)
            sound = self.table.sound
            ears = sound.hearing.ears_of("")
            each = sound.calibration_of_columns
            measured = [each[row] for row in ears if row < len(each)]
        columns = [one["channel"] - 1 for one in measured]
        picked = [replace(one, samples=one.samples[:, columns]) for one in stretch.pieces]
        stretch = replace(stretch, pieces=tuple(picked), channels=len(columns))
        about = [{**one, "channel": k + 1} for k, one in enumerate(measured)]
        return write_recording(folder, "last", stretch, {"calibration": about}, None)

    def _last(self, seconds: float) -> SampleSpan:
        end = self._memory.end
        stretch = self._memory.between(end - min(self._most, round(seconds * self._fs)), end)
        if stretch is None:
            raise SessionError("no sound in memory yet: try again later")
        return stretch

    def _take(self, rows: Rows) -> None:
        if len(rows):
            self._rows.append(rows)
            while self._rows[0]["sample"][-1] < self._memory.first:
                self._rows.popleft()
        for spotted in self._spot(rows):
            if spotted.is_begin:
                self._begin(spotted)
            else:
                for running in self._running:
                    if (running.began.trigger, running.began.microphone) == (
                        spotted.trigger,
                        spotted.microphone,
                    ):
                        running.end = running.end or spotted
        reached_s = self.table.rows.reached_s
        if self._running and np.isfinite(reached_s):
            self._write_due(min(round(reached_s * self._fs), self._memory.end))

    def _begin(self, spotted: Spotted) -> None:
        start = max(spotted.sample - self._before, self._memory.first)
        self._running.append(_OpenEvent(spotted, start))

    def _stop(self, running: _OpenEvent) -> int:
        """The last sample of an event in files, as far as it is known."""
        stop = running.began.sample + self._longest
        return stop if running.end is None else min(stop, running.end.sample + self._after)

    def _write_due(self, reached: int) -> None:
        for running in list(self._running):
            stop = self._stop(running)
            while min(stop, reached) - running.start >= self._most:
                self._cut(running, running.start + self._most)
            if reached >= stop:
                self._cut(running, stop)
            if reached >= stop and running.end is not None:
                self._running.remove(running)

    def _break(self, sample: int) -> None:
        """Sound is missing until `sample`: write events up to the gap."""
        for running in self._running:
            self._cut(running, min(self._memory.end, self._stop(running)))
            running.start = sample

    def _cut(self, running: _OpenEvent, stop: int) -> None:
        """Write the part that is not in a file yet, up to sample `stop`."""
        stretch = self._memory.between(running.start, stop) if running.start < stop else None
        running.start = max(running.start, stop)
        if stretch is None:
            return
        began, end = running.began, running.end
        event: dict[str, object] = {**began.trigger.to_dict(), "part": running.part}
        event |= {"microphone": began.microphone} if began.microphone else {}
        event |= {"begin_sample": began.sample, "end_sample": None if end is None else end.sample}
        event |= {"red": began.red} if began.red else {"value": None if end is None else end.worst}
        running.part += 1
        self._write(began.trigger.limit.name, stretch, {"event": event})

    def _write(self, name: str, stretch: SampleSpan, about: JsonDict) -> "Future[Path]":
        rows = [one for one in self._rows if one["sample"][-1] >= stretch.start]
        trace = _joined(rows) if rows else None
        if trace is not None:
            there = (trace["sample"] >= stretch.start) & (trace["sample"] < stretch.stop)
            trace = trace.where(there)
        about = {**about, "fs": self._fs, "header": self.table.header(host=self._host)}
        about |= self.table.sound.notes_of_columns
        write = partial(write_recording, self.folder, _fit(name), stretch, about, trace)
        written = self._writer.put(write)
        written.add_done_callback(partial(self._written, stretch))
        return written

    def _written(self, stretch: SampleSpan, written: "Future[Path]") -> None:
        """Report a written file or its failure [writer-thread, sink-thread]."""
        error = written.exception()
        if error is not None:
            self._trouble = (
                f"{len(stretch) / self._fs:.1f} s of sound could not be written to {self.folder}: "
                f"{why(error) if isinstance(error, Exception) else error}; the measurement "
                "continues"
            )
            return
        self._trouble = ""
        self.files += 1
        at_s = stretch.start / self._fs
        text = f"the sound from {at_s:.2f} s on, {len(stretch) / self._fs:.2f} s, is in "
        text += str(written.result())
        event = Event(SOUND_KEPT, stretch.start, at_s, stretch.utc, len(stretch), text)
        self.last_events.append(event)
        self.tell(event)


def _joined(rows: Sequence[Rows]) -> Rows:
    """Rows with the columns that all have: others come and go with limits."""
    common = set.intersection(*(set(one.columns) for one in rows))
    return Rows.concatenated(rows, [name for name in rows[-1].columns if name in common])


def _fit(name: str) -> str:
    """A name with only characters that are allowed in file names on all systems."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)
