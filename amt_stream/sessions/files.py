"""Files of a session: each is made new, grows, and is whole at any moment or put right at the next.

Nothing here overwrites what it did not write.
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
"""Mode of a file with sound, which can hold what people say."""

TORN = ".torn"
"""Ending of what was moved out of a file because its last line was not whole."""

O_BINARY = getattr(os, "O_BINARY", 0)
O_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
LONGEST_LINE = 1 << 20


class SessionError(Refusal, RuntimeError):
    """A session cannot be begun, continued or read; the message says why in one sentence."""


@contextlib.contextmanager
def as_session_error(path: Path, cannot: str) -> Iterator[None]:
    """SessionError in place of what the system says, "PATH cannot be written: ..."."""
    try:
        yield
    except (OSError, ValueError) as error:  # a ValueError is of a name that is none
        raise SessionError(f"{path} cannot be {cannot}: {sentence(why(error))}") from error


class GrowingFile:
    """A file that only grows; what `write` was given is in it and on the disk, or none of it.

    Raises OSError, for a link too; the next `write` begins where the last whole one has ended.
    """

    def __init__(self, path: Path, size: int | None = None, mode: int = 0o644) -> None:
        """Make it new, for whom `mode` says; or go on with one of which `size` bytes are whole."""
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
        """Whether its name still is that of this file."""
        return same_file(self.path, self._descriptor)

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
        """Write these bytes at that place, without counting them."""
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


def held_elsewhere(descriptor: int) -> bool:
    """Whether another process holds the lock of a file; else this one does until it is closed."""
    try:
        import fcntl
    except ModuleNotFoundError:  # Windows
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # a file system without locks
        return False
    return False


def same_file(path: Path, descriptor: int) -> bool:
    """Whether a name is that of an open file."""
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except OSError:
        return False


def new_name(folder: Path, stem: str, *endings: str) -> Path:
    """A name that is not there yet, STEM, STEM-2, ..., with any ending; with the first of them."""
    number = 1
    while True:
        name = stem if number == 1 else f"{stem}-{number}"
        paths = [folder / f"{name}{ending}" for ending in endings]
        if not any(map(os.path.lexists, paths)):
            return paths[0]
        number += 1


def write_whole(path: Path, text: str) -> bytes:
    """Write a new file, which has its name once it is complete; gives its bytes."""
    data = text.encode()
    with drafted(path.with_name(f".{path.name}.{os.getpid()}"), data) as draft:
        give_name(draft, path)
    return data


def give_name(draft: Path, path: Path) -> None:
    """Let a draft have this name too, if it is not taken; raises OSError."""
    # A link refuses a name that is taken, where a rename would overwrite it.
    try:
        os.link(draft, path)
    except OSError as error:
        if isinstance(error, FileExistsError) or path.exists():
            raise
        draft.rename(path)


@contextlib.contextmanager
def drafted(draft: Path, data: bytes, mode: int = 0o644) -> Iterator[Path]:
    """A file that is whole on the disk, for a `with` block to give it its name; raises OSError.

    One of a process that was killed while it wrote is replaced.
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
    """Of a file, the first `head` bytes of it last: a header that was changed as the file grew."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        begin = file.read(head)
        while block := file.read(1 << 20):
            digest.update(block)
    digest.update(begin)
    return digest.hexdigest()


def set_aside(path: Path, size: int) -> Path:
    """Move what stands behind the first `size` bytes into a file of its own; gives its name."""
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
