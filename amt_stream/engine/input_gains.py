"""Passes the gain of inputs on to the calibrations that hold for it."""

from collections.abc import Callable, Sequence
from functools import partial

from amt_stream.engine.listener import Listener
from amt_stream.engine.measurement import Measurement
from amt_stream.engine.running_models import RunningModels
from amt_stream.engine.sources import Source
from amt_stream.engine.thread_check import thread_checked
from amt_stream.meters.source_description import InputGain


@thread_checked
class InputGains:
    """Follows the gain of the inputs of a source.

    While it is not that of a calibration, readings are uncalibrated.

    tell: called with kind, text and microphone of an event
    """

    def __init__(
        self, source: Source, models: RunningModels, tell: Callable[[str, str, str], None]
    ) -> None:
        self._source, self._models, self._tell = source, models, tell
        self._known: tuple[InputGain | None, ...] = (None,) * source.channels

    def look(self) -> None:
        """Pass on what has changed, from the next block on [model-thread]."""
        known = tuple(map(self._source.gain_of, range(self._source.channels)))
        if known != self._known:
            self._known = known
            self._models.command(partial(self._pass_on, known))

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
