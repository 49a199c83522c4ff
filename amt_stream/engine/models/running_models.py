"""All models of an engine, running on the same audio."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from amt_stream.dsp.channel_layout import Layout
from amt_stream.dsp.compute_device import compute_device
from amt_stream.dsp.contract import takes_pascal
from amt_stream.engine.history import History
from amt_stream.engine.inputs.together import Together
from amt_stream.engine.microphone.calibration_in_use import each_ear
from amt_stream.engine.microphone.channels import EARS, block_columns, heard_channels, layout_said
from amt_stream.engine.microphone.microphones import Microphone, microphones_of_source
from amt_stream.engine.models.listener import Listener
from amt_stream.engine.models.measurement import Measurement
from amt_stream.engine.models.preparing import ready_model, refuse_no_model, working
from amt_stream.engine.models.ready_model import ReadyModel
from amt_stream.engine.options import EngineOptions
from amt_stream.engine.sinks.feed import RowModel
from amt_stream.engine.sinks.sinks import Sinks
from amt_stream.engine.thread_check import thread_checked
from amt_stream.engine.timeline import Timeline
from amt_stream.meters import catalog
from amt_stream.meters.calibration import UNCALIBRATED, Calibration, with_corrections
from amt_stream.meters.correction import Correction
from amt_stream.meters.frames import Frames
from amt_stream.meters.heard_channels import HeardChannels

if TYPE_CHECKING:
    from amt_stream.dsp.streaming import Stage


@thread_checked
class RunningModels:
    """A `Measurement` and histories for each model.

    of: the measurements by name; a single model has the name ""
    histories: by microphone and model
    microphones: of several, each measured separately; else ()
    heard: the channels that each model hears; None for several microphones
    """

    def __init__(self, timeline: Timeline, sinks: Sinks, options: EngineOptions) -> None:
        self.device = compute_device(options.device)
        self.of: dict[str, Measurement] = {}
        self.histories: dict[str, History] = {}
        self._timeline, self._sinks, self._options = timeline, sinks, options
        self.microphones, self._calibration = _microphones_for(timeline, options)
        self.heard: HeardChannels | None = None

    def load(
        self,
        given: "Stage | Mapping[str, Stage]",
        tell: Callable[[str, str], None],
        tell_gap: Callable[[str, int, int, int], None],
    ) -> None:
        """Prepare one model or several by name [before start].

        tell: called with kind and text of an event
        tell_gap: called with a gap of one microphone alone
        """
        models = given if isinstance(given, Mapping) else {"": given}
        if not models:
            raise ValueError("no model given: give one Stage, or several by name")
        self._tell, fs = tell, self._timeline.source.fs
        for model in models.values():
            refuse_no_model(model, fs)
        if self.microphones and self._options.layout is not None:
            raise ValueError(
                f"layout is {self._options.layout!r}, and each of several microphones is a sound "
                "of its own: leave it out"
            )
        self.heard = None if self.microphones else self._heard_by(models)
        # All models get the same sound, so one reports gaps; those of an ear are only in pascal.
        teller = max(models, key=lambda name: takes_pascal(models[name]))
        for name, model in models.items():
            listeners = self._listeners(name, tell_gap if name == teller else None)
            channels = max(listener.input.channels for listener in listeners)
            batch = len(listeners)
            ready = ready_model(model, fs, self._options.block_ms, channels, self.device, batch)
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

    def _heard_by(self, models: "Mapping[str, Stage]") -> HeardChannels:
        """The channels that each model hears, in the layout that the source or the user says."""
        source, options = self._timeline.source, self._options
        told = source.description
        layout = layout_said(told.layout, options.layout, options.channels, source.name)
        if options.layout is not None:
            source.description = told.with_layout(layout)
        most = {name: most_channels(model, source.channels) for name, model in models.items()}
        heard = heard_channels(source.name, layout, most, options.channels)
        for name, of_model in heard.layouts(models).items():
            _refuse_other_layout(models[name], of_model, source.name)
        return heard

    def _listeners(
        self, model: str, tell_gap: Callable[[str, int, int, int], None] | None
    ) -> list[Listener]:
        source = self._timeline.source
        if self.heard is not None:
            return [
                Listener(
                    block_columns(self.heard.channels_of(model)),
                    source.channels,
                    self._calibration,
                    tell_gap=tell_gap,
                    places=self.heard.places_of(model),
                    measured=len(self.heard.channels),
                    description=source.description,
                )
            ]
        return [
            Listener(
                block_columns(one.channels),
                source.channels,
                self._calibration if one.calibration is None else one.calibration,
                one.gain_db,
                one.name,
                tell_gap,
                description=source.description,
            )
            for one in self.microphones
        ]

    def __iter__(self) -> Iterator[Measurement]:
        return iter(self.of.values())

    def working(self, owns_thread: bool) -> AbstractContextManager[object]:
        """What a thread needs in which the models run; the argument is that of `ReadyModel`."""
        return working((one.ready for one in self), owns_thread)

    def refuse_unknown(self, names: Collection[str]) -> None:
        """Raise ValueError unless `names` are names of models."""
        if isinstance(names, str) or not set(names) <= self.of.keys():
            raise ValueError(f"needed is {names!r}: give names of models: {', '.join(self.of)}")

    @property
    def widest(self) -> Measurement:
        """The first model that hears the most channels [any-thread]."""
        return max(self, key=lambda one: one.listeners[0].input.channels)

    @property
    def position(self) -> int:
        """The position of the first model [any-thread]."""
        return self.first.position.sample

    @property
    def names(self) -> tuple[str, ...]:
        """Names of several microphones; else () [any-thread]."""
        return tuple(one.name for one in self.microphones)

    def names_of(self, microphone: str | None) -> Sequence[str]:
        """One name, or all; a single microphone has the name ""."""
        return (self.names or ("",)) if microphone is None else (microphone,)

    def index_of(self, microphone: str | None) -> int | None:
        """Index of the microphone of this name; None for all. Raises ValueError if unknown."""
        if microphone is None:
            return None
        if microphone not in self.names:
            there = ", ".join(self.names) or "no names, because there is only one"
            raise ValueError(f"no microphone is called {microphone!r}: there are {there}")
        return self.names.index(microphone)

    def command(self, what: Callable[[Measurement], None]) -> None:
        """Queue a command for all models, each at its next block [any-thread]."""
        for one in self:
            one.commands.put(partial(what, one))

    def prepared(self, models: "Mapping[str, Stage]") -> Callable[[], None]:
        """Prepare and warm up other models by name; calling the result swaps them [any-thread].

        If one is refused, none is swapped.
        """
        ready = {name: self._ready_for(name, model) for name, model in models.items()}

        def swap() -> None:
            for name, one in ready.items():
                self.of[name].commands.put(partial(self.of[name].swap, one))

        return swap

    def _ready_for(self, name: str, model: "Stage") -> ReadyModel:
        """A model prepared to replace the one of that name, warmed up."""
        if name not in self.of:
            raise ValueError(f"no model is called {name!r}: there are {', '.join(self.of)}")
        present = self.of[name].ready
        fs, batch = self._timeline.source.fs, present.shape[0]
        given = fs, self._options.block_ms, present.channels, self.device, batch
        ready = ready_model(model, *given)
        if type(ready) is not type(present):
            raise ValueError(
                f"{type(model).__name__} and {type(present.model).__name__} run in different ways: "
                "make a new Engine"
            )
        if self.heard is not None:
            layout = self.heard.layouts([name])[name]
            _refuse_other_layout(model, layout, self._timeline.source.name)
        if ready.in_pascal != present.in_pascal:
            units = ("fractions of full scale", "pascal")
            raise ValueError(
                f"{type(model).__name__} takes {units[ready.in_pascal]}, and "
                f"{type(present.model).__name__} {units[present.in_pascal]}: make a new Engine"
            )
        ready.warm()
        return ready

    def row_models(self) -> dict[str, RowModel]:
        """What rows are made from, for the present models [any-thread]."""
        return {
            name: RowModel(
                one.ready.model,
                one.ready.fields,
                {listener.name: listener.input.channels for listener in one.listeners},
            )
            for name, one in self.of.items()
        }

    def _emit(self, name: str, frames: Frames) -> None:
        if not frames.after_end:
            self.histories[_key_of(name, frames.microphone)].write(frames)
        self._sinks.put(frames)

    def _changed(self, name: str, ready: ReadyModel) -> None:
        what = f"{name} is" if name else "the model is"
        self._tell("swapped", f"{what} {type(ready.model).__name__} from here on")
        # Frames of the old model must not mix with those of the new one.
        self._sinks.forget(name)
        for key in [_key_of(name, one) for one in self.names_of(None)]:
            old = self.histories[key]
            if (old.fields, old.frame_rate) != (ready.fields, ready.clock.frame_rate):
                self.histories[key] = self._new_history(ready, old)

    def _new_history(self, ready: ReadyModel, before: History | None = None) -> History:
        return History(ready.fields, ready.clock.frame_rate, self._options.history_s, before)


def _microphones_for(
    timeline: Timeline, options: EngineOptions
) -> tuple[tuple[Microphone, ...], Calibration | Sequence[Calibration]]:
    """The microphones of an engine, and the calibration of those that have none."""
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
    """The microphone, corrected; one without a calibration uses the engine's."""
    if one.calibration is None:
        return one
    return replace(one, calibration=with_corrections(each_ear(one.calibration), given))


def most_channels(model: "Stage", offered: int) -> int:
    """The most channels that a model hears; one of full scale without an entry hears all."""
    entry = catalog.entry_of(model)
    if entry is None:
        return EARS if takes_pascal(model) else offered
    return entry.most_channels


def _refuse_other_layout(model: "Stage", layout: Layout, name: str) -> None:
    """Raise ValueError if a model was built for other positions than those that are known."""
    built_for = getattr(model, "layout", None)
    if not isinstance(built_for, Layout) or not layout.said:
        return
    if built_for.weights != layout.weights:
        raise ValueError(
            f"{type(model).__name__} was built for {built_for}, and {name} is {layout}: build it "
            f"with layout={' '.join(layout.positions)!r}"
        )


def _key_of(model: str, microphone: str) -> str:
    """The key of a microphone's and model's history."""
    return "/".join(filter(None, (microphone, model)))


def _refuse_mixed(model: "Stage", listeners: Sequence[Listener]) -> None:
    """Raise ValueError if microphones differ in channels for a model with a row per channel."""
    counts = sorted({listener.input.channels for listener in listeners})
    if len(counts) > 1:
        raise ValueError(
            f"{type(model).__name__} measures each channel on its own, and microphones have "
            f"{counts[0]} and {counts[-1]} channels: give as many to each"
        )
