"""Presets: settings from TOML, validated, from which models and engine settings are made."""

import difflib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amt_stream.core.importing import uncollected
from amt_stream.core.json_types import JsonDict, JsonMap
from amt_stream.core.safe_text import brief, toml_text
from amt_stream.core.settings import PresetError, load_named, names_in, presets_folder, tables_in
from amt_stream.core.values import Choice, LimitTables
from amt_stream.dsp.channel_layout import Layout, as_layout
from amt_stream.dsp.stage_settings import StageSettings
from amt_stream.meters import catalog
from amt_stream.meters.audience import NO_AUDIENCE, Audience, as_audience, at_microphone
from amt_stream.meters.catalog import Entry
from amt_stream.meters.entry import View
from amt_stream.meters.limits import Limit, LimitError, refuse_twice
from amt_stream.meters.norms import limits_in
from amt_stream.meters.specification import (
    CHAIN,
    COMPUTE_DEVICES,
    EngineSettings,
    keyed,
    settings_of,
)
from amt_stream.meters.triggers import (
    Trigger,
    TriggerError,
    refuse_same,
    trigger_from_text,
    trigger_of,
)

if TYPE_CHECKING:
    from torch import nn

    from amt_stream.dsp.compose import Chain
    from amt_stream.dsp.streaming import Stage

DEFAULT = catalog.DEFAULT
REQUIRED = "model.name"


def rules() -> JsonDict:
    """Types of the settings of a preset, from `amt_stream.core.values`, by dotted name."""
    found = {key: one.rule for key, one in keyed().items()}
    # Models of other packages may have further settings.
    own = settings_of(catalog.names()).items()
    return found | {f"model.{name}": Choice(words) for name, words in own}


@dataclass(frozen=True)
class Preset(EngineSettings):
    """Settings of the models, the engine and the meter, with the defaults of preset files.

    settings: settings of the models by name; the default is the first allowed value
    limits: limits of columns, which are added to the rows
    report: paper, company and logo (an absolute path) of reports
    run: options of `amt-stream serve` for a station; like `report`, they do not affect readings
    triggers: triggers of sound events, whose columns are added to the rows
    audience: correction from the microphone to the audience; limits of levels that it corrects are
        of the audience then
    more_columns: names of columns of the rows besides others

    Raises PresetError without a model, for a repeated model, for one that another includes, and for
    a setting that no model has, and LimitError for two limits with the same name.
    """

    names: tuple[str, ...] = (DEFAULT,)
    settings: Mapping[str, str] = field(default_factory=dict)
    compute: str = COMPUTE_DEVICES[0]
    step_ms: int = 100
    microphones: Mapping[str, Sequence[int]] = field(default_factory=dict)
    layout: str | None = None
    description: str = ""
    stages: tuple[StageSettings, ...] = ()
    uncertainty_db: float | None = None
    limits: tuple[Limit, ...] = ()
    report: JsonMap = field(default_factory=dict)
    run: JsonMap = field(default_factory=dict)
    triggers: tuple[Trigger, ...] = ()
    audience: Audience | None = None
    more_columns: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.audience is not None:
            limits = tuple(map(self.audience.limit, self.limits))
            object.__setattr__(self, "limits", limits)
        refuse_twice(self.limits)
        refuse_same(self.triggers)
        if not self.names or len(set(self.names)) < len(self.names):
            raise PresetError(
                f"the models are {', '.join(self.names) or 'none'}: give one or more, each once"
            )
        for entry in self.entries:
            if twice := set(entry.includes) & set(self.names):
                raise PresetError(
                    f"{entry.name} has the readings of {', '.join(sorted(twice))}: give one of them"
                )
        if self.audience is not None and not any(map(_takes_audience, self.names)):
            takers = ", ".join(filter(_takes_audience, catalog.names()))
            raise PresetError(
                f"audience is a correction of {takers}, and the model is {self.where}: add it"
            )
        known = settings_of(entry.name for entry in self.entries)
        for key, value in self.settings.items():
            if key not in known:
                raise PresetError(f"{key} = {toml_text(value)} is not a setting of {self.where}")
        complete = {key: self.settings.get(key, words[0]) for key, words in known.items()}
        object.__setattr__(self, "settings", complete)
        words = (self.ladder,) if isinstance(self.ladder, str) else tuple(self.ladder)
        object.__setattr__(self, "ladder", () if words == ("none",) else words)

    @property
    def where(self) -> str:
        """The names of its models as text."""
        return "a chain" if self.stages else ", ".join(self.names)

    @property
    def name(self) -> str:
        """The name of its first model."""
        return self.names[0]

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Catalog entries of its models; none for a chain."""
        return () if self.stages else tuple(catalog.entry(name) for name in self.names)

    def with_names(self, names: tuple[str, ...]) -> "Preset":
        """A copy with other models, which keep the settings that they have too."""
        kept = {k: v for k, v in self.settings.items() if k in settings_of(names)}
        audience = self.audience if any(map(_takes_audience, names)) else None
        columns = self.more_columns if {*names}.issuperset(self.names) else ()
        return replace(self, names=names, settings=kept, audience=audience, more_columns=columns)

    def with_field(self, field: str | None) -> "Preset":
        """A copy with another sound field, unless it is None."""
        if field is None:
            return self
        return replace(self, settings={**self.settings, "field": field})

    def with_settings(self, settings: Mapping[str, str]) -> "Preset":
        """A copy with other settings of its models. Raises PresetError for invalid ones."""
        known = settings_of(entry.name for entry in self.entries)
        for key, value in settings.items():
            if key not in known:
                offered = ", ".join(sorted(known))
                raise PresetError(
                    f"{brief(key)} is not a setting of {self.where}: there are {offered}"
                )
            if value not in known[key]:
                raise PresetError(f"{key} is {toml_text(value)}: give {Choice(known[key])}")
        return replace(self, settings={**self.settings, **settings})

    def with_compute(self, device: str | None) -> "Preset":
        """A copy for another device, unless it is None."""
        return self if device is None else replace(self, compute=device)

    def with_audience(self, audience: Audience | None) -> "Preset":
        """A copy with a correction from the microphone to the audience, unless it is None.

        NO_AUDIENCE removes it. Limits of levels follow.
        """
        if audience is None:
            return self
        chosen = None if audience == NO_AUDIENCE else audience
        return replace(self, audience=chosen, limits=tuple(map(at_microphone, self.limits)))

    @property
    def compute_note(self) -> str:
        """Why its models cannot run on the device `compute`, or ""; asks torch only if need be."""
        if self.compute == COMPUTE_DEVICES[0]:
            return ""
        from amt_stream.dsp.compute_device import compute_device

        return compute_device(self.compute).note

    @property
    def view(self) -> View:
        """The view of its models; several models, a chain and limits are shown as readings."""
        alone = len(self.entries) == 1 and not self.limits
        return self.entries[0].view if alone else "readings"

    @property
    def in_pascal(self) -> bool:
        """Whether one of its models takes pascal and so needs a calibration."""
        return bool(self.stages) or catalog.any_in_pascal(self.names)

    @property
    def most_channels(self) -> dict[str, int]:
        """The most channels that each of its models hears, by name."""
        return {one.name: one.most_channels for one in self.entries} or {CHAIN: 2}

    @property
    def row_step_ms(self) -> int:
        """Default time between the rows of a file."""
        return max((entry.row_step_ms for entry in self.entries), default=10)

    def model(self, fs: int) -> "Stage":
        """Make its one model, or its chain, for sound at `fs` Hz.

        Raises PresetError if stages cannot be made or combined at this rate.
        """
        return self.models(fs, 2)[self.name]

    def models(
        self, fs: int, channels: int | Layout | Mapping[str, Layout], **asks: Any
    ) -> "dict[str, Stage]":
        """Make its models by name for sound at `fs` Hz, on the device `compute`.

        channels: the layout that all models hear, or each by its name; a number stands for the
            usual layout of so many channels
        asks: what models take: optional outputs, such as specific_loudness=True, or a background

        Raises PresetError if stages of a chain cannot be made or combined at this rate, and
        ValueError for a model that does not exist for this rate or field.
        """
        with uncollected():
            from amt_stream.dsp.compute_device import compute_device

        place = compute_device(self.compute)
        if self.stages:
            models: dict[str, Stage] = {CHAIN: self._chain(fs)}
        else:
            models = {}
            for one in self.entries:
                heard = channels[one.name] if isinstance(channels, Mapping) else channels
                layout = as_layout(heard)
                known: JsonDict = {"channels": layout.channels, "layout": layout}
                known |= {"uncertainty_db": self.uncertainty_db, **asks}
                models[one.name] = one.build(fs, self.settings, **known)
        for model in models.values():
            place.take(model)
        return models

    def _chain(self, fs: int) -> "Chain":
        from amt_stream.dsp.compose import Chain
        from amt_stream.dsp.streaming import Stage

        stages: dict[str, nn.Module] = {}
        counts = Counter[str]()
        rate = Fraction(fs)
        for settings in self.stages:
            stage = settings.build(rate)
            name = settings.name.rpartition(".")[2].lower()
            counts[name] += 1
            stages[name if counts[name] == 1 else f"{name}_{counts[name]}"] = stage
            # A plain torch module processes each instant separately, so it keeps the rate.
            rate *= stage.ratio if isinstance(stage, Stage) else 1
        try:
            return Chain(**stages).float()
        except (TypeError, ValueError) as error:
            raise PresetError(f"{self.stages[0].file}: model.stages: {error}") from error

    @property
    def engine_settings(self) -> JsonDict:
        """Keyword arguments for `Engine`."""
        own = {one.name: getattr(self, one.name) for one in fields(EngineSettings)}
        return {**own, "device": self.compute}

    @property
    def tables(self) -> JsonDict:
        """The preset as tables of a TOML file."""
        model: dict[str, object] = {"name": list(self.names) if len(self.names) > 1 else self.name}
        model |= self.settings
        engine = {one.name: getattr(self, one.name) for one in fields(EngineSettings)}
        meter: dict[str, object] = {"step_ms": self.step_ms}
        meter |= {"microphones": dict(self.microphones)} if self.microphones else {}
        meter |= {} if self.layout is None else {"layout": self.layout}
        meter |= {"more_columns": list(self.more_columns)} if self.more_columns else {}
        meter |= {} if self.audience is None else {"audience": self.audience.to_dict()}
        if self.stages:
            model["stages"] = [{"type": one.name, **one.arguments} for one in self.stages]
        tables: dict[str, object] = {
            "model": model,
            "engine": {**engine, "compute": self.compute},
            "meter": meter,
        }
        if self.limits:
            tables["limits"] = [limit.to_dict() for limit in self.limits]
        if self.triggers:
            tables["events"] = [trigger.to_dict() for trigger in self.triggers]
        return {"description": self.description, **tables} if self.description else tables

    @property
    def described(self) -> list[JsonDict]:
        """Name and settings of each model, for headers of rows."""
        if self.stages:
            return [{"name": CHAIN}]
        return [
            {"name": entry.name, **{k: v for k, v in self.settings.items() if k in entry.settings}}
            for entry in self.entries
        ]


def shipped_presets() -> list[str]:
    return names_in(presets_folder())


def load_preset(name: str = DEFAULT) -> Preset:
    """Load a shipped preset by name, or a file by its path.

    Raises PresetError if it does not exist or is invalid.
    """
    return load_named(name, "preset", presets_folder(), read_preset)


def read_preset(path: Path) -> Preset:
    """Read a preset from a TOML file. Raises PresetError for unknown keys and invalid values."""
    return preset_of(tables_in(path), path)


def preset_of(tables: JsonMap, path: Path) -> Preset:
    """Make a preset from tables of TOML or JSON; `path` is their file, for messages."""
    allowed = rules()
    found: JsonDict = {}
    for key, value in _flat(path, tables, allowed).items():
        rule = allowed.get(key)
        if rule is None:
            near = _nearest(key, allowed)
            raise PresetError(f"{path}: {brief(key)} = {toml_text(value)} is not a setting: {near}")
        if not rule.allows(value):
            raise PresetError(f"{path}: {key} is {toml_text(value)} and must be {rule}")
        found[key] = value
    if REQUIRED not in found:
        raise PresetError(f"{path}: {REQUIRED} is missing; it must be {allowed[REQUIRED]}")
    name = found.pop(REQUIRED)
    names = tuple(name) if isinstance(name, list) else (name,)
    stage_tables = found.pop("model.stages", None)
    chain = names == (CHAIN,)
    if stage_tables is not None and not chain:
        raise PresetError(f'{path}: model.stages need model.name = "{CHAIN}"')
    if stage_tables is None and chain:
        raise PresetError(f'{path}: model.name = "{CHAIN}" needs {allowed["model.stages"]}')
    settings = {k.partition(".")[2]: v for k, v in found.items() if k.startswith("model.")}
    report = {k.partition(".")[2]: v for k, v in found.items() if k.startswith("report.")}
    if "logo" in report:
        report["logo"] = str(path.absolute().parent / report["logo"])
    own = ("model.", "report.")
    others = {k.rpartition(".")[2]: v for k, v in found.items() if not k.startswith(own)}
    stages = tuple(_stages(path, stage_tables or ()))
    if "more_columns" in others:
        others["more_columns"] = tuple(others["more_columns"])
    if "audience" in others:
        others["audience"] = as_audience(others["audience"])
    if "limits" in found:
        others["limits"] = limits_in(path, found["limits"], LimitTables())
    if "events" in found:
        others["triggers"] = _triggers_in(path, others.pop("events"))
    try:
        return Preset(names, settings, stages=stages, report=report, **others)
    except (LimitError, TriggerError) as refusal:
        raise PresetError(f"{path}: {refusal}") from refusal
    except PresetError as refusal:
        raise PresetError(f"{path}: model.{refusal}: leave it out") from refusal


def _takes_audience(name: str) -> bool:
    return name in catalog.entries() and "audience" in catalog.entry(name).readings_take


def _stages(path: Path, tables: Iterable[JsonMap]) -> Iterator[StageSettings]:
    for number, table in enumerate(tables, 1):
        arguments = {key: value for key, value in table.items() if key != "type"}
        stage = StageSettings(path, f"model.stages {number}:", table["type"], arguments)
        stage.kind()
        yield stage


def _triggers_in(path: Path, tables: Iterable[Any]) -> tuple[Trigger, ...]:
    found = []
    for number, table in enumerate(tables, 1):
        try:
            found.append(trigger_from_text(table) if isinstance(table, str) else trigger_of(table))
        except TriggerError as refusal:
            raise PresetError(f"{path}: events {number}: {refusal}") from refusal
    return tuple(found)


def _flat(path: Path, tables: Mapping[str, object], rules: Iterable[str]) -> JsonDict:
    """Settings by dotted name."""
    sections = sorted({key.partition(".")[0] for key in rules if "." in key})
    flat: dict[str, object] = {}
    for key, value in tables.items():
        if isinstance(value, dict) and key in rules:
            flat[key] = value
        elif key in sections:
            if not isinstance(value, dict):
                raise PresetError(
                    f"{path}: {key} is {toml_text(value)} and must be a section [{key}]"
                )
            flat |= {f"{key}.{inner}": v for inner, v in value.items()}
        elif isinstance(value, dict):
            names = ", ".join(f"[{name}]" for name in sections)
            raise PresetError(f"{path}: [{brief(key)}] is not a section: allowed are {names}")
        else:
            flat[key] = value
    return flat


def _nearest(key: str, rules: Mapping[str, object]) -> str:
    """A suggestion for an unknown key."""
    inner = key.rpartition(".")[2]
    stem = inner.partition("_")[0]
    inners = {known.rpartition(".")[2]: known for known in rules}
    near = [name for name in inners if name.partition("_")[0] == stem]
    near = near or difflib.get_close_matches(inner, inners, n=1)
    if near:
        meant = inners[near[0]]
        return f"did you mean {meant}, {rules[meant]}?"
    section = key.rpartition(".")[0]
    offered = [known for known in rules if known.rpartition(".")[0] == section]
    return f"allowed are {', '.join(offered)}"
