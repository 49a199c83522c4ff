"""Shared libraries of models: built for a release, or once on this computer."""

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from amt_stream.core import built_ahead
from amt_stream.native import build
from amt_stream.native.loops import build_loops, link_loops

ENGINE_BLOCK_S = 0.01
"""Length of the blocks that a library for an engine calculates together."""


def library_path(model: str, fs: int, channels: int, block_ms: float) -> Path:
    """The library of a model for this processor; builds it if there is none.

    Raises NotBuilt with the reason if it cannot be built.
    """
    target = built_ahead.this_target()
    request = build.Request(model, fs, channels, block_ms * 1e-3, (target,))
    if (path := built_ahead.file_of(_what(request))) is not None:
        return path
    (built,) = linked(request, build.build_library(request), of_this_computer).values()
    return store_library(built_ahead.cache_folder() / library_name(request, target), built)


def of_any_linux(target: str) -> list[str]:
    """The command that links the same bytes wherever it runs. Raises NotBuilt without Zig."""
    return [*build.zig(), "-target", build.ZIG_TARGETS[target], *build.SHARED]


def of_this_computer(_target: str) -> list[str]:
    """The command of a compiler that is here, for its own processor."""
    return [*build.system_compiler(), *build.SHARED]


def linked(
    request: build.Request, files: Mapping[str, bytes], command: Callable[[str], list[str]]
) -> dict[str, bytes]:
    """Shared libraries by file name, of the files of `build_library`; for an engine with JSON.

    command: a compiler with its options, for a processor
    """
    libraries = {}
    with tempfile.TemporaryDirectory(prefix="amt-stream-native-") as place:
        folder = Path(place)
        for file, content in files.items():
            (folder / file).write_bytes(content)
        for target in request.targets:
            build.link(folder, request.model, target, command(target), "whole.so")
            name = library_name(request, target)
            libraries[name] = (folder / "whole.so").read_bytes()
            if request.for_engine:
                about = files[f"{request.model}.json"]
                libraries[str(Path(name).with_suffix(".json"))] = about
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
        raise built_ahead.NotBuilt(f"{path.parent} cannot be written: {error.strerror}") from error
    return path


def library_name(request: build.Request, target: str) -> str:
    """The name of a library's file; it changes with the sources."""
    return built_ahead.file_name(_what(request), target)


def _what(request: build.Request) -> str:
    if request.for_engine:
        return built_ahead.engine_library(request.model, request.fs, request.channels)
    return f"{request.model}-{request.fs}-{request.channels}-{request.block_s * 1e3:g}"


def build_for_engines(
    models: Iterable[tuple[str, int, int]],
    targets: Sequence[str],
    command: Callable[[str], list[str]],
    folder: Path,
) -> Iterator[Path]:
    """Build what a station without torch and numba runs, into a folder; yields the files.

    models: each with a sampling rate and a number of channels
    command: a compiler with its options, for a processor
    """
    for target, content in build_loops(targets).items():
        built = link_loops(content, command(target))
        yield store_library(folder / built_ahead.file_name(built_ahead.LOOPS, target), built)
    for model, fs, channels in models:
        request = build.Request(
            model, fs, channels, ENGINE_BLOCK_S, tuple(targets), for_engine=True
        )
        for name, content in linked(request, build.build_library(request), command).items():
            yield store_library(folder / name, content)
