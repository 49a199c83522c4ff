"""The options of commands that measure live."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from amt_stream.cli.options.arguments import Broker, EachMicrophone, address, broker, origin, topic
from amt_stream.cli.options.parser import ListsDevices, Options
from amt_stream.core.formats import ROW_FORMATS
from amt_stream.core.values import Choice, Number, parse_microphone
from amt_stream.meters import specification
from amt_stream.meters.calibration import CALIBRATOR_UNCERTAINTY_DB, LONGEST_VALID_DAYS, VALID_DAYS
from amt_stream.meters.output_settings import CsvSettings, EventSettings, LimitSettings, LogSettings
from amt_stream.meters.setting import changed, setting, switch
from amt_stream.service.identity import Identity, parse_label, parse_station
from amt_stream.service.transports import http_endpoint


@dataclass(frozen=True)
class LiveOptions(
    specification.LiveInputSettings,
    specification.CalibrationSettings,
    specification.CorrectionSettings,
    specification.ModelSettings,
    specification.RowSettings,
    LimitSettings,
    LogSettings,
    EventSettings,
    ListsDevices,
):
    """Options of a live measurement."""

    channels: tuple[int, ...] | None = changed(
        specification.InputSettings,
        "channels",
        about="channels, counted from 1: one for both ears (1) or left and right (1,2), or more "
        "for programme loudness; with --source -, one number is how many there are. Repeat it for "
        "several microphones, as -c 1,2 -c 3,4 or -c desk=1,2 -c door=3: each has separate rows "
        "(with --format, or --log with --quiet)",
        parse=parse_microphone,
        option={"action": EachMicrophone},
    )
    background: str | None = setting(
        "--background FILE",
        "measure how loud the rest of the sound is in a steady background, of which FILE is a "
        "recording by the same microphone without the target, 10 s or longer (experimental: the "
        "model `partial`)",
        page="partial.md",
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
        parse=http_endpoint.influx_url,
        lack="an address: add --influx URL",
    )
    influx_token: str | None = setting(
        "--influx-token FILE",
        "file with the token of that server",
        usual=f"{http_endpoint.INFLUX_TOKEN} in the environment, if set",
        needs="influx",
    )
    post: Sequence[http_endpoint.Recipient] = setting(
        "--post URL",
        "post each event, such as a limit that changes its state, to this URL as JSON; "
        "ntfy:https://ntfy.sh/TOPIC for a notification by ntfy; may be repeated",
        default=(),
        parse=http_endpoint.parse_recipient,
        action="append",
        lack="a URL: add --post URL",
    )
    post_only: Sequence[str] = setting(
        "--post-only KINDS",
        "kinds of events to post, separated by commas, such as limit,lost,back",
        default=(),
        parse=http_endpoint.parse_kinds,
        usual="all but checked and removed",
        needs="post",
    )
    post_token: str | None = setting(
        "--post-token FILE",
        "file with the token that the receiver of events needs",
        usual=f"{http_endpoint.POST_TOKEN} in the environment, if set",
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
class CalibrateOptions(specification.InputSettings, specification.CorrectionSettings, ListsDevices):
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
        specification.CalibrationSettings,
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
        specification.CorrectionSettings,
        "correction",
        about="frequency response of the microphone, stored for the device with its calibration: "
        f"a file with lines of hertz and dB (.cal, .txt, .frd); {specification.NONE} removes the "
        "stored one",
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
        "--timeout S", "seconds to wait for the tone", Number(3, 3600, "s"), default=30.0
    )
    format: str = setting(
        "--format",
        "format of the result (default: text); json gives an object for each channel",
        Choice(("text", "json")),
        default="text",
    )
    source: str | None = changed(
        specification.InputSettings,
        "source",
        about="mic, or a recording of the calibrator: a sound file, or - for PCM",
        usual="mic",
    )
