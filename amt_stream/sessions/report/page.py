"""The page: HTML of plain tables, which browsers and Qt lay out alike."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import tzinfo
from html import escape
from itertools import zip_longest
from typing import cast

from amt_stream.core.clock import DAY_S
from amt_stream.core.formats import PAPERS
from amt_stream.core.json_types import JsonDict
from amt_stream.core.safe_text import plain
from amt_stream.core.words import counted
from amt_stream.meters.calibration import utc_now
from amt_stream.meters.frames import Fault
from amt_stream.meters.limits import EXCEEDED, KEPT
from amt_stream.meters.rows import reading_text
from amt_stream.meters.rows.captions import sign_of
from amt_stream.meters.rows.words import FAULT_NAMES
from amt_stream.sessions.report import content
from amt_stream.sessions.report.chart import Chart
from amt_stream.sessions.report.coverage import coverage_words
from amt_stream.sessions.report.curves import curve, drawn
from amt_stream.sessions.report.day_levels import NoDayLevels, day_levels, level_text
from amt_stream.sessions.report.happened import doubtful, fault_lines, happened, hatched
from amt_stream.sessions.report.logo import logo_image
from amt_stream.sessions.report.spectrum import bands, spectrum
from amt_stream.sessions.report.times import Clock, duration
from amt_stream.sessions.results import Results
from amt_stream.sessions.results.interval_table import IntervalTable, intervals_of

PARTS = 600
"""Number of parts of the time in a chart."""

TITLE = "Sound measurement"
SIZES = {"a4": ("A4", 184), "letter": ("letter", 190)}
"""The paper's name in style sheets, and the width of its text in mm."""

CHART_SHARES = {"a4": 1.0, "letter": 0.72}
"""Heights of charts: Letter is 18 mm shorter than A4."""

NEXT = '<div class="next"></div>\n'
"""The beginning of another page."""

PAGE_CHARTS = 3
CHART_HEIGHTS = {1: 210.0, 2: 150.0, 3: 98.0}

STYLE = """
@page { size: SIZE; margin: 8mm 13mm; }
html { background: #f2f3f5; print-color-adjust: exact; -webkit-print-color-adjust: exact; }
body { font-family: Helvetica, Arial, 'DejaVu Sans', sans-serif; font-size: 8pt; color: #16181d;
  background: #ffffff; line-height: 1.25; }
@media screen { body { width: WIDTH; margin: 8mm auto; padding: 12mm 14mm; } }
@media print { html, body { background: #ffffff; margin: 0; } }
h1 { font-size: 17pt; margin: 0; font-weight: bold; }
h2 { font-size: 9.5pt; margin: 5pt 0 2pt 0; color: #16181d; font-weight: bold; }
p { margin: 0 0 2pt 0; }
table { border-collapse: collapse; width: 100%; }
td, th { padding: 1pt 8pt 1pt 0; text-align: left; vertical-align: top; font-weight: normal; }
p, td { overflow-wrap: anywhere; }
th { color: #5b616e; }
.name { white-space: nowrap; }
.tight td { font-size: 7.2pt; padding: 0.6pt 5pt 0.6pt 0; }
.tight th { padding-bottom: 0; }
.second { color: #5b616e; }
.lines td, .lines th { border-bottom: 0.5pt solid #d9dce2; }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.numbers td { vertical-align: bottom; padding-top: 4pt; padding-bottom: 2pt; }
.large { font-size: 22pt; font-weight: bold; font-variant-numeric: tabular-nums; }
.logo { height: 11mm; max-width: 60mm; vertical-align: middle; }
.company { font-size: 10pt; font-weight: bold; }
.next { break-before: page; }
@media screen { .next { height: 14mm; } }
.doubt { color: #9a6700; font-weight: bold; }
.badge { border: 1pt solid #9a6700; color: #9a6700; padding: 1pt 6pt; font-weight: bold; }
.hatched { background: repeating-linear-gradient(135deg, #f3e3bf 0 2px, #ffffff 2px 6px); }
.exceeded { color: #cf222e; font-weight: bold; }
.kept { color: #1a7f37; font-weight: bold; }
svg { width: 100%; height: auto; display: block; }
.foot { color: #5b616e; font-size: 6.5pt; margin-top: 5pt; }
"""

KINDS = {EXCEEDED: "exceeded", KEPT: "kept", "above so far": "doubt", "below so far": "doubt"}
SIGNS = {"exceeded": "&#9632; ", "kept": "&#9679; ", "doubt": "&#9650; "}
"""The style and the sign of a limit's word, so that color is not the only difference."""


def report_page(
    results: Results,
    about: content.About | None = None,
    zone: tzinfo | None = None,
    interval: int | None = None,
    paper: str = PAPERS[0],
) -> str:
    """Make the report as self-contained HTML.

    zone: time zone; by default that of the log, or of this computer
    interval: length of intervals in seconds, to add their table
    paper: one of PAPERS

    Raises LogoError if the logo cannot be read.
    """
    about = about or content.About()
    title = f"{about.title or TITLE}: {about.place or results.name}"
    return html(title, sheet(results, about, zone, interval, paper), paper)


def sheet(
    results: Results,
    about: content.About,
    zone: tzinfo | None = None,
    interval: int | None = None,
    paper: str = PAPERS[0],
) -> str:
    """The report of one measurement as the body of a page; arguments as in `report_page`."""
    clock = Clock.of(results, zone)
    begin = clock.at(results.begin_s)
    day = "" if begin is None else f"{begin:%d %B %Y}".lstrip("0")
    under = ", ".join(part for part in (about.place, day) if part) or results.name
    parts = [
        head(about, under, doubts(results)),
        _large(content.large(results), results),
        _facts([*content.when(results, clock), *content.device(results)], about.facts),
        _facts(
            [
                *content.calibration(results),
                *content.integrity(results),
                *content.exclusions(results, clock),
            ]
        ),
        _limits(content.limit_lines(results, clock)),
        _history(results, clock, CHART_SHARES[paper]),
        _readings(content.readings(results), results.calibrated, coverage_words(results)),
        _day_levels(results, zone),
        ""
        if interval is None
        else _intervals(results, intervals_of(results, interval, zone), clock),
        _happened(results, clock),
        _small(results),
    ]
    return "".join(parts)


def html(title: str, body: str, paper: str = PAPERS[0]) -> str:
    """Make a self-contained page; the body must be escaped already."""
    size, wide_mm = SIZES[paper]
    style = STYLE.replace("SIZE", size).replace("WIDTH", f"{wide_mm}mm")
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escaped(title)}</title>"
        f"<style>{style}</style></head>\n<body>\n{body}</body></html>\n"
    )


def cell(text: object, kind: str = "", tag: str = "td") -> str:
    """A cell of a table; the text is escaped."""
    return (
        f'<{tag} class="{kind}">{escaped(text)}</{tag}>'
        if kind
        else f"<{tag}>{escaped(text)}</{tag}>"
    )


def heads(words: Iterable[str], kind: str = "") -> list[str]:
    """The cells of the first line of a table; `kind` is that of cells with a word."""
    return [cell(word, kind if word else "", "th") for word in words]


def html_table(lines: Iterable[Iterable[str]], kind: str = "lines") -> str:
    """A table of lines of cells."""
    rows = "".join(f"<tr>{''.join(cells)}</tr>" for cells in lines)
    return f'<table class="{kind}">{rows}</table>' if kind else f"<table>{rows}</table>"


def charts(results: Results, clock: Clock, share: float = 1.0) -> list[Chart]:
    """The charts of the history, one for each unit; `share` of their usual height."""
    limits = results.header.get("limits", ())
    limited = [one["column"] for one in limits]
    columns = results.columns
    of_units = drawn(columns.values(), limited)
    made = []
    shown = [*of_units.items()][: PAGE_CHARTS - bool(bands(results))]
    for unit, own in shown:
        strong = {name for name in own if name in limited} or {own[-1]}
        band = None
        if "ltl_low_phon" in columns and "ltl_phon" in own:
            band = curve(results, "ltl_low_phon", PARTS), curve(results, "ltl_high_phon", PARTS)
        lines = [
            (one.get("above", one.get("below")), f"{columns[one['column']].short} limit")
            for one in limits
            if one["column"] in own
        ]
        made.append(
            Chart(
                unit,
                [curve(results, name, PARTS, name in strong) for name in own],
                clock,
                results.begin_s,
                results.duration_s,
                limits=lines,
                band=band,
                hatched=hatched(results, [*dict.fromkeys(columns[n].model for n in own)]),
                lined=doubtful(results),
                marks=[one.time_s for one in results.marks],
                height=share * CHART_HEIGHTS[len(shown)],
                times=unit == shown[-1][0],
            )
        )
    return made


def escaped(text: object) -> str:
    """Text escaped for HTML."""
    return escape(plain(text))


_e = escaped


def doubts(results: Results) -> list[str]:
    """What puts a measurement in doubt, in capitals."""
    words = [] if results.calibrated else ["NOT CALIBRATED"]
    words += ["SPANS EXCLUDED"] if results.excluded else []
    if results.proof is not None and results.proof.word != "intact":
        words.append("EDITED" if results.proof.edited else "INCOMPLETE")
    return words


def head(about: content.About, under: str, badges: Iterable[str] = ()) -> str:
    """Title and company of a page.

    under: the line under the title
    badges: words in frames
    """
    logo = logo_image(about.logo, about.company) if about.logo else ""
    company = f'<span class="company">{_e(about.company)}</span>' if about.company else ""
    words = "&nbsp;".join(f'<span class="badge">{word}</span>' for word in badges)
    beside = "&nbsp; ".join(part for part in (words, company, logo) if part)
    return (
        f'<table><tr><td><h1>{_e(about.title or TITLE)}</h1><p class="second">{_e(under)}</p></td>'
        f'<td class="number">{beside}</td></tr></table>\n'
    )


def _large(found: Sequence[content.Reading], results: Results) -> str:
    if not found:
        return ""
    wide = 100 // len(found)
    doubt = content.uncertainty(results)
    cells = []
    for one in found:
        kind = "large hatched" if one.in_pascal and not results.calibrated else "large"
        sure = one.band or (doubt if one.unit == "dB" else "")
        about = "; ".join(filter(None, (one.about, one.covered)))
        cells.append(
            f'<td width="{wide}%" valign="bottom"><span class="second">{_e(about)}</span><br>'
            f'<span class="{kind}">{_e(one.value)}</span> {_e(one.unit)} '
            f'<span class="second">{_e(one.symbol)}<br>{_e(sure) or "&nbsp;"}</span></td>'
        )
    return f'<table class="numbers"><tr>{"".join(cells)}</tr></table>\n'


def _facts(facts: content.Facts, beside: content.Facts | None = None) -> str:
    """A table of names and facts, in one column or two."""
    rows: list[tuple[tuple[str, str], ...]] = [(one,) for one in facts]
    if beside:
        rows = [*zip_longest(facts, beside, fillvalue=("", ""))]
    width = "" if not beside else ' width="37%"'
    cells = (
        "".join(f'<th width="13%">{_e(name)}</th><td{width}>{_lines(v)}</td>' for name, v in row)
        for row in rows
    )
    return f"<table>{''.join(f'<tr>{row}</tr>' for row in cells)}</table>\n"


def _lines(text: str) -> str:
    """Text with line breaks as HTML."""
    return "<br>".join(map(_e, text.splitlines()))


def verdict_cell(verdict: str) -> str:
    """The cell with the result of a limit: a sign and a word in its color."""
    kind = KINDS.get(verdict, "second")
    return f'<td class="{kind}">{SIGNS.get(kind, "")}{_e(verdict)}</td>'


def _limits(lines: Sequence[content.LimitLine]) -> str:
    if not lines:
        return ""
    sourced = any(one.source for one in lines)
    rows = [heads(("Limit", "", "Worst", "Exceeded for", *(["Set by"] if sourced else [])))]
    for one in lines:
        cells = [cell(one.words), verdict_cell(one.verdict), cell(one.worst), cell(one.over)]
        rows.append([*cells, cell(one.source, "second")] if sourced else cells)
    return f"<h2>Limits</h2>{html_table(rows)}\n"


def _day_levels(results: Results, zone: tzinfo | None) -> str:
    """Levels of day, evening and night, for a measurement of a day or longer."""
    if results.duration_s - results.begin_s < DAY_S:
        return ""
    try:
        levels = day_levels([results], zone=zone)
    except NoDayLevels:
        return ""
    names = [*levels.hours.periods]
    rows = [heads(["", "Lden", *(f"L{name}" for name in names), f"measured ({', '.join(names)})"])]
    for one in (*levels.days, levels.whole):
        rated = [one.rating_db, *(period.level_db for period in one.periods.values())]
        shares = ", ".join(period.percent for period in one.periods.values())
        day = "all" if one.on is None else f"{one.on:%d %B}"
        texts = [day, *(level_text(level, levels.clipped) for level in rated), shares]
        rows.append([*map(cell, texts)])
    words = f"dB; {levels.hours.words}; time zone {levels.clock}; from {levels.how}."
    return f'<h2>Day, evening and night</h2>{html_table(rows)}<p class="second">{_e(words)}</p>\n'


def _intervals(results: Results, found: IntervalTable, clock: Clock) -> str:
    """A table of intervals: time, measured duration and readings."""
    known = [results.known[name] for name in found.names]
    units = [f'<th class="number">{_e(one.short)}<br>{_e(one.unit)}</th>' for one in known]
    rows = [[cell("From", tag="th"), cell("measured", "number", "th"), *units, "<th></th>"]]
    for row in cast(Iterable[JsonDict], found.rows):  # whose columns are known here
        is_clipped = FAULT_NAMES[Fault.CLIP] in row["fault"].split()
        signs = [sign_of(one) if is_clipped else "" for one in known]
        left_out = [
            f"{duration(row[f'{what}_s'])} {word}"
            for what, word in (("excluded", "lost or left out"), ("paused", "paused"))
            if row[f"{what}_s"] > 0.05
        ]
        words = [*(["partial"] if row["partial"] else []), *left_out, row["fault"]]
        rows.append(
            [
                cell(clock.day_and_moment(row["time_s"])),
                cell(duration(row["measured_s"]), "number"),
                *(
                    cell(reading_text(one.name, row[one.name], sign), "number")
                    for one, sign in zip(known, signs, strict=True)
                ),
                cell("; ".join(filter(None, words)), "second"),
            ]
        )
    how = found.how[:1].upper() + found.how[1:]
    return (
        f'<h2>Intervals ({_e(clock.name)})</h2>{html_table(rows)}<p class="second">{_e(how)}.</p>\n'
    )


def _history(results: Results, clock: Clock, share: float) -> str:
    pictures = "\n".join(one.svg() for one in charts(results, clock, share))
    found = bands(results)
    if found:
        pictures += f"\n{spectrum(found)}"
    lost, measured = fault_lines(results)
    words = f"<p>Hatched, not measured: {_e('; '.join(lost))}.</p>" if lost else ""
    words += f"<p>Amber line, measured: {_e('; '.join(measured))}.</p>" if measured else ""
    none = "" if words else '<p class="second">No gaps and no faults.</p>'
    return f"<h2>History ({_e(clock.name)})</h2>\n{pictures}\n{words}{none}\n"


def _readings(
    found: dict[str, list[content.Reading]], calibrated: bool, covered: Mapping[str, str]
) -> str:
    if not found:
        return ""
    rows: list[Sequence[str]] = []
    for title, group in found.items():
        doubtful = not calibrated and any(one.in_pascal for one in group)
        doubt = ' <span class="doubt">not calibrated</span>' if doubtful else ""
        words = f"{_e(title)}{doubt} <span>({_e(covered[title])})</span>"
        rows.append([f'<th colspan="8">{words}</th>'])
        half = (len(group) + 1) // 2
        for at in range(half):
            pair = [group[at], *group[at + half : at + half + 1]]
            cells = [part for one in pair for part in _reading_cells(one)]
            rows.append([*cells, *["<td></td>"] * (8 - len(cells))])
    return f"<h2>Readings</h2>{html_table(rows, 'lines tight')}\n"


def _reading_cells(one: content.Reading) -> list[str]:
    words = f"{one.about} ({one.band})" if one.band else one.about
    value, unit = cell(one.value, "number"), cell(one.unit, "name")
    return [cell(one.symbol, "name"), value, unit, cell(words, "second")]


def _happened(results: Results, clock: Clock) -> str:
    lines, more = happened(results, clock)
    if not lines:
        return ""
    rest = f'<p class="second">and {counted(more, "more mark")} in the log</p>' if more else ""
    first = '<td width="14%" style="white-space: nowrap">'
    rows = [[f"{first}{_e(at)}</td>", cell(what)] for at, what in lines]
    return f"<h2>What happened</h2>{html_table(rows, '')}{rest}\n"


def _small(results: Results) -> str:
    words = "; ".join(f"{name}: {value}" for name, value in content.settings(results))
    parts = [
        *content.methods(results),
        f"Settings: {words}.",
        f"Measured by {content.program(results)}; {results.name}; report of {utc_now()}.",
    ]
    return f'<p class="foot">{_e(" ".join(parts))}</p>\n'
