"""Files of a session: they are new, grow, and are complete at any time or repaired at the next run.

Foreign files are never overwritten.
"""

import contextlib
import errno
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from amt_stream.core.errors import Refusal
from amt_stream.core.files import sync_folder, why
from amt_stream.core.safe_text import sentence

PRIVATE = 0o600
"""Mode of sound files, which may contain speech."""

TORN = ".torn"
"""Ending of files for incomplete last lines."""

O_BINARY = getattr(os, "O_BINARY", 0)
O_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
LONGEST_LINE = 1 << 20


class SessionError(Refusal, RuntimeError):
    """A session cannot be begun, continued or read."""


@contextlib.contextmanager
def as_session_error(path: Path, cannot: str) -> Iterator[None]:
    """Turn errors of the system into SessionError, "PATH cannot be written: ..."."""
    try:
        yield
    except (OSError, ValueError) as error:  # ValueError: an invalid path
        raise SessionError(f"{path} cannot be {cannot}: {sentence(why(error))}") from error


class GrowingFile:
    """An append-only file; each `write` is on the disk completely, or not at all.

    Raises OSError, for a link too; the next `write` begins at the end of the last complete one.
    """

    def __init__(self, path: Path, size: int | None = None, mode: int = 0o644) -> None:
        """Make a new file with this mode, or continue one of which `size` bytes are complete."""
        new = os.O_CREAT | os.O_EXCL if size is None else 0
        self.path, self.size = path, size or 0
        self.digest = hashlib.sha256()
        self._clean = True
        self._descriptor = os.open(path, os.O_RDWR | new | O_BINARY | O_NOFOLLOW, mode)
        if size is None:
            sync_folder(path.parent)

    def fileno(self) -> int:
        return self._descriptor

    @property
    def there(self) -> bool:
        """Whether its path still names this file."""
        return same_file(self.path, os.fstat(self._descriptor))

    def write(self, data: bytes) -> None:
        if not self.there:
            raise FileNotFoundError(errno.ENOENT, "it was deleted", str(self.path))
        if not self._clean:
            os.ftruncate(self._descriptor, self.size)
        self._clean = False
        self.put(data, self.size)
        os.fsync(self._descriptor)
        self._clean = True
        self.size += len(data)
        self.digest.update(data)

    def put(self, data: bytes, at: int) -> None:
        """Write bytes at a position, without counting them in the size."""
        os.lseek(self._descriptor, at, os.SEEK_SET)
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self._descriptor, rest) :]

    def sync(self) -> None:
        os.fsync(self._descriptor)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            if not self._clean:
                os.ftruncate(self._descriptor, self.size)
        os.close(self._descriptor)


def held_elsewhere(descriptor: int, shared: bool = False) -> bool:
    """Whether another process has locked a file; else this one locks it until it is closed.

    shared: whether others may have a shared lock too
    """
    try:
        import fcntl
    except ModuleNotFoundError:  # Windows
        return False
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # a file system without locks
        return False
    return False


def same_file(path: Path, before: os.stat_result) -> bool:
    """Whether a path still names the same file."""
    try:
        return os.path.samestat(path.stat(), before)
    except OSError:
        return False


def new_name(folder: Path, stem: str, *endings: str) -> Path:
    """The first free name of STEM, STEM-2, ..., unused with any ending; with the first one."""
    number = 1
    while True:
        name = stem if number == 1 else f"{stem}-{number}"
        paths = [folder / f"{name}{ending}" for ending in endings]
        if not any(map(os.path.lexists, paths)):
            return paths[0]
        number += 1


def write_whole(path: Path, text: str) -> bytes:
    """Write a new file, which gets its name once it is complete, and return its bytes."""
    data = text.encode()
    with drafted(path.with_name(f".{path.name}.{os.getpid()}"), data) as draft:
        give_name(draft, path)
    return data


def give_name(draft: Path, path: Path) -> None:
    """Give a draft its name, if it is free. Raises OSError."""
    # A link fails if the name is taken; a rename would overwrite it.
    try:
        os.link(draft, path)
    except OSError as error:
        if isinstance(error, FileExistsError) or path.exists():
            raise
        draft.rename(path)


@contextlib.contextmanager
def drafted(draft: Path, data: bytes, mode: int = 0o644) -> Iterator[Path]:
    """A complete temporary file, to be renamed within the `with` block. Raises OSError.

    The draft of a killed process is replaced.
    """
    draft.unlink(missing_ok=True)
    try:
        file = GrowingFile(draft, mode=mode)
        try:
            file.write(data)
        finally:
            file.close()
        yield draft
        sync_folder(draft.parent)
    finally:
        with contextlib.suppress(OSError):
            draft.unlink()


def sha256_of(path: Path, head: int = 0) -> str:
    """The hash of a file, its first `head` bytes last: a header that changed as the file grew."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        begin = file.read(head)
        while block := file.read(1 << 20):
            digest.update(block)
    digest.update(begin)
    return digest.hexdigest()


def set_aside(path: Path, size: int) -> Path:
    """Move the bytes after the first `size` to a separate file, and return its path."""
    aside = new_name(path.parent, path.name, TORN)
    with path.open("rb") as file:
        file.seek(size)
        torn = GrowingFile(aside)
        try:
            while block := file.read(1 << 20):
                torn.write(block)
        finally:
            torn.close()
    if size:
        os.truncate(path, size)
    else:
        path.unlink()
    sync_folder(path.parent)
    return aside
