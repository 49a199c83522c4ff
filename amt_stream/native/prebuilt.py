"""Shared libraries of models: built for a release, or once on this computer."""

import hashlib
import platform
import sys
import tempfile
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

from amt_stream import __version__
from amt_stream.native.build import (
    SHARED,
    ZIG_TARGETS,
    NotBuilt,
    Request,
    build_library,
    link,
    system_compiler,
    zig,
)

PREBUILT = Path(__file__).parent / "prebuilt"
"""Folder of the libraries that `make native` builds; a wheel holds it."""

_AVX2 = {"avx2", "bmi1", "bmi2", "f16c", "fma", "movbe"}
"""What x86-64-v3 needs, as Linux names it."""


def library_path(model: str, fs: int, channels: int, block_ms: float) -> Path:
    """The library of a model for this processor; builds it if there is none.

    Raises NotBuilt with the reason if it cannot be built.
    """
    target = this_target()
    request = Request(model, fs, channels, block_ms * 1e-3, (target,))
    name = library_name(request, target)
    for folder in (PREBUILT, cache_folder()):
        if (folder / name).is_file():
            return folder / name
    command = [*system_compiler(), *SHARED]
    (built,) = linked(request, build_library(request), lambda _: command).values()
    return store_library(cache_folder() / name, built)


def of_any_linux(target: str) -> list[str]:
    """The command that links the same bytes wherever it runs. Raises NotBuilt without Zig."""
    return [*zig(), "-target", ZIG_TARGETS[target], *SHARED]


def linked(
    request: Request, files: Mapping[str, bytes], command: Callable[[str], list[str]]
) -> dict[str, bytes]:
    """Shared libraries by file name, of the files of `build_library`.

    command: a compiler with its options, for a processor
    """
    libraries = {}
    with tempfile.TemporaryDirectory(prefix="amt-stream-native-") as name:
        folder = Path(name)
        for file, content in files.items():
            (folder / file).write_bytes(content)
        for target in request.targets:
            link(folder, request.model, target, command(target), "whole.so")
            libraries[library_name(request, target)] = (folder / "whole.so").read_bytes()
    return libraries


def store_library(path: Path, content: bytes) -> Path:
    """Write a library, so that another process finds it whole or not at all."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as draft:
            draft.write(content)
        Path(draft.name).chmod(0o644)
        Path(draft.name).replace(path)
    except OSError as error:
        raise NotBuilt(f"{path.parent} cannot be written: {error.strerror}") from error
    return path


def library_name(request: Request, target: str) -> str:
    """The name of a library's file; it changes with the sources."""
    what = f"{request.model}-{request.fs}-{request.channels}-{request.block_s * 1e3:g}"
    return f"{what}-{target}-{_sources()}.so"


def cache_folder() -> Path:
    """The folder of libraries that this computer built."""
    from platformdirs import user_cache_path

    return Path(user_cache_path("amt_stream", appauthor=False)) / "native"


def this_target() -> str:
    """What to load on this processor. Raises NotBuilt for one that no library is made for."""
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


@cache
def _sources() -> str:
    """Digest of what a library is made of."""
    root, whole = Path(__file__).parents[1], hashlib.sha256(__version__.encode())
    for room in ("dsp", "meters", "native"):
        for path in sorted((root / room).rglob("*.[pch]*")):
            if path.suffix in (".py", ".c", ".h"):
                whole.update(path.name.encode() + b"\0" + path.read_bytes())
    return whole.hexdigest()[:12]
