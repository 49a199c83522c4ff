"""A sink that turns the output of an engine into messages."""

import threading
from collections.abc import Callable, Collection, Sequence

from amt_stream.engine.thread_check import thread_checked
from amt_stream.meters.frames import Event, Frames
from amt_stream.meters.rows import Readings, Rows, RowsOfEach
from amt_stream.meters.table import Table
from amt_stream.service.message import Message, event_message, row_message

Post = Callable[[Sequence[Message]], None]
Tap = Callable[[Frames, Readings], None]
"""Called with all frames and the readings that count them [sink-thread]."""


@thread_checked
class Publisher:
    """A sink that posts a header, a message for each row and event, and a summary at the end.

    Changes of a limit's state, and the begin and end of sound events, are events too.

    post: called with messages in order, in the sink's thread; it may block
    tap: called with all frames
    """

    hears_tail = True

    def __init__(self, table: Table, post: Post, host: str, tap: Tap | None = None) -> None:
        self.done = threading.Event()
        """Set at the end of the part of the sound that the rows cover."""
        self.finished = threading.Event()
        """Set when the last message has been posted."""
        self._table, self._post, self._host, self._tap = table, post, host, tap
        self._heard = self._begun = False
        self._happened = table.events_of_rows()

    @property
    def needed(self) -> Collection[str]:
        """Models that limits, triggers of events and chosen columns need [any-thread]."""
        return self._table.rows.needed

    def __call__(self, frames: Frames) -> None:
        """[sink-thread]"""
        if self.done.is_set():
            return
        self._heard = True
        rows = self._table.rows
        if self._tap is not None and not frames.after_end:
            of_one = rows.of[frames.microphone] if isinstance(rows, RowsOfEach) else rows
            self._tap(frames, of_one.readings[frames.model])
        self._send(rows(frames))
        if rows.covered:
            self.done.set()

    def event(self, event: Event) -> None:
        """[sink-thread]"""
        self._table.event(event)
        # Later rows have another calibration or another model.
        anew = self._begun and event.kind in ("calibrated", "uncalibrated", "swapped")
        again = [self._header()] if anew else []
        self._post([event_message(event), *again])

    def ended(self, end_s: float | None) -> None:
        """[sink-thread]"""
        try:
            self._send(self._table.rows.rest(end_s))
            if self._heard:
                self._begin()
                self._post([Message("summary", self._table.summary())])
        finally:
            self.finished.set()

    def _send(self, rows: Rows) -> None:
        if len(rows):
            self._begin()
            happened = [event_message(event) for event in self._happened(rows)]
            self._post([*happened, *(row_message(row) for row in rows)])

    def _begin(self) -> None:
        if not self._begun:
            self._begun = True
            self._post([self._header()])

    def _header(self) -> Message:
        return Message("header", self._table.header(host=self._host))
