"""Intervals of a log without impulses that were left out after an interval had ended."""

from collections.abc import Iterable, Mapping
from math import nan
from typing import NamedTuple

import numpy as np

from amt_stream.core.clock import SAME_S
from amt_stream.meters.accumulators.rating import INTERVAL_S, impulse_adjustment, rated_db
from amt_stream.meters.frames import IMPULSE_COUNTING, LEFT_OUT, Event
from amt_stream.meters.rows import Rows

BEGAN, PROMINENCE = "impulse_s", "impulse_p"
"""Columns of rows: when the last impulse began, and its prominence."""

MOST, KI, KT, LEVEL, RATED = "impulse_max_p", "ki_db", "kt_db", "rating_laeq_db", "rating_db"
"""Columns of a table of intervals: what impulses change, and from what."""

SAME_TIME = 1e-6
"""Relative tolerance of a time in seven digits."""


class _Impulse(NamedTuple):
    """An impulse in rows: when it was known, its prominence, and the last event about it."""

    known_s: float
    prominence: float
    event: str


def with_impulses_left_out(
    table: Rows, rows: Rows, events: Iterable[Event], combine: str = "sum"
) -> Rows:
    """The table of intervals with the adjustments of the impulses that count after all events.

    An interval that ended before an event has the adjustment of what counted until then. The other
    impulses are in the rows, if these have their times and prominences. An interval of more than
    half an hour has several adjustments: its rating level is then not known.
    """
    told = {event.time_s: event.kind for event in events if event.kind in IMPULSE_COUNTING}
    if not told or MOST not in table.columns or not {BEGAN, PROMINENCE} <= {*rows.columns}:
        return table
    impulses = list(_impulses(rows, told))
    columns = {name: table[name].copy() for name in table.columns}
    for k, (begin_s, end_s) in enumerate(zip(table["time_s"], table["end_s"], strict=True)):
        own = [one for one in impulses if begin_s + SAME_S < one.known_s <= end_s + SAME_S]
        if any(one.event for one in own):
            _adjust(columns, k, own, combine)
    return Rows(columns)


def _impulses(rows: Rows, told: Mapping[float, str]) -> Iterable[_Impulse]:
    began_s = rows[BEGAN]
    before_s = np.concatenate([[nan], began_s[:-1]])
    for row in np.flatnonzero(np.isfinite(began_s) & (began_s != before_s)):
        near = [kind for at, kind in told.items() if _is_same(at, began_s[row])]
        event = near[0] if near else ""
        yield _Impulse(float(rows["time_s"][row]), float(rows[PROMINENCE][row]), event)


def _is_same(time_s: float, other_s: float) -> bool:
    return abs(time_s - other_s) < 0.01 + SAME_TIME * time_s


def _adjust(
    columns: Mapping[str, np.ndarray], k: int, impulses: list[_Impulse], combine: str
) -> None:
    """Adjust interval k by those of its impulses that count."""
    stored = columns[MOST][k]
    out = [one.prominence for one in impulses if one.event == LEFT_OUT]
    # Rows lack the first of two impulses between them: what counted until then may be one.
    counted = [] if np.isclose(out, stored, rtol=SAME_TIME).any() else [stored]
    counted += [one.prominence for one in impulses if one.event != LEFT_OUT]
    most = np.nanmax([*counted, -np.inf])
    if most == stored:
        return
    columns[MOST][k] = most if np.isfinite(most) else nan
    if KI in columns:
        columns[KI][k] = ki_db = impulse_adjustment(most)
        if RATED in columns:
            is_one = columns["end_s"][k] - columns["time_s"][k] <= INTERVAL_S + SAME_S
            level_db, kt_db = (columns[name][k] if name in columns else nan for name in (LEVEL, KT))
            columns[RATED][k] = rated_db(level_db, kt_db, ki_db, combine) if is_one else nan
