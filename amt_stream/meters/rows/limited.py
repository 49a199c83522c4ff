"""Limits in rows: their columns, and events when states change."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from amt_stream.core.json_types import JsonMap
from amt_stream.meters.accumulators.limit_state import AMBER, GREEN, STATES, UNKNOWN
from amt_stream.meters.frames import Event
from amt_stream.meters.level_names import forecasts, read_level
from amt_stream.meters.limits import COLORS, Limit, LimitError
from amt_stream.meters.rows.block import MICROPHONE, Rows, is_named, unix_s
from amt_stream.meters.rows.captions import caption_of, row_text
from amt_stream.meters.rows.column import Column
from amt_stream.meters.rows.words import duration_text

LIMIT = "limit"
"""The kind of events for changes of a limit."""


def columns_of(limits: Iterable[Limit]) -> list[str]:
    """Names of the columns of limits, each with its forecasts, if any."""
    found = []
    for limit in limits:
        until_of(limit)  # refuses a limit without one
        found += [limit.column, *_forecasts(limit)]
    return found


def until_of(limit: Limit) -> str:
    """Name of the forecast by which a limit warns; "" for one that warns by its value alone.

    Raises LimitError if its column has no forecasts.
    """
    if not limit.ahead_s:
        return ""
    if not (names := _forecasts(limit)):
        raise LimitError(
            f"{limit.words}: ahead_s is {limit.ahead_s:g}, and {limit.column} has no forecast of "
            "an upper limit: leave it out, or choose a level such as laeq_15min_db"
        )
    return names[1]


def ends_in(limit: Limit, row: JsonMap) -> float | None:
    """Seconds until the limit is exceeded at the present level, where it warns of that; or None."""
    until = row.get(until_of(limit)) if row.get(limit.state) == STATES[AMBER] else None
    return until if until is not None and 0 < until <= limit.ahead_s else None


def _forecasts(limit: Limit) -> list[str]:
    level = read_level(limit.column)
    if level is None or limit.below:
        return []
    windowed = level.kind == "eq" and level.part("window")
    if not (windowed or level.kind == "day"):
        return []
    of, place, side = level.of, level.part("place"), level.part("side")
    names = forecasts(of, limit.threshold, place, side)
    return [name for name in names if read_level(name) is not None]


def states_of(limits: Iterable[Limit]) -> list[Column]:
    """The columns with the states of limits."""
    return [Column(limit.state, "", f"state of the limit {limit.words}") for limit in limits]


def so_far(limit: Limit, row: JsonMap) -> bool:
    """Whether only part of the time of a limit's value was measured.

    Then it is amber if the value is beyond the limit, and unknown if it is not.
    """
    state, value = row.get(limit.state), row.get(limit.column)
    if limit.is_beyond(value):
        return bool(state == STATES[AMBER])
    return state == STATES[UNKNOWN] and value is not None and not is_clipped(limit, row)


def is_clipped(limit: Limit, row: JsonMap) -> bool:
    """Whether the value of a limit includes clipped sound."""
    return is_named(limit.column, row.get("clipped_columns"))


def value_and_threshold(limit: Limit, row: JsonMap, brief: bool = False) -> tuple[str, str]:
    """As "LAeq,30min" and "97.3 dB, limit 99 dB", of a row; "97.3 dB so far" of a part of its time.

    brief: with the unit once, as "97.3, limit 99 dB"
    """
    caption = caption_of(limit.column)
    unit = "" if brief else caption.unit
    read = f"{row_text(limit.column, row)} {unit}".rstrip()
    read += " so far" if so_far(limit, row) else ""
    threshold = f"{limit.threshold_words} {caption.unit}".rstrip()
    return caption.symbol or caption.words, f"{read}, {threshold}"


def forecast(limit: Limit, row: JsonMap) -> tuple[float | None, float | None]:
    """Forecasts in a row: the level still allowed, and the seconds left at the present level."""
    names = _forecasts(limit)
    allowed, until = (row.get(name) for name in names) if names else (None, None)
    return allowed, until or None


def ahead_words(limit: Limit, row: JsonMap) -> str:
    """As "over the limit in 4 min at this level", where a limit warns of that; or ""."""
    left_s = ends_in(limit, row)
    return "" if left_s is None else f"over the limit in {duration_text(left_s)} at this level"


class LimitEvents:
    """Returns events for changes of the states of limits, from rows in order.

    Each limit begins green; unknown states are ignored.

    limits: those of the next rows
    """

    def __init__(self, limits: Sequence[Limit]) -> None:
        self.limits = tuple(limits)
        self._before: dict[tuple[str, str], str] = {}

    def __call__(self, rows: Rows) -> list[Event]:
        """The events of these rows, in order of time."""
        found = [event for limit in self.limits for event in self._of(limit, rows)]
        return sorted(found, key=lambda event: event.sample)

    def _of(self, limit: Limit, rows: Rows) -> Iterator[Event]:
        whose = rows[MICROPHONE] if MICROPHONE in rows.columns else np.full(len(rows), "", object)
        states = rows[limit.state]
        for microphone in dict.fromkeys(whose.tolist()):
            before = self._before.get((microphone, limit.name), STATES[GREEN])
            for at in np.flatnonzero((whose == microphone) & (states != before)):
                state = states[at]
                if state == before or state not in COLORS:
                    continue
                before = self._before[microphone, limit.name] = state
                names = (limit.column, limit.state, "clipped_columns", until_of(limit))
                row = {name: rows[name][at] for name in names if name}
                reading, beside = value_and_threshold(limit, row)
                named = f"{limit.given_name} is {state}: {reading} {beside}"
                words = named if limit.given_name else f"{reading} is {state}: {beside}"
                ahead = ahead_words(limit, row)
                yield Event(
                    LIMIT,
                    int(rows["sample"][at]),
                    float(rows["time_s"][at]),
                    float(unix_s(rows["utc"][at])),
                    text=f"{words}; {ahead}" if ahead else words,
                    microphone=microphone,
                )
