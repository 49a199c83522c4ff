"""How an engine is doing, asked of all its parts."""

from collections.abc import Mapping

from amt_stream.engine.backlog import Backlog
from amt_stream.engine.clock import STEP_S, UtcScale
from amt_stream.engine.course import Course
from amt_stream.engine.ending import Ending
from amt_stream.engine.health import Arrivals, Health, Load, RowHealth
from amt_stream.engine.intake import Intake
from amt_stream.engine.ladder import Ladder
from amt_stream.engine.measurement import Measurement
from amt_stream.engine.outlets import Outlets
from amt_stream.engine.sources import DeviceLost, Source

STALLED_S = 1.0
BEHIND_S = 0.5


class Checkup:
    """Makes `Health` of what the parts know [any-thread].

    place_note: what is to be known of where the models run, or ""
    """

    def __init__(
        self,
        source: Source,
        measurements: Mapping[str, Measurement],
        intake: Intake,
        arrivals: Arrivals,
        backlog: Backlog,
        ladder: Ladder,
        load: Load,
        utc: UtcScale,
        outlets: Outlets,
        ending: Ending,
        course: Course,
        place_note: str,
    ) -> None:
        self._place_note = place_note
        self._source, self._measurements = source, measurements
        self._intake, self._arrivals, self._backlog = intake, arrivals, backlog
        self._ladder, self._load, self._utc = ladder, load, utc
        self._outlets, self._ending, self._course = outlets, ending, course

    def health(self) -> Health:
        """How it is doing just now."""
        source, all_of_them = self._source, self._measurements.values()
        measurement = next(iter(all_of_them))
        ready, queue_s, lost = measurement.ready, self._backlog.seconds, measurement.lost
        median, p99, highest = self._load.shares()
        ppm, uncertainty, observed_s = self._arrivals.clock()
        model_s = float(ready.clock.latency + ready.block) / source.fs
        error = self._course.error
        listeners = [listener for one in all_of_them for listener in one.listeners]
        return Health(
            device_state=self.device_state,
            note=self._note(measurement.silent),
            samples=measurement.samples - lost,
            frames=measurement.frames,
            load=self._load.smoothed,
            load_max=self._load.highest,
            block_share_median=median,
            block_share_p99=p99,
            block_share_max=highest,
            queue_s=queue_s,
            overruns=self._backlog.overruns,
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
            non_finite=max(one.non_finite for one in listeners),
            clipped=max(one.clipped for one in listeners),
            broken_frames=sum(one.broken for one in listeners),
            silent=measurement.silent,
            sink_errors=sum(outlet.errors for outlet in self._outlets),
            sink_missed=sum(outlet.missed for outlet in self._outlets),
            error=None if error is None else str(error),
            rows={} if not measurement.listeners[0].name else self._rows(),
        )

    def _rows(self) -> dict[str, RowHealth]:
        """Each row by itself: what it heard by the first model, what models made of it by all."""
        by_row = zip(*(one.listeners for one in self._measurements.values()), strict=True)
        samples = next(iter(self._measurements.values())).samples
        return {
            of_models[0].name: RowHealth(
                samples=samples - of_models[0].lost,
                lost_samples=of_models[0].lost,
                non_finite=of_models[0].non_finite,
                clipped=of_models[0].clipped,
                broken_frames=sum(one.broken for one in of_models),
                silent=of_models[0].silent,
                missing=of_models[0].missing,
                calibration=of_models[0].calibration,
                gain_db=of_models[0].gain_db,
            )
            for of_models in by_row
        }

    @property
    def silent_for_s(self) -> float:
        """Seconds without a block from a live source."""
        return self._arrivals.silent_for_s(self._intake.began_at) if self._source.live else 0.0

    @property
    def device_state(self) -> str:
        """That of `Health`, which takes much longer to make."""
        course = self._course
        if isinstance(course.error, DeviceLost):
            return "lost"
        if course.done.is_set() or self._ending.left:
            return "ended" if course.played else "stopped"
        if self._intake.began_at is None or not course.ready.is_set():
            return "waiting"
        if self._source.state:
            return self._source.state
        return "stalled" if self.silent_for_s > STALLED_S else "running"

    def _note(self, silent: bool) -> str:
        """What matters most of all that could be said."""
        source = self._source
        if note := self._ending.note or source.note or self._ladder.note:
            return note
        if silent and source.silence_note:
            return source.silence_note
        return self._lag_note() or self._sinks_note() or self._overrun_note() or self._place_note

    def _lag_note(self) -> str:
        source = self._source
        if source.latency_growth_s > BEHIND_S:
            return (
                f"{source.name} delivers sound later and later: "
                f"+{source.latency_growth_s:.1f} s since the start"
            )
        if source.live and self._arrivals.behind_s > BEHIND_S:
            return (
                f"{source.name} has delivered {self._arrivals.behind_s:.1f} s less sound than "
                "time has passed: the system drops or delays it"
            )
        return ""

    def _sinks_note(self) -> str:
        notes = [outlet.note for outlet in self._outlets if outlet.note]
        if notes:
            return "; ".join(notes)
        if self._source.live and self._utc.ahead_s > STEP_S:
            return (
                f"UTC is {self._utc.ahead_s:.1f} s ahead of the computer's clock, which was set "
                "back: it waits for it"
            )
        retired = [outlet.name for outlet in self._outlets if outlet.retired]
        if retired:
            return f"dropped after failing again and again: {', '.join(retired)}"
        return ""

    def _overrun_note(self) -> str:
        late = self._backlog.overruns if self._source.live else 0
        return f"processing was too slow for {late} block{'s' * (late > 1)}" if late else ""
