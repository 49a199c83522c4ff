"""A measurement without some spans of time, which marks, sound events or clock times enclose."""

import math
from collections.abc import Iterable
from dataclasses import replace
from datetime import tzinfo

import numpy as np
from numpy.typing import NDArray

from amt_stream.core.clock import SAME_S, NoSuchTime, moment
from amt_stream.core.safe_text import brief
from amt_stream.meters.accumulators.dose import DAY_S
from amt_stream.meters.frames import Event
from amt_stream.meters.rows import Column, Rows
from amt_stream.meters.rows.column import EQUIVALENT
from amt_stream.meters.rows.spotted import SOUND_BEGIN, SOUND_END
from amt_stream.sessions.results import EXCLUDED, MARK, FaultySpan, Results, ResultsError
from amt_stream.sessions.results.parts import Part, PartsOfRows, results_of_part, time_of
from amt_stream.sessions.results.pieces import Pieces

BEGINS, ENDS = ("begin", "begins", "start", "starts"), ("end", "ends", "stop", "stops")
"""Words after the text of a mark that begins or ends a span."""

BETWEEN = ".."
"""Stands between two clock times."""

FINE = 0.1
"""The longest piece of energy of which a rolling level is made again, relative to its window."""

OF_DAY = {"lex_8h_db": "laeq_db", "lex_8h_audience_db": "laeq_audience_db"}
"""Exposure levels, each with the level of the same energy."""

MOST_NAMED = 8
"""Marks that a refusal names."""

Numbers = NDArray[np.float64]


def results_without(
    results: Results, labels: Iterable[str], part: Part | None = None, zone: tzinfo | None = None
) -> Results:
    """The results of a measurement, or of a part of it, without the spans of these labels.

    A label is the text of two marks, the name of a sound event, or two times as "22:00..22:05".
    Statistics come from rows that are outside the spans. Levels of a rolling window with a limit
    are made again from the energy outside them, and limits are judged by these: the spans count as
    pauses do.

    zone: of clock times; by default that of the measurement

    Raises ResultsError for a label that nothing has, and if nothing is left.
    """
    begin_s, end_s = float(results.rows["time_s"][0]), results.duration_s
    whole, part = part is None, part or Part(begin_s, end_s)
    spans = [span for label in labels for span in spans_of(results, label, zone)]
    spans = [span for span in spans if span.end_s > part.begin_s and span.begin_s < part.end_s]
    marked = replace(results, excluded=tuple(sorted(spans, key=lambda one: one.begin_s)))
    parts = PartsOfRows(marked)
    if not parts.measured_s(part.begin_s, part.end_s):
        raise ResultsError(f"nothing is left of {results.name}: exclude less")
    left = results_of_part(marked, part)
    left = replace(left, part=None) if whole else left
    return replace(left, rows=_judged_again(parts, left.rows)) if spans else left


def spans_of(results: Results, label: str, zone: tzinfo | None = None) -> list[FaultySpan]:
    """The spans of a label. Raises ResultsError without any.

    The first of two marks begins a span and the second ends it, or "TEXT begin" and "TEXT end"; one
    that nothing ends lasts to the end of the measurement.
    """
    begin, between, end = label.partition(BETWEEN)
    if between:
        return [_between(results, label, (begin, end), zone)]
    found, since = list[FaultySpan](), math.nan
    for event in sorted(results.events, key=lambda one: one.time_s):
        sign, is_open = _sign(event, label), not math.isnan(since)
        if sign in ("begin", "turn") and not is_open:
            since = event.time_s
        elif sign in ("end", "turn") and is_open:
            found.append(FaultySpan(EXCLUDED, since, event.time_s, label))
            since = math.nan
    if not math.isnan(since):
        text = f"{label}, which nothing ends"
        found.append(FaultySpan(EXCLUDED, since, results.duration_s, text))
    if not found:
        raise ResultsError(_none_of(results, label))
    return found


def _sign(event: Event, label: str) -> str:
    """What an event does to a span of a label: "begin", "end", "turn" from one to the other, ""."""
    words, name = _plain(event.text), _plain(label)
    if event.kind == MARK:
        if words == name:
            return "turn"
        word = words.removeprefix(f"{name} ") if words.startswith(f"{name} ") else ""
        return "begin" if word in BEGINS else "end" if word in ENDS else ""
    if event.kind == SOUND_BEGIN and words.startswith(f"{name} begins:"):
        return "begin"
    return "end" if event.kind == SOUND_END and words.startswith(f"{name} has ended") else ""


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def _none_of(results: Results, label: str) -> str:
    texts = dict.fromkeys(brief(mark.text.strip()) for mark in results.marks if mark.text.strip())
    named = ", ".join([*texts][:MOST_NAMED])
    there = f"its marks are {named}" if named else "it has no marks with a text"
    return (
        f"{results.name} has no mark and no sound event {brief(label)!r}: {there}. A span may also "
        "be two times, as 22:00..22:05"
    )


def _between(
    results: Results, label: str, texts: tuple[str, str], zone: tzinfo | None
) -> FaultySpan:
    """The span between two times."""
    first_s, by = float(results.rows["time_s"][0]), zone or results.zone
    try:
        begin_s = time_of(results, moment(texts[0]), by, first_s)
        end_s = time_of(results, moment(texts[1]), by, begin_s)
    except NoSuchTime as refusal:
        raise ResultsError(f"{results.name}: {refusal}") from refusal
    if not max(begin_s, first_s) < min(end_s, results.duration_s):
        raise ResultsError(f"{results.name} has no sound between {label}: give other times")
    return FaultySpan(EXCLUDED, max(begin_s, first_s), min(end_s, results.duration_s), label)


def _judged_again(parts: PartsOfRows, rows: Rows) -> Rows:
    """The rows with values of limited columns that do not include the excluded spans."""
    header, columns = parts.results.header, parts.results.columns
    limited = dict.fromkeys(one["column"] for one in header.get("limits", ()))
    again = {name: _again(parts, columns[name], rows) for name in limited}
    return Rows({name: again.get(name, rows[name]) for name in rows.columns}, rows.range_of)


def _again(parts: PartsOfRows, column: Column, rows: Rows) -> Numbers:
    """The values of a column at these rows; NaN where they cannot be known."""
    time_s, values = rows["time_s"], rows[column.name]
    first_s = parts.results.excluded[0].begin_s
    if column.statistic == "instantaneous":
        return np.asarray(values)
    after = time_s > first_s + SAME_S
    if column.window_s:
        ends = [one.end_s + column.window_s for one in parts.results.excluded]
        pairs = zip(parts.results.excluded, ends, strict=True)
        within = [(time_s > one.begin_s + SAME_S) & (time_s <= end) for one, end in pairs]
        after = np.logical_or.reduce(within)
    if column.statistic.startswith(EQUIVALENT):
        made = _level(parts.pieces.of(column.name), parts, time_s, column.window_s)
    elif column.name in OF_DAY and OF_DAY[column.name] in parts.results.known:
        made = _level(parts.pieces.of(OF_DAY[column.name]), parts, time_s, 0.0, of_day=True)
    elif column.statistic == "maximum":
        made = _highest(parts, column.name, time_s)
    else:
        made = np.full(len(time_s), np.nan)
    return np.where(after, made, values)


def _level(
    pieces: Pieces | None,
    parts: PartsOfRows,
    time_s: Numbers,
    window_s: float,
    of_day: bool = False,
) -> Numbers:
    """An equivalent level at these times of a window, or since the last reset; NaN for none."""
    nothing = np.full(len(time_s), np.nan)
    if pieces is None or not len(pieces.end_s):
        return nothing
    longest = float((pieces.end_s - pieces.begin_s).max())
    if window_s and longest > max(parts.results.step_s, FINE * window_s) + SAME_S:
        return nothing
    resets = [one.time_s for one in parts.results.events if one.kind == "readings_reset"]
    begins = np.array([-math.inf, *resets])
    since_s = begins[np.searchsorted(begins, time_s - SAME_S) - 1]
    since_s = time_s - window_s if window_s else since_s
    edges = np.stack([pieces.begin_s, pieces.end_s], axis=1).ravel()

    def between(each: Numbers) -> Numbers:
        total: Numbers = np.repeat(np.concatenate([[0.0], np.cumsum(each)]), 2)[1:-1]
        now, before = (np.interp(times, edges, total) for times in (time_s, since_s))
        return np.asarray(now - before)

    seconds, energy = between(pieces.measured_s), between(pieces.measured_s * pieces.power)
    with np.errstate(divide="ignore", invalid="ignore"):
        level = 10 * np.log10(energy / (DAY_S if of_day else seconds))
    found: Numbers = np.where((seconds > SAME_S) & np.isfinite(level), level, np.nan)
    return found


def _highest(parts: PartsOfRows, name: str, time_s: Numbers) -> Numbers:
    """A maximum at these times, NaN while it may be that of an excluded span."""
    found, so_far = np.full(len(time_s), np.nan), math.nan
    if any(one.kind == "readings_reset" for one in parts.results.events):
        return found
    places = np.searchsorted(parts.time_s, time_s)
    values, now = parts.rows[name][places], parts.instantaneous(name)
    for begin_s, end_s in parts.spans.kept(float(time_s[0]) - SAME_S, float(time_s[-1])):
        within = (time_s > begin_s + SAME_S) & (time_s <= end_s + SAME_S)
        inside = np.flatnonzero(within & parts.counted[places])
        if not len(inside):
            continue
        before = values[inside[0] - 1] if inside[0] else math.nan
        # What the accumulated value hides is at most the one before.
        hidden = np.full(len(inside), so_far if so_far >= before else np.nan)
        if now is not None and not so_far >= before:
            hidden = np.fmax(np.fmax.accumulate(now[places[inside]]), so_far)
        risen = np.isnan(before) | (values[inside] > before)
        found[inside] = np.where(risen, values[inside], hidden)
        so_far = float(found[inside[-1]])
    return found
