"""What can be typed after `amt-stream`: the options of each command, and how they are read.

The settings of a measurement come from `amt_stream.meters.specification`; what a command has
besides is declared here in the same way. What was typed becomes an object of the command's class.
"""

import argparse
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal

from amt_stream.cli.messages import WrongUsage
from amt_stream.core.clock import Moment, date_and_time, moment
from amt_stream.core.errors import Refusal
from amt_stream.core.formats import FILE_FORMATS, ROW_FORMATS
from amt_stream.core.json_types import JsonDict
from amt_stream.core.values import (
    Choice,
    Listed,
    NamedChannels,
    Number,
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
    RowSettings,
    Setting,
    changed,
    parse_models,
    setting,
    settings_in,
    switch,
)


class _EachMicrophone(argparse.Action):
    """Several of them are heard each by itself; so is one with a name of its own."""

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


def address(text: str) -> tuple[str, int]:
    """HOST:PORT, or [HOST]:PORT of an address with colons."""
    host, _, port = text.rpartition(":")
    bare = host.removeprefix("[").removesuffix("]")
    if not bare or (":" in bare) != (host != bare) or not port.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r}: give HOST:PORT, or [::1]:PORT")
    if len(port) > 5 or not 1 <= int(port) <= 65535:
        raise argparse.ArgumentTypeError(f"{text!r}: a port is a number from 1 to 65535")
    return bare, int(port)


Broker = tuple[str, int, bool]
"""Host, port, and whether it is encrypted."""


def broker(text: str) -> Broker:
    """[mqtt://|mqtts://]HOST[:PORT]."""
    scheme, _, place = text.rpartition("://")
    ports = {"": 1883, "mqtt": 1883, "mqtts": 8883}
    if scheme not in ports or "@" in place:
        raise argparse.ArgumentTypeError(
            "give HOST, HOST:PORT or mqtts://HOST:PORT; user and password go into a file, "
            "--mqtt-login"
        )
    whole = place.removesuffix("/")
    bare = whole.endswith("]") or ":" not in whole
    host, port = address(f"{whole}:{ports[scheme]}" if bare else whole)
    return host, port, scheme == "mqtts"


def topic(text: str) -> str:
    """A topic that something can be published to."""
    if not text.isprintable() or set("+#") & set(text) or not all(text.split("/")):
        raise argparse.ArgumentTypeError(f"{text!r}: give words with / between, without + and #")
    return text


def origin(text: str) -> str:
    """Where a page is from, as a browser tells it in its header Origin."""
    if not re.fullmatch(r"https?://[^/?#@\s]+|null", text.removesuffix("/")):
        raise argparse.ArgumentTypeError(
            f"{text!r}: give scheme and name of the page's site, as https://example.org, or null, "
            "that of a file"
        )
    return text.removesuffix("/").lower()


MOMENTS = (
    "seconds or 1h30m since the start, or by the clock 22:00, or 2026-11-20T22:00, with an offset "
    "such as +01:00 or without"
)


def _hours(text: str) -> Any:
    from amt_stream.sessions.day_levels import hours_named

    return hours_named(text)


def _row_steps() -> str:
    """Time between the rows of a file, by model, in words."""
    steps: dict[int, list[str]] = {}
    for name in catalog.names():
        steps.setdefault(catalog.entry(name).row_step_ms, []).append(name)
    told = [f"{step} for {', '.join(names)}" for step, names in sorted(steps.items())]
    return f"{'; '.join(told)}; of several models the longest of theirs"


@dataclass(frozen=True)
class Options:
    """What any command was told."""

    command: str | None = None
    list_devices: bool = False


@dataclass(frozen=True)
class ListsDevices(Options):
    """Commands that take -l themselves."""

    list_devices: bool = switch("-l --list-devices", "list the input devices and end")


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
        about="channels, counted from 1: one for both ears (1) or left and right (1,2); with "
        "--source - how many channels there are, 1 or 2. Given again, as -c 1,2 -c 3,4 or "
        "-c desk=1,2 -c door=3, each is heard by itself, with rows of its own (--format, or --log "
        "with --quiet)",
        parse=parse_microphone,
        option={"action": _EachMicrophone},
    )
    format: str | None = None
    terminal: bool = False
    quiet: bool = False
    web: int | None = None


@dataclass(frozen=True)
class MeterOptions(LiveOptions, CsvSettings):
    """Of `meter`."""

    terminal: bool = switch("--terminal", "show the meter here and not in a window")
    format: str | None = setting(
        "--format", "write rows of numbers and show nothing", Choice(ROW_FORMATS)
    )
    quiet: bool = switch("--quiet", "show nothing: the log is enough", needs="log")


@dataclass(frozen=True)
class MonitorOptions(MeterOptions):
    """Of `amt-monitor`, which is `meter` in its window."""

    command: str | None = "meter"
    install_desktop: bool = switch("--install-desktop", "put it into the desktop's menu, and end")
    remove_desktop: bool = switch("--remove-desktop", "take it out of the menu again, and end")


@dataclass(frozen=True)
class ServeOptions(LiveOptions):
    """Of `serve`."""

    format: str | None = "jsonl"
    fail_above: bool = False
    web: int | None = setting(
        "--web PORT",
        "a page with live numbers, a WebSocket, /health and /metrics at this port (8765; 0 is one "
        "that is free) of this computer",
        Number(0, 65535, whole=True),
        nargs="?",
        const=8765,
        lack="the page: add --web",
    )
    listen: str | None = setting(
        "--listen ADDRESS",
        "let others see the page too, at this address of this computer, or 0.0.0.0 for all of "
        "them; needs a token",
        needs="web",
    )
    token_file: str | None = setting(
        "--token-file FILE",
        "file with the access token (at least 16 characters) that every connection needs",
        needs="web",
    )
    view_token_file: str | None = setting(
        "--view-token-file FILE",
        "file with a token that allows looking and no commands; besides --token-file",
        needs="web",
    )
    allow_origin: Sequence[str] = setting(
        "--allow-origin ORIGIN",
        "a page from there may connect too, as https://example.org; may be given again",
        default=(),
        parse=origin,
        action="append",
        needs="web",
    )
    share: bool = switch("--share", "print the page's address as a QR code", needs="web")
    stdio: bool = switch(
        "--stdio",
        "messages as lines of JSON on standard output, commands as lines on standard input, whose "
        "end ends the measurement",
    )
    udp: Sequence[tuple[str, int]] = setting(
        "--udp HOST:PORT",
        "send each message as a datagram of JSON to this address; again for others",
        default=(),
        parse=address,
        action="append",
    )
    osc: Sequence[tuple[str, int]] = setting(
        "--osc HOST:PORT",
        "send each message by Open Sound Control to this address; again for others",
        default=(),
        parse=address,
        action="append",
    )
    osc_in: int | None = setting(
        "--osc-in PORT",
        "take commands by Open Sound Control, from programs on this computer",
        Number(1, 65535, whole=True),
    )
    lsl: Literal["computer", "network"] | None = setting(
        "--lsl",
        "give streams of the lab streaming layer to programs on this computer (extra lsl)",
        action="store_const",
        const="computer",
        lack="LSL: add --lsl or --lsl-network",
    )
    lsl_network: None = setting(
        "--lsl-network",
        "give them to the whole network, to anybody, as liblsl is configured",
        dest="lsl",
        action="store_const",
        const="network",
    )
    lsl_name: str | None = setting(
        "--lsl-name NAME",
        "what their names begin with (default: amt_stream); another one for each station",
        needs="lsl",
    )
    mqtt: Broker | Literal[""] | None = setting(
        "--mqtt BROKER",
        "publish to an MQTT broker: HOST, HOST:PORT, or mqtts://HOST:PORT, encrypted "
        '("": to none, whatever a preset says)',
        parse=lambda text: text and broker(text),
        lack="MQTT: add --mqtt BROKER",
    )
    mqtt_topic: str | None = setting(
        "--mqtt-topic TOPIC",
        "what topics begin with",
        parse=topic,
        usual="amt/ and the name of this computer",
        needs="mqtt",
    )
    mqtt_login: str | None = setting(
        "--mqtt-login FILE",
        "user and password, a line each",
        usual="those of the environment, AMT_STREAM_MQTT_USER and AMT_STREAM_MQTT_PASSWORD, if "
        "there are any",
        needs="mqtt",
    )
    mqtt_every: float | None = setting(
        "--mqtt-every S",
        "a row every so many seconds of sound (default: 1); 0 is each of them",
        Number(0, 86400, "s"),
        needs="mqtt",
    )
    mqtt_if_there: bool | None = setting(
        "--mqtt-if-there",
        "a broker that has never answered is no trouble; it is looked for all the same",
        action="store_const",
        const=True,
        needs="mqtt",
    )
    mqtt_commands: bool | None = setting(
        "--mqtt-commands",
        "take commands at TOPIC/command, from whoever may publish there",
        action="store_const",
        const=True,
        needs="mqtt",
    )
    mqtt_discovery: str | None = setting(
        "--mqtt-discovery TOPIC",
        'where Home Assistant looks for what there is (default: homeassistant; "": tell none)',
        parse=lambda text: text and topic(text),
        needs="mqtt",
    )
    check_every: float | None = setting(
        "--check-every S",
        "have the same models hear a reference tone beside the measurement, at the start and every "
        "so many seconds, and tell what they read",
        Number(10, 1e6, "seconds"),
        usual="never; with `run` each hour",
    )


@dataclass(frozen=True)
class StationOptions(ServeOptions):
    """Of a station that nobody watches: those of `serve`, with its own defaults."""

    check_every: float | None = changed(ServeOptions, "check_every", default=3600.0)


@dataclass(frozen=True)
class RunOptions(Options):
    """Of `run`."""

    preset: str = setting(
        "NAME|PATH",
        "a preset, whose table [run] has options of `serve` by name, as web = 8765",
        default="",
    )
    more: Sequence[str] = setting(
        "...",
        "further options of `serve`, which go before those of the preset",
        default=(),
        nargs=argparse.REMAINDER,
    )


@dataclass(frozen=True)
class CalibrateOptions(InputSettings, CorrectionSettings, ListsDevices):
    """Of `calibrate`."""

    level: float = setting(
        "--level DB",
        "level of the calibrator in dB SPL",
        Number(40, 170, "dB SPL"),
        default=94.0,
    )
    frequency: float = setting(
        "--frequency HZ",
        "frequency of the calibrator, which may be 2 % off",
        Number(50, 12000, "Hz"),
        default=1000.0,
    )
    calibrator_uncertainty: float = changed(
        CalibrationSettings,
        "calibration_uncertainty",
        about="of the calibrator's level, expanded (k = 2), kept with the result",
        default=CALIBRATOR_UNCERTAINTY_DB,
        usual=f"{CALIBRATOR_UNCERTAINTY_DB:g}, what class 1 of IEC 60942:2017 allows",
    )
    valid_days: float | None = setting(
        "--valid-days DAYS",
        "be reminded after so many days that this is to be done again",
        Number(1, LONGEST_VALID_DAYS, "days"),
        usual=f"{VALID_DAYS}, an assumption",
    )
    correction: Sequence[str] | None = changed(
        CorrectionSettings,
        "correction",
        about="the microphone's response, kept for the device with its calibration: lines of hertz "
        f"and dB (.cal, .txt, .frd); {NONE} forgets the one that is kept",
        usual="",
    )
    no_tone: bool = switch("--no-tone", "measure no tone: keep the correction alone")
    list: bool = switch(
        "--list", "list all that is kept, with numbers, dates and what is to be done again, and end"
    )
    remove: int | None = setting(
        "--remove N",
        "forget what is kept of the channel with that number in --list, and end",
        Number(1, 10**6, "as in --list", whole=True),
    )
    timeout: float = setting(
        "--timeout S",
        "give up after so many seconds",
        Number(3, 3600, "s"),
        default=30.0,
    )
    format: str = setting(
        "--format",
        "of the result (default: text); json is an object for each channel",
        Choice(("text", "json")),
        default="text",
    )
    source: str | None = changed(
        InputSettings,
        "source",
        about="mic (default), or a recording of the calibrator: a sound file, or - for PCM",
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
    """Of `analyze`."""

    files: Sequence[str] = setting(
        "FILE",
        "a sound file, a folder of them, or a pattern such as 'day/*.wav'",
        default=(),
        nargs="+",
    )
    out: str | None = setting(
        "--out PATH",
        "write rows to this file, or for several files into this folder; by default, or for -, to "
        "standard output. With --summary a file that ends in .json gets the summaries",
    )
    force: bool = switch("--force", "overwrite what --out names")
    resume: bool = switch(
        "--resume",
        "go on with the folder that --out names, as after a kill: what is done there is not done "
        "again, the rest is, and what failed",
    )
    summary: bool = switch(
        "--summary",
        "write a JSON line per file, with maxima, percentiles and what else the models tell of a "
        "whole sound, to standard output, or to the .json file that --out names",
    )
    format: str | None = setting(
        "--format",
        "of rows (default: that of the ending of --out, else csv); parquet needs the extra `data`",
        Choice(FILE_FORMATS),
    )
    format_typed: bool = False
    no_header: bool = changed(
        CsvSettings,
        "no_header",
        about="CSV begins with the names of its columns, as a spreadsheet wants it; what else is "
        "told of the rows goes to FILE.csv.header.json beside each file, or to standard error, as "
        "a line of JSON",
    )
    step_ms: int | None = changed(RowSettings, "step_ms", usual=_row_steps)
    replace_invalid: bool = switch(
        "--replace-invalid",
        "read NaN, infinity and samples beyond a million times full scale as 0, and say how many "
        "there were",
    )
    channels: tuple[int, ...] | str | None = changed(
        InputSettings,
        "channels",
        about="channels: 1, or 1,2; all (or each) analyzes each by itself",
        parse=parse_channels_or_each,
    )
    jobs: int = setting(
        "--jobs N",
        "use so many processes: for as many files at once, or for the parts of a long one",
        Number(1, 1024, "processes", whole=True),
        default=1,
    )
    ray: str | None = setting(
        "--ray ADDRESS",
        "analyze on a cluster of Ray, which sees the same folders (extra `ray`): the one that runs "
        "here or that RAY_ADDRESS names, or this one; local makes one for this run",
        nargs="?",
        const="auto",
    )
    progress_s: float | None = setting(
        "--progress S",
        "say on standard error how far it has come, a line every so many seconds",
        Number(0.1, 86400, "seconds"),
        usual="a bar on a terminal, else a line a minute",
    )
    calibrations: str | None = setting(
        "--calibrations FILE",
        "calibration: a CSV file with the columns file, channel and full_scale_db, or "
        "sensitivity_dbfs (how a sine of 94 dB SPL reads in dBFS); a file may be a pattern, and an "
        "empty file or channel stands for all of them",
    )
    calibrator: str | None = setting(
        "--calibrator FILE",
        "calibration: a recording of an acoustic calibrator at the same gain, whose tone of 1 kHz "
        "lasts 3 s; one channel stands for all of them. A pattern, such as 'day*/tone.wav', is a "
        "recording for each folder: that of the nearest holds",
    )
    level: float | None = changed(CalibrateOptions, "level", default=None, usual="94")
    interval: int | None = changed(
        RowSettings,
        "interval",
        about="write no rows, but a table with the statistics of each interval, of elapsed time "
        f"or, with --began, of the clock: {LENGTHS}",
    )
    began: Moment | None = setting(
        "--began WHEN",
        "when the recording began, as 2026-11-20T22:00:00, by the clock of --zone or with an "
        "offset such as +01:00",
        parse=date_and_time,
    )
    zone: Any = changed(
        RowSettings,
        "zone",
        about="intervals, --local-time and --began by this zone, as Europe/Berlin or UTC",
    )


@dataclass(frozen=True)
class RunNumber(Options):
    """Which run of a log."""

    run: int | None = setting(
        "--run N",
        "of several runs in a log, counted from 1",
        Number(1, 1e6, "runs", whole=True),
        usual="the last",
    )


@dataclass(frozen=True)
class ReplayOptions(RunNumber):
    """Of `replay`."""

    session: str = setting("SESSION", "the folder of a log with sound", default="")


@dataclass(frozen=True)
class MarkOptions(Options):
    """Of `mark`."""

    session: str = setting("LOG", "the folder that --log named", default="")
    text: str = setting("TEXT", "what happened, such as 'door slams'", default="")


@dataclass(frozen=True)
class VerifyOptions(Options):
    """Of `verify`."""

    session: str = setting("SESSION", "the folder that --log named", default="")
    head: str | None = setting(
        "--head HASH", "a last hash that was noted earlier: is it still there?"
    )
    sign: str | None = setting(
        "--sign KEY.pem",
        "sign the last hash of a session that is intact, with a private key of Ed25519",
    )
    public_key: str | None = setting(
        "--public-key KEY.pem", "check the signature with the public key"
    )


@dataclass(frozen=True)
class PartOptions(Options):
    """The part of what was measured, its intervals, and by whose clock."""

    begin: Moment | None = setting("--from WHEN", f"begin there: {MOMENTS}", parse=moment)
    end: Moment | None = setting("--to WHEN", f"end there: {MOMENTS}", parse=moment)
    interval: int | None = changed(
        RowSettings, "interval", about=f"a table of readings by interval: {LENGTHS}"
    )
    zone: Any = changed(
        RowSettings,
        "zone",
        about="tell times by this zone, as Europe/Berlin or UTC",
        usual="the log's, or else this computer's",
    )


@dataclass(frozen=True)
class ReportOptions(PartOptions, RunNumber):
    """Of `report`."""

    session: str = setting(
        "LOG", "the folder of a log, or a file of rows (.csv, .jsonl ...)", default=""
    )
    out: str | None = setting(
        "--out FILE",
        "to write: .html, whole in itself, or .pdf, which needs the extra `app`",
        usual="LOG-report.html",
    )
    force: bool = switch("--force", "overwrite it")
    microphone: str | None = setting(
        "--microphone NAME", "of several microphones, each heard by itself: which"
    )
    title: str = setting(
        "--title TEXT", "what stands above it all", default="", usual="Sound measurement"
    )
    place: str = setting("--place TEXT", "where it was measured", default="")
    client: str = setting("--client TEXT", "for whom", default="")
    engineer: str = setting("--engineer TEXT", "by whom", default="")
    note: str = setting("--note TEXT", "what else is to be said", default="")


@dataclass(frozen=True)
class CompareOptions(PartOptions, CalibrationSettings):
    """Of `compare`."""

    a: str = setting(
        "A", "a log, a file of rows (.csv, .jsonl, .parquet), or a file of sound", default=""
    )
    b: str = setting("B", "what is compared with it: another one", default="")
    same_place: bool = switch(
        "--same-place",
        "the same microphone stood at the same place, and the sounds have spectra alike: its error "
        "is common to both and cancels",
    )
    independent: bool = switch(
        "--independent",
        "the calibrations are two, though what is told of them is the same: nothing cancels",
    )
    interval: int | None = changed(
        RowSettings,
        "interval",
        about=f"compare each interval too: those of one time of day, or since the start: {LENGTHS}",
    )
    zone: Any = changed(
        PartOptions,
        "zone",
        about="times of day by this zone, as Europe/Berlin or UTC",
        usual="of each its log's, or else this computer's",
    )
    json: bool = switch("--json", "print a JSON object")
    out: str | None = setting(
        "--out FILE",
        "write a page instead, with both over time: .html, or .pdf, which needs the extra `app`",
    )
    force: bool = switch("--force", "overwrite what --out names")
    model: tuple[str, ...] | None = setting(
        "--model LIST",
        "of files of sound: measure them by these, with commas between",
        parse=parse_models,
        usual="moore2016,spl",
    )


@dataclass(frozen=True)
class LdenOptions(Options):
    """Of `lden`."""

    paths: Sequence[str] = setting(
        "LOG",
        "the folder of a log, a folder of logs, or a file of rows, all of one place",
        default=(),
        nargs="+",
    )
    hours: Any = setting(
        "--hours NAME|LIST",
        "when day, evening and night begin: eu (default; 2002/49/EC), at, de, dk, fi, fr, it, pl, "
        "pt, se, or us for Ldn; or 7,19,22, or 7,22 without an evening",
        default=None,
        parse=_hours,
    )
    zone: Any = changed(PartOptions, "zone", about="hours by this zone, as Europe/Berlin or UTC")
    microphone: str | None = changed(ReportOptions, "microphone")
    format: str = setting(
        "--format",
        "of the levels, for each day and of all (default: text)",
        Choice(("text", "csv", "json")),
        default="text",
    )


@dataclass(frozen=True)
class SelftestOptions(Options):
    """Of `selftest`."""

    model: tuple[str, ...] | None = setting(
        "--model LIST",
        lambda: (
            f"only these of {', '.join(catalog.names(lambda entry: entry.checks is not None))}, "
            "with commas between"
        ),
        parse=parse_models,
    )
    faults: bool = switch(
        "--faults",
        "instead, put faults into a sound (losses, late blocks, clipping, an unplugged device ...) "
        "and compare what is counted with what was put in, in some 30 seconds",
    )
    report: str | None = setting("--report PATH", "write a verification report, in Markdown")
    force: bool = switch("--force", "overwrite what --report names")


@dataclass(frozen=True)
class ExportOptions(Options):
    """Of `export`."""

    what: str = setting(
        "STAGE|PRESET", "the name of a stage, or a preset with one model", default=""
    )
    out: str = setting("FILE", "to write, as moore2016.pt2", default="")
    force: bool = switch("--force", "overwrite it")
    fs: int = setting(
        "-r --samplerate HZ",
        "of the sound",
        Number(SLOWEST_FS, FASTEST_FS, "Hz", whole=True),
        default=PCM_FS,
    )
    channels: int = setting(
        "-c --channels N",
        "ears, or channels",
        Number(1, 64, "channels", whole=True),
        default=2,
    )
    shape: tuple[int, ...] | None = setting(
        "--shape LIST",
        "of what a stage takes, without time, as 1,2,31",
        Listed(Number(1, 1e6, whole=True)),
        usual="1 and the channels",
    )
    block_ms: float = setting(
        "--block-ms MS",
        "length of a block, brought to a whole number of the stage's own",
        Number(0.01, 1000, "ms"),
        default=10.0,
    )


@dataclass(frozen=True)
class BenchOptions(Options):
    """Of `bench`."""

    model: tuple[str, ...] | None = setting(
        "--model LIST",
        lambda: f"only these of {', '.join(catalog.names())}, with commas between, each by itself",
        lambda: Listed(words=tuple(catalog.names())),
    )
    stages: bool = switch("--stages", "time each stage of a model too, on what it gets")
    block_ms: tuple[float, ...] = setting(
        "--block-ms LIST",
        "lengths of the blocks, with commas between",
        Listed(Number(0.1, 1000, "ms")),
        default=(1.0, 10.0),
    )
    streams: tuple[int, ...] = setting(
        "--streams LIST",
        "how many listeners one model hears at once",
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
        "--seconds S", "sound for each figure", Number(0.01, 3600, "s"), default=2.0
    )
    start: bool = switch("--start", "time how a new process starts with each model too")
    json: bool = switch("--json", "print a JSON object a line")


class OptionsParser(argparse.ArgumentParser):
    """One that gives what was typed as an object of the class whose options were added."""

    def add_options(self, options: type) -> None:
        """The settings of a class, under the headings of the groups that it is made of."""
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
                flags, how = _argument(name, one, default)
                action = groups[vars(homes[name]).get("heading", "")].add_argument(*flags, **how)
                if one.option.get("nargs") == argparse.REMAINDER:
                    action.required = False  # else what is missing is told as two things

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """An object of the class of options; what was not typed is as the class has it."""
        found = vars(super().parse_args(args, namespace))
        options = found["options"]
        names = {one.name for one in fields(options)}
        typed = options(**{name: value for name, value in found.items() if name in names})
        declared = {name: one for name, one, _ in settings_in(options)}
        for name, one in declared.items():
            if name in found and one.needs and getattr(typed, one.needs) is None:
                flag = next(word for word in one.flag.split() if word.startswith("--"))
                raise WrongUsage(f"{flag} is of {declared[one.needs].lack}")
        return typed


def _argument(name: str, one: Setting, default: object) -> tuple[list[str], JsonDict]:
    """A setting as argparse has it: flags, and what else is to be known."""
    words = one.flag.split()
    flags = [word for word in words if word.startswith("-")]
    how: dict[str, object] = {"help": one.help.replace("%", "%%")}
    if len(flags) < len(words):
        how["metavar"] = words[-1]
    if flags:
        how |= {"dest": name, "default": argparse.SUPPRESS}
    rule = one.rule
    read = one.parse or getattr(rule, "parse", None)
    if read is not None:
        how["type"] = _refusing(read)
    elif isinstance(rule, Choice):
        how["choices"] = rule.words
    elif default is False:
        how["action"] = "store_true"
    return flags or [name], {**how, **one.option}


def _refusing(read: Callable[[str], object]) -> Callable[[str], Any]:
    """The same, refused as argparse wants it."""

    def parse(text: str) -> Any:
        try:
            return read(text)
        except Refusal as refusal:
            raise argparse.ArgumentTypeError(str(refusal)) from refusal

    return parse
