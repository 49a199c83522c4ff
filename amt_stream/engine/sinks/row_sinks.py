"""Threads for an engine's sinks, including those that take rows."""

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial

from amt_stream.core.json_types import JsonDict
from amt_stream.engine.models.model_runner import TOGETHER_S
from amt_stream.engine.models.running_models import RunningModels
from amt_stream.engine.run_state import RunState
from amt_stream.engine.sinks.feed import (
    EngineRows,
    LatestRow,
    RowFeed,
    RowMaker,
    RowSink,
    Taker,
    Waiting,
)
from amt_stream.engine.sinks.sink_thread import Sink, SinkThread, sink_name
from amt_stream.engine.sinks.sinks import Sinks
from amt_stream.engine.thread_check import thread_checked
from amt_stream.engine.timeline import Timeline
from amt_stream.meters.frames import HearsEnd
from amt_stream.meters.limits import Limit
from amt_stream.meters.rows import JoinedRows

NEWEST_MS = 100
END_S = 1.0


@thread_checked
class RowSinks:
    """Creates threads for sinks, and for rows on request.

    slack_s: seconds of frames that may wait for a sink
    """

    def __init__(
        self,
        models: RunningModels,
        sinks: Sinks,
        timeline: Timeline,
        state: RunState,
        slack_s: float,
    ) -> None:
        self._models, self._sinks, self._timeline, self._state = models, sinks, timeline, state
        self._source, self._slack_s = timeline.source, slack_s
        self._lossy = not timeline.source.can_wait
        longest_s = models.first.ready.block / self._source.fs
        if not self._source.live:
            longest_s = max(longest_s, TOGETHER_S)
        self._slack = max(1, round(slack_s / longest_s)) * len(models.histories)
        self._of: dict[int, SinkThread] = {}
        self._newest: LatestRow | None = None
        self._newest_lock = threading.Lock()

    def add(self, sink: Sink | RowSink) -> None:
        """Create a thread for a sink [before start]."""
        self._of[id(sink)] = thread = self._thread_of(sink)
        self._sinks.add(thread)

    def attach(self, sink: Sink | RowSink, begin: Callable[[float], None]) -> None:
        """Create a thread for a sink that joins while the engine runs [any-thread].

        begin: called first with the time at which the present begins, if there was sound before
        """
        if id(sink) in self._of:
            raise ValueError(f"the sink {sink!r} is attached already: detach it first")
        self._of[id(sink)] = thread = self._thread_of(sink)
        self._sinks.join(thread, lambda earliest_s, latest_s: begin(latest_s))

    def detach(self, sink: Sink | RowSink) -> None:
        """Stop serving a sink [any-thread]."""
        thread = self._of.pop(id(sink), None)
        if thread is None:
            raise ValueError(f"the sink {sink!r} is not attached")
        self._sinks.leave(thread)

    def _thread_of(self, sink: Sink | RowSink) -> SinkThread:
        if isinstance(sink, RowSink):
            table = self._table(sink.step_ms, sink.columns, sink.limits, sink.wait_ms)
            return self._of_rows(table, sink, sink_name(sink.function))
        end = self._end_of(sink) if isinstance(sink, HearsEnd) else None
        failed = self._sinks.failures.put
        return SinkThread(sink, self._slack, self._lossy, finish=end, failed=failed)

    def feed(self, step_ms: int, columns: Sequence[str] | None, limits: Sequence[Limit]) -> RowFeed:
        """Rows as they come [any-thread]."""
        table = self._table(step_ms, columns, limits)
        waiting = Waiting(self._lossy, self._state.stopping.is_set)
        sink_thread = self._of_rows(table, waiting, "rows")
        # If some frames are gone already, rows begin with the present.
        self._sinks.join(sink_thread, lambda earliest_s, latest_s: table.rows.begin(latest_s))
        waiting.limit = max(1, round(self._slack_s * 1000 / step_ms))
        return RowFeed(waiting, table.rows.names, partial(self._sinks.part, sink_thread))

    def new_rows(self, step_ms: int) -> JoinedRows | None:
        """A row maker for the present models; None if they have cells or clash [any-thread]."""
        with suppress(ValueError):
            rows = self._table(step_ms, None).rows
            if not rows.gives_cells:
                return rows.of.get("")
        return None

    def newest(self) -> JsonDict | None:
        """The latest row, kept from the first call on [any-thread]."""
        with self._newest_lock:
            if self._newest is None:
                newest = LatestRow()
                table = self._table(NEWEST_MS, None)
                if table.rows.gives_cells:
                    first = next(iter(self._models.row_models().values())).model
                    raise ValueError(
                        f"{type(first).__name__} gives a row for each cell: ask rows() for "
                        "them, or history.latest for its newest frames"
                    )
                sink_thread = self._of_rows(table, newest, "latest")
                self._sinks.join(sink_thread, lambda earliest_s, _: table.rows.begin(earliest_s))
                if self._state.is_over:  # the last row comes with the end
                    sink_thread.join(END_S)
                self._newest = newest
        return self._newest.row

    def _table(
        self,
        step_ms: int,
        columns: Sequence[str] | None,
        limits: Sequence[Limit] = (),
        wait_ms: float | None = None,
    ) -> EngineRows:
        source = self._source
        wait_s = None if wait_ms is None else wait_ms / 1000
        if source.live and wait_ms is None:
            wait_s = 0.0
        given = source.fs, step_ms, columns, limits, source.duration_s, wait_s
        return EngineRows(self._models.row_models, *given)

    def _of_rows(self, table: EngineRows, taker: Taker, name: str) -> SinkThread:
        table.rows.begin(self._timeline.first_sample / self._source.fs)
        maker = RowMaker(table, taker, self._end_s)
        failed = self._sinks.failures.put
        return SinkThread(maker, self._slack, self._lossy, name, maker.finish, failed=failed)

    def _end_of(self, sink: HearsEnd) -> Callable[[bool], None]:
        return lambda wanted: sink.ended(self._end_s() if wanted else None)

    def _end_s(self) -> float | None:
        return self._models.first.position.samples / self._source.fs if self._state.played else None


def refuse_no_sinks(sinks: Sequence[Sink | RowSink]) -> None:
    """Raise TypeError unless these are functions of Frames and RowSinks."""
    if not isinstance(sinks, Sequence):
        raise TypeError(f"sinks is {sinks!r}: give a sequence, such as [print]")
    for sink in sinks:
        if not (callable(sink) or isinstance(sink, RowSink)):
            raise TypeError(
                f"the sink {sink!r} cannot be called: give a function of Frames, or a RowSink"
            )
