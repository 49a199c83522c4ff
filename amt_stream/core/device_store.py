"""The user's stored device settings: files with one line of JSON per channel of a device."""

import errno
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TypeVar

from amt_stream.core.errors import Refusal
from amt_stream.core.files import NotThatFile, small_text, whole_text_file, why
from amt_stream.core.json_types import JsonDict

T = TypeVar("T")


class CalibrationError(Refusal, RuntimeError):
    """The stored device settings cannot be used; the message says where and why."""


def kept_path(name: str) -> Path:
    """The path of the user's settings file of this name."""
    from platformdirs import user_config_dir

    return Path(user_config_dir("amt_stream", appauthor=False)) / name


def read_kept(path: Path, made: Callable[[JsonDict], T]) -> list[T]:
    """Read a file, converting each line by `made`; an empty list if there is no file.

    Raises CalibrationError with file and line if `made` raises ValueError or TypeError.
    """
    try:
        lines = small_text(path).split("\n")
    except NotThatFile as error:
        if error.errno == errno.ENOENT:
            return []
        raise CalibrationError(f"{path} {error}") from error
    except UnicodeDecodeError as error:
        raise CalibrationError(f"{path} cannot be read: {error}") from error
    found = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                found.append(made(_parsed(line)))
            except (TypeError, ValueError) as error:
                raise CalibrationError(
                    f"{path}, line {number}: {error}; correct the line, or remove it and "
                    "calibrate again"
                ) from error
    return found


def write_kept(path: Path, lines: Iterable[Mapping[str, object]]) -> Path:
    """Write one line per record, atomically; raises CalibrationError if it cannot be written."""
    try:
        with whole_text_file(path) as stream:
            stream.writelines(json.dumps(line) + "\n" for line in lines)
    except OSError as error:
        raise CalibrationError(f"{path} cannot be written: {why(error)}") from error
    return path


def _parsed(line: str) -> JsonDict:
    try:
        given: object = json.loads(line)
    except json.JSONDecodeError as error:
        raise ValueError(f"this is not JSON ({error.msg} at column {error.colno})") from error
    except RecursionError as error:
        raise ValueError("this is nested too deeply for a record in braces") from error
    if not isinstance(given, dict):
        raise ValueError("this is not a record in braces")
    return given
