"""Rows, events and intervals in text files by the hour."""

import io
import json
import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from functools import partial
from typing import NamedTuple, Protocol

import numpy as np

from amt_stream.core.json_types import JsonMap
from amt_stream.meters.frames import Event
from amt_stream.meters.rows import Rows, header_of_intervals
from amt_stream.sessions.files import GrowingFile, new_name
from amt_stream.sessions.folder import Folder
from amt_stream.sessions.outputs import FORMATS, LiveWriter

LONGEST_PART_S = 5400.0
"""Longest part in seconds of sound, so that a wrong clock cannot make an endless part."""


MakeHeader = Callable[[], JsonMap]


class LoggedEvent(NamedTuple):
    """An event, and a function for the header of the rows after it if that changes.

    last_sample: of the last row with the header before; by default that of the event
    """

    event: Event
    header: MakeHeader | None = None
    last_sample: int | None = None


class OpenFiles(Protocol):
    """Files of a session. All methods raise OSError."""

    @property
    def there(self) -> bool:
        """Whether its files still exist under their names."""
        ...

    def flush(self) -> None: ...

    def reopen(self) -> None:
        """Begin new parts if the old ones are gone."""

    def close(self) -> None:
        """Close the open parts."""


class Store(OpenFiles, Protocol):
    """Storage of rows, events and intervals of a session.

    Data given to `write` waits until it is on the disk: after an error, `flush` continues.
    """

    def write(
        self, rows: Sequence[Rows], events: Sequence[LoggedEvent], intervals: Rows | None = None
    ) -> None: ...


class Headers:
    """The headers of rows: a new one applies from the first row after its event.

    That row may come much later, as rows lag behind events.
    """

    def __init__(self) -> None:
        self._waiting: deque[tuple[int, MakeHeader]] = deque()

    def pieces(
        self, blocks: Sequence[Rows], events: Sequence[LoggedEvent]
    ) -> Iterator[tuple[MakeHeader | None, Rows]]:
        """Split blocks of rows by header; with each piece, its header if that is new, else None."""
        self._waiting += [
            (one.event.sample if one.last_sample is None else one.last_sample, one.header)
            for one in events
            if one.header is not None
        ]
        for rows in blocks:
            yield from self._pieces(rows)

    def _pieces(self, rows: Rows) -> Iterator[tuple[MakeHeader | None, Rows]]:
        header: MakeHeader | None = None
        while self._waiting and len(rows):
            sample, following = self._waiting[0]
            sooner = rows["sample"] <= sample
            if sooner.any():
                yield header, rows.where(sooner)
                header, rows = None, rows.where(~sooner)
            if len(rows):
                header = following
                self._waiting.popleft()
        if len(rows):
            yield header, rows


def hour_of(utc: np.datetime64) -> str:
    """The hour of a time in UTC, for the names of parts."""
    hour = np.datetime64("now", "h") if np.isnat(utc) else utc.astype("datetime64[h]")
    return str(hour).replace("-", "") + "Z"


class LogHour:
    """The current hour. It never goes back, so that rows stay in order."""

    def __init__(self) -> None:
        self.name = ""
        self._since_s = 0.0

    def pieces(self, rows: Rows | None) -> Iterator[tuple[bool, Rows]]:
        """Split rows by hour; yields whether a new hour begins, and the rows."""
        if rows is None or not len(rows):
            return
        hours = rows["utc"].astype("datetime64[h]")
        cuts = np.flatnonzero(hours[1:] != hours[:-1]) + 1
        for places in np.split(np.arange(len(rows)), cuts):
            piece = rows.where(slice(places[0], places[-1] + 1))
            yield self.turns(piece["utc"][0], float(piece["time_s"][0])), piece

    def turns(self, utc: np.datetime64, time_s: float) -> bool:
        """Whether a new hour begins at this time."""
        name = hour_of(utc)
        if name <= self.name and time_s - self._since_s < LONGEST_PART_S:
            return False
        self.name, self._since_s = max(name, self.name), time_s
        return True

    def end(self) -> None:
        """Begin a new part with the next rows, even in the same hour."""
        self._since_s = -math.inf


def event_line(event: Event) -> str:
    """An event as a JSON line."""
    return json.dumps(asdict(event)) + "\n"


class TextParts:
    """A `Store` of CSV or JSON lines; every part has a header.

    header: returns the header; called when a part begins
    """

    def __init__(self, folder: Folder, format: str, header: MakeHeader) -> None:
        self._folder, self._format, self._header = folder, format, header
        self._headers = Headers()
        self._hours = LogHour()
        self._steps: deque[Callable[[], None]] = deque()
        self._text = io.StringIO()
        self._writer: LiveWriter | None = None
        self._files: dict[str, GrowingFile] = {}
        """The open files of rows, events and intervals."""
        self._head, self._hour = b"", ""

    @property
    def there(self) -> bool:
        return all(file.there for file in self._files.values())

    def write(
        self, rows: Sequence[Rows], events: Sequence[LoggedEvent], intervals: Rows | None = None
    ) -> None:
        if events:  # events first, so that a gap in the rows is never without its event
            lines = "".join(event_line(one.event) for one in events).encode()
            self._steps.append(partial(self._put, "events", ".jsonl", lines))
        for header, some in self._headers.pieces(rows, events):
            if header is not None:
                self._header = header
                self._hours.end()
            self._take(some)
        if intervals is not None:
            text = io.StringIO()
            writer = FORMATS[self._format](text, header_of_intervals(self._header()))
            writer.write(intervals.where(slice(0)))
            head = text.tell()
            writer.write(intervals)
            text_of = text.getvalue()
            data, begin = text_of[head:].encode(), text_of[:head].encode()
            self._steps.append(partial(self._put, "intervals", f".{self._format}", data, begin))
        self.flush()

    def _take(self, rows: Rows) -> None:
        for begins, piece in self._hours.pieces(rows):
            if begins:
                if self._writer is not None:
                    self._steps.append(self._close_parts)
                self._writer = FORMATS[self._format](self._text, self._header())
                self._writer.write(piece.where(slice(0)))
                self._steps.append(partial(self._begin, self._hours.name, self._taken()))
            assert self._writer is not None
            self._writer.write(piece)
            self._steps.append(partial(self._put_rows, self._taken()))

    def flush(self) -> None:
        while self._steps:
            self._steps[0]()
            self._steps.popleft()

    def reopen(self) -> None:
        for file in self._files.values():
            file.close()
        self._files.clear()

    def close(self) -> None:
        self._steps.append(self._close_parts)
        self.flush()

    def _taken(self) -> bytes:
        data = self._text.getvalue().encode()
        self._text.seek(0)
        self._text.truncate()
        return data

    def _begin(self, hour: str, head: bytes) -> None:
        self._hour, self._head = hour, head

    def _put_rows(self, data: bytes) -> None:
        self._put("rows", f".{self._format}", data, self._head)

    def _put(self, what: str, ending: str, data: bytes, head: bytes = b"") -> None:
        """Write to the open file of this kind, or to a new one with this head."""
        if what not in self._files:
            self._files[what] = self._new(what, ending)
        file = self._files[what]
        if head and not file.size:
            file.write(head)
        file.write(data)

    def _new(self, what: str, *endings: str) -> GrowingFile:
        self._hour = self._hour or hour_of(np.datetime64("NaT"))
        return GrowingFile(new_name(self._folder.path, f"{what}-{self._hour}", *endings))

    def _close_parts(self) -> None:
        for what in ("rows", "events", "intervals"):
            if what in self._files:
                self._close_part(self._files[what])
                del self._files[what]

    def _close_part(self, file: GrowingFile) -> None:
        if file.size:
            run, name = self._folder.run, file.path.name
            self._folder.chain.add(run, name, file.digest.hexdigest(), bytes=file.size)
        file.close()
