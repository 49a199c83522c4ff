"""`amt-stream meter`: in a window, in the terminal, or as rows."""

import errno
import math
import socket
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from amt_stream.cli.ending import ending
from amt_stream.cli.events import close_keeper
from amt_stream.cli.limits import report_limits, require_limits
from amt_stream.cli.log import refuse_log_options
from amt_stream.cli.making import EngineSetup, metered_input
from amt_stream.cli.messages import Mistake, WrongUsage, say
from amt_stream.cli.options.live import MeterOptions
from amt_stream.cli.output import OutputFailed
from amt_stream.cli.preset import chosen_preset, with_microphones
from amt_stream.cli.table import refuse_not_csv, writer_of
from amt_stream.cli.terminal import LinePrinter, TerminalMeter, show
from amt_stream.cli.watch import Hanging, Watch, heard_s
from amt_stream.cli.window import Maker, show_window
from amt_stream.core.words import counted
from amt_stream.engine.sources import SourceError
from amt_stream.meters.presets import Preset
from amt_stream.meters.rows import AnyRows, header_of_intervals
from amt_stream.meters.state_signs import AWAY
from amt_stream.sessions import SessionLog
from amt_stream.sessions.outputs import LatestReadings, LiveRows, LiveWriter
from amt_stream.views.measurement_control import MeasurementRequest

if TYPE_CHECKING:
    from amt_stream.engine.engine import Engine

TURN_S = 0.05
HANGS = "its reader has stopped reading"
DISK_S = 10


def run_meter(args: MeterOptions) -> int:
    """Measure until the end of the sound or of --duration, or until the user stops it."""
    if args.terminal and args.format:
        raise WrongUsage(
            f"--terminal shows the meter, and --format {args.format} writes rows: leave one out"
        )
    refuse_not_csv(args, args.format)
    refuse_log_options(args)
    preset = chosen_preset(args)
    args = with_microphones(args, preset)
    require_limits(args, preset)
    if args.microphones and not (args.format or args.quiet):
        raise WrongUsage(
            f"{len(args.microphones)} microphones cannot be shown, only written: add --format csv "
            "or jsonl, or --quiet and --log PATH"
        )
    if args.microphones and args.restore:
        raise WrongUsage(
            "--restore continues one microphone, and there are several: begin a new log"
        )
    if args.format:
        return _write_rows(args, preset)
    if args.quiet:
        return _write_log(args, preset)
    if preset.stages:
        raise WrongUsage(
            f"the preset {args.preset} has a chain of stages, which no meter shows: write its rows "
            "with --format csv or jsonl"
        )
    if not args.terminal:
        shown = show_window(args, preset)
        if shown is not None:
            status, maker = shown
            for engine in maker.engines:
                close_keeper(engine, DISK_S)
            return _status(args, status, maker.readings, maker.engines[-1:])
    return _show_in_terminal(args, preset)


def _write_rows(args: MeterOptions, preset: Preset) -> int:
    with metered_input(args, preset).started(preset.run_in) as given:
        setup = EngineSetup.made(args, preset, given, args.blocksize)
        table = setup.table(intervals=True)

        def begin() -> LiveWriter:
            header = table.header(host=socket.gethostname())
            if table.rows.intervals is not None:
                header = header_of_intervals(header)
            return writer_of(args, sys.stdout, header, sys.stderr)

        rows = LiveRows(sys.stdout, begin, table.rows)
        logs = setup.logs()
        for log in logs:
            log.go_on_with(table.rows)
        engine = setup.engine([rows, *logs, *setup.keepers(logs)])
    watch = _measure(engine, rows.done, args.duration, table.rows, lambda: rows.writing)
    if rows.writing:
        raise OutputFailed(errno.EAGAIN, HANGS)
    # An interrupted sound has rows as far as its models have processed it.
    rows.finish(table.rows.reached_s if ending.asked else heard_s(engine), table.summary)
    if rows.error is not None:
        raise rows.error
    end_s, ended = heard_s(engine), engine.error is None and not ending.asked
    if ended and args.from_s is not None and end_s <= args.from_s:
        raise Mistake(f"the sound ended at {end_s:g} s, and --from is {args.from_s:g} s: give less")
    return _status(args, _ended(engine, args.duration, watch), table.rows, [engine])


def _write_log(args: MeterOptions, preset: Preset) -> int:
    """Measure and write only the log."""
    with metered_input(args, preset).started(preset.run_in) as given:
        setup = EngineSetup.made(args, preset, given, args.blocksize)
        (log,) = setup.logs()
        engine = setup.engine([log, *setup.keepers([log])])
    watch = _measure(engine, log.done, args.duration, log.table.rows)
    return _status(args, _ended(engine, args.duration, watch), log.table.rows, [engine])


def _measure(
    engine: "Engine",
    done: threading.Event,
    duration: float | None,
    rows: AnyRows,
    is_writing: Callable[[], bool] = bool,
) -> Watch:
    """Run until `done`, the end of the sound, or a signal, and report what happens.

    is_writing: whether rows are being written at present, to an output that may hang
    """
    enough_s = math.inf if duration is None else duration
    hangs = Hanging(lambda: is_writing() and heard_s(engine) >= enough_s, lambda: rows.reached_s)
    with engine:
        ending.hold()
        watch = Watch(engine)
        while not (done.is_set() or ending.asked or hangs()):
            if engine.error is not None or engine.wait(TURN_S):
                break
            watch.look()
            if watch.is_overdue(duration):
                break
    return watch


def _show_in_terminal(args: MeterOptions, preset: Preset) -> int:
    maker = Maker(args, preset)
    engine = maker.engine(MeasurementRequest())
    end_s = math.inf if args.duration is None else args.duration
    meter = TerminalMeter(engine, maker.readings, lambda: maker.log(engine, None), end_s)
    lines = LinePrinter(meter, sys.stdout)
    hangs = Hanging(lambda: lines.writing and meter.has_reached_end)
    with ending.unless(lambda: f"standard output cannot be written: {HANGS}" if hangs() else ""):
        with engine:
            show(lines, args.duration)
            if not meter.stopped and engine.device_state in AWAY:
                meter.away_at_end = meter.away
        lines.print_last()
    return _status(args, _ended(engine, args.duration, lines.watch), maker.readings, [engine])


def _ended(engine: "Engine", duration: float | None, watch: Watch | None = None) -> int:
    """Report a measurement in one line; raises the error that ended it early.

    Returns 1 if a log lost rows, else 0.

    watch: has reported the engine's notes during the measurement
    """
    if watch is not None:
        watch.look()  # a file may be measured between two looks
    incomplete = False
    for log in (sink for sink in engine.sinks if isinstance(sink, SessionLog)):
        # The engine does not wait for a slow disk; here there is time.
        if not log.close(DISK_S):
            incomplete = True
            say(f"the log in {log.path} is incomplete: its disk did not write it within {DISK_S} s")
        incomplete |= log.dropped > 0
    close_keeper(engine, DISK_S)
    if engine.error is not None:
        if engine.error is engine.source.error and _is_message(engine.error):
            raise Mistake(f"{engine.source.name}: {engine.error}") from engine.error
        raise engine.error
    health = engine.health
    if health.note and not (watch and watch.has_said(health.note)):
        say(health.note)
    received_s = heard_s(engine)
    measured_s = received_s if duration is None else min(received_s, duration)
    missed = (
        f", {counted(health.sink_missed, 'frame')} missed by a slow output"
        if health.sink_missed
        else ""
    )
    say(
        f"{round(measured_s, 3):g} s measured: load {health.load:.2f}, "
        f"block time {100 * health.block_share_median:.0f} % (p99 "
        f"{100 * health.block_share_p99:.0f} %) of its duration, "
        f"{counted(health.overruns, 'overrun')}, {counted(health.lost_samples, 'sample')} lost, "
        f"{health.non_finite} invalid, {health.clipped} clipped{missed}"
    )
    return 1 if incomplete else 0


def _status(
    args: MeterOptions,
    status: int,
    rows: AnyRows | LatestReadings | None,
    engines: "Sequence[Engine]",
) -> int:
    """The status, or that of an exceeded limit, which is reported; `engines` made the rows."""
    cut_off = any(engine.source.description.cut_off for engine in engines)
    judged = rows.stood() if isinstance(rows, AnyRows | LatestReadings) else []
    stood = [replace(one, cut_off=cut_off) for one in judged]
    return report_limits(status, [(one.microphone, one.to_dict()) for one in stood], args, cut_off)


def _is_message(error: BaseException | None) -> bool:
    """Whether an error is a message of the system about an input, not a bug."""
    return isinstance(error, OSError) and not isinstance(error, SourceError)
