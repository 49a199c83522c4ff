"""Files that a command writes."""

import contextlib
import os
import stat
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Literal, TextIO

from amt_stream.cli.ending import ending
from amt_stream.cli.messages import Mistake
from amt_stream.core.files import whole_text_file, why


def path_kind(path: Path) -> Literal["", "file", "folder", "other"]:
    """What stands at a path; "" where nothing does. Raises Mistake where that cannot be known."""
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except OSError as error:
        raise Mistake(f"{path} cannot be looked at: {error.strerror}") from error
    if stat.S_ISDIR(mode):
        return "folder"
    return "file" if stat.S_ISREG(mode) else "other"


Identity = tuple[int, int]


def identities(paths: Iterable[Path]) -> set[Identity]:
    """The files that there are among these, each told by its device and its number there."""
    return {_identity(path.stat()) for path in paths if path_kind(path)}


def _identity(found: os.stat_result) -> Identity:
    return found.st_dev, found.st_ino


def not_to_write(target: Path, force: bool, others: Collection[Identity] = ()) -> str:
    """Why a file must not be written: it is one of `others`, or it exists; else "".

    force: whether an older file may go
    """
    kind = path_kind(target)
    if not kind:
        return ""
    if _identity(target.stat()) in others:
        return f"{target} is a file to be analyzed: name another one with --out"
    if kind != "file":
        what = "a folder" if kind == "folder" else "no file"
        return f"{target} exists and is {what}: name another one"
    return "" if force else f"{target} exists: say --force to overwrite it"


@contextlib.contextmanager
def atomic_text_file(target: Path) -> Iterator[TextIO]:
    """A text file that gets its name once it is complete; nothing half written stays."""
    try:
        with whole_text_file(target, ending.undoing) as stream:
            yield stream
    except OSError as error:
        raise Mistake(f"{target} cannot be written: {why(error)}") from error
