"""A log of a measurement: rows, events and optionally sound, in a crash-safe folder."""

import contextlib
import json
import math
import socket
import threading
from collections.abc import Callable, Collection, Mapping
from copy import copy
from functools import partial
from pathlib import Path
from typing import Self

from amt_stream.core.formats import LOG_FORMATS, LogFormat
from amt_stream.core.json_types import JsonDict
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
from amt_stream.sessions.log_writer import LogWriter
from amt_stream.sessions.marks import forget_marks, marks_in
from amt_stream.sessions.parquet import ParquetParts
from amt_stream.sessions.reading import Session
from amt_stream.sessions.retention import PartRemover, Retention
from amt_stream.sessions.snapshot import Saved, forget_snapshot, read_snapshot, write_snapshot

CHANGES = ("calibrated", "uncalibrated", "swapped", LIMITS)
"""Kinds of events that change the header of the following rows."""


class _Written:
    """How far the folder has the rows and intervals of this run, which are not written again.

    saved: the snapshot that the run continues, or None
    """

    def __init__(self) -> None:
        self.saved: Saved | None = None
        self.rows_to, self._intervals_to_s = -1, -math.inf

    def go_on(self, saved: Saved, path: Path) -> None:
        """Continue from a snapshot."""
        session = Session(path)
        self.rows_to = max(saved.written_to, session.last_sample(saved.run))
        self._intervals_to_s = session.last_interval_s(saved.run)
        self.saved = saved

    @property
    def restored(self) -> JsonDict | None:
        """Where the run continues, for the description of the session."""
        saved = self.saved
        return None if saved is None else {"run": saved.run, "sample": saved.sample}

    def new_rows(self, rows: Rows) -> Rows:
        """Those of these rows that the folder does not have yet."""
        if len(rows) and rows["sample"][0] <= self.rows_to:
            return rows.where(rows["sample"] > self.rows_to)
        return rows

    def new_intervals(self, ended: Rows) -> Rows:
        """Those of these intervals that the folder does not have yet."""
        if len(ended) and ended["end_s"][0] <= self._intervals_to_s:
            return ended.where(ended["end_s"] > self._intervals_to_s)
        return ended


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
        self.engine_state: SavedState | None = None
        self.tell: Callable[[Event], None] = lambda event: self._writer.put(LoggedEvent(event))
        self._heard: Frames | None = None
        self._written = _Written()
        self._host = socket.gethostname()
        self.folder = Folder(path, private=self.keeps_sound)
        forget_marks(self.path)
        store: Store
        try:
            if restore:
                self._go_on()
            else:
                forget_snapshot(self.path)
            if format == "sqlite":
                store = Database(self.folder, self._header_now)
            elif format == "parquet":
                store = ParquetParts(self.folder, self._header_now)
            else:
                store = TextParts(self.folder, format, self._header_now)
            kept = {} if keep is None else {"keep_days": keep.days, "keep_size": keep.size}
            settings = {**table.settings, **(settings or {}), **kept}
            restored, repaired = self._written.restored, self.folder.repaired
            self.folder.describe(
                description(format, self._header_now(), settings, restored, repaired)
            )
        except BaseException:
            self.folder.close()
            raise
        self._remover = None if keep is None else PartRemover(self.folder, keep)
        self._happened = table.events_of_rows()
        self._writer = LogWriter(self.folder, store, self._between_writes, self._sum_up)

    @property
    def path(self) -> Path:
        return self.folder.path

    @property
    def is_closed(self) -> bool:
        """Whether it has written its last row, or has failed [any-thread]."""
        return self._writer.closed

    @property
    def dropped(self) -> int:
        """Rows and events that are lost because the disk fails [any-thread]."""
        return self._writer.dropped

    @property
    def note(self) -> str:
        """Its fault as one sentence, or "" [any-thread]."""
        disk, remover = self._writer.disk, self._remover
        return disk.note or (remover.note if remover else "") or disk.news(self.dropped)

    @property
    def needed(self) -> Collection[str]:
        """Models that limits, triggers of events and chosen columns need [any-thread]."""
        return self.table.rows.needed

    def __call__(self, frames: Frames) -> None:
        """Log the rows and intervals that these frames complete [sink-thread]."""
        self._heard = frames
        self._log(self.table.rows(frames))
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
            self.folder.run,
            snapshot.sample,
            _settings_of(self.table),
            snapshot.state,
            self.table.rows.state_dict(),
            self._written.rows_to,
        )
        self._writer.afterwards(partial(write_snapshot, self.path, saved))

    def go_on_with(self, rows: AnyRows) -> None:
        """Let other rows of this measurement begin where the log does [before start].

        If they have the same settings, such as those of a screen, their statistics continue too.
        """
        saved = self._written.saved
        if saved is None:
            return
        if saved.rows.get("rows") == rows.form:
            rows.load_state_dict(saved.rows)
        else:
            rows.begin(saved.sample / self.table.sound.fs)

    def event(self, event: Event) -> None:
        """Log an event [sink-thread]."""
        self.table.event(event)
        rows = self.table.rows
        # Rows that are late have the new columns already.
        last = rows.last_sample if event.kind == LIMITS and isinstance(rows, JoinedRows) else None
        header = self._header_now if event.kind in CHANGES else None
        self._writer.put(LoggedEvent(event, header, last))

    def ended(self, end_s: float | None) -> None:
        """Write the rest and close; called by an engine [sink-thread]."""
        if not self.is_closed:
            self._log(self.table.rows.rest(end_s))
            self._write_intervals(self.table.rows.reached_s if end_s is None else end_s)
        self.close()

    def close(self, timeout: float | None = None) -> bool:
        """Write what waits, write the summary, and release the folder; may be repeated.

        Returns False if the disk did not write it within `timeout` seconds.
        """
        return self._writer.close(timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    @property
    def _header_now(self) -> MakeHeader:
        """A function that makes headers with the present calibration and settings."""
        # Its rows are shared, as they know when the sound began.
        return partial(copy(self.table).header, host=self._host)

    def _go_on(self) -> None:
        """Continue from the last snapshot, if there is one."""
        saved = read_snapshot(self.path)
        if saved is None:
            return
        saved.refuse_other(_settings_of(self.table))
        try:
            self.table.rows.load_state_dict(saved.rows)
        except Unfitting as refusal:
            raise SessionError(f"{self.path} cannot be continued: {refusal}") from refusal
        self._written.go_on(saved, self.path)
        self.engine_state = saved.engine

    def _log(self, rows: Rows) -> None:
        """Queue rows that the folder does not have yet."""
        rows = self._written.new_rows(rows)
        if len(rows):
            for event in self._happened(rows):
                self._writer.put(LoggedEvent(event))
            self._writer.put(rows)

    def _write_intervals(self, end_s: float | None = None) -> None:
        """Queue ended intervals that the folder does not have yet."""
        if self.table.rows.intervals is None:
            return
        ended = self._written.new_intervals(self.table.rows.intervals_ended(end_s))
        if len(ended):
            self._writer.put_intervals(ended)

    def _between_writes(self) -> None:
        """Report marks of other processes, and now and then remove old parts."""
        if self._heard is None:
            return
        with contextlib.suppress(OSError):
            for text in marks_in(self.path):
                self.tell(self._heard.moment("mark", text))
        removed = self._remover.remove_in_turn() if self._remover else ""
        if removed:
            self.tell(self._heard.moment(REMOVED, removed))

    def _sum_up(self) -> None:
        summary = {"run": self.folder.run, "dropped": self.dropped, "summary": self.table.summary()}
        self.folder.add_whole(SUMMARY, json.dumps(summary, indent=1) + "\n")


def _settings_of(table: Table) -> JsonDict:
    """The settings that must agree to continue a run."""
    source = table.sound.description
    known = {k: v for k, v in source.get("sound", {}).items() if k not in LEARNED}
    same = {"source": source | {"sound": known}, **table.settings}
    # A continued run may be longer.
    same["rows"] = {key: value for key, value in same["rows"].items() if key != "to_s"}
    return same
