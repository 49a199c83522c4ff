"""`amt-stream serve`: measure, send readings over any number of transports, and accept commands."""

import asyncio
import io
import socket
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path

from amt_stream.cli.complaints import Complaints
from amt_stream.cli.ending import ending
from amt_stream.cli.log import logged, refuse_log_options
from amt_stream.cli.making import EngineSetup, metered_input
from amt_stream.cli.messages import Mistake, WrongUsage, say
from amt_stream.cli.options.live import ServeOptions
from amt_stream.cli.preset import chosen_preset, with_limits_and_events, with_microphones
from amt_stream.engine.sinks.sink_thread import Sink
from amt_stream.meters.presets import Preset
from amt_stream.meters.table import Table
from amt_stream.service.metrics import Metrics
from amt_stream.service.page.entrance import token_in
from amt_stream.service.reference import ReferenceTone
from amt_stream.service.specific import asks
from amt_stream.service.station import Await, Made, Station
from amt_stream.service.systemd import manager
from amt_stream.service.transports import http_endpoint
from amt_stream.service.transports.http_sender import token_from
from amt_stream.service.transports.influx import Influx
from amt_stream.service.transports.lsl import NAME, Lsl
from amt_stream.service.transports.mqtt import Broker, Mqtt, topic_of
from amt_stream.service.transports.osc import Osc, OscIn
from amt_stream.service.transports.stdio import Stdio
from amt_stream.service.transports.transport import Transport, missing
from amt_stream.service.transports.udp import Udp
from amt_stream.service.transports.webhook import Webhook
from amt_stream.service.web import Web

Follower = Callable[[Station], Awaitable[None]]
"""A coroutine function that runs beside a station until it is cancelled."""


class MeasurementPlan:
    """Makes measurements from options and a preset, both of which a reload may change."""

    def __init__(self, args: ServeOptions, preset: Preset) -> None:
        self.args, self.preset = args, preset
        self._restore = args.restore

    def make(self, preset: Preset, sink_of: Callable[[Table], Sink], wait_for: Await) -> Made:
        """Make a new engine, not yet started, and its rows."""
        args, preset = self.args, with_limits_and_events(preset, self.args)
        found = metered_input(args, preset, wait_for=wait_for)
        with found.started(preset.run_in) as given:
            # Only the page shows specific loudness.
            specific = asks() if args.web is not None else {}
            setup = EngineSetup.made(args, preset, given, args.blocksize, specific)
            table = setup.table()
            restored = logged(args, None if args.log is None else Path(args.log), self._restore)
            logs = replace(setup, args=restored).logs()
            self._restore = False  # later measurements begin by command
            for log in logs:
                log.go_on_with(table.rows)
            return setup.engine([sink_of(table), *logs, *setup.keepers(logs)]), table


def with_preset(args: ServeOptions) -> tuple[ServeOptions, Preset]:
    """The options with the microphones of the preset, and the preset."""
    refuse_log_options(args, serves=True)
    preset = chosen_preset(args)
    return with_microphones(args, preset), preset


def run_serve(args: ServeOptions) -> int:
    """Measure and serve until the sound ends, or until a user or a client stops it."""
    return serve(MeasurementPlan(*with_preset(args)))


def serve(plan: MeasurementPlan, followers: Sequence[Follower] = ()) -> int:
    """Measure and serve by a plan, with followers running beside it."""
    args = plan.args
    metrics = None if args.web is None else Metrics(args.identity)
    stdio, web = _stdio(args), _web(args, metrics)
    own: list[Transport] = [one for one in (stdio, metrics, web, manager()) if one is not None]
    transports = [*own, *_senders(args)]
    if not transports and args.log is None and args.event_folder is None:
        raise WrongUsage(
            "no transport: add --web, --stdio, --udp, --osc, --lsl, --mqtt, --influx or --post"
        )

    def over() -> bool:
        return bool(ending.asked) or (stdio is not None and stdio.ended.is_set())

    station = Station(
        plan.make,
        plan.preset,
        transports,
        identity=args.identity,
        opened=lambda: _say_where(args, web),
        tap=None if metrics is None else metrics.totals.take,
    )
    followers = [*followers, Complaints().follow]
    if args.check_every:
        followers = [*followers, ReferenceTone(args.check_every).follow]
    ending.hold()
    asyncio.run(_follow(station, over, followers))
    if station.error:
        raise Mistake(station.error)
    return 0


async def _follow(
    station: Station, over: Callable[[], bool], followers: Sequence[Follower]
) -> None:
    beside = [asyncio.ensure_future(follow(station)) for follow in followers]
    try:
        await station.serve(over)
    finally:
        for one in beside:
            one.cancel()
        for failed in await asyncio.gather(*beside, return_exceptions=True):
            if isinstance(failed, Exception):
                raise failed


def _senders(args: ServeOptions) -> list[Transport]:
    """The transports that send to an address of the command line."""
    found: list[Transport] = [Udp(*address) for address in args.udp]
    found += [Osc(*address) for address in args.osc]
    found += [OscIn(args.osc_in)] if args.osc_in else []
    return [*found, *_lsl(args), *_mqtt(args), *_influx(args), *_posts(args)]


def _lsl(args: ServeOptions) -> list[Transport]:
    if args.lsl is None:
        return []
    return [Lsl(args.lsl == "network", args.lsl_name or args.station or NAME)]


def _mqtt(args: ServeOptions) -> list[Transport]:
    if not args.mqtt:
        return []
    every_s, found_at = args.mqtt_every, args.mqtt_discovery
    return [
        Mqtt(
            Broker(*args.mqtt).with_login(args.mqtt_login),
            args.mqtt_topic or topic_of(args.station or socket.gethostname()),
            every_s=1.0 if every_s is None else every_s,
            commands=bool(args.mqtt_commands),
            found_at="homeassistant" if found_at is None else found_at,
            if_there=bool(args.mqtt_if_there),
        )
    ]


def _influx(args: ServeOptions) -> list[Transport]:
    if args.influx is None:
        return []
    token = token_from(args.influx_token, http_endpoint.INFLUX_TOKEN)
    return [Influx(http_endpoint.influx_endpoint(args.influx, token), args.identity)]


def _posts(args: ServeOptions) -> list[Transport]:
    token = token_from(args.post_token, http_endpoint.POST_TOKEN) if args.post else None
    places = [str(http_endpoint.Endpoint(one.url)) for one in args.post]
    if token is not None and len(set(places)) > 1:
        raise WrongUsage(
            f"one token would go to all of {', '.join(places)}: leave it out, or --post to one"
        )
    return [
        Webhook(
            f"post {place}" + (f" {number}" if len(places) > 1 else ""),
            recipient,
            args.identity,
            token,
            args.post_only,
        )
        for number, (recipient, place) in enumerate(zip(args.post, places, strict=True), 1)
    ]


def _stdio(args: ServeOptions) -> Stdio | None:
    if not args.stdio:
        return None
    if args.source == "-":
        raise WrongUsage("--stdio reads commands from standard input, and --source - sound")
    return Stdio(sys.stdin.buffer, sys.stdout)


def _web(args: ServeOptions, metrics: Metrics | None) -> Web | None:
    if args.web is None:
        return None
    host = args.listen or "127.0.0.1"
    token, viewers = (
        None if path is None else token_in(path) for path in (args.token_file, args.view_token_file)
    )
    return Web(host, args.web, token, args.allow_origin, metrics, viewers)


def _say_where(args: ServeOptions, web: Web | None) -> None:
    if web is None:
        return
    say(f"the page is at {web.address}")
    if args.share:
        print(_square(web.address), file=sys.stderr, flush=True)


def _square(address: str) -> str:
    """An address as a QR code of half blocks, for a phone. Raises ServiceError without segno."""
    try:
        import segno
    except ModuleNotFoundError as error:
        raise missing("--share needs segno") from error
    lines = io.StringIO()
    segno.make(address, micro=False).terminal(lines, compact=True, border=2)
    return lines.getvalue()
