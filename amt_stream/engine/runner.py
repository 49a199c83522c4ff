"""The engine: a source, one model or several, and whoever wants the numbers."""

import atexit
import contextlib
import logging
import math
import queue
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import Any, Literal, Self

import numpy as np
import torch

from amt_stream.calibration import UNCALIBRATED, Calibration, in_words
from amt_stream.contract import takes_pascal
from amt_stream.engine.clock import STEP_S, UtcScale
from amt_stream.engine.feed import (
    EngineRows,
    Made,
    Newest,
    RowFeed,
    RowMaker,
    RowSink,
    Taker,
    Waiting,
)
from amt_stream.engine.frames import History
from amt_stream.engine.health import Arrivals, Health, Load
from amt_stream.engine.intake import Intake
from amt_stream.engine.ladder import Ladder
from amt_stream.engine.measurement import Measurement, ReadyModel, each_ear
from amt_stream.engine.outlet import Outlet, Sink, name_of
from amt_stream.engine.pace import RUNGS, refuse_no_rungs
from amt_stream.engine.portaudio import since_boot_s
from amt_stream.engine.resuming import Moment, Standing
from amt_stream.engine.ring import SampleRing
from amt_stream.engine.sources import (
    Block,
    DeviceLost,
    Source,
    SourceError,
    as_block,
    as_lost,
    channel_slice,
    refuse_no_source,
)
from amt_stream.frames import Chunk, Event, Fault, Frames, HearsEnd, Snapshot
from amt_stream.functional.threads import flushing_denormals, work_alone
from amt_stream.streaming import Stage

POLL_S = 0.003
WATCH_S = 0.2
STALLED_S = 1.0
BEHIND_S = 0.5
STOP_S = 1.0
SOURCE_S = 0.5
RECENT_S = 4.0
NEWEST_MS = 100
EVENTS = 1000
SNAPSHOT_S = 1.0

log = logging.getLogger("amt_stream")


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

    Several models hear the same sound as {"name": model, ...}: each has its own blocks, latency and
    `histories[name]`, and its frames carry its name. What is told of one model (`model`, `history`,
    the frames and the latency of `health`) is then told of the first; the load is that of all.

    calibration: one, or one for each ear; by default the source's own, else UNCALIBRATED
    channels: one or two channel numbers of the source (1, 2, ...), one for both ears. A model that
        takes fractions of full scale and not pascal hears these too, or all channels of the source
    block_ms: 1 to 1000, brought to a whole number of the model's blocks, one at least
    ladder: what may be done without while a live source brings sound faster than it is worked off,
        the first of them first: "accuracy", cheaper forms of models; "blocks", longer ones;
        "models", all but the first, the last one first. It is told by events, "overload" and
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
        source: Source,
        model: Stage | Mapping[str, Stage],
        sinks: Sequence[Sink | RowSink] = (),
        *,
        calibration: Calibration | Sequence[Calibration] | None = None,
        channels: Sequence[int] | None = None,
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
        refuse_no_source(source)
        refuse_no_rungs(ladder)
        _refuse_no_sinks(sinks)
        if calibration is None:
            calibration = source.calibration or UNCALIBRATED
        self.source = source
        self.error: BaseException | None = None
        self._block_ms, self._history_s, self._run_in = block_ms, history_s, run_in
        models = model if isinstance(model, Mapping) else {"": model}
        if not models:
            raise ValueError("no model given: give one Stage, or several by name")
        self.histories: dict[str, History] = {}
        self._measurements: dict[str, Measurement] = {}
        for name, one in models.items():
            columns = self._columns(one, channels)
            heard = len(range(source.channels)[columns])
            ready = ReadyModel(one, source.fs, block_ms, heard)
            self._measurements[name] = Measurement(
                ready,
                calibration,
                columns,
                emit=partial(self._emit, name),
                epoch=self._epoch,
                model_changed=partial(self._renew_history, name),
                name=name,
                begin=first_sample,
            )
            self.histories[name] = self._new_history(ready)
        self._measurement = next(iter(self._measurements.values()))
        self._standing = Standing(source.fs, self._measurements)
        self._stopped_at: Moment | None = None
        self._break = ""
        self._resumed = False
        self._snapshot_at = -math.inf
        self._goes_on = resume is not None
        if resume is not None:
            self._go_on(resume)
        self.first_sample = self._measurement.position
        """The sample of input with which it begins: that asked for, or where another stopped."""
        slack = max(1, round(sink_slack_s * source.fs / self._measurement.ready.block))
        self._slack, self._slack_s = slack * len(models), sink_slack_s
        self._recent_s = min(RECENT_S, history_s)
        self._recent: deque[Frames] = deque()
        self._recent_is_all = not self.first_sample
        self._events: deque[Event] = deque(maxlen=EVENTS)
        self._told: deque[tuple[str, str]] = deque()
        self._outlets_lock = threading.RLock()
        self._newest: Newest | None = None
        self._newest_lock = threading.Lock()
        self._failures: queue.SimpleQueue[str] = queue.SimpleQueue()
        self.sinks = tuple(sinks)
        self._outlets = [self._outlet(sink) for sink in sinks]
        self._notes = dict.fromkeys(self._outlets, "")
        self._ring = SampleRing(source.fs, source.channels, ring_s)
        self._no_sound = np.zeros((0, source.channels), np.float32)
        self._arrivals = Arrivals(source.fs, self.first_sample)
        self._utc = UtcScale()
        self._load = Load()
        self._overruns = 0
        self._overran = self._skips = False
        self._behind_s = 0.0
        self._skipped = 0
        self._ladder = Ladder(ladder, self._measurements, self._tell_here)
        self._cpu_at = self._cpu_s = self._wall_s = 0.0
        self._measured_samples = 0
        self._intake = Intake(
            source, self._deliver if run_in == "engine" else self._deliver_in_callback
        )
        self._played = False
        self._ready = threading.Event()
        self._ended = threading.Event()
        self._done = threading.Event()
        self._gone = threading.Event()
        self._stopping = threading.Event()
        self._stop_by = math.inf
        self._owed = 0
        self._begun = False
        self._begin_lock = threading.Lock()
        self._model_lock = threading.Lock()
        self._left: dict[str, Callable[[], bool]] = {}
        # A daemon, so that the interpreter reaches `_stop_all`, which joins it, instead of waiting.
        self._thread = threading.Thread(target=self._run, name="engine", daemon=True)

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
        else:
            self._stopped_at = self._standing.moment

    def start(self) -> Self:
        """Warm the model, then start the source; what cannot start raises here [main-thread].

        Stopped meanwhile by another thread, it returns, and nothing runs.
        """
        with self._begin_lock:
            if self._begun or self._stopping.is_set():
                raise RuntimeError("an Engine runs once: make a new one to start again")
            self._begun = True
            _STARTED.add(self)
            # The last one registered runs first: before PortAudio's own, which closes all streams.
            atexit.unregister(_stop_all)
            atexit.register(_stop_all)
            with self._outlets_lock:
                for outlet in self._outlets:
                    outlet.start()
                self._thread.start()
        try:
            while not (self._ready.wait(WATCH_S) or self._stopping.is_set()):
                pass
            if self.error is not None:
                raise self.error
            self.source.run_in, self.source.tell = self._run_in, self._source_tells
            self._intake.start(given_up=self._stopping.is_set)
            _SOURCE_THREADS.update(self._intake.threads)
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """End now: source, model, sinks, in this order; it takes 1.2 s at most [any-thread].

        A source, a step of a model or a sink that has not returned by then is left behind: that is
        logged, and told by the note of `health` for as long as it lasts.
        """
        self._begin_to_stop()
        self._wait_for_thread(self._stop_by)
        self._leave_behind(f"the source {self.source.name}", self._source_is_left)
        self._leave_behind(f"the model that hears {self.source.name}", self._model_is_left)
        for outlet in self._outlets:
            outlet.close()  # once more, for a model that has not returned to do it
        for outlet in self._outlets:
            outlet.join(max(0.0, self._stop_by + WATCH_S - time.monotonic()))
            self._leave_behind(f"the sink {outlet.name}", outlet.is_left)

    def _begin_to_stop(self) -> None:
        """All that is to end is told so; nothing is waited for [any-thread]."""
        with self._begin_lock:
            if not self._stopping.is_set():
                self._stop_by = time.monotonic() + STOP_S
                self._owed = self.source.missing
                self._stopping.set()
        for outlet in self._outlets:
            outlet.hurry()
        self._intake.end()

    def _wait_for_thread(self, until: float) -> None:
        """The engine's thread, which waits for the source a while."""
        if self._thread.ident is None or self._thread is threading.current_thread():
            return
        # An interrupt in the middle of Thread.join makes Python 3.11 take a thread for ended.
        if self._gone.wait(max(0.0, until - time.monotonic())):
            self._thread.join()

    def _leave_behind(self, what: str, is_left: Callable[[], bool]) -> None:
        if is_left() and what not in self._left:
            self._left[what] = is_left
            log.error("%s has not returned: left behind", what)

    def _source_is_left(self) -> bool:
        return not self._intake.join(0.0)

    def _model_is_left(self) -> bool:
        if self._thread.ident is None or self._thread is threading.current_thread():
            return False
        return not self._gone.is_set()

    def _stop_with_program(self) -> None:
        """Begin to stop, because the program ends and nobody is left who would [any-thread]."""
        log.warning(
            "the engine on %s still ran when the program ended and was stopped for it: call its "
            "stop(), or use it in a with statement",
            self.source.name,
        )
        self._begin_to_stop()

    def _leave(self) -> None:
        """Wait for model, source and sinks, a while [main-thread].

        A thread that is still in torch when the interpreter goes may take the process down with it.
        """
        self._wait_for_thread(self._stop_by)
        if self._model_lock.acquire(timeout=max(0.0, self._stop_by - time.monotonic())):
            self._model_lock.release()
        for outlet in self._outlets:
            outlet.join(max(0.0, self._stop_by - time.monotonic()))

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
        while not self._done.wait(max(0.0, min(WATCH_S, end - time.monotonic()))):
            if time.monotonic() >= end:
                return False
        return self._played and all(
            outlet.join(None if timeout is None else max(0.0, end - time.monotonic()))
            for outlet in self._outlets
        )

    def reset(self) -> None:
        """All models back to silence at their next block; the clock goes on [any-thread]."""
        for measurement in self._measurements.values():
            measurement.commands.put(measurement.reset)
        self._tell_once_done("reset", "all models are back to silence")

    def calibrate(self, calibration: Calibration | Sequence[Calibration]) -> None:
        """Read with another calibration from the next block on [any-thread].

        The band of a model that gives one stays that of the uncertainty it was made with.
        """
        ears = each_ear(calibration)
        for measurement in self._measurements.values():
            measurement.commands.put(partial(measurement.recalibrate, calibration))
        self._tell_once_done("calibrated", f"read from here on with {in_words(ears)}")

    def swap(self, model: Stage, name: str | None = None) -> None:
        """Go on with another model, built and warmed here while the present one runs [any-thread].

        It takes the place of the first model, or of the one called `name`. A model that cannot run
        there raises here, and the stream goes on as it was.
        """
        if name is None:
            measurement = self._measurement
        elif name in self._measurements:
            measurement = self._measurements[name]
        else:
            raise ValueError(f"no model is called {name!r}: there are {', '.join(self.models)}")
        present = measurement.ready
        ready = ReadyModel(model, self.source.fs, self._block_ms, present.heard)
        if ready.in_pascal != present.in_pascal:
            units = ("fractions of full scale", "pascal")
            raise ValueError(
                f"{type(model).__name__} takes {units[ready.in_pascal]}, and "
                f"{type(present.model).__name__} {units[present.in_pascal]}: make a new Engine"
            )
        ready.warm()
        measurement.commands.put(partial(measurement.swap, ready))

    @property
    def model(self) -> Stage:
        """The model that runs just now, the first of several [any-thread]."""
        return self._measurement.ready.model

    @property
    def models(self) -> dict[str, Stage]:
        """The models that run just now, by name; a single one has the name "" [any-thread]."""
        return {name: one.ready.model for name, one in self._measurements.items()}

    @property
    def history(self) -> History:
        """The last rows of the model, of the first of several [any-thread]."""
        return self.histories[self._measurement.name]

    @property
    def calibration(self) -> tuple[Calibration, ...]:
        """What readings rest on just now: one for both ears, or one for each [any-thread]."""
        return self._measurement.calibration

    def rows(self, step_ms: int = 100, columns: Sequence[str] | None = None) -> RowFeed:
        """Rows of readings as they come, for `for` or `async for` [any-thread].

            async for rows in engine.rows(step_ms=100):
                print(rows["ltl_phon"][-1])

        Asked for before the start or within the first seconds of sound they begin with it,
        otherwise with the present. A source that is not live waits for whoever reads them: ask
        before the start, and read to the end or close the feed.

        columns: names of readings, or patterns with * or ?, in place of the usual ones

        Raises ValueError for a step that is no whole number of milliseconds, for a column that no
        model has, and where two models have the same columns.
        """
        table = EngineRows(self._made, self.source.fs, step_ms, columns)
        waiting = Waiting(self.source.live, self._stopping.is_set)
        outlet = self._row_outlet(table, waiting, "rows")
        self._attach(outlet, table)
        waiting.limit = max(1, round(self._slack_s * 1000 / step_ms))
        return RowFeed(waiting, table.columns, partial(self._detach, outlet))

    def latest(self) -> dict[str, Any] | None:
        """The newest row as a dict by column, every 100 ms; None before the first [any-thread].

        Rows are made from the first call on: what accumulates, as an average level does, counts
        from the seconds before that call, or from the start where it was made by then.

        Raises ValueError where two models have the same columns, or one has a row for each cell.
        """
        with self._newest_lock:
            if self._newest is None:
                newest = Newest()
                table = EngineRows(self._made, self.source.fs, NEWEST_MS, None)
                if table.keys:
                    raise ValueError(
                        f"{type(self.model).__name__} gives a row for each cell: ask rows() for "
                        "them, or history.latest for its newest frames"
                    )
                self._attach(self._row_outlet(table, newest, "latest"), table, past=True)
                self._newest = newest
        return self._newest.row

    @property
    def events(self) -> tuple[Event, ...]:
        """What happened so far, the last 1000 of it, the oldest first [any-thread]."""
        return tuple(self._events.copy())

    @property
    def health(self) -> Health:
        """How it is doing just now [any-thread]."""
        ready, source, measurement = self._measurement.ready, self.source, self._measurement
        queue_s = self._queue_s
        lost = measurement.lost
        median, p99, highest = self._load.shares()
        ppm, uncertainty, observed_s = self._arrivals.clock()
        model_s = float(ready.clock.latency + ready.block) / source.fs
        return Health(
            device_state=self._device_state(),
            note=self._note(),
            samples=measurement.samples - lost,
            frames=measurement.rows,
            load=self._load.smoothed,
            load_max=self._load.highest,
            block_share_median=median,
            block_share_p99=p99,
            block_share_max=highest,
            queue_s=queue_s,
            overruns=self._overruns + self._ring.overflows,
            overloaded=self._ladder.active,
            lost_samples=lost,
            device_overflows=source.overflows,
            callbacks=self._arrivals.callbacks,
            late_callbacks=self._arrivals.late if source.live else 0,
            latency_s=source.latency_s + queue_s + model_s,
            clock_ppm=ppm if source.live else None,
            clock_ppm_uncertainty=uncertainty if source.live else None,
            clock_observed_s=observed_s,
            utc_ahead_s=self._utc.ahead_s if source.live else 0.0,
            behind_s=self._arrivals.behind_s if source.live else 0.0,
            non_finite=max(one.non_finite for one in self._measurements.values()),
            clipped=max(one.clipped for one in self._measurements.values()),
            broken_frames=sum(one.broken for one in self._measurements.values()),
            silent=measurement.silent,
            sink_errors=sum(outlet.errors for outlet in self._outlets),
            sink_missed=sum(outlet.missed for outlet in self._outlets),
            error=None if self.error is None else str(self.error),
        )

    @property
    def _queue_s(self) -> float:
        """Sound that waits in the ring, or in a callback for the model."""
        return self._ring.fill / self.source.fs + self._behind_s

    def _device_state(self) -> str:
        if isinstance(self.error, DeviceLost):
            return "lost"
        if self._done.is_set() or self._left:
            return "ended" if self._played else "stopped"
        if self._intake.began_at is None:
            return "waiting"
        if self.source.state:
            return self.source.state
        return "stalled" if self._silent_for() > STALLED_S else "running"

    def _note(self) -> str:
        left = [what for what, is_left in tuple(self._left.items()) if is_left()]
        if left:
            return f"stopped without {' and '.join(left)}, which did not return"
        if self.source.note:
            return self.source.note
        if self._ladder.active:
            return self._ladder.note
        if self._measurement.silent and self.source.silence_note:
            return self.source.silence_note
        if self.source.latency_growth_s > BEHIND_S:
            return (
                f"{self.source.name} delivers sound later and later: "
                f"+{self.source.latency_growth_s:.1f} s since the start"
            )
        if self.source.live and self._arrivals.behind_s > BEHIND_S:
            return (
                f"{self.source.name} has delivered {self._arrivals.behind_s:.1f} s less sound than "
                "time has passed: the system drops or delays it"
            )
        notes = [outlet.note for outlet in self._outlets if outlet.note]
        if notes:
            return "; ".join(notes)
        if self.source.live and self._utc.ahead_s > STEP_S:
            return (
                f"UTC is {self._utc.ahead_s:.1f} s ahead of the computer's clock, which was set "
                "back: it waits for it"
            )
        retired = [outlet.name for outlet in self._outlets if outlet.retired]
        if retired:
            return f"dropped after failing again and again: {', '.join(retired)}"
        late = self._overruns + self._ring.overflows if self.source.live else 0
        return f"processing was too slow for {late} block{'s' * (late > 1)}" if late else ""

    def _silent_for(self) -> float:
        """Seconds without a block from a live source."""
        last = self._arrivals.last or self._intake.began_at
        return time.monotonic() - last if last is not None and self.source.live else 0.0

    def _made(self) -> dict[str, Made]:
        running = {name: one.ready for name, one in self._measurements.items()}
        return {name: Made(one.model, one.heard, one.fields) for name, one in running.items()}

    def _outlet(self, sink: Sink | RowSink) -> Outlet:
        if isinstance(sink, RowSink):
            table = EngineRows(self._made, self.source.fs, sink.step_ms, sink.columns)
            return self._row_outlet(table, sink, name_of(sink.function))
        end = self._end_of(sink) if isinstance(sink, HearsEnd) else None
        failed = self._failures.put
        return Outlet(sink, self._slack, self.source.live, finish=end, failed=failed)

    def _end_of(self, sink: HearsEnd) -> Callable[[bool], None]:
        return lambda wanted: sink.ended(self._end_s() if wanted else None)

    def _row_outlet(self, table: EngineRows, taker: Taker, name: str) -> Outlet:
        table.begin(self.first_sample / self.source.fs)
        maker = RowMaker(table, taker, self._end_s)
        return Outlet(
            maker, self._slack, self.source.live, name, maker.finish, failed=self._failures.put
        )

    def _end_s(self) -> float | None:
        return self._measurement.samples / self.source.fs if self._played else None

    def _attach(self, outlet: Outlet, table: EngineRows, past: bool = False) -> None:
        """Add an outlet while all runs: it hears the last seconds first, then what comes.

        Its rows begin with the sound, where those seconds are all there is, or else with the
        present, or with these seconds (`past`).
        """
        with self._outlets_lock:
            recent = tuple(self._recent)
            self._outlets = [*self._outlets, outlet]
            started = self._thread.ident is not None
            if self._is_over():
                outlet.close()
        if recent and not self._recent_is_all:
            table.begin(float(recent[0 if past else -1].time_s[0]))
        if started:
            outlet.replay(recent)
            outlet.start()

    def _detach(self, outlet: Outlet) -> None:
        with self._outlets_lock:
            self._outlets = [one for one in self._outlets if one is not outlet]
        outlet.retire()

    def _deliver(self, block: Block | None, lost: int = 0, flags: int = 0) -> None:
        """Copy into the ring [audio-thread]."""
        try:
            lost = as_lost(lost)
            if block is None:
                self._ring.write(self._no_sound, lost, flags)
                self._ended.set()
                return
            block = as_block(block, self.source.channels)
        except (TypeError, ValueError) as error:
            self._fail(error)
            raise
        lost += self._unheard(len(block))
        late = self._arrivals.note(len(block) + lost)
        late = late and not self.source.state  # else it is the source that judges what stood still
        if self.source.live:
            self._ring.write(block, lost, flags | (Fault.OVERLOAD if late else 0))
            return
        piece = max(1, self._ring.capacity // 4)
        for at in range(0, len(block), piece):
            part = block[at : at + piece]
            while self._ring.room < len(part) and not self._is_over():
                time.sleep(0.001)
            self._ring.write(part, lost if at == 0 else 0, flags)

    def _deliver_in_callback(self, block: Block | None, lost: int = 0, flags: int = 0) -> None:
        """Run the model right here [audio-thread]."""
        with self._model_lock:
            if self._is_over() or self._ended.is_set():
                return
            try:
                # The thread is not ours: it goes on as it was.
                with flushing_denormals(), torch.inference_mode():
                    self._hear(block, as_lost(lost), flags)
            except BaseException as error:
                self._fail(error)

    def _hear(self, block: Block | None, lost: int, flags: int) -> None:
        if block is None:
            flags |= Fault.OVERLOAD if self._skipped else 0
            self._finish(lost + self._skipped, flags)
            return
        block = as_block(block, self.source.channels)
        lost += self._unheard(len(block))
        late = self._arrivals.note(len(block) + lost) and self.source.live
        if self._skip(len(block) + lost):
            return
        if self._skipped:
            lost, flags, self._skipped = lost + self._skipped, flags | Fault.OVERLOAD, 0
        self._cpu_at = time.thread_time()
        flags |= Fault.OVERLOAD if late or self._overran else 0
        self._measure(block, lost, flags)

    def _unheard(self, count: int) -> int:
        """Samples that nobody heard before the first block, of `count` samples [audio-thread]."""
        if self._stopped_at is None:
            return 0
        missing, self._break = self._stopped_at.samples_until(
            Moment(count / self.source.fs), self.source.fs
        )
        self._stopped_at = None
        return missing

    def _skip(self, samples: int) -> bool:
        """Leave out what comes once the model lags by what a ring holds, until it lags no more."""
        longest_s = 0.0 if self._skips else self._ring.capacity / self.source.fs
        if not self.source.live or self._behind_s <= longest_s:
            self._skips = False
            return False
        self._overruns += not self._skips
        self._skips = True
        self._skipped += samples
        self._behind_s = max(0.0, self._behind_s - samples / self.source.fs)
        return True

    def _fail(self, error: BaseException) -> None:
        """End the engine, and say why [any-thread]."""
        self.error = error
        self._ended.set()

    def _is_over(self) -> bool:
        return self._stopping.is_set() or self._done.is_set()

    def _run(self) -> None:
        """The engine's thread: also warms the model, watches the device and tidies up."""
        try:
            work_alone()
            with torch.inference_mode():
                for measurement in self._measurements.values():
                    measurement.ready.warm()
                self._ready.set()
                if self._run_in == "engine":
                    self._drain_ring()
                else:
                    while not (self._stopping.is_set() or self._ended.wait(WATCH_S)):
                        self._watch()
                if self._owed and not self._played:
                    self._measure(self._no_sound, self._owed, 0)
        except BaseException as error:
            self.error = error
        finally:
            until = time.monotonic() + SOURCE_S
            self._keep_last(until)
            self._ready.set()
            self._tell_failures()
            self._pass_on_told()
            with self._outlets_lock:
                self._done.set()
                outlets = self._outlets
            self._intake.end()
            self._intake.join(until - time.monotonic())
            for outlet in outlets:
                outlet.close()
            self._ladder.end(until)
            self._gone.set()

    def _drain_ring(self) -> None:
        buffer = np.zeros((0, self.source.channels), np.float32)
        watch_at = time.monotonic()
        while not self._stopping.is_set():
            self._pass_on_told()
            if time.monotonic() > watch_at:
                self._watch()
                watch_at = time.monotonic() + WATCH_S
            wanted = min(measurement.wanted for measurement in self._measurements.values())
            ended = self._ended.is_set()  # before the fill: the last samples come before the end
            fill = self._ring.fill
            if fill < min(wanted, self._ring.capacity // 2) and not ended:
                self._ladder.rest()
                self._stopping.wait(POLL_S)
                continue
            if not fill:
                rest = self._ring.rest()
                self._finish(rest.lost, rest.flags)
                return
            if len(buffer) < wanted:
                buffer = np.zeros((wanted, self.source.channels), np.float32)
            left_out, why = self._leave_out(buffer)
            count, lost, flags = self._ring.read(buffer[:wanted])
            self._measure(buffer[:count], left_out + lost, why | flags)

    def _leave_out(self, buffer: Block) -> tuple[int, int]:
        """How much that waits is not worked off at all: of half a ring, where nothing else helps.

        It costs less, and less delay, than to lose a little at the end of the ring for ever.
        """
        lost, flags = 0, 0
        if self._ladder.exhausted and self._ring.fill > self._ring.capacity // 2:
            self._overruns += 1
            flags = Fault.OVERLOAD
            while self._ring.fill >= len(buffer):
                read = self._ring.read(buffer)
                lost, flags = lost + read.copied + read.lost, flags | read.flags
        return lost, flags

    def _source_tells(self, kind: str, text: str) -> None:
        """Keep what the source says for the engine's own thread [any-thread]."""
        self._told.append((kind, text))

    def _pass_on_told(self) -> None:
        # Of a callback, two threads may do this.
        with contextlib.suppress(IndexError):
            while True:
                kind, text = self._told.popleft()
                self._tell_here(kind, text)

    def _watch(self) -> None:
        self._pass_on_told()
        if not self._ended.is_set() and self._silent_for() > self.source.stall_s:
            raise DeviceLost(
                f"{self.source.name!r} has delivered nothing for {self.source.stall_s:g} s"
            )
        if _nobody_is_left() and not self._stopping.is_set():
            self._stop_with_program()
        if self._run_in == "engine":
            self._tell_failures()

    def _measure(self, block: Block, lost: int, flags: int) -> None:
        """Run the models and note what they cost [engine-thread]."""
        wall_at = time.perf_counter()
        self._tell_failures()
        self._pass_on_told()
        if self.source.live and (change := self._utc.change()):
            self._tell_here("clock", change)
        self._tell_gap(lost, flags)
        self._tell_sound(block, lost, flags)
        for measurement in self._measurements.values():
            measurement.late = self._ladder.active
            measurement.take(block, lost, flags)
        cpu_at = time.thread_time()
        self._wall_s += time.perf_counter() - wall_at
        self._cpu_s += cpu_at - self._cpu_at
        self._cpu_at = cpu_at
        self._measured_samples += len(block)
        if self._measured_samples >= self._measurement.ready.block:
            audio_s = self._measured_samples / self.source.fs
            self._load.add(self._cpu_s, self._wall_s, audio_s)
            if self._run_in == "callback" and self.source.live:
                # A long block is made good by those after it, as long as the device can wait.
                self._behind_s = max(0.0, self._behind_s + self._wall_s - audio_s)
                self._overran = self._behind_s > self.source.slack_s
                self._overruns += self._overran
                if not self._behind_s:
                    self._ladder.rest()
            if self.source.live:
                now = time.monotonic()
                self._ladder.worked(now, self._wall_s, audio_s, self._queue_s)
            self._cpu_s = self._wall_s = 0.0
            self._measured_samples = 0
        if time.monotonic() >= self._snapshot_at:
            self._keep()

    def _keep(self) -> None:
        """Hand a snapshot to the sinks that hear them, if there are some [engine-thread]."""
        self._snapshot_at = time.monotonic() + SNAPSHOT_S
        outlets = [outlet for outlet in self._outlets if outlet.hears_snapshots]
        if not outlets or not self._arrivals.callbacks:
            return
        sample, fs = self._measurement.position, self.source.fs
        epoch = self._epoch(sample / fs)
        utc = epoch + sample / fs
        self._standing.epoch = epoch
        self._standing.moment = Moment(since_boot_s() - self._arrivals.heard_at(sample / fs), utc)
        snapshot = Snapshot(sample, utc, self._standing.state_dict())
        for outlet in outlets:
            outlet.keep(snapshot)

    def _finish(self, lost: int, flags: int = 0) -> None:
        """The source has ended, `lost` samples after the last: bring out what is still inside."""
        self._tell_gap(lost, flags)
        if lost or flags:
            self._tell_sound(self._no_sound, lost, flags)
        for measurement in self._measurements.values():
            measurement.take(self._no_sound, lost, flags)
        self._keep()
        for measurement in self._measurements.values():
            measurement.flush()
        self.error = self.error or self.source.error
        self._played = self.error is None
        self._ended.set()

    def _emit(self, name: str, frames: Frames) -> None:
        self.histories[name].write(frames)
        with self._outlets_lock:
            self._recent.append(frames)
            while self._recent[0].time_s[0] < frames.time_s[-1] - self._recent_s:
                self._recent.popleft()
                self._recent_is_all = False
            outlets = self._outlets
        for outlet in outlets:
            outlet.put(frames)

    def _keep_last(self, until: float) -> None:
        """Hand on a snapshot of the place where it was stopped [engine-thread]."""
        if self.error is not None or self._played:
            return
        # A model that hangs in its callback has no state to tell of.
        if self._model_lock.acquire(timeout=max(0.0, until - time.monotonic())):
            self._keep()
            self._model_lock.release()

    def _tell_gap(self, lost: int, flags: int) -> None:
        if self._goes_on and not self._resumed:
            self._resumed = True
            self._tell("resumed", self.first_sample, text="it goes on where it stopped")
        if lost:
            name = self.source.name
            cause = f"{name} lost it" if not flags & Fault.OVERLOAD else "it found no room"
            cause, self._break = self._break or cause, ""
            self._tell("gap", self._measurement.position, lost, cause)

    def _tell_failures(self) -> None:
        """Of sinks, noticed in their own threads; and what they say of themselves."""
        while not self._failures.empty():
            self._tell_here("sink", self._failures.get())
        for outlet, told in self._notes.items():
            note = outlet.note
            if note != told:
                self._notes[outlet] = note
                if note:
                    self._tell_here("sink", note)

    def _tell_sound(self, block: Block, lost: int, flags: int) -> None:
        """Hand a copy of the sound to every sink that hears it [engine-thread]."""
        with self._outlets_lock:
            listeners = [outlet for outlet in self._outlets if outlet.hears_sound]
        if not listeners:
            return
        sample = self._measurement.position + lost
        time_s = sample / self.source.fs
        samples = block.copy()
        samples.flags.writeable = False
        chunk = Chunk(samples, sample, self._epoch(time_s) + time_s, lost, flags)
        for outlet in listeners:
            outlet.hear(chunk)

    def _tell_once_done(self, kind: str, text: str) -> None:
        """Tell of what models were commanded to do, when the first one does it [any-thread]."""
        self._measurement.commands.put(partial(self._tell_here, kind, text))

    def _tell_here(self, kind: str, text: str) -> None:
        self._tell(kind, self._measurement.position, text=text)

    def _tell(self, kind: str, sample: int, samples: int = 0, text: str = "") -> None:
        """Tell every sink that hears events, and keep it [engine-thread]."""
        time_s = sample / self.source.fs
        utc = self._epoch(time_s) + time_s
        event = Event(kind, sample, time_s, utc, samples, text)
        with self._outlets_lock:
            self._events.append(event)
            outlets = self._outlets
        for outlet in outlets:
            outlet.tell(event)

    def _epoch(self, audio_s: float) -> float:
        if self.source.live:
            return self._utc.epoch(self._arrivals.heard_at(0.0), audio_s)
        if self._goes_on:
            return self._standing.epoch
        return self._intake.began_utc - self.first_sample / self.source.fs

    def _renew_history(self, name: str, ready: ReadyModel) -> None:
        what = f"{name} is" if name else "the model is"
        self._tell_here("swapped", f"{what} another from here on: {type(ready.model).__name__}")
        with self._outlets_lock:
            # What another model gave is not read as what this one gives.
            self._recent = deque(one for one in self._recent if one.model != name)
            self._recent_is_all = False
        old = self.histories[name]
        if (old.fields, old.frame_rate) != (ready.fields, ready.clock.frame_rate):
            self.histories[name] = self._new_history(ready, old)

    def _new_history(self, ready: ReadyModel, before: History | None = None) -> History:
        return History(ready.fields, ready.clock.frame_rate, self._history_s, before)


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


_STARTED: weakref.WeakSet[Engine] = weakref.WeakSet()
_SOURCE_THREADS: weakref.WeakSet[threading.Thread] = weakref.WeakSet()


def _nobody_is_left() -> bool:
    """Whether the main thread has ended and no thread but those of sources keeps the program."""
    if threading.main_thread().is_alive():
        return False
    others = (thread for thread in threading.enumerate() if thread.is_alive() and not thread.daemon)
    return _SOURCE_THREADS.issuperset(others)


def _stop_all() -> None:
    """Stop the engines that nobody stopped; the interpreter is about to end [main-thread]."""
    running = [engine for engine in _STARTED if not engine._gone.is_set()]
    for engine in running:
        if not engine._stopping.is_set():
            engine._stop_with_program()
    for engine in running:
        engine._leave()
