"""`amt-stream run`: an unattended station, started from a preset."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NoReturn

from amt_stream.cli.commands.serve import MeasurementPlan, serve, with_preset
from amt_stream.cli.ending import ending
from amt_stream.cli.messages import WrongUsage, say
from amt_stream.cli.options.live import RunOptions, StationOptions
from amt_stream.cli.options.parser import OptionsParser
from amt_stream.core.errors import Refusal
from amt_stream.core.safe_text import brief, plain, sentence
from amt_stream.meters.presets import load_preset
from amt_stream.service.station import Station

LOOK_S = 0.1
MEASURED = {"model", "field", "step_ms", "columns", "limits", "limit"}
"""Options that a reload can change; others take effect at the next start."""


def run_station(args: RunOptions) -> int:
    """Measure and serve with a preset until the end of the sound, or a signal.

    SIGHUP reloads the preset: if it is valid, a new measurement begins with it.
    """
    typed = options_of(args.preset, args.more)
    plan = MeasurementPlan(*with_preset(typed))
    requests = [0]

    def hung_up() -> None:
        requests[0] += 1

    ending.hung_up = hung_up

    async def follow(station: Station) -> None:
        done = 0
        while True:
            await asyncio.sleep(LOOK_S)
            if requests[0] != done:
                done = requests[0]
                await reload(args, plan, station)

    return serve(plan, [follow])


def options_of(name: str, more: Sequence[str]) -> StationOptions:
    """The options of `serve` in a preset's table [run], overridden by the command line."""
    parser = _Parser(
        prog=f"amt-stream run {plain(name)}",
        description="Options of amt-stream serve. They override those in the preset's table [run].",
    )
    parser.add_options(StationOptions)
    words = ["--preset", name, *_words(load_preset(name).run), *more]
    try:
        typed: StationOptions = parser.parse_args(words)
    except WrongUsage as refusal:
        raise WrongUsage(f"{name}: [run] or the options after it: {refusal}") from refusal
    return typed


class _Parser(OptionsParser):
    """A parser that raises, as a preset may be reloaded during a measurement."""

    def error(self, message: str) -> NoReturn:
        raise WrongUsage(sentence(message))


def _words(options: Mapping[str, object]) -> list[str]:
    """Options as command-line arguments."""
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
    """Continue with the reloaded preset; if it is invalid, say why and continue as before."""
    before = plan.args
    try:
        typed = await asyncio.to_thread(options_of, args.preset, args.more)
        new, preset = with_preset(typed)
        changed = {k: v for k, v in vars(new).items() if v != vars(before)[k]}
        later = sorted(changed.keys() - MEASURED)
        if later:
            names = ", ".join(f"--{k.replace('_', '-')}" for k in later)
            say(f"{args.preset}: {names} takes effect at the next start")
        measured = {k: v for k, v in changed.items() if k in MEASURED}
        plan.args = replace(before, **measured)
        await station.reload(preset)
    except (Refusal, ValueError) as refusal:
        plan.args = before
        words = f"{args.preset} was reloaded and is not used: {brief(refusal)}"
        say(words)
        station.tell("reload", words)
    else:
        say(f"{args.preset} was reloaded, and a new measurement begins")
