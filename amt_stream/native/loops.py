"""The loops of meters and inputs as one library, for a station without numba."""

import tempfile
from collections.abc import Iterator, Sequence
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import Any

from amt_stream.core.built_ahead import CODES, LOOPS, loop_name
from amt_stream.native.build import made_by, run_linker, run_maker
from amt_stream.native.kernels import KernelCode

COMPILED = {
    "amt_stream.meters.accumulators.loops": "compile_loops",
    "amt_stream.meters.accumulators.gating": "compile_gating",
    "amt_stream.dsp.functional.input_gate": "make_ready",
}
"""The modules of loops, with the function of each that compiles them for all their types."""


def build_loops(targets: Sequence[str]) -> dict[str, bytes]:
    """An object for each target, by its name. Raises NotBuilt with the reason."""
    return made_by(__name__, *targets)


def link_loops(content: bytes, command: Sequence[str]) -> bytes:
    """The shared library of an object; command: a C compiler with its options."""
    with tempfile.TemporaryDirectory(prefix="amt-stream-loops-") as name:
        folder = Path(name)
        (folder / "loops.o").write_bytes(content)
        for file in ("station/amt_loops.c", "c/amt_numba.h"):
            (folder / file.split("/")[1]).write_bytes((files(__package__) / file).read_bytes())
        run_linker(LOOPS, folder, [*command, "amt_loops.c", "loops.o", "-lm", "-o", "whole.so"])
        return (folder / "whole.so").read_bytes()


def _codes() -> Iterator[tuple[str, KernelCode]]:
    """Each loop for each of its types: its name in the library, and its code."""
    from amt_stream.dsp.functional.compiler.private_numba import compiled_codes

    for home, compile_all in COMPILED.items():
        module = import_module(home)
        getattr(module, compile_all)()
        for name, kinds, code in compiled_codes(module):
            yield loop_name(name, "".join(map(_code, kinds))), KernelCode(*code)


def _code(kind: Any) -> str:
    """The codes of a type, as `BuiltLoop` writes them."""
    from numba import types

    if isinstance(kind, types.Array):
        return f"{_code(kind.dtype)}{kind.ndim}"
    if isinstance(kind, types.BaseTuple):
        return "".join(map(_code, iter(kind)))  # type: ignore[call-overload]
    return CODES[str(kind)]


def _make(folder: Path, targets: Sequence[str]) -> None:
    from amt_stream.native.machine import MACHINES, Program, make_object

    program = Program(LOOPS, (), dict(_codes()), {})
    for target in targets:
        (folder / target).write_bytes(make_object(program, MACHINES[target]))


if __name__ == "__main__":
    run_maker(_make)
