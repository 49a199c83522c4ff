"""`amt-stream stipa`: the STI by its test signal."""

import contextlib
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from amt_stream.cli.ending import ending
from amt_stream.cli.files import not_to_write
from amt_stream.cli.inputs import DEVICES, Input, open_input
from amt_stream.cli.messages import Mistake, WrongUsage, say, text_table
from amt_stream.cli.options.stipa import StipaOptions
from amt_stream.cli.watch import Watch, heard_s
from amt_stream.core.safe_text import plain
from amt_stream.core.words import counted
from amt_stream.dsp.stipa_signal import CELL_S, FS, OCTAVES, PERIOD_S
from amt_stream.engine.devices.player import Player
from amt_stream.meters.accumulators.stipa import SETTLE_S, StiResult
from amt_stream.sessions.results.stipa_positions import StiPosition
from amt_stream.views import stipa

TURN_S = 0.2
LATE_S = 1.0
"""From the last sample of a measurement to its result, at the most: what was lost gives none."""

LINE_S = 5.0
"""Time between lines of progress, where they do not replace each other."""


def run_stipa(args: StipaOptions) -> int:
    """Write the signal, or play it and measure; exit status 1 for a result that is not valid."""
    if args.write is not None:
        return _write(args, Path(args.write))
    if args.noise is not None and args.noise_first:
        raise WrongUsage("--noise-first measures the noise that --noise gives: leave one out")
    if args.report is not None and (refusal := not_to_write(Path(args.report), args.force)):
        raise Mistake(refusal)
    source = args.source or "mic"
    live = source in DEVICES
    if args.noise_first:
        return _measure_noise(replace(args, duration=args.duration or stipa.NOISE_S), source)
    plays = live and not args.no_play
    seconds = args.duration or (stipa.USUAL_S if live else None)
    args = replace(args, fast=not live, duration=None)
    with _playing(args) if plays else contextlib.nullcontext() as player:
        measurement = _measured(args, source, seconds, player)
        one = measurement.position(args.position or "", args.noise)
    return _report(args, one)


def _write(args: StipaOptions, path: Path) -> int:
    """Write the signal as a sound file."""
    if refusal := not_to_write(path, args.force):
        raise Mistake(refusal)
    stipa.write_signal(path, args.samplerate or FS, args.seed, args.play_level)
    say(f"{path}: {PERIOD_S} s of the STIPA test signal, to be repeated without a pause")
    return 0


@contextlib.contextmanager
def _playing(args: StipaOptions) -> "Iterator[Player]":
    """Play the signal meanwhile."""
    say("making the test signal")
    with stipa.play_signal(args.seed, args.play_level, args.play_on) as player:
        say("playing; --no-play measures a signal that another device plays")
        time.sleep(stipa.BEGIN_S)
        yield player


def _measured(
    args: StipaOptions, source: str, seconds: float | None, player: Player | None = None
) -> stipa.StiMeasurement:
    """Measure for so many seconds, or to the end of a file."""
    from amt_stream.cli.compiling import say_when_compiling
    from amt_stream.engine.engine import Engine
    from amt_stream.meters import catalog
    from amt_stream.meters.rows import JoinedRows
    from amt_stream.meters.rows.models.stipa import StipaReadings
    from amt_stream.sessions.outputs import LatestReadings

    say_when_compiling()
    given: Input = open_input(args, source).with_offset(args.keep_offset)
    given = given.with_uncertainty(args).with_correction(args)
    if given.microphones:
        raise WrongUsage("the signal is measured with one microphone: give --channels once")
    fs = given.source.fs
    try:
        models = {stipa.MODEL: catalog.entry(stipa.MODEL).build(fs)}
        own = StipaReadings(min(2, len(given.channels)))
        latest = LatestReadings(JoinedRows({stipa.MODEL: own}, 100, fs))
        engine = Engine(
            given.source, models, [latest], calibration=given.calibration, channels=given.pick
        )
    except ValueError as error:
        raise Mistake(error) from error
    if seconds is not None:
        own.cover(0.0, seconds + (0.0 if args.fast else SETTLE_S))
    measurement = stipa.StiMeasurement(latest, player)
    with engine:
        ending.hold()
        watch, line = Watch(engine), _LiveResult()
        while not ending.asked:
            ended = engine.wait(TURN_S)
            watch.look()
            result = measurement.result
            line.show(result)
            if ended or engine.error is not None:
                break
            if seconds is None:
                continue
            late = heard_s(engine) > seconds + SETTLE_S + LATE_S
            if late or (result is not None and result.seconds > seconds - CELL_S / 2):
                break
        line.end()
    if engine.error is not None:
        raise Mistake(f"{engine.source.name}: {engine.error}") from engine.error
    if invalid := engine.health.non_finite:
        words = counted(invalid, "invalid sample")
        found = f"{engine.source.name} has {words} (NaN, infinity or absurdly large)"
        if args.fast:
            raise Mistake(f"{found}: repair the sound")
        say(f"{found}, which were left out")
    return measurement


class _LiveResult:
    """The STI so far, on one line of a terminal, or every 5 s."""

    def __init__(self) -> None:
        self._replaces = sys.stderr.isatty()
        self._next_s = LINE_S
        self._shown = False

    def show(self, result: StiResult | None) -> None:
        """Show a result, if it is time."""
        if result is None or (not self._replaces and result.seconds < self._next_s):
            return
        self._next_s = result.seconds + LINE_S
        words = stipa.progress_text(result)
        if not self._replaces:
            say(words)
            return
        with contextlib.suppress(OSError):
            print(f"\r{words:<50}", end="", file=sys.stderr, flush=True)
        self._shown = True

    def end(self) -> None:
        if self._shown:
            with contextlib.suppress(OSError):
                print(file=sys.stderr)


def _measure_noise(args: StipaOptions, source: str) -> int:
    """Print the levels of the noise, as `--noise` takes them."""
    measurement = _measured(replace(args, fast=source not in DEVICES), source, args.duration)
    print(",".join(f"{level:.1f}" for level in measurement.noise_db))
    return 0


def _report(args: StipaOptions, one: StiPosition) -> int:
    """Print the result, and save it."""
    from amt_stream.cli.commands.report import page_target, write_page
    from amt_stream.sessions.report.stipa import stipa_page
    from amt_stream.sessions.results.stipa_positions import save_position

    if args.format == "json":
        print(json.dumps(one.to_dict(), indent=1))
    else:
        print("\n".join(map(plain, _lines(one))))
    if args.save is not None:
        positions = save_position(Path(args.save), one)
        if len(positions) > 1 and (words := stipa.overall_text(positions)):
            say(words)
        if args.report is not None:
            write_page(page_target(args.report, force=True), stipa_page(positions))
            say(f"{args.report}: report written")
    return 1 if one.reasons else 0


def _lines(one: StiPosition) -> list[str]:
    """The result as text."""
    rows: list[tuple[str, ...]] = [("Hz", "m1", "m2", "MTI", "dB SPL" if one.calibrated else "dB")]
    rows += [(str(hz), *texts) for hz, texts in zip(OCTAVES, one.octaves, strict=True)]
    lines = [
        *text_table(rows, lambda k: True),
        "",
        f"{one.words}, after {one.seconds:g} s",
        one.basis,
    ]
    return lines + [f"not valid: {why}" for why in one.reasons]
