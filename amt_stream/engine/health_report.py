"""Collects an engine's health from its parts."""

from collections.abc import Collection, Mapping

from amt_stream.engine.clock import STEP_S
from amt_stream.engine.health import Health, MicrophoneHealth
from amt_stream.engine.inputs.backlog import Backlog
from amt_stream.engine.microphone.gaps import Gaps
from amt_stream.engine.models.measurement import Measurement
from amt_stream.engine.models.model_runner import Work
from amt_stream.engine.models.running_models import RunningModels
from amt_stream.engine.run_state import RunState
from amt_stream.engine.shutdown import Shutdown
from amt_stream.engine.sinks.sinks import Sinks
from amt_stream.engine.sources import DeviceLost
from amt_stream.meters.frames import BUFFER, DEVICE

STALLED_S = 1.0
BEHIND_S = 0.5
STOPPED_S = 0.5


def missing_of(gaps: Collection[Gaps]) -> tuple[int, int]:
    """Missing samples, in the row that lacks most, and how many of them this program dropped."""
    lost = max(one.lost for one in gaps)
    return lost, min(lost, max(min(one.dropped, one.lost) for one in gaps))


def missing_s(measurement: Measurement) -> Mapping[str, float]:
    """The seconds of sound that are missing so far, by cause."""
    fs = measurement.ready.clock.fs
    lost, dropped = missing_of([one.gaps for one in measurement.listeners])
    return {DEVICE: (lost - dropped) / fs, BUFFER: dropped / fs}


class HealthReport:
    """Makes `Health` from the state of all parts [any-thread]."""

    def __init__(
        self,
        models: RunningModels,
        backlog: Backlog,
        work: Work,
        sinks: Sinks,
        shutdown: Shutdown,
        state: RunState,
    ) -> None:
        self._source, self._timeline = backlog.source, backlog.timeline
        self._models, self._backlog, self._work = models, backlog, work
        self._sinks, self._shutdown, self._state = sinks, shutdown, state

    def health(self) -> Health:
        """A snapshot of the engine's health."""
        source, measurement, load = self._source, self._models.first, self._work.load
        arrivals, utc = self._timeline.arrivals, self._timeline.utc
        ready, queue_s = measurement.ready, self._backlog.seconds
        listeners = [listener for one in self._models for listener in one.listeners]
        lost, dropped = missing_of([one.gaps for one in listeners])
        median, p99, highest = load.shares()
        ppm, uncertainty, observed_s = arrivals.clock()
        model_s = float(ready.clock.latency + ready.block) / source.fs
        error, ladder = self._state.error, self._work.ladder
        shares, silent = ladder.slowness.shares, self._silent
        paced = source.live and not source.can_wait
        return Health(
            device_state=self.device_state,
            uncalibrated=self._work.gains.note,
            note=self._note(silent),
            samples=measurement.position.samples - lost,
            frames=max(one.frames for one in measurement.listeners),
            load=load.smoothed,
            load_max=load.highest,
            processor_used=shares.used,
            processor_waited=shares.waited,
            stopped=shares.stopped,
            throttled=ladder.slowness.throttled,
            stolen=shares.stolen,
            stopped_s=ladder.slowness.stopped_s,
            slow_because=ladder.cause.words if ladder.active else "",
            block_share_median=median,
            block_share_p99=p99,
            block_share_max=highest,
            queue_s=queue_s,
            overruns=self._backlog.overruns,
            overloaded=ladder.active,
            lost_samples=lost,
            dropped_samples=dropped,
            device_overflows=source.overflows,
            callbacks=arrivals.callbacks,
            late_callbacks=arrivals.late if paced else 0,
            latency_s=source.latency_s + queue_s + model_s,
            clock_ppm=ppm if paced else None,
            clock_ppm_uncertainty=uncertainty if paced else None,
            clock_observed_s=observed_s,
            utc_ahead_s=utc.ahead_s if source.live else 0.0,
            behind_s=arrivals.behind_s if paced else source.behind_s,
            non_finite=max(one.non_finite for one in listeners),
            clipped=max(one.ends.count for one in listeners),
            broken_frames=sum(one.broken for one in listeners),
            silent=silent or source.state == "silent",
            sink_errors=sum(sink_thread.errors for sink_thread in self._sinks),
            sink_missed=sum(sink_thread.missed for sink_thread in self._sinks),
            error=None if error is None else str(error),
            microphones={} if not measurement.listeners[0].name else self._microphones(),
        )

    @property
    def _silent(self) -> bool:
        """Whether there is only silence, by a model that runs."""
        runs = next((one for one in self._models if not one.off), self._models.first)
        return all(one.input.silent or one.gaps.silent for one in runs.listeners)

    def _microphones(self) -> dict[str, MicrophoneHealth]:
        """Health per microphone: input by the first model, broken frames by all."""
        by_microphone = zip(*(one.listeners for one in self._models), strict=True)
        samples = self._models.first.position.samples
        return {
            of_models[0].name: MicrophoneHealth(
                samples=samples - of_models[0].gaps.lost,
                lost_samples=of_models[0].gaps.lost,
                dropped_samples=min(of_models[0].gaps.lost, of_models[0].gaps.dropped),
                non_finite=of_models[0].non_finite,
                clipped=of_models[0].ends.count,
                broken_frames=sum(one.broken for one in of_models),
                silent=of_models[0].input.silent or of_models[0].gaps.silent,
                missing=of_models[0].gaps.missing,
                calibration=of_models[0].input.in_use.now,
                gain_db=of_models[0].input.in_use.gain_db,
            )
            for of_models in by_microphone
        }

    @property
    def device_state(self) -> str:
        """`Health.device_state`, without the cost of the rest."""
        state = self._state
        if isinstance(state.error, DeviceLost):
            return "lost"
        if state.done.is_set() or self._shutdown.left:
            return "ended" if state.played else "stopped"
        if self._backlog.runner.began_at is None or not state.ready.is_set():
            return "waiting"
        if self._source.state:
            zeros = any(all(of.gaps.silent for of in one.listeners) for one in self._models)
            return "silent" if zeros and self._source.state == "running" else self._source.state
        stalls = not self._source.can_wait and self._timeline.silent_for_s > STALLED_S
        return "stalled" if stalls else "running"

    def _note(self, silent: bool) -> str:
        """The most important remark."""
        source = self._source
        if note := self._shutdown.note or source.note:
            return note
        if notes := [*filter(None, (self._work.gains.note, self._slow_note))]:
            late = self._lag_note() if self._slow_note else ""
            return "; ".join(filter(None, (*notes, late)))
        if silent and source.silence_note:
            return source.silence_note
        return (
            self._lag_note()
            or self._sinks_note()
            or self._overrun_note()
            or self._models.device.note
        )

    @property
    def _slow_note(self) -> str:
        note, source = self._work.ladder.note, self._source
        behind = f"{source.name} is {source.behind_s:.1f} s behind real time"
        return f"{note}; {behind}" if note and source.behind_s > BEHIND_S else note

    def _lag_note(self) -> str:
        source, behind_s = self._source, self._timeline.arrivals.behind_s
        if source.latency_growth_s > BEHIND_S:
            return (
                f"{source.name} delivers sound later and later: "
                f"+{source.latency_growth_s:.1f} s since the start"
            )
        if not source.can_wait and behind_s > BEHIND_S:
            return (
                f"{source.name} has delivered {behind_s:.1f} s less sound than "
                "time has passed: the system drops or delays it"
            )
        return ""

    def _sinks_note(self) -> str:
        notes = [sink_thread.note for sink_thread in self._sinks if sink_thread.note]
        if notes:
            return "; ".join(notes)
        ahead_s = self._timeline.utc.ahead_s
        if self._source.live and ahead_s > STEP_S:
            return (
                f"UTC is {ahead_s:.1f} s ahead of the computer's clock, which was set back: it "
                "waits for the clock"
            )
        retired = [sink_thread.name for sink_thread in self._sinks if sink_thread.retired]
        if retired:
            return f"dropped after failing again and again: {', '.join(retired)}"
        return ""

    def _overrun_note(self) -> str:
        late = 0 if self._source.can_wait else self._backlog.overruns
        stopped_s = self._work.ladder.slowness.stopped_s
        if late and stopped_s > STOPPED_S:
            return (
                f"this program was stopped from outside for {stopped_s:.1f} s, so {late} "
                f"block{'s' * (late > 1)} had no room"
            )
        return f"processing was too slow for {late} block{'s' * (late > 1)}" if late else ""
