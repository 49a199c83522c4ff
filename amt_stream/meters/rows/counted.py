"""What rows of several models count since a reset."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from amt_stream.core.saved_state import Resumable
from amt_stream.meters.accumulators.limit_state import STATES, UNKNOWN
from amt_stream.meters.annoyance import annoyances
from amt_stream.meters.frames import CAUSES, OUTPUT, STALLED, UNHEARD, Fault
from amt_stream.meters.limits import Limit, LimitError, Stood
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


class Counted(Resumable):
    """The readings of models, the frames that rows still need, limits, and missing samples.

    readings: by model
    limits: of columns of these
    step_s: seconds between rows

    missing: missing samples of the counted time, by cause
    """

    kept = ("readings", "tracks", "monitors", "missing")

    def __init__(
        self, readings: Mapping[str, Readings], limits: Sequence[Limit], step_s: float
    ) -> None:
        self.readings = dict(readings)
        self.tracks = {name: ModelTrack(one) for name, one in readings.items()}
        self.monitors = [ColumnMonitor(limit, readings, step_s) for limit in limits]
        self.missing = dict.fromkeys(CAUSES, 0)

    def continue_with(self, before: Self, begun_s: float | None) -> None:
        """Continue the same models with other columns or limits.

        begun_s: the time of the last row, if there was one; limits that are new begin after it
        """
        monitors, self.monitors = self.monitors, []  # these go by their limit, not by their place
        super().take_over(before)
        self.monitors = monitors
        for monitor in monitors:
            same = [one for one in before.monitors if one.limit == monitor.limit]
            if same:
                monitor.take_over(same[0])
                continue
            monitor.pause(before.paused)
            if begun_s is not None:
                readings = before.readings[[*self.tracks][monitor.place]]
                monitor.begin_late(begun_s, readings.earlier(monitor.column))

    def reset(self, time_s: float) -> None:
        """Count anew, also in rows up to `time_s`; filters are unchanged."""
        for readings in self.readings.values():
            readings.reset()
        for track in self.tracks.values():
            track.reset()
        self.missing = dict.fromkeys(CAUSES, 0)
        for monitor in self.monitors:
            monitor.reset(time_s)

    @property
    def paused(self) -> bool:
        """Whether nothing is counted."""
        return any(one.paused for one in self.readings.values())

    def pause(self, paused: bool, time_s: float) -> None:
        """Pause or continue; rows before `time_s` that come later are not affected."""
        for one in self.readings.values():
            one.paused = paused
        for monitor in self.monitors:
            monitor.pause(paused, time_s)

    def end(self, end_s: float) -> None:
        """Let limits judge the whole sound, of which output came after the last row."""
        summary = self.summary()
        for monitor in self.monitors:
            monitor.end(end_s, summary, list(self.tracks.values()))

    def summary(self) -> Summary:
        """The statistics by name."""
        summary: Summary = {}
        for one in self.readings.values():
            summary |= one.summary()
        return summary | annoyances(summary)

    def counted_s(self) -> dict[str, Summary]:
        """Of each model with statistics, in seconds: measured, excluded, off and clipped."""
        found = {name: one.counted_s() for name, one in self.readings.items()}
        for name, one in found.items():
            track = self.tracks[name]
            if one:
                one["off_s"] = track.off_s
                one["excluded_s"] = max(0.0, (one["excluded_s"] or 0.0) - track.off_s)
            if self.readings[name].counts:
                one["clipped_s"] = track.clipping.seconds
        return found

    def measured_of(self) -> dict[str, Summary]:
        """Seconds that statistics cover, by model and name, where they are not its `measured_s`."""
        found = {name: track.measured_of() for name, track in self.tracks.items()}
        return {name: seconds for name, seconds in found.items() if seconds}

    def missing_s(self, fs: float) -> dict[str, float]:
        """Seconds of the counted time without sound, by cause."""
        found = {cause: n / fs for cause, n in self.missing.items()}
        # A frame is marked for as long as its model remembers: the shortest memory is closest.
        tracks = self.tracks.values()
        found[STALLED] = min(track.stalled_s for track in tracks)
        return found | {OUTPUT: max(track.missed_s for track in tracks)}

    def stood(self, microphone: str) -> list[Stood]:
        """How each limit was kept."""
        return [replace(monitor.stood, microphone=microphone) for monitor in self.monitors]
