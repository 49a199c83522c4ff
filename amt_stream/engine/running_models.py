"""All models of an engine, each on the same sound."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from amt_stream.dsp.compute_device import compute_device
from amt_stream.dsp.contract import takes_pascal
from amt_stream.dsp.streaming import Stage
from amt_stream.engine.feed import FeedMicrophone, Made
from amt_stream.engine.history import History
from amt_stream.engine.listener import Listener
from amt_stream.engine.measurement import Measurement
from amt_stream.engine.microphone_input import each_ear
from amt_stream.engine.microphones import Microphone, microphones_of_source
from amt_stream.engine.options import EngineOptions
from amt_stream.engine.ready_model import ReadyModel, refuse_no_model
from amt_stream.engine.sinks import Sinks
from amt_stream.engine.sources import channel_slice
from amt_stream.engine.thread_check import thread_checked
from amt_stream.engine.timeline import Timeline
from amt_stream.engine.together import Together
from amt_stream.meters.calibration import UNCALIBRATED, Calibration, with_corrections
from amt_stream.meters.correction import Correction
from amt_stream.meters.frames import Frames


@thread_checked
class RunningModels:
    """A `Measurement` for each model, by its name, and the history of what each gives.

    of: the measurements; a single model has the name ""
    histories: by microphone and model
    microphones: several that are heard, each by itself, or ()
    """

    def __init__(self, timeline: Timeline, sinks: Sinks, options: EngineOptions) -> None:
        self.device = compute_device(options.device)
        self.of: dict[str, Measurement] = {}
        self.histories: dict[str, History] = {}
        self._timeline, self._sinks, self._options = timeline, sinks, options
        self.microphones, self._calibration = _heard_by(timeline, options)

    def load(
        self,
        given: Stage | Mapping[str, Stage],
        tell: Callable[[str, str], None],
        tell_gap: Callable[[str, int, int], None],
    ) -> None:
        """Make one or several, by name, ready to run [before start].

        tell: told of the kind of an event and its text
        tell_gap: told which samples were missing of one microphone alone
        """
        models = given if isinstance(given, Mapping) else {"": given}
        if not models:
            raise ValueError("no model given: give one Stage, or several by name")
        self._tell, fs = tell, self._timeline.source.fs
        for name, model in models.items():
            refuse_no_model(model, fs)
            # All models hear the same sound: the first one tells what is missing.
            listeners = self._listeners(model, None if self.of else tell_gap)
            heard = max(listener.input.channels for listener in listeners)
            batch = len(listeners)
            ready = ReadyModel(model, fs, self._options.block_ms, heard, self.device, batch)
            self.of[name] = Measurement(
                ready,
                listeners,
                emit=partial(self._emit, name),
                epoch=self._timeline.epoch,
                model_changed=partial(self._changed, name),
                name=name,
                begin=self._options.first_sample,
            )
            if ready.rows != 2 or not ready.in_pascal or model.per_channel:
                _refuse_mixed(model, listeners)
            for listener in listeners:
                self.histories[_key_of(name, listener.name)] = self._new_history(ready)
        self.first = next(iter(self.of.values()))

    def _listeners(
        self, model: Stage, tell_gap: Callable[[str, int, int], None] | None
    ) -> list[Listener]:
        """Who hears one model, by themselves."""
        source, channels = self._timeline.source, self._options.channels
        if not self.microphones:
            columns = slice(0, source.channels)
            if channels is not None or takes_pascal(model):
                columns = channel_slice(channels, source.channels, source.name)
            return [Listener(columns, source.channels, self._calibration, tell_gap=tell_gap)]
        return [
            Listener(
                channel_slice(one.channels, source.channels, source.name),
                source.channels,
                self._calibration if one.calibration is None else one.calibration,
                one.gain_db,
                one.name,
                tell_gap,
            )
            for one in self.microphones
        ]

    def __iter__(self) -> Iterator[Measurement]:
        return iter(self.of.values())

    @property
    def position(self) -> int:
        """The sample that they have reached, or the first of them [any-thread]."""
        return self.first.position

    @property
    def names(self) -> tuple[str, ...]:
        """Of the microphones, where several are heard [any-thread]."""
        return tuple(one.name for one in self.microphones)

    def names_of(self, microphone: str | None) -> Sequence[str]:
        """What a microphone is called, or all of them; where one alone is heard it is ""."""
        return (self.names or ("",)) if microphone is None else (microphone,)

    def index_of(self, microphone: str | None) -> int | None:
        """Which microphone is called so; None for all. Raises ValueError where none is."""
        if microphone is None:
            return None
        if microphone not in self.names:
            there = ", ".join(self.names) or "no names, as one alone is heard"
            raise ValueError(f"no microphone is called {microphone!r}: there are {there}")
        return self.names.index(microphone)

    def command(self, what: Callable[[Measurement], None]) -> None:
        """Have all do it, each at its next block [any-thread]."""
        for one in self:
            one.commands.put(partial(what, one))

    def prepared(self, models: Mapping[str, Stage]) -> Callable[[], None]:
        """Others by name, built and warmed here; what is given swaps them [any-thread].

        Where one is refused none is swapped.
        """
        ready = {name: self._ready_for(name, model) for name, model in models.items()}

        def swap() -> None:
            for name, one in ready.items():
                self.of[name].commands.put(partial(self.of[name].swap, one))

        return swap

    def _ready_for(self, name: str, model: Stage) -> ReadyModel:
        """A model in the place of the one of that name, warmed."""
        if name not in self.of:
            raise ValueError(f"no model is called {name!r}: there are {', '.join(self.of)}")
        present = self.of[name].ready
        fs, heard, batch = self._timeline.source.fs, present.heard, present.shape[0]
        ready = ReadyModel(model, fs, self._options.block_ms, heard, self.device, batch)
        if ready.in_pascal != present.in_pascal:
            units = ("fractions of full scale", "pascal")
            raise ValueError(
                f"{type(model).__name__} takes {units[ready.in_pascal]}, and "
                f"{type(present.model).__name__} {units[present.in_pascal]}: make a new Engine"
            )
        ready.warm()
        return ready

    def made(self) -> dict[str, Made]:
        """What rows of readings are made of, as the models are just now [any-thread]."""
        return {
            name: Made(
                one.ready.model,
                one.ready.fields,
                tuple(
                    FeedMicrophone(listener.name, listener.input.channels)
                    for listener in one.listeners
                ),
            )
            for name, one in self.of.items()
        }

    def _emit(self, name: str, frames: Frames) -> None:
        if not frames.after_end:
            self.histories[_key_of(name, frames.microphone)].write(frames)
        self._sinks.put(frames)

    def _changed(self, name: str, ready: ReadyModel) -> None:
        what = f"{name} is" if name else "the model is"
        self._tell("swapped", f"{what} another from here on: {type(ready.model).__name__}")
        # What another model gave is not read as what this one gives.
        self._sinks.forget(name)
        for key in [_key_of(name, one) for one in self.names_of(None)]:
            old = self.histories[key]
            if (old.fields, old.frame_rate) != (ready.fields, ready.clock.frame_rate):
                self.histories[key] = self._new_history(ready, old)

    def _new_history(self, ready: ReadyModel, before: History | None = None) -> History:
        return History(ready.fields, ready.clock.frame_rate, self._options.history_s, before)


def _heard_by(
    timeline: Timeline, options: EngineOptions
) -> tuple[tuple[Microphone, ...], Calibration | Sequence[Calibration]]:
    """The microphones that an engine hears, and the calibration of those that have none."""
    source, asked = timeline.source, options.microphones
    if asked is None and options.channels is None and isinstance(source, Together):
        asked = source.microphones
    microphones = () if asked is None else microphones_of_source(asked, source)
    calibration = options.calibration
    if calibration is None:
        calibration = source.calibration or UNCALIBRATED
    if options.correction is None:
        return microphones, calibration
    given = options.correction
    corrections = (given,) if isinstance(given, Correction) else tuple(given)
    calibration = with_corrections(each_ear(calibration), corrections)
    return tuple(_with_corrections(one, corrections) for one in microphones), calibration


def _with_corrections(one: Microphone, given: Sequence[Correction | None]) -> Microphone:
    """The same, corrected; one without a calibration has that of the engine."""
    if one.calibration is None:
        return one
    return replace(one, calibration=with_corrections(each_ear(one.calibration), given))


def _key_of(model: str, microphone: str) -> str:
    """What the history of a microphone and model is called."""
    return "/".join(filter(None, (microphone, model)))


def _refuse_mixed(model: Stage, listeners: Sequence[Listener]) -> None:
    """Raise ValueError where a model has a row for each channel, and there are more in some."""
    counts = sorted({listener.input.channels for listener in listeners})
    if len(counts) > 1:
        raise ValueError(
            f"{type(model).__name__} hears each channel by itself, and microphones have "
            f"{counts[0]} and {counts[-1]} channels: give as many to each"
        )
