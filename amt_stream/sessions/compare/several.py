"""A report of several measurements: a table that compares them, then a page of each."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import tzinfo
from string import ascii_uppercase

from amt_stream.core.formats import PAPERS
from amt_stream.core.words import counted
from amt_stream.sessions.compare.difference import NotComparable, compare
from amt_stream.sessions.compare.reading_difference import Difference
from amt_stream.sessions.report import content
from amt_stream.sessions.report.page import (
    NEXT,
    TITLE,
    cell,
    doubts,
    escaped,
    head,
    heads,
    html,
    html_table,
    sheet,
    verdict_cell,
)
from amt_stream.sessions.report.times import Clock
from amt_stream.sessions.results import Results

MOST = 6
"""Largest number of measurements, which the table has room for."""

MOST_READINGS = 24


def reports_page(
    results: Sequence[Results],
    about: content.About | None = None,
    zone: tzinfo | None = None,
    interval: int | None = None,
    paper: str = PAPERS[0],
) -> str:
    """Make a report of several measurements as self-contained HTML.

    The first page compares them with the first one, A; the arguments are those of `report_page`.

    Raises NotComparable for more than 6 measurements, and LogoError.
    """
    about = about or content.About()
    if not 1 <= len(results) <= MOST:
        raise NotComparable(
            f"{counted(len(results), 'measurement')}: a report has room for 1 to {MOST}"
        )
    title = about.title or f"{TITLE}s"
    names = dict(zip(ascii_uppercase, results, strict=False))
    facts = [f"<p>{escaped(name)}: {escaped(value)}</p>" for name, value in about.facts if value]
    body = [
        head(replace(about, title=title), ", ".join(one.name for one in results)),
        *facts,
        f"<h2>Compared with A</h2>{html_table(_lines(names, zone))}\n",
        '<p class="second">Below each value: its difference from A with the uncertainty (k = 2), '
        "in which common errors cancel; without ± it is unknown.</p>\n",
    ]
    for name, one in names.items():
        own = replace(about, title=f"{name}: {one.name}", client="", engineer="", note="")
        body += [NEXT, sheet(one, own, zone, interval, paper)]
    return html(f"{title}: {', '.join(one.name for one in results)}", "".join(body), paper)


def _lines(names: Mapping[str, Results], zone: tzinfo | None) -> Iterator[Sequence[str]]:
    clocks = {name: Clock.of(one, zone) for name, one in names.items()}
    yield [*heads(("", "")), *(cell(f"{n}: {one.name}", "head", "th") for n, one in names.items())]
    facts = {name: dict(content.when(one, clocks[name])) for name, one in names.items()}
    for fact in dict.fromkeys(key for one in facts.values() for key in one):
        yield [cell(fact, "second"), cell(""), *(cell(one.get(fact, "")) for one in facts.values())]
    sure = [
        ", ".join(map(str.lower, doubts(one))) or content.uncertainty(one) or "uncertainty unknown"
        for one in names.values()
    ]
    yield [cell("Level", "second"), cell("dB"), *map(cell, sure)]
    of_each = [*map(content.readings_by_name, names.values())]
    differences = [{}, *(_differences(names["A"], one) for one in [*names.values()][1:])]
    order = [*content.FIRST, *content.THEN, *of_each[0]]
    common = [name for name in dict.fromkeys(order) if all(name in of for of in of_each)]
    for name in common[:MOST_READINGS]:
        cells = [
            _value(of[name], own.get(name)) for of, own in zip(of_each, differences, strict=True)
        ]
        yield [cell(of_each[0][name].symbol, "name"), cell(of_each[0][name].unit, "name"), *cells]
    limits = {
        name: {line.words: line for line in content.limit_lines(one, clocks[name])}
        for name, one in names.items()
    }
    for words in dict.fromkeys(key for one in limits.values() for key in one):
        verdicts = [_verdict(one.get(words)) for one in limits.values()]
        yield [cell(words, "name"), cell(""), *verdicts]


def _differences(a: Results, b: Results) -> dict[str, Difference]:
    try:
        return {one.name: one for one in compare(a, b).differences}
    except NotComparable:
        return {}


def _value(one: content.Reading, off: Difference | None) -> str:
    """A value, its difference from the value of A, and how much of its window was measured."""
    notes = [one.measured] if one.measured else []
    if off is not None:
        doubt = "" if off.uncertainty is None else f" ± {off.uncertainty:.1f}"
        notes.insert(0, f"{off.difference:+.1f}{doubt}")
    below = f'<br><span class="second">{escaped("; ".join(notes))}</span>' if notes else ""
    return f"<td><b>{escaped(one.value)}</b>{below}</td>"


def _verdict(line: content.LimitLine | None) -> str:
    return cell("no such limit", "second") if line is None else verdict_cell(line.verdict)
