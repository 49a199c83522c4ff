"""What a history says of its newest readings, of a moment, and of the states at it."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from html import escape
from typing import Any

import numpy as np

from amt_stream.core.words import clock_text, counted
from amt_stream.meters.frames import Event
from amt_stream.meters.rows.captions import row_text
from amt_stream.meters.state_signs import SIGNS
from amt_stream.views.history_states import PlotState
from amt_stream.views.reading_history import ReadingHistory
from amt_stream.views.settling_words import UNCOUNTED

CAUSES = 3
"""Lines at most of causes in the legend of a state."""


def newest_words(name: str, highest: str, values: Mapping[str, Any], settling: str) -> str:
    """The newest reading and its maximum, as the numbers of the other panes.

    A reading that does not count, and so can be above its maximum, says why.

    highest: the name of its maximum
    settling: why the reading is settling, in words
    """
    text = "" if values.get(name) is None else f" {row_text(name, values)}"
    if text and settling in UNCOUNTED:
        text += f" {settling}"
    if values.get(highest) is None:
        return text
    return f"{text}, max {row_text(highest, values)}"


def moment_words(history: ReadingHistory, time_s: float) -> str:
    """As "at 0:01:30 (14:05:12)"."""
    clock = _clock(history, time_s)
    return f"at {clock_text(round(time_s, 1))}" + (f" ({clock})" if clock else "")


def states_legend(
    history: ReadingHistory, story: Iterable[tuple[PlotState, float, float, Sequence[Event]]]
) -> str:
    """States with their begin and end in seconds and the events that explain them, in rich text."""
    return "<hr>".join(
        "<br>".join((_heading(history, state, start_s, end_s), *_causes(events), state.about))
        for state, start_s, end_s, events in story
    )


def _clock(history: ReadingHistory, time_s: float) -> str:
    """The time of day of a row; "" if that is unknown."""
    utc = history.utc(time_s)
    if np.isnat(utc):
        return ""
    return datetime.fromtimestamp(int(utc.astype(np.int64)) // 1000).strftime("%H:%M:%S")


def _heading(history: ReadingHistory, state: PlotState, start_s: float, end_s: float) -> str:
    start_s = max(0.0, start_s)
    times = f"{clock_text(round(start_s, 1))} to {clock_text(round(end_s, 1))}"
    clocks = [_clock(history, one) for one in (start_s, end_s)]
    if all(clocks):
        times += f" ({' to '.join(clocks)})"
    glyph = f"{SIGNS[state.sign].glyph} " if state.sign else ""
    return f"<b>{glyph}{state.word}</b>, {times}"


def _causes(events: Sequence[Event]) -> list[str]:
    """The texts of events as lines of rich text: equal ones once, the first few.

    Those of gaps say how long sound was missing.
    """
    by_text: dict[str, list[Event]] = {}
    for event in events:
        by_text.setdefault(event.text, []).append(event)
    lines = []
    for text, some in by_text.items():
        missing_s = sum(one.samples * one.time_s / one.sample for one in some if one.sample)
        notes = [counted(len(some), "time")] if len(some) > 1 else []
        notes += [f"{missing_s:.2f} s"] if missing_s else []
        lines.append(escape(text) + (f" ({', '.join(notes)})" if notes else ""))
    more = len(lines) - CAUSES
    return [*lines[:CAUSES], *([f"and {more} more"] if more > 0 else [])]
