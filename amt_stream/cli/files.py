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
from amt_stream.sessions.files import drafted


def path_kind(path: Path) -> Literal["", "file", "folder", "other"]:
    """What a path is, or "" if it does not exist. Raises Mistake if that cannot be determined."""
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except OSError as error:
        raise Mistake(f"{path} cannot be read: {error.strerror}") from error
    if stat.S_ISDIR(mode):
        return "folder"
    return "file" if stat.S_ISREG(mode) else "other"


def refuse_no_folder(folder: Path, needs: str) -> None:
    """Raise Mistake where no folder can be; `needs` says what needs one."""
    there = next(path for path in (folder, *folder.absolute().parents) if path_kind(path))
    if path_kind(there) != "folder":
        raise Mistake(f"{there} is a file: {needs} a folder")


Identity = tuple[int, int]


def identities(paths: Iterable[Path]) -> set[Identity]:
    """The existing files among these, by device and inode."""
    return {_identity(path.stat()) for path in paths if path_kind(path)}


def _identity(found: os.stat_result) -> Identity:
    return found.st_dev, found.st_ino


def not_to_write(target: Path, force: bool, others: Collection[Identity] = ()) -> str:
    """Why a file must not be written: it is one of `others`, or it exists; else "".

    force: whether an existing file may be overwritten
    """
    kind = path_kind(target)
    if not kind:
        return ""
    if _identity(target.stat()) in others:
        return f"{target} is one of the files to analyze: name another one with --out"
    if kind != "file":
        what = "a folder" if kind == "folder" else "not a file"
        return f"{target} exists and is {what}: name another one"
    return "" if force else f"{target} exists: --force overwrites it"


@contextlib.contextmanager
def atomic_text_file(target: Path) -> Iterator[TextIO]:
    """Open a text file that gets its name once it is complete; an incomplete one is removed."""
    try:
        with whole_text_file(target, ending.undoing) as stream:
            yield stream
    except OSError as error:
        raise Mistake(f"{target} cannot be written: {why(error)}") from error


def write_bytes(target: Path, content: bytes) -> None:
    """Write a file, completely or not at all. Raises Mistake."""
    try:
        with drafted(target.with_name(f".{target.name}.{os.getpid()}.draft"), content) as draft:
            draft.replace(target)
    except OSError as error:
        raise Mistake(f"{target} cannot be written: {why(error)}") from error
