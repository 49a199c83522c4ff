"""The engine: a source, one model or several, and whoever wants the numbers."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import Self, Unpack

from amt_stream.core.json_types import JsonDict
from amt_stream.core.safe_text import brief, sentence
from amt_stream.dsp.compute_device import device_words
from amt_stream.dsp.streaming import Stage
from amt_stream.engine.backlog import Backlog
from amt_stream.engine.delivery import InCallback, IntoRing
from amt_stream.engine.event_bus import EventBus
from amt_stream.engine.feed import RowFeed, RowSink
from amt_stream.engine.health import Health
from amt_stream.engine.health_report import HealthReport
from amt_stream.engine.history import History
from amt_stream.engine.ladder import Ladder
from amt_stream.engine.microphone_correction import corrections_of, ready_stage
from amt_stream.engine.microphone_input import each_ear
from amt_stream.engine.microphones import refuse_no_gain
from amt_stream.engine.model_runner import WATCH_S, Work
from amt_stream.engine.options import EngineKeywords, EngineOptions
from amt_stream.engine.program_end import keep_nothing_running
from amt_stream.engine.resets import Resets
from amt_stream.engine.ring import SampleRing
from amt_stream.engine.row_sinks import RowSinks
from amt_stream.engine.run_state import RunState
from amt_stream.engine.running_models import RunningModels
from amt_stream.engine.shutdown import Shutdown
from amt_stream.engine.sink_thread import Sink
from amt_stream.engine.sinks import Sinks
from amt_stream.engine.snapshots import Snapshots
from amt_stream.engine.source_runner import SourceRunner
from amt_stream.engine.sources import Source, refuse_no_source
from amt_stream.engine.thread_check import thread_checked
from amt_stream.engine.timeline import Timeline
from amt_stream.engine.together import Together
from amt_stream.meters.calibration import Calibration, calibration_words
from amt_stream.meters.frames import UNDO_S, Event, Frames
from amt_stream.meters.limits import Limit
from amt_stream.meters.rows import JoinedRows

RECENT_S = 4.0
NOTHING_TO_UNDO = f"no readings were reset in the last {UNDO_S:g} s: nothing to undo"


@thread_checked
class Engine:
    """Runs `model` on what `source` delivers and hands `Frames` to the sinks.

        with Engine(FileSource("speech.wav"), Moore2016(fs=48000), sinks=[print]) as engine:
            engine.wait()

    The source copies into a ring; one thread takes blocks of about `block_ms` from it, runs the
    model, writes `history`, and passes the frames to each sink's own thread: nothing upstream ever
    waits for something downstream. With run_in="callback" the model runs in the source's thread
    instead, without the ring; `health` then says what share of a block's duration it took.
    A source that is not live (`live=False`) is made to wait instead of losing anything, and up to
    0.1 s of what it has delivered is taken at once: `Frames` then hold several blocks.

    An engine that still runs when the program ends, however it ends, is stopped and that is logged:
    call `stop`, or use the engine in a with statement.

    What is commanded after its end, as a mark, a reset or a pause, raises EngineEnded.

    Several models hear the same sound as {"name": model, ...}: each has its own blocks, latency and
    `histories[name]`, and its frames carry its name. What is told of one model (`model`, `history`,
    the frames and the latency of `health`) is then told of the first; the load is that of all.
    Of several microphones there are `histories["desk"]`, or "desk/name" of several models.

    source: one, or several that are heard together (`Together`), each a microphone by itself; or a
        `SourceRunner`, whose live source is heard from when that has begun
    settings: the fields of `EngineOptions`

    Raises TypeError and ValueError for what cannot be run, Unfitting for a state that does not fit,
    and SourceError for channels that the source lacks, or where it cannot go on.
    """

    def __init__(
        self,
        source: Source | Sequence[Source] | SourceRunner,
        model: Stage | Mapping[str, Stage],
        sinks: Sequence[Sink | RowSink] = (),
        **settings: Unpack[EngineKeywords],
    ) -> None:
        options = EngineOptions(**settings)
        _refuse_no_sinks(sinks)
        self._runner = runner = _runner_of(source)
        in_callback = options.run_in == "callback"
        if runner.has_begun and (in_callback or not runner.source.live):
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
        """The sample of input with which it begins: that asked for, or where another stopped."""

        ring = SampleRing(self.source.fs, self.source.channels, options.ring_s)
        backlog = Backlog(runner, ring, timeline)
        ladder = Ladder(options.ladder, models.of, bus.here)
        work = Work(models, backlog, ladder, bus, snapshots, state)
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
            self._tell_once_done("compute", models.device.note)

    def start(self) -> Self:
        """Start the source and warm the model; what cannot start raises here [main-thread].

        What a live source delivers meanwhile is worked off then. Stopped meanwhile by another
        thread, it returns, and nothing runs.
        """
        state, runner = self._state, self._runner
        begins_now = self.source.live and isinstance(self._deliver, IntoRing)
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
        """End now: source, model, sinks, in this order; it takes 1.2 s at most [any-thread].

        A source, a step of a model or a sink that has not returned by then is left behind: that is
        logged, and told by the note of `health` for as long as it lasts.
        """
        self._shutdown.stop()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the source has ended and every sink has had every frame, the tail included.

        False when the time was over first, or something went wrong: `error` says what.
        """
        end = math.inf if timeout is None else time.monotonic() + timeout
        # In short turns: on Windows a wait without end cannot be interrupted from the keyboard.
        while not self._state.done.wait(max(0.0, min(WATCH_S, end - time.monotonic()))):
            if time.monotonic() >= end:
                return False
        return self._state.played and all(
            sink_thread.join(None if timeout is None else max(0.0, end - time.monotonic()))
            for sink_thread in self._sinks
        )

    def reset_filters(self, microphone: str | None = None) -> None:
        """All models back to silence at their next block; the clock goes on; event "filters_reset"
        [any-thread].

        microphone: the name of one, where several are heard: the others go on
        """
        index = self._models.index_of(microphone)
        with self._state.commanded("a reset"):
            self._models.command(lambda one: one.reset(index))
            self._tell_once_done("filters_reset", "all models are back to silence", microphone)

    def calibrate(
        self,
        calibration: Calibration | Sequence[Calibration] | None = None,
        *,
        microphone: str | None = None,
        gain_db: float | None = None,
        keep_corrections: bool = False,
    ) -> None:
        """Read with another calibration, gain or both from the next block on [any-thread].

        The band of a model that gives one stays that of the uncertainty it was made with.

        A `SessionLog` begins a part at the event "calibrated", with the header of its table, which
        does not hear of this: call `log.table.calibrate` first. That keeps corrections.

        microphone: the name of one, where several are heard, by default all of them
        keep_corrections: whether the response of each microphone is taken off as before, whatever
            the calibration has
        """
        if calibration is None and gain_db is None:
            raise ValueError("no calibration and no gain_db given: give one of them")
        ears = () if calibration is None else each_ear(calibration)
        if gain_db is not None:
            refuse_no_gain(gain_db)
        index = self._models.index_of(microphone)
        for measurement in self._models:
            for listener in measurement.listeners if ears else ():
                if wanted := corrections_of(ears, listener.input.channels):
                    ready_stage(wanted, self.source.fs)  # else the engine's thread would have to
        told = [calibration_words(ears)] if ears else []
        told += [] if gain_db is None else [f"a gain of {gain_db:g} dB"]
        with self._state.commanded("another calibration"):
            given = calibration, gain_db, index, keep_corrections
            self._models.command(lambda one: one.recalibrate(*given))
            self._tell_once_done(
                "calibrated", f"read from here on with {' and '.join(told)}", microphone
            )

    def pause(self) -> None:
        """Averages, maxima and what else is counted stand still from the next block on.

        Sound is heard and models run; event "paused" [any-thread].
        """
        with self._state.commanded("a pause"):
            self._tell_once_done("paused", "nothing is counted")

    def unpause(self) -> None:
        """What is counted goes on from the next block on; event "continued" [any-thread]."""
        with self._state.commanded("the end of a pause"):
            self._tell_once_done("continued", "what is counted goes on")

    def reset_readings(self, microphone: str | None = None) -> None:
        """Forget what was counted until the next block; event "readings_reset" [any-thread].

        No filter is touched: `reset_filters` brings models back to silence.

        microphone: the name of one, where several are heard
        """
        self._models.index_of(microphone)
        with self._resets.lock, self._state.commanded("a reset of readings"):
            self._resets.note(self._models.names_of(microphone), self._models.position)
            self._tell_once_done("readings_reset", "what was counted is forgotten", microphone)

    def can_undo_reset(self, microphone: str | None = None) -> bool:
        """Whether readings were reset, and that not undone, in the last 10 s [any-thread].

        microphone: the name of one, where several are heard, by default of all of them
        """
        return self._resets.can_undo(self._models.names_of(microphone), self._models.position)

    def undo_reset(self, microphone: str | None = None) -> None:
        """Count again what `reset_readings` forgot; event "reset_undone" [any-thread].

        Within 10 s of sound after the last reset. Of several, each within 10 s of the one before,
        all are undone. What came since counts too, as if there had been no reset.

        microphone: the name of one, where several are heard; by default all of them

        Raises ValueError where nothing was forgotten, or too long ago.
        """
        self._models.index_of(microphone)
        with self._resets.lock, self._state.commanded("an undo"):
            if not self.can_undo_reset(microphone):
                raise ValueError(NOTHING_TO_UNDO)
            self._resets.undo(self._models.names_of(microphone))
            self._tell_once_done("reset_undone", "what was forgotten is counted again", microphone)

    def mark(self, text: str, microphone: str | None = None) -> None:
        """Tell whoever hears events, as a log: event "mark", at the next block [any-thread].

        microphone: the name of the one that it is about, where several are heard
        """
        self.tell("mark", text, microphone)

    def tell(self, kind: str, text: str, microphone: str | None = None) -> None:
        """The same with another kind of event, a word [any-thread]."""
        for name, words in (("kind", kind), ("text", text)):
            if not isinstance(words, str):
                raise TypeError(f"the {name} of an event is {words!r}: give words")
        self._models.index_of(microphone)
        with self._state.commanded(_told_so(kind, text)):
            self._bus.by_person(kind, text, microphone or "")
            self._models.first.commands.put(self._bus.note)

    def tell_event(self, event: Event) -> None:
        """Tell what was found in the sound, by a sink or a person, within 0.2 s [any-thread]."""
        with self._state.commanded(_told_so(event.kind, event.text)):
            self._bus.by_sink(event)

    @property
    def microphone_names(self) -> tuple[str, ...]:
        """What the microphones are called, where several are heard, each by itself [any-thread]."""
        return self._models.names

    def swap(self, model: Stage, name: str | None = None) -> None:
        """Go on with another model, built and warmed here while the present one runs [any-thread].

        It takes the place of the first model, or of the one called `name`. A model that cannot run
        there raises here, and the stream goes on as it was.
        """
        first = next(iter(self._models.of))
        self.prepared({first if name is None else name: model})()

    def prepared(self, models: Mapping[str, Stage]) -> Callable[[], None]:
        """Other models by name, built and warmed here; what is given swaps them [any-thread].

        Where one is refused none is swapped. A `SessionLog` begins a part at the event "swapped",
        with the header of its table, which does not hear of this: call `log.table.swap` between the
        two.

        Raises as `swap` does.
        """
        swap = self._models.prepared(models)

        def command() -> None:
            with self._state.commanded("another model"):
                swap()

        return command

    def _tell_once_done(self, kind: str, text: str, microphone: str | None = None) -> None:
        """Tell of what models were commanded to do, when the first one does it."""
        told = partial(self._bus.here, kind, text, microphone or "")
        self._models.first.commands.put(told)

    @property
    def model(self) -> Stage:
        """The model that runs just now, the first of several [any-thread]."""
        return self._models.first.ready.model

    @property
    def models(self) -> dict[str, Stage]:
        """The models that run just now, by name; a single one has the name "" [any-thread]."""
        return {name: one.ready.model for name, one in self._models.of.items()}

    @property
    def device(self) -> str:
        """Where the models run: "cpu", or the number and name of a CUDA device [any-thread]."""
        return device_words(self._models.device.device)

    @property
    def histories(self) -> Mapping[str, History]:
        """The last frames of each microphone and model, by name [any-thread]."""
        return self._models.histories

    @property
    def history(self) -> History:
        """The last rows of the model, of the first of several [any-thread]."""
        return next(iter(self.histories.values()))

    def recent(
        self, model: str = "", after_s: float = -math.inf, microphone: str = ""
    ) -> list[Frames]:
        """Frames of one model that end after `after_s`, of the last 4 s at most [any-thread].

        The oldest first, all that they carry in them: to follow along without a sink, ask again
        with `end_s` of the last. Others read them too: look, and change nothing.

        model, microphone: by name, as in `Frames`
        """
        return self._sinks.recent(model, microphone, after_s)

    @property
    def calibration(self) -> tuple[Calibration, ...]:
        """What readings rest on just now: one for both ears, or one for each [any-thread].

        Of several microphones it is that of the first: `health.microphones` has that of each.
        """
        return self._models.first.calibration

    def rows(
        self,
        step_ms: int = 100,
        columns: Sequence[str] | None = None,
        limits: Sequence[Limit] = (),
    ) -> RowFeed:
        """Rows of readings as they come, for `for` or `async for` [any-thread].

            async for rows in engine.rows(step_ms=100):
                print(rows["ltl_phon"][-1])

        Asked for before the start or within the first seconds of sound they begin with it,
        otherwise with the present. A source that is not live waits for whoever reads them: ask
        before the start, and read to the end or close the feed.

        columns: names of readings, or patterns with * or ?, in place of the usual ones
        limits: of columns, which come besides: the state of each is one more

        Raises ValueError for a step that is no whole number of milliseconds, for a column that no
        model has, and where two models have the same columns.
        """
        return self._row_sinks.feed(step_ms, columns, limits)

    def new_rows(self, step_ms: int = 100) -> JoinedRows | None:
        """Makes rows of the models that run just now, for a sink that wants its own [any-thread].

        None where several microphones are heard, or a model has a row for each cell, or two have
        the same columns.
        """
        return self._row_sinks.new_rows(step_ms)

    def latest(self) -> JsonDict | None:
        """The newest row as a dict by column, every 100 ms; None before the first [any-thread].

        Where several microphones are heard, it is that of each, by its name.

        Rows are made from the first call on: what accumulates, as an average level does, counts
        from the seconds before that call, or from the start where it was made by then.

        Raises ValueError where two models have the same columns, or one has a row for each cell.
        """
        return self._row_sinks.newest()

    def attach(
        self, sink: Sink | RowSink, begin: Callable[[float], None] = lambda time_s: None
    ) -> None:
        """Add a sink while all runs; it is told of what comes from here on [any-thread].

        It is handed the last seconds of frames first, so that what rises has risen; within the
        first seconds of sound these are all.

        begin: called before those with the time in seconds at which the present begins, where
            there was sound before them
        """
        _refuse_no_sinks([sink])
        self._row_sinks.attach(sink, begin)
        self.sinks = (*self.sinks, sink)

    def detach(self, sink: Sink | RowSink) -> None:
        """Tell a sink nothing more; it ends once it has had what waits for it [any-thread]."""
        self._row_sinks.detach(sink)
        self.sinks = tuple(one for one in self.sinks if one is not sink)

    @property
    def events(self) -> tuple[Event, ...]:
        """What happened so far, the last 1000 of it, the oldest first [any-thread]."""
        return self._bus.events

    @property
    def error(self) -> BaseException | None:
        """Why it ended, where something went wrong [any-thread]."""
        return self._state.error

    @property
    def health(self) -> Health:
        """How it is doing just now [any-thread]."""
        return self._health.health()

    @property
    def device_state(self) -> str:
        """That of `health` alone, for whoever asks often [any-thread]."""
        return self._health.device_state


def _told_so(kind: str, text: str) -> str:
    return sentence(f"{kind} {brief(text)!r}")


def _runner_of(source: Source | Sequence[Source] | SourceRunner) -> SourceRunner:
    if isinstance(source, SourceRunner):
        return source
    if isinstance(source, Sequence) and not isinstance(source, str):  # type: ignore[unreachable]
        source = Together(source)
    refuse_no_source(source)
    return SourceRunner(source)


def _refuse_no_sinks(sinks: Sequence[Sink | RowSink]) -> None:
    if not isinstance(sinks, Sequence):
        raise TypeError(f"sinks is {sinks!r}: give a sequence, such as [print]")
    for sink in sinks:
        if not (callable(sink) or isinstance(sink, RowSink)):
            raise TypeError(
                f"the sink {sink!r} cannot be called: give a function of Frames, or a RowSink"
            )
