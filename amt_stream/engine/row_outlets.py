"""Outlets of an engine that make rows, and those of its sinks."""

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from amt_stream.engine.course import Course
from amt_stream.engine.feed import (
    EngineRows,
    Made,
    Newest,
    RowFeed,
    RowMaker,
    RowSink,
    Taker,
    Waiting,
)
from amt_stream.engine.outlet import Outlet, Sink, name_of
from amt_stream.engine.outlets import Outlets
from amt_stream.engine.sources import Source
from amt_stream.frames import HearsEnd
from amt_stream.limits import Limit
from amt_stream.rows import JoinedRows

NEWEST_MS = 100
END_S = 1.0


class RowOutlets:
    """Makes them: of each sink that is given, and of rows that are asked for.

    models: gives what the rows are made of, as the models are just now
    begin_s: the time of the first sample
    samples: gives how many there are in all, once the source has ended
    slack: blocks of frames that may wait for a sink, and `slack_s` how much sound that is
    """

    def __init__(
        self,
        source: Source,
        outlets: Outlets,
        course: Course,
        models: Callable[[], Mapping[str, Made]],
        begin_s: float,
        samples: Callable[[], int],
        slack: int,
        slack_s: float,
    ) -> None:
        self._source, self._outlets, self._course = source, outlets, course
        self._models, self._begin_s, self._samples = models, begin_s, samples
        self._slack, self._slack_s = slack, slack_s
        self._newest: Newest | None = None
        self._newest_lock = threading.Lock()

    def of_sink(self, sink: Sink | RowSink) -> Outlet:
        """That of a sink."""
        if isinstance(sink, RowSink):
            table = self._table(sink.step_ms, sink.columns, sink.limits)
            return self._of_rows(table, sink, name_of(sink.function))
        end = self._end_of(sink) if isinstance(sink, HearsEnd) else None
        failed = self._outlets.failures.put
        return Outlet(sink, self._slack, self._source.live, finish=end, failed=failed)

    def attach(self, sink: Sink | RowSink, begin: Callable[[float], None]) -> Outlet:
        """That of a sink that joins while all runs [any-thread]."""
        outlet = self.of_sink(sink)
        self._outlets.join(outlet, lambda earliest_s, latest_s: begin(latest_s))
        return outlet

    def feed(self, step_ms: int, columns: Sequence[str] | None, limits: Sequence[Limit]) -> RowFeed:
        """Rows as they come [any-thread]."""
        table = self._table(step_ms, columns, limits)
        waiting = Waiting(self._source.live, self._course.stopping.is_set)
        outlet = self._of_rows(table, waiting, "rows")
        # Where some sound is forgotten, they begin with the present.
        self._outlets.join(outlet, lambda earliest_s, latest_s: table.begin(latest_s))
        waiting.limit = max(1, round(self._slack_s * 1000 / step_ms))
        return RowFeed(waiting, table.columns, partial(self._outlets.part, outlet))

    def new_rows(self, step_ms: int) -> JoinedRows | None:
        """Of the models as they are, where there is one row, and no cells [any-thread]."""
        with suppress(ValueError):
            table = self._table(step_ms, None)
            if not table.gives_cells:
                return table.alone
        return None

    def newest(self) -> dict[str, Any] | None:
        """The newest row, which is kept from the first call on [any-thread]."""
        with self._newest_lock:
            if self._newest is None:
                newest = Newest()
                table = self._table(NEWEST_MS, None)
                if table.gives_cells:
                    first = next(iter(self._models().values())).model
                    raise ValueError(
                        f"{type(first).__name__} gives a row for each cell: ask rows() for "
                        "them, or history.latest for its newest frames"
                    )
                outlet = self._of_rows(table, newest, "latest")
                self._outlets.join(outlet, lambda earliest_s, latest_s: table.begin(earliest_s))
                if self._course.is_over:  # the last row comes with the end
                    outlet.join(END_S)
                self._newest = newest
        return self._newest.row

    def _table(
        self, step_ms: int, columns: Sequence[str] | None, limits: Sequence[Limit] = ()
    ) -> EngineRows:
        source = self._source
        return EngineRows(self._models, source.fs, step_ms, columns, limits, source.duration_s)

    def _of_rows(self, table: EngineRows, taker: Taker, name: str) -> Outlet:
        table.begin(self._begin_s)
        maker = RowMaker(table, taker, self._end_s)
        failed = self._outlets.failures.put
        return Outlet(maker, self._slack, self._source.live, name, maker.finish, failed=failed)

    def _end_of(self, sink: HearsEnd) -> Callable[[bool], None]:
        return lambda wanted: sink.ended(self._end_s() if wanted else None)

    def _end_s(self) -> float | None:
        return self._samples() / self._source.fs if self._course.played else None
