"""The meter in its window: engines and logs that the window requests, made from options."""

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from amt_stream.cli.ending import ending
from amt_stream.cli.events import keeping
from amt_stream.cli.inputs import open_input
from amt_stream.cli.log import log_folder, logged, usual_folder
from amt_stream.cli.making import SHOWN_MS, EngineSetup, input_from_window, metered_input
from amt_stream.cli.messages import Mistake, say
from amt_stream.cli.options.live import MeterOptions
from amt_stream.cli.preset import needs_levels
from amt_stream.core.importing import has_torch, install
from amt_stream.meters.audience import at_microphone
from amt_stream.meters.frames import LIMITS
from amt_stream.meters.limits import Limit, Stood
from amt_stream.meters.needed_models import LEVELS, asked_by_limits, models_with
from amt_stream.meters.presets import Preset
from amt_stream.meters.rows import JoinedRows
from amt_stream.meters.rows.captions import caption_of
from amt_stream.sessions import SessionLog
from amt_stream.sessions.events import tables_of_files
from amt_stream.sessions.outputs import FollowedReadings

if TYPE_CHECKING:
    from amt_stream.engine.engine import Engine
    from amt_stream.views.measurement_control import MeasurementRequest


SHOWS_SPECIFIC = "moore2016"
"""The model whose specific loudness the window shows, and which computes it on demand."""


class Maker:
    """Makes engines and logs for a window.

    engines: all engines made, the newest last
    readings: readings of the newest engine
    """

    def __init__(self, args: MeterOptions, preset: Preset) -> None:
        self._args, self._preset = args, preset
        self._running: dict[int, EngineSetup] = {}
        self.engines: list[Engine] = []
        self.readings: FollowedReadings | None = None

    def engine(self, request: "MeasurementRequest") -> "Engine":
        """Make an engine, not yet started; a continued measurement keeps its readings."""
        with self._made(request) as setup:
            readings = resumed = request.resumed
            logs = setup.logs()
            if resumed is not None:
                for log in logs:
                    log.go_on_with(resumed.rows)
            elif setup.preset.view != "modulation":
                readings = FollowedReadings(setup.rows_to_show(logs))
            keepers = setup.keepers(logs)
            restore = None
            if resumed is not None and resumed.standing is not None:
                restore = resumed.standing.state
            shown = [] if readings is None else [readings]
            engine = setup.engine([*shown, *logs, *keepers], restore)
        self.readings = readings
        self.engines.append(engine)
        self._running = {id(engine): setup}
        ending.hold()
        return engine

    def log(self, engine: "Engine", among: Path | None) -> SessionLog:
        """Make a log of an engine in a new folder; it begins when it is attached.

        among: parent folder; None for the default one
        """
        setup = self._running[id(engine)]
        args = logged(setup.args, log_folder(among), restore=False)
        return replace(setup, args=args).logs()[0]

    def change_limits(self, engine: "Engine", limits: tuple[Limit, ...]) -> str:
        """Let other limits judge a running engine, and its logs say so.

        Returns why they cannot, in which case nothing changes; else "".
        """
        setup = self._running[id(engine)]
        preset = _with_limits(setup.preset, limits)
        if missing := [one.title for one in preset.entries if one.name not in setup.preset.names]:
            return f"They need a meter that does not run: {' and '.join(missing)}."
        limits = preset.limits  # of the audience where it has a correction
        shown = next((one for one in engine.sinks if isinstance(one, FollowedReadings)), None)
        setup = replace(setup, preset=preset)
        now = None if shown is None else setup.table(SHOWN_MS).rows
        if shown is None or not isinstance(now, JoinedRows):
            return "Several microphones are measured."
        for table in tables_of_files(engine.sinks):
            table.change_limits(limits)
        shown.change_limits(now)
        self._running[id(engine)] = setup
        ended = [one for one in shown.stood() if one.limit not in limits]
        engine.announce(LIMITS, _limits_words(limits, ended))
        return ""

    def preset(self, engine: "Engine") -> Preset:
        """The preset that an engine was made with, with settings that were changed since."""
        preset = self._running[id(engine)].preset
        now = {k: v for model in engine.models.values() for k, v in model.arguments().items()}
        return preset.with_settings({k: now[k] for k in preset.settings if k in now})

    @contextmanager
    def _made(self, request: "MeasurementRequest") -> Iterator[EngineSetup]:
        """Make the parts of an engine; its microphone is already running."""
        args, preset = self._args, self._preset
        if request.log is not None or request.resumed is not None:
            args = logged(args, request.log, restore=request.resumed is not None)
        args = keeping(args, request.keep_s, (request.folder or usual_folder()) / "sounds")
        typed = args.preset or args.model or args.limit
        typed_over = request.remembered if typed else frozenset()
        if request.preset is not None and "preset" not in typed_over:
            preset = request.preset.with_compute(args.compute)
            if not typed and needs_levels(args):
                preset = _with_models(preset, [LEVELS])
        if request.models is not None:
            preset = preset.with_names(request.models)
        if request.limits is not None and "limits" not in typed_over:
            preset = _with_limits(preset, request.limits)
        if request.audience is not None and "audience" not in typed_over:
            preset = _with_models(preset, [LEVELS]).with_audience(request.audience)
        if request.settings:
            known = {k: v for k, v in request.settings.items() if k in preset.settings}
            preset = preset.with_settings(known)
        blocksize = None
        if request.file is not None:
            options = MeterOptions(channels=request.channels, layout=request.layout)
            given = open_input(options, str(request.file), models=preset.most_channels)
            given = given.with_offset(args.keep_offset)
        elif request.device is not None:
            chosen = request.channels, request.layout
            given = input_from_window(request.device, args, preset, *chosen)
        else:
            args = replace(args, channels=request.channels or args.channels)
            args = replace(args, layout=request.layout or args.layout)
            given, blocksize = metered_input(args, preset), args.blocksize
        asks = {"specific_loudness": SHOWS_SPECIFIC in preset.names and has_torch()}
        with given.started(preset.run_in) as given:
            setup = EngineSetup.made(args, preset, given, blocksize, asks)
            yield replace(setup, remembers=True)


def _limits_words(limits: Iterable[Limit], ended: Iterable[Stood]) -> str:
    """The limits that judge from now on, and the results of those that end."""
    results = [f"{_words_of(one.limit)} ({one.verdict})" for one in ended]
    gone = f"; ended: {', '.join(results)}" if results else ""
    return f"from here on: {', '.join(map(_words_of, limits)) or 'none'}{gone}"


def _words_of(limit: Limit) -> str:
    caption = caption_of(limit.column)
    name = caption.symbol or caption.words
    return f"{name} {limit.threshold_words} {caption.unit}".rstrip()


def _with_limits(preset: Preset, limits: tuple[Limit, ...]) -> Preset:
    """The preset with these limits in place of its own, and with the models that they need."""
    try:
        needed = () if preset.stages else dict(models_with(asked_by_limits(limits)))
    except ValueError as error:
        raise Mistake(error) from error
    # What was remembered of the audience is of the microphone without a correction.
    limits = tuple(map(at_microphone, limits))
    return _with_models(replace(preset, limits=limits), needed)


def _with_models(preset: Preset, names: Iterable[str]) -> Preset:
    """The preset with these models too."""
    there = {*preset.names, *(n for entry in preset.entries for n in entry.includes)}
    more = tuple(name for name in names if name not in there)
    return preset.with_names((*preset.names, *more)) if more and not preset.stages else preset


def show_window(args: MeterOptions, preset: Preset) -> tuple[int, Maker] | None:
    """Run the window and return its exit status and maker, or None if there is no window."""
    if not has_display():
        say("there is no display: the meter runs in the terminal")
        return None
    try:
        from amt_monitor.window.run import run_window
    except ImportError as error:
        say(
            f"the window is not installed ({error}), so the meter runs in the terminal: "
            f"{install('app')}"
        )
        return None
    maker = Maker(args, preset)
    status = run_window(
        maker.engine, maker.log, maker.preset, maker.change_limits, duration=args.duration
    )
    return status, maker


def has_display() -> bool:
    """Whether the system has a display, as far as it is known."""
    if sys.platform in ("win32", "darwin"):
        return True
    # QT_QPA_PLATFORM may name a virtual display, such as offscreen or vnc.
    names = ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")
    return any(os.environ.get(name) for name in names)
