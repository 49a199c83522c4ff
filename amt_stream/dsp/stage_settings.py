"""Stages and modules of torch by their names and arguments, as files have them."""

import difflib
import inspect
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amt_stream.core.json_types import JsonMap
from amt_stream.core.safe_text import brief, toml_text
from amt_stream.core.settings import PresetError

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True)
class StageSettings:
    """A stage of a chain: its type, its arguments, and its place in the file."""

    file: Path
    place: str
    name: str
    arguments: JsonMap

    def refusal(self, why: str) -> PresetError:
        return PresetError(f"{self.file}: {self.place} {why}")

    def kind(self) -> "type[nn.Module]":
        """The class. Raises PresetError if there is none, or it lacks an argument."""
        name = f'type = "{brief(self.name)}"'
        found = stage_types().get(self.name) or _torch_module(self.name)
        if found is None:
            remedy = _remedy(self.name, stage_types())
            raise self.refusal(f"{name} is neither a stage nor a module of torch.nn: {remedy}")
        allowed = _arguments(found)
        for key, value in self.arguments.items():
            if key not in allowed:
                shown, remedy = f"{brief(key)} = {toml_text(value)}", _remedy(key, allowed)
                raise self.refusal(f"{name}: {shown} is not an argument: {remedy}")
        return found

    def build(self, fs: Fraction) -> "nn.Module":
        """Make the stage for input at `fs` Hz, which is also its argument `fs` by default."""
        kind = self.kind()
        arguments = {key: _argument(value) for key, value in self.arguments.items()}
        if "fs" in _arguments(kind):
            arguments.setdefault("fs", int(fs) if fs.denominator == 1 else float(fs))
        try:
            return kind(**arguments)
        except (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError) as error:
            given = ", ".join(f"{key} = {toml_text(v)}" for key, v in self.arguments.items())
            why = str(error).partition("\n")[0]
            raise self.refusal(
                f'type = "{self.name}" cannot be made with {given or "no arguments"}: {why}'
            ) from error


def _remedy(name: str, allowed: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, allowed, n=1)
    return f"did you mean {near[0]}?" if near else f"allowed are {', '.join(sorted(allowed))}"


def stage_types() -> "dict[str, type[nn.Module]]":
    """Stages by the name that presets use."""
    from amt_stream.dsp import compose, stages
    from amt_stream.dsp.streaming import Stage

    offered = {name: getattr(stages, name) for name in dir(stages)}
    offered["Delay"] = compose.Delay
    return {n: v for n, v in offered.items() if isinstance(v, type) and issubclass(v, Stage)}


def _torch_module(name: str) -> "type[nn.Module] | None":
    from torch import nn

    package, _, inner = name.rpartition(".")
    found = getattr(nn, inner, None) if package == "torch.nn" else None
    return found if isinstance(found, type) and issubclass(found, nn.Module) else None


def _arguments(kind: type) -> list[str]:
    """Names of the arguments without dtype, which is that of the chain."""
    by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    found = inspect.signature(kind).parameters.values()
    return [p.name for p in found if p.kind in by_name and p.name not in ("dtype", "device")]


def _argument(value: Any) -> Any:
    """A value for Python: { low = 80, high = 8000 } is the range (80, 8000)."""
    return tuple(value[key] for key in RANGE) if _is_range(value) else value


RANGE = ("low", "high")


def _is_range(value: object) -> bool:
    return isinstance(value, dict) and set(value) == set(RANGE)
