"""The settings of what is written and judged: limits, events, logs, reports, forms of CSV."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from amt_stream.core import values
from amt_stream.core.formats import LOG_FORMATS, PAPERS, SOUND_FORMATS, LogFormat, SoundFormat
from amt_stream.core.tables import DIALECTS, CsvDialect
from amt_stream.meters import triggers
from amt_stream.meters.audience import MOST_DB, Audience, as_audience
from amt_stream.meters.norms import shipped_norms
from amt_stream.meters.setting import setting, switch

EXCEEDED = 4
"""The exit status of --fail-above if a limit was exceeded."""

OR_ANEW = "or-anew"
"""The value of --restore that begins a new run if the last one cannot be continued."""


@dataclass(frozen=True)
class CsvSettings:
    """Forms of CSV for spreadsheets."""

    heading: ClassVar = "CSV"

    csv_dialect: str = setting(
        "--csv-dialect",
        "form of CSV: plain, with commas and decimal points; excel, the same with a mark by which "
        "Excel knows UTF-8; excel-de, with semicolons and decimal commas too, as Excel expects in "
        "German and most languages of Europe",
        values.Choice(tuple(DIALECTS)),
        default="plain",
        usual="plain",
    )

    no_header: bool = switch(
        "--no-header",
        "begin CSV with the column names, for spreadsheets; the header goes to standard error as a "
        "line of JSON",
    )
    local_time: bool = switch(
        "--local-time",
        "add a column local_time to CSV, in the zone of --zone and in a form that spreadsheets "
        "read: 2026-11-22 14:00:00.250",
    )

    @property
    def dialect(self) -> CsvDialect:
        """The form of CSV."""
        return DIALECTS[self.csv_dialect]


@dataclass(frozen=True)
class LimitSettings:
    """Upper or lower limits of columns."""

    heading: ClassVar = "limits"

    limit: Sequence[str] = setting(
        "--limit --limits NORM|'COLUMN>VALUE'",
        lambda: (
            f"limits of columns: one or more of {', '.join(shipped_norms())}; a TOML file; or text "
            "such as 'laeq_15min_db>100,amber=97,hysteresis=1,hold=2' (< for a lower limit). May "
            "be repeated. Rows have the state of each limit: green, amber or red. Without --model "
            "and --preset, the models that the columns need are run"
        ),
        values.LimitTables(),
        default=(),
        key="limits",
        page="rows.md#limits",
        action="append",
    )
    audience: Audience | None = setting(
        "--audience DB[,DB]",
        "how much louder it is in the audience than at the microphone: the difference of "
        "A-weighted levels, or those of A and C as 4.2,6. Rows have levels in the audience "
        "besides, named ..._audience_db, and limits of levels are of these",
        values.AudienceTable(MOST_DB),
        parse=as_audience,
        key="meter.audience",
        page="rows.md#levels-in-the-audience",
    )
    fail_above: bool = switch(
        "--fail-above",
        f"end with status {EXCEEDED} if a limit was exceeded, and with 1 if the state of one was "
        "never known",
    )


def _seconds_of_sound(
    flag: str, about: str, least: float, usual: float, most: float = 86400
) -> Any:
    """A setting of the sound that `event_folder` stores."""
    seconds = values.Number(least, most, "seconds")
    return setting(flag, about, seconds, usual=f"{usual:g}", needs="event_folder")


@dataclass(frozen=True)
class EventSettings:
    """When a sound event begins, and what is stored of it."""

    heading: ClassVar = "events of sound"

    event: Sequence[triggers.Trigger] = setting(
        "--event 'COLUMN>VALUE'",
        "report when a sound begins and ends: 'laf_db>85'; 'stl_phon>background+15', relative to "
        "the value exceeded for 90 % of the last 5 minutes; or limits, while one is red. The event "
        f"ends once the value stays {triggers.HYSTERESIS:g} below for {triggers.HOLD_S:g} s; set "
        "other values with 'laf_db>85,hysteresis=6,hold=3'. With for=2, events last at least 2 s. "
        "May be repeated",
        values.EventTables(),
        default=(),
        parse=triggers.trigger_from_text,
        key="events",
        page="events.md",
        action="append",
    )
    event_folder: str | None = setting(
        "--event-folder PATH",
        "hold the latest sound in memory, and write a sound file of each event to this folder, and "
        "of each request by the command replay or the key i",
        parse=values.parse_path,
        lack="sound files: add --event-folder PATH",
    )
    keep_sound: float | None = _seconds_of_sound(
        "--keep-sound S", "seconds of sound held in memory", 1, triggers.KEPT_S, most=600
    )
    event_before: float | None = _seconds_of_sound(
        "--event-before S", "seconds of sound before an event in its file", 0, triggers.BEFORE_S
    )
    event_after: float | None = _seconds_of_sound(
        "--event-after S", "seconds of sound after an event in its file", 0, triggers.AFTER_S
    )
    event_longest: float | None = _seconds_of_sound(
        "--event-longest S",
        "longest part of one event that is stored, in seconds",
        1,
        triggers.LONGEST_S,
    )


@dataclass(frozen=True)
class LogSettings:
    """The session folder for rows, events and sound."""

    heading: ClassVar = "log"

    log: str | None = setting(
        "--log PATH",
        "log rows and events in this session folder: a new one, or one to continue. Without "
        "--model and --preset, sound levels (spl) are measured too",
        lack="a log: add --log PATH",
    )
    log_format: LogFormat | None = setting(
        "--log-format",
        f"format of its rows (default: {LOG_FORMATS[0]}, which other programs can read while it "
        "grows); csv, jsonl and parquet (extra data) begin a file each hour",
        values.Choice(LOG_FORMATS),
        needs="log",
    )
    log_sound: SoundFormat | None = setting(
        "--log-sound",
        f"record the sound in the log too, in hourly files: {SOUND_FORMATS[0]} (default; 24 bits), "
        "or wav (32-bit float, exactly the samples measured)",
        values.Choice(SOUND_FORMATS),
        nargs="?",
        const=SOUND_FORMATS[0],
        needs="log",
    )
    restore: bool | str = setting(
        "--restore",
        "continue the log's last run, for example after a power cut: a file continues at that "
        "place; with a microphone, the time between is a gap, and averages continue. A log without "
        "a run begins one. If the settings have changed, the command refuses, or with "
        f"{OR_ANEW} begins a new run",
        values.Choice((OR_ANEW,)),
        default=False,
        nargs="?",
        const=True,
        needs="log",
    )
    keep_days: float | None = setting(
        "--keep-days DAYS",
        "remove hourly files of the log that are older than this",
        values.Number(0.05, 36525, "days"),
        usual="keep all",
        needs="log",
    )
    keep_size: int | None = setting(
        "--keep-size SIZE",
        "remove the oldest hourly files of the log, those of sound first, while it is larger than "
        "this, such as 500MB or 1.5TB",
        parse=values.parse_size,
        usual="keep all",
        needs="log",
    )


@dataclass(frozen=True)
class StationSettings:
    """Settings of an unattended station."""

    run: Mapping[str, Any] = setting(
        "",
        "options of `amt-stream serve` by name",
        values.OptionTable(),
        key="run",
        page="unattended.md",
    )


@dataclass(frozen=True)
class ReportSettings:
    """The paper of a report, and who made it."""

    heading: ClassVar = "report"

    paper: str | None = setting(
        "--paper", "paper size", values.Choice(PAPERS), key="report.paper", usual=PAPERS[0]
    )
    company: str | None = setting(
        "--company TEXT", "company that measured", values.Text(), key="report.company"
    )
    logo: str | None = setting(
        "--logo FILE", "its logo: a PNG, JPEG or SVG file", values.Text(), key="report.logo"
    )
