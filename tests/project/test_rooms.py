"""The rooms of the house: what may import what, with no circle of rooms or of files."""

import ast
import graphlib
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = {"amt_stream": ROOT / "amt_stream", "amt_monitor": ROOT / "apps" / "amt_monitor"}
ROOMS = (
    "core",
    "dsp",
    "meters",
    "native",
    "engine",
    "offline",
    "sessions",
    "views",
    "service",
    "amt_monitor",
    "cli",
)
FACE = ("common", "__main__", "")
"""Names for users, and the command: no room imports them, but for the version of the package."""
ARROWS = 47
QT = {"PyQt6", "PyQt5", "PySide6", "pyqtgraph", "amt_monitor"}


def module(path, top):
    """Dotted name of a file of one of FOLDERS."""
    inner = path.relative_to(FOLDERS[top]).with_suffix("")
    return ".".join((top, *inner.parts)).removesuffix(".__init__")


FILES = {module(path, top): path for top in FOLDERS for path in sorted(FOLDERS[top].rglob("*.py"))}


def room(name):
    top, _, inner = name.partition(".")
    return top if top == "amt_monitor" else inner.partition(".")[0]


def imported(path):
    """Dotted names that a file imports, `from a import b` as `a.b`."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}: names of modules are whole"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.fixture(scope="module")
def imports():
    """The files of ours that each file imports, within functions too."""
    found = defaultdict(set)
    for name, path in FILES.items():
        for other in imported(path):
            while other and other not in FILES:
                other = other.rpartition(".")[0]
            if other and other != name:
                found[name].add(other)
    return found


def test_contracts():
    """Those of pyproject.toml, by import-linter."""
    done = subprocess.run(
        [sys.executable, "-c", "from importlinter.cli import lint_imports_command as c; c()"],
        cwd=ROOT,
        env={"PYTHONPATH": f"{ROOT}:{ROOT / 'apps'}", "PATH": "", "LC_ALL": "C.UTF-8"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_graph_of_rooms(imports):
    arrows = defaultdict(int)
    for name, others in imports.items():
        for other in others:
            if room(name) != room(other) and not {room(name), room(other)} & set(FACE):
                arrows[room(name), room(other)] += 1
    for (one, other), count in sorted(arrows.items()):
        print(f"{one:12} -> {other:12} {count:3}")
    print(f"{len(ROOMS)} rooms, {len(arrows)} arrows")
    assert {name for pair in arrows for name in pair} == set(ROOMS)
    assert len(arrows) <= ARROWS
    upward = [pair for pair in arrows if ROOMS.index(pair[0]) < ROOMS.index(pair[1])]
    assert upward == []


def test_no_circle_of_files(imports):
    order = list(graphlib.TopologicalSorter(imports).static_order())  # CycleError names a circle
    assert {*order} == {*imports, *set().union(*imports.values())}


def test_only_the_face_stands_at_the_root():
    modules = {path.name for path in FOLDERS["amt_stream"].iterdir() if path.is_file()}
    assert modules == {"__init__.py", "__init__.pyi", "__main__.py", "py.typed"}


@pytest.mark.parametrize("name", [*ROOMS[:-2], "cli"])
def test_the_door_of_a_room_is_short(name):
    text = (FOLDERS["amt_stream"] / name / "__init__.py").read_text(encoding="utf-8")
    assert len(ast.get_docstring(ast.parse(text)).splitlines()) <= 10


def test_heavy_libraries_stand_apart():
    """torch, Qt and sounddevice never meet in one file."""
    for name, path in FILES.items():
        tops = {other.partition(".")[0] for other in imported(path)}
        tops = {"Qt" if top in QT else top for top in tops} & {"torch", "Qt", "sounddevice"}
        assert len(tops) <= 1, name


LIGHT = ["import amt_stream", "import amt_stream.cli", "import amt_stream.meters.catalog"]
LIGHT += ["from amt_stream.meters.catalog import entries; entries()"]


@pytest.mark.parametrize("statement", LIGHT)
def test_a_light_import_stays_light(statement):
    heavy = {"torch", "numba", "sounddevice", "PyQt6", "pyqtgraph", "textual", "rich"}
    program = f"import sys; {statement}; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, check=True, capture_output=True, text=True
    )
    assert done.stdout.strip() == "[]"


def test_the_window_is_seen_before_models_are_imported():
    program = (
        "import sys, amt_monitor.window.main_window; print({'torch', 'numba'} & set(sys.modules))"
    )
    pytest.importorskip("pyqtgraph.Qt", reason="the window is not installed")
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, check=True, capture_output=True, text=True
    )
    assert done.stdout.strip() == "set()"


def test_what_serves_a_device_imports_only_the_standard_library():
    """It runs alone, apart from the package, and is up in a tenth of a second."""
    tops = {
        name.partition(".")[0] for name in imported(FILES["amt_stream.engine.devices.portaudio"])
    }
    assert tops <= {*sys.stdlib_module_names, "sounddevice"}
