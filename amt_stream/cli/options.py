"""The options of each command, and the parser that reads them.

The settings of a measurement come from `amt_stream.meters.specification`; further options are
declared here in the same way. The parser returns an object of the command's class.
"""

import argparse
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from difflib import get_close_matches
from typing import Any, Literal

from amt_stream.cli.messages import WrongUsage
from amt_stream.core.clock import Moment, date_and_time, moment
from amt_stream.core.errors import Refusal
from amt_stream.core.formats import FILE_FORMATS, ROW_FORMATS, WAYS
from amt_stream.core.json_types import JsonDict
from amt_stream.core.values import (
    ONE_OR_TWO,
    Choice,
    Listed,
    NamedChannels,
    Number,
    parse_channels,
    parse_channels_or_each,
    parse_microphone,
)
from amt_stream.meters import catalog
from amt_stream.meters.calibration import CALIBRATOR_UNCERTAINTY_DB, LONGEST_VALID_DAYS, VALID_DAYS
from amt_stream.meters.specification import (
    FASTEST_FS,
    LENGTHS,
    NONE,
    PCM_FS,
    SLOWEST_FS,
    CalibrationSettings,
    CorrectionSettings,
    CsvSettings,
    EventSettings,
    InputSettings,
    LimitSettings,
    LiveInputSettings,
    LogSettings,
    ModelSettings,
    ReportSettings,
    RowSettings,
    Setting,
    changed,
    parse_models,
    setting,
    settings_in,
    switch,
)
from amt_stream.service.http_endpoint import (
    INFLUX_TOKEN,
    POST_TOKEN,
    Recipient,
    influx_url,
    parse_kinds,
    parse_recipient,
)
from amt_stream.service.identity import Identity, parse_label, parse_station


class _EachMicrophone(argparse.Action):
    """Collect channels; several microphones, or a named one, are measured separately."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        typed: tuple[NamedChannels, ...] = (*getattr(namespace, "typed", ()), values)
        namespace.typed = typed
        namespace.channels = tuple(c for _, channels in typed for c in channels)
        own_name = values[0] != "+".join(map(str, values[1]))
        namespace.microphones = typed if len(typed) > 1 or own_name else ()
        if namespace.microphones and max(len(channels) for _, channels in typed) > 2:
            raise argparse.ArgumentError(self, f"of each microphone, {ONE_OR_TWO}")


def address(text: str) -> tuple[str, int]:
    """Read HOST:PORT, or [HOST]:PORT if the address has colons."""
    host, _, port = text.rpartition(":")
    bare = host.removeprefix("[").removesuffix("]")
    if not bare or (":" in bare) != (host != bare) or not port.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r}: give HOST:PORT, or [::1]:PORT")
    if len(port) > 5 or not 1 <= int(port) <= 65535:
        raise argparse.ArgumentTypeError(f"{text!r}: a port is a number from 1 to 65535")
    return bare, int(port)


Broker = tuple[str, int, bool]
"""Host, port, and whether the connection is encrypted."""


def broker(text: str) -> Broker:
    """Read [mqtt://|mqtts://]HOST[:PORT]."""
    scheme, _, place = text.rpartition("://")
    ports = {"": 1883, "mqtt": 1883, "mqtts": 8883}
    if scheme not in ports or "@" in place:
        raise argparse.ArgumentTypeError(
            "give HOST, HOST:PORT or mqtts://HOST:PORT; --mqtt-login names a file with user and "
            "password"
        )
    whole = place.removesuffix("/")
    bare = whole.endswith("]") or ":" not in whole
    host, port = address(f"{whole}:{ports[scheme]}" if bare else whole)
    return host, port, scheme == "mqtts"


def topic(text: str) -> str:
    """Read an MQTT topic, without wildcards."""
    if not text.isprintable() or set("+#") & set(text) or not all(text.split("/")):
        raise argparse.ArgumentTypeError(f"{text!r}: give words with / between, without + and #")
    return text


def origin(text: str) -> str:
    """Read the origin of a page, as browsers send it in the header Origin."""
    if not re.fullmatch(r"https?://[^/?#@\s]+|null", text.removesuffix("/")):
        raise argparse.ArgumentTypeError(
            f"{text!r}: give scheme and host of the page, such as https://example.org, or null for "
            "a file"
        )
    return text.removesuffix("/").lower()


MOMENTS = (
    "seconds or 1h30m since the start, or a clock time, 22:00 or 2026-11-20T22:00, with or without "
    "an offset such as +01:00"
)


LAYOUT_OF_EACH = (
    "what the channels of each file are for, if it does not say: a name, such as 5.1, or the "
    "position of each in order, such as 'L C R Ls Rs LFE'"
)


def _hours(text: str) -> Any:
    from amt_stream.sessions.day_levels import hours_named

    return hours_named(text)


def _row_steps() -> str:
    """The time between the rows of a file for each model, as text."""
    steps: dict[int, list[str]] = {}
    for name in catalog.names():
        steps.setdefault(catalog.entry(name).row_step_ms, []).append(name)
    listed = [f"{step} for {', '.join(names)}" for step, names in sorted(steps.items())]
    return f"{'; '.join(listed)}; the longest of these for several models"


@dataclass(frozen=True)
class Options:
    """Options of every command."""

    command: str | None = None
    list_devices: bool = False


@dataclass(frozen=True)
class ListsDevices(Options):
    """Options of commands that accept -l."""

    list_devices: bool = switch("-l --list-devices", "list the input devices and exit")


@dataclass(frozen=True)
class LiveOptions(
    LiveInputSettings,
    CalibrationSettings,
    CorrectionSettings,
    ModelSettings,
    RowSettings,
    LimitSettings,
    LogSettings,
    EventSettings,
    ListsDevices,
):
    """Options of a live measurement."""

    channels: tuple[int, ...] | None = changed(
        InputSettings,
        "channels",
        about="channels, counted from 1: one for both ears (1) or left and right (1,2), or more "
        "for programme loudness; with --source -, one number is how many there are. Repeat it for "
        "several microphones, as -c 1,2 -c 3,4 or -c desk=1,2 -c door=3: each has separate rows "
        "(with --format, or --log with --quiet)",
        parse=parse_microphone,
        option={"action": _EachMicrophone},
    )
    format: str | None = None
    terminal: bool = False
    quiet: bool = False
    web: int | None = None
    station: str | None = None
    label: Sequence[tuple[str, str]] = ()

    @property
    def identity(self) -> Identity:
        """The name and the labels of the station; of a label given twice, the last value."""
        return Identity(self.station or "", dict(self.label))


@dataclass(frozen=True)
class MeterOptions(LiveOptions, CsvSettings):
    """Options of `meter`."""

    terminal: bool = switch("--terminal", "show the meter in the terminal, not in a window")
    format: str | None = setting(
        "--format", "write rows to standard output instead of showing a meter", Choice(ROW_FORMATS)
    )
    quiet: bool = switch("--quiet", "show nothing, only write the log", needs="log")


@dataclass(frozen=True)
class MonitorOptions(MeterOptions):
    """Options of `amt-monitor`, which is `meter` in its window."""

    command: str | None = "meter"
    install_desktop: bool = switch("--install-desktop", "add it to the desktop's menu and exit")
    remove_desktop: bool = switch("--remove-desktop", "remove it from the menu and exit")


@dataclass(frozen=True)
class ServeOptions(LiveOptions):
    """Options of `serve`."""

    format: str | None = "jsonl"
    fail_above: bool = False
    station: str | None = setting(
        "--station NAME",
        "name of this station, in headers, messages, metrics and topics",
        parse=parse_station,
        lack="a name: add --station NAME",
    )
    label: Sequence[tuple[str, str]] = setting(
        "--label KEY=VALUE",
        "label of this station, such as city=Graz, wherever its name is; may be repeated",
        default=(),
        parse=parse_label,
        action="append",
        needs="station",
    )
    web: int | None = setting(
        "--web PORT",
        "serve a page with live readings, a WebSocket, /health and /metrics at this port of this "
        "computer (8765; 0 for any free port)",
        Number(0, 65535, whole=True),
        nargs="?",
        const=8765,
        lack="the page: add --web",
    )
    listen: str | None = setting(
        "--listen ADDRESS",
        "accept other computers too, at this address of this computer, or at 0.0.0.0 for all its "
        "addresses; needs a token",
        needs="web",
    )
    token_file: str | None = setting(
        "--token-file FILE",
        "file with the access token (at least 16 characters) that every connection needs",
        needs="web",
    )
    view_token_file: str | None = setting(
        "--view-token-file FILE",
        "file with a token that permits viewing but no commands; used with --token-file",
        needs="web",
    )
    allow_origin: Sequence[str] = setting(
        "--allow-origin ORIGIN",
        "accept pages of this origin too, such as https://example.org; may be repeated",
        default=(),
        parse=origin,
        action="append",
        needs="web",
    )
    share: bool = switch("--share", "print the page's address as a QR code", needs="web")
    stdio: bool = switch(
        "--stdio",
        "write messages to standard output as JSON lines, and read commands from standard input; "
        "the end of standard input ends the measurement",
    )
    udp: Sequence[tuple[str, int]] = setting(
        "--udp HOST:PORT",
        "send each message to this address as a JSON datagram; may be repeated",
        default=(),
        parse=address,
        action="append",
    )
    osc: Sequence[tuple[str, int]] = setting(
        "--osc HOST:PORT",
        "send each message to this address by Open Sound Control; may be repeated",
        default=(),
        parse=address,
        action="append",
    )
    osc_in: int | None = setting(
        "--osc-in PORT",
        "accept commands by Open Sound Control from programs on this computer",
        Number(1, 65535, whole=True),
    )
    lsl: Literal["computer", "network"] | None = setting(
        "--lsl",
        "publish Lab Streaming Layer streams to programs on this computer (extra lsl)",
        action="store_const",
        const="computer",
        lack="LSL: add --lsl or --lsl-network",
    )
    lsl_network: None = setting(
        "--lsl-network",
        "publish them to everybody on the network, as liblsl is configured",
        dest="lsl",
        action="store_const",
        const="network",
    )
    lsl_name: str | None = setting(
        "--lsl-name NAME",
        "prefix of the stream names, different for each station",
        usual="the station's name, or amt_stream",
        needs="lsl",
    )
    mqtt: Broker | Literal[""] | None = setting(
        "--mqtt BROKER",
        "publish to an MQTT broker: HOST, HOST:PORT, or mqtts://HOST:PORT for encryption "
        '("" for none, whatever the preset says)',
        parse=lambda text: text and broker(text),
        lack="MQTT: add --mqtt BROKER",
    )
    mqtt_topic: str | None = setting(
        "--mqtt-topic TOPIC",
        "prefix of the topics",
        parse=topic,
        usual="amt/ and the name of the station, or of this computer",
        needs="mqtt",
    )
    mqtt_login: str | None = setting(
        "--mqtt-login FILE",
        "file with user and password, one per line",
        usual="AMT_STREAM_MQTT_USER and AMT_STREAM_MQTT_PASSWORD in the environment, if set",
        needs="mqtt",
    )
    mqtt_every: float | None = setting(
        "--mqtt-every S",
        "seconds of sound between published rows, or 0 for every row",
        Number(0, 86400, "s"),
        usual="1",
        needs="mqtt",
    )
    mqtt_if_there: bool | None = setting(
        "--mqtt-if-there",
        "report no fault while the broker has never answered; keep trying to connect",
        action="store_const",
        const=True,
        needs="mqtt",
    )
    mqtt_commands: bool | None = setting(
        "--mqtt-commands",
        "accept commands at TOPIC/command from every client that may publish there",
        action="store_const",
        const=True,
        needs="mqtt",
    )
    mqtt_discovery: str | None = setting(
        "--mqtt-discovery TOPIC",
        'discovery prefix of Home Assistant (default: homeassistant; "" for no discovery)',
        parse=lambda text: text and topic(text),
        needs="mqtt",
    )
    influx: str | None = setting(
        "--influx URL",
        "send rows, events and states as line protocol to this address of InfluxDB or of another "
        "server that accepts it: http://HOST:8086/api/v2/write?org=ORG&bucket=BUCKET, or "
        "http://HOST:8181/api/v3/write_lp?db=DATABASE",
        parse=influx_url,
        lack="an address: add --influx URL",
    )
    influx_token: str | None = setting(
        "--influx-token FILE",
        "file with the token of that server",
        usual=f"{INFLUX_TOKEN} in the environment, if set",
        needs="influx",
    )
    post: Sequence[Recipient] = setting(
        "--post URL",
        "post each event, such as a limit that changes its state, to this URL as JSON; "
        "ntfy:https://ntfy.sh/TOPIC for a notification by ntfy; may be repeated",
        default=(),
        parse=parse_recipient,
        action="append",
        lack="a URL: add --post URL",
    )
    post_only: Sequence[str] = setting(
        "--post-only KINDS",
        "kinds of events to post, separated by commas, such as limit,lost,back",
        default=(),
        parse=parse_kinds,
        usual="all but checked and removed",
        needs="post",
    )
    post_token: str | None = setting(
        "--post-token FILE",
        "file with the token that the receiver of events needs",
        usual=f"{POST_TOKEN} in the environment, if set",
        needs="post",
    )
    check_every: float | None = setting(
        "--check-every S",
        "run the same models on a reference tone beside the measurement, at the start and every S "
        "seconds, and report what they read",
        Number(10, 1e6, "seconds"),
        usual="never; with `run` every hour",
    )


@dataclass(frozen=True)
class StationOptions(ServeOptions):
    """Options of an unattended station: those of `serve`, with other defaults."""

    check_every: float | None = changed(ServeOptions, "check_every", default=3600.0)


@dataclass(frozen=True)
class RunOptions(Options):
    """Options of `run`."""

    preset: str = setting(
        "NAME|PATH",
        "a preset with a table [run], which has options of `serve` by name, such as web = 8765",
        default="",
    )
    more: Sequence[str] = setting(
        "...",
        "further options of `serve`, which override those of the preset",
        default=(),
        nargs=argparse.REMAINDER,
    )


@dataclass(frozen=True)
class CalibrateOptions(InputSettings, CorrectionSettings, ListsDevices):
    """Options of `calibrate`."""

    level: float = setting(
        "--level DB",
        "level of the calibrator's tone in dB SPL",
        Number(40, 170, "dB SPL"),
        default=94.0,
    )
    frequency: float = setting(
        "--frequency HZ",
        "frequency of the calibrator's tone, accepted within 2 %",
        Number(50, 12000, "Hz"),
        default=1000.0,
    )
    calibrator_uncertainty: float = changed(
        CalibrationSettings,
        "calibration_uncertainty",
        about="expanded uncertainty (k = 2) of the calibrator's level, stored with the result",
        default=CALIBRATOR_UNCERTAINTY_DB,
        usual=f"{CALIBRATOR_UNCERTAINTY_DB:g}, what class 1 of IEC 60942:2017 allows",
    )
    valid_days: float | None = setting(
        "--valid-days DAYS",
        "days until the next calibration is due",
        Number(1, LONGEST_VALID_DAYS, "days"),
        usual=f"{VALID_DAYS}, an assumption",
    )
    correction: Sequence[str] | None = changed(
        CorrectionSettings,
        "correction",
        about="frequency response of the microphone, stored for the device with its calibration: "
        f"a file with lines of hertz and dB (.cal, .txt, .frd); {NONE} removes the stored one",
        usual="",
    )
    no_tone: bool = switch("--no-tone", "measure no tone, only store the correction")
    list: bool = switch(
        "--list", "list the stored calibrations, with numbers, dates and which are due, and exit"
    )
    remove: int | None = setting(
        "--remove N",
        "delete the stored calibration with this number in --list, and exit",
        Number(1, 10**6, "as in --list", whole=True),
    )
    timeout: float = setting(
        "--timeout S",
        "seconds to wait for the tone",
        Number(3, 3600, "s"),
        default=30.0,
    )
    format: str = setting(
        "--format",
        "format of the result (default: text); json gives an object for each channel",
        Choice(("text", "json")),
        default="text",
    )
    source: str | None = changed(
        InputSettings,
        "source",
        about="mic, or a recording of the calibrator: a sound file, or - for PCM",
        usual="mic",
    )


@dataclass(frozen=True)
class AnalyzeOptions(
    CalibrationSettings,
    CorrectionSettings,
    ModelSettings,
    RowSettings,
    CsvSettings,
    LimitSettings,
    Options,
):
    """Options of `analyze`."""

    files: Sequence[str] = setting(
        "FILE",
        "a sound file, a folder of them, or a pattern such as 'day/*.wav'",
        default=(),
        nargs="+",
    )
    out: str | None = setting(
        "--out PATH",
        "file for the rows, or a folder for the rows of several files; with --summary, a .json "
        "or .xlsx file for the summaries",
        usual="-, standard output",
    )
    force: bool = switch("--force", "overwrite existing output")
    resume: bool = switch(
        "--resume",
        "continue in the folder of --out after an interruption: skip finished files, and analyze "
        "the others and those that failed",
    )
    summary: bool = switch(
        "--summary",
        "write one JSON line per file instead of rows, with maxima, percentiles and other "
        "statistics of the whole sound; with --format csv, a table of those that --columns chooses",
    )
    format: str | None = setting(
        "--format",
        "format of the rows; parquet needs the extra `data`; xlsx, for intervals and summaries, "
        "the extra `excel`",
        Choice(FILE_FORMATS),
        usual="by the ending of --out, or csv",
    )
    format_typed: bool = False
    no_header: bool = changed(
        CsvSettings,
        "no_header",
        about="begin CSV with the column names, for spreadsheets; the header goes to "
        "FILE.csv.header.json beside each file, or to standard error, as a line of JSON",
    )
    step_ms: int | None = changed(RowSettings, "step_ms", usual=_row_steps)
    replace_invalid: bool = switch(
        "--replace-invalid",
        "replace NaN, infinity and samples beyond a million times full scale by 0, and report how "
        "many there were",
    )
    channels: tuple[int, ...] | str | None = changed(
        InputSettings,
        "channels",
        about="channels: 1, or 1,2, or more for programme loudness; all (or each) analyzes every "
        "channel separately",
        parse=parse_channels_or_each,
    )
    layout: str | None = changed(LiveInputSettings, "layout")
    keep_offset: bool = changed(LiveInputSettings, "keep_offset")
    jobs: int = setting(
        "--jobs N",
        "number of processes, for several files at once or for the parts of a long one",
        Number(1, 1024, "processes", whole=True),
        default=1,
    )
    progress_s: float | None = setting(
        "--progress S",
        "seconds between lines of progress on standard error",
        Number(0.1, 86400, "seconds"),
        usual="a progress bar on a terminal, otherwise a line a minute",
    )
    calibrations: str | None = setting(
        "--calibrations FILE",
        "CSV file of calibrations, with the columns file, channel and full_scale_db, or "
        "sensitivity_dbfs (the level in dBFS of a sine of 94 dB SPL); file may be a pattern, and "
        "an empty file or channel stands for all",
    )
    calibrator: str | None = setting(
        "--calibrator FILE",
        "recording of an acoustic calibrator at the same gain, with at least 3 s of its tone in "
        "each channel that is analyzed; one channel stands for all. A pattern such as "
        "'day*/tone.wav' gives a recording for each folder: each file uses the nearest",
    )
    level: float | None = changed(
        CalibrateOptions, "level", default=None, usual="94; needed for a tone of 250 Hz"
    )
    frequency: float | None = changed(
        CalibrateOptions, "frequency", default=None, usual="1000 or 250, as the recording has"
    )
    interval: int | None = changed(
        RowSettings,
        "interval",
        about=f"write statistics of each interval instead of rows: {LENGTHS}. Intervals follow the "
        "clock with --began, and otherwise the time since the start",
    )
    began: Moment | None = setting(
        "--began WHEN",
        "when the recording began, such as 2026-11-20T22:00:00, in the zone of --zone or with an "
        "offset such as +01:00",
        parse=date_and_time,
    )
    zone: Any = changed(
        RowSettings,
        "zone",
        about="time zone of intervals, --local-time and --began, such as Europe/Berlin or UTC",
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
    """Options of `replay`."""

    session: str = setting("SESSION", "the folder of a log with sound", default="")


@dataclass(frozen=True)
class MarkOptions(Options):
    """Options of `mark`."""

    session: str = setting("LOG", "the folder of the log", default="")
    text: str = setting("TEXT", "what happened, such as 'door slams'", default="")


@dataclass(frozen=True)
class VerifyOptions(Options):
    """Options of `verify`."""

    session: str = setting("SESSION", "the folder of the log", default="")
    head: str | None = setting(
        "--head HASH", "check that the session still has this hash, noted as its last one earlier"
    )
    sign: str | None = setting(
        "--sign KEY.pem",
        "sign the last hash of an intact session with an Ed25519 private key",
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
    """Options of `report`."""

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
    """Options of `compare`."""

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


@dataclass(frozen=True)
class MatchOptions(Options):
    """Options of `match`."""

    files: Sequence[str] = setting(
        "FILE",
        "files of sound: the reference, then those that are made as loud",
        default=(),
        nargs="+",
    )
    by: str = setting(
        "--by MEASURE",
        "the measure of loudness: ltl, the highest long-term loudness (Moore et al. 2016, the "
        "default); zwicker, N5 (ISO 532-1); ecma, the power mean (ECMA-418-2); lufs, integrated "
        "(BS.1770); or laeq",
        Choice(("ltl", "zwicker", "ecma", "lufs", "laeq")),
        default="ltl",
    )
    channels: tuple[int, ...] | None = changed(
        InputSettings,
        "channels",
        about="channels of each file: 1, or 1,2; or more, with --by lufs",
        parse=parse_channels,
    )
    layout: str | None = changed(LiveInputSettings, "layout", about=LAYOUT_OF_EACH)
    full_scale_db: float | None = changed(CalibrationSettings, "full_scale_db")
    field: str | None = changed(ModelSettings, "field", usual="free")
    out: str | None = setting(
        "--out FOLDER",
        "also write the sounds with their gains, the reference unchanged, as 32-bit float WAV",
    )
    force: bool = switch("--force", "overwrite existing files")
    json: bool = switch("--json", "print a JSON object")


@dataclass(frozen=True)
class ExplainOptions(Options):
    """Options of `explain`."""

    file: str = setting("FILE", "a file of sound of 1 s or more", default="")
    channels: tuple[int, ...] | None = changed(
        InputSettings, "channels", about="one or two channels of the file: 1, or 1,2"
    )
    layout: str | None = changed(LiveInputSettings, "layout")
    bands: str = setting(
        "--bands WIDTH",
        "width of the bands: octaves (default) or thirds of an octave",
        Choice(("octave", "third")),
        default="octave",
    )
    lowest_hz: float = setting(
        "--lowest-hz HZ",
        "middle of the lowest band, which has all lower frequencies too",
        Number(31.5, 16000, "Hz"),
        default=31.5,
    )
    highest_hz: float = setting(
        "--highest-hz HZ",
        "middle of the highest band, which has all higher frequencies too",
        Number(31.5, 16000, "Hz"),
        default=16000.0,
    )
    full_scale_db: float | None = changed(CalibrationSettings, "full_scale_db")
    field: str = setting(
        "--field NAME",
        "sound field at the microphone: free (default) or diffuse",
        Choice(("free", "diffuse")),
        default="free",
    )
    jobs: int = setting(
        "--jobs N",
        "number of processes",
        Number(1, 1024, whole=True),
        default=1,
    )
    progress_s: float | None = changed(AnalyzeOptions, "progress_s")
    format: str = setting(
        "--format",
        "format of the result (default: text); json also has the shares of each second",
        Choice(("text", "csv", "json")),
        default="text",
    )
    csv_dialect: str = changed(CsvSettings, "csv_dialect")


@dataclass(frozen=True)
class LdenOptions(Options):
    """Options of `lden`."""

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
        parse=_hours,
    )
    zone: Any = changed(PartOptions, "zone", about="time zone, such as Europe/Berlin or UTC")
    microphone: str | None = changed(ReportOptions, "microphone")
    format: str = setting(
        "--format",
        "format of the levels (default: text)",
        Choice(("text", "csv", "json")),
        default="text",
    )
    csv_dialect: str = changed(CsvSettings, "csv_dialect")


@dataclass(frozen=True)
class SelftestOptions(Options):
    """Options of `selftest`."""

    model: tuple[str, ...] | None = setting(
        "--model LIST",
        lambda: (
            f"check only some of {', '.join(catalog.names(lambda entry: entry.checks is not None))}"
            ", separated by commas"
        ),
        parse=parse_models,
    )
    way: tuple[str, ...] | None = setting(
        "--way LIST",
        f"how its sounds reach the models: {'; '.join(f'{k}, {v}' for k, v in WAYS.items())}; "
        "several are separated by commas",
        Listed(words=tuple(WAYS)),
        usual="all",
    )
    faults: bool = switch(
        "--faults",
        "insert faults into a sound instead (losses, late blocks, clipping, an unplugged device "
        "...), and compare the faults counted with those inserted; takes about 30 seconds",
    )
    report: str | None = setting("--report PATH", "write a verification report in Markdown")
    force: bool = switch("--force", "overwrite an existing report")


@dataclass(frozen=True)
class ExportOptions(Options):
    """Options of `export`."""

    what: str = setting(
        "STAGE|PRESET", "the name of a stage, or a preset with one model", default=""
    )
    out: str = setting("FILE", "file to write, such as moore2016.pt2", default="")
    force: bool = switch("--force", "overwrite an existing file")
    fs: int = setting(
        "-r --samplerate HZ",
        "sampling rate",
        Number(SLOWEST_FS, FASTEST_FS, "Hz", whole=True),
        default=PCM_FS,
    )
    channels: int = setting(
        "-c --channels N",
        "number of ears or channels",
        Number(1, 64, "channels", whole=True),
        default=2,
    )
    shape: tuple[int, ...] | None = setting(
        "--shape LIST",
        "shape of a stage's input without time, such as 1,2,31",
        Listed(Number(1, 1e6, whole=True)),
        usual="1 and the channels",
    )
    block_ms: float = setting(
        "--block-ms MS",
        "block length, rounded to whole blocks of the stage",
        Number(0.01, 1000, "ms"),
        default=10.0,
    )


@dataclass(frozen=True)
class BenchOptions(Options):
    """Options of `bench`."""

    model: tuple[str, ...] | None = setting(
        "--model LIST",
        lambda: f"time only some of {', '.join(catalog.names())}, separated by commas",
        lambda: Listed(words=tuple(catalog.names())),
    )
    stages: bool = switch("--stages", "also time each stage of a model, on its actual input")
    block_ms: tuple[float, ...] = setting(
        "--block-ms LIST",
        "block lengths, separated by commas",
        Listed(Number(0.1, 1000, "ms")),
        default=(1.0, 10.0),
    )
    streams: tuple[int, ...] = setting(
        "--streams LIST",
        "numbers of listeners that one model processes at once",
        Listed(Number(1, 4096, "streams", whole=True)),
        default=(1,),
    )
    dtype: tuple[str, ...] = setting(
        "--dtype LIST",
        "float32 (default), float64 or both",
        Listed(words=("float32", "float64")),
        default=("float32",),
    )
    seconds: float = setting(
        "--seconds S", "seconds of sound for each figure", Number(0.01, 3600, "s"), default=2.0
    )
    start: bool = switch("--start", "also time the start of a new process with each model")
    json: bool = switch("--json", "print one JSON object per line")


class OptionsParser(argparse.ArgumentParser):
    """An argument parser that returns an object of the class whose options were added."""

    def add_options(self, options: type) -> None:
        """Add the settings of a class as arguments, under the headings of its base classes."""
        self.register("action", "yes_or_no", argparse.BooleanOptionalAction)
        self.set_defaults(options=options)
        homes = {
            name: next(one for one in reversed(options.__mro__) if name in vars(one))
            for name, _, _ in settings_in(options)
        }
        groups: JsonDict = {"": self}
        for home in sorted(set(homes.values()), key=options.__mro__.index):
            heading = vars(home).get("heading", "")
            if heading not in groups:
                groups[heading] = self.add_argument_group(heading)
        for name, one, default in settings_in(options):
            if one.flag:
                flags, arguments = _argument(name, one, default)
                group = groups[vars(homes[name]).get("heading", "")]
                action = group.add_argument(*flags, **arguments)
                if one.option.get("nargs") == argparse.REMAINDER:
                    action.required = False  # else the error for NAME names this one too

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse a command line; options that were not given have the defaults of their class.

        Raises WrongUsage if an option lacks another one that it needs.
        """
        known, unknown = self.parse_known_args(args, namespace)
        found = vars(known)
        options = found["options"]
        if unknown:
            flags = " ".join(one.flag for _, one, _ in settings_in(options)).split()
            meant = get_close_matches(unknown[0].partition("=")[0], flags, 1, 0.8)
            hint = f": did you mean {meant[0]}?" if meant else ""
            self.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")
        names = {one.name for one in fields(options)}
        typed = options(**{name: value for name, value in found.items() if name in names})
        declared = {name: one for name, one, _ in settings_in(options)}
        for name, one in declared.items():
            if name in found and one.needs and getattr(typed, one.needs) in (None, ()):
                raise WrongUsage(f"{one.long_flag} needs {declared[one.needs].lack}")
        return typed


def _argument(name: str, one: Setting, default: object) -> tuple[list[str], JsonDict]:
    """The flags and keyword arguments for argparse's `add_argument`."""
    words = one.flag.split()
    flags = [word for word in words if word.startswith("-")]
    arguments: dict[str, object] = {"help": one.help.replace("%", "%%")}
    if len(flags) < len(words):
        arguments["metavar"] = words[-1]
    if flags:
        arguments |= {"dest": name, "default": argparse.SUPPRESS}
    rule = one.rule
    read = one.parse or getattr(rule, "parse", None)
    if read is not None:
        arguments["type"] = _refusing(read)
    elif isinstance(rule, Choice):
        arguments["choices"] = rule.words
    elif default is False:
        arguments["action"] = "store_true"
    return flags or [name], {**arguments, **one.option}


def _refusing(read: Callable[[str], object]) -> Callable[[str], Any]:
    """Wrap a parser so that its refusals become argparse's errors."""

    def parse(text: str) -> Any:
        try:
            return read(text)
        except Refusal as refusal:
            raise argparse.ArgumentTypeError(str(refusal)) from refusal

    return parse
