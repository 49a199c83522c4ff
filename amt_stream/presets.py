"""Settings by name: read and validated from TOML, built into a model and an engine's settings."""

import difflib
import inspect
import math
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from torch import nn

    from amt_stream.compose import Chain
    from amt_stream.streaming import Stage

DEFAULT = "moore2016"
METERS = ("moore2016", "gm2002", "zwicker", "bs1770", "spl")
"""Models that run side by side."""

IN_FULL_SCALE = {"bs1770"}
"""Those whose input is no pressure, so that they need no calibration."""

MODULATION_MODELS = ("king2019", "dau1997")
SETTINGS: dict[str, tuple[str, ...]] = {
    "moore2016": ("constants", "field", "ear_filter", "accuracy"),
    "gm2002": ("field", "ear_filter", "accuracy"),
    "zwicker": ("field",),
}
"""What can be set of each model."""

SEVERAL_STEP_MS = 10


class PresetError(ValueError):
    """A preset cannot be used; the message names file, key, value and what is allowed."""


@dataclass(frozen=True)
class Choice:
    """One of a few words."""

    words: tuple[str, ...]

    def __str__(self) -> str:
        return "one of " + ", ".join(f'"{word}"' for word in self.words)

    def allows(self, value: Any) -> bool:
        return value in self.words


@dataclass(frozen=True)
class Number:
    """A number within a range, a whole one where it must be."""

    low: float
    high: float
    unit: str
    whole: bool = False

    def __str__(self) -> str:
        kind = "a whole number" if self.whole else "a number"
        return f"{kind} from {self.low:g} to {self.high:g} {self.unit}"

    def allows(self, value: Any) -> bool:
        kinds = (int,) if self.whole else (int, float)
        # Python takes true for 1.
        return type(value) in kinds and math.isfinite(value) and self.low <= value <= self.high


@dataclass(frozen=True)
class Names(Choice):
    """One of a few words, or several of some."""

    several: tuple[str, ...] = ()

    def __str__(self) -> str:
        together = ", ".join(f'"{word}"' for word in self.several)
        return f"{super().__str__()}, or a list of several out of {together}"

    def allows(self, value: Any) -> bool:
        if not isinstance(value, list):
            return super().allows(value)
        known = all(word in self.several for word in value)
        return known and bool(value) and len(set(value)) == len(value)


@dataclass(frozen=True)
class Text:
    """Any words, for people."""

    def __str__(self) -> str:
        return "text in quotes"

    def allows(self, value: Any) -> bool:
        return isinstance(value, str)


@dataclass(frozen=True)
class Tables:
    """One or more tables, each of which has a type."""

    def __str__(self) -> str:
        return "one or more tables [[model.stages]], each with a type and its arguments"

    def allows(self, value: Any) -> bool:
        tables = isinstance(value, list) and all(isinstance(table, dict) for table in value)
        return tables and bool(value) and all(isinstance(t.get("type"), str) for t in value)


Rule = Choice | Number | Text | Tables

FIELDS = ("free", "diffuse", "eardrum")
RULES: dict[str, Rule] = {
    "description": Text(),
    "model.name": Names((*METERS, *MODULATION_MODELS, "chain"), METERS),
    "model.field": Choice(FIELDS),
    "model.ear_filter": Choice(("minimum", "linear")),
    "model.accuracy": Choice(("exact", "grouped")),
    "model.constants": Choice(("iso", "author")),
    "model.stages": Tables(),
    "engine.block_ms": Number(1, 1000, "ms"),
    "engine.run_in": Choice(("engine", "callback")),
    "engine.history_s": Number(1, 3600, "s"),
    "meter.step_ms": Number(1, 60000, "ms", whole=True),
}
REQUIRED = "model.name"


@dataclass(frozen=True)
class StageSettings:
    """One stage of a chain: what it is, the arguments it is made with, where that is written."""

    file: Path
    place: str
    name: str
    arguments: Mapping[str, Any]

    def refusal(self, why: str) -> PresetError:
        return PresetError(f"{self.file}: {self.place} {why}")

    def kind(self) -> "type[nn.Module]":
        """The class; raises PresetError where there is none, or an argument is not one of its."""
        name = f'type = "{self.name}"'
        found = stage_types().get(self.name) or _torch_module(self.name)
        if found is None:
            near = difflib.get_close_matches(self.name, stage_types(), n=1)
            remedy = f"did you mean {near[0]}?" if near else f"allowed are {_listed(stage_types())}"
            raise self.refusal(f"{name} is neither a stage nor a module of torch.nn: {remedy}")
        allowed = _arguments(found)
        for key, value in self.arguments.items():
            if key not in allowed:
                near = difflib.get_close_matches(key, allowed, n=1)
                remedy = f"did you mean {near[0]}?" if near else f"allowed are {_listed(allowed)}"
                raise self.refusal(f"{name}: {key} = {_shown(value)} is not an argument: {remedy}")
        return found

    def build(self, fs: Fraction) -> "nn.Module":
        """The stage for input at `fs` Hz, which its own `fs` is where none is written."""
        kind = self.kind()
        arguments = {key: _argument(value) for key, value in self.arguments.items()}
        if "fs" in _arguments(kind):
            arguments.setdefault("fs", int(fs) if fs.denominator == 1 else float(fs))
        try:
            return kind(**arguments)
        except (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError) as error:
            given = ", ".join(f"{key} = {_shown(v)}" for key, v in self.arguments.items())
            why = str(error).partition("\n")[0]
            raise self.refusal(
                f'type = "{self.name}" cannot be made with {given or "no arguments"}: {why}'
            ) from error


def stage_types() -> "dict[str, type[nn.Module]]":
    """Stages that a preset may name, by that name."""
    from amt_stream import compose, stages
    from amt_stream.streaming import Stage

    offered = {name: getattr(stages, name) for name in stages.__all__}
    offered["Delay"] = compose.Delay
    return {n: v for n, v in offered.items() if isinstance(v, type) and issubclass(v, Stage)}


def _torch_module(name: str) -> "type[nn.Module] | None":
    from torch import nn

    package, _, inner = name.rpartition(".")
    found = getattr(nn, inner, None) if package == "torch.nn" else None
    return found if isinstance(found, type) and issubclass(found, nn.Module) else None


def _arguments(kind: type) -> list[str]:
    """Names of the arguments; the dtype is that of the chain."""
    by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    found = inspect.signature(kind).parameters.values()
    return [p.name for p in found if p.kind in by_name and p.name not in ("dtype", "device")]


def _argument(value: Any) -> Any:
    """A value as Python has it: { low = 80, high = 8000 } is the range (80, 8000)."""
    return tuple(value[key] for key in RANGE) if _is_range(value) else value


RANGE = ("low", "high")


def _is_range(value: Any) -> bool:
    return isinstance(value, dict) and set(value) == set(RANGE)


@dataclass(frozen=True)
class Preset:
    """Settings of the model, the engine and the meter; what a file leaves out is as here."""

    names: tuple[str, ...] = (DEFAULT,)
    field: str = "free"
    ear_filter: str = "minimum"
    accuracy: str = "exact"
    constants: str = "iso"
    block_ms: float = 20.0
    run_in: str = "engine"
    history_s: float = 60.0
    step_ms: int = 100
    description: str = ""
    stages: tuple[StageSettings, ...] = ()
    uncertainty_db: float | None = None

    @property
    def name(self) -> str:
        """Its model, or the first of several."""
        return self.names[0]

    def with_names(self, names: tuple[str, ...]) -> "Preset":
        """The same with other models."""
        return replace(self, names=names, step_ms=SEVERAL_STEP_MS)

    def with_field(self, field: str | None) -> "Preset":
        """The same for another sound field; None leaves it."""
        return self if field is None else replace(self, field=field)

    def with_uncertainty(self, uncertainty_db: float | None) -> "Preset":
        """The same for a level known so well; it follows from the calibration, not from a file."""
        return replace(self, uncertainty_db=uncertainty_db)

    @property
    def shows(self) -> Literal["loudness", "modulation", "readings"]:
        """What there is to see of its models, if it is no chain."""
        if self.names == (DEFAULT,):
            return "loudness"
        return "modulation" if self.name in MODULATION_MODELS else "readings"

    def model(self, fs: int, specific_loudness: bool = False) -> "Stage":
        """A new model for sound at `fs` Hz: the one of its name, or the chain.

        Raises PresetError for stages that cannot be made, or do not fit together, at this rate.
        """
        if self.stages:
            return self._chain(fs)
        return self._model(self.name, fs, 2, specific_loudness)

    def models(self, fs: int, channels: int) -> "dict[str, Stage]":
        """New models by name, for so many channels of sound at `fs` Hz.

        Raises ValueError for one that there is not, at this rate or in this field.
        """
        return {n: self._model(n, fs, channels, False) for n in self.names}

    def _model(self, name: str, fs: int, channels: int, specific_loudness: bool) -> "Stage":
        from amt_stream import models, stages

        chosen: Any = {key: getattr(self, key) for key in SETTINGS.get(name, ())}
        if name == "moore2016":
            chosen |= {"specific_loudness": specific_loudness}
            return models.Moore2016(fs, **chosen, uncertainty_db=self.uncertainty_db)
        if name == "gm2002":
            return models.Glasberg2002(fs, **chosen)
        if name == "zwicker":
            return models.ZwickerTimeVarying(fs, **chosen)
        if name == "bs1770":
            return stages.BS1770(fs, channels)
        if name == "spl":
            return stages.SoundLevel(fs)
        return models.ModulationSpectrum(fs, name)

    def _chain(self, fs: int) -> "Chain":
        from amt_stream.compose import Chain

        stages: dict[str, nn.Module] = {}
        counts = Counter[str]()
        rate = Fraction(fs)
        for settings in self.stages:
            stage = settings.build(rate)
            name = settings.name.rpartition(".")[2].lower()
            counts[name] += 1
            stages[name if counts[name] == 1 else f"{name}_{counts[name]}"] = stage
            rate *= getattr(stage, "ratio", 1)
        try:
            return Chain(**stages).float()
        except (TypeError, ValueError) as error:
            raise PresetError(f"{self.stages[0].file}: model.stages: {error}") from error

    @property
    def engine_settings(self) -> dict[str, Any]:
        """Keyword arguments for `Engine`."""
        return {"block_ms": self.block_ms, "run_in": self.run_in, "history_s": self.history_s}

    @property
    def model_settings(self) -> dict[str, str]:
        """What has to be known of the models to read their numbers."""
        keys = dict.fromkeys(key for name in self.names for key in SETTINGS.get(name, ()))
        return {"model": ",".join(self.names), **{key: getattr(self, key) for key in keys}}


def presets_folder() -> Path:
    """Where the shipped presets are: inside the package when installed, beside it in the source."""
    package = Path(__file__).parent
    shipped = package / "_presets"
    return shipped if shipped.is_dir() else package.parent / "presets"


def shipped_presets() -> list[str]:
    """Names of the presets that come with the package."""
    return sorted(path.stem for path in presets_folder().glob("*.toml"))


def load_preset(name: str = DEFAULT) -> Preset:
    """A shipped preset by name, or one's own by the path of its file.

    Raises PresetError for one that is not there or not valid.
    """
    if name in shipped_presets():
        return read_preset(presets_folder() / f"{name}.toml")
    path = Path(name)
    if path.is_file():
        return read_preset(path)
    raise PresetError(
        f"there is no preset {name!r}: give {', '.join(shipped_presets())}, or the path of a "
        "TOML file"
    )


def read_preset(path: Path) -> Preset:
    """The preset in a TOML file; strict: what is unknown or out of range raises PresetError."""
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise PresetError(f"{path} cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise PresetError(f"{path} is not TOML: {error}") from error
    settings: dict[str, Any] = {}
    for key, value in _flat(path, tables).items():
        rule = RULES.get(key)
        if rule is None:
            raise PresetError(f"{path}: {key} = {_shown(value)} is not a setting: {_nearest(key)}")
        if not rule.allows(value):
            raise PresetError(f"{path}: {key} is {_shown(value)} and must be {rule}")
        settings[key.rpartition(".")[2]] = value
    if REQUIRED.rpartition(".")[2] not in settings:
        raise PresetError(f"{path}: {REQUIRED} is missing; it must be {RULES[REQUIRED]}")
    return Preset(**_chained(path, settings))


def _chained(path: Path, settings: dict[str, Any]) -> dict[str, Any]:
    """`settings` with the stages, which a chain has and nothing else; a chain has no other."""
    name = settings.pop("name")
    names = tuple(name) if isinstance(name, list) else (name,)
    settings["names"] = names
    allowed = {key for name in names for key in SETTINGS.get(name, ())}
    where = "a chain" if names == ("chain",) else ", ".join(names)
    for key in SETTINGS[DEFAULT]:
        if key in settings and key not in allowed:
            raise PresetError(
                f"{path}: model.{key} = {_shown(settings[key])} means nothing in {where}: "
                "leave it out"
            )
    if names != ("chain",):
        if "stages" in settings:
            raise PresetError(f'{path}: model.stages need model.name = "chain"')
        return settings
    if "stages" not in settings:
        raise PresetError(f'{path}: model.name = "chain" needs {RULES["model.stages"]}')
    stages = []
    for number, table in enumerate(settings["stages"], 1):
        arguments = {key: value for key, value in table.items() if key != "type"}
        stage = StageSettings(path, f"model.stages {number}:", table["type"], arguments)
        stage.kind()
        stages.append(stage)
    return {**settings, "stages": tuple(stages)}


def _flat(path: Path, tables: Mapping[str, Any]) -> dict[str, Any]:
    """Settings by their dotted name."""
    sections = sorted({key.partition(".")[0] for key in RULES if "." in key})
    flat: dict[str, Any] = {}
    for key, value in tables.items():
        if key in sections:
            if not isinstance(value, dict):
                raise PresetError(f"{path}: {key} is {_shown(value)} and must be a section [{key}]")
            flat |= {f"{key}.{inner}": v for inner, v in value.items()}
        elif isinstance(value, dict):
            names = ", ".join(f"[{name}]" for name in sections)
            raise PresetError(f"{path}: [{key}] is not a section: allowed are {names}")
        else:
            flat[key] = value
    return flat


def _nearest(key: str) -> str:
    """What somebody who wrote `key` may have meant."""
    inner = key.rpartition(".")[2]
    stem = inner.partition("_")[0]
    inners = {known.rpartition(".")[2]: known for known in RULES}
    near = [name for name in inners if name.partition("_")[0] == stem]
    near = near or difflib.get_close_matches(inner, inners, n=1)
    if near:
        meant = inners[near[0]]
        return f"did you mean {meant}, {RULES[meant]}?"
    section = key.rpartition(".")[0]
    offered = [known for known in RULES if known.rpartition(".")[0] == section]
    return f"allowed are {', '.join(offered)}"


def _shown(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value).lower()


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))
