"""The content of a report as text: facts, readings, limits and events."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC

from amt_stream.core.json_types import JsonMap
from amt_stream.core.safe_text import brief
from amt_stream.core.words import counted
from amt_stream.dsp.channel_layout import Layout
from amt_stream.meters import catalog
from amt_stream.meters.audience import as_audience
from amt_stream.meters.calibration import COVERAGE
from amt_stream.meters.rows import Column, reading_text
from amt_stream.meters.rows.captions import sign_of
from amt_stream.meters.rows.limit_words import PROJECTED, window_words, worst_words
from amt_stream.sessions.report.coverage import COMPLETE, covered, has_clipped
from amt_stream.sessions.report.curves import words_of
from amt_stream.sessions.report.times import Clock, duration, elapsed, zone_words
from amt_stream.sessions.results import Results
from amt_stream.sessions.results.parts import PartsOfRows

FIRST = ("laeq_db", "max_ltl_phon", "integrated_lufs", "zwicker_n5_sone", "gm2002_max_ltl_phon")
THEN = ("laeq_audience_db", "lafmax_db", "ltl_n5_phon", "lcpeak_db", "true_peak_dbtp", "lra_lu")
"""Readings shown first: one of each model, then these."""

EVERY = 1000
MOST_LARGE, MOST_READINGS, MOST_TOLD = 3, 18, 4
"""Largest number of readings on one page."""

SAYS_LAYOUT = {
    "source": "as the source says",
    "user": "as the user says",
    "usual": "the usual layout of so many channels, as the source does not say",
}
"""Who says what the channels are for, by the origin of a layout."""

EXPOSURE_S = 8 * 3600.0
"""The time to which an exposure level refers."""

RISE = (
    "percentiles, means and minima leave out the rise from silence, while it is lower than all "
    "later values"
)

Facts = list[tuple[str, str]]


@dataclass(frozen=True)
class About:
    """Details of a measurement that the user gives."""

    title: str = ""
    place: str = ""
    client: str = ""
    engineer: str = ""
    note: str = ""
    company: str = ""
    logo: str = ""
    """Its logo: the path of a PNG, JPEG or SVG file."""

    @property
    def facts(self) -> Facts:
        """Place, client, engineer and note, as far as they are known."""
        names = ("place", "client", "engineer", "note")
        return [(name.capitalize(), value) for name in names if (value := getattr(self, name))]


@dataclass(frozen=True)
class Reading:
    """A reading of the whole sound.

    symbol: short name, such as LAeq
    words: description
    measured: how much of a window that is not complete was measured, or ""
    covered: how much of the measurement a statistic covers, if that is not all of it, or ""
    value, unit: as text; `number` is the value itself
    band: uncertainty band as text, or ""
    in_pascal: whether it needs a calibration
    sign: before a value that includes clipped sound, or ""
    """

    name: str
    symbol: str
    words: str
    value: str
    unit: str
    number: float | None = None
    band: str = ""
    in_pascal: bool = True
    measured: str = ""
    covered: str = ""
    sign: str = ""

    @property
    def about(self) -> str:
        """The description, with how much of an incomplete window was measured."""
        return f"{self.words}; {self.measured}" if self.measured else self.words


def readings(results: Results, most: int = MOST_READINGS) -> dict[str, list[Reading]]:
    """The main readings, at most `most`, by the title of their model."""
    values, parts = _values(results), PartsOfRows(results)
    limited = {one["column"] for one in results.header.get("limits", ())}
    found: dict[str, list[Reading]] = {}
    for model in results.header["models"]:
        name = model["name"]
        own = {n: c for n, c in results.columns.items() if c.model == name}
        main: dict[str, Column] = {}
        if name in results.models:
            of_model = results.models[name]
            main = {c.name: c for n in of_model.headlines for c in of_model.matching(n)}
        usual = own.keys() & {*main, *limited}
        kept = {n: c for n, c in own.items() if n in values and (n in usual or _of_all(c))}
        entry = catalog.entries().get(name)
        made = [_reading(parts, one, values) for one in ({**main, **kept}).values()]
        title = name if entry is None else entry.title
        found[title] = [one for one in made if one.value != "---"]
    each = max(2, most // max(1, len(found)))
    return {
        title: sorted(made, key=lambda one: one.name not in (*FIRST, *THEN))[:each]
        for title, made in found.items()
        if made
    }


def readings_by_name(results: Results) -> dict[str, Reading]:
    """All readings that `readings` chooses from, by name."""
    return {one.name: one for group in readings(results, EVERY).values() for one in group}


def _of_all(column: Column) -> bool:
    """Whether a column is a statistic of the whole sound, of both channels together."""
    return column.counted and not (column.side or column.bound_of or column.band_hz)


def _values(results: Results) -> dict[str, float | None]:
    """Readings of the whole sound by name: from the summary, or else from the last row."""
    values = results.summary or results.last
    return {n: v for n, v in values.items() if isinstance(v, (int, float)) and type(v) is not bool}


def _reading(parts: PartsOfRows, column: Column, values: Mapping[str, float | None]) -> Reading:
    name, pascal = column.name, catalog.is_in_pascal(column.model)
    sign = sign_of(column) if has_clipped(parts, column) else ""
    number, band = values.get(name), "" if sign else _band(parts, name, values)
    value, words = reading_text(name, number, sign), words_of(column)
    times = _measured(parts, column), covered(parts, column)
    return Reading(
        name, column.short, words, value, column.unit, number, band, pascal, *times, sign
    )


def _measured(parts: PartsOfRows, column: Column) -> str:
    """How much of the window of a reading was measured, if it is not complete."""
    projected = column.statistic == "exposure"
    window_s = EXPOSURE_S if projected else column.window_s
    if not window_s:
        return ""
    begin_s, end_s = parts.results.begin_s, parts.results.duration_s
    measured_s = parts.measured_s(max(begin_s, end_s - window_s), end_s, column.model)
    if measured_s > COMPLETE * window_s:
        return ""
    if projected:
        return f"projected from {duration(measured_s)} measured, {PROJECTED}"
    return f"only {duration(measured_s)} measured, not projected"


def _band(parts: PartsOfRows, name: str, values: Mapping[str, float | None]) -> str:
    """The uncertainty band of a loudness as text, or ""."""
    edges = [one.name for one in parts.results.known.values() if one.bound_of == name]
    if not edges or any(values.get(edge) is None for edge in edges):
        return ""
    return " to ".join(reading_text(edge, values[edge]) for edge in edges)


def large(results: Results) -> list[Reading]:
    """The few readings in large type."""
    every = readings_by_name(results)
    order = [name for name in (*FIRST, *THEN) if name in every]
    return [every[name] for name in [*dict.fromkeys([*order, *every])][:MOST_LARGE]]


def when(results: Results, clock: Clock) -> Facts:
    """Time and duration of the measurement."""
    begin, end = clock.at(results.begin_s), clock.at(results.duration_s)
    long = duration(results.duration_s - results.begin_s)
    part = [] if results.part is None else [("Part", _part(results))]
    if begin is None or end is None:
        return [("Measured", long), ("Began", "unknown: sound file"), *part]
    same = begin.date() == end.date()
    utc = f"{begin.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
    local = f"{begin:%d %B %Y, %H:%M:%S}".lstrip("0")
    until = f"{end:%H:%M:%S}" if same else f"{end:%d %B %Y, %H:%M:%S}".lstrip("0")
    zone = zone_words(begin)
    if zone_words(end) != zone:
        until = f"{until} ({zone_words(end)})"
    if clock.sound is not None and len(clock.sound.set_s):
        long = f"{long}, in which the clock was set or the computer slept"
    return [
        ("Began", f"{local} ({zone})" if zone == "UTC" else f"{local} ({zone}; {utc})"),
        ("Ended", f"{until}, after {long}{_open(results)}"),
        *part,
    ]


def _part(results: Results) -> str:
    """The bounds of a part, and the source of its readings."""
    return (
        f"{elapsed(results.begin_s)} to {elapsed(results.duration_s)} of a longer measurement; its "
        f"readings are made from rows every {results.header['step_ms']:g} ms"
    )


def exclusions(results: Results, clock: Clock) -> Facts:
    """The spans that the user excluded, and the readings that are unknown without them."""
    if not results.excluded:
        return []
    spans = [
        f"{one.text}: {clock.moment(one.begin_s)} to {clock.moment(one.end_s)}, "
        f"{duration(one.end_s - one.begin_s)}"
        for one in results.excluded
    ]
    how = f"Readings and limits are without it, from rows every {results.header['step_ms']:g} ms"
    statistics = [column for column in results.columns.values() if _of_all(column)]
    unknown = [one.short for one in statistics if results.summary.get(one.name) is None]
    how += f"; not known without it: {', '.join(unknown)}" if unknown else ""
    return [("Excluded", "\n".join([*spans, f"{how}."]))]


def _open(results: Results) -> str:
    """A note for a log without a summary."""
    if results.summary or not results.settings:
        return ""
    return "; incomplete: it was interrupted or is still running"


def integrity(results: Results) -> Facts:
    """Whether a log is unchanged; nothing for other results."""
    proof = results.proof
    if proof is None:
        return []
    faults = [*proof.edited, *proof.missing]
    hashed = f"{proof.parts} closed part{'s' if proof.parts != 1 else ''}"
    head = f", last hash {proof.head}" if proof.head else ""
    words = f"intact: {hashed} as written{head}"
    if faults:
        kind = "edited" if proof.edited else "incomplete"
        more = f"; and {len(faults) - MOST_TOLD} more" if len(faults) > MOST_TOLD else ""
        words = f"{kind}: {'; '.join(map(brief, faults[:MOST_TOLD]))}{more}{head}"
    if proof.removed:
        files = counted(len(proof.removed), "older file")
        words += f"; {files} removed by the meter, as it was asked to"
    if proof.open:
        why = "a meter is writing it" if proof.running else "the run was interrupted"
        words += f". No hash covers {', '.join(map(brief, proof.open[:MOST_TOLD]))}: {why}"
    return [("Log", words)]


def device(results: Results) -> Facts:
    """Source and device of the sound, and the station, if it has a name."""
    source = results.header["source"]
    kind = str(results.settings.get("source", {}).get("kind", ""))
    what = "File" if kind == "FileSource" or not results.settings else "Input"
    channels = source["channels"]
    numbers = ", ".join(map(str, channels))
    many = f"channel{'s' if len(channels) > 1 else ''} {numbers}, {source['fs'] / 1000:g} kHz"
    host = f" (computer {results.header['host']})" if "host" in results.header else ""
    found = [(what, f"{source['name']}, {many}{host}")]
    if sound := source.get("sound", {}):
        known = sound.get("encoding"), results.summary.get("sound", sound).get("length")
        found += [("Encoding", "; ".join(str(one) for one in known if one))] if any(known) else []
    if "layout" in source:
        layout = Layout.from_dict(source["layout"])
        if layout.said or layout.channels > 2:
            found.append(("Channels", f"{layout}, {SAYS_LAYOUT[layout.origin]}"))
    if "station" in results.header:
        labels = results.header.get("labels", {})
        words = [str(results.header["station"]), *(f"{k} {v}" for k, v in labels.items())]
        found.append(("Station", ", ".join(words)))
    return found


def calibration(results: Results) -> Facts:
    """The calibration of each channel: level, uncertainty, date and origin."""
    channels_of: dict[str, list[int]] = {}
    for one in results.header["calibration"]:
        channels_of.setdefault(_calibration(one), []).append(one["channel"])
    several = len(channels_of) > 1
    words = [
        f"channel {', '.join(map(str, of))}: {text}" if several else text
        for text, of in channels_of.items()
    ]
    return [("Calibration", "; ".join(words)), *_audience(results)]


def _audience(results: Results) -> Facts:
    """The correction from the microphone to the audience, if there is one."""
    audience = as_audience(results.header.get("audience"))
    if audience is None:
        return []
    return [("Audience", f"levels in the audience are those at the microphone {audience.words}")]


def _calibration(one: JsonMap) -> str:
    level = f"{one['full_scale_db_spl']:.2f} dB SPL"
    if not one["calibrated"]:
        return f"NONE. All levels and loudness assume that a full-scale sine has {level}"
    doubt, own = one["uncertainty_db"], one["calibration_uncertainty_db"]
    sure = "uncertainty unknown"
    if doubt is not None and own is not None:
        sure = (
            f"uncertainty {doubt:.1f} dB (k = {COVERAGE}: calibration {own:g} dB, microphone "
            f"{one['microphone_uncertainty_db']:g} dB)"
        )
    date = one.get("date")
    of = f"{one.get('origin') or 'origin unknown'}{f', {date}' if date else ', no date'}"
    response = one.get("correction")
    off = "" if not response else f"; response of the microphone compensated: {response['name']}"
    return f"full-scale sine = {level}, {sure}; {of}{off}"


def uncertainty(results: Results) -> str:
    """The uncertainty of levels as text; "" if unknown."""
    known = [one["uncertainty_db"] for one in results.header["calibration"]]
    if not known or None in known:
        return ""
    return f"± {max(known):.1f} dB (k = {COVERAGE})"


def methods(results: Results) -> list[str]:
    """A sentence for each model about its method."""
    return [_method(one["name"]) for one in results.header["models"]]


def _method(name: str) -> str:
    entry = catalog.entries().get(name)
    if entry is None:
        return f"{name}: a model without a description in this program."
    what, _, source = entry.method.partition(": ")
    source = source.replace(", the method of ", ", ").partition("; ")[0]
    return f"{entry.title} ({what}) implements the method of {source}."


def settings(results: Results) -> Facts:
    found: Facts = []
    for model in results.header["models"]:
        given = [f"{key} {_word(value)}" for key, value in model.items() if key != "name" and value]
        found.append((model["name"], ", ".join(given) or "as shipped"))
    counted = results.header["statistics"].values()
    from_s = min(one["from_s"] for one in counted)
    found.append(("rows", f"every {results.header['step_ms']:g} ms"))
    covered = f"from {from_s:g} s on"
    if any("rise_s" in one for one in counted):
        covered += f"; {RISE}"
    found.append(("statistics", covered))
    return found


def _word(value: object) -> str:
    """The value of a setting; of channels their numbers."""
    return " and ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def program(results: Results) -> str:
    header = results.header
    versions = results.settings.get("versions", {})
    on = f" on {versions['platform']}" if "platform" in versions else ""
    return f"{header.get('program', 'a program')} {header.get('version', '')}{on}"


@dataclass(frozen=True)
class LimitLine:
    """The result of a limit: its description, `verdict` (of VERDICTS) and details."""

    words: str
    verdict: str
    worst: str
    over: str
    source: str = ""


def limit_lines(results: Results, clock: Clock) -> list[LimitLine]:
    return [_limit_line(one, results.columns[one["column"]], clock) for one in results.limits]


def _limit_line(one: JsonMap, column: Column, clock: Clock) -> LimitLine:
    side, unit = "above" if "above" in one else "below", column.unit
    words = f"{column.short} not {side} {one[side]:g} {unit}"
    if from_s := one.get("judged_from_s"):
        words += f", judged from {clock.moment(from_s)} on"
    verdict, worst = str(one["verdict"]), ""
    if one["worst"] is not None:
        worst = f"{worst_words(one)} {unit}"
        if one["whole"]:
            worst += f" at {clock.moment(one['worst_s'])}"
        else:
            worst += f" so far, {window_words(one)}"
    over = ""
    if one["red_s"] > 0:
        over = f"{duration(one['red_s'])}, {one['times']} time{'s' if one['times'] != 1 else ''}"
    return LimitLine(words, verdict, worst, over, str(one.get("source", "")))
