"""An entry of the catalog of models."""

import importlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from amt_stream.core.errors import Refusal
from amt_stream.core.importing import has_torch, refuse_without_torch, uncollected
from amt_stream.core.json_types import JsonMap
from amt_stream.dsp.channel_layout import usual_layout
from amt_stream.dsp.contract import InputUnit

Takes = Literal[
    "channels",
    "layout",
    "uncertainty_db",
    "specific_loudness",
    "excitation_db",
    "background",
    "mixed",
]
ReadingsTake = Literal["band", "model", "target_lufs", "dual_mono", "audience"]
View = Literal["loudness", "modulation", "readings"]


class CatalogError(Refusal, ValueError):
    """A catalog entry that cannot be used."""


@dataclass(frozen=True)
class Output:
    """An output of a model that is not a column.

    field: field of the model's output
    unit: unit of the values
    axes: axes without time: "ear", "channel", "erb_number", "bark", "half_bark", "bark_hms" or
        "hz"
    takes: argument that the model needs to compute it, if any
    """

    field: str
    unit: str
    axes: tuple[str, ...]
    takes: Takes | None = None


@dataclass(frozen=True)
class Entry:
    """One model of the catalog.

    name: name in commands and presets; letters, digits and _
    title: name for people, such as the heading of a pane
    method: one line, what it measures and by which method
    model: "module:name" of its class, called with `fs`, `arguments`, settings and what it `takes`
    readings: "module:name" of a function or class that makes its columns and its summary, called
        with the number of channels and with `readings_take`
    input_unit: unit of its input, as declared by the class
    settings: settings that a preset may have, each with its allowed values, the default first
    cheaper: settings that cost less and give nearly the same numbers from the same state; an
        engine that cannot keep up switches to these
    arguments: constant arguments of the class
    takes: further arguments of the class, where they are known
    readings_take: arguments of `readings`: "band", whether the model gives the band that follows
        from `uncertainty_db`; "model", the model itself; "target_lufs", "dual_mono" and "audience",
        settings
    outputs: outputs besides the columns, by name
    most_channels: the most channels that it hears; of more than two, a model of ears hears L and R
        of a known layout
    view: what the window shows if the model runs alone; several models show their readings
    alone: whether its rows are a spectrum, so that it cannot run beside other models
    row_step_ms: default time between the rows of a file
    checks: module whose CHECKS are its self-test, or None
    pane: "module:name" of a function or class that makes its pane in a window, called with this
        entry and the names of its readings, or None for a plain pane
    includes: names of models whose columns it has too, so that they cannot run beside it
    """

    name: str
    title: str
    method: str
    model: str
    readings: str
    input_unit: InputUnit = "pascal"
    settings: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    cheaper: Mapping[str, str] = field(default_factory=dict)
    arguments: JsonMap = field(default_factory=dict)
    takes: tuple[Takes, ...] = ()
    readings_take: tuple[ReadingsTake, ...] = ()
    outputs: Mapping[str, Output] = field(default_factory=dict)
    most_channels: int = 2
    view: View = "readings"
    alone: bool = False
    row_step_ms: int = 10
    checks: str | None = None
    pane: str | None = None
    includes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not re.fullmatch(r"\w+", self.name):
            raise CatalogError(f"the model name is {self.name!r}: give letters, digits and _")
        for place in ("model", "readings", "pane"):
            words = getattr(self, place)
            if words is not None and not re.fullmatch(r"[\w.]+:\w+", words):
                raise CatalogError(f"{self.name}: {place} is {words!r}: give 'module:name'")
        if self.input_unit not in ("pascal", "full scale"):
            raise CatalogError(
                f"{self.name}: input_unit is {self.input_unit!r}: give 'pascal' or 'full scale'"
            )

    def load(self, place: Literal["model", "readings", "pane"]) -> Any:
        """Import the object that a field names. Raises CatalogError if there is none."""
        return _resolved(self.name, place, getattr(self, place))

    def load_checks(self) -> Any:
        """Import the module of its self-test. Raises CatalogError if there is none."""
        if self.checks is None:
            raise CatalogError(f"{self.name} has no self-test")
        return _module(self.name, "checks", self.checks)

    def build(self, fs: int, settings: Mapping[str, str] | None = None, **known: object) -> Any:
        """Make a model for sound at `fs` Hz.

        settings: settings of a preset; those of other models are ignored
        known: arguments that models may take; those that this one does not take are ignored

        Raises ValueError if the class refuses an argument.
        """
        chosen = {k: v for k, v in (settings or {}).items() if k in self.settings}
        if not has_torch():
            return self._compiled(fs, chosen, known)
        taken = {k: v for k, v in known.items() if k in self.takes}
        return self.load("model")(fs=fs, **self.arguments, **chosen, **taken)

    def _compiled(self, fs: int, chosen: Mapping[str, str], known: Mapping[str, Any]) -> Any:
        """The model as it was built before."""
        asked = [k for k in self.takes if k not in ("channels", "layout") and known.get(k)]
        if asked:
            refuse_without_torch(f"{self.name} with {asked[0]}")
        channels = known.get("channels", 2)
        usual = usual_layout(channels)
        layout = known.get("layout") or usual
        if "layout" in self.takes and layout.weights != usual.weights:
            refuse_without_torch(f"{self.name} of {layout}")
        made = _resolved(self.name, "model", "amt_stream.native.compiled_model:CompiledModel")
        return made(self.name, fs, channels, chosen)

    def cheaper_than(self, model: Any) -> dict[str, str]:
        """The `cheaper` settings that a model of this class does not have yet."""
        if not has_torch():
            return {}
        made_with = model.arguments()
        return {key: word for key, word in self.cheaper.items() if made_with.get(key) != word}

    def make_readings(self, channels: int, **known: object) -> Any:
        """Make the readings of a model with this number of channels; `known` as in `build`."""
        taken = {k: v for k, v in known.items() if k in self.readings_take}
        return self.load("readings")(channels, **taken)


def _resolved(owner: str, place: str, words: str | None) -> Any:
    if words is None:
        raise CatalogError(f"{owner} has no {place}")
    home, _, name = words.partition(":")
    module = _module(owner, place, home)
    if not hasattr(module, name):
        raise CatalogError(f"{owner}: {place} is {words!r}, and {home} has no {name}")
    return getattr(module, name)


def _module(owner: str, place: str, home: str) -> Any:
    try:
        with uncollected():
            return importlib.import_module(home)
    except ModuleNotFoundError as error:
        # If the module exists and one of its imports is missing, that error says more.
        if error.name is None or not (home == error.name or home.startswith(f"{error.name}.")):
            raise
        raise CatalogError(f"{owner}: {place} is in {home}, which does not exist") from error
