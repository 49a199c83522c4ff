"""`amt-stream run`: a station that nobody watches, by a preset with its options."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NoReturn

from amt_stream.cli.ending import ending
from amt_stream.cli.messages import WrongUsage, say
from amt_stream.cli.options import OptionsParser, RunOptions, StationOptions
from amt_stream.cli.serve import MeasurementPlan, serve, with_preset
from amt_stream.core.errors import Refusal
from amt_stream.core.safe_text import brief, plain, sentence
from amt_stream.meters.presets import load_preset
from amt_stream.service.station import Station

LOOK_S = 0.1
MEASURED = {"model", "field", "step_ms", "columns", "limits", "limit"}
"""Options that a reload can change; all others hold until the next start."""


def run_station(args: RunOptions) -> int:
    """Measure and serve as the preset says until the end of the sound, or a signal.

    SIGHUP reads the preset again: where it can be used, a new measurement begins by it.
    """
    typed = options_of(args.preset, args.more)
    plan = MeasurementPlan(*with_preset(typed))
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


def options_of(name: str, more: Sequence[str]) -> StationOptions:
    """The options of `serve` that a preset has in [run], and what was typed after them."""
    parser = _Parser(
        prog=f"amt-stream run {plain(name)}",
        description="Options of amt-stream serve. What is typed here goes before what the preset "
        "has in its table [run].",
    )
    parser.add_options(StationOptions)
    words = ["--preset", name, *_words(load_preset(name).run), *more]
    try:
        typed: StationOptions = parser.parse_args(words)
    except WrongUsage as refusal:
        raise WrongUsage(f"{name}: [run] or what was typed after it: {refusal}") from refusal
    return typed


class _Parser(OptionsParser):
    """One that raises, as a preset may be read again while a measurement runs."""

    def error(self, message: str) -> NoReturn:
        raise WrongUsage(sentence(message))


def _words(options: Mapping[str, object]) -> list[str]:
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


async def reload(args: RunOptions, plan: MeasurementPlan, station: Station) -> None:
    """Go on as the preset says now; where that cannot be, say why, and go on as before."""
    before = plan.args
    try:
        typed = await asyncio.to_thread(options_of, args.preset, args.more)
        asked, preset = with_preset(typed)
        changed = {k: v for k, v in vars(asked).items() if v != vars(before)[k]}
        kept = sorted(changed.keys() - MEASURED)
        if kept:
            names = ", ".join(f"--{k.replace('_', '-')}" for k in kept)
            say(f"{args.preset}: {names} holds from the next start on")
        measured = {k: v for k, v in changed.items() if k in MEASURED}
        plan.args = replace(before, **measured)
        await station.reload(preset)
    except (Refusal, ValueError) as refusal:
        plan.args = before
        words = f"{args.preset} was read again and is not used: {brief(refusal)}"
        say(words)
        station.tell("reload", words)
    else:
        say(f"{args.preset} was read again, and a new measurement begins by it")
