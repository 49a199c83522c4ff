"""The page of a comparison."""

from amt_stream import __version__
from amt_stream.meters.calibration import utc_now
from amt_stream.sessions.compare.difference import Comparison, Course
from amt_stream.sessions.compare.reading_difference import Difference
from amt_stream.sessions.report.chart import Chart
from amt_stream.sessions.report.content import calibration, device, methods, when
from amt_stream.sessions.report.curves import Curve, Numbers, drawn, summed_up
from amt_stream.sessions.report.page import PARTS, cell, escaped, heads, html, html_table
from amt_stream.sessions.report.times import Clock

HEADS = ("", "A", "B", "B - A", "±", "", "", "")
BOTH, APART = 150.0, 110.0
"""Heights of charts."""


def comparison_page(comparison: Comparison) -> str:
    """The differences between A and B, overall and over time, as self-contained HTML."""
    title = "Two measurements compared"
    body = [
        f"<h1>{escaped(title)}</h1>\n",
        _whole(comparison),
        _differences(comparison),
        *(_course(comparison, name) for name in _drawn(comparison)),
        _foot(comparison),
    ]
    return html(f"{title}: {comparison.a.name}, {comparison.b.name}", "".join(body))


def _whole(comparison: Comparison) -> str:
    """Names and facts of both."""
    rows = []
    for side, results in (("A", comparison.a), ("B", comparison.b)):
        facts = [*when(results, Clock.of(results)), *device(results), *calibration(results)]
        words = "<br>".join(f"{escaped(name)}: {escaped(value)}" for name, value in facts)
        rows.append(
            f'<td width="50%"><b>{side}: {escaped(results.name)}</b><br>'
            f'<span class="second">{words}</span></td>'
        )
    return f"<table><tr>{''.join(rows)}</tr></table>\n"


def _differences(comparison: Comparison) -> str:
    rows = [heads(HEADS, "number"), *map(_cells, comparison.differences)]
    notes = [f"{comparison.why} (k = 2)"]
    if comparison.same_place:
        notes.append(
            "the microphone was at the same place, with similar spectra: its error cancels"
        )
    remarks = escaped("; ".join([*notes, comparison.repeats.replace("+-", "±"), *comparison.notes]))
    return f"<h2>B compared with A</h2>{html_table(rows, 'lines tight')}<p>{remarks}.</p>\n"


def _cells(one: Difference) -> list[str]:
    doubt = "?" if one.uncertainty is None else f"{one.uncertainty:.2f}"
    numbers = (*one.numbers(), doubt)
    aligned = [cell(number, "number") for number in numbers]
    rest = cell(one.unit, "name"), cell(one.verdict), cell(one.words, "second")
    return [cell(one.symbol, "name"), *aligned, *rest]


def _drawn(comparison: Comparison) -> list[str]:
    """The main common reading of each unit."""
    columns = [comparison.a.columns[name] for name in comparison.names]
    return [names[-1] for names in drawn(columns, ()).values()]


def _course(comparison: Comparison, name: str) -> str:
    course = comparison.course(name)
    if len(course.time_s) < 2:
        return ""
    end_s, clock = float(course.time_s[-1]), Clock(None)
    a = _curve(f"A: {comparison.a.name}", course.time_s, course.a, True)
    b = _curve(f"B: {comparison.b.name}", course.time_s, course.b, True)
    both = Chart(course.unit, [a, b], clock, 0.0, end_s, height=BOTH, times=False)
    apart = Chart(
        course.unit,
        [_curve("B - A", course.time_s, course.difference, True)],
        clock,
        0.0,
        end_s,
        band=_band(course),
        height=APART,
        zero=True,
    )
    title = f"{comparison.a.columns[name].short} since the start of each"
    return f"<h2>{escaped(title)}</h2>\n{both.svg()}\n{apart.svg()}\n"


def _band(course: Course) -> tuple[Curve, Curve] | None:
    if course.low is None or course.high is None:
        return None
    low, high = (_curve("", course.time_s, edge, False) for edge in (course.low, course.high))
    return low, high


def _curve(words: str, time_s: Numbers, values: Numbers, strong: bool) -> Curve:
    return Curve(words, words, words, *summed_up(time_s, values, PARTS), strong)


def _foot(comparison: Comparison) -> str:
    used = dict.fromkeys([*methods(comparison.a), *methods(comparison.b)])
    words = f"{' '.join(used)} Compared by amt_stream {__version__}; {utc_now()}."
    return f'<p class="foot">{escaped(words)}</p>\n'
