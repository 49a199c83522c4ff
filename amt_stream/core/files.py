"""Files that are read within bounds, and files that get their name once they are complete."""

import contextlib
import hashlib
import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Self, TextIO

if sys.platform != "win32":
    import fcntl

LONGEST_NAME = 255
"""Bytes of a name in a folder."""

SMALL = 1 << 20
"""Bytes of a text that is read at once: far more than any settings that people write."""


class NotThatFile(Exception):
    """What a path names cannot be read as a file; the message goes on where the path ended.

    `errno` is the system's number where it was the system that refused.
    """

    def __init__(self, words: str, errno: int | None = None) -> None:
        super().__init__(words)
        self.errno = errno

    @classmethod
    def refused(cls, error: Exception) -> Self:
        """Where a call of the system failed."""
        return cls(f"cannot be read: {why(error)}", getattr(error, "errno", None))


def require_file(path: Path) -> os.stat_result:
    """What the system knows of a file with bytes in it, whose length is the length of its content.

    Raises NotThatFile for a folder, a named pipe, a device, a socket, and what cannot be looked at.
    """
    try:
        found = path.stat()
    except (OSError, ValueError) as error:  # ValueError: of a name that holds a zero
        raise NotThatFile.refused(error) from error
    for is_one, what in _KINDS:
        if is_one(found.st_mode):
            raise NotThatFile(f"is {what}")
    return found


_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
)


def why(error: Exception) -> str:
    """What went wrong with a file, in words."""
    return getattr(error, "strerror", None) or str(error)


def small_text(path: Path, most: int = SMALL) -> str:
    """The text of a file of no more than `most` bytes, in UTF-8.

    Raises NotThatFile for what is no such file, UnicodeDecodeError for another encoding.
    """
    return small_content(path, most).decode("utf-8")


def secret_text(path: Path) -> str:
    """The text of a small file that not everybody on this computer can read or write.

    Raises what `small_text` does, and NotThatFile where others may read or write it.
    """
    mode = require_file(path).st_mode
    if sys.platform != "win32" and mode & (stat.S_IROTH | stat.S_IWOTH):
        raise NotThatFile(
            f"holds a secret, and others can read or write it (mode {stat.S_IMODE(mode):o}): "
            f"chmod 600 {path}"
        )
    return small_text(path)


def small_content(path: Path, most: int = SMALL) -> bytes:
    """The bytes of a file of no more than `most`. Raises NotThatFile for what is no such file."""
    require_file(path)
    try:
        with path.open("rb") as stream:
            content = stream.read(most + 1)
    except OSError as error:
        raise NotThatFile.refused(error) from error
    if len(content) > most:
        raise NotThatFile(f"has more than {most} bytes")
    return content


@contextlib.contextmanager
def whole_text_file(
    target: Path,
    undoing: Callable[[Callable[[], object]], AbstractContextManager[None]] | None = None,
) -> Iterator[TextIO]:
    """A text file that gets its name once it is complete and on the disk.

    Until then it is a hidden draft beside its place, which goes if it is not completed; one that a
    killed process left behind goes with the next file of that name. Raises OSError.

    undoing: is given what removes the draft, while there is one
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    _remove_left_behind(target)
    draft, stream = _new_draft(target)
    held = contextlib.nullcontext() if undoing is None else undoing(draft.unlink)
    try:
        with held, stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
            if sys.platform != "win32":  # there an open file cannot be renamed
                draft.replace(target)
        if sys.platform == "win32":
            draft.replace(target)
        sync_folder(target.parent)
    finally:
        with contextlib.suppress(OSError):
            draft.unlink()


def _stem(target: Path) -> str:
    """How the names of a file's drafts begin: short enough for what comes behind it."""
    name = os.fsencode(target.name)
    if len(name) + 32 > LONGEST_NAME:
        name = name[:128] + hashlib.sha256(name).hexdigest()[:16].encode()
    return f".{os.fsdecode(name)}."


def _new_draft(target: Path) -> tuple[Path, TextIO]:
    """A file that was not there before, so neither a link nor anybody else's, and locked."""
    while True:
        draft = target.with_name(f"{_stem(target)}{os.getpid()}-{os.urandom(4).hex()}.draft")
        stream = draft.open("x", encoding="utf-8", newline="\n")
        if _locked(stream.fileno()):
            return draft, stream
        stream.close()  # before it was locked, another run took it for one that was left behind


def _remove_left_behind(target: Path) -> None:
    """Remove the drafts of a file that no process holds any more."""
    with contextlib.suppress(OSError):
        for path in target.parent.iterdir():
            if path.name.startswith(_stem(target)) and path.suffix == ".draft":
                _remove_unless_held(path)


def _remove_unless_held(draft: Path) -> None:
    with contextlib.suppress(OSError):
        if sys.platform == "win32":  # nobody removes a file there that is open
            draft.unlink()
            return
        held = os.open(draft, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            draft.unlink()
        finally:
            os.close(held)


def _locked(number: int) -> bool:
    """Whether an open file is still there once it is locked, where files can be locked."""
    if sys.platform != "win32":
        with contextlib.suppress(OSError):
            fcntl.flock(number, fcntl.LOCK_EX)
    return os.fstat(number).st_nlink > 0


def sync_folder(folder: Path) -> None:
    """Keep the names in a folder through a loss of power, where the system can."""
    with contextlib.suppress(OSError):
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)
