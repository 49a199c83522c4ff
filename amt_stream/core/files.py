"""Bounded reads, and files that appear under their name only when complete."""

import codecs
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
"""Bytes in a file name."""

SMALL = 1 << 20
"""Most bytes read at once: far more than any handwritten settings."""


class NotThatFile(Exception):
    """A path does not name a readable file; the message continues a sentence begun by the path.

    `errno` is the system's error number, or None.
    """

    def __init__(self, words: str, errno: int | None = None) -> None:
        super().__init__(words)
        self.errno = errno

    @classmethod
    def refused(cls, error: Exception) -> Self:
        """From the error of a failed system call."""
        return cls(f"cannot be read: {why(error)}", getattr(error, "errno", None))


def require_file(path: Path) -> os.stat_result:
    """The `stat` of a regular file.

    Raises NotThatFile for a folder, pipe, device or socket, and if `stat` fails.
    """
    try:
        found = path.stat()
    except (OSError, ValueError) as error:  # ValueError: the name contains a NUL
        raise NotThatFile.refused(error) from error
    for is_one, what in _KINDS:
        if is_one(found.st_mode):
            raise NotThatFile(f"is {what}")
    return found


def is_pipe(path: Path) -> bool:
    """Whether a path is that of a pipe, whose bytes come only once."""
    try:
        return stat.S_ISFIFO(path.stat().st_mode)
    except (OSError, ValueError):
        return False


_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
)


def why(error: Exception) -> str:
    """The reason for a file error, in words."""
    return getattr(error, "strerror", None) or str(error)


def small_text(path: Path, most: int = SMALL) -> str:
    """The text of a file of at most `most` bytes, `decoded`.

    Raises NotThatFile for any other file, UnicodeDecodeError for another encoding.
    """
    return decoded(small_content(path, most))


def encoding_of(begin: bytes) -> str:
    """The encoding that the first bytes of a text name by a byte order mark, else UTF-8."""
    return "utf-16" if begin.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig"


def decoded(content: bytes, errors: str = "strict") -> str:
    """Text as editors and spreadsheets save it: UTF-8, UTF-16 with a byte order mark, or cp1252.

    Text that is not UTF-8 is in cp1252, the code page of Windows in Western languages.

    errors: how to treat bytes without a character, as for `bytes.decode`

    Raises UnicodeDecodeError for other encodings.
    """
    encoding = encoding_of(content)
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as other:
        if encoding == "utf-16":
            return content.decode(encoding, errors)
        try:
            return content.decode("cp1252", errors)
        except UnicodeDecodeError:
            raise other from None


def secret_text(path: Path) -> str:
    """The text of a small file that other users cannot read or write.

    Raises as `small_text` does, and NotThatFile if others can read or write it.
    """
    mode = require_file(path).st_mode
    if sys.platform != "win32" and mode & (stat.S_IROTH | stat.S_IWOTH):
        raise NotThatFile(
            f"holds a secret, and others can read or write it (mode {stat.S_IMODE(mode):o}): "
            f"chmod 600 {path}"
        )
    return small_text(path)


def small_content(path: Path, most: int = SMALL) -> bytes:
    """The bytes of a file of at most `most` bytes; raises NotThatFile for any other file."""
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
    """Open a text file for writing that appears under its name only when complete and on disk.

    Until then it is a hidden draft in the same folder, removed if writing fails. A draft that a
    killed process left behind is removed when the same file is next written. Raises OSError.

    undoing: entered with a function that removes the draft, for as long as the draft exists
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
            if sys.platform != "win32":  # Windows cannot rename an open file
                draft.replace(target)
        if sys.platform == "win32":
            draft.replace(target)
        sync_folder(target.parent)
    finally:
        with contextlib.suppress(OSError):
            draft.unlink()


def _stem(target: Path) -> str:
    """The prefix of a file's draft names, short enough for the rest of the name to fit."""
    name = os.fsencode(target.name)
    if len(name) + 32 > LONGEST_NAME:
        name = name[:128] + hashlib.sha256(name).hexdigest()[:16].encode()
    return f".{os.fsdecode(name)}."


def _new_draft(target: Path) -> tuple[Path, TextIO]:
    """A new, locked file. It did not exist before, so it is neither a link nor another user's."""
    while True:
        draft = target.with_name(f"{_stem(target)}{os.getpid()}-{os.urandom(4).hex()}.draft")
        stream = draft.open("x", encoding="utf-8", newline="\n")
        if _locked(stream.fileno()):
            return draft, stream
        stream.close()  # another process removed it, as a leftover, before it was locked


def _remove_left_behind(target: Path) -> None:
    """Remove drafts of a file that no process holds."""
    with contextlib.suppress(OSError):
        for path in target.parent.iterdir():
            if path.name.startswith(_stem(target)) and path.suffix == ".draft":
                _remove_unless_held(path)


def _remove_unless_held(draft: Path) -> None:
    with contextlib.suppress(OSError):
        if sys.platform == "win32":  # Windows refuses to remove an open file
            draft.unlink()
            return
        held = os.open(draft, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            draft.unlink()
        finally:
            os.close(held)


def _locked(number: int) -> bool:
    """Lock an open file, where the system can; whether the file still exists afterwards."""
    if sys.platform != "win32":
        with contextlib.suppress(OSError):
            fcntl.flock(number, fcntl.LOCK_EX)
    return os.fstat(number).st_nlink > 0


def sync_folder(folder: Path) -> None:
    """Flush a folder's entries to disk, where the system can."""
    with contextlib.suppress(OSError):
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)
