"""Passes the gain of inputs on to the calibrations that hold for it."""

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial

from amt_stream.engine.models.listener import Listener
from amt_stream.engine.models.measurement import Measurement
from amt_stream.engine.models.running_models import RunningModels
from amt_stream.engine.thread_check import thread_checked
from amt_stream.engine.timeline import Timeline
from amt_stream.meters.source_description import InputGain


@thread_checked
class InputGains:
    """Follows the gain of the inputs of an engine.

    While it is not that of a calibration, readings are uncalibrated.

    tell: called with kind, text and microphone of an event
    """

    def __init__(
        self, timeline: Timeline, models: RunningModels, tell: Callable[[str, str, str], None]
    ) -> None:
        self._timeline, self._models, self._tell = timeline, models, tell
        self._known: list[InputGain | None] = [None] * timeline.source.channels
        self._incoming: deque[tuple[int, InputGain, range]] = deque()

    def take(self, gain: InputGain, columns: range) -> None:
        """Take the gain of the input of some columns from the next block on [any-thread]."""
        self._incoming.append((self._timeline.arrivals.samples, gain, columns))

    def look(self) -> None:
        """Pass on the gains of the next block, in order [model-thread].

        One that is turning counts at once, also for sound that has come before.
        """
        if not self._incoming:  # the usual case
            return
        waiting = [*self._incoming]
        due = sum(sample <= self._models.position for sample, _, _ in waiting)
        due = max([due, *(k for k, (_, gain, _) in enumerate(waiting, 1) if gain.turning)])
        for _ in range(due):
            _, gain, columns = self._incoming.popleft()
            self._known[columns.start : columns.stop] = [gain] * len(columns)
            self._models.command(partial(self._pass_on, tuple(self._known)))

    def _pass_on(self, known: Sequence[InputGain | None], measurement: Measurement) -> None:
        changed = measurement.know_gains(known)
        if measurement is not self._models.first:
            return
        self._tell_doubts(changed)
        for listener in changed:
            if not (in_use := listener.input.in_use).why:
                text = f"readings are calibrated again: {in_use.holds}"
                self._tell("calibrated", text, listener.name)

    def tell_doubts(self) -> None:
        """Tell which calibrations do not hold, after others were given [any-thread]."""
        first = self._models.first
        first.commands.put(lambda: self._tell_doubts(first.listeners))

    def _tell_doubts(self, listeners: Sequence[Listener]) -> None:
        for listener in listeners:
            if words := _words(listener):
                self._tell("uncalibrated", words, listener.name)

    @property
    def note(self) -> str:
        """Why readings are uncalibrated; "" unless a gain was turned [any-thread]."""
        found = ((one.name, _words(one)) for one in self._models.first.listeners)
        return "; ".join(f"{name}: {words}" if name else words for name, words in found if words)


def _words(listener: Listener) -> str:
    why = listener.input.in_use.why
    return f"readings are uncalibrated: {why}" if why else ""
