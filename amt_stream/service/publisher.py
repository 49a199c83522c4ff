"""The sink that makes messages of what an engine hands out."""

import threading
from collections.abc import Callable, Sequence

from amt_stream.frames import Event, Frames
from amt_stream.rows import LimitEvents, Rows
from amt_stream.service.message import Message, event_message, row_message
from amt_stream.table import Table

Post = Callable[[Sequence[Message]], None]


class Publisher:
    """A sink: posts a header, a message for each row and each event, and at the end a summary.

    A limit whose state changes is an event too.

    post: takes messages in their order, in the sink's thread; it may wait
    header: makes the header, once there is sound
    """

    def __init__(self, table: Table, post: Post, host: str) -> None:
        self.done = threading.Event()
        """Set when the part of the sound that the rows cover has passed."""
        self.finished = threading.Event()
        """Set when the last message was posted."""
        self._table, self._post, self._host = table, post, host
        self._heard = self._begun = False
        self._limits = LimitEvents(table.rows.limits)

    def __call__(self, frames: Frames) -> None:
        """[sink-thread]"""
        if self.done.is_set():
            return
        self._heard = True
        self._send(self._table.rows(frames))
        if self._table.rows.reached_s >= self._table.rows.to_s:
            self.done.set()

    def event(self, event: Event) -> None:
        """[sink-thread]"""
        self._table.rows.event(event)
        # What follows is read with another calibration, or of another model.
        anew = self._begun and event.kind in ("calibrated", "swapped")
        again = [self._header()] if anew else []
        self._post([event_message(event), *again])

    def ended(self, end_s: float | None) -> None:
        """[sink-thread]"""
        try:
            if end_s is not None:
                self._send(self._table.rows.rest(end_s))
            if self._heard:
                self._begin()
                self._post([Message("summary", self._table.summary())])
        finally:
            self.finished.set()

    def _send(self, rows: Rows) -> None:
        if len(rows):
            self._begin()
            changes = [event_message(event) for event in self._limits(rows)]
            self._post([*changes, *(row_message(row) for row in rows)])

    def _begin(self) -> None:
        if not self._begun:
            self._begun = True
            self._post([self._header()])

    def _header(self) -> Message:
        return Message("header", self._table.header(host=self._host))
