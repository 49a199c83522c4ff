"""`amt-stream meter`: in a window, in the terminal, or as rows."""

import argparse
import errno
import math
import os
import socket
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from amt_stream.calibration import uncertainty_of
from amt_stream.cli.ending import ending
from amt_stream.cli.events import close_keeper, kept_s, open_keeper, refuse_event_options
from amt_stream.cli.inputs import Input, open_input, open_microphone
from amt_stream.cli.limits import judged, refuse_no_limits
from amt_stream.cli.log import open_log, refuse_log_options
from amt_stream.cli.messages import Mistake, WrongUsage, say
from amt_stream.cli.options import PCM_FS, choose_rows, chosen_preset
from amt_stream.cli.output import OutputFailed
from amt_stream.cli.table import table_of
from amt_stream.cli.views import VIEWS, Sink
from amt_stream.cli.watch import Hanging, Watch, heard_s
from amt_stream.engine.sources import FileSource, SourceError
from amt_stream.events import SoundKeeper
from amt_stream.outputs import FORMATS, LatestReadings, LiveRows, Writer
from amt_stream.presets import Preset
from amt_stream.rows import AnyRows
from amt_stream.session import SessionLog
from amt_stream.table import Sound, Table

if TYPE_CHECKING:
    from amt_stream.engine.runner import Engine
    from amt_stream.frames import Frames
    from amt_stream.streaming import Stage

TURN_S = 0.05
HANGS = "whoever reads it has stopped reading"
DISK_S = 10
SHOWN_MS = 100
"""Between the rows that a display takes its numbers from."""


def run_meter(args: argparse.Namespace) -> int:
    """Measure until the sound ends, the duration is over, or somebody stops it."""
    if args.terminal and args.format:
        raise WrongUsage(
            f"--terminal shows the meter and --format {args.format} writes rows: leave one out"
        )
    refuse_log_options(args)
    refuse_event_options(args)
    preset = chosen_preset(args)
    choose_rows(args, preset)
    refuse_no_limits(args, preset)
    if args.rows and not (args.format or args.quiet):
        raise WrongUsage(
            f"{len(args.rows)} rows, each heard by itself, are written and not shown: add "
            "--format csv or jsonl, or --quiet and --log PATH"
        )
    if args.rows and args.resume:
        raise WrongUsage("--resume goes on with one row, and there are several: begin a new log")
    if args.format:
        return _write_rows(args, preset)
    if args.quiet:
        return _keep_log(args, preset)
    if preset.stages:
        raise WrongUsage(
            f"the preset {args.preset} describes a chain of stages, of which there is nothing to "
            "see: write its rows, --format csv or jsonl"
        )
    if not args.terminal:
        status = _show_window(args, preset)
        if status is not None:
            return status
    return _show_in_terminal(args, preset)


def metered_input(args: argparse.Namespace, preset: Preset) -> Input:
    """The input asked for; by default the microphone, or the demo sound where there is none."""
    return _input_or_demo(args, preset).with_uncertainty(args)


def _input_or_demo(args: argparse.Namespace, preset: Preset) -> Input:
    if args.source is not None or args.device is not None:
        return open_input(args, args.source or "mic", preset.block_ms, preset.most_channels)
    if args.pcm is not None:
        raise WrongUsage("--pcm is for standard input: add --source -")
    try:
        return open_input(args, "mic", preset.block_ms)
    except SourceError as error:
        if args.format or args.log:
            raise SourceError(f"{error}; --source demo gives rows of the built-in sound") from error
        say(f"the built-in demo sound plays instead of a microphone: {error}")
        given = open_input(args, "demo", preset.block_ms)
        # Nobody who reads it from afar is to take it for a measurement.
        demo = [replace(c, calibrated=False, source="demo sound") for c in given.calibration]
        return replace(given, calibration=demo)


def input_from_window(device: str | int, args: argparse.Namespace, preset: Preset) -> Input:
    """A microphone chosen in the window: as it is, whatever was typed for another input."""
    given = open_microphone(
        device,
        blocksize=round(preset.block_ms * 1e-3 * PCM_FS),
        wait=args.wait is not False,
    )
    typed = {
        "--channels": args.channels,
        "--samplerate": args.samplerate,
        "--blocksize": args.blocksize,
        "--full-scale-db": args.full_scale_db,
        "--calibration-uncertainty": args.calibration_uncertainty,
        "--microphone-uncertainty": args.microphone_uncertainty,
    }
    unused = [name for name, value in typed.items() if value is not None]
    if unused:
        say(
            f"{', '.join(unused)} of the command line: not for {given.source.name!r}, which was "
            "chosen in the window and has its own channels, rate and calibration"
        )
    return given


def make_models(
    given: Input, preset: Preset, asks: Mapping[str, bool] | None = None
) -> "dict[str, Stage]":
    """The preset's models by name, for an input; with a band where its level has an uncertainty.

    asks: what they are to give besides, those that can
    """
    preset = preset.with_uncertainty(uncertainty_of(given.calibration))
    try:
        return preset.models(given.source.fs, given.ears, **(asks or {}))
    except ValueError as error:
        raise Mistake(error) from error


def make_table(
    args: argparse.Namespace,
    preset: Preset,
    given: Input,
    models: "Mapping[str, Stage]",
    step_ms: int,
) -> Table:
    """The rows of models that hear an input."""
    sound = Sound(
        name=given.source.name,
        fs=given.source.fs,
        channels=given.channels,
        calibration=given.calibration,
        duration_s=given.source.duration_s,
        rows=given.rows,
        kept_s=kept_s(args),
    )
    preset = preset.with_uncertainty(uncertainty_of(given.calibration))
    return table_of(args, preset, models, sound, step_ms)


def latest_readings(
    args: argparse.Namespace,
    preset: Preset,
    given: Input,
    models: "Mapping[str, Stage]",
    logs: Sequence[SessionLog] = (),
) -> LatestReadings:
    """A sink for whoever looks at them; it begins where the logs do."""
    rows = make_table(args, preset, given, models, SHOWN_MS).rows
    for log in logs:
        log.go_on_with(rows)
    return LatestReadings(rows)


def make_engine(
    given: Input,
    preset: Preset,
    model: "Stage | dict[str, Stage]",
    sinks: Sequence[Callable[["Frames"], None]] = (),
    blocksize: int | None = None,
) -> "Engine":
    """An engine for an input, not yet started; where a log among the sinks goes on, it does too."""
    from amt_stream.engine.runner import Engine

    logs = [sink for sink in sinks if isinstance(sink, SessionLog)]
    try:
        engine = Engine(
            given.source,
            model,
            sinks,
            rows=given.engine_rows,
            calibration=None if given.rows else given.calibration,
            channels=given.pick,
            resume=next((log.engine_state for log in logs), None),
            **engine_settings(given, preset, blocksize),
        )
    except (ValueError, SourceError) as error:
        for log in logs:
            log.close()
        raise Mistake(error) from error
    for sink in sinks:
        if isinstance(sink, SoundKeeper):
            sink.tell = engine.tell_event
    return engine


def engine_settings(given: Input, preset: Preset, blocksize: int | None) -> dict[str, Any]:
    """Keyword arguments for `Engine`, with the block that was typed."""
    settings = preset.engine_settings
    if blocksize is not None:
        if blocksize > given.source.fs:
            raise Mistake(
                f"--blocksize is {blocksize}: give 1 to {given.source.fs} samples, which are 1 s "
                f"at {given.source.fs} Hz"
            )
        settings["block_ms"] = 1000.0 * blocksize / given.source.fs
    return settings


def open_logs(
    args: argparse.Namespace,
    preset: Preset,
    given: Input,
    models: "Mapping[str, Stage]",
    blocksize: int | None,
) -> list[SessionLog]:
    """The log that was asked for, if one was."""
    if args.log is None:
        return []
    table = make_table(args, preset, given, models, args.step_ms or preset.step_ms)
    return [open_log(args, table, given, engine_settings(given, preset, blocksize))]


def open_keepers(
    args: argparse.Namespace,
    preset: Preset,
    given: Input,
    models: "Mapping[str, Stage]",
    logs: Sequence[SessionLog],
) -> list[SoundKeeper]:
    """What keeps sound, if that was asked for; its rows begin where those of the logs do."""
    if not kept_s(args):
        return []
    table = make_table(args, preset, given, models, args.step_ms or preset.step_ms)
    for log in logs:
        log.go_on_with(table.rows)
    return [open_keeper(args, table, given.source)]


def _write_rows(args: argparse.Namespace, preset: Preset) -> int:
    given = metered_input(args, preset)
    models = make_models(given, preset)
    table = make_table(args, preset, given, models, args.step_ms or preset.step_ms)

    def begin() -> Writer:
        return FORMATS[args.format](sys.stdout, table.header(host=socket.gethostname()))

    rows = LiveRows(sys.stdout, begin, table.rows)
    log = open_logs(args, preset, given, models, args.blocksize)
    for one in log:
        one.go_on_with(table.rows)
    keepers = open_keepers(args, preset, given, models, log)
    engine = make_engine(given, preset, models, [rows, *log, *keepers], args.blocksize)
    watch = _measure(engine, rows.done, args.duration)
    if rows.writing:
        raise OutputFailed(errno.EAGAIN, HANGS)
    # A sound that was broken off has rows as far as its models have come.
    rows.finish(table.rows.reached_s if ending.asked else heard_s(engine), table.summary)
    if rows.error is not None:
        raise rows.error
    end_s, ended = heard_s(engine), engine.error is None and not ending.asked
    if ended and args.from_s is not None and end_s <= args.from_s:
        raise Mistake(f"the sound ended at {end_s:g} s, and --from is {args.from_s:g} s: give less")
    return _judged(args, _ended(engine, args.duration, watch), table.rows)


def _keep_log(args: argparse.Namespace, preset: Preset) -> int:
    """Measure for the log alone."""
    given = metered_input(args, preset)
    models = make_models(given, preset)
    (log,) = open_logs(args, preset, given, models, args.blocksize)
    keepers = open_keepers(args, preset, given, models, [log])
    engine = make_engine(given, preset, models, [log, *keepers], args.blocksize)
    watch = _measure(engine, log.done, args.duration)
    return _judged(args, _ended(engine, args.duration, watch), log.table.rows)


def _measure(engine: "Engine", done: threading.Event, duration: float | None) -> Watch:
    """Until `done`, the end of the sound, or a signal; what happens is said."""
    with engine:
        ending.hold()
        watch, hangs = Watch(engine), Hanging(engine, duration)
        while not (done.is_set() or ending.asked or hangs()):
            if engine.error is not None or engine.wait(TURN_S):
                break
            watch.look()
            if watch.is_overdue(duration):
                break
    return watch


def _engine_to_see(
    args: argparse.Namespace,
    preset: Preset,
    given: Input,
    blocksize: int | None,
    asks: Mapping[str, bool],
) -> "tuple[Engine, Sink | None]":
    """An engine whose readings a person sees, and the sink that keeps them, if there is one."""
    models = make_models(given, preset, asks)
    end_s = math.inf if args.duration is None else args.duration
    logs = open_logs(args, preset, given, models, blocksize)
    sink = VIEWS[preset.view].sink(
        lambda: latest_readings(args, preset, given, models, logs), end_s
    )
    keepers = open_keepers(args, preset, given, models, logs)
    sinks: list[Any] = [*([] if sink is None else [sink]), *logs, *keepers]
    return make_engine(given, preset, models, sinks, blocksize), sink


def _show_in_terminal(args: argparse.Namespace, preset: Preset) -> int:
    given = metered_input(args, preset)
    engine, sink = _engine_to_see(args, preset, given, args.blocksize, {})
    terminal = VIEWS[preset.view].terminal(engine, sys.stdout, sink)

    hangs = Hanging(engine, args.duration)
    with ending.unless(lambda: f"standard output cannot be written: {HANGS}" if hangs() else ""):
        with engine, terminal:
            ending.hold()
            terminal.run(args.duration)
        terminal.print_last()
    return _judged(args, _ended(engine, args.duration, terminal.watch), sink)


def _ended(engine: "Engine", duration: float | None, watch: Watch | None = None) -> int:
    """What a measurement was like, in one line; raises what ended it before its time.

    `watch` is what has said the engine's notes meanwhile.
    """
    for sink in engine.sinks:
        # The engine leaves a slow disk behind; here it may take its time.
        if isinstance(sink, SessionLog) and not sink.close(DISK_S):
            say(f"the log in {sink.path} is not complete: its disk has not taken it in {DISK_S} s")
    close_keeper(engine, DISK_S)
    if engine.error is not None:
        if engine.error is engine.source.error and _is_message(engine.error):
            raise Mistake(f"{engine.source.name}: {engine.error}") from engine.error
        raise engine.error
    health = engine.health
    if health.note and not (watch and watch.has_said(health.note)):
        say(health.note)
    heard = heard_s(engine)
    measured_s = heard if duration is None else min(heard, duration)
    say(
        f"{round(measured_s, 3):g} s measured: load {health.load:.2f}, "
        f"block time {100 * health.block_share_median:.0f} % (p99 "
        f"{100 * health.block_share_p99:.0f} %) of its duration, {health.overruns} overruns, "
        f"{health.lost_samples} samples lost, {health.non_finite} invalid, {health.clipped} "
        "clipped"
    )
    return 1 if isinstance(engine.source, FileSource) and engine.source.cut_off else 0


def _judged(args: argparse.Namespace, status: int, rows: AnyRows | Sink | None) -> int:
    """The same status, or that of a limit that was exceeded, which is said."""
    if not isinstance(rows, AnyRows | LatestReadings):
        return status
    return judged(status, [(one.row, one.to_dict()) for one in rows.stood()], args)


def _is_message(error: BaseException | None) -> bool:
    """What the system or libsndfile says of an input; anything else is our own fault."""
    from soundfile import LibsndfileError

    return isinstance(error, (OSError, LibsndfileError)) and not isinstance(error, SourceError)


def _show_window(args: argparse.Namespace, preset: Preset) -> int | None:
    """Run the window; None where there can be none, said in one line."""
    if not has_display():
        say("there is no display: the meter runs in the terminal")
        return None
    try:
        from amt_monitor import run_window
    except ImportError as error:
        say(
            f"the window is not installed ({error}), so the meter runs in the terminal: "
            'pip install "amt_stream[app]"'
        )
        return None
    view = VIEWS[preset.view]
    seen: list[Sink | None] = []
    engines: list[Engine] = []

    def engine_for(device: str | int | None) -> "Engine":
        if device is None:
            given, blocksize = metered_input(args, preset), args.blocksize
        else:
            given, blocksize = input_from_window(device, args, preset), None
        engine, sink = _engine_to_see(args, preset, given, blocksize, view.asks)
        seen[:] = [sink]
        engines.append(engine)
        ending.hold()
        return engine

    status = run_window(engine_for, view.load_window(), duration=args.duration)
    for engine in engines:
        close_keeper(engine, DISK_S)
    return _judged(args, status, seen[0] if seen else None)


def has_display() -> bool:
    """Whether there is a screen for a window."""
    if sys.platform in ("win32", "darwin"):
        return True
    # QT_QPA_PLATFORM may name a screen that is no screen, such as offscreen or vnc.
    names = ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")
    return any(os.environ.get(name) for name in names)
