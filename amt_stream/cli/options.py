"""What can be typed after `amt-stream`."""

import argparse
import math
import re
from collections.abc import Callable
from typing import Any, TypeVar

from amt_stream import catalog
from amt_stream.calibration import (
    CALIBRATOR_UNCERTAINTY_DB,
    LARGEST_UNCERTAINTY_DB,
    LONGEST_VALID_DAYS,
    MICROPHONE_UNCERTAINTY_DB,
    VALID_DAYS,
)
from amt_stream.cli.limits import EXCEEDED, models_with, typed_limits
from amt_stream.cli.messages import WrongUsage
from amt_stream.clock import NoSuchTime, date_and_time, interval_s, moment, span_s, zone_named
from amt_stream.engine.sound_file import FASTEST_FS, SLOWEST_FS
from amt_stream.formats import FILE_FORMATS, LOG_FORMATS, ROW_FORMATS, SOUND_FORMATS
from amt_stream.norms import shipped_norms
from amt_stream.plain import NAME_RULE, fits_tables
from amt_stream.presets import (
    DEFAULT,
    DEVICES,
    Preset,
    load_preset,
    settings_of,
    shipped_presets,
)
from amt_stream.triggers import (
    AFTER_S,
    BEFORE_S,
    HOLD_S,
    HYSTERESIS,
    KEPT_S,
    LONGEST_S,
    Trigger,
    TriggerError,
    trigger_from_text,
)

PCM = ("s16le", "s24le", "s32le", "f32le")
PCM_FS = 48000
LONGEST_STEP_MS = 86_400_000
PCM_CHANNELS = 2


def chosen_preset(args: argparse.Namespace) -> Preset:
    """The preset, with what was typed besides."""
    limits, triggers = typed_limits(args), tuple(getattr(args, "event", ()))
    if args.preset is None:
        typed = [*limits, *(one.limit for one in triggers if not one.is_alarm)]
        preset = _preset_of(args.model or models_with(typed) or (DEFAULT,))
    else:
        preset = load_preset(args.preset)
    if args.model not in (None, preset.names):
        raise WrongUsage(
            f"--preset {args.preset} is for the model {','.join(preset.names)}, and --model is "
            f"{','.join(args.model)}: leave one out"
        )
    if args.field is not None and "field" not in preset.settings:
        fielded = ", ".join(catalog.names(lambda entry: "field" in entry.settings))
        raise WrongUsage(
            f"--field is for {fielded}: {preset.where} hears the sound as it is; leave it out"
        )
    preset = preset.with_field(args.field).with_compute(args.compute)
    return preset.with_limits(limits).with_triggers(triggers)


def _preset_of(models: tuple[str, ...]) -> Preset:
    """The preset of that name, or the default one with these models."""
    if len(models) == 1 and models[0] in shipped_presets():
        return load_preset(models[0])
    return load_preset().with_names(models)


def number(low: float, high: float, unit: str, whole: bool = False) -> Callable[[str], Any]:
    """An argument within a range."""

    def parse(text: str) -> float | int:
        try:
            value = int(text) if whole else float(text)
        except ValueError:
            value = math.nan
        if not low <= value <= high:
            kind = "a whole number" if whole else "a number"
            raise argparse.ArgumentTypeError(
                f"{text!r} is not {kind} from {low:g} to {high:.12g} {unit}".rstrip()
            )
        return value

    return parse


def elapsed(low: float, high: float) -> Callable[[str], float]:
    """An argument of seconds of sound, written as 90 or 1h30m."""

    def parse(text: str) -> float:
        try:
            value = span_s(text)
        except NoSuchTime:
            value = math.nan
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(
                f"{text!r} is not a number from {low:g} to {high:g} seconds of sound, nor as 1h30m"
            )
        return value

    return parse


Read = TypeVar("Read")


def read_by(read: Callable[[str], Read]) -> Callable[[str], Read]:
    """An argument of the clock, refused as what reads it does."""

    def parse(text: str) -> Read:
        try:
            return read(text)
        except NoSuchTime as refusal:
            raise argparse.ArgumentTypeError(str(refusal)) from None

    return parse


def address(text: str) -> tuple[str, int]:
    """HOST:PORT, or [HOST]:PORT of an address with colons."""
    host, _, port = text.rpartition(":")
    bare = host.removeprefix("[").removesuffix("]")
    if not bare or (":" in bare) != (host != bare) or not port.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r}: give HOST:PORT, or [::1]:PORT")
    if len(port) > 5 or not 1 <= int(port) <= 65535:
        raise argparse.ArgumentTypeError(f"{text!r}: a port is a number from 1 to 65535")
    return bare, int(port)


def broker(text: str) -> tuple[str, int, bool]:
    """[mqtt://|mqtts://]HOST[:PORT], as host, port and whether it is encrypted."""
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


EACH = "each"
"""Said for channels: each of them by itself."""


def channel_list(text: str) -> tuple[int, ...]:
    """One or two channel numbers, counted from 1."""
    try:
        channels = tuple(int(part) for part in text.split(","))
    except ValueError:
        channels = ()
    if not 1 <= len(channels) <= 2 or min(channels) < 1 or len(set(channels)) < len(channels):
        raise argparse.ArgumentTypeError(
            f"{text!r}: give one channel (1), or two different ones as left and right (1,2)"
        )
    return channels


Named = tuple[str, tuple[int, ...]]
"""What a row is called, and its channels."""


def named_channels(text: str) -> Named:
    """One or two channel numbers, with a name before them or named by themselves."""
    name, equals, numbers = text.rpartition("=")
    channels = channel_list(numbers)
    if equals and not fits_tables(name):
        raise argparse.ArgumentTypeError(f"{text!r}: {NAME_RULE}")
    return name or "+".join(map(str, channels)), channels


def choose_rows(args: argparse.Namespace, preset: Preset) -> None:
    """Those of the preset, where no channels were typed."""
    if args.channels is None and preset.rows:
        args.rows = tuple((name, tuple(channels)) for name, channels in preset.rows.items())
        args.channels = tuple(c for _, channels in args.rows for c in channels)


class _EachRow(argparse.Action):
    """Several of them are rows, each heard by itself; so is one with a name of its own."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        typed: tuple[Named, ...] = (*getattr(namespace, "typed_rows", ()), values)
        namespace.typed_rows = typed
        namespace.channels = tuple(c for _, channels in typed for c in channels)
        own_name = values[0] != "+".join(map(str, values[1]))
        namespace.rows = typed if len(typed) > 1 or own_name else ()


def model_list(text: str) -> tuple[str, ...]:
    """One model, or several that run side by side."""
    names = tuple(text.split(","))
    beside, alone = catalog.side_by_side(), catalog.names(lambda entry: entry.alone)
    single = len(names) == 1 and names[0] in alone
    if not single and (set(names) - set(beside) or len(set(names)) < len(names)):
        raise argparse.ArgumentTypeError(
            f"{text!r}: give one or more of {', '.join(beside)} with commas between, or one of "
            f"{', '.join(alone)}"
        )
    return names


def listed(one: Callable[[str], Any], *allowed: Any) -> Callable[[str], tuple[Any, ...]]:
    """An argument of several with commas between, each of those allowed, if any are named."""

    def parse(text: str) -> tuple[Any, ...]:
        found = tuple(one(part) for part in text.split(","))
        wrong = [part for part in found if allowed and part not in allowed]
        if wrong:
            words = ", ".join(map(str, allowed))
            raise argparse.ArgumentTypeError(f"{wrong[0]!r} is none of {words}")
        return found

    return parse


def meter_options(parser: argparse.ArgumentParser) -> None:
    """Those of `meter`."""
    _live(parser)
    parser.add_argument(
        "--terminal", action="store_true", help="show the meter here and not in a window"
    )
    parser.add_argument(
        "--format", choices=ROW_FORMATS, help="write rows of numbers and show nothing"
    )
    _csv(parser, "to standard error")
    parser.add_argument("--quiet", action="store_true", help="show nothing: the log is enough")
    _fail_above(parser)
    _rows(parser)


def serve_options(parser: argparse.ArgumentParser) -> None:
    """Those of `serve`."""
    _live(parser)
    parser.set_defaults(format="jsonl", terminal=False, quiet=False)
    parser.add_argument(
        "--web",
        type=number(0, 65535, "", whole=True),
        nargs="?",
        const=8765,
        metavar="PORT",
        help="a page with live numbers, a WebSocket, /health and /metrics at this port (8765; 0 is "
        "one that is free) of this computer",
    )
    parser.add_argument(
        "--listen",
        metavar="ADDRESS",
        help="let others see the page too, at this address of this computer, or 0.0.0.0 for all of "
        "them; needs a token",
    )
    parser.add_argument(
        "--token-file",
        metavar="FILE",
        help="whoever connects has to know what this file holds, 16 characters or more",
    )
    parser.add_argument(
        "--view-token-file",
        metavar="FILE",
        help="whoever knows what this file holds may look, and not command; besides --token-file",
    )
    parser.add_argument(
        "--allow-origin",
        type=origin,
        action="append",
        metavar="ORIGIN",
        help="a page from there may connect too, as https://example.org; may be given again",
    )
    parser.add_argument(
        "--share", action="store_true", help="print the page's address as a QR code"
    )
    parser.add_argument(
        "--stdio",
        action="store_true",
        help="messages as lines of JSON on standard output, commands as lines on standard input, "
        "whose end ends the measurement",
    )
    parser.add_argument(
        "--udp",
        type=address,
        action="append",
        default=[],
        metavar="HOST:PORT",
        help="send each message as a datagram of JSON to this address; again for others",
    )
    parser.add_argument(
        "--osc",
        type=address,
        action="append",
        default=[],
        metavar="HOST:PORT",
        help="send each message by Open Sound Control to this address; again for others",
    )
    parser.add_argument(
        "--osc-in",
        type=number(1, 65535, "", whole=True),
        metavar="PORT",
        help="take commands by Open Sound Control, from programs on this computer",
    )
    parser.add_argument(
        "--lsl",
        action="store_const",
        const="computer",
        help="give streams of the lab streaming layer to programs on this computer (extra lsl)",
    )
    parser.add_argument(
        "--lsl-network",
        dest="lsl",
        action="store_const",
        const="network",
        help="give them to the whole network, to anybody, as liblsl is configured",
    )
    parser.add_argument(
        "--lsl-name",
        metavar="NAME",
        help="what their names begin with (default: amt_stream); another one for each station",
    )
    _mqtt(parser)
    parser.add_argument(
        "--check-every",
        type=number(10, 1e6, "seconds"),
        metavar="S",
        help="have the same models hear a reference tone beside the measurement, at the start and "
        "every so many seconds, and tell what they read (default: never; with `run` each hour)",
    )
    _rows(parser)


def _mqtt(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--mqtt",
        type=lambda text: text and broker(text),
        metavar="BROKER",
        help="publish to an MQTT broker: HOST, HOST:PORT, or mqtts://HOST:PORT, encrypted "
        '("": to none, whatever a preset says)',
    )
    parser.add_argument(
        "--mqtt-topic",
        type=topic,
        metavar="TOPIC",
        help="what topics begin with (default: amt/ and the name of this computer)",
    )
    parser.add_argument(
        "--mqtt-login",
        metavar="FILE",
        help="user and password, a line each (default: those of the environment, "
        "AMT_STREAM_MQTT_USER and AMT_STREAM_MQTT_PASSWORD, if there are any)",
    )
    parser.add_argument(
        "--mqtt-every",
        type=number(0, 86400, "s"),
        metavar="S",
        help="a row every so many seconds of sound (default: 1); 0 is each of them",
    )
    parser.add_argument(
        "--mqtt-if-there",
        action="store_const",
        const=True,
        help="a broker that has never answered is no trouble; it is looked for all the same",
    )
    parser.add_argument(
        "--mqtt-commands",
        action="store_const",
        const=True,
        help="take commands at TOPIC/command, from whoever may publish there",
    )
    parser.add_argument(
        "--mqtt-discovery",
        type=lambda text: text and topic(text),
        metavar="TOPIC",
        help='where Home Assistant looks for what there is (default: homeassistant; "": tell none)',
    )


def run_options(parser: argparse.ArgumentParser) -> None:
    """Those of `run`."""
    parser.add_argument(
        "preset",
        metavar="NAME|PATH",
        help="a preset, whose table [run] has options of `serve` by name, as web = 8765",
    )
    more = parser.add_argument(
        "more",
        nargs=argparse.REMAINDER,
        metavar="...",
        help="further options of `serve`, which go before those of the preset",
    )
    more.required = False  # else a preset that is missing is told as two things


def _live(parser: argparse.ArgumentParser) -> None:
    """What is measured while it is heard, and its log."""
    _source(
        parser,
        "demo or am-tone (built-in sounds), mic, playback (what the computer plays), the path of a "
        "sound file, or - for raw PCM on standard input; by default the microphone, or the demo "
        "sound where there is none",
    )
    _device(parser, several=True)
    _model(parser)
    parser.add_argument(
        "--step-ms",
        type=number(1, LONGEST_STEP_MS, "ms", whole=True),
        metavar="MS",
        help="a row every so many milliseconds (default: that of the preset, and 100 without one)",
    )
    parser.add_argument(
        "--duration",
        type=number(1e-3, 1e9, "seconds of sound"),
        metavar="S",
        help="end after so many seconds of sound",
    )
    parser.add_argument(
        "--wait",
        action=argparse.BooleanOptionalAction,
        help="wait for the microphone at the start too; --no-wait ends with status 3 when it is "
        "lost (default: what is not there at the start is refused, what is lost is waited for)",
    )
    parser.add_argument(
        "--fast",
        action="store_true",
        help="play a file, or a built-in sound, as fast as it goes and not as if it came live",
    )
    parser.add_argument(
        "--log",
        metavar="PATH",
        help="keep the rows, and what happens meanwhile, in a session's folder: a new one, or one "
        "to go on with",
    )
    _intervals(
        parser,
        "of the rows that --format writes, write instead, and beside the rows of a log keep, a "
        "table with the statistics of each interval",
    )
    _zone(parser, "intervals", "this computer's")
    parser.add_argument(
        "--log-format",
        choices=LOG_FORMATS,
        help=f"of the rows in it (default: {LOG_FORMATS[0]}, which others can read meanwhile); "
        "csv, jsonl and parquet (extra data) are files by the hour",
    )
    parser.add_argument(
        "--log-sound",
        choices=SOUND_FORMATS,
        nargs="?",
        const=SOUND_FORMATS[0],
        help=f"keep the sound in it too, by the hour: {SOUND_FORMATS[0]} (default; 24 bits), or "
        "wav (32-bit float, exactly what was heard)",
    )
    parser.add_argument(
        "--resume",
        nargs="?",
        const=True,
        default=False,
        choices=[OR_ANEW],
        help="go on where the log's last run stands, as after a power cut: in a file at that "
        "place; of a microphone the time between is a gap, and averages go on. A new log begins. "
        f"Where settings are others by now it is refused; with {OR_ANEW} a new run begins instead",
    )
    _events(parser)


def _events(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--event",
        type=_trigger,
        action="append",
        default=[],
        metavar="'COLUMN>VALUE'",
        help="tell when a sound begins and when it has ended: 'laf_db>85', or "
        "'stl_phon>background+15', above what was exceeded for 90 %% of the last 5 minutes; or "
        f"limits, while one is red. It ends {HYSTERESIS:g} below, for {HOLD_S:g} s: otherwise as "
        "'laf_db>85,hysteresis=6,hold=3', and with for=2 only what lasts 2 s. Again for others",
    )
    parser.add_argument(
        "--event-folder",
        metavar="PATH",
        help="keep the last of the sound in memory, and files of each event in this folder, and "
        "of what the command replay, or the key i, asks for",
    )
    parser.add_argument(
        "--keep-sound",
        type=number(1, 600, "seconds"),
        metavar="S",
        help=f"so much of the sound is in memory (default: {KEPT_S:g}); none without "
        "--event-folder",
    )
    for name, usual, low, what in (
        ("before", BEFORE_S, 0, "of sound before an event that its file begins with"),
        ("after", AFTER_S, 0, "after it that its file ends with"),
        ("longest", LONGEST_S, 1, "of one event that are kept at most"),
    ):
        parser.add_argument(
            f"--event-{name}",
            type=number(low, 86400, "seconds"),
            metavar="S",
            help=f"seconds {what} (default: {usual:g})",
        )


def _trigger(text: str) -> Trigger:
    try:
        return trigger_from_text(text)
    except TriggerError as refusal:
        raise argparse.ArgumentTypeError(str(refusal)) from refusal


def devices_options(parser: argparse.ArgumentParser) -> None:
    """Those of `devices`."""
    list_devices_option(parser)


def calibrate_options(parser: argparse.ArgumentParser) -> None:
    """Those of `calibrate`."""
    parser.add_argument(
        "--level",
        type=number(40, 170, "dB SPL"),
        default=94.0,
        metavar="DB",
        help="level of the calibrator in dB SPL (default: 94)",
    )
    parser.add_argument(
        "--frequency",
        type=number(50, 12000, "Hz"),
        default=1000.0,
        metavar="HZ",
        help="frequency of the calibrator (default: 1000); it may be 2 %% off",
    )
    parser.add_argument(
        "--calibration-uncertainty",
        dest="calibrator_uncertainty",
        type=number(0, LARGEST_UNCERTAINTY_DB, "dB"),
        default=CALIBRATOR_UNCERTAINTY_DB,
        metavar="DB",
        help="of the calibrator's level, expanded (k = 2), kept with the result (default: "
        f"{CALIBRATOR_UNCERTAINTY_DB:g}, what class 1 of IEC 60942:2017 allows)",
    )
    parser.add_argument(
        "--valid-days",
        type=number(1, LONGEST_VALID_DAYS, "days"),
        metavar="DAYS",
        help="be reminded after so many days that this is to be done again (default: "
        f"{VALID_DAYS}, an assumption)",
    )
    correction_options(
        parser,
        "kept for the device with its calibration: lines of hertz and dB (.cal, .txt, .frd); "
        f"{NONE} forgets the one that is kept",
    )
    parser.add_argument(
        "--no-tone",
        action="store_true",
        help="measure no tone: keep the correction alone",
    )
    parser.add_argument(
        "--list",
        action="store_true",
        help="list all that is kept, with numbers, dates and what is to be done again, and end",
    )
    parser.add_argument(
        "--remove",
        type=number(1, 10**6, "as in --list", whole=True),
        metavar="N",
        help="forget what is kept of the channel with that number in --list, and end",
    )
    parser.add_argument(
        "--timeout",
        type=number(3, 3600, "s"),
        default=30.0,
        metavar="S",
        help="give up after so many seconds (default: 30)",
    )
    parser.add_argument(
        "--format",
        choices=("text", "json"),
        default="text",
        help="of the result (default: text); json is an object for each channel",
    )
    _source(parser, "mic (default), or a recording of the calibrator: a sound file, or - for PCM")
    _device(parser)


def analyze_options(parser: argparse.ArgumentParser) -> None:
    """Those of `analyze`."""
    parser.add_argument(
        "files",
        nargs="+",
        metavar="FILE",
        help="a sound file, a folder of them, or a pattern such as 'day/*.wav'",
    )
    parser.add_argument(
        "--out",
        metavar="PATH",
        help="write rows to this file, or for several files into this folder; by default, or for "
        "-, to standard output. With --summary a file that ends in .json gets the summaries",
    )
    parser.add_argument("--force", action="store_true", help="overwrite what --out names")
    parser.add_argument(
        "--resume",
        action="store_true",
        help="go on with the folder that --out names, as after a kill: what is done there is not "
        "done again, the rest is, and what failed",
    )
    parser.add_argument(
        "--summary",
        action="store_true",
        help="write a JSON line per file, with maxima, percentiles and what else the models tell "
        "of a whole sound, to standard output, or to the .json file that --out names",
    )
    parser.add_argument(
        "--format",
        choices=FILE_FORMATS,
        help="of rows (default: that of the ending of --out, else csv); parquet needs the extra "
        "`data`",
    )
    _csv(parser, "to FILE.csv.header.json beside each file, or to standard error")
    parser.add_argument(
        "--step-ms",
        type=number(1, LONGEST_STEP_MS, "ms", whole=True),
        metavar="MS",
        help=f"a row every so many milliseconds (default: {_row_steps()})",
    )
    parser.add_argument(
        "--replace-invalid",
        action="store_true",
        help="read NaN, infinity and samples beyond a million times full scale as 0, and say how "
        "many there were",
    )
    parser.add_argument(
        "-c",
        "--channels",
        type=lambda text: EACH if text in (EACH, "all") else channel_list(text),
        metavar="LIST",
        help=f"channels: 1, or 1,2; all (or {EACH}) analyzes each by itself",
    )
    parser.add_argument(
        "--jobs",
        type=number(1, 1024, "processes", whole=True),
        default=1,
        metavar="N",
        help="use so many processes: for as many files at once, or for the parts of a long one "
        "(default: 1)",
    )
    parser.add_argument(
        "--ray",
        nargs="?",
        const="auto",
        metavar="ADDRESS",
        help="analyze on a cluster of Ray, which sees the same folders (extra `ray`): the one that "
        "runs here or that RAY_ADDRESS names, or this one; local makes one for this run",
    )
    parser.add_argument(
        "--progress",
        dest="progress_s",
        type=number(0.1, 86400, "seconds"),
        metavar="S",
        help="say on standard error how far it has come, a line every so many seconds (default: a "
        "bar on a terminal, else a line a minute)",
    )
    parser.add_argument(
        "--calibrations",
        metavar="FILE",
        help="calibration: a CSV file with the columns file, channel and full_scale_db, or "
        "sensitivity_dbfs (how a sine of 94 dB SPL reads in dBFS); a file may be a pattern, and an "
        "empty file or channel stands for all of them",
    )
    parser.add_argument(
        "--calibrator",
        metavar="FILE",
        help="calibration: a recording of an acoustic calibrator at the same gain, whose tone of 1 "
        "kHz lasts 3 s; one channel stands for all of them. A pattern, such as 'day*/tone.wav', is "
        "a recording for each folder: that of the nearest holds",
    )
    parser.add_argument(
        "--level",
        type=number(40, 170, "dB SPL"),
        metavar="DB",
        help="level of the calibrator in dB SPL (default: 94)",
    )
    _intervals(
        parser,
        "write no rows, but a table with the statistics of each interval, of elapsed time or, with "
        "--began, of the clock",
    )
    parser.add_argument(
        "--began",
        type=read_by(date_and_time),
        metavar="WHEN",
        help="when the recording began, as 2026-11-20T22:00:00, by the clock of --zone or with an "
        "offset such as +01:00",
    )
    _zone(parser, "intervals, --local-time and --began", "this computer's")
    _fail_above(parser)
    _rows(parser)
    _model(parser)


def _row_steps() -> str:
    """Time between the rows of a file, by model, in words."""
    steps: dict[int, list[str]] = {}
    for name in catalog.names():
        steps.setdefault(catalog.entry(name).row_step_ms, []).append(name)
    told = [f"{step} for {', '.join(names)}" for step, names in sorted(steps.items())]
    return f"{'; '.join(told)}; of several models the longest of theirs"


def replay_options(parser: argparse.ArgumentParser) -> None:
    """Those of `replay`."""
    parser.add_argument("session", metavar="SESSION", help="the folder of a log with sound")
    parser.add_argument(
        "--run",
        type=number(1, 1e6, "runs", whole=True),
        metavar="N",
        help="of several runs in the folder, counted from 1 (default: the last)",
    )


def mark_options(parser: argparse.ArgumentParser) -> None:
    """Those of `mark`."""
    parser.add_argument("session", metavar="LOG", help="the folder that --log named")
    parser.add_argument("text", metavar="TEXT", help="what happened, such as 'door slams'")


def verify_options(parser: argparse.ArgumentParser) -> None:
    """Those of `verify`."""
    parser.add_argument("session", metavar="SESSION", help="the folder that --log named")
    parser.add_argument(
        "--head",
        metavar="HASH",
        help="a last hash that was noted earlier: is it still there?",
    )
    parser.add_argument(
        "--sign",
        metavar="KEY.pem",
        help="sign the last hash of a session that is intact, with a private key of Ed25519",
    )
    parser.add_argument(
        "--public-key", metavar="KEY.pem", help="check the signature with the public key"
    )


def report_options(parser: argparse.ArgumentParser) -> None:
    """Those of `report`."""
    parser.add_argument(
        "session", metavar="LOG", help="the folder of a log, or a file of rows (.csv, .jsonl ...)"
    )
    parser.add_argument(
        "--out",
        metavar="FILE",
        help="to write: .html, whole in itself, or .pdf, which needs the extra `app` (default: "
        "LOG-report.html)",
    )
    parser.add_argument("--force", action="store_true", help="overwrite it")
    _results(parser)
    words = {
        "title": "what stands above it all (default: Sound measurement)",
        "place": "where it was measured",
        "client": "for whom",
        "engineer": "by whom",
        "note": "what else is to be said",
    }
    for name, help in words.items():
        parser.add_argument(f"--{name}", metavar="TEXT", default="", help=help)
    _zone(parser, "tell times", "the log's, or else this computer's")
    _part(parser)
    _intervals(parser, "a table of readings by interval")


def compare_options(parser: argparse.ArgumentParser) -> None:
    """Those of `compare`."""
    what = "a log, a file of rows (.csv, .jsonl, .parquet), or a file of sound"
    parser.add_argument("a", metavar="A", help=what)
    parser.add_argument("b", metavar="B", help="what is compared with it: another one")
    parser.add_argument(
        "--same-place",
        action="store_true",
        help="the same microphone stood at the same place, and the sounds have spectra alike: its "
        "error is common to both and cancels",
    )
    parser.add_argument(
        "--independent",
        action="store_true",
        help="the calibrations are two, though what is told of them is the same: nothing cancels",
    )
    _part(parser)
    _intervals(parser, "compare each interval too: those of one time of day, or since the start")
    _zone(parser, "times of day", "of each its log's, or else this computer's")
    parser.add_argument("--json", action="store_true", help="print a JSON object")
    parser.add_argument(
        "--out",
        metavar="FILE",
        help="write a page instead, with both over time: .html, or .pdf, which needs the extra "
        "`app`",
    )
    parser.add_argument("--force", action="store_true", help="overwrite what --out names")
    _levels(parser)
    parser.add_argument(
        "--model",
        type=model_list,
        metavar="LIST",
        help="of files of sound: measure them by these, with commas between (default: "
        "moore2016,spl)",
    )


def lden_options(parser: argparse.ArgumentParser) -> None:
    """Those of `lden`."""
    parser.add_argument(
        "paths",
        nargs="+",
        metavar="LOG",
        help="the folder of a log, a folder of logs, or a file of rows, all of one place",
    )
    parser.add_argument(
        "--hours",
        type=_hours,
        default="eu",
        metavar="NAME|LIST",
        help="when day, evening and night begin: eu (default; 2002/49/EC), at, de, dk, fi, fr, it, "
        "pl, pt, se, or us for Ldn; or 7,19,22, or 7,22 without an evening",
    )
    _zone(parser, "hours", "the log's, or else this computer's")
    parser.add_argument(
        "--row", metavar="NAME", help="of several microphones, each heard by itself: which"
    )
    parser.add_argument(
        "--format",
        choices=("text", "csv", "json"),
        default="text",
        help="of the levels, for each day and of all (default: text)",
    )


def _hours(text: str) -> Any:
    from amt_stream.day_levels import NoDayLevels, hours_named

    try:
        return hours_named(text)
    except NoDayLevels as refusal:
        raise argparse.ArgumentTypeError(str(refusal)) from refusal


def _results(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--run",
        type=number(1, 1e6, "runs", whole=True),
        metavar="N",
        help="of several runs in a log, counted from 1 (default: the last)",
    )
    parser.add_argument(
        "--row", metavar="NAME", help="of several microphones, each heard by itself: which"
    )


def selftest_options(parser: argparse.ArgumentParser) -> None:
    """Those of `selftest`."""
    checked = catalog.names(lambda entry: entry.checks is not None)
    parser.add_argument(
        "--model",
        type=model_list,
        metavar="LIST",
        help=f"only these of {', '.join(checked)}, with commas between",
    )
    parser.add_argument(
        "--faults",
        action="store_true",
        help="instead, put faults into a sound (losses, late blocks, clipping, an unplugged device "
        "...) and compare what is counted with what was put in, in some 30 seconds",
    )
    parser.add_argument("--report", metavar="PATH", help="write a verification report, in Markdown")
    parser.add_argument("--force", action="store_true", help="overwrite what --report names")


def export_options(parser: argparse.ArgumentParser) -> None:
    """Those of `export`."""
    parser.add_argument(
        "what", metavar="STAGE|PRESET", help="the name of a stage, or a preset with one model"
    )
    parser.add_argument("out", metavar="FILE", help="to write, as moore2016.pt2")
    parser.add_argument("--force", action="store_true", help="overwrite it")
    parser.add_argument(
        "-r",
        "--samplerate",
        dest="fs",
        type=number(SLOWEST_FS, FASTEST_FS, "Hz", whole=True),
        default=PCM_FS,
        metavar="HZ",
        help=f"of the sound (default: {PCM_FS})",
    )
    parser.add_argument(
        "-c",
        "--channels",
        type=number(1, 64, "channels", whole=True),
        default=2,
        metavar="N",
        help="ears, or channels (default: 2)",
    )
    parser.add_argument(
        "--shape",
        type=listed(number(1, 1e6, "", whole=True)),
        metavar="LIST",
        help="of what a stage takes, without time, as 1,2,31 (default: 1 and the channels)",
    )
    parser.add_argument(
        "--block-ms",
        type=number(0.01, 1000, "ms"),
        default=10.0,
        metavar="MS",
        help="length of a block, brought to a whole number of the stage's own (default: 10)",
    )


def bench_options(parser: argparse.ArgumentParser) -> None:
    """Those of `bench`."""
    parser.add_argument(
        "--model",
        type=listed(str, *catalog.names()),
        metavar="LIST",
        help=f"only these of {', '.join(catalog.names())}, with commas between, each by itself",
    )
    parser.add_argument(
        "--stages", action="store_true", help="time each stage of a model too, on what it gets"
    )
    parser.add_argument(
        "--block-ms",
        type=listed(number(0.1, 1000, "ms")),
        default=(1.0, 10.0),
        metavar="LIST",
        help="lengths of the blocks, with commas between (default: 1,10)",
    )
    parser.add_argument(
        "--streams",
        type=listed(number(1, 4096, "streams", whole=True)),
        default=(1,),
        metavar="LIST",
        help="how many listeners one model hears at once (default: 1)",
    )
    parser.add_argument(
        "--dtype",
        type=listed(str, "float32", "float64"),
        default=("float32",),
        metavar="LIST",
        help="float32 (default), float64 or both",
    )
    parser.add_argument(
        "--seconds",
        type=number(0.01, 3600, "s"),
        default=2.0,
        metavar="S",
        help="sound for each figure (default: 2)",
    )
    parser.add_argument(
        "--start", action="store_true", help="time how a new process starts with each model too"
    )
    parser.add_argument("--json", action="store_true", help="print a JSON object a line")


def _source(parser: argparse.ArgumentParser, help: str) -> None:
    parser.add_argument("--source", metavar="SOURCE", help=help)
    parser.add_argument(
        "--pcm", choices=PCM, help="sample format on standard input (default: s16le)"
    )


def _device(parser: argparse.ArgumentParser, several: bool = False) -> None:
    list_devices_option(parser)
    parser.add_argument("-d", "--device", help="input device: its index or part of its name")
    parser.add_argument(
        "-c",
        "--channels",
        type=named_channels if several else channel_list,
        action=_EachRow if several else "store",
        metavar="LIST",
        help="channels, counted from 1: one for both ears (1) or left and right (1,2); with "
        "--source - how many channels there are, 1 or 2"
        + (
            ". Given again, as -c 1,2 -c 3,4 or -c desk=1,2 -c door=3, each is heard by itself, "
            "with rows of its own (--format, or --log with --quiet)"
            if several
            else ""
        ),
    )
    if several:
        parser.set_defaults(rows=())
    parser.add_argument(
        "-r",
        "--samplerate",
        type=number(SLOWEST_FS, FASTEST_FS, "Hz", whole=True),
        metavar="HZ",
        help="of the device, the demo sound, or standard input (default: 48000)",
    )
    parser.add_argument(
        "-b",
        "--blocksize",
        type=number(1, 192000, "samples", whole=True),
        metavar="N",
        help="samples taken at a time (default: those of the preset's block_ms)",
    )


def _fail_above(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--fail-above",
        action="store_true",
        help=f"end with status {EXCEEDED} where a limit was exceeded, and with 1 where one was "
        "never known",
    )


def _rows(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--columns",
        metavar="LIST",
        help="columns of rows by name, or by a pattern such as 'laeq*' or '*_phon', with commas "
        "between; also of the last so many s, min or h: laeq_15min_db, ltl_n5_10min_phon "
        "(default: a choice for each model)",
    )
    parser.add_argument(
        "--limit",
        "--limits",
        action="append",
        metavar="NORM|'COLUMN>VALUE'",
        help=f"what columns are not to be above: one or more of {', '.join(shipped_norms())}; a "
        "TOML file; or a line such as 'laeq_15min_db>100,amber=97,hysteresis=1,hold=2' (or < for "
        "below). May be given again. Rows have the state of each, green, amber or red; without "
        "--model and --preset the models are those that the columns need",
    )
    parser.add_argument(
        "--from",
        dest="from_s",
        type=elapsed(0, 1e9),
        metavar="S",
        help="rows and statistics begin so many seconds into the sound, or 1h30m (default: 0)",
    )
    parser.add_argument(
        "--to",
        dest="to_s",
        type=elapsed(1e-3, 1e9),
        metavar="S",
        help="rows and statistics end so many seconds into the sound, or 1h30m",
    )
    parser.add_argument(
        "--target",
        dest="target_lufs",
        type=number(-70, 0, "LUFS"),
        metavar="LUFS",
        help=f"of {_takers('target_lufs')}: tell loudness relative to this too, in LU",
    )
    parser.add_argument(
        "--dual-mono",
        action="store_true",
        help=f"of {_takers('dual_mono')}: one channel counts as two, 3.01 LU more",
    )


def _csv(parser: argparse.ArgumentParser, where: str) -> None:
    """What makes CSV a table that a spreadsheet opens."""
    parser.add_argument(
        "--no-header",
        action="store_true",
        help="CSV begins with the names of its columns, as a spreadsheet wants it; what else is "
        f"told of the rows goes {where}, as a line of JSON",
    )
    parser.add_argument(
        "--local-time",
        action="store_true",
        help="CSV has a column local_time beside utc, by the clock of --zone, as a spreadsheet "
        "reads a date: 2026-11-22 14:00:00.250",
    )


def _part(parser: argparse.ArgumentParser) -> None:
    """The part of what was measured."""
    for name, dest, what in (("--from", "begin", "begin"), ("--to", "end", "end")):
        parser.add_argument(
            name,
            dest=dest,
            type=read_by(moment),
            metavar="WHEN",
            help=f"{what} there: seconds or 1h30m since the start, or by the clock 22:00, or "
            "2026-11-20T22:00, with an offset such as +01:00 or without",
        )


def _intervals(parser: argparse.ArgumentParser, what: str) -> None:
    """A table of intervals, and by whose clock it is."""
    parser.add_argument(
        "--interval",
        type=read_by(interval_s),
        metavar="LENGTH",
        help=f"{what}: 1s to 24h of the clock, such as 15min (:00, :15 ...), 1h or 24h",
    )


def _zone(parser: argparse.ArgumentParser, what: str, usual: str) -> None:
    parser.add_argument(
        "--zone",
        type=read_by(zone_named),
        metavar="NAME",
        help=f"{what} by this zone, as Europe/Berlin or UTC (default: {usual})",
    )


def _takers(option: catalog.ReadingsTake) -> str:
    """The models whose readings take an option, in words."""
    return ", ".join(catalog.names(lambda entry: option in entry.readings_take))


def _model(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--field",
        choices=settings_of(catalog.names())["field"],
        help="where the sound was picked up: free or diffuse sound field, or at the eardrum",
    )
    _levels(parser)
    correction_options(
        parser,
        "taken off the sound: lines of hertz and dB (.cal, .txt, .frd). Once for each channel "
        f"where they differ; {NONE} for not the one kept for the device (default: that one)",
    )
    parser.add_argument(
        "--model",
        type=model_list,
        metavar="LIST",
        help=f"one or more of {', '.join(catalog.side_by_side())}, with commas between; or one of "
        f"{', '.join(catalog.names(lambda entry: entry.alone))}, which give the strength of "
        f"modulations by auditory band (default: that of the preset, {DEFAULT})",
    )
    parser.add_argument(
        "--compute",
        choices=DEVICES,
        help="where the models run: on the CPU, or on a GPU by CUDA, and on the CPU where there is "
        f"none (default: that of the preset, {DEVICES[0]})",
    )
    parser.add_argument(
        "--preset",
        metavar="NAME|PATH",
        help="settings by name or from a TOML file (default: those of the model)",
    )


def _levels(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--full-scale-db",
        type=number(0, 250, "dB SPL"),
        metavar="DB",
        help="calibration: level in dB SPL of a full-scale sine",
    )
    parser.add_argument(
        "--calibration-uncertainty",
        type=number(0, LARGEST_UNCERTAINTY_DB, "dB"),
        metavar="DB",
        help="of that level, or of the calibrator that gave the one kept for a device, expanded "
        "(k = 2): loudness is then told with a band (default: what `calibrate` kept; else none)",
    )
    parser.add_argument(
        "--microphone-uncertainty",
        type=number(0, LARGEST_UNCERTAINTY_DB, "dB"),
        metavar="DB",
        help="of the microphone for other sounds than the calibrator's, expanded (k = 2), where "
        f"that of the calibration is known (default: {MICROPHONE_UNCERTAINTY_DB:g}, an assumption "
        "for a measurement microphone in a free field)",
    )


OR_ANEW = "or-anew"
"""How --resume is meant where a new run is to begin rather than nothing."""

NONE = "none"
"""What --correction names where there is to be no correction."""


def correction_options(parser: argparse.ArgumentParser, what: str) -> None:
    """The file that says what a microphone does, and its sign."""
    parser.add_argument(
        "--correction",
        action="append",
        metavar="FILE",
        help=f"the microphone's response, {what}",
    )
    parser.add_argument(
        "--correction-inverted",
        action="store_true",
        help="that file says what is to be added to readings, and not the response",
    )


def list_devices_option(parser: argparse.ArgumentParser, default: Any = argparse.SUPPRESS) -> None:
    """-l, which any command takes and none has to."""
    # A subcommand's own default would overwrite what stood before its name.
    parser.add_argument(
        "-l",
        "--list-devices",
        action="store_true",
        default=default,
        help="list the input devices and end",
    )
