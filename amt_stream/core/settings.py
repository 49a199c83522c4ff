"""Files of settings: where those are that ship, and how one of them is read."""

import re
import tomllib
from pathlib import Path

from amt_stream.core.errors import Refusal
from amt_stream.core.files import NotThatFile, small_text
from amt_stream.core.json_types import JsonDict

MOST_PARTS = 16
"""Of a key with dots in it: the parser takes time and memory by the square of their number."""

_LONG_KEY = re.compile(
    r"""(?<![\w-])(?:(?:[\w-]++|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+)"""
    rf"{{{MOST_PARTS}}}"
)


class PresetError(Refusal, ValueError):
    """A preset cannot be used; the message names file, key, value and what is allowed."""


def presets_folder() -> Path:
    """Where the shipped presets are: inside the package when installed, beside it in the source."""
    package = Path(__file__).parents[1]
    shipped = package / "_presets"
    return shipped if shipped.is_dir() else package.parent / "presets"


def tables_in(path: Path) -> JsonDict:
    """The tables of a TOML file; raises PresetError for a file that is none."""
    try:
        text = small_text(path)
        if _LONG_KEY.search(text):
            raise ValueError(f"a key has more than {MOST_PARTS} parts")
        return tomllib.loads(text)
    except NotThatFile as error:
        raise PresetError(f"{path} {error}") from error
    except ValueError as error:  # of TOML, of UTF-8, of a number with too many digits
        raise PresetError(f"{path} is not TOML: {error}") from error
    except RecursionError as error:
        raise PresetError(f"{path} is nested too deeply for a preset") from error
