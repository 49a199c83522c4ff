"""Private names of torch and of numba and llvmlite stand in a file each; versions are bounded."""

import ast
import tomllib
from pathlib import Path

import numba
import pytest
import torch
from packaging.requirements import Requirement
from torch import nn

ROOT = Path(__file__).parents[2]
HOMES = {f"amt_stream/dsp/functional/compiler/private_{name}.py" for name in ("torch", "numba")}
LIBRARIES = ("torch", "numba", "llvmlite")
UNDOCUMENTED = ("numba.core", "numba.np", "numba.typed", "torch.nn.modules")
"""Modules without a leading underscore of which nothing is documented by this name."""

PROTECTED = {
    *("_buffers", "_modules", "_parameters", "_apply"),
    *("_load_from_state_dict", "_save_to_state_dict"),
}
"""What a subclass of `nn.Module` reads of itself, and overrides, as torch's own modules do."""


def is_private(name):
    return name.startswith("_") and not name.startswith("__")


OF_MODULES = {name for name in dir(nn.Module()) if is_private(name)}
OF_OTHERS = {
    name
    for kind in (torch.empty(0), numba.njit(lambda x: x))
    for name in dir(kind)
    if is_private(name)
}


def is_private_path(path):
    parts = path.split(".")
    undocumented = any(path == one or path.startswith(f"{one}.") for one in UNDOCUMENTED)
    return parts[0] in LIBRARIES and (undocumented or any(map(is_private, parts)))


def imported(node):
    """Dotted names that an import names, each with the name that it has here."""
    if isinstance(node, ast.Import):
        return [(one.name, one.asname or one.name.partition(".")[0]) for one in node.names]
    if isinstance(node, ast.ImportFrom) and not node.level:
        return [(f"{node.module}.{one.name}", one.asname or one.name) for one in node.names]
    return []


def dotted(node, names):
    """The full name of what a chain of attributes names, or "" if it begins elsewhere."""
    if isinstance(node, ast.Name):
        return names.get(node.id, "")
    if isinstance(node, ast.Attribute) and (before := dotted(node.value, names)):
        return f"{before}.{node.attr}"
    return ""


def is_own(node):
    """Whether a value is `self` or `super()`."""
    called = isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    name = node.func.id if called else node.id if isinstance(node, ast.Name) else ""
    return name == ("super" if called else "self")


def private_names(source):
    """Private names of the libraries in a program, each once."""
    tree, names, found = ast.parse(source), {}, set()
    for node in ast.walk(tree):
        for path, name in imported(node):
            top, short = path.partition(".")[0], isinstance(node, ast.Import) and name in path
            names[name] = top if short and name == top else path
            found |= {path} if is_private_path(path) else set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            path = dotted(node, names)
            own = is_own(node.value)
            if is_private_path(path):
                found.add(path)
            elif node.attr in (OF_MODULES - PROTECTED if own else OF_MODULES | OF_OTHERS):
                found.add(node.attr)
        elif isinstance(node, ast.Constant) and node.value in OF_MODULES - PROTECTED:
            found.add(node.value)
        elif isinstance(node, ast.keyword) and node.arg == "_nrt":
            found.add(node.arg)
    return found


def test_no_other_file_has_one():
    found = {}
    for path in [*ROOT.glob("amt_stream/**/*.py"), *ROOT.glob("apps/**/*.py")]:
        place = path.relative_to(ROOT).as_posix()
        names = private_names(path.read_text(encoding="utf-8"))
        if names and place not in HOMES:
            found[place] = names
    assert found == {}


@pytest.mark.parametrize(
    ("program", "name"),
    [
        ("import torch\ntorch._C._get_tracing_state()", "torch._C._get_tracing_state"),
        ("from torch.utils._pytree import tree_map", "torch.utils._pytree.tree_map"),
        ("import torch.autograd as a\na._thing", "torch.autograd._thing"),
        ("from numba.core import cgutils", "numba.core.cgutils"),
        ("import numba\nnumba.core.config", "numba.core.config"),
        ("from numba.np.arrayobj import populate_array", "numba.np.arrayobj.populate_array"),
        ("def f(module):\n    return module._forward_hooks", "_forward_hooks"),
        ("def f(x):\n    return x._version", "_version"),
        ("def f(kernel):\n    return kernel._cache", "_cache"),
        ("def f(stage):\n    return stage._buffers", "_buffers"),
        ('def f(self):\n    return vars(self)["_forward_hooks"]', "_forward_hooks"),
        ("import numba\nnumba.njit(_nrt=False)", "_nrt"),
    ],
)
def test_one_is_found(program, name):
    assert name in private_names(program)


def test_what_is_public_is_none():
    program = (
        "import torch\nfrom numba.extending import intrinsic\nfrom llvmlite import ir\n"
        "from torch import nn\n"
        "class M(nn.Module):\n    def f(self):\n        return super()._apply, self._buffers\n"
        "torch.is_grad_enabled()"
    )
    assert private_names(program) == set()


@pytest.mark.parametrize("library", LIBRARIES)
def test_versions_are_bounded_above(library):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (bounds,) = (
        one.specifier for one in map(Requirement, project["dependencies"]) if one.name == library
    )
    assert "<" in {one.operator for one in bounds}
    pins = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    (pin,) = (line.partition("==")[2] for line in pins if line.startswith(f"{library}=="))
    assert bounds.contains(pin)
