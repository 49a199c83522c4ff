"""Disk cache of compiled kernels; a damaged or missing entry is recompiled."""

import hashlib
import logging
import pickle
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba

from amt_stream.core.errors import Refusal
from amt_stream.core.safe_text import plain
from amt_stream.dsp.functional.compiler.private_numba import DiskCache, OwnCodeCompiler, set_cache

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


class Damaged(FileNotFoundError):
    """A file does not match its digest or cannot be read, which counts as none."""


def cached_njit(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """`numba.njit(cache=True)` that works without a cache if the cache is unusable.

    Without `fastmath` a function rounds as it is written, whatever calls it: numba would compile it
    as its first caller is, and cache that for all.
    """
    options = {"fastmath": False} | options

    def compiled(function: Callable[..., Any]) -> Any:
        kernel = numba.njit(pipeline_class=OwnCodeCompiler, **options)(function)
        try:
            stamps = _stamps(Path(function.__code__.co_filename).parent)
            set_cache(kernel, DiskCache(function, stamps, CHECKED, _checked, _with_digest, _say))
        except (OSError, RuntimeError) as error:  # RuntimeError: no folder is writable
            _say(f"compiled kernels cannot be cached: {error}")
        return kernel

    return compiled


@cache
def _stamps(folder: Path) -> tuple[tuple[str, int, int], ...]:
    """Stamps of the sources here and in `folder`: a kernel includes the functions it calls."""
    paths = {*folder.glob("*.py"), *Path(__file__).parent.parent.rglob("*.py")}
    found = ((path, path.stat()) for path in sorted(paths))
    return tuple((path.name, stat.st_mtime_ns, stat.st_size) for path, stat in found)


def _with_digest(content: bytes) -> bytes:
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
