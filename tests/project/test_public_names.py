"""The public names: what is exported, what each resolves to, and that a type checker sees them."""

import ast
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ["amt_stream", "amt_stream.engine"]
# To a strict checker all of pyqtgraph.Qt is Any, so no class of it can be one's own.
EXAMPLES = sorted(path for path in (ROOT / "apps").glob("*.py") if path.stem != "qt_window")
REFUSED = {  # what a program may get wrong: the sort of error that mypy has to report
    "from amt_stream import NoSuchThing": "attr-defined",
    "from amt_stream.engine import NoSuchSource": "attr-defined",
    'Moore2016(fs="banana")': "arg-type",
    'Moore2016(feild="free")': "call-arg",
    'Moore2016(field="fre")': "arg-type",
    "Engine(SignalSource([Tone(1000.0)]), Moore2016(), blocks_ms=10.0)": "call-arg",
    'Engine("mic", Moore2016())': "arg-type",
    "Stream(1, (1, 2))": "arg-type",
    'Calibration("94")': "arg-type",
    'sone_to_phon("loud")': "type-var",
    "f2erb(1000.0).item()": "attr-defined",  # a float in, a float out
    'measure("x.wav", modles="spl")': "call-arg",
    "model: plugin.MakesModel = FieldReadings": "assignment",
    "readings: plugin.MakesReadings = Moore2016": "assignment",
    "pane: plugin.MakesPane = Calibration": "assignment",
    "Stream(Moore2016(), (1, 2))(block).loudness": "attr-defined",
    "Rebuffer(Stream(Moore2016(), (1, 2))).push(block).ltl": "union-attr",  # it may be None
    'for row in measure("x.wav").rows: row["ltl_phon"].items()': "union-attr",
    "RowSink(lambda row: row.ltl_phon)": "attr-defined",
}
SEEN = {  # what a type checker says of what a stream and rows give
    "Stream(Moore2016(), (1, 2))(block).ltl": "torch._tensor.Tensor",
    "Moore2016()(block).stl": "torch._tensor.Tensor",
    "Stream(Glasberg2002(), (1, 2))(block).ltl": "torch._tensor.Tensor",
    "Stream(ZwickerTimeVarying(), (2,))(block).n": "torch._tensor.Tensor",
    "Stream(ModulationSpectrum(16000), (2,))(block).rms": "torch._tensor.Tensor",
    "Stream(Dau1997(16000), (2,))(block)": "torch._tensor.Tensor",
    "Stream(Gain(2.0), (2,))(block)": "torch._tensor.Tensor",
    "Stream(SoundLevel(48000), (2,))(block).power": "torch._tensor.Tensor",
    'next(iter(measure("x.wav").rows))': "dict[str, str | float | None]",
}

STRICT = [  # what `mypy --strict` adds; said file by file, all others are as `make lint` left them
    "check_untyped_defs",
    "disallow_any_generics",
    "disallow_incomplete_defs",
    "disallow_subclassing_any",
    "disallow_untyped_calls",
    "disallow_untyped_decorators",
    "disallow_untyped_defs",
    "extra_checks",
    "strict_equality",
    "warn_return_any",
    "warn_unused_ignores",
]


def stub(package: str) -> dict[str, str]:
    """Public names of a package, each with the module that has it, from the package's stub."""
    path = ROOT.joinpath(*package.split("."), "__init__.pyi")
    return {
        alias.name: ".".join([package, *([node.module] if node.module else [])])
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


@pytest.mark.parametrize("package", PACKAGES)
def test_stub_and_exports_are_equal(package):
    names, module = stub(package), importlib.import_module(package)
    assert sorted(names) == sorted(module.__all__) == sorted(dir(module))
    for name, home in names.items():
        if home == package:
            assert getattr(module, name) is importlib.import_module(f"{package}.{name}")
        else:
            assert getattr(module, name) is getattr(importlib.import_module(home), name), name
    with pytest.raises(AttributeError, match="NoSuchThing"):
        module.NoSuchThing  # noqa: B018


def test_every_module_of_the_package_is_reached_by_its_name():
    folder = ROOT / "amt_stream"
    parts = [path for path in folder.iterdir() if path.suffix == ".py" or path.is_dir()]
    modules = {path.stem for path in parts if not path.name.startswith("_")}
    assert modules == {name for name, home in stub("amt_stream").items() if home == "amt_stream"}


@pytest.mark.parametrize(
    "name", ["alarm", "fit_gain", "notebook", "poll", "push", "qt_window", "rows_async"]
)
def test_a_first_program_takes_all_names_from_one_door(name):
    program = ast.parse((ROOT / "apps" / f"{name}.py").read_text(encoding="utf-8"))
    homes = {n.module for n in ast.walk(program) if isinstance(n, ast.ImportFrom)}
    assert {home for home in homes if home and home.startswith("amt_stream")} == {"amt_stream"}


def test_the_package_runs_as_the_command():
    command = [sys.executable, "-m", "amt_stream", "--version"]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    assert done.stdout.startswith("amt-stream ")


def test_a_type_checker_sees_the_names(tmp_path):
    """In one run of mypy: every public name, the examples, and lines that are wrong.

    What it needs of torch it has from `make lint`, where that ran.
    """
    public = [(package, name) for package in PACKAGES for name in stub(package)]
    lines = [f"from {package} import {name} as n{i}" for i, (package, name) in enumerate(public)]
    lines += [f"reveal_type(n{i})" for i in range(len(public))]
    head = [
        "from amt_stream import Calibration, Engine, Moore2016, SignalSource, Stream",
        "from amt_stream import Dau1997, Gain, Glasberg2002, ModulationSpectrum, SoundLevel",
        "from amt_stream import Rebuffer, ZwickerTimeVarying, f2erb, measure",
        "from amt_stream.meters import plugin",
        "from amt_stream.engine import RowSink, Tone",
        "from amt_stream.meters.rows import FieldReadings",
        "from amt_stream.dsp.scales import sone_to_phon",
        "from torch import Tensor",
        "block = Tensor()",
    ]
    lines += [*head, *(f"reveal_type({text})" for text in SEEN)]
    (tmp_path / "every_name.py").write_text("\n".join(lines))
    (tmp_path / "wrong.py").write_text("\n".join([*head, *REFUSED]))
    files = [*EXAMPLES, tmp_path / "every_name.py", tmp_path / "wrong.py"]
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    settings = [
        project.replace("$MYPY_CONFIG_FILE_DIR", str(ROOT)),
        "[[tool.mypy.overrides]]",
        f"module = {[path.stem for path in files]}",
        *(f"{name} = true" for name in STRICT),
        "implicit_reexport = false",
    ]
    (tmp_path / "strict.toml").write_text("\n".join(settings), encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--config-file", str(tmp_path / "strict.toml")]
    command += ["--cache-dir", str(ROOT / ".mypy_cache"), "--hide-error-context"]
    done = subprocess.run(
        [*command, *map(str, files)], cwd=ROOT, check=False, capture_output=True, text=True
    )
    told = done.stdout.splitlines()
    revealed = [line for line in told if "note: Revealed type is" in line]
    seen = [line.split('"')[1] for line in revealed[len(public) :]]
    assert seen == list(SEEN.values()), done.stdout
    untyped = [
        public[i] for i, line in enumerate(revealed[: len(public)]) if line.endswith('is "Any"')
    ]
    assert (len(revealed), untyped) == (len(public) + len(SEEN), []), done.stdout + done.stderr
    errors = [line for line in told if re.match(r"[^:]+:\d+: error: ", line)]
    wrong = {int(line.split(":")[1]): line for line in errors if "wrong.py" in line}
    for number, (text, code) in enumerate(REFUSED.items(), start=len(head) + 1):
        assert f"[{code}]" in wrong.pop(number, ""), f"{text}\n{done.stdout}"
    assert (wrong, [line for line in errors if "wrong.py" not in line]) == ({}, [])
