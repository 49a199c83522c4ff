"""Starts and stops engines without blocking the window."""

import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from amt_stream.core.job_thread import JobThread
from amt_stream.core.safe_text import plain
from amt_stream.meters.audience import Audience
from amt_stream.meters.limits import Limit
from amt_stream.sessions.outputs import FollowedReadings
from amt_stream.views.log_status import log_in

if TYPE_CHECKING:
    from amt_stream.engine import Engine
    from amt_stream.meters.presets import Preset

Device = str | int | None

ENDED = ("ended", "stopped")
CLOSE_S = 1.0

log = logging.getLogger(__name__)


Channels = tuple[int, ...] | None


@dataclass(frozen=True)
class MeasurementRequest:
    """What to measure.

    device: an input by name or number; without device and file, what the program was given
    file: a sound file, played in real time
    channels: of the input, from 1: two for the ears, or one for both; None for the usual ones
    layout: what the channels of the input are for, if it does not say
    models: of the catalog, by name; None for those that the program was given
    settings: changes to the settings of the models
    resumed: the readings of a stopped measurement that continues
    log: the folder of a log, existing or new
    keep_s: seconds of sound in memory, unless the program was given more
    folder: for logs and sounds; None for the default
    preset: in place of the program's; None for that
    limits: in place of those of the preset; models that they need are measured too
    audience: the correction to the audience, in place of that of the preset; NO_AUDIENCE for none
    remembered: which of these three are from an earlier start: options of the program precede them
    """

    device: Device = None
    file: Path | None = None
    channels: Channels = None
    layout: str | None = None
    models: tuple[str, ...] | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    resumed: FollowedReadings | None = None
    log: Path | None = None
    keep_s: float = 0.0
    folder: Path | None = None
    preset: "Preset | None" = None
    limits: tuple[Limit, ...] | None = None
    audience: Audience | None = None
    remembered: frozenset[str] = frozenset()


MakeEngine = Callable[[MeasurementRequest], "Engine"]


class MeasurementControl:
    """At most one running engine, a new one for each start [main-thread].

    Making a model takes seconds. One thread makes and stops the engines; closing the window does
    not wait for a model.

    request: the last one
    running_request: the request of `engine`; a later one may be pending, or have failed
    """

    def __init__(self, make_engine: MakeEngine) -> None:
        self._make_engine = make_engine
        self._made: Engine | None = None
        self._closing = False
        self._worker: JobThread[Engine | None] = JobThread("measurement")
        self._job: Future[Engine | None] | None = None
        self._verb = ""
        self.request = self.running_request = self._making = MeasurementRequest()
        self._waits = False
        self.engine: Engine | None = None
        self.readings: FollowedReadings | None = None
        self.error: BaseException | None = None
        self.measuring = False
        self.begun = 0
        """The number of measurements that were started, resumed ones apart."""

    @property
    def busy(self) -> bool:
        return self._job is not None

    @property
    def state(self) -> str:
        """ "paused", "starting" and so on, or the engine's state, as "running" or "lost"."""
        if self.busy:
            return self._verb
        if self.engine is None:
            return "stopped" if self.error else "idle"
        if not self.measuring:
            return "stopped"
        state = self.engine.device_state
        return "paused" if self.paused and state == "running" else state

    @property
    def paused(self) -> bool:
        return self.measuring and self.readings is not None and self.readings.paused

    @property
    def measured_s(self) -> float:
        """Seconds that the readings cover; of an engine without readings, what it has heard."""
        if self.readings is not None:
            return self.readings.measured_s
        return 0.0 if self.engine is None else self.engine.health.samples / self.engine.source.fs

    @property
    def can_go_on(self) -> bool:
        """Whether a stopped measurement can continue."""
        engine, readings = self.engine, self.readings
        if self.measuring or self.busy or engine is None or readings is None:
            return False
        return readings.standing is not None and (engine.source.live or engine.source.seekable)

    @property
    def can_undo_reset(self) -> bool:
        engine = self.engine
        return self.measuring and engine is not None and engine.can_undo_reset()

    def begin(self, request: MeasurementRequest) -> None:
        """Start a new measurement; a running engine stops first.

        While an engine is being made or stopped, the last request waits.
        """
        self.request, self._waits = request, self.busy
        if not self.busy:
            self._making = request
            self._do("starting", partial(self._replace, request))

    def go_on(self) -> None:
        """Continue after `stop` or after a pause."""
        if self.measuring and self.engine is not None:
            self.engine.unpause()
        elif self.can_go_on:
            log = log_in(self.engine)
            path = None if log is None else log.path
            self.begin(replace(self.running_request, resumed=self.readings, log=path))

    def have_set(self, engine: "Engine", setting: str, word: str) -> None:
        """Remember a changed setting of this engine's models for the next start."""
        if engine is self.engine:
            self.request, self.running_request = (
                replace(one, settings={**one.settings, setting: word})
                for one in (self.request, self.running_request)
            )

    def have_limits(self, limits: tuple[Limit, ...]) -> None:
        """Remember the limits that judge the engine for the next start."""
        self.request, self.running_request = (
            replace(one, limits=limits, remembered=one.remembered - {"limits"})
            for one in (self.request, self.running_request)
        )

    def pause(self) -> None:
        """Pause the statistics; sound is still heard."""
        if self.measuring and self.engine is not None:
            self.engine.pause()

    def stop(self) -> None:
        """Release the input; the readings stay."""
        self._do("stopping", self._end)

    def poll(self) -> None:
        """Note what has finished; to be called often."""
        if self._job is None:
            if self.measuring and self.engine and has_ended(self.engine):
                self.error = self.engine.error
                self._do("stopping", self._end)
        elif self._job.done():
            job, self._job = self._job, None
            if (error := job.exception()) is not None:
                self.error, self.measuring = error, False
                log.error("%s", plain(error))
                log.debug("the engine did not start", exc_info=error)
            elif (started := job.result()) is not None:
                self.running_request = self._making
                self.begun += self.running_request.resumed is None
                self.engine, self.measuring, self.error = started, True, None
                self.readings = readings_in(started)
            else:
                self.measuring = False
                if self.readings is not None:
                    # Frames may have come after the last sum.
                    self.readings.sum_up()
            if self._waits:
                self.begin(self.request)

    def close(self) -> None:
        """Stop, and wait for it, but not for a model that is being made."""
        if self._closing:
            return
        self._closing = True
        if self._made is not None:
            self._made.stop()
        if not self._worker.close(CLOSE_S):
            log.info("the window closed while an engine was being made: not waited for")
        self.poll()
        self.measuring = False

    def _do(self, verb: str, action: Callable[[], "Engine | None"]) -> None:
        if self._job is None and not self._closing:
            self._verb, self._job = verb, self._worker.put(action)

    def _replace(self, request: MeasurementRequest) -> "Engine | None":
        self._end()
        self._made = self._make_engine(request)
        if self._closing:
            return None
        if readings_in(self._made) is None and (rows := self._made.new_rows()) is not None:
            self._made.attach(FollowedReadings(rows))
        return self._made.start()

    def _end(self) -> None:
        if self._made is not None:
            self._made.stop()


def readings_in(engine: "Engine") -> FollowedReadings | None:
    """The sink with the readings for the window."""
    return next((sink for sink in engine.sinks if isinstance(sink, FollowedReadings)), None)


def has_ended(engine: "Engine") -> bool:
    """Whether it ended by itself; an engine that waits for a lost device has not."""
    return engine.error is not None or engine.device_state in ENDED
