"""`amt-stream run`: a station that nobody watches, by a preset with its options."""

import argparse
import asyncio
from collections.abc import Mapping
from typing import Any, NoReturn

from amt_stream.cli.ending import ending
from amt_stream.cli.messages import WrongUsage, say
from amt_stream.cli.options import serve_options
from amt_stream.cli.serve import Plan, asked_preset, serve
from amt_stream.plain import brief, plain, sentence
from amt_stream.presets import load_preset
from amt_stream.refusal import Refusal
from amt_stream.service.station import Station

LOOK_S = 0.1
MEASURED = {"model", "field", "step_ms", "columns", "limits", "limit"}
"""Options that a reload can change; all others hold until the next start."""


def run_station(args: argparse.Namespace) -> int:
    """Measure and serve as the preset says until the end of the sound, or a signal.

    SIGHUP reads the preset again: where it can be used, a new measurement begins by it.
    """
    typed = options_of(args.preset, args.more)
    plan = Plan(typed, asked_preset(typed))
    asked = [0]

    def hung_up() -> None:
        asked[0] += 1

    ending.hung_up = hung_up

    async def follow(station: Station) -> None:
        done = 0
        while True:
            await asyncio.sleep(LOOK_S)
            if asked[0] != done:
                done = asked[0]
                await reload(args, plan, station)

    return serve(plan, [follow])


def options_of(name: str, more: list[str]) -> argparse.Namespace:
    """The options of `serve` that a preset has in [run], and what was typed after them."""
    parser = _Parser(
        prog=f"amt-stream run {plain(name)}",
        description="Options of amt-stream serve. What is typed here goes before what the preset "
        "has in its table [run].",
    )
    serve_options(parser)
    parser.set_defaults(check_every=3600.0)
    words = ["--preset", name, *_words(load_preset(name).run), *more]
    try:
        return parser.parse_args(words)
    except WrongUsage as refusal:
        raise WrongUsage(f"{name}: [run] or what was typed after it: {refusal}") from refusal


class _Parser(argparse.ArgumentParser):
    """One that raises, as a preset may be read again while a measurement runs."""

    def error(self, message: str) -> NoReturn:
        raise WrongUsage(sentence(message))


def _words(options: Mapping[str, Any]) -> list[str]:
    """Options as they would be typed."""
    words = []
    for key, value in options.items():
        name = f"--{key.replace('_', '-')}"
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, bool):
                words += [name] if one else []
            else:
                words.append(f"{name}={one}")
    return words


async def reload(args: argparse.Namespace, plan: Plan, station: Station) -> None:
    """Go on as the preset says now; where that cannot be, say why, and go on as before."""
    before = plan.args
    try:
        typed = await asyncio.to_thread(options_of, args.preset, args.more)
        preset = asked_preset(typed)
        changed = {k: v for k, v in vars(typed).items() if v != vars(before)[k]}
        kept = sorted(changed.keys() - MEASURED)
        if kept:
            names = ", ".join(f"--{k.replace('_', '-')}" for k in kept)
            say(f"{args.preset}: {names} holds from the next start on")
        measured = {k: v for k, v in changed.items() if k in MEASURED}
        plan.args = argparse.Namespace(**vars(before) | measured)
        await station.reload(preset)
    except (Refusal, ValueError) as refusal:
        plan.args = before
        words = f"{args.preset} was read again and is not used: {brief(refusal)}"
        say(words)
        station.tell("reload", words)
    else:
        say(f"{args.preset} was read again, and a new measurement begins by it")
