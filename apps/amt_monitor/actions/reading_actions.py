"""Commands for the readings: reset, mark, keep the last sound."""

from contextlib import suppress
from functools import partial

from pyqtgraph.Qt import QtCore

from amt_monitor.actions.measurement_actions import MeasurementActions
from amt_monitor.base.background_task import BackgroundTask
from amt_monitor.base.widgets import ask_text
from amt_stream.meters.frames import Event
from amt_stream.sessions.events import keeper_in
from amt_stream.sessions.outputs import FollowedReadings
from amt_stream.views.log_status import log_in


class ReadingActions(QtCore.QObject):
    """Runs them on the measurement of `controls` [main-thread]."""

    def __init__(self, controls: MeasurementActions) -> None:
        super().__init__(controls)
        self._controls, self._measurement = controls, controls.measurement
        self._replaying = BackgroundTask(self, refused=controls.message.emit)

    def reset_readings(self) -> None:
        engine = self._measurement.engine
        if engine is not None and self._measurement.measuring:
            reset = partial(self._controls.command, engine.reset_readings)
            self._controls.unless_lost("Reset the readings?", "Reset", reset)

    def undo_reset(self) -> None:
        if self._measurement.can_undo_reset and self._measurement.engine is not None:
            with suppress(ValueError):  # too late: it is no longer offered
                self._controls.command(self._measurement.engine.undo_reset)
        self._controls.changed.emit()

    def reset_filters(self) -> None:
        """Reset the models to silence; the clock continues."""
        if self._measurement.engine is not None and self._measurement.measuring:
            self._controls.command(self._measurement.engine.reset_filters)

    def mark(self) -> None:
        engine, readings = self._measurement.engine, self._measurement.readings
        if engine is None or not self._measurement.measuring:
            return
        latest = engine.history.latest
        events = engine.events if readings is None else readings.events
        count = sum(event.kind == "mark" for event in events) + 1

        def keep(text: str) -> None:
            if latest is None:
                # Without readings there is no exact moment.
                self._controls.command(lambda: engine.mark(text))
                return
            event = latest.moment("mark", text)
            self._controls.once_free(lambda: self._keep_mark(event, readings))

        ask_text(self._controls.front(), "Marker", "Note", keep, f"mark {count}")

    def _keep_mark(self, event: Event, readings: FollowedReadings | None) -> None:
        """Send it to its measurement if that still runs, else store it with the readings."""
        engine, same = self._measurement.engine, self._measurement.readings is readings
        if engine is not None and same and self._measurement.measuring:
            self._controls.command(lambda: engine.tell_event(event))
        elif readings is None or not same:
            self._controls.message.emit(
                f"the marker is lost, as its measurement was replaced: {event.text}"
            )
        else:
            readings.event(event)
            if log_in(engine) is not None:
                self._controls.message.emit(
                    f"the marker is not in the log, which has ended: {event.text}"
                )

    def replay(self) -> None:
        """Save the sound in memory to a file; an event names the file."""
        engine = self._measurement.engine
        keeper = keeper_in(engine.sinks) if engine is not None else None
        if keeper is None:
            self._controls.message.emit(
                "no sound is in memory: turn that on in File > Settings and start a new measurement"
            )
            return
        self._replaying.run(keeper.replay)
