"""What rows of several models count since a reset."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Self

from amt_stream.core.saved_state import Resumable
from amt_stream.meters.annoyance import annoyances
from amt_stream.meters.frames import CAUSES, OUTPUT, STALLED
from amt_stream.meters.limits import Limit, Stood
from amt_stream.meters.rows.column_monitor import ColumnMonitor
from amt_stream.meters.rows.readings import Readings, Summary
from amt_stream.meters.rows.track import ModelTrack


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
