"""Compiled kernels on the disk: what is damaged, or cannot be kept, is compiled anew."""

import hashlib
import logging
import pickle
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.serialize import dumps

from amt_stream.core.compiling import compiling
from amt_stream.core.safe_text import plain

CHECKED = "-checked"
"""In the names of these files, which numba's own would not understand."""

_log = logging.getLogger("amt_stream")
_DIGEST = hashlib.sha256
_BYTES = _DIGEST().digest_size


class Damaged(OSError):
    """A file is not what was written."""


def cached_njit(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """`numba.njit(cache=True)` that starts without its cache where that is of no use."""

    def compiled(function: Callable[..., Any]) -> Any:
        kernel = numba.njit(**options)(function)
        try:
            kernel._cache = KernelCache(function)
        except (OSError, RuntimeError) as error:  # RuntimeError: no folder can be written to
            _say(f"compiled kernels cannot be kept: {error}")
        return kernel

    return compiled


class KernelCache(FunctionCache):
    """numba's cache of one function; any failure of it is a kernel that is not there."""

    def __init__(self, function: Callable[..., object]) -> None:
        super().__init__(function)
        stamp = self._impl.locator.get_source_stamp(), _stamps(Path(function.__code__.co_filename))
        self._cache_file = CheckedFiles(self._cache_path, self._impl.filename_base + CHECKED, stamp)

    @property
    def is_kept(self) -> bool:
        """Whether it was compiled before, for anything."""
        return bool(self._cache_file._load_index())

    def load_overload(self, sig: object, target_context: object) -> Any:
        found = None
        try:
            found = super().load_overload(sig, target_context)
        except Exception as error:
            _say(f"a compiled kernel cannot be read, and is compiled anew: {error}")
        if found is None:
            compiling.begins()
        return found

    def save_overload(self, sig: object, data: object) -> None:
        compiling.ends()
        try:
            super().save_overload(sig, data)
        except Exception as error:
            _say(f"compiled kernels cannot be kept: {error}")


@cache
def _stamps(source: Path) -> tuple[tuple[str, int, int], ...]:
    """Of all sources beside `source`: a kernel holds what it calls, from whatever file."""
    found = ((path, path.stat()) for path in sorted(source.parent.glob("*.py")))
    return tuple((path.name, stat.st_mtime_ns, stat.st_size) for path, stat in found)


class CheckedFiles(IndexDataCacheFile):
    """Index and machine code of one function, each file with its digest before it.

    A kernel says what it was compiled for: two processes that write at once may mix up the files.
    """

    def save(self, key: object, data: object) -> None:
        super().save(key, (key, data))

    def load(self, key: object) -> Any:
        found = super().load(key)
        return found[1] if found is not None and found[0] == key else None

    def _load_index(self) -> dict[Any, str]:
        try:
            version, stamp, names = _checked(Path(self._index_path))
        except (FileNotFoundError, Damaged):
            return {}
        return names if (version, stamp) == (self._version, self._source_stamp) else {}

    def _save_index(self, overloads: dict[Any, str]) -> None:
        with self._open_for_write(self._index_path) as file:
            file.write(self._dump((self._version, self._source_stamp, overloads)))

    def _load_data(self, name: str) -> Any:
        return _checked(Path(self._data_path(name)))

    def _dump(self, obj: object) -> bytes:
        content: bytes = dumps(obj)
        return _DIGEST(content).digest() + content


def _checked(path: Path) -> Any:
    """What a file holds; raises Damaged where nothing can be made of it.

    It is said where that is not what was kept, as a disk may be at fault.
    """
    content = path.read_bytes()
    if _DIGEST(content[_BYTES:]).digest() != content[:_BYTES]:
        _say(f"a compiled kernel is damaged, and is compiled anew: {path}")
        raise Damaged(str(path))
    try:
        return pickle.loads(content[_BYTES:])
    except Exception as error:  # of a type that there is no more: an older version wrote it
        raise Damaged(str(path)) from error


def _say(sentence: str) -> None:
    """Warn once: of a full disk each kernel would tell."""
    kind = sentence.partition(":")[0]
    if kind not in _said:
        _said.add(kind)
        _log.warning("%s", plain(sentence))


_said: set[str] = set()
