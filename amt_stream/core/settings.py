"""Settings files: where the shipped presets are, and how a TOML file is read."""

import errno
import json
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from amt_stream.core.errors import Refusal
from amt_stream.core.files import NotThatFile, small_text, whole_text_file
from amt_stream.core.json_types import JsonDict, JsonMap
from amt_stream.core.safe_text import brief

MOST_PARTS = 16
"""Most parts of a dotted key: the parser's time and memory grow with their square."""

_LONG_KEY = re.compile(
    r"""(?<![\w-])(?:(?:[\w-]++|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+)"""
    rf"{{{MOST_PARTS}}}"
)


Read = TypeVar("Read")


class PresetError(Refusal, ValueError):
    """A preset cannot be used; the message names the file, key, value and what is allowed."""


def presets_folder() -> Path:
    """The folder of the shipped presets: in the installed package, or beside it in the source."""
    package = Path(__file__).parents[1]
    shipped = package / "_presets"
    return shipped if shipped.is_dir() else package.parent / "presets"


def names_in(folder: Path) -> list[str]:
    """Names of the TOML files in a folder."""
    return sorted(path.stem for path in folder.glob("*.toml"))


def load_named(name: str, kind: str, folder: Path, read: Callable[[Path], Read]) -> Read:
    """Read a shipped file by name, or a file by its path.

    Raises PresetError if it does not exist or is invalid.
    """
    shipped = names_in(folder)
    try:
        if name:
            return read(folder / f"{name}.toml" if name in shipped else Path(name))
    except PresetError as error:
        if getattr(error.__cause__, "errno", None) != errno.ENOENT:
            raise
    raise PresetError(
        f"there is no {kind} {brief(name)!r}: give {', '.join(shipped)}, or the path of a TOML file"
    )


def tables_in(path: Path) -> JsonDict:
    """Parse a TOML file; raises PresetError if it is not valid TOML."""
    try:
        text = small_text(path)
        if _LONG_KEY.search(text):
            raise ValueError(f"a key has more than {MOST_PARTS} parts")
        return tomllib.loads(text)
    except NotThatFile as error:
        raise PresetError(f"{path} {error}") from error
    except ValueError as error:  # invalid TOML or text, or a number with too many digits
        windows = ": write a path as C:/folder, or in 'single quotes'"
        is_path = any(words in str(error) for words in ("Unescaped '\\'", "hex value"))
        raise PresetError(f"{path} is not TOML: {error}{windows if is_path else ''}") from error
    except RecursionError as error:
        raise PresetError(f"{path} is nested too deeply for a preset") from error


def write_tables(path: Path, tables: JsonMap) -> None:
    """Write tables of settings as TOML, as `tables_in` reads them; None is left out.

    Raises OSError.
    """
    plain = [f"{_toml(key)} = {_toml(v)}" for key, v in tables.items() if not isinstance(v, dict)]
    sections = [(key, v) for key, v in tables.items() if isinstance(v, dict)]
    for name, section in sections:
        plain += ["", f"[{_toml(name)}]"]
        plain += [f"{_toml(key)} = {_toml(v)}" for key, v in section.items() if v is not None]
    with whole_text_file(path) as stream:
        stream.write("\n".join(plain) + "\n")


def _toml(value: object) -> str:
    """A value of TOML on one line; its strings, numbers and lists are those of JSON."""
    if isinstance(value, dict):
        pairs = (f"{_toml(key)} = {_toml(one)}" for key, one in value.items() if one is not None)
        return f"{{ {', '.join(pairs)} }}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_toml, value))}]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
