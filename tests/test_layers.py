"""The import rules of the package: only downwards, and heavy libraries in their own places."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
RANK = ["plain", "refusal", "processes", "importing", "compiling"]
RANK += ["limits", "triggers", "formats", "files", "settings", "norms", "clock"]
RANK += ["contract", "catalog", "data", "resumable", "scales", "signals", "design", "functional"]
RANK += ["checkpoints", "hooks", "streaming", "hosted", "pointwise", "compose", "testing", "stages"]
RANK += ["models", "common", "loss"]
RANK += ["kept", "correction", "calibration", "calibrator", "metering", "frames", "rows", "engine"]
RANK += ["analysis", "selftest", "plugin", "outputs", "presets", "table", "jobs", "split"]
RANK += ["measuring", "session", "results", "parts", "day_levels", "report", "comparing"]
RANK += ["manifest", "bench", "page"]
RANK += ["events", "service", "cli"]
# What stands in cli/, from the lowest up: no module imports one that stands with it or above it.
CLI_RANK = [
    "messages",
    "limits",
    "ending",
    "output",
    "files",
    "options",
    "inputs",
    "batch",
    "targets",
    "resuming",
    "progress",
    "watch",
    "complaints",
    "compiling",
    "keys",
    "terminal",
    "loudness_terminal",
]
CLI_RANK += ["modulation_terminal", "readings_terminal", "views", "table", "devices", "calibrate"]
CLI_RANK += [
    "selftest",
    "bench",
    "replay",
    "verify",
    "mark",
    "report",
    "compare",
    "lden",
    "export",
    "log",
    "events",
]
CLI_RANK += ["making", "window", "analyze", "meter"]
CLI_RANK += ["serve", "run", "command", "desktop", "monitor"]
CLI_RANK += ["__init__", "__main__"]
QT = {"PyQt6", "PyQt5", "PySide6", "pyqtgraph", "amt_monitor"}
FILES = [path for top in ("amt_stream", "apps") for path in sorted((ROOT / top).rglob("*.py"))]


def rank(part):
    """Place in RANK; the package itself, with every public name of it, is above all its parts."""
    return RANK.index(part) if part in RANK else len(RANK)


def imports(path):
    """Dotted names that a file imports, each with the line, `from a import b` as `a.b`."""
    package = path.relative_to(ROOT).parent.parts
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            origin = ".".join([*above, *([node.module] if node.module else [])])
            yield from ((f"{origin}.{alias.name}", node.lineno) for alias in node.names)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports(path):
    place = path.relative_to(ROOT)
    in_package = place.parts[0] == "amt_stream"
    part = place.parts[1].removesuffix(".py")
    if in_package:
        assert part in [*RANK, "__init__", "__main__"], f"{place}: give it a place in RANK"
    top = set()
    for name, line in imports(path):
        where = f"{place}:{line} imports {name}"
        first, *rest = name.split(".")
        top.add("Qt" if first in QT else first)
        if in_package and first == "amt_stream" and rest != ["__version__"]:
            assert rank("".join(rest[:1])) <= rank(part), f"{where}: imports only point down"
            if part == "cli" and rest[0] == "cli":
                below = CLI_RANK[: CLI_RANK.index(place.stem)]
                inner = rest[1] if (place.parent / f"{rest[1]}.py").exists() else "__init__"
                assert inner in below, f"{where}: not below it in CLI_RANK"
        if in_package and first in QT:
            assert (part, first) == ("cli", "amt_monitor"), f"{where}: Qt lives in apps/"
        if first == "sounddevice":
            assert place.as_posix() == "amt_stream/engine/portaudio.py", f"{where}: not its place"
    assert len(top & {"torch", "Qt", "sounddevice"}) <= 1, f"{place}: {sorted(top)} in one file"


LIGHT = ["import amt_stream", "import amt_stream.cli", "import amt_stream.catalog"]
LIGHT += ["from amt_stream.catalog import entries; entries()"]


@pytest.mark.parametrize("statement", LIGHT)
def test_a_light_import_stays_light(statement):
    heavy = {"torch", "numba", "sounddevice", "PyQt6", "pyqtgraph"}
    program = f"import sys; {statement}; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, check=True, capture_output=True, text=True
    )
    assert done.stdout.strip() == "[]"
