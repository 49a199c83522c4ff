"""The form of rows: their columns, and how they are made of what several models give."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from amt_stream.core.clock import SAME_TIME_S
from amt_stream.meters.annoyance import annoyance_from
from amt_stream.meters.limits import Limit
from amt_stream.meters.rows.block import (
    AFTER,
    BEFORE,
    MICROPHONE,
    Rows,
    in_seven_digits,
    in_utc,
    names_of,
)
from amt_stream.meters.rows.column import Column
from amt_stream.meters.rows.counted import Counted
from amt_stream.meters.rows.frame_table import ANY_FAULT, UNCALIBRATED
from amt_stream.meters.rows.readings import Readings

WHOSE = Column(MICROPHONE, "", "which row of several that are heard, each by itself")


class Instants(NamedTuple):
    """The instants of rows.

    time_s: (row,) time in the sound
    sample: (row,) the last sample not after it
    whole: whether the last row is that of the whole sound, with its statistics
    """

    time_s: NDArray[np.float64]
    sample: NDArray[np.int64]
    whole: bool


class RowForm:
    """The columns of rows, and how rows are made.

    readings: by model
    limits: of which each has a column with its state
    microphone: name of the microphone, if there are several, for a column of all rows
    from_s: begin of the part of the sound whose rows count

    ranged: whether rows have `Rows.range_of`, for displays
    """

    def __init__(
        self,
        readings: Mapping[str, Readings],
        limits: Sequence[Limit],
        microphone: str,
        from_s: float,
    ) -> None:
        first = next(iter(readings.values()))
        self.limits, self.microphone, self.from_s = tuple(limits), microphone, from_s
        self.cells = first.cells
        self.keys = (*([WHOSE] if microphone else []), *first.keys)
        own = [column for one in readings.values() for column in one.columns]
        self.columns = (*self.keys, *own)
        """The columns: keys of cells first, then the readings."""
        self.readings = [column.name for column in own]
        """Names of the readings."""
        # Columns that are computed from others: the place of each, and those of what it needs.
        self._joint = [
            (self.readings.index(c.name), [*map(self.readings.index, c.needs)], c)
            for c in own
            if c.needs
        ]
        self.ranged = False
        self.none = Rows.concatenated([], self.names)
        """No rows."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all columns of a row."""
        readings = (column.name for column in self.columns)
        return (*BEFORE, *readings, *(limit.state for limit in self.limits), *AFTER)

    def rows(self, counted: Counted, at: Instants) -> Rows:
        """Make a row for each instant, or for each cell at each instant."""
        tracks = list(counted.tracks.values())
        found = [track.until(at.time_s + SAME_TIME_S) for track in tracks]
        values, marks_of, settling, clipped_of, ranges = zip(*found, strict=True)
        table, unsettled, clipped = beside(values), beside(settling), beside(clipped_of)
        if at.whole:  # its statistics cover what came after its time, too
            clipped[-1] |= np.concatenate([track.clipping.statistics for track in tracks])
        for place, needs, column in self._joint:
            given = dict(zip(column.needs, table.T[needs], strict=True))
            table[:, place] = annoyance_from(column.name, given)
            for one in (unsettled, clipped):
                one[:, place] = one[:, needs].any(1)
        if at.whole:
            self._set_whole(counted, table[-1])
        marks = marks_of[0] if len(marks_of) == 1 else np.bitwise_or.reduce(marks_of)
        utc = in_utc(at.time_s + tracks[0].frames.epoch_s)
        of_names = names_of(unsettled, self.readings), names_of(clipped, self.readings)
        marked = marks & ANY_FAULT, unsettled.any(1), *of_names
        # One row for each cell.
        each = [at.time_s, utc, at.sample, *marked, marks < UNCALIBRATED]
        if len(self.cells) > 1:
            each = [np.repeat(column, len(self.cells)) for column in each]
        rounded = in_seven_digits(table).reshape(len(each[0]), len(self.readings))
        states = self._states(counted, at.time_s, rounded, clipped, marks_of)
        after = states | dict(zip(AFTER, each[len(BEFORE) :], strict=True))
        rows = Rows.around(self._before(each[: len(BEFORE)]), self.readings, rounded, after)
        if self.ranged:
            self._set_ranges(rows, *map(beside, zip(*ranges, strict=True)))
        return rows if at.time_s[0] >= self.from_s else rows.within(self.from_s, math.inf)

    def _before(self, each: Sequence[NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """The columns before the readings, from times, UTC and samples of each row."""
        count = len(each[0])
        found = dict(zip(BEFORE, each, strict=True))
        if self.microphone:
            found[MICROPHONE] = np.full(count, self.microphone, object)
        keys = self.keys[len(self.keys) - len(self.cells[0]) :]
        for key, of_cells in zip(keys, zip(*self.cells, strict=True), strict=True):
            found[key.name] = np.tile(np.array(of_cells), count // len(of_cells))
        return found

    def _states(
        self,
        counted: Counted,
        time_s: NDArray[np.float64],
        table: NDArray[np.float64],
        clipped: NDArray[np.bool_],
        marks: Sequence[NDArray[np.uint8]],
    ) -> dict[str, NDArray[Any]]:
        """The state of each limit at each row. Rows before `from_s` do not count."""
        found: dict[str, NDArray[Any]] = {}
        for monitor in counted.monitors:
            judged = slice(int(np.searchsorted(time_s, self.from_s)), None)
            place = self.readings.index(monitor.limit.column)
            until_s = table[:, self.readings.index(monitor.until)] if monitor.until else None
            of_limit = table[:, place], clipped[:, place], until_s
            found[monitor.limit.state] = monitor.states(time_s, *of_limit, marks, judged)
        return found

    def _set_whole(self, counted: Counted, values: NDArray[np.float64]) -> None:
        """Set the statistics of the last row to those of the whole sound."""
        summary = counted.summary()
        at = 0
        for name, one in counted.readings.items():
            # A model that is off has no value, even of what it measured before.
            counts = one.counts and not counted.tracks[name].is_off
            for column in one.columns * len(one.cells):
                if counts and not column.window_s and column.statistic != "instantaneous":
                    whole = summary.get(column.name, values[at])
                    values[at] = math.nan if whole is None else whole
                at += 1

    def _set_ranges(
        self, rows: Rows, least: NDArray[np.float64], greatest: NDArray[np.float64]
    ) -> None:
        both = np.stack([in_seven_digits(least), in_seven_digits(greatest)])
        rows.range_of = dict(zip(self.readings, both.transpose(2, 0, 1), strict=True))
        for *_, column in self._joint:
            rows.range_of[column.name] = np.stack([rows[column.name]] * 2)


def beside(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """The columns (row, column) of all models."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)
