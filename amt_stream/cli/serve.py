"""`amt-stream serve`: measured here, sent over any number of transports, commanded from there."""

import argparse
import asyncio
import socket
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from amt_stream.cli.ending import ending
from amt_stream.cli.log import refuse_log_options
from amt_stream.cli.messages import Mistake, WrongUsage, say
from amt_stream.cli.meter import make_engine, make_models, make_table, metered_input, open_logs
from amt_stream.cli.options import choose_rows, chosen_preset
from amt_stream.presets import Preset
from amt_stream.service.broker import Broker
from amt_stream.service.entrance import Entrance, token_in
from amt_stream.service.lsl import Lsl
from amt_stream.service.mqtt import Mqtt
from amt_stream.service.osc import Osc, OscIn
from amt_stream.service.share import square
from amt_stream.service.specific import asks
from amt_stream.service.station import Made, Station
from amt_stream.service.stdio import Stdio
from amt_stream.service.transport import Transport
from amt_stream.service.udp import Udp
from amt_stream.service.web import Web
from amt_stream.table import Table

if TYPE_CHECKING:
    from amt_stream.engine.outlet import Sink


def run_serve(args: argparse.Namespace) -> int:
    """Measure until the sound ends, or somebody stops it from here or from afar."""
    refuse_log_options(args)
    preset = chosen_preset(args)
    choose_rows(args, preset)
    stdio = _stdio(args)
    web = _web(args)
    own: list[Transport] = [one for one in (stdio, web) if one is not None]
    transports = [*own, *_senders(args)]
    if not transports:
        raise WrongUsage("nothing is served: add --web, --stdio, --udp or --osc HOST:PORT")
    asked = asks() if web is not None else {}

    def make(preset: Preset, sink_of: Callable[[Table], "Sink"]) -> Made:
        return measurement(args, preset, sink_of, asked)

    def over() -> bool:
        return bool(ending.asked) or (stdio is not None and stdio.ended.is_set())

    station = Station(make, preset, transports, opened=lambda: _say_where(args, web))
    ending.hold()
    asyncio.run(station.serve(over))
    if station.error:
        raise Mistake(station.error)
    return 0


def measurement(
    args: argparse.Namespace,
    preset: Preset,
    sink_of: Callable[[Table], "Sink"],
    asked: Mapping[str, bool],
) -> Made:
    """A new engine by what was typed, not yet started, and its rows.

    asked: what models are to give besides, those that can
    """
    given = metered_input(args, preset)
    models = make_models(given, preset, asked)
    table = make_table(args, preset, given, models, args.step_ms or preset.step_ms)
    logs = open_logs(args, preset, given, models, args.blocksize)
    for log in logs:
        log.go_on_with(table.rows)
    return make_engine(given, preset, models, [sink_of(table), *logs], args.blocksize), table


def _senders(args: argparse.Namespace) -> list[Transport]:
    """Those that send to an address that was typed."""
    found: list[Transport] = [Udp(*address) for address in args.udp]
    found += [Osc(*address) for address in args.osc]
    found += [OscIn(args.osc_in)] if args.osc_in else []
    found += [Lsl(network=args.lsl == "network")] if args.lsl else []
    return [*found, *_mqtt(args)]


def _mqtt(args: argparse.Namespace) -> list[Transport]:
    if args.mqtt is None:
        return []
    return [
        Mqtt(
            Broker(*args.mqtt).with_login(args.mqtt_login),
            args.mqtt_topic or f"amt/{socket.gethostname()}",
            every_s=args.mqtt_every,
            commands=args.mqtt_commands,
            found_at=args.mqtt_discovery,
        )
    ]


def _stdio(args: argparse.Namespace) -> Stdio | None:
    if not args.stdio:
        return None
    if args.source == "-":
        raise WrongUsage("--stdio reads commands from standard input, and --source - sound")
    return Stdio(sys.stdin.buffer, sys.stdout)


def _web(args: argparse.Namespace) -> Web | None:
    typed = {"--listen": args.listen, "--token-file": args.token_file}
    typed |= {"--allow-origin": args.allow_origin, "--share": args.share or None}
    if args.web is None:
        for name, value in typed.items():
            if value is not None:
                raise WrongUsage(f"{name} is of the page: add --web")
        return None
    host = args.listen or "127.0.0.1"
    token = None if args.token_file is None else token_in(args.token_file)
    return Web(host, args.web, Entrance(host, token, args.allow_origin or ()))


def _say_where(args: argparse.Namespace, web: Web | None) -> None:
    if web is None:
        return
    say(f"the page is at {web.address}")
    if args.share:
        print(square(web.address), file=sys.stderr, flush=True)
