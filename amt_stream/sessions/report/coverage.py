"""How much of a measurement each model measured."""

from amt_stream.meters import catalog
from amt_stream.meters.frames import Fault
from amt_stream.meters.rows import Column, reading_text
from amt_stream.meters.rows.block import is_named
from amt_stream.sessions.reading import LONGEST_S
from amt_stream.sessions.report.times import duration
from amt_stream.sessions.results import Results
from amt_stream.sessions.results.parts import PartsOfRows

COUNTED_S = ("measured_s", "excluded_s", "off_s")
LEAST_S = 0.05

COMPLETE = 0.99
"""The part of a window that must be measured, so that a short gap does not matter."""


def covered(parts: PartsOfRows, column: Column) -> str:
    """How much of the measurement a statistic covers, if that is not all of it.

    For a maximum also the higher values that do not count.
    """
    if not column.counted:
        return ""
    begin_s, end_s = parts.results.begin_s, parts.results.duration_s
    counted = coverage(parts, column.model)
    # A summary goes on to the end of the sound, which may come long after the last row.
    whole_s = max(end_s - begin_s - parts.spans.paused_s(begin_s, end_s), sum(counted.values()))
    measured_s = measured_of(parts, column, counted[COUNTED_S[0]])
    if measured_s > COMPLETE * whole_s:
        return ""
    words = f"measured {duration(measured_s)} of {duration(whole_s)}"
    return f"{words}{_above(parts, column)}"


def _above(parts: PartsOfRows, column: Column) -> str:
    """What was above a maximum and does not count; "" if nothing was."""
    results = parts.results
    highest = (results.summary or results.last).get(column.name)
    if column.statistic != "maximum" or not isinstance(highest, int | float):
        return ""
    above = parts.above(column, highest, counted_from_s(results), results.duration_s)
    if above is None:
        return ""
    value, seconds = above
    text = reading_text(column.name, value)
    if text == reading_text(column.name, highest):
        return ""
    return (
        f"; up to {text} {column.unit} for {duration(seconds)}, not counted: settling after a gap"
    )


def measured_of(parts: PartsOfRows, column: Column, usual_s: float) -> float:
    """The measured time of a statistic, from the summary or from the rows.

    usual_s: that of its model, where the statistic has none of its own
    """
    results = parts.results
    own_s = of_summary(results, "statistics", column.model, "measured_of", column.name)
    if own_s is None and of_summary(results, "statistics", column.model, COUNTED_S[0]) is None:
        own_s = parts.measured_of(column, counted_from_s(results), results.duration_s)
    return usual_s if own_s is None else own_s


def has_clipped(parts: PartsOfRows, column: Column) -> bool:
    """Whether the reading of the whole sound includes clipped sound."""
    results = parts.results
    if results.part is not None:
        return bool((results.rows["fault"] & Fault.CLIP).any())
    clipped_s = of_summary(results, "statistics", column.model, "clipped_s")
    if column.counted and clipped_s is not None:
        return clipped_s > 0
    return is_named(column.name, str(results.last.get("clipped_columns", "")))


def counted_from_s(results: Results) -> float:
    """When the statistics of a measurement began."""
    return max(results.begin_s, results.reset_s)


def coverage(parts: PartsOfRows, model: str) -> dict[str, float]:
    """The measured, excluded and off time of a model, from the summary or from the rows."""
    results = parts.results
    known = [of_summary(results, "statistics", model, key) for key in COUNTED_S]
    if known[0] is not None:
        return {key: s or 0.0 for key, s in zip(COUNTED_S, known, strict=True)}
    begin_s, end_s = counted_from_s(results), results.duration_s
    measured_s = parts.measured_s(begin_s, end_s, model)
    off_s = sum(max(0.0, b - max(a, begin_s)) for a, b in parts.spans.off_of(model))
    excluded_s = end_s - begin_s - parts.spans.paused_s(begin_s, end_s) - measured_s - off_s
    return dict(zip(COUNTED_S, (measured_s, max(0.0, excluded_s), off_s), strict=True))


def of_summary(results: Results, *keys: str) -> float | None:
    """A time in the summary, in seconds; None if it has none, or an edited log another value."""
    value: object = results.summary
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    valid = isinstance(value, int | float) and 0 <= value <= LONGEST_S
    return float(value) if isinstance(value, int | float) and valid else None


def coverage_words(results: Results) -> dict[str, str]:
    """By the title of each model, how long it measured, left out, and was switched off."""
    parts, of_models = PartsOfRows(results), {}
    for model in results.header["models"]:
        name = model["name"]
        entry = catalog.entries().get(name)
        counted = coverage(parts, name)
        words = [
            f"{word} {duration(counted[key])}"
            for key, word in zip(COUNTED_S, ("measured", "left out", "switched off"), strict=True)
            if key == COUNTED_S[0] or counted[key] > LEAST_S
        ]
        of_models[name if entry is None else entry.title] = ", ".join(words)
    return of_models
