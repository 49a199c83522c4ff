"""The thread that writes a log to its disk, which may be slow, full or gone."""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from pathlib import Path

from amt_stream.meters.rows import Rows
from amt_stream.sessions.folder import Folder
from amt_stream.sessions.log_parts import LoggedEvent, OpenFiles, Store

FLUSH_S = 1.0
"""Time between writes to the disk."""

RETRY_S = 2.0
SLOW_S = 5.0
TOLD_S = 10.0
WAITING_ROWS = 100_000
"""Largest number of rows and events that wait for the disk; then the oldest are dropped."""


@dataclass
class _Waiting:
    """What waits for the disk, in order; the latest action is for when all is written.

    count: rows and events that wait
    taken: rows and events that the store was given last and has not written
    dropped: rows and events that were dropped, as too many waited
    """

    rows: deque[Rows] = field(default_factory=deque)
    intervals: list[Rows] = field(default_factory=list)
    events: deque[LoggedEvent] = field(default_factory=deque)
    afterwards: Callable[[], None] | None = None
    count: int = 0
    taken: int = 0
    dropped: int = 0

    def add(self, item: Rows | LoggedEvent) -> None:
        if isinstance(item, LoggedEvent):
            self.events.append(item)
            self.count += 1
        else:
            self.rows.append(item)
            self.count += len(item)
        while self.count > WAITING_ROWS:
            self._drop()

    def _drop(self) -> None:
        """Drop the oldest rows, or the oldest event."""
        if self.rows:
            gone = len(self.rows.popleft())
        else:
            self.events.popleft()
            gone = 1
        self.count -= gone
        self.dropped += gone

    def take(self) -> tuple[deque[Rows], deque[LoggedEvent], list[Rows]]:
        """Rows, events and intervals for the store, which no longer wait here."""
        taken = self.rows, self.events, self.intervals
        self.rows, self.events, self.intervals = deque(), deque(), []
        self.taken, self.count = self.count, 0
        return taken


class Disk:
    """Whether a disk fails or is slow, as one sentence.

    trouble: its last fault, or "" once it can be written again
    failed: whether nothing more can be written, for another reason than the disk
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.trouble = ""
        self.failed = False
        self.writing_since = 0.0
        self._failing_since: float | None = None
        self._failed_for_s: float | None = None
        self._news_until = 0.0

    @property
    def note(self) -> str:
        """What is wrong at present, or ""."""
        since = self.writing_since
        if not self.trouble and since and time.monotonic() - since > SLOW_S:
            return f"the log in {self._path} waits for its disk"
        return self.trouble

    def news(self, dropped: int) -> str:
        """That it can be written again, for a while, or for good if something was dropped."""
        if self._failed_for_s is None or not (dropped or time.monotonic() < self._news_until):
            return ""
        lost = f"; rows and events lost: {dropped}" if dropped else ""
        after_s = self._failed_for_s
        return f"the log in {self._path} can be written again after {after_s:.0f} s{lost}"

    def attempt(self, act: Callable[[], None]) -> None:
        """Do something on the disk; an OSError becomes `trouble`."""
        self.writing_since = time.monotonic()
        try:
            act()
        except OSError as error:
            self._failing_since = self._failing_since or time.monotonic()
            self.trouble = (
                f"the log in {self._path} cannot be written: {error.strerror or error}; the "
                "measurement continues"
            )
        else:
            if self._failing_since is not None:
                self._failed_for_s = time.monotonic() - self._failing_since
                self._news_until = time.monotonic() + TOLD_S
                self._failing_since, self.trouble = None, ""
        finally:
            self.writing_since = 0.0

    def fail(self, error: BaseException) -> None:
        """Nothing more can be written."""
        self.failed = True
        self.trouble = f"the log in {self._path} has failed: {error}"


class LogWriter:
    """Writes what is put to the disk within about 2 s, in a separate thread.

    If the disk fails, the newest rows and events wait.

    folder: closed at the end
    between: called after each write
    finish: called at the end, to write the summary

    sound: what is written after the rows, if anything
    changed: guards what waits; notified when it is taken, and at the end
    closed: whether all is written, or the thread has failed
    """

    def __init__(
        self, folder: Folder, store: Store, between: Callable[[], None], finish: Callable[[], None]
    ) -> None:
        self._folder, self._store = folder, store
        self._between, self._finish = between, finish
        self.sound: OpenFiles | None = None
        self.disk = Disk(folder.path)
        self.changed = threading.Condition()
        self._waiting = _Waiting()
        self._afterwards: Callable[[], None] | None = None
        self._ending = self.closed = False
        self._thread = threading.Thread(target=self._run, name=f"log {folder.path}", daemon=True)
        self._thread.start()

    @property
    def dropped(self) -> int:
        """Rows and events that are lost because the disk fails."""
        return self._waiting.dropped

    @property
    def accepts(self) -> bool:
        """Whether what waits is written soon."""
        return not (self.disk.trouble or self.closed)

    def put(self, item: Rows | LoggedEvent) -> None:
        """Queue rows or an event; waits while too much waits for a disk that works."""
        with self.changed:
            while self._waiting.count >= WAITING_ROWS and self.accepts:
                self.changed.wait(FLUSH_S)
            if self.disk.failed:
                raise RuntimeError(self.disk.note)
            if not self.closed:
                self._waiting.add(item)

    def put_intervals(self, ended: Rows) -> None:
        with self.changed:
            self._waiting.intervals.append(ended)

    def afterwards(self, action: Callable[[], None]) -> None:
        """Call `action` once all so far is on the disk, in place of one that still waits."""
        with self.changed:
            self._waiting.afterwards = action

    def close(self, timeout: float | None) -> bool:
        """Write what waits and end; returns False if the disk did not write it in time."""
        with self.changed:
            self._ending = True
            self.changed.notify_all()
        if self._thread is not threading.current_thread():
            self._thread.join(timeout)
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            ending = False
            while not ending:
                with self.changed:
                    pause = RETRY_S if self.disk.trouble else FLUSH_S
                    self.changed.wait_for(lambda: self._ending, pause)
                    ending = self._ending
                self.disk.attempt(partial(self._repaired, self._write))
                if not (ending or self.disk.trouble):
                    self._between()
            self.disk.attempt(partial(self._repaired, self._close_stores))
            left = self._waiting.count + self._waiting.taken
            if self.disk.trouble and left:
                self._waiting.dropped += left
                self.disk.trouble += f"; rows and events lost: {left}"
        except BaseException as error:
            self.disk.fail(error)
            raise
        finally:
            with self.changed:
                self.closed = True
                self.changed.notify_all()
            self._folder.close()

    def _repaired(self, act: Callable[[], None]) -> None:
        """Do something on the disk, after making deleted files again."""
        stores: list[OpenFiles] = [self._store]
        if self.sound is not None:
            stores.insert(0, self.sound)
        if self.disk.trouble and not (self._folder.there and all(one.there for one in stores)):
            self._folder.restore()
            for one in stores:
                one.reopen()
        act()

    def _write(self) -> None:
        self._store.flush()
        with self.changed:
            self._afterwards = self._waiting.afterwards or self._afterwards
            self._waiting.afterwards = None
            rows, events, intervals = self._waiting.take()
            self.changed.notify_all()
        if rows or events or intervals:
            ended = Rows.concatenated(intervals, intervals[0].columns) if intervals else None
            self._store.write(_of_like_columns(rows), [*events], ended)
        self._waiting.taken = 0
        if self.sound is not None:
            self.sound.flush()
        if self._afterwards is not None:
            self._afterwards()
            self._afterwards = None

    def _close_stores(self) -> None:
        if self.sound is not None:
            self.sound.close()
        self._store.close()
        self._finish()


def _of_like_columns(blocks: Iterable[Rows]) -> list[Rows]:
    """Blocks joined as far as they have the same columns; other limits have others."""
    return [
        Rows.concatenated([*alike], columns)
        for columns, alike in groupby(blocks, key=lambda block: block.columns)
    ]
