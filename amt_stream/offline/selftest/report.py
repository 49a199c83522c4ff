"""Results as text: rows, summaries and the verification report."""

import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import groupby

from amt_stream import __version__
from amt_stream.core.formats import WAYS
from amt_stream.core.words import counted
from amt_stream.offline.selftest.check import Result, Trial
from amt_stream.offline.selftest.requirement import Requirement
from amt_stream.offline.selftest.ways import Way

DIRECTLY = "direct"
"""Heading of what reaches a model without a source."""

Value = tuple[str, str, Requirement]
"""Model, sound and reading."""


def as_expected(trials: Iterable[Trial], ways: Sequence[Way]) -> Iterator[Result]:
    """The results that checks will have if each reading is as expected."""
    for trial in trials:
        for way in [""] if trial.directly else [way.name for way in ways]:
            why = trial.exceptions.get(way, "")
            for one in trial.readings:
                got = float("nan") if why else one.expected
                yield Result(trial.model, trial.words, one, way, got, left_out=why)


def ways_of(results: Iterable[Result]) -> list[str]:
    """Names of the ways of results, "" first, which is directly."""
    return sorted(dict.fromkeys(result.way for result in results), key=bool)


def by_value(results: Iterable[Result]) -> dict[Value, dict[str, Result]]:
    values: dict[Value, dict[str, Result]] = {}
    for one in results:
        values.setdefault((one.model, one.sound, one.reading), {})[one.way] = one
    return values


def columns(ways: Iterable[str]) -> tuple[str, ...]:
    """Headings of the columns, with one for each way."""
    of_ways = (way or DIRECTLY for way in ways)
    return ("", "model", "sound: reading", "expected", *of_ways, "deviation", "tolerance", "source")


def cells(of_value: Mapping[str, Result], ways: Iterable[str]) -> tuple[str, ...]:
    """The cells of a value under `columns`; of its deviations, the largest."""
    results = list(of_value.values())
    first, played = results[0], _played(results)
    reading, unit = first.reading, first.reading.deviates_in
    deviation = f"{max(played, key=_off).deviation:<+8.2g} {unit}" if played else ""
    return (
        "FAIL" if any(one.failed for one in played) else "pass" if played else "none",
        first.model,
        f"{first.sound}: {reading.what}",
        f"{reading.expected:g} {reading.unit}",
        *(_got(of_value.get(way)) for way in ways),
        deviation,
        f"{reading.tolerance:g} {unit}",
        reading.source,
    )


def _got(result: Result | None) -> str:
    if result is None:
        return "-"
    if result.left_out:
        return "not played"
    # 11 is the width of the widest such number.
    return "error" if result.problem else f"{result.got:<11.6g}"


def row(values: Sequence[str], widths: Sequence[int]) -> str:
    """A line of columns."""
    padded = (f"{value:<{width}}" for value, width in zip(values, widths, strict=True))
    return "  ".join(padded).rstrip()


def widths(rows: Iterable[Sequence[str]]) -> list[int]:
    return [max(map(len, column)) for column in zip(*rows, strict=True)]


def _played(results: Iterable[Result]) -> list[Result]:
    return [result for result in results if not result.left_out]


def _off(result: Result) -> float:
    """The size of the deviation; NaN is worse than any."""
    return abs(result.deviation) if result.got == result.got else float("inf")


def _worst(results: Iterable[Result]) -> str:
    """The largest deviation in each unit: "2.5 %, 0.08 phon"."""
    largest: dict[str, float] = {}
    for result in results:
        unit = result.reading.deviates_in
        largest[unit] = max(_off(result), largest.get(unit, 0.0))
    return ", ".join(f"{off:.2g} {unit}" for unit, off in largest.items())


def _passed(results: Sequence[Result]) -> str:
    return f"{sum(result.passed for result in results)} of {len(results)}"


def summary_text(results: Sequence[Result]) -> str:
    """The number of passed checks, and the worst deviation."""
    played = _played(results)
    not_played = len(results) - len(played)
    also = f", {not_played} not played" if not_played else ""
    worst = f", worst deviation {_worst(played)}" if played else ""
    return f"{_passed(played)} passed{also}{worst}"


def by_model(results: Iterable[Result]) -> dict[str, list[Result]]:
    models: dict[str, list[Result]] = {}
    for result in results:
        models.setdefault(result.model, []).append(result)
    return models


def overview(results: Sequence[Result]) -> list[tuple[str, ...]]:
    """A heading, and for each model the number of passed checks in each way."""
    ways = ways_of(results)
    rows = [("passed", *(way or DIRECTLY for way in ways), "worst deviation")]
    for model, of in by_model(results).items():
        played = _played(of)
        each = ([result for result in played if result.way == way] for way in ways)
        rows.append((model, *(_passed(some) if some else "-" for some in each), _worst(played)))
    return rows


def not_played(results: Iterable[Result]) -> Iterator[str]:
    """A sentence for each sound that was not played in a way."""
    of_sounds = groupby(results, key=lambda one: (one.model, one.sound, one.way, one.left_out))
    for (model, sound, way, why), _ in of_sounds:
        if why:
            yield f"not played as {way}: {model}, {sound}: {why}"


def failure(result: Result) -> str:
    """A sentence on a check that failed."""
    way = f" ({result.way})" if result.way else ""
    got = result.problem or f"{result.got:.6g} {result.reading.unit}"
    return f"failed: {result.model}, {result.sound}: {result.reading.what}{way}: {got}"


def statement(results: Sequence[Result]) -> str:
    """A statement about the models after these results."""
    played = _played(results)
    failed = [result for result in played if result.failed]
    if failed or not played:
        checks = counted(len(played), "check")
        return f"{len(failed)} of {checks} failed: these models are not verified."
    printed = [result for result in played if result.reading.published]
    number = len(by_value(printed))
    others = len(by_value(played)) - number
    verified = f"verified against {counted(number, 'published value')}"
    verified += f" (worst deviation {_worst(printed)})" if printed else ""
    also = f" and {others} independently calculated ones" if others else ""
    return (
        f"Implemented from published descriptions of the standards, {verified}{also}, not "
        "certified; the microphone is yours to calibrate."
    )


def _table(rows: Iterable[Sequence[str]]) -> list[str]:
    """Lines of Markdown."""
    first, *others = ([" ".join(cell.replace("|", "\\|").split()) for cell in one] for one in rows)
    rule = ["---"] * len(first)
    return [f"| {' | '.join(one)} |" for one in (first, rule, *others)]


def markdown(results: Sequence[Result]) -> str:
    """The verification report."""
    now = datetime.now(UTC).replace(microsecond=0).isoformat()
    programs = ", ".join(f"{name} {version(name)}" for name in ("torch", "numpy", "numba"))
    ways = ways_of(results)
    heading = ("result", *columns(ways)[1:])
    rows = (cells(of_value, ways) for of_value in by_value(results).values())
    lines = [
        "# Verification of amt_stream",
        "",
        f"- version: {__version__}",
        f"- date: {now}",
        f"- machine: {platform.platform()}, {platform.processor() or platform.machine()}",
        f"- Python {platform.python_version()}, {programs}",
        "",
        statement(results),
        "",
        *_table(overview(results)),
        "",
        f"- in all: {summary_text(results)}",
        *(f"- {way}: {WAYS[way]}" for way in ways if way),
        *(f"- {sentence}" for sentence in not_played(results)),
        "",
        *_table([heading, *rows]),
    ]
    return "\n".join(lines) + "\n"
