"""The options of commands that read logs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from amt_stream.cli.options.arguments import LAYOUT_OF_EACH, MOMENTS, hours
from amt_stream.cli.options.parser import Options
from amt_stream.core.clock import Moment, moment
from amt_stream.core.values import Choice, Number
from amt_stream.meters.output_settings import CsvSettings, ReportSettings
from amt_stream.meters.setting import changed, setting, switch
from amt_stream.meters.specification import (
    LENGTHS,
    CalibrationSettings,
    LiveInputSettings,
    RowSettings,
    parse_models,
)


@dataclass(frozen=True)
class RunNumber(Options):
    """Which run of a log."""

    run: int | None = setting(
        "--run N",
        "run of the log, counted from 1",
        Number(1, 1e6, "runs", whole=True),
        usual="the last",
    )


@dataclass(frozen=True)
class ReplayOptions(RunNumber):
    session: str = setting("SESSION", "the folder of a log with sound", default="")


@dataclass(frozen=True)
class MarkOptions(Options):
    session: str = setting("LOG", "the folder of the log", default="")
    text: str = setting("TEXT", "what happened, such as 'door slams'", default="")


@dataclass(frozen=True)
class VerifyOptions(Options):
    session: str = setting("SESSION", "the folder of the log", default="")
    head: str | None = setting(
        "--head HASH", "check that the session still has this hash, noted as its last one earlier"
    )
    sign: str | None = setting(
        "--sign KEY.pem", "sign the last hash of an intact session with an Ed25519 private key"
    )
    public_key: str | None = setting(
        "--public-key KEY.pem", "check the signature with this public key"
    )


@dataclass(frozen=True)
class PartOptions(Options):
    """The part of a measurement, its intervals and their time zone."""

    begin: Moment | None = setting("--from WHEN", f"start at: {MOMENTS}", parse=moment)
    end: Moment | None = setting("--to WHEN", f"end at: {MOMENTS}", parse=moment)
    interval: int | None = changed(
        RowSettings, "interval", about=f"add a table of readings by interval: {LENGTHS}"
    )
    zone: Any = changed(
        RowSettings,
        "zone",
        about="time zone of all times, such as Europe/Berlin or UTC",
        usual="the log's, or this computer's",
    )


@dataclass(frozen=True)
class ReportOptions(PartOptions, RunNumber, ReportSettings):
    sessions: Sequence[str] = setting(
        "LOG",
        "the folder of a log, or a file of rows (.csv, .jsonl ...); several are compared in a "
        "table, and each has a page",
        default=(),
        nargs="+",
    )
    out: str | None = setting(
        "--out FILE",
        "file to write: .html, self-contained, or .pdf, which needs the extra `app`",
        usual="LOG-report.html",
    )
    force: bool = switch("--force", "overwrite an existing file")
    microphone: str | None = setting(
        "--microphone NAME", "which of several microphones that were measured separately"
    )
    exclude: Sequence[str] = setting(
        "--exclude TEXT",
        "leave a span out of all readings and limits, and say so: the text of two marks that "
        "enclose it (or TEXT begin, TEXT end), the name of a sound event, or two times, as "
        "22:00..22:05. May be repeated",
        default=(),
        action="append",
    )
    title: str = setting("--title TEXT", "title of the page", default="", usual="Sound measurement")
    place: str = setting("--place TEXT", "place of the measurement", default="")
    client: str = setting("--client TEXT", "client of the measurement", default="")
    engineer: str = setting("--engineer TEXT", "who measured", default="")
    note: str = setting("--note TEXT", "further remarks", default="")
    preset: str | None = setting(
        "--preset NAME|PATH", "a preset whose table [report] has paper, company and logo"
    )


@dataclass(frozen=True)
class CompareOptions(PartOptions, CalibrationSettings):
    a: str = setting(
        "A", "a log, a file of rows (.csv, .jsonl, .parquet), or a file of sound", default=""
    )
    b: str = setting("B", "another of these, to compare with A", default="")
    same_place: bool = switch(
        "--same-place",
        "the same microphone stood at the same place, and the sounds have similar spectra: the "
        "error of the microphone is common to both and cancels",
    )
    independent: bool = switch(
        "--independent",
        "the calibrations are independent, even if their descriptions are equal: nothing cancels",
    )
    interval: int | None = changed(
        RowSettings,
        "interval",
        about="also compare intervals of the same time of day, or of the same time since the "
        f"start: {LENGTHS}",
    )
    zone: Any = changed(
        PartOptions,
        "zone",
        about="time zone of times of day, such as Europe/Berlin or UTC",
        usual="that of each log, or this computer's",
    )
    json: bool = switch("--json", "print a JSON object")
    out: str | None = setting(
        "--out FILE",
        "write a page that shows both over time: .html, or .pdf, which needs the extra `app`",
    )
    force: bool = switch("--force", "overwrite an existing file")
    model: tuple[str, ...] | None = setting(
        "--model LIST",
        "models to run on sound files, separated by commas",
        parse=parse_models,
        usual="moore2016,spl",
    )
    layout: str | None = changed(LiveInputSettings, "layout", about=LAYOUT_OF_EACH)


PENALTY = Number(0, 30, "dB")


@dataclass(frozen=True)
class Bs4142Options(Options):
    session: str = setting(
        "LOG", "the folder of a log, or a file of rows, of the sound", default=""
    )
    background: str | None = setting(
        "--background LOG", "that of the place without the sound", usual="the same"
    )
    begin: Moment | None = changed(PartOptions, "begin", about=f"with the sound from: {MOMENTS}")
    end: Moment | None = changed(PartOptions, "end", about="with the sound until")
    background_begin: Moment | None = setting(
        "--background-from WHEN", "without the sound from", parse=moment
    )
    background_end: Moment | None = setting(
        "--background-to WHEN", "without the sound until", parse=moment
    )
    tonal: float = setting("--tonal DB", "penalty for tones", PENALTY, default=0.0)
    impulsive: float = setting("--impulsive DB", "penalty for impulses", PENALTY, default=0.0)
    intermittent: float = setting(
        "--intermittent DB", "penalty for a sound that comes and goes", PENALTY, default=0.0
    )
    other: float = setting("--other DB", "penalty for another character", PENALTY, default=0.0)
    zone: Any = changed(PartOptions, "zone", about="time zone, such as Europe/Berlin or UTC")
    microphone: str | None = changed(ReportOptions, "microphone")
    format: str = setting(
        "--format", "format (default: text)", Choice(("text", "json")), default="text"
    )


@dataclass(frozen=True)
class LdenOptions(Options):
    paths: Sequence[str] = setting(
        "LOG",
        "the folder of a log, a folder of logs, or a file of rows, all from one place",
        default=(),
        nargs="+",
    )
    hours: Any = setting(
        "--hours NAME|LIST",
        "when day, evening and night begin: eu (default; 2002/49/EC), at, de, dk, fi, fr, it, pl, "
        "pt, se, or us for Ldn; or hours, 7,19,22, or 7,22 without an evening",
        default=None,
        parse=hours,
    )
    zone: Any = changed(PartOptions, "zone", about="time zone, such as Europe/Berlin or UTC")
    rating: bool = switch(
        "--rating", "of rating levels, with the adjustments of each interval, instead of LAeq"
    )
    microphone: str | None = changed(ReportOptions, "microphone")
    format: str = setting(
        "--format",
        "format of the levels (default: text)",
        Choice(("text", "csv", "json")),
        default="text",
    )
    csv_dialect: str = changed(CsvSettings, "csv_dialect")
