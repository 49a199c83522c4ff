"""A log of a measurement: rows, events and optionally sound, in a crash-safe folder."""

import contextlib
import json
import math
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Self

from amt_stream.core.files import why
from amt_stream.core.formats import LOG_FORMATS, LogFormat
from amt_stream.core.json_types import JsonDict
from amt_stream.core.safe_text import sentence
from amt_stream.core.saved_state import SavedState, Unfitting
from amt_stream.engine.thread_check import thread_checked
from amt_stream.meters.frames import LIMITS, Event, Frames, Snapshot
from amt_stream.meters.rows import AnyRows, JoinedRows, Rows
from amt_stream.meters.source_description import LEARNED
from amt_stream.meters.table import Table
from amt_stream.sessions.chain import REMOVED
from amt_stream.sessions.database import Database
from amt_stream.sessions.files import SessionError
from amt_stream.sessions.folder import SUMMARY, Folder, description
from amt_stream.sessions.log_parts import LoggedEvent, MakeHeader, Store, TextParts
from amt_stream.sessions.marks import forget_marks, marks_in
from amt_stream.sessions.parquet import ParquetParts
from amt_stream.sessions.reading import Session
from amt_stream.sessions.retention import PartRemover, Removed, Retention
from amt_stream.sessions.snapshot import Saved, forget_snapshot, read_snapshot, write_snapshot

CHANGES = ("calibrated", "uncalibrated", "swapped", LIMITS)
"""Kinds of events that change the header of the following rows."""

FLUSH_S = 1.0
"""Time between writes to the disk."""

RETRY_S = 2.0
SLOW_S = 5.0
TOLD_S = 10.0
WAITING_ROWS = 100_000
"""Largest number of rows and events that wait for the disk; then the oldest are dropped."""


@dataclass
class _Waiting:
    """What waits to be written, in order; `count` rows and events, and a few intervals."""

    rows: deque[Rows] = field(default_factory=deque)
    intervals: list[Rows] = field(default_factory=list)
    events: deque[LoggedEvent] = field(default_factory=deque)
    afterwards: Callable[[], None] | None = None
    count: int = 0

    def add(self, item: Rows | LoggedEvent) -> None:
        if isinstance(item, LoggedEvent):
            self.events.append(item)
            self.count += 1
        else:
            self.rows.append(item)
            self.count += len(item)

    def drop(self) -> int:
        """Drop the oldest rows, or the oldest event, and return how many."""
        if self.rows:
            gone = len(self.rows.popleft())
        else:
            self.events.popleft()
            gone = 1
        self.count -= gone
        return gone


@thread_checked
class SessionLog:
    """A sink that logs the rows and the events of a measurement.

        with SessionLog("night", table) as log, Engine(source, models, [log]) as engine:
            engine.wait()

    A separate thread writes to the disk within about 2 s. If the disk fails (it is full, or the
    folder is gone), `note` says so, which an engine reports as an event and in its health; the
    measurement continues, the newest rows wait, and `dropped` counts those that are lost. In the
    folder of an existing session, the log is another run.

    path: folder, new or of a session
    table: makes the rows; for this log only, as it counts. `done` is set at the end of the part of
        the sound that it covers. The files have its header: before the engine calibrates, swaps or
        announces other limits, call `table.calibrate`, `table.swap` or `table.change_limits`
    format: "sqlite" (a database, which other programs may read meanwhile), "csv" or "jsonl" (hourly
        text files), or "parquet" (hourly JSON lines, converted when they are closed)
    settings: further settings that are needed to repeat the measurement, as data for JSON
    restore: continue from the last snapshot in the folder, if any: the table continues, and
        `engine_state` is for `Engine(restore=)`. Rows after the snapshot that are in the folder
        stay and are not written again
    keep: how much of the folder is kept; parts are removed while the log is written, each is in the
        chain, and an event "removed" says so. Only for formats with files by the hour
    tell: called with marks of other processes (`marks.mark`), such as `Engine.tell_event`, which
        tells all sinks; by default marks are only in this log

    A snapshot of engine and table replaces the previous one about once a second and at the end,
    once all before it is on the disk. A run without `restore` removes the previous snapshot.

    Raises SessionError for a folder that is not a session, is in use, or cannot be written, and for
    a snapshot with other settings.
    """

    keeps_sound = False
    hears_tail = True

    def __init__(
        self,
        path: str | Path,
        table: Table,
        *,
        format: LogFormat = "sqlite",
        settings: Mapping[str, object] | None = None,
        restore: bool = False,
        keep: Retention | None = None,
    ) -> None:
        if format not in LOG_FORMATS:
            raise SessionError(f"the format is {format!r}: give one of {', '.join(LOG_FORMATS)}")
        if keep is not None and format == "sqlite":
            raise SessionError(
                f"a log in {format} has one file for all rows, of which no part can be removed: "
                "choose csv, jsonl or parquet"
            )
        self.table = table
        self.done = threading.Event()
        self.dropped = 0
        self.engine_state: SavedState | None = None
        self._heard: Frames | None = None
        self._saved: Saved | None = None
        self.tell: Callable[[Event], None] = lambda event: self._put(LoggedEvent(event))
        self._written_to, self._intervals_to_s = -1, -math.inf
        self._host = socket.gethostname()
        self.folder = Folder(path, private=self.keeps_sound)
        forget_marks(self.path)
        self._store: Store
        try:
            if restore:
                self._go_on()
            else:
                forget_snapshot(self.path)
            if format == "sqlite":
                self._store = Database(self.folder, self._header_now)
            elif format == "parquet":
                self._store = ParquetParts(self.folder, self._header_now)
            else:
                self._store = TextParts(self.folder, format, self._header_now)
            kept = {} if keep is None else {"keep_days": keep.days, "keep_size": keep.size}
            self.folder.describe(self._description(format, {**(settings or {}), **kept}))
        except BaseException:
            self.folder.close()
            raise
        self._keep_s = math.inf if keep is None else keep.every_s
        self._remover = PartRemover(self.folder, keep or Retention())
        self._remove_at = time.monotonic() + self._keep_s
        self._unremoved = ""
        self._happened = table.events_of_rows()
        self._waiting = _Waiting()
        self._afterwards: Callable[[], None] | None = None
        self._at_store = 0
        self._changed = threading.Condition()
        self._ending = self._closed = False
        self._trouble = self._news = ""
        self._failing_since: float | None = None
        self._news_until = self._writing_since = 0.0
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=f"log {path}", daemon=True)
        self._thread.start()

    @property
    def path(self) -> Path:
        return self.folder.path

    @property
    def is_closed(self) -> bool:
        """Whether it has written its last row, or has failed [any-thread]."""
        return self._closed

    @property
    def run(self) -> int:
        """Number of this run in its folder, counted from 1."""
        return self.folder.run

    @property
    def note(self) -> str:
        """Its fault as one sentence, or "" [any-thread]."""
        if self._trouble:
            return self._trouble
        since = self._writing_since
        if since and time.monotonic() - since > SLOW_S:
            return f"the log in {self.path} waits for its disk"
        if self._unremoved:
            return self._unremoved
        if self._news and (self.dropped or time.monotonic() < self._news_until):
            return self._news
        return ""

    @property
    def needed(self) -> Collection[str]:
        """Models that limits, triggers of events and chosen columns need [any-thread]."""
        return self.table.rows.needed

    def __call__(self, frames: Frames) -> None:
        """Log the rows and intervals that these frames complete [sink-thread]."""
        self._heard = frames
        self._keep(self.table.rows(frames))
        self._write_intervals()
        if self.table.rows.covered:
            self.done.set()

    def snapshot(self, snapshot: Snapshot) -> None:
        """Store a snapshot once all before it is on the disk [sink-thread].

        There is no snapshot past the part that rows cover: a run cannot continue from excluded
            sound.
        """
        if snapshot.sample > self.table.rows.to_s * self.table.sound.fs:
            return
        self._write_intervals()  # those that end in frames not yet in rows
        saved = Saved(
            self.run,
            snapshot.sample,
            self._settings,
            snapshot.state,
            self.table.rows.state_dict(),
            self._written_to,
        )
        self.afterwards(partial(write_snapshot, self.path, saved))

    def go_on_with(self, rows: AnyRows) -> None:
        """Let other rows of this measurement begin where the log does [before start].

        If they have the same settings, such as those of a screen, their statistics continue too.
        """
        if self._saved is None:
            return
        if self._saved.rows.get("rows") == rows.form:
            rows.load_state_dict(self._saved.rows)
        else:
            rows.begin(self._saved.sample / self.table.sound.fs)

    def event(self, event: Event) -> None:
        """Log an event [sink-thread]."""
        self.table.event(event)
        rows = self.table.rows
        # Rows that are late have the new columns already.
        last = rows.last_sample if event.kind == LIMITS and isinstance(rows, JoinedRows) else None
        header = self._header_now if event.kind in CHANGES else None
        self._put(LoggedEvent(event, header, last))

    def afterwards(self, action: Callable[[], None]) -> None:
        """Call `action` in the log's thread once all so far is on the disk.

        It replaces an action that still waits. After an OSError, `note` has it, and it is called
        again.
        """
        with self._changed:
            self._waiting.afterwards = action

    def ended(self, end_s: float | None) -> None:
        """Write the rest and close; called by an engine [sink-thread]."""
        if not self._closed:
            if end_s is not None:
                self._keep(self.table.rows.rest(end_s))
            self._write_intervals(self.table.rows.reached_s if end_s is None else end_s)
        self.close()

    def close(self, timeout: float | None = None) -> bool:
        """Write what waits, write the summary, and release the folder; may be repeated.

        Returns False if the disk did not write it within `timeout` seconds.
        """
        with self._changed:
            self._ending = True
            self._changed.notify_all()
        if self._thread is not threading.current_thread():
            self._thread.join(timeout)
        return not self._thread.is_alive()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    @property
    def _header_now(self) -> MakeHeader:
        """A function that makes headers with the present calibration and settings."""
        # Its rows are shared, as they know when the sound began.
        return partial(copy(self.table).header, host=self._host)

    def _description(self, format: str, settings: Mapping[str, object]) -> JsonDict:
        saved = self._saved
        restored = None if saved is None else {"run": saved.run, "sample": saved.sample}
        settings = {**self.table.settings, **settings}
        return description(format, self._header_now(), settings, restored, self.folder.repaired)

    @property
    def _settings(self) -> JsonDict:
        """The settings that must agree to continue a run."""
        source = self.table.sound.description
        known = {k: v for k, v in source.get("sound", {}).items() if k not in LEARNED}
        same = {"source": source | {"sound": known}, **self.table.settings}
        # A continued run may be longer.
        same["rows"] = {key: value for key, value in same["rows"].items() if key != "to_s"}
        return same

    def _go_on(self) -> None:
        """Continue from the last snapshot, if there is one."""
        saved = read_snapshot(self.path)
        if saved is None:
            return
        saved.refuse_other(self._settings)
        try:
            self.table.rows.load_state_dict(saved.rows)
        except Unfitting as refusal:
            raise SessionError(f"{self.path} cannot be continued: {refusal}") from refusal
        last = Session(self.path).last_sample(saved.run)
        self._written_to = max(saved.written_to, last)
        self._intervals_to_s = Session(self.path).last_interval_s(saved.run)
        self._saved = saved
        self.engine_state = saved.engine

    def _keep(self, rows: Rows) -> None:
        """Queue rows that the folder does not have yet."""
        if len(rows) and rows["sample"][0] <= self._written_to:
            rows = rows.where(rows["sample"] > self._written_to)
        if len(rows):
            for event in self._happened(rows):
                self._put(LoggedEvent(event))
            self._put(rows)

    def _write_intervals(self, end_s: float | None = None) -> None:
        """Queue ended intervals that the folder does not have yet."""
        if self.table.rows.intervals is None:
            return
        ended = self.table.rows.intervals_ended(end_s)
        if len(ended) and ended["end_s"][0] <= self._intervals_to_s:
            ended = ended.where(ended["end_s"] > self._intervals_to_s)
        if len(ended):
            with self._changed:
                self._waiting.intervals.append(ended)

    def _put(self, item: Rows | LoggedEvent) -> None:
        with self._changed:
            while self._waiting.count >= WAITING_ROWS and not self._trouble and not self._closed:
                self._changed.wait(FLUSH_S)
            if self._error is not None:
                raise RuntimeError(self.note)
            if self._closed:
                return
            self._waiting.add(item)
            while self._waiting.count > WAITING_ROWS:
                self.dropped += self._waiting.drop()

    def _run(self) -> None:
        """The log's thread: write what waits to the disk, repeatedly."""
        try:
            ending = False
            while not ending:
                with self._changed:
                    pause = RETRY_S if self._trouble else FLUSH_S
                    self._changed.wait_for(lambda: self._ending, pause)
                    ending = self._ending
                self._try(self._write)
                if not (ending or self._trouble):
                    with contextlib.suppress(OSError):
                        self._take_marks()
                    self._remove_old()
            self._try(self._sum_up)
            left = self._waiting.count + self._at_store
            if self._trouble and left:
                self.dropped += left
                self._trouble = f"{self._trouble}; rows and events lost: {left}"
        except BaseException as error:
            self._error = error
            self._trouble = f"the log in {self.path} has failed: {error}"
            raise
        finally:
            with self._changed:
                self._closed = True
                self._changed.notify_all()
            self.folder.close()

    def _take_marks(self) -> None:
        """Report the marks that other processes have put into the folder."""
        if self._heard is None:
            return
        for text in marks_in(self.path):
            self.tell(self._heard.moment("mark", text))

    def _remove_old(self) -> None:
        """Remove parts that are due, now and then, and report it."""
        if self._heard is None or time.monotonic() < self._remove_at:
            return
        try:
            removed = self._remover.remove()
        except (OSError, SessionError) as error:
            words = f"old files of the log in {self.path} cannot be removed"
            removed = Removed("", False, f"{words}: {sentence(why(error))}")
        self._unremoved = removed.doubt
        self._remove_at = time.monotonic() + (0.0 if removed.more else self._keep_s)
        if removed.text:
            self.tell(self._heard.moment(REMOVED, removed.text))

    def _try(self, act: Callable[[], None]) -> None:
        """Do something on the disk, after making deleted files again; errors become `note`."""
        self._writing_since = time.monotonic()
        try:
            if self._trouble and not (self.folder.there and self._there):
                self.folder.restore()
                self._reopen()
            act()
        except OSError as error:
            if self._failing_since is None:
                self._failing_since = time.monotonic()
            self._trouble = (
                f"the log in {self.path} cannot be written: {error.strerror or error}; the "
                "measurement continues"
            )
        else:
            if self._failing_since is not None:
                self._recovered(time.monotonic() - self._failing_since)
        finally:
            self._writing_since = 0.0

    def _recovered(self, after_s: float) -> None:
        self._failing_since = None
        lost = f"; rows and events lost: {self.dropped}" if self.dropped else ""
        self._news = f"the log in {self.path} can be written again after {after_s:.0f} s{lost}"
        self._news_until = time.monotonic() + TOLD_S
        self._trouble = ""

    @property
    def _there(self) -> bool:
        """Whether the files still exist under their names."""
        return self._store.there

    def _reopen(self) -> None:
        """Begin new parts if the old ones are gone."""
        self._store.reopen()

    def _write(self) -> None:
        self._store.flush()
        self._at_store = 0
        with self._changed:
            given, self._waiting = self._waiting, _Waiting()
            self._changed.notify_all()
        self._afterwards = given.afterwards or self._afterwards
        if given.count or given.intervals:
            self._at_store = given.count
            rows = _of_like_columns(given.rows)
            self._store.write(rows, list(given.events), _joined(given.intervals))
            self._at_store = 0
        self._write_sound()
        if self._afterwards is not None:
            self._afterwards()
            self._afterwards = None

    def _write_sound(self) -> None:
        """Do nothing: there is no sound."""

    def _sum_up(self) -> None:
        self._store.close()
        summary = {"run": self.run, "dropped": self.dropped, "summary": self.table.summary()}
        self.folder.add_whole(SUMMARY, json.dumps(summary, indent=1) + "\n")


def _of_like_columns(blocks: Iterable[Rows]) -> list[Rows]:
    """Blocks joined as far as they have the same columns; other limits have others."""
    return [
        Rows.concatenated([*alike], columns)
        for columns, alike in groupby(blocks, key=lambda block: block.columns)
    ]


def _joined(blocks: Sequence[Rows]) -> Rows | None:
    return Rows.concatenated(blocks, blocks[0].columns) if blocks else None
