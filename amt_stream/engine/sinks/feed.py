"""Rows of readings from a running engine: as iterator, callback or latest row."""

import asyncio
import contextlib
import math
import threading
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol, Self

from amt_stream.core.json_types import JsonDict
from amt_stream.engine.thread_check import thread_checked
from amt_stream.meters import catalog
from amt_stream.meters.frames import Event, Fault, Frames
from amt_stream.meters.limits import Limit
from amt_stream.meters.rows import (
    FieldReadings,
    JoinedRows,
    Readings,
    Rows,
    RowsOfEach,
    choose,
    columns_of,
)
from amt_stream.meters.rows.block import MICROPHONE, Cell

if TYPE_CHECKING:
    from amt_stream.dsp.streaming import Stage

WAIT_S = 0.1


class Taker(Protocol):
    """Takes rows, in the thread that makes them."""

    def take(self, rows: Rows) -> None: ...

    def end(self) -> None: ...


class RowModel(NamedTuple):
    """A model for making rows, its scalar outputs, and the channels of each microphone by name.

    A single microphone has the name "".
    """

    model: "Stage"
    fields: tuple[str, ...]
    microphones: Mapping[str, int]


def readings_of_model(name: str, rows_of: RowModel, channels: int) -> Readings:
    """The readings of the catalog for a model; for an unknown model its scalar outputs."""
    model = rows_of.model
    entry = catalog.entry_of(model)
    if entry is None:
        return FieldReadings(name, rows_of.fields)
    band = "uncertainty_db" in entry.takes and model.uncertainty_db is not None
    readings: Readings = entry.make_readings(channels, model=model, band=band)
    return readings


class EngineRows:
    """Makes `Rows` from the frames of an engine's models, every `step_ms`.

    After a swap for a model with other readings, all readings start over.

    rows: those of each microphone
    """

    def __init__(
        self,
        models: Callable[[], Mapping[str, RowModel]],
        fs: int,
        step_ms: int,
        columns: Sequence[str] | None,
        limits: Sequence[Limit] = (),
        duration_s: float | None = None,
        wait_s: float | None = 0.0,
    ) -> None:
        self._duration_s, self._wait_s = duration_s, wait_s
        self._models, self._fs, self._step_ms, self._columns = models, fs, step_ms, columns
        self._limits = limits
        microphones = next(iter(models().values())).microphones
        self._stretches = dict.fromkeys(
            ((microphone, name) for microphone in microphones for name in models()), 0
        )
        self.rows = RowsOfEach(
            {name: self._join(name, self._readings(name)) for name in microphones}
        )

    def _readings(self, microphone: str) -> dict[str, Readings]:
        return {
            name: readings_of_model(name, one, one.microphones[microphone])
            for name, one in self._models().items()
        }

    def _join(self, microphone: str, readings: Mapping[str, Readings]) -> JoinedRows:
        if self._columns is not None or self._limits:
            choose(readings, self._columns, columns_of(self._limits))
        table = JoinedRows(
            readings,
            self._step_ms,
            self._fs,
            duration_s=self._duration_s,
            wait_s=self._wait_s,
            microphone=microphone,
            limits=self._limits,
            asked=() if self._columns is None else None,
        )
        twice = [name for name in set(table.names) if table.names.count(name) > 1]
        if twice:
            raise ValueError(
                f"two models give the column {min(twice)}: give each model an Engine of its own, "
                "or choose columns that only one has"
            )
        return table

    def __call__(self, frames: Frames) -> Rows:
        key = frames.microphone, frames.model
        if frames.stretch != self._stretches[key]:
            self._stretches[key] = frames.stretch
            self._look_again(frames.microphone, float(frames.time_s[0]))
        return self.rows(frames)

    def _look_again(self, microphone: str, time_s: float) -> None:
        """Start over if a swap changed the readings; also called after resets."""
        readings, present = self._readings(microphone), self.rows.of[microphone].readings
        if any(
            type(one) is not type(present[name]) or one.offered != present[name].offered
            for name, one in readings.items()
        ):
            joined = self._join(microphone, readings)
            joined.begin(time_s)
            self.rows.renew(microphone, joined)


@thread_checked
class RowMaker:
    """The sink that makes rows from frames and hands them to a `Taker`.

    end_s: returns the length of the whole sound in seconds once it has ended by itself, else None
    """

    only_reads = True
    hears_tail = True

    def __init__(self, table: EngineRows, taker: Taker, end_s: Callable[[], float | None]) -> None:
        self._table, self._taker, self._end_s = table, taker, end_s

    def __call__(self, frames: Frames) -> bool:
        """Hand on the rows that these frames complete; False if none [sink-thread]."""
        return self._take(self._table(frames))

    def event(self, event: Event) -> None:
        """Take a gap event [sink-thread]."""
        self._table.rows.event(event)

    @property
    def needed(self) -> Collection[str]:
        """Models that limits and chosen columns need [any-thread]."""
        return self._table.rows.needed

    def finish(self, wanted: bool) -> None:
        """Hand on the remaining rows, and the end [sink-thread]."""
        try:
            if wanted:
                self._take(self._table.rows.rest(self._end_s()))
        finally:
            self._taker.end()

    def _take(self, rows: Rows) -> bool:
        if len(rows):
            self._taker.take(rows)
        return len(rows) > 0


@thread_checked
class RowSink:
    """A sink with a step: `function` gets each row, every `step_ms`, as a dict by column.

        Engine(source, model, sinks=[RowSink(show, step_ms=200)])

    The columns are those of the command line: `time_s`, `utc`, `sample`, the readings of the models
    with their units in the names, and `fault`, `settling`, `calibrated`. A model that is not in the
    catalog gives its scalar outputs.

    columns: names of readings, or patterns with * or ?, by default the usual ones; the Engine
        raises ValueError for an unknown one
    limits: limits on columns; each adds a column with its state
    wait_ms: how long a row may wait for later ones, because ten rows made together cost little more
        than one. By default rows of a live source do not wait, others up to 0.3 s of sound

    Raises TypeError if `function` is not callable, and ValueError for a `wait_ms` below 0.
    """

    def __init__(
        self,
        function: Callable[[dict[str, Cell]], object],
        step_ms: int = 100,
        columns: Sequence[str] | None = None,
        limits: Sequence[Limit] = (),
        wait_ms: float | None = None,
    ) -> None:
        if not callable(function):
            raise TypeError(f"RowSink: {function!r} cannot be called: give a function of a dict")
        if wait_ms is not None and not wait_ms >= 0:
            raise ValueError(f"wait_ms is {wait_ms!r}: give milliseconds, 0 or more")
        self.function, self.step_ms, self.columns = function, step_ms, columns
        self.limits, self.wait_ms = limits, wait_ms

    def take(self, rows: Rows) -> None:
        """Call the function with each row, also after a row for which it failed [sink-thread]."""
        failure: Exception | None = None
        for row in rows:
            try:
                self.function(row)
            except Exception as error:
                failure = failure or error
        if failure is not None:
            raise failure

    def end(self) -> None:
        """Nothing to do."""


@thread_checked
class LatestRow:
    """Keeps the latest row, of each microphone if there are several."""

    def __init__(self) -> None:
        self._rows: dict[str, Rows] = {}

    def take(self, rows: Rows) -> None:
        """Keep the last of these rows [sink-thread]."""
        if MICROPHONE not in rows.columns:
            self._rows = {"": rows}
            return
        self._rows = self._rows | {
            row: rows.where(rows[MICROPHONE] == row) for row in set(rows[MICROPHONE])
        }

    def end(self) -> None:
        """Nothing to do: the latest row stays."""

    @property
    def row(self) -> JsonDict | None:
        """The latest row as a dict, or None [any-thread]."""
        found = {row: next(iter(rows.where(slice(-1, None)))) for row, rows in self._rows.items()}
        return found.get("", found or None)


@thread_checked
class Waiting:
    """A queue of rows between the thread that makes them and their reader.

    `limit` is the largest number of rows. Beyond it, a `lossy` queue drops and counts rows, and
    marks the next one with Fault.OVERLOAD; otherwise the writer waits, until `over`.
    """

    def __init__(self, lossy: bool, over: Callable[[], bool]) -> None:
        self.missed = 0
        self.limit = math.inf
        self._lossy, self._over = lossy, over
        self._blocks: deque[Rows] = deque()
        self._count = 0
        self._missed_before_next = False
        self._ended = False
        self._changed = threading.Condition()
        self._sleepers: list[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = []

    def take(self, rows: Rows) -> None:
        """Add rows [sink-thread]."""
        with self._changed:
            while not self._ended and self._count >= self.limit:
                if self._lossy or self._over():
                    self.missed += len(rows)
                    self._missed_before_next = True
                    return
                self._changed.wait(WAIT_S)
            if self._ended:
                return
            if self._missed_before_next:
                rows["fault"][0] |= Fault.OVERLOAD
                self._missed_before_next = False
            self._blocks.append(rows)
            self._count += len(rows)
            self._wake()

    def end(self) -> None:
        """No more rows will come, or none are wanted [any-thread]."""
        with self._changed:
            self._ended = True
            self._wake()

    def _wake(self) -> None:
        self._changed.notify_all()
        for loop, sleeper in self._sleepers:
            with contextlib.suppress(RuntimeError):  # the event loop was closed
                loop.call_soon_threadsafe(_set, sleeper)
        self._sleepers.clear()

    def _pop(self) -> Rows | None:
        if not self._blocks:
            return None
        rows = self._blocks.popleft()
        self._count -= len(rows)
        self._changed.notify_all()
        return rows

    def get(self) -> Rows | None:
        """Wait for the next rows; None at the end [any-thread]."""
        with self._changed:
            while (rows := self._pop()) is None and not self._ended:
                self._changed.wait(WAIT_S)
            return rows

    async def get_async(self) -> Rows | None:
        """As `get`, without blocking the event loop."""
        loop = asyncio.get_running_loop()
        while True:
            with self._changed:
                if (rows := self._pop()) is not None or self._ended:
                    return rows
                sleeper = loop.create_future()
                self._sleepers.append((loop, sleeper))
            await sleeper


def _set(sleeper: asyncio.Future[None]) -> None:
    if not sleeper.done():
        sleeper.set_result(None)


class RowFeed:
    """Rows of an engine as they come, for `for rows in feed` and `async for rows in feed`.

    Each turn gives all `Rows` that are ready: `rows["ltl_phon"]` is a column, `for row in rows`
    gives dicts. It ends with the engine. A slow reader misses rows of a live source; they are
    counted, and the next row is marked overload. Any other source waits. A feed that is closed or
    garbage collected delays nothing.
    """

    def __init__(
        self, waiting: Waiting, columns: tuple[str, ...], close: Callable[[], None]
    ) -> None:
        self.columns = columns
        self._waiting, self._close = waiting, close

    @property
    def missed(self) -> int:
        """Number of rows dropped because too many waited [any-thread]."""
        return self._waiting.missed

    def close(self) -> None:
        """Stop the feed [any-thread]."""
        self._waiting.end()
        self._close()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Rows:
        rows = self._waiting.get()
        if rows is None:
            raise StopIteration
        return rows

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Rows:
        rows = await self._waiting.get_async()
        if rows is None:
            raise StopAsyncIteration
        return rows

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()
