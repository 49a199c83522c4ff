"""Disk cache of compiled kernels; a damaged or missing entry is recompiled."""

import contextlib
import hashlib
import logging
import pickle
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite
import numba
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.compiler_lock import global_compiler_lock
from numba.core.runtime import nrtdynmod
from numba.core.runtime.nrt import rtsys
from numba.core.serialize import dumps

from amt_stream.core.compiling import compiling
from amt_stream.core.errors import Refusal
from amt_stream.core.safe_text import plain

CHECKED = "-checked"
"""Suffix of these files, which numba's own cache could not read."""

_log = logging.getLogger("amt_stream")
_DIGEST = hashlib.sha256
_BYTES = _DIGEST().digest_size


class NoCompiler(Refusal):
    """Numba does not compile."""


if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
    raise NoCompiler(
        "NUMBA_DISABLE_JIT is set, and amt_stream cannot run without its compiled kernels: unset it"
    )


class Damaged(OSError):
    """A file does not match its digest or cannot be read."""


def cached_njit(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """`numba.njit(cache=True)` that works without a cache if the cache is unusable."""

    def compiled(function: Callable[..., Any]) -> Any:
        kernel = numba.njit(**options)(function)
        try:
            kernel._cache = KernelCache(function)
        except (OSError, RuntimeError) as error:  # RuntimeError: no folder is writable
            _say(f"compiled kernels cannot be cached: {error}")
        return kernel

    return compiled


class KernelCache(FunctionCache):
    """Numba's cache of one function; any failure counts as a missing entry."""

    def __init__(self, function: Callable[..., object]) -> None:
        super().__init__(function)
        stamp = self._impl.locator.get_source_stamp(), _stamps(Path(function.__code__.co_filename))
        self._cache_file = CheckedFiles(self._cache_path, self._impl.filename_base + CHECKED, stamp)

    @property
    def is_kept(self) -> bool:
        """Whether the function was compiled before, for any types."""
        return bool(self._cache_file._load_index())

    def load_overload(self, sig: object, target_context: object) -> Any:
        found = None
        try:
            self._start_runtime(target_context)
            with self._guard_against_spurious_io_errors():
                # Not by `super().load_overload`, which first loads all that a compiler needs: half
                # a second, 50 MB and scipy.linalg. Numba loads them before it compiles.
                found = self._load_overload(sig, target_context)
        except Exception as error:
            _say(f"a compiled kernel cannot be read and is recompiled: {error}")
        if found is None:
            compiling.begins()
        return found

    def save_overload(self, sig: object, data: object) -> None:
        compiling.ends()
        self._keep(lambda: super(KernelCache, self).save_overload(sig, data))

    def _start_runtime(self, target_context: object) -> None:
        """Start what counts references; numba compiles it anew, which maps 28 MB of LLVM."""
        with global_compiler_lock:
            compile_anew = nrtdynmod.compile_nrt_functions
            nrtdynmod.compile_nrt_functions = self._runtime
            try:
                rtsys.initialize(target_context)
            finally:
                nrtdynmod.compile_nrt_functions = compile_anew

    def _runtime(self, target_context: Any) -> Any:
        files = CheckedFiles(self._cache_path, f"numba_runtime{CHECKED}", llvmlite.__version__)
        codegen = target_context.codegen()
        key = codegen.magic_tuple()
        with contextlib.suppress(Damaged):
            if (found := files.load(key)) is not None:
                return codegen.unserialize_library(found)
        module, library = nrtdynmod.create_nrt_module(target_context)
        library.enable_object_caching()
        library.add_ir_module(module)
        library.finalize()
        self._keep(lambda: files.save(key, library.serialize_using_object_code()))
        return library

    def _keep(self, save: Callable[[], object]) -> None:
        try:
            save()
        except Exception as error:
            _say(f"compiled kernels cannot be cached: {error}")


@cache
def _stamps(source: Path) -> tuple[tuple[str, int, int], ...]:
    """Stamps of all sources beside `source`, because a kernel includes the functions it calls."""
    found = ((path, path.stat()) for path in sorted(source.parent.glob("*.py")))
    return tuple((path.name, stat.st_mtime_ns, stat.st_size) for path, stat in found)


class CheckedFiles(IndexDataCacheFile):
    """Index and machine code of one function, each file preceded by its digest.

    Each entry stores its key, because two processes that write at once may mix up the files.
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
    """The content of a file; raises Damaged if it cannot be read.

    Logs a wrong digest, which may indicate a failing disk.
    """
    content = path.read_bytes()
    if _DIGEST(content[_BYTES:]).digest() != content[:_BYTES]:
        _say(f"a compiled kernel is damaged and is recompiled: {path}")
        raise Damaged(str(path))
    try:
        return pickle.loads(content[_BYTES:])
    except Exception as error:  # an older version wrote a type that no longer exists
        raise Damaged(str(path)) from error


def _say(sentence: str) -> None:
    """Warn once per kind: with a full disk every kernel would warn."""
    kind = sentence.partition(":")[0]
    if kind not in _said:
        _said.add(kind)
        _log.warning("%s", plain(sentence))


_said: set[str] = set()
