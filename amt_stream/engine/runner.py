"""The engine: a source, one model or several, and whoever wants the numbers."""

import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import Any, Literal, Self

import torch

from amt_stream.calibration import UNCALIBRATED, Calibration, in_words, with_corrections
from amt_stream.contract import takes_pascal
from amt_stream.correction import Correction
from amt_stream.engine.backlog import Backlog
from amt_stream.engine.checkup import Checkup
from amt_stream.engine.clock import UtcScale
from amt_stream.engine.correcting import corrections_of, ready_stage
from amt_stream.engine.course import Course
from amt_stream.engine.delivery import InCallback, IntoRing
from amt_stream.engine.ending import Ending
from amt_stream.engine.feed import Heard, Made, RowFeed, RowSink
from amt_stream.engine.frames import History
from amt_stream.engine.health import Arrivals, Health
from amt_stream.engine.intake import Intake
from amt_stream.engine.keeping import Keeping
from amt_stream.engine.ladder import Ladder
from amt_stream.engine.listener import Listener, each_ear
from amt_stream.engine.measurement import Measurement, ReadyModel, refuse_no_model
from amt_stream.engine.outlet import Sink
from amt_stream.engine.outlets import Outlets
from amt_stream.engine.pace import RUNGS, refuse_no_rungs
from amt_stream.engine.place import in_words as device_in_words
from amt_stream.engine.place import place_of
from amt_stream.engine.program_end import keep_nothing_running, nobody_is_left
from amt_stream.engine.resuming import BrokenOff, Standing
from amt_stream.engine.ring import SampleRing
from amt_stream.engine.row import Row, refuse_no_gain, rows_of_source
from amt_stream.engine.row_outlets import RowOutlets
from amt_stream.engine.sources import (
    DeviceLost,
    Source,
    SourceError,
    channel_slice,
    refuse_no_source,
)
from amt_stream.engine.telling import Telling
from amt_stream.engine.together import Together
from amt_stream.engine.work import Work
from amt_stream.frames import UNDO_S, Event, Frames
from amt_stream.functional.threads import work_alone
from amt_stream.limits import Limit
from amt_stream.plain import brief, sentence
from amt_stream.rows import JoinedRows
from amt_stream.streaming import Stage

WATCH_S = 0.2
SOURCE_S = 0.5
RECENT_S = 4.0
NOTHING_TO_UNDO = f"no readings were reset in the last {UNDO_S:g} s: nothing to undo"


class Engine:
    """Runs `model` on what `source` delivers and hands `Frames` to the sinks.

        with Engine(FileSource("speech.wav"), Moore2016(fs=48000), sinks=[print]) as engine:
            engine.wait()

    The source copies into a ring; one thread takes blocks of about `block_ms` from it, runs the
    model, writes `history`, and passes the frames to each sink's own thread: nothing upstream ever
    waits for something downstream. With run_in="callback" the model runs in the source's thread
    instead, without the ring; `health` then says what share of a block's duration it took.
    A source that is not live (`live=False`) is made to wait instead of losing anything.

    An engine that still runs when the program ends, however it ends, is stopped and that is logged:
    call `stop`, or use the engine in a with statement.

    What is commanded after its end, as a mark, a reset or a pause, raises EngineEnded.

    Several models hear the same sound as {"name": model, ...}: each has its own blocks, latency and
    `histories[name]`, and its frames carry its name. What is told of one model (`model`, `history`,
    the frames and the latency of `health`) is then told of the first; the load is that of all.
    Of several rows there are `histories["row"]`, or "row/name" of several models.

    calibration: one, or one for each ear; by default the source's own, else UNCALIBRATED
    correction: of the microphone, or of that of each ear, in place of what calibrations have: its
        response is taken off the sound before any model hears it, whatever unit that takes
    source: one, or several that are heard together (`Together`), each a row by itself; or an
        `Intake`, whose live source is heard from when that has begun
    rows: several microphones, each heard by itself through the same model in one step: how many
        there are, which share the channels of the source evenly, or the channels of each, as
        [(1, 2), (3, 4)], or a `Row` that says more. Each has a calibration, gain, faults, gaps and
        frames of its own, and these, their events and rows of readings carry its name
    channels: one or two channel numbers of the source (1, 2, ...), one for both ears. A model that
        takes fractions of full scale and not pascal hears these too, or all channels of the source
    device: "cpu", or "cuda", or one of several as "cuda:1": models are moved there, and stay;
        sound, marks and numbers are on the CPU. Where there is none, an event, "compute", and the
        note of `health` say so, and the models run on the CPU
    block_ms: 1 to 1000, brought to a whole number of the model's blocks, one at least
    ladder: what may be done without while a live source brings sound faster than it is worked off,
        the first of them first: "accuracy", cheaper forms of models; "blocks", longer ones;
        "models", all but the first, the dearest first. It is told by events, "overload" and
        "recovered", by the note of `health`, and by Fault.OVERLOAD on all frames
    first_sample: the count of the first sample, from which all times are reckoned: a whole number
        of the models' blocks
    resume: the state of a `Snapshot` of an engine with equal models, blocks and calibration, to go
        on where that was taken: a source that is `seekable` is heard from that sample on; of a live
        one the time between, by the clock, is one gap. Raises ValueError for what does not fit, and
        SourceError for a source that cannot go on
    """

    def __init__(
        self,
        source: Source | Sequence[Source] | Intake,
        model: Stage | Mapping[str, Stage],
        sinks: Sequence[Sink | RowSink] = (),
        *,
        rows: int | Sequence[Row | Sequence[int]] | None = None,
        calibration: Calibration | Sequence[Calibration] | None = None,
        correction: Correction | Sequence[Correction | None] | None = None,
        channels: Sequence[int] | None = None,
        device: str | torch.device = "cpu",
        block_ms: float = 10.0,
        run_in: Literal["engine", "callback"] = "engine",
        history_s: float = 60.0,
        ring_s: float = 1.0,
        sink_slack_s: float = 2.0,
        ladder: Sequence[str] = RUNGS,
        first_sample: int = 0,
        resume: Mapping[str, Any] | None = None,
    ) -> None:
        if run_in not in ("engine", "callback"):
            raise ValueError(f"run_in is {run_in!r}: give 'engine' or 'callback'")
        _refuse_no_time(history_s=history_s, ring_s=ring_s, sink_slack_s=sink_slack_s)
        self._intake = _intake_of(source)
        source = self._intake.source
        self._keeps = source.live and run_in == "engine"
        if self._intake.has_begun and not self._keeps:
            raise ValueError(f"run_in is {run_in!r}, and {source.name} has begun: give 'engine'")
        if rows is None and channels is None and isinstance(source, Together):
            rows = source.rows
        refuse_no_rungs(ladder)
        _refuse_no_sinks(sinks)
        if calibration is None:
            calibration = source.calibration or UNCALIBRATED
        self.source, self.sinks = source, tuple(sinks)
        self._place = place_of(device)
        self._course = Course()
        self._block_ms, self._history_s, self._run_in = block_ms, history_s, run_in
        models = model if isinstance(model, Mapping) else {"": model}
        if not models:
            raise ValueError("no model given: give one Stage, or several by name")
        if rows is not None and channels is not None:
            raise ValueError("rows and channels are given: give the channels of each row")
        self._rows = () if rows is None else rows_of_source(rows, source)
        self.histories: dict[str, History] = {}
        self._measurements: dict[str, Measurement] = {}
        if correction is not None:
            given = (correction,) if isinstance(correction, Correction) else tuple(correction)
            calibration = with_corrections(each_ear(calibration), given)
            self._rows = tuple(_with_corrections(row, given) for row in self._rows)
        for name, one in models.items():
            self._add_model(name, one, calibration, channels, first_sample)
        self._measurement = next(iter(self._measurements.values()))
        self._standing = Standing(source.fs, self._measurements)
        self._goes_on = resume is not None
        if resume is not None:
            self._go_on(resume)
        self.first_sample = self._measurement.position
        """The sample of input with which it begins: that asked for, or where another stopped."""
        self._arrivals = Arrivals(source.fs, self.first_sample)
        self._utc = UtcScale()
        self._build_outlets(sink_slack_s)
        self._build_work(ladder, SampleRing(source.fs, source.channels, ring_s))
        self._watched_at = 0.0
        self._is_warm = False

    def _add_model(
        self,
        name: str,
        model: Stage,
        calibration: Calibration | Sequence[Calibration],
        channels: Sequence[int] | None,
        first_sample: int,
    ) -> None:
        refuse_no_model(model, self.source.fs)
        listeners = self._listeners(model, calibration, channels)
        heard = max(listener.channels for listener in listeners)
        fs, block_ms, batch = self.source.fs, self._block_ms, len(listeners)
        ready = ReadyModel(model, fs, block_ms, heard, self._place, batch)
        self._measurements[name] = Measurement(
            ready,
            listeners,
            emit=partial(self._emit, name),
            epoch=self._epoch,
            model_changed=partial(self._renew_history, name),
            name=name,
            begin=first_sample,
        )
        if ready.rows != 2 or not ready.in_pascal or model.per_channel:
            _refuse_mixed(model, listeners)
        for listener in listeners:
            self.histories[_of_row(name, listener.name)] = self._new_history(ready)

    def _listeners(
        self,
        model: Stage,
        calibration: Calibration | Sequence[Calibration],
        channels: Sequence[int] | None,
    ) -> list[Listener]:
        """Who hears one model, by themselves."""
        source = self.source
        # All models hear the same sound: the first one tells what is missing.
        tell = None if self._measurements else self._tell_gap
        if not self._rows:
            columns = self._columns(model, channels)
            return [Listener(columns, source.channels, calibration, tell_gap=tell)]
        return [
            Listener(
                channel_slice(row.channels, source.channels, source.name),
                source.channels,
                calibration if row.calibration is None else row.calibration,
                row.gain_db,
                row.name,
                tell,
            )
            for row in self._rows
        ]

    def _columns(self, model: Stage, channels: Sequence[int] | None) -> slice:
        """Which channels of the source a model hears."""
        source = self.source
        if channels is None and not takes_pascal(model):
            return slice(0, source.channels)
        return channel_slice(channels, source.channels, source.name)

    def _go_on(self, state: Mapping[str, Any]) -> None:
        """From where `state` was saved; before the first sound."""
        source = self.source
        if not (source.live or source.seekable):
            raise SourceError(f"{source.name} cannot go on: it has no other place than its next")
        self._standing.load_state_dict(state)
        if source.seekable:
            source.seek(self._measurement.position)

    def _build_outlets(self, slack_s: float) -> None:
        """Sinks, and what tells them of everything."""
        source, measurement = self.source, self._measurement
        slack = max(1, round(slack_s * source.fs / measurement.ready.block))
        recent_s = min(RECENT_S, self._history_s)
        self._outlets = Outlets(self._course, recent_s, recent_is_all=not self.first_sample)
        self._row_outlets = RowOutlets(
            source,
            self._outlets,
            self._course,
            models=self._made,
            begin_s=self.first_sample / source.fs,
            samples=lambda: measurement.samples,
            slack=slack * len(self.histories),
            slack_s=slack_s,
        )
        self._outlet_of = {id(sink): self._row_outlets.of_sink(sink) for sink in self.sinks}
        for outlet in self._outlet_of.values():
            self._outlets.add(outlet)
        stopped_at = self._standing.moment if self._goes_on and not source.seekable else None
        self._broken_off = BrokenOff(source.fs, stopped_at)
        self._telling = Telling(
            source,
            self._outlets,
            self._broken_off,
            position=lambda: measurement.position,
            epoch=self._epoch,
            resumed_at=self.first_sample if self._goes_on else None,
        )

    def _build_work(self, ladder: Sequence[str], ring: SampleRing) -> None:
        """The way of the sound from the source through the models."""
        source, arrivals, outlets = self.source, self._arrivals, self._outlets
        in_callback = self._run_in == "callback"
        backlog = Backlog(self._intake, ring)
        # Where readings of each row were last reset, as long as it is not undone.
        self._cleared: dict[str, int] = {}
        self._clearing = threading.Lock()
        self._ladder = Ladder(ladder, self._measurements, self._telling.here)
        self._keeping = Keeping(self._standing, arrivals, self._epoch, outlets)
        self._work = Work(
            source,
            self._measurements,
            backlog,
            self._ladder,
            self._utc,
            self._epoch,
            self._telling,
            outlets,
            self._keeping,
            self._course,
            in_callback,
        )
        # A daemon: the interpreter, at its end, stops and joins it instead of waiting for ever.
        thread = threading.Thread(target=self._run, name="engine", daemon=True)
        self._model_lock = threading.Lock()
        way = (source, backlog, arrivals, self._broken_off, self._course)
        deliver = InCallback(*way, self._work, self._model_lock) if in_callback else IntoRing(*way)
        self._deliver = deliver
        self._ending = Ending(source, self._intake, outlets, thread, self._model_lock, self._course)
        self._checkup = Checkup(
            source,
            self._measurements,
            self._intake,
            arrivals,
            backlog,
            self._ladder,
            self._work.load,
            self._utc,
            outlets,
            self._ending,
            self._course,
            self._place.note,
        )
        if self._place.note:
            self._tell_once_done("compute", self._place.note)

    def start(self) -> Self:
        """Start the source and warm the model; what cannot start raises here [main-thread].

        What a live source delivers meanwhile is worked off then. Stopped meanwhile by another
        thread, it returns, and nothing runs.
        """
        course, intake = self._course, self._intake
        self.source.run_in = self._run_in
        if not self._keeps:
            intake.pass_to(self._deliver, self._telling.by_source)
        self._ending.begin()
        try:
            if self._keeps:
                intake.begin()
            while not (course.ready.wait(WATCH_S) or course.stopping.is_set()):
                pass
            if course.error is not None and not self._is_warm:
                raise course.error
            intake.start(given_up=course.stopping.is_set)
            keep_nothing_running(self._intake.threads)
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """End now: source, model, sinks, in this order; it takes 1.2 s at most [any-thread].

        A source, a step of a model or a sink that has not returned by then is left behind: that is
        logged, and told by the note of `health` for as long as it lasts.
        """
        self._ending.stop()

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
        while not self._course.done.wait(max(0.0, min(WATCH_S, end - time.monotonic()))):
            if time.monotonic() >= end:
                return False
        return self._course.played and all(
            outlet.join(None if timeout is None else max(0.0, end - time.monotonic()))
            for outlet in self._outlets
        )

    def reset(self, row: str | None = None) -> None:
        """All models back to silence at their next block; the clock goes on [any-thread].

        row: the name of one, where several are heard: the others go on
        """
        index = self._index_of(row)
        with self._course.commanded("a reset"):
            for measurement in self._measurements.values():
                measurement.commands.put(partial(measurement.reset, index))
            self._tell_once_done("reset", "all models are back to silence", row)

    def calibrate(
        self,
        calibration: Calibration | Sequence[Calibration] | None = None,
        *,
        row: str | None = None,
        gain_db: float | None = None,
        keep_corrections: bool = False,
    ) -> None:
        """Read with another calibration, gain or both from the next block on [any-thread].

        The band of a model that gives one stays that of the uncertainty it was made with.

        A `SessionLog` begins a part at the event "calibrated", with the header of its table, which
        does not hear of this: call `log.table.calibrate` first. That keeps corrections.

        row: the name of one, where several are heard, by default all of them
        keep_corrections: whether the response of each microphone is taken off as before, whatever
            the calibration has
        """
        if calibration is None and gain_db is None:
            raise ValueError("no calibration and no gain_db given: give one of them")
        ears = () if calibration is None else each_ear(calibration)
        if gain_db is not None:
            refuse_no_gain(gain_db)
        index = self._index_of(row)
        for measurement in self._measurements.values():
            for listener in measurement.listeners if ears else ():
                if wanted := corrections_of(ears, listener.channels):
                    ready_stage(wanted, self.source.fs)  # else the engine's thread would have to
        told = [in_words(ears)] if ears else []
        told += [] if gain_db is None else [f"a gain of {gain_db:g} dB"]
        with self._course.commanded("another calibration"):
            for measurement in self._measurements.values():
                given = calibration, gain_db, index, keep_corrections
                measurement.commands.put(partial(measurement.recalibrate, *given))
            self._tell_once_done("calibrated", f"read from here on with {' and '.join(told)}", row)

    def pause(self) -> None:
        """Averages, maxima and what else is counted stand still from the next block on.

        Sound is heard and models run; event "paused" [any-thread].
        """
        with self._course.commanded("a pause"):
            self._tell_once_done("paused", "nothing is counted")

    def unpause(self) -> None:
        """What is counted goes on from the next block on; event "continued" [any-thread]."""
        with self._course.commanded("the end of a pause"):
            self._tell_once_done("continued", "what is counted goes on")

    def clear(self, row: str | None = None) -> None:
        """Forget what was counted until the next block; event "cleared" [any-thread].

        No filter is touched: `reset` brings models back to silence.

        row: the name of one, where several are heard
        """
        self._index_of(row)
        with self._clearing, self._course.commanded("a reset of readings"):
            position = self._measurement.position
            self._cleared.update(dict.fromkeys(self._names_of(row), position))
            self._tell_once_done("cleared", "what was counted is forgotten", row)

    def can_undo_clear(self, row: str | None = None) -> bool:
        """Whether readings were reset, and that not undone, in the last 10 s [any-thread].

        row: the name of one, where several are heard, by default of all of them
        """
        earliest = self._measurement.position - UNDO_S * self.source.fs
        cleared = (self._cleared.get(name, -math.inf) for name in self._names_of(row))
        return all(at >= earliest for at in cleared)

    def undo_clear(self, row: str | None = None) -> None:
        """Count again what `clear` has let be forgotten; event "restored" [any-thread].

        Within 10 s of sound after the last reset. Of several, each within 10 s of the one before,
        all are undone. What came since counts too, as if there had been no reset.

        row: the name of one, where several are heard; by default all, each of which was cleared

        Raises ValueError where nothing was forgotten, or too long ago.
        """
        self._index_of(row)
        with self._clearing, self._course.commanded("an undo"):
            if not self.can_undo_clear(row):
                raise ValueError(NOTHING_TO_UNDO)
            for name in self._names_of(row):
                del self._cleared[name]
            self._tell_once_done("restored", "what was forgotten is counted again", row)

    def mark(self, text: str, row: str | None = None) -> None:
        """Tell whoever hears events, as a log: event "mark", at the next block [any-thread].

        row: the name of the one that it is about, where several are heard
        """
        self.tell("mark", text, row)

    def tell(self, kind: str, text: str, row: str | None = None) -> None:
        """The same with another kind of event, a word [any-thread]."""
        for name, words in (("kind", kind), ("text", text)):
            if not isinstance(words, str):
                raise TypeError(f"the {name} of an event is {words!r}: give words")
        self._index_of(row)
        with self._course.commanded(_told_so(kind, text)):
            self._telling.by_person(kind, text, row or "")
            self._measurement.commands.put(self._telling.note)

    def tell_event(self, event: Event) -> None:
        """Tell what was found in the sound, by a sink or a person, within 0.2 s [any-thread]."""
        with self._course.commanded(_told_so(event.kind, event.text)):
            self._telling.by_sink(event)

    def _names_of(self, row: str | None) -> Sequence[str]:
        """What the row is called, or all rows; one measurement without rows is ""."""
        return (self.row_names or ("",)) if row is None else (row,)

    def _index_of(self, row: str | None) -> int | None:
        """Which row is called so."""
        if row is None:
            return None
        if row not in self.row_names:
            there = ", ".join(self.row_names) or "no rows, but one measurement"
            raise ValueError(f"no row is called {row!r}: there are {there}")
        return self.row_names.index(row)

    @property
    def row_names(self) -> tuple[str, ...]:
        """What the rows are called, where several are heard, each by itself [any-thread]."""
        return tuple(row.name for row in self._rows)

    def swap(self, model: Stage, name: str | None = None) -> None:
        """Go on with another model, built and warmed here while the present one runs [any-thread].

        It takes the place of the first model, or of the one called `name`. A model that cannot run
        there raises here, and the stream goes on as it was.
        """
        first = next(iter(self._measurements))
        self.prepared({first if name is None else name: model})()

    def prepared(self, models: Mapping[str, Stage]) -> Callable[[], None]:
        """Other models by name, built and warmed here; what is given swaps them [any-thread].

        Where one is refused none is swapped. A `SessionLog` begins a part at the event "swapped",
        with the header of its table, which does not hear of this: call `log.table.swap` between the
        two.

        Raises as `swap` does.
        """
        ready = {name: self._ready_for(name, model) for name, model in models.items()}

        def swap() -> None:
            with self._course.commanded("another model"):
                for name, one in ready.items():
                    measurement = self._measurements[name]
                    measurement.commands.put(partial(measurement.swap, one))

        return swap

    def _ready_for(self, name: str, model: Stage) -> ReadyModel:
        """A model in the place of the one of that name, warmed."""
        if name not in self._measurements:
            raise ValueError(f"no model is called {name!r}: there are {', '.join(self.models)}")
        present = self._measurements[name].ready
        fs, heard, batch = self.source.fs, present.heard, present.shape[0]
        ready = ReadyModel(model, fs, self._block_ms, heard, self._place, batch)
        if ready.in_pascal != present.in_pascal:
            units = ("fractions of full scale", "pascal")
            raise ValueError(
                f"{type(model).__name__} takes {units[ready.in_pascal]}, and "
                f"{type(present.model).__name__} {units[present.in_pascal]}: make a new Engine"
            )
        ready.warm()
        return ready

    def _tell_once_done(self, kind: str, text: str, row: str | None = None) -> None:
        """Tell of what models were commanded to do, when the first one does it."""
        self._measurement.commands.put(partial(self._telling.here, kind, text, row or ""))

    def _tell_gap(self, row: str, sample: int, samples: int) -> None:
        self._telling.gap_of(row, sample, samples)

    @property
    def model(self) -> Stage:
        """The model that runs just now, the first of several [any-thread]."""
        return self._measurement.ready.model

    @property
    def models(self) -> dict[str, Stage]:
        """The models that run just now, by name; a single one has the name "" [any-thread]."""
        return {name: one.ready.model for name, one in self._measurements.items()}

    @property
    def device(self) -> str:
        """Where the models run: "cpu", or the number and name of a CUDA device [any-thread]."""
        return device_in_words(self._place.device)

    @property
    def history(self) -> History:
        """The last rows of the model, of the first of several [any-thread]."""
        return next(iter(self.histories.values()))

    def recent(self, model: str = "", after_s: float = -math.inf, row: str = "") -> list[Frames]:
        """Frames of one model that end after `after_s`, of the last 4 s at most [any-thread].

        The oldest first, all that they carry in them: to follow along without a sink, ask again
        with `end_s` of the last. Others read them too: look, and change nothing.

        model, row: by name, as in `Frames`
        """
        return self._outlets.recent(model, row, after_s)

    @property
    def calibration(self) -> tuple[Calibration, ...]:
        """What readings rest on just now: one for both ears, or one for each [any-thread].

        Of several rows it is that of the first: `health.rows` has that of each.
        """
        return self._measurement.calibration

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
        return self._row_outlets.feed(step_ms, columns, limits)

    def new_rows(self, step_ms: int = 100) -> JoinedRows | None:
        """Makes rows of the models that run just now, for a sink that wants its own [any-thread].

        None where several rows are heard, or a model has a row for each cell, or two have the same
        columns.
        """
        return self._row_outlets.new_rows(step_ms)

    def latest(self) -> dict[str, Any] | None:
        """The newest row as a dict by column, every 100 ms; None before the first [any-thread].

        Where several rows are heard, it is that of each, by its name.

        Rows are made from the first call on: what accumulates, as an average level does, counts
        from the seconds before that call, or from the start where it was made by then.

        Raises ValueError where two models have the same columns, or one has a row for each cell.
        """
        return self._row_outlets.newest()

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
        if id(sink) in self._outlet_of:
            raise ValueError(f"the sink {sink!r} is there already: detach it first")
        self._outlet_of[id(sink)] = self._row_outlets.attach(sink, begin)
        self.sinks = (*self.sinks, sink)

    def detach(self, sink: Sink | RowSink) -> None:
        """Tell a sink nothing more; it ends once it has had what waits for it [any-thread]."""
        outlet = self._outlet_of.pop(id(sink), None)
        if outlet is None:
            raise ValueError(f"the sink {sink!r} is not there")
        self.sinks = tuple(one for one in self.sinks if one is not sink)
        self._outlets.leave(outlet)

    @property
    def events(self) -> tuple[Event, ...]:
        """What happened so far, the last 1000 of it, the oldest first [any-thread]."""
        return self._telling.events

    @property
    def error(self) -> BaseException | None:
        """Why it ended, where something went wrong [any-thread]."""
        return self._course.error

    @property
    def health(self) -> Health:
        """How it is doing just now [any-thread]."""
        return self._checkup.health()

    @property
    def device_state(self) -> str:
        """That of `health` alone, for whoever asks often [any-thread]."""
        return self._checkup.device_state

    def _made(self) -> dict[str, Made]:
        return {
            name: Made(one.ready.model, one.ready.fields, tuple(map(_heard, one.listeners)))
            for name, one in self._measurements.items()
        }

    def _run(self) -> None:
        """The engine's thread: also warms the model, watches the device and tidies up."""
        course = self._course
        try:
            work_alone()
            with torch.inference_mode():
                for measurement in self._measurements.values():
                    measurement.ready.warm()
                self._is_warm = True
                course.ready.set()
                if isinstance(self._deliver, IntoRing):
                    tell = self._telling.by_source
                    held = self._deliver.held(self._intake, tell) if self._keeps else ()
                    self._work.drain(self._watch_in_time, held)
                else:
                    while not (course.stopping.is_set() or course.ended.wait(WATCH_S)):
                        self._watch()
                if self._ending.owed and not course.played:
                    self._work.lose(self._ending.owed)
        except BaseException as error:
            course.error = error
        finally:
            self._tidy_up(until=time.monotonic() + SOURCE_S)

    def _tidy_up(self, until: float) -> None:
        """The last snapshot and events, then the end of the source and of every sink."""
        self._course.close()
        self._keep_last(until)
        self._course.ready.set()
        self._telling.sinks()
        self._telling.pass_on()
        self._telling.notes()
        outlets = self._outlets.end()
        self._intake.end()
        self._intake.join(until - time.monotonic())
        for outlet in outlets:
            outlet.close()
        self._ladder.end(until)
        self._course.gone.set()

    def _watch_in_time(self) -> None:
        if time.monotonic() > self._watched_at + WATCH_S:
            self._watch()
            self._telling.sinks()
            self._watched_at = time.monotonic()

    def _watch(self) -> None:
        self._telling.pass_on()
        stall_s, silent_s = self.source.stall_s, self._checkup.silent_for_s
        if not self._course.ended.is_set() and silent_s > stall_s:
            raise DeviceLost(f"{self.source.name!r} has delivered nothing for {stall_s:g} s")
        if nobody_is_left() and not self._course.stopping.is_set():
            self._ending.with_program()

    def _keep_last(self, until: float) -> None:
        """Hand on a snapshot of the place where it was stopped."""
        if self._course.error is not None or self._course.played:
            return
        # A model that hangs in its callback has no state to tell of.
        if self._model_lock.acquire(timeout=max(0.0, until - time.monotonic())):
            self._measurement.close_holes()
            self._keeping.now()
            self._model_lock.release()

    def _emit(self, name: str, frames: Frames) -> None:
        if not frames.after_end:
            self.histories[_of_row(name, frames.row)].write(frames)
        self._outlets.put(frames)

    def _epoch(self, audio_s: float) -> float:
        """UTC of the first sample, as known once so much sound has been heard [engine-thread]."""
        if self.source.live:
            return self._utc.epoch(self._arrivals.heard_at(0.0), audio_s)
        if self._goes_on:
            return self._standing.epoch
        return self._intake.began_utc - self.first_sample / self.source.fs

    def _renew_history(self, name: str, ready: ReadyModel) -> None:
        what = f"{name} is" if name else "the model is"
        text = f"{what} another from here on: {type(ready.model).__name__}"
        self._telling.here("swapped", text)
        # What another model gave is not read as what this one gives.
        self._outlets.forget(name)
        for key in [_of_row(name, row) for row in self.row_names or ("",)]:
            old = self.histories[key]
            if (old.fields, old.frame_rate) != (ready.fields, ready.clock.frame_rate):
                self.histories[key] = self._new_history(ready, old)

    def _new_history(self, ready: ReadyModel, before: History | None = None) -> History:
        return History(ready.fields, ready.clock.frame_rate, self._history_s, before)


def _told_so(kind: str, text: str) -> str:
    return sentence(f"{kind} {brief(text)!r}")


def _intake_of(source: Source | Sequence[Source] | Intake) -> Intake:
    if isinstance(source, Intake):
        return source
    if isinstance(source, Sequence) and not isinstance(source, str):  # type: ignore[unreachable]
        source = Together(source)
    refuse_no_source(source)
    return Intake(source)


def _of_row(model: str, row: str) -> str:
    """What the history of a row of a model is called."""
    return "/".join(filter(None, (row, model)))


def _with_corrections(row: Row, given: Sequence[Correction | None]) -> Row:
    """The same row, corrected; one without a calibration has that of the engine."""
    if row.calibration is None:
        return row
    return replace(row, calibration=with_corrections(each_ear(row.calibration), given))


def _heard(listener: Listener) -> Heard:
    return Heard(listener.name, listener.channels)


def _refuse_mixed(model: Stage, listeners: Sequence[Listener]) -> None:
    """Raise ValueError where a model has a row for each channel, and there are more in some."""
    counts = sorted({listener.channels for listener in listeners})
    if len(counts) > 1:
        raise ValueError(
            f"{type(model).__name__} hears each channel by itself, and rows have {counts[0]} and "
            f"{counts[-1]} channels: give rows of as many each"
        )


def _refuse_no_time(**given: float) -> None:
    for name, seconds in given.items():
        if not 0.0 < seconds < math.inf:
            raise ValueError(f"{name} is {seconds}: give seconds, more than 0")


def _refuse_no_sinks(sinks: Sequence[Sink | RowSink]) -> None:
    if not isinstance(sinks, Sequence):
        raise TypeError(f"sinks is {sinks!r}: give a sequence, such as [print]")
    for sink in sinks:
        if not (callable(sink) or isinstance(sink, RowSink)):
            raise TypeError(
                f"the sink {sink!r} cannot be called: give a function of Frames, or a RowSink"
            )
