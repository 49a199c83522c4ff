"""Limits of columns in rows of several models."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from amt_stream.meters.accumulators.limit_state import STATES, UNKNOWN
from amt_stream.meters.frames import UNHEARD, Fault
from amt_stream.meters.limits import Limit, LimitError
from amt_stream.meters.rows.block import in_seven_digits
from amt_stream.meters.rows.column import AT_LEAST, EQUIVALENT
from amt_stream.meters.rows.frame_table import UNCALIBRATED
from amt_stream.meters.rows.limit_monitor import LimitMonitor
from amt_stream.meters.rows.limited import until_of
from amt_stream.meters.rows.readings import Readings, Summary
from amt_stream.meters.rows.track import ModelTrack


class ColumnMonitor(LimitMonitor):
    """A monitor of one of the columns of these readings.

    place: of its model among them
    until: name of the forecast by which it warns, or ""

    Raises LimitError if they lack the column of the limit, or its forecast.
    """

    def __init__(self, limit: Limit, readings: Mapping[str, Readings], step_s: float) -> None:
        found = [
            (place, column)
            for place, one in enumerate(readings.values())
            for column in one.columns
            if column.name == limit.column and not one.keys
        ]
        if not found:
            raise LimitError(f"{limit.words}: there is no such column in these rows")
        until, there = until_of(limit), {c.name for one in readings.values() for c in one.columns}
        if until and until not in there:
            raise LimitError(f"{limit.words}: its ahead_s needs {until}, which these rows lack")
        self.until = until
        self.place, self.column = found[0]
        column, adds_up = self.column, self.column.statistic.startswith(EQUIVALENT)
        rises = column.if_clipped == AT_LEAST
        super().__init__(limit, step_s, column.window_s, adds_up, column.counted, rises)
        self._clipped_at_end = column.counted and list(readings.values())[self.place].in_pascal

    def states(
        self,
        time_s: NDArray[np.float64],
        values: NDArray[np.float64],
        clipped: NDArray[np.bool_],
        until_s: NDArray[np.float64] | None,
        marks: Sequence[NDArray[np.uint8]],
        judged: slice,
    ) -> NDArray[np.object_]:
        """The state at each row; only the rows `judged` count."""
        known = marks[self.place] < UNCALIBRATED
        own_or_lost = np.bitwise_or.reduce(marks) & ~np.uint8(Fault.OFF) | marks[self.place]
        heard = (own_or_lost & UNHEARD) == 0  # another model may be off
        of_rows = [time_s, values, known, clipped, heard]
        of_rows += [] if until_s is None else [until_s]
        rows = zip(*(one[judged].tolist() for one in of_rows), strict=True)
        found = np.full(len(time_s), STATES[UNKNOWN], object)
        found[judged] = self.update(rows)
        return found

    def end(self, end_s: float, summary: Summary, tracks: Sequence[ModelTrack]) -> None:
        """Update with the value of the whole sound, if it covers more than the last row."""
        value, track = summary.get(self.limit.column), tracks[self.place]
        if value is not None and not self.column.window_s and not track.is_off:
            (read,) = in_seven_digits(np.array([value])).tolist()
            clipped = self._clipped_at_end and track.clipping.counted
            self.update_end(end_s, read, track.frames.calibrated, clipped)
