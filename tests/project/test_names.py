"""One name, one thing: no two files define a class, or a public function, of one name."""

import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = (ROOT / "amt_stream", ROOT / "apps" / "amt_monitor")
TWINS = {
    "amt_stream/dsp/functional/compiler/gpu.py",
    "amt_stream/dsp/functional/compiler/gpu_kernels.py",
    "amt_stream/dsp/functional/compiler/gpu_loudness_kernels.py",
}
"""A kernel for the GPU, and the function that starts it, have the name of the plain form."""

REASONS = {
    "main": "where a process starts: the command, and what it runs in processes beside it",
    "to_frames": "each plan of levels has one last kernel, which its stage looks up by this name",
    "to_loudness": "each fused model has one last kernel, which it looks up by this name",
}
"""Names that stand in several files, and why."""


def definitions():
    """(name, file) of each class, and of each function that its file does not keep to itself."""
    for path in sorted(path for folder in FOLDERS for path in folder.rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            if isinstance(node, ast.ClassDef) or (function and not node.name.startswith("_")):
                yield node.name, path.relative_to(ROOT).as_posix()


def shared(found):
    """The names that several files define, forms of one function for several devices apart."""
    places = defaultdict(set)
    for name, path in found:
        places[name].add(path)
    rest = {name: paths - TWINS for name, paths in places.items() if len(paths) > 1}
    room = "amt_stream/dsp/functional/"
    return {
        name
        for name, paths in rest.items()
        if len(paths) > 1 or not all(path.startswith(room) for path in paths)
    }


def test_each_name_is_of_one_thing_or_has_its_reason():
    assert shared(definitions()) == set(REASONS)


def test_a_second_thing_of_a_name_is_found():
    found = list(definitions())
    assert "Engine" in shared([*found, ("Engine", "amt_stream/service/other.py")])
    assert "svf" in shared([*found, ("svf", "amt_stream/engine/other.py")])
    assert "bank" in shared([*found, ("bank", "amt_stream/engine/other.py")])
    assert "bank" not in shared(found)
