"""Machine code that was built before: where it is, and loops of it without numba."""

import ctypes
import hashlib
import platform
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, get_args

import numpy as np

from amt_stream.core.errors import Refusal

ROOT = Path(__file__).parents[1]

PREBUILT = ROOT / "native" / "prebuilt"
"""Folder of what `make native` builds; a wheel holds it."""

_AVX2 = {"avx2", "bmi1", "bmi2", "f16c", "fma", "movbe"}
"""What x86-64-v3 needs, as Linux names it."""

CODES = {"float64": "d", "float32": "f", "int64": "q", "bool": "b"}
"""Letters of the types of numbers, in the names of loops."""

_SCALARS = {"d": ctypes.c_double, "f": ctypes.c_float, "q": ctypes.c_int64, "b": ctypes.c_bool}

_RESULTS: dict[Any, type[Any]] = {int: ctypes.c_int64, float: ctypes.c_double, bool: ctypes.c_bool}


class NotBuilt(Refusal):
    """Machine code that could not be made, or that is not there."""


def this_target() -> str:
    """What to load on this processor. Raises NotBuilt for one that nothing is built for."""
    kind = platform.machine().lower()
    if sys.platform == "linux" and kind in ("x86_64", "aarch64"):
        if kind == "aarch64":
            return kind
        flags = set(Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace").split())
        return "x86-64-v3" if flags >= _AVX2 else "x86-64"
    raise NotBuilt(
        f"models run as machine code on Linux with x86-64 or aarch64, not on {sys.platform} with "
        f"{kind}: use Stream"
    )


def cache_folder() -> Path:
    """The folder of libraries that this computer built."""
    from platformdirs import user_cache_path

    return Path(user_cache_path("amt_stream", appauthor=False)) / "native"


@cache
def sources_digest() -> str:
    """Digest of what a library is made of."""
    whole = hashlib.sha256((ROOT / "__init__.py").read_bytes())  # with the version
    for room in ("dsp", "meters", "native"):
        for path in sorted((ROOT / room).rglob("*.[pch]*")):
            if path.suffix in (".py", ".c", ".h"):
                whole.update(path.name.encode() + b"\0" + path.read_bytes())
    return whole.hexdigest()[:12]


def file_name(name: str, target: str) -> str:
    """The name of the file of what is built for a processor; it changes with the sources."""
    return f"{name}-{target}-{sources_digest()}.so"


def file_of(name: str) -> Path | None:
    """The file of what was built from the present sources for this processor, or None.

    name: what it is, such as "loops"
    """
    file = file_name(name, this_target())
    return next((f / file for f in (PREBUILT, cache_folder()) if (f / file).is_file()), None)


def engine_library(model: str, fs: int, channels: int) -> str:
    """What the library of a model for an engine is, for `file_of`."""
    return f"engine-{model}-{fs}-{channels}"


LOOPS = "loops"
"""The library of the loops that `BuiltLoop` runs."""


@cache
def _loops() -> ctypes.CDLL:
    if (path := file_of(LOOPS)) is None:
        raise NotBuilt(
            f"the compiled loops of this version for {this_target()} are not there: "
            "install the package amt_stream, which compiles them"
        )
    return ctypes.CDLL(str(path))


class BuiltLoop:
    """A loop as machine code, called like the function that it was compiled from.

    Its types of arguments must be among those that `native.loops` builds.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.__name__, self.__doc__ = function.__name__, function.__doc__
        given = function.__annotations__.get("return")
        self._results = get_args(given) or ((given,) if given is not None else ())
        self._known: dict[str, tuple[Any, list[type[Any]]]] = {}

    def __call__(self, *given: object) -> Any:
        codes, values = [], []
        for code, flat in _flattened(given):
            codes.append(code)
            values += flat
        call, kinds = self._call("".join(codes))
        result, error = (ctypes.c_int64 * max(1, len(kinds)))(), ctypes.c_void_p()
        status = call(ctypes.byref(result), ctypes.byref(error), *values)
        if status:
            raise RuntimeError(f"{self.__name__} ended with status {status}")
        found = [kind.from_buffer(result, 8 * k).value for k, kind in enumerate(kinds)]
        return None if not found else found[0] if len(found) == 1 else tuple(found)

    def _call(self, codes: str) -> tuple[Any, list[type[Any]]]:
        if codes not in self._known:
            call = getattr(_loops(), f"{LOOPS}_{loop_name(self.__name__, codes)}")
            call.restype = ctypes.c_int32
            self._known[codes] = call, [_RESULTS[one] for one in self._results]
        return self._known[codes]


def loop_name(name: str, codes: str) -> str:
    """The name of a loop in its library, for these types of arguments."""
    return f"{name.lstrip('_')}_{codes}"


def _flattened(given: tuple[Any, ...]) -> Iterator[tuple[str, list[Any]]]:
    """The codes of arguments, and what numba passes for each."""
    for one in given:
        if isinstance(one, np.ndarray):
            data, _ = one.__array_interface__["data"]
            sizes = [ctypes.c_int64(n) for n in (*one.shape, *one.strides)]
            count, item = ctypes.c_int64(one.size), ctypes.c_int64(one.itemsize)
            yield (
                f"{CODES[one.dtype.name]}{one.ndim}",
                [None, None, count, item, ctypes.c_void_p(data), *sizes],
            )
        elif isinstance(one, tuple):
            yield from _flattened(one)
        else:
            code = _code_of(one)
            yield code, [_SCALARS[code](one)]


def _code_of(one: object) -> str:
    if isinstance(one, np.generic):
        return CODES[one.dtype.name]
    return "b" if isinstance(one, bool) else "q" if isinstance(one, int) else "d"
