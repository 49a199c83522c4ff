"""The engine: runs models on a source and hands the results to sinks."""

import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Self, Unpack

from amt_stream.core.json_types import JsonDict
from amt_stream.core.safe_text import brief, sentence
from amt_stream.dsp.compute_device import device_words
from amt_stream.engine.health import Health
from amt_stream.engine.health_report import HealthReport, missing_s
from amt_stream.engine.history import History
from amt_stream.engine.inputs.backlog import Backlog
from amt_stream.engine.inputs.delivery import InCallback, IntoRing
from amt_stream.engine.inputs.ring import SampleRing
from amt_stream.engine.inputs.source_runner import SourceRunner
from amt_stream.engine.inputs.together import runner_of
from amt_stream.engine.microphone.calibration_in_use import corrections_of, each_ear
from amt_stream.engine.microphone.microphone_input import prepare_correction
from amt_stream.engine.microphone.microphones import refuse_no_gain
from amt_stream.engine.models.ladder import Ladder
from amt_stream.engine.models.model_runner import WATCH_S, Work
from amt_stream.engine.models.running_models import RunningModels
from amt_stream.engine.models.slowness import Slowness
from amt_stream.engine.options import EngineKeywords, EngineOptions
from amt_stream.engine.program_end import keep_nothing_running
from amt_stream.engine.run_state import Resets, RunState
from amt_stream.engine.shutdown import Shutdown
from amt_stream.engine.sinks.event_bus import EventBus
from amt_stream.engine.sinks.feed import RowFeed, RowSink
from amt_stream.engine.sinks.row_sinks import RowSinks, refuse_no_sinks
from amt_stream.engine.sinks.sink_thread import Sink
from amt_stream.engine.sinks.sinks import Sinks
from amt_stream.engine.sinks.snapshots import Snapshots
from amt_stream.engine.sources import Source
from amt_stream.engine.thread_check import thread_checked
from amt_stream.engine.timeline import Timeline
from amt_stream.meters.calibration import Calibration, calibration_words
from amt_stream.meters.frames import Event, Frames
from amt_stream.meters.heard_channels import HeardChannels
from amt_stream.meters.limits import Limit
from amt_stream.meters.rows import JoinedRows

if TYPE_CHECKING:
    from amt_stream.dsp.streaming import Stage

RECENT_S = 4.0


@thread_checked
class Engine:
    """Runs `model` on what `source` delivers and hands `Frames` to the sinks.

        with Engine(FileSource("speech.wav"), Moore2016(fs=48000), sinks=[print]) as engine:
            engine.wait()

    The source copies into a ring. One thread takes blocks of about `block_ms` from it, runs the
    model, writes `history`, and passes the frames to each sink's thread; nothing upstream waits for
    anything downstream. With run_in="callback" the model runs in the source's thread instead,
    without the ring; `health` then gives its share of a block's duration. A source that can wait,
    such as a file, does so instead of losing samples. Up to 0.3 s of sound that is not `live` is
    processed at once: `Frames` then hold several blocks.

    Call `stop`, or use the engine in a with statement. An engine that still runs when the program
    ends is stopped, which is logged. Commands after its end, such as a mark, a reset or a pause,
    raise EngineEnded.

    Several models measure the same sound as {"name": model, ...}: each has its own blocks, latency
    and `histories[name]`, and its frames carry its name. `model`, `history`, and the frames and
    latency of `health` are then those of the first model; the load is that of all. With several
    microphones there are `histories["desk"]`, or "desk/name" with several models.

    source: one, or several (`Together`), each a microphone of its own; or a `SourceRunner`, whose
        live source is measured from the time it began
    settings: the fields of `EngineOptions`

    Raises TypeError and ValueError for invalid arguments, Unfitting for a state that does not fit,
    and SourceError for missing channels and a source that cannot resume.
    """

    def __init__(
        self,
        source: Source | Sequence[Source] | SourceRunner,
        model: "Stage | Mapping[str, Stage]",
        sinks: Sequence[Sink | RowSink] = (),
        **settings: Unpack[EngineKeywords],
    ) -> None:
        options = EngineOptions(**settings)
        refuse_no_sinks(sinks)
        self._runner = runner = runner_of(source)
        in_callback = options.run_in == "callback"
        if runner.has_begun and (in_callback or runner.source.can_wait):
            name = runner.source.name
            raise ValueError(f"run_in is {options.run_in!r}, and {name} has begun: give 'engine'")
        self.source, self.sinks = runner.source, tuple(sinks)
        self.source.run_in = options.run_in

        self._state = state = RunState()
        timeline = Timeline(runner)
        self._sinks = Sinks(state, timeline, min(RECENT_S, options.history_s))
        self._models = models = RunningModels(timeline, self._sinks, options)
        self._bus = bus = EventBus(self._sinks, timeline, models)
        models.load(model, tell=bus.here, tell_gap=bus.gap_of)
        snapshots = Snapshots(models, timeline, self._sinks)
        if options.restore is None:
            timeline.begin(models.position)
        else:
            snapshots.restore(options.restore)
        self.first_sample = timeline.first_sample
        """The first sample of input: `first_sample`, or where the restored run stopped."""

        ring = SampleRing(self.source.fs, self.source.channels, options.ring_s)
        backlog = Backlog(runner, ring, timeline)
        models.refuse_unknown(options.needed)
        on_cpu = models.device.on_cpu
        ladder = Ladder(
            options.ladder,
            [*models],
            needed=lambda: self._sinks.needed.union(options.needed),
            tell=bus.here,
            slowness=Slowness(lambda: backlog.runner.halted_s, os.cpu_count() or 1, on_cpu),
            missing_s=lambda: missing_s(models.first),
            waits=self.source.can_wait,
        )
        work = Work(models, backlog, ladder, bus, snapshots, state)
        self._gains = work.gains
        if in_callback:
            self._deliver: InCallback | IntoRing = InCallback(backlog, work, state)
            held = None
        else:
            self._deliver = IntoRing(backlog, state)
            held = self._deliver.held(bus.by_source)
        self._shutdown = Shutdown(runner, self._sinks, state, partial(work.run, held))
        self._health = HealthReport(models, backlog, work, self._sinks, self._shutdown, state)

        self._resets = Resets(self.source.fs)
        self._row_sinks = RowSinks(models, self._sinks, timeline, state, options.sink_slack_s)
        for sink in self.sinks:
            self._row_sinks.add(sink)
        if models.device.note:
            self._tell_when_done("compute", models.device.note)

    def start(self) -> Self:
        """Start the source and warm up the models; a failure raises here [main-thread].

        Audio from a live source meanwhile is processed afterwards. If another thread stops the
        engine meanwhile, it returns with nothing running.
        """
        self._shutdown.refuse_another()
        state, runner = self._state, self._runner
        begins_now = not self.source.can_wait and isinstance(self._deliver, IntoRing)
        if not begins_now:
            runner.pass_to(self._deliver, self._bus.by_source)
        self._shutdown.begin()
        try:
            if begins_now:
                runner.begin()
            while not (state.ready.wait(WATCH_S) or state.stopping.is_set()):
                pass
            if state.error is not None and not state.warm:
                raise state.error
            runner.start(given_up=state.stopping.is_set)
            keep_nothing_running(self._runner.threads)
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """Stop source, models and sinks, in this order, within 1.2 s [any-thread].

        A source, a model's step or a sink that has not returned by then is abandoned; the log and
        the note of `health` say so.
        """
        self._shutdown.stop()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *raised: object) -> None:
        self.stop()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the source has ended and every sink has had every frame, including the tail.

        Returns False after `timeout`, or if something went wrong: see `error`.
        """
        end = math.inf if timeout is None else time.monotonic() + timeout
        # In short turns, because on Windows the keyboard cannot interrupt an endless wait.
        while not self._state.done.wait(max(0.0, min(WATCH_S, end - time.monotonic()))):
            if time.monotonic() >= end:
                return False
        return self._state.played and all(
            sink_thread.join(None if timeout is None else max(0.0, end - time.monotonic()))
            for sink_thread in self._sinks
        )

    def reset_filters(self, microphone: str | None = None) -> None:
        """Reset all models to silence at their next block; the clock goes on [any-thread].

        Sends the event "filters_reset".

        microphone: name of the one to reset, by default all
        """
        index = self._models.index_of(microphone)
        with self._state.commanded("a reset"):
            self._models.command(lambda one: one.reset(index))
            self._tell_when_done("filters_reset", "all models are back to silence", microphone)

    def calibrate(
        self,
        calibration: Calibration | Sequence[Calibration] | None = None,
        *,
        microphone: str | None = None,
        gain_db: float | None = None,
        keep_corrections: bool = False,
    ) -> None:
        """Use another calibration, gain or both from the next block on [any-thread].

        A model with an uncertainty band keeps the uncertainty that it was made with.

        A `SessionLog` starts a new part at the event "calibrated", with the header of its table,
        which this does not update: call `log.table.calibrate` first. That keeps corrections.

        microphone: name of one, by default all
        keep_corrections: keep each microphone's frequency response correction, whatever the
            calibration has
        """
        if calibration is None and gain_db is None:
            raise ValueError("no calibration and no gain_db given: give one of them")
        ears = () if calibration is None else each_ear(calibration)
        if gain_db is not None:
            refuse_no_gain(gain_db)
        index = self._models.index_of(microphone)
        for measurement in self._models:
            for listener in measurement.listeners if ears else ():
                own = listener.input.in_use.own(ears)
                if wanted := corrections_of(own, listener.input.channels):
                    prepare_correction(wanted, self.source.fs)
        parts = [calibration_words(ears)] if ears else []
        parts += [] if gain_db is None else [f"a gain of {gain_db:g} dB"]
        with self._state.commanded("another calibration"):
            given = calibration, gain_db, index, keep_corrections
            self._models.command(lambda one: one.recalibrate(*given))
            self._tell_when_done(
                "calibrated", f"read from here on with {' and '.join(parts)}", microphone
            )
            self._gains.tell_doubts()

    def pause(self) -> None:
        """Pause averages, maxima and other accumulated readings from the next block on.

        The models keep running; event "paused" [any-thread].
        """
        with self._state.commanded("a pause"):
            self._tell_when_done("paused", "nothing is counted")

    def unpause(self) -> None:
        """Resume accumulated readings from the next block on; event "continued" [any-thread]."""
        with self._state.commanded("the end of a pause"):
            self._tell_when_done("continued", "what is counted goes on")

    def reset_readings(self, microphone: str | None = None) -> None:
        """Reset accumulated readings at the next block; event "readings_reset" [any-thread].

        Filters are unaffected; for them use `reset_filters`.

        microphone: name of one, by default all
        """
        self._models.index_of(microphone)
        with self._resets.lock, self._state.commanded("a reset of readings"):
            self._resets.note(self._models.names_of(microphone), self._models.position)
            self._tell_when_done("readings_reset", "what was counted is forgotten", microphone)

    def can_undo_reset(self, microphone: str | None = None) -> bool:
        """Whether a reset of readings in the last 10 s can be undone [any-thread].

        microphone: name of one, by default whether it holds for all
        """
        return self._resets.can_undo(self._models.names_of(microphone), self._models.position)

    def undo_reset(self, microphone: str | None = None) -> None:
        """Undo `reset_readings`; event "reset_undone" [any-thread].

        Possible within 10 s of sound after the last reset. A series of resets, each within 10 s of
        the one before, is undone as a whole. Readings then include what came since the reset.

        microphone: name of one, by default all

        Raises ValueError if there is nothing to undo or it is too late.
        """
        self._models.index_of(microphone)
        with self._resets.lock, self._state.commanded("an undo"):
            self._resets.undo(self._models.names_of(microphone), self._models.position)
            self._tell_when_done("reset_undone", "what was forgotten is counted again", microphone)

    def mark(self, text: str, microphone: str | None = None) -> None:
        """Send the event "mark" to all sinks that take events, at the next block [any-thread].

        microphone: name of the one that it concerns
        """
        self.tell("mark", text, microphone)

    def tell(self, kind: str, text: str, microphone: str | None = None) -> None:
        """Send an event of another kind, one word [any-thread]."""
        for name, words in (("kind", kind), ("text", text)):
            if not isinstance(words, str):
                raise TypeError(f"the {name} of an event is {words!r}: give words")
        self._models.index_of(microphone)
        with self._state.commanded(_event_words(kind, text)):
            self._bus.by_person(kind, text, microphone or "")
            self._models.first.commands.put(self._bus.note)

    def announce(self, kind: str, text: str) -> None:
        """Send an event between two blocks, where all models have heard the same samples
        [any-thread].
        """
        with self._state.commanded(_event_words(kind, text)):
            self._bus.by_source(kind, text)

    def tell_event(self, event: Event) -> None:
        """Send an event that a sink or a person found in the sound, within 0.2 s [any-thread]."""
        with self._state.commanded(_event_words(event.kind, event.text)):
            self._bus.by_sink(event)

    @property
    def microphone_names(self) -> tuple[str, ...]:
        """Names of the microphones, if there are several [any-thread]."""
        return self._models.names

    def swap(self, model: "Stage", name: str | None = None) -> None:
        """Switch to another model, built and warmed up while the present one runs [any-thread].

        It replaces the first model, or the one called `name`. If the new model cannot run, this
        raises, and the present one goes on.
        """
        first = next(iter(self._models.of))
        self.prepared({first if name is None else name: model})()

    def prepared(self, models: "Mapping[str, Stage]") -> Callable[[], None]:
        """Build and warm up other models by name; calling the result swaps them [any-thread].

        If one is refused, none is swapped. A `SessionLog` starts a new part at the event "swapped",
        with the header of its table, which this does not update: call `log.table.swap` in between.

        Raises as `swap` does.
        """
        swap = self._models.prepared(models)

        def command() -> None:
            with self._state.commanded("another model"):
                swap()

        return command

    def _tell_when_done(self, kind: str, text: str, microphone: str | None = None) -> None:
        """Send an event about a command when the first model executes it."""
        event = partial(self._bus.here, kind, text, microphone or "")
        self._models.first.commands.put(event)

    @property
    def model(self) -> "Stage":
        """The present model, the first of several [any-thread]."""
        return self._models.first.ready.model

    @property
    def models(self) -> "dict[str, Stage]":
        """The present models by name; a single one has the name "" [any-thread]."""
        return {name: one.ready.model for name, one in self._models.of.items()}

    @property
    def device(self) -> str:
        """The models' device: "cpu", or number and name of a CUDA device; or both [any-thread]."""
        models = self.models.values()
        return ", ".join(dict.fromkeys(device_words(str(one.device)) for one in models))

    @property
    def histories(self) -> Mapping[str, History]:
        """The latest frames of each microphone and model, by name [any-thread]."""
        return self._models.histories

    @property
    def history(self) -> History:
        """The latest rows of the model, the first of several [any-thread]."""
        return next(iter(self.histories.values()))

    def recent(
        self, model: str = "", after_s: float = -math.inf, microphone: str = ""
    ) -> list[Frames]:
        """Frames of one model that end after `after_s`, from the last 4 s [any-thread].

        Oldest first, complete. To follow without a sink, ask again with `end_s` of the last one.
        The frames are shared: do not change them.

        model, microphone: by name, as in `Frames`
        """
        return self._sinks.recent(model, microphone, after_s)

    @property
    def calibration(self) -> tuple[Calibration, ...]:
        """The present calibration: one for all channels, or one each [any-thread].

        With several microphones that of the first; `health.microphones` has all.
        """
        return self._models.widest.listeners[0].input.in_use.now

    @property
    def heard(self) -> HeardChannels | None:
        """The channels that each model hears, and what they are for [any-thread].

        None with several microphones.
        """
        return self._models.heard

    def rows(
        self, step_ms: int = 100, columns: Sequence[str] | None = None, limits: Sequence[Limit] = ()
    ) -> RowFeed:
        """Rows of readings as they come, for `for` or `async for` [any-thread].

            async for rows in engine.rows(step_ms=100):
                print(rows["ltl_phon"][-1])

        Requested before the start or within the first seconds of sound, they begin at the start,
        otherwise at the present. A source that is not live waits for the reader: request the feed
        before the start, and read to the end or close it.

        columns: names of readings, or patterns with * or ?, by default the usual ones
        limits: limits on columns; each adds a column with its state

        Raises ValueError for a step that is not a whole number of milliseconds, for an unknown
        column, and if two models have the same columns.
        """
        return self._row_sinks.feed(step_ms, columns, limits)

    def new_rows(self, step_ms: int = 100) -> JoinedRows | None:
        """A row maker for the present models, for a sink that makes its own rows [any-thread].

        None with several microphones, or if a model has a row per cell, or two models have the same
        columns.
        """
        return self._row_sinks.new_rows(step_ms)

    def latest(self) -> JsonDict | None:
        """The latest row as a dict by column, every 100 ms; None before the first [any-thread].

        With several microphones, a dict of rows by name.

        Rows are made from the first call on: averages include the few seconds before that call, or
        everything from the start if that was recent.

        Raises ValueError if two models have the same columns, or one has a row per cell.
        """
        return self._row_sinks.newest()

    def attach(
        self, sink: Sink | RowSink, begin: Callable[[float], None] = lambda time_s: None
    ) -> None:
        """Add a sink while the engine runs [any-thread].

        It first gets the last seconds of frames, so that readings have settled; within the first
        seconds of sound these are all frames.

        begin: called before them with the time in seconds at which the present begins, if there
            was sound before
        """
        refuse_no_sinks([sink])
        self._row_sinks.attach(sink, begin)
        self.sinks = (*self.sinks, sink)

    def detach(self, sink: Sink | RowSink) -> None:
        """Remove a sink; it ends after the frames already queued for it [any-thread]."""
        self._row_sinks.detach(sink)
        self.sinks = tuple(one for one in self.sinks if one is not sink)

    @property
    def events(self) -> tuple[Event, ...]:
        """The last 1000 events, oldest first [any-thread]."""
        return self._bus.events

    @property
    def error(self) -> BaseException | None:
        """The error that ended the engine, or None [any-thread]."""
        return self._state.error

    @property
    def health(self) -> Health:
        """A snapshot of the engine's health [any-thread]."""
        return self._health.health()

    @property
    def device_state(self) -> str:
        """`health.device_state`, which is cheaper to ask for often [any-thread]."""
        return self._health.device_state


def _event_words(kind: str, text: str) -> str:
    return sentence(f"{kind} {brief(text)!r}")
