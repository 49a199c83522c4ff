"""What a venue needs at a glance: its level, the margin to its limit, low frequencies, peak."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from amt_monitor.panes.reading_pane import ReadingPane
from amt_stream.meters import catalog
from amt_stream.meters.limits import Limit
from amt_stream.meters.rows.captions import caption_of
from amt_stream.meters.rows.limited import columns_of
from amt_stream.sessions.outputs import FollowedReadings
from amt_stream.views.reading_cell import ReadingCell

NAME, TITLE, MODEL = "venue", "Venue", "spl"
LOW = "lceq_minus_laeq_db"
"""The reading by which a measurement is one of a venue, besides a limit with forecasts."""

SHORT_S = 120.0
"""Less time than this is shown with tenths of a minute."""


def venue_limit(readings: FollowedReadings | None) -> Limit | None:
    """The limit that a venue watches: the first one with forecasts; None if it is no venue."""
    names = [] if readings is None else [column.name for column in readings.rows.columns]
    if readings is None or LOW not in names:
        return None
    return next((one for one in readings.limits if len(columns_of([one])) > 1), None)


def _by_symbol(name: str) -> ReadingCell:
    return ReadingCell(name, words=caption_of(name).symbol)


class VenuePane(ReadingPane):
    """The level of a limit, the level and the time left to it, LCeq - LAeq and LCpeak.

    limit: with forecasts
    """

    def __init__(self, readings: FollowedReadings, limit: Limit) -> None:
        columns = {column.name: column for column in readings.rows.columns}
        level, self._allowed, self._until = columns_of([limit])
        self._longest_s = columns[level].window_s
        names = list(columns)
        peaks = [name for name in ("lcpeak_audience_db", "lcpeak_db") if name in names]
        left = ReadingCell(self._until, text=self._minutes, words="Time left", unit="min")
        # Symbols, as five captions in words would not fit beside each other.
        large = [[_by_symbol(level)], [ReadingCell(self._allowed)], [left], [_by_symbol(LOW)]]
        large += [[_by_symbol(name)] for name in peaks[:1]]
        in_audience = columns[level].place == "audience"
        beside = ("laf_audience_db", "laeq_audience_db") if in_audience else ("laf_db", "laeq_db")
        small = [[ReadingCell(name)] for name in beside]
        shown = {cell.name for line in (*large, *small) for cell in line}
        names = [name for name in columns if name in shown]
        about = f"{limit.threshold_words} dB"
        if in_audience:
            about += f"; in the audience: {columns[level].note}"
        entry = replace(catalog.entry(MODEL), name=NAME, title=TITLE)
        super().__init__(entry, about, large, small, names)
        self.model = MODEL

    def show_readings(self, found: Mapping[str, Any]) -> None:
        if found.get(self._until) is None and found.get(self._allowed) is not None:
            # It is not exceeded at the present level.
            found = {**found, self._until: math.inf}
        super().show_readings(found)

    def _minutes(self, seconds: float) -> str:
        if math.isinf(seconds):
            return f"> {self._longest_s / 60:g}" if self._longest_s else "no end"
        return f"{seconds / 60:.1f}" if seconds < SHORT_S else f"{seconds / 60:.0f}"
