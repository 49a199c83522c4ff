"""Make the input, models, rows and engine of a live measurement from options."""

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from amt_stream.cli.events import kept_s, open_keeper
from amt_stream.cli.inputs import Input, open_input, open_microphone
from amt_stream.cli.log import logged, open_log
from amt_stream.cli.messages import Mistake, WrongUsage, say
from amt_stream.cli.options.live import LiveOptions
from amt_stream.cli.table import table_of
from amt_stream.core.importing import has_torch, import_ahead
from amt_stream.core.json_types import JsonDict, JsonMap
from amt_stream.core.saved_state import SavedState
from amt_stream.core.words import counted
from amt_stream.engine.run_state import EngineEnded
from amt_stream.engine.sources import SourceError
from amt_stream.meters.calibration import uncertainty_of
from amt_stream.meters.frames import Event, Frames
from amt_stream.meters.output_settings import OR_ANEW
from amt_stream.meters.presets import Preset
from amt_stream.meters.rows import AnyRows, JoinedRows
from amt_stream.meters.specification import PCM_FS
from amt_stream.meters.table import Sound, Table
from amt_stream.sessions import SessionError, SessionLog
from amt_stream.sessions.events import SoundKeeper

if TYPE_CHECKING:
    from torch import Tensor

    from amt_stream.dsp.streaming import Stage
    from amt_stream.engine.engine import Engine

STEADY_S = 10.0
"""The least of a background whose mean is reliable."""

SHOWN_MS = 100
"""Time between the rows that a display shows."""


def metered_input(args: LiveOptions, preset: Preset, **how: object) -> Input:
    """Open the chosen input; by default the microphone, or the demo sound if there is none.

    how: further arguments of `open_input`
    """
    import_ahead("torch", "numba")
    args = replace(args, layout=args.layout or preset.layout)
    given = _input_or_demo(args, preset, how).with_offset(args.keep_offset)
    return given.with_uncertainty(args).with_correction(args)


def _input_or_demo(args: LiveOptions, preset: Preset, how: JsonMap) -> Input:
    how_to_hear = preset.block_ms, preset.most_channels
    if args.source is not None or args.device is not None:
        source = args.source or "mic"
        return open_input(args, source, *how_to_hear, **how)
    if args.pcm is not None:
        raise WrongUsage("--pcm is for standard input: add --source -")
    try:
        return open_input(args, "mic", *how_to_hear, **how)
    except SourceError as error:
        if args.format or args.log:
            raise SourceError(f"{error}; --source demo measures the built-in sound") from error
        say(f"no microphone, so the built-in demo sound is measured: {error}")
        given = open_input(args, "demo", *how_to_hear)
        # Uncalibrated, so that no reader takes it for a measurement.
        demo = [replace(c, calibrated=False, source="demo sound") for c in given.calibration]
        return replace(given, calibration=demo)


def input_from_window(
    device: str | int,
    args: LiveOptions,
    preset: Preset,
    channels: Sequence[int] | None = None,
    layout: str | None = None,
) -> Input:
    """Open a microphone that was chosen in the window; options for another input are ignored.

    channels: by default the first two
    layout: what they are for, as chosen in the window
    """
    given = open_microphone(
        device,
        channels,
        blocksize=round(preset.block_ms * 1e-3 * PCM_FS),
        wait=args.wait is not False,
        layout=layout,
        models=preset.most_channels,
    ).with_offset(args.keep_offset)
    typed = {
        "--channels": args.channels,
        "--layout": args.layout,
        "--samplerate": args.samplerate,
        "--blocksize": args.blocksize,
        "--full-scale-db": args.full_scale_db,
        "--calibration-uncertainty": args.calibration_uncertainty,
        "--microphone-uncertainty": args.microphone_uncertainty,
        "--correction": args.correction,
    }
    unused = [name for name, value in typed.items() if value is not None]
    if unused:
        say(
            f"{', '.join(unused)} on the command line does not apply to {given.source.name!r}: it "
            "was chosen in the window, with its own channels, rate and calibration"
        )
    return given


def _stored_background(args: LiveOptions, preset: Preset, given: Input) -> "Tensor":
    """The mean components of --background, as this input would give them."""
    from amt_stream.offline.analysis import CheckedFile
    from amt_stream.offline.background import clipped_words, steady_background

    assert args.background is not None
    if args.microphones:
        raise WrongUsage("--background is of one microphone, and there are several: leave it out")
    recording = CheckedFile(
        args.background, None, False, preset.most_channels, None, args.keep_offset
    )
    channels = len(recording.channels)
    if channels != len(given.channels):
        raise Mistake(
            f"{args.background} has {counted(channels, 'channel')} and {given.source.name} "
            f"{len(given.channels)}: give as many, such as with --channels"
        )
    stored = steady_background(recording, given.calibration, preset.settings)
    short = "" if recording.duration_s >= STEADY_S else f", {STEADY_S:g} s are better"
    say(
        f"the background is {args.background}, {recording.duration_s:.1f} s{short}: right only if "
        "it is steady, and recorded by this microphone at this gain"
    )
    if words := clipped_words(recording):
        say(words)
    return stored


@dataclass(frozen=True)
class EngineSetup:
    """The parts from which an engine is made: models by name, and --blocksize if it counts.

    remembers: whether limits may come while it runs
    """

    args: LiveOptions
    preset: Preset
    given: Input
    models: "Mapping[str, Stage]"
    blocksize: int | None
    remembers: bool = False

    @classmethod
    def made(
        cls,
        args: LiveOptions,
        preset: Preset,
        given: Input,
        blocksize: int | None,
        asks: Mapping[str, bool] | None = None,
    ) -> "EngineSetup":
        """Make the preset's models, with bands if the input's level has an uncertainty.

        asks: outputs that models give on demand
        """
        from amt_stream.cli.compiling import say_when_compiling  # imports numba, which is slow
        from amt_stream.core.compiling import LIVE_WORDS

        say_when_compiling(LIVE_WORDS)
        banded = replace(preset, uncertainty_db=uncertainty_of(given.calibration))
        takes: JsonDict = dict(asks or {})
        if args.background is not None:
            takes |= {"background": _stored_background(args, preset, given), "mixed": True}
        try:
            models = banded.models(given.source.fs, given.layouts(preset.names), **takes)
        except ValueError as error:
            raise Mistake(error) from error
        if has_torch():
            _begin_to_compile(models.values())
        return cls(args, preset, given, models, blocksize)

    def table(self, step_ms: int | None = None, intervals: bool = False) -> Table:
        """Make the rows of the models; the arguments are those of `table_of`."""
        args, given = self.args, self.given
        sound = Sound(
            name=given.source.name,
            fs=given.source.fs,
            more={} if args.background is None else {"background": args.background},
            channels=given.channels,
            calibration=given.calibration,
            duration_s=given.source.duration_s,
            microphones=given.microphones,
            kept_s=kept_s(args),
            picked=given.pick is not None,
            source=given.source,
            heard=given.heard,
        )
        preset = replace(self.preset, uncertainty_db=uncertainty_of(given.calibration))
        step_ms = step_ms or args.step_ms or preset.step_ms
        table = table_of(args, preset, self.models, sound, step_ms, intervals)
        if self.remembers and isinstance(table.rows, JoinedRows):
            table.rows.remember()
        return table

    def rows_to_show(self, logs: Sequence[SessionLog]) -> AnyRows:
        """Make rows for display, which begin where the logs do."""
        rows = self.table(SHOWN_MS).rows
        for log in logs:
            log.go_on_with(rows)
        return rows

    def logs(self) -> list[SessionLog]:
        """Open the log of --log, if any."""
        if self.args.log is None:
            return []
        engine = self._engine_settings

        def opened(args: LiveOptions) -> SessionLog:
            table = replace(self, args=args).table(intervals=True)
            return open_log(args, table, self.given, engine)

        try:
            return [opened(self.args)]
        except SessionError as refusal:
            if self.args.restore != OR_ANEW:
                raise
            say(f"{self.args.log} cannot be continued, and a new run begins: {refusal}")
            return [opened(logged(self.args, Path(self.args.log), restore=False))]

    def keepers(self, logs: Sequence[SessionLog]) -> list[SoundKeeper]:
        """Open the keeper of sound, if any; its rows begin where those of the logs do."""
        if not kept_s(self.args):
            return []
        table = self.table()
        for log in logs:
            log.go_on_with(table.rows)
        return [open_keeper(self.args, table, self.given.source)]

    def engine(
        self, sinks: Sequence[Callable[[Frames], object]], restore: SavedState | None = None
    ) -> "Engine":
        """Make the engine, not yet started; it continues if a log among the sinks does.

        restore: state to continue from if no log continues
        """
        from amt_stream.engine.engine import Engine

        given = self.given
        logs = [sink for sink in sinks if isinstance(sink, SessionLog)]
        try:
            engine = Engine(
                given.runner or given.source,
                self.models,
                sinks,
                microphones=given.for_engine,
                calibration=None if given.microphones else given.calibration,
                channels=given.pick,
                restore=next((log.engine_state for log in logs if log.engine_state), restore),
                **self._engine_settings,
            )
        except (ValueError, SourceError) as error:
            for log in logs:
                log.close()
            raise Mistake(error) from error
        for sink in sinks:
            if isinstance(sink, SoundKeeper | SessionLog):
                sink.tell = partial(_tell_event, engine)
        return engine

    @property
    def _engine_settings(self) -> JsonDict:
        """Keyword arguments for `Engine`, with --blocksize."""
        settings, fs = self.preset.engine_settings, self.given.source.fs
        if self.blocksize is not None:
            if self.blocksize > fs:
                raise Mistake(
                    f"--blocksize is {self.blocksize}: give 1 to {fs} samples, at most 1 s at {fs} "
                    "Hz"
                )
            settings["block_ms"] = 1000.0 * self.blocksize / fs
        return settings


def _begin_to_compile(models: "Iterable[Stage]") -> None:
    """Compile models, and the input gate of the engine, in other processes meanwhile."""
    from amt_stream.dsp.fused import FusedStage

    for model in models:
        if isinstance(model, FusedStage):
            model.begin_to_compile("amt_stream.dsp.functional.input_gate:make_ready")


def _tell_event(engine: "Engine", event: Event) -> None:
    """Report a written sound, unless the engine has ended; the keeper reports it then."""
    with contextlib.suppress(EngineEnded):
        engine.tell_event(event)
