"""Writing rows during a measurement."""

import threading
from collections.abc import Callable, Collection, Mapping
from typing import Protocol, TextIO

from amt_stream.meters.frames import Event, Frames
from amt_stream.meters.rows import AnyRows, Rows


class LiveWriter(Protocol):
    """The interface of writers: a header, rows, and a summary."""

    def __init__(self, stream: TextIO, header: Mapping[str, object]) -> None: ...

    def write(self, rows: Rows) -> None: ...

    def finish(self, summary: Mapping[str, object]) -> None: ...


class LiveRows:
    """A sink that writes and flushes the rows of frames, or their intervals.

    `begin` makes the writer, before the first output or at the end. `done` is set at the end of the
    part of the sound that the rows cover, or when the stream fails, with the reason in `error`.
    While `writing` is true, the stream may hang.
    """

    hears_tail = True

    def __init__(self, stream: TextIO, begin: Callable[[], LiveWriter], table: AnyRows) -> None:
        self.done = threading.Event()
        self.error: OSError | None = None
        self.writing = False
        self._stream, self._begin, self._table = stream, begin, table
        self._writer: LiveWriter | None = None

    @property
    def needed(self) -> Collection[str]:
        """Models that limits, intervals and chosen columns need."""
        return self._table.needed

    def __call__(self, frames: Frames) -> None:
        if self.done.is_set():
            return
        rows = self._table(frames)
        if self._table.intervals is not None:
            rows = self._table.intervals_ended()
        if len(rows):
            self._guarded(lambda writer: writer.write(rows))
        if self._table.covered:
            self.done.set()

    def event(self, event: Event) -> None:
        """Handle a gap."""
        self._table.event(event)

    def finish(self, end_s: float, summary: Callable[[], Mapping[str, object]]) -> None:
        """Write the remaining rows until `end_s`, and the summary.

        Sound too short for a row still gets a header and a summary; without any sound nothing is
        written.
        """
        if self.error is not None or end_s <= 0:
            return
        rows = self._table.rest(end_s)
        if self._table.intervals is not None:
            rows = self._table.intervals_ended(end_s)
        self._guarded(lambda writer: writer.write(rows))
        if self.error is None:
            self._guarded(lambda writer: writer.finish(summary()))

    def _guarded(self, act: Callable[[LiveWriter], None]) -> None:
        self.writing = True
        try:
            if self._writer is None:
                self._writer = self._begin()
            act(self._writer)
            self._stream.flush()
        except OSError as error:
            self.error = error
            self.done.set()
        finally:
            self.writing = False
