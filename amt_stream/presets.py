"""Settings by name: read and validated from TOML, built into a model and an engine's settings."""

import difflib
import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from amt_stream.models import Moore2016

DEFAULT = "moore2016"


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
class Text:
    """Any words, for people."""

    def __str__(self) -> str:
        return "text in quotes"

    def allows(self, value: Any) -> bool:
        return isinstance(value, str)


Rule = Choice | Number | Text

FIELDS = ("free", "diffuse", "eardrum")
RULES: dict[str, Rule] = {
    "description": Text(),
    "model.name": Choice(("moore2016",)),
    "model.field": Choice(FIELDS),
    "model.ear_filter": Choice(("minimum", "linear")),
    "model.accuracy": Choice(("exact", "grouped")),
    "model.constants": Choice(("iso", "author")),
    "engine.block_ms": Number(1, 1000, "ms"),
    "engine.run_in": Choice(("engine", "callback")),
    "engine.history_s": Number(1, 3600, "s"),
    "meter.step_ms": Number(1, 60000, "ms", whole=True),
}
REQUIRED = "model.name"


@dataclass(frozen=True)
class Preset:
    """Settings of the model, the engine and the meter; what a file leaves out is as here."""

    name: str = "moore2016"
    field: str = "free"
    ear_filter: str = "minimum"
    accuracy: str = "exact"
    constants: str = "iso"
    block_ms: float = 20.0
    run_in: str = "engine"
    history_s: float = 60.0
    step_ms: int = 100
    description: str = ""

    def with_field(self, field: str | None) -> "Preset":
        """The same for another sound field; None leaves it."""
        return self if field is None else replace(self, field=field)

    def model(self, fs: int, specific_loudness: bool = False) -> "Moore2016":
        """A new model for sound at `fs` Hz."""
        from amt_stream.models import Moore2016

        chosen: Any = {
            "field": self.field,
            "ear_filter": self.ear_filter,
            "accuracy": self.accuracy,
            "constants": self.constants,
        }
        return Moore2016(fs=fs, **chosen, specific_loudness=specific_loudness)

    @property
    def engine_settings(self) -> dict[str, Any]:
        """Keyword arguments for `Engine`."""
        return {"block_ms": self.block_ms, "run_in": self.run_in, "history_s": self.history_s}

    @property
    def model_settings(self) -> dict[str, str]:
        """What has to be known of the model to read its numbers."""
        keys = ("constants", "field", "ear_filter", "accuracy")
        return {"model": self.name, **{key: getattr(self, key) for key in keys}}


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
    return Preset(**settings)


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
