"""`amt-stream stipa`: the STI by its test signal."""

import contextlib
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from amt_stream.cli.ending import ending
from amt_stream.cli.files import not_to_write
from amt_stream.cli.inputs import DEVICES, Input, open_input
from amt_stream.cli.messages import Mistake, WrongUsage, say, text_table
from amt_stream.cli.options.stipa import StipaOptions
from amt_stream.cli.watch import Watch, heard_s
from amt_stream.core.safe_text import plain
from amt_stream.core.words import counted
from amt_stream.dsp.stipa_signal import FS, OCTAVES, PERIOD_S, stipa_signal
from amt_stream.meters.accumulators.stipa import SETTLE_S, StiResult
from amt_stream.meters.calibration import utc_now

if TYPE_CHECKING:
    from amt_stream.sessions.results.stipa_positions import StiPosition

MODEL = "stipa"
USUAL_S, NOISE_S = 25.0, 10.0
TURN_S = 0.2
LINE_S = 5.0
"""Time between lines of progress, where they do not replace each other."""

BEGIN_S = 1.0
"""From the start of the player until its sound is in the room."""


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
        return _measure_noise(replace(args, duration=args.duration or NOISE_S), source)
    plays = live and not args.no_play
    seconds = args.duration or (USUAL_S if live else None)
    args = replace(args, fast=not live, duration=None)
    with _playing(args) if plays else contextlib.nullcontext():
        result, calibrated, name = _measured(args, source, seconds)
    if args.noise is not None and not calibrated:
        raise Mistake(
            f"--noise needs the true level of {name}: calibrate it, or --full-scale-db DB"
        )
    return _report(args, result, calibrated)


def _signal(args: StipaOptions, fs: int) -> NDArray[np.float32]:
    return stipa_signal(fs, args.seed, rms=10 ** (args.play_level / 20))


def _write(args: StipaOptions, path: Path) -> int:
    """Write the signal as a sound file."""
    import soundfile

    if refusal := not_to_write(path, args.force):
        raise Mistake(refusal)
    fs = args.samplerate or FS
    try:
        soundfile.write(path, _signal(args, fs), fs, subtype="PCM_24")
    except (soundfile.LibsndfileError, TypeError, ValueError, OSError) as error:
        raise Mistake(f"{path} cannot be written: {error}") from error
    say(f"{path}: {PERIOD_S} s of the STIPA test signal, to be repeated without a pause")
    return 0


@contextlib.contextmanager
def _playing(args: StipaOptions) -> Iterator[None]:
    """Play the signal meanwhile."""
    from amt_stream.engine.devices.player import Player

    say("making the test signal")
    with Player(_signal(args, FS), FS, args.play_on):
        say("playing; --no-play measures a signal that another device plays")
        time.sleep(BEGIN_S)
        yield


def _measured(
    args: StipaOptions, source: str, seconds: float | None
) -> tuple[StiResult | None, bool, str]:
    """Measure for so many seconds, or to the end of a file; the result, and whether calibrated."""
    from amt_stream.cli.compiling import say_when_compiling
    from amt_stream.engine.engine import Engine
    from amt_stream.meters import catalog
    from amt_stream.meters.rows import JoinedRows
    from amt_stream.meters.rows.models.stipa import StipaReadings
    from amt_stream.meters.rows.readings import CALIBRATED
    from amt_stream.sessions.outputs import LatestReadings

    say_when_compiling()
    given: Input = open_input(args, source).with_offset(args.keep_offset)
    given = given.with_uncertainty(args).with_correction(args)
    if given.microphones:
        raise WrongUsage("the signal is measured with one microphone: give --channels once")
    fs = given.source.fs
    try:
        models = {MODEL: catalog.entry(MODEL).build(fs)}
        own = StipaReadings(min(2, len(given.channels)))
        latest = LatestReadings(JoinedRows({MODEL: own}, 100, fs))
        engine = Engine(
            given.source,
            models,
            [latest],
            calibration=given.calibration,
            channels=given.pick,
        )
    except ValueError as error:
        raise Mistake(error) from error
    if seconds is not None:
        own.cover(0.0, seconds + (0.0 if args.fast else SETTLE_S))
    with engine:
        ending.hold()
        watch, line = Watch(engine), _LiveResult()
        while not ending.asked:
            ended = engine.wait(TURN_S)
            watch.look()
            if latest.row is not None:
                line.show(latest.row)
            if ended or engine.error is not None:
                break
            if seconds is not None and heard_s(engine) >= seconds + SETTLE_S:
                break
        line.end()
    if engine.error is not None:
        raise Mistake(f"{engine.source.name}: {engine.error}") from engine.error
    return own.overall, own.level == CALIBRATED, given.source.name


class _LiveResult:
    """The STI so far, on one line of a terminal, or every 5 s."""

    def __init__(self) -> None:
        self._replaces = sys.stderr.isatty()
        self._next_s = LINE_S
        self._shown = False

    def show(self, row: dict[str, object]) -> None:
        """Show a row, if it is time."""
        seconds = float(row.get("sti_total_s") or 0.0)  # type: ignore[arg-type]
        if not seconds or (not self._replaces and seconds < self._next_s):
            return
        self._next_s = seconds + LINE_S
        value, sd = (float(row.get(k) or 0.0) for k in ("sti_total", "sti_total_sd"))  # type: ignore[arg-type]
        words = f"{seconds:4.1f} s: STI {value:.2f} ± {sd:.3f}"
        words += "" if seconds >= 15 else " (uncertain until 15 s)"
        if not self._replaces:
            say(words)
            return
        with contextlib.suppress(OSError):
            print(f"\r{words:<50}", end="", file=sys.stderr, flush=True)
        self._shown = True

    def end(self) -> None:
        """End the line."""
        if self._shown:
            with contextlib.suppress(OSError):
                print(file=sys.stderr)


def _measure_noise(args: StipaOptions, source: str) -> int:
    """Print the levels of the noise, as `--noise` takes them."""
    result, calibrated, name = _measured(
        replace(args, fast=source not in DEVICES), source, args.duration
    )
    if result is None:
        raise Mistake(f"{name}: less than 4 s of sound are too little for the level of noise")
    if not calibrated:
        raise Mistake(f"{name} is not calibrated: calibrate it, or --full-scale-db DB")
    print(",".join(f"{level:.1f}" for level in result.level_db))
    return 0


def _report(args: StipaOptions, result: StiResult | None, calibrated: bool) -> int:
    """Print the result, and save it."""
    from amt_stream.sessions.report.stipa import stipa_page
    from amt_stream.sessions.results.stipa_positions import StiPosition, overall, save_position

    if result is None:
        raise Mistake("less than 4 s of sound are too little: measure for 15 s or more")
    now = utc_now()
    one = StiPosition.of(args.position or now, now, result, calibrated, args.noise)
    if args.format == "json":
        print(json.dumps(one.to_dict(), indent=1))
    else:
        print("\n".join(map(plain, _lines(one))))
    if args.save is not None:
        positions = save_position(Path(args.save), one)
        total = overall(positions)
        if total is not None and len(positions) > 1:
            valid = counted(total.number, "valid position")
            say(f"{valid}: mean {total.mean:.2f}, lowest {total.lowest:.2f} at {total.where}")
        if args.report is not None:
            _write_page(Path(args.report), stipa_page(positions))
    return 1 if one.reasons else 0


def _write_page(path: Path, page: str) -> None:
    from amt_stream.cli.commands.report import page_target, write_page

    write_page(page_target(str(path), force=True), page)
    say(f"{path}: report written")


def _lines(one: "StiPosition") -> list[str]:
    """The result as text."""
    _, mti = one.indices
    rows: list[tuple[str, ...]] = [("Hz", "m1", "m2", "MTI", "dB SPL" if one.calibrated else "dB")]
    for k, octave in enumerate(OCTAVES):
        values = *one.m[k], mti[k]
        rows.append((str(octave), *(f"{v:.2f}" for v in values), f"{one.level_db[k]:.1f}"))
    lines = [
        *text_table(rows, lambda k: True),
        "",
        f"{one.words}, after {one.seconds:g} s",
        one.basis,
    ]
    return lines + [f"not valid: {why}" for why in one.reasons]
