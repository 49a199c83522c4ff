"""Build the site in build/docs; refuse where a text names what is not there.

With `linkcheck` as argument, Sphinx follows the links to other sites instead.

A name in backticks, in a docstring or a page of Markdown, has to be a name of this tree: of a
module, class, function, argument, attribute or column. `Class.member` has to be a member of that
class, a path has to exist, a link has to lead to a file and, with #, to a heading of it.
"""

import ast
import builtins
import importlib
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
OUTPUT = ROOT / "build" / "docs"
CODE = ("amt_stream", "apps", "tools")
OUTSIDE = ("torch", "torch.nn", "numpy", "threading", "asyncio", "numba", "sys", "pytest", "pandas")
# Extras, verbs, system packages, the words of rows.
WORDS = ["pyproject.toml", "Makefile", "tools/bootstrap.py", "amt_stream/native/c/amt.h"]
WORDS += ["amt_stream/dsp/data/rows.schema.json"]
OTHERS = {"torch_amt", "MultiResolutionFFT", "Moore2016Spectrum", "__pycache__", "hook"}
OTHERS |= {"MultiStep", "MultiStepTransform", "remove"}  # of torchrl and torch
OUTSIDE_AS = {"nn": "torch.nn", "np": "numpy", "pd": "pandas", "xr": "xarray"}
NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*(?=\(|$)")
PATH = re.compile(r"([\w.-]+(/[\w.*-]+)+/?|[\w-]+\.(pyi?|md|toml|csv|cff|json|txt))(::\w+)?")
TICKS = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
LINK = re.compile(r"\]\(([^)\s]+)\)")


class Names(ast.NodeVisitor):
    """Every identifier of a tree, the words of its strings, and what each class has in its body."""

    def __init__(self) -> None:
        self.all: set[str] = set(dir(builtins))

    def visit(self, node: ast.AST) -> None:
        for field in ("name", "id", "attr", "arg", "asname", "module"):
            value = getattr(node, field, None)
            if isinstance(value, str):
                self.all.update(value.split("."))
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            self.all.add(node.value)
        body = getattr(node, "body", None)
        documented = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        if documented and isinstance(body, list) and ast.get_docstring(node) is not None:  # type: ignore[arg-type]
            body.pop(0)  # a text must not vouch for itself
        self.generic_visit(node)


def sources() -> list[Path]:
    return [path for top in CODE for path in sorted((ROOT / top).rglob("*.py"))]


def pages() -> list[Path]:
    return [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]


def docstrings(path: Path) -> Iterator[tuple[int, str]]:
    """Docstrings of a file, those of attributes too, each with its line."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            text = node.value.value
            if isinstance(text, str):
                yield node.lineno, text


def without_blocks(markdown: str) -> str:
    """A page without its fenced blocks, line numbers kept."""
    fenced = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
    return fenced.sub(lambda block: "\n" * block[0].count("\n"), markdown)


def headings(markdown: str) -> set[str]:
    """Anchors of a page, as the usual viewers make them of its headings."""
    titles = re.findall(r"^#+ (.+)$", without_blocks(markdown), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title).strip().lower().replace(" ", "-") for title in titles}


def member(value: Any, name: str) -> bool:
    """Whether an object has an attribute, or says in its class that instances have it."""
    kinds = value.__mro__ if isinstance(value, type) else ()
    return hasattr(value, name) or any(name in getattr(k, "__annotations__", ()) for k in kinds)


class References:
    """What may be named."""

    def __init__(self) -> None:
        sys.path[:0] = [str(ROOT), str(ROOT / "apps"), str(ROOT / "tools")]
        names = Names()
        for path in sources():
            names.visit(ast.parse(path.read_text(encoding="utf-8")))
            names.all.update(path.relative_to(ROOT).with_suffix("").parts)
        for name in WORDS:
            names.all.update(re.findall(r"\w+", (ROOT / name).read_text(encoding="utf-8")))
        names.all.update(path.stem for path in (ROOT / "presets").rglob("*.toml"))
        names.all.update(
            importlib.import_module("amt_stream.meters.rows.words").FAULT_NAMES.values()
        )
        nn = importlib.import_module("torch.nn")
        self.names = names.all | OTHERS | set(dir(nn)) | set(dir(nn.Module))
        self.package = importlib.import_module("amt_stream")
        catalog = importlib.import_module("amt_stream.meters.catalog")
        entries = map(catalog.entry, catalog.models_side_by_side())
        audience = importlib.import_module("amt_stream.meters.audience").NO_AUDIENCE
        known = {"band": True, "target_lufs": -23.0, "audience": audience}
        self.readings = [one.make_readings(2, **known) for one in entries]

    def _attributes(self, owner: type) -> set[str]:
        """Names that the classes of an object give to `self`."""
        found: set[str] = set()
        for kind in owner.__mro__:
            module = sys.modules[kind.__module__]
            if kind.__module__.split(".")[0] in ("amt_stream", "amt_monitor"):
                tree = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))
                bodies = [n for n in ast.walk(tree) if isinstance(n, ast.ClassDef)]
                for node in (n for b in bodies if b.name == kind.__name__ for n in ast.walk(b)):
                    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                        found.add(node.attr)
        return found

    def has(self, name: str, module: str) -> bool:
        """Whether a dotted name, as a text in `module` may write it, is there."""
        first, *rest = name.split(".")
        home = sys.modules.get(module)
        value = getattr(home, first, None) if home else None
        if value is None:
            value = getattr(self.package, first, None)
        if value is None and (first in OUTSIDE_AS or first in OUTSIDE or first == "amt_stream"):
            value = importlib.import_module(OUTSIDE_AS.get(first, first))
        if value is None or not rest:
            return value is not None or {first, *rest} <= self.names or self.column(name)
        for part in rest:
            if not member(value, part):
                if isinstance(value, type):
                    return part in self._attributes(value)
                # `engine.history`: an object that has the name of a module
                return isinstance(value, ModuleType) and set(rest) <= self.names
            value = getattr(value, part, None)
            if value is None:
                return True  # known by its annotation alone
        return True

    def column(self, name: str) -> bool:
        """Whether rows can have a column of that name."""
        return any(one.matching(name) for one in self.readings)

    def broken(self, text: str, module: str) -> Iterator[tuple[int, str]]:
        """Names in backticks that are nowhere, each with its line in `text`."""
        for ticked in TICKS.finditer(text):
            line, word = text[: ticked.start()].count("\n"), ticked[1]
            if PATH.fullmatch(word) and not any(c in word for c in "=<>"):
                if not self.path(word, module):
                    yield line, word
            elif (name := NAME.match(word)) and not self.has(name[0], module):
                yield line, word

    def path(self, word: str, module: str) -> bool:
        """Whether a path is there, seen from the root, the package or the file that names it.

        With ::name the file has to define that name.
        """
        word, _, defined = word.replace("NAME", "*").partition("::")
        here = ROOT.joinpath(*module.split("."))
        tops = (ROOT, ROOT / "amt_stream", ROOT / "apps", ROOT / "tests", here, here.parent)
        found = [path for top in tops for path in top.glob(word)]
        if defined:
            return any(f"def {defined}(" in path.read_text(encoding="utf-8") for path in found)
        # `stage/key` is no file, unless there is such a folder
        first, *rest = word.split("/")
        if first == OUTPUT.parent.name:  # what commands make need not be there
            return True
        is_key = not Path(word).suffix and not (ROOT / first).is_dir()
        return bool(found) or (is_key and {first, *rest} <= self.names)


def broken(references: References) -> list[str]:
    """Everything that a text names and that is not there, as "file:line names ..."."""
    found = []
    for path in sources():
        place = path.relative_to(ROOT)
        if place.parts[0] not in ("amt_stream", "apps"):
            continue
        module = ".".join(place.with_suffix("").parts).removesuffix(".__init__")
        if place.parts[0] == "amt_stream" and path.stem != "__main__":
            importlib.import_module(module)
        for first, text in docstrings(path):
            found += [
                f"{place}:{first + n} names `{w}`" for n, w in references.broken(text, module)
            ]
    for page in pages():
        place, markdown = page.relative_to(ROOT), page.read_text(encoding="utf-8")
        text = without_blocks(markdown)
        if page.name != "CHANGELOG.md":  # it tells of what was, too
            nowhere = references.broken(text, "docs")
            found += [f"{place}:{n + 1} names `{word}`" for n, word in nowhere]
        for link in LINK.finditer(text):
            target, _, anchor = link[1].partition("#")
            if re.match(r"[a-z]+:|generated/", target):
                continue  # Sphinx knows the pages that it makes
            goal = (page.parent / target).resolve() if target else page
            if not goal.exists() or (anchor and anchor not in headings(goal.read_text())):
                found.append(f"{place}:{text[: link.start()].count(chr(10)) + 1} links {link[1]}")
    return found


def build_site(builder: str) -> int:
    """The exit status of Sphinx, to which a warning is an error."""
    output = OUTPUT if builder == "html" else OUTPUT.with_name(builder)
    shutil.rmtree(output, ignore_errors=True)  # no page of what is gone
    options = ["--builder", builder, "--fail-on-warning", "--keep-going", "--quiet"]
    command = [sys.executable, "-m", "sphinx", *options, "--jobs", "auto"]
    command += [str(ROOT / "docs"), str(output)]
    return subprocess.run(command, check=False).returncode


def main(builder: str = "html") -> int:
    found = broken(References())
    for reference in found:
        print(reference, file=sys.stderr)
    if found:
        print(f"{len(found)} broken references: mend the text or the name", file=sys.stderr)
        return 1
    if failed := build_site(builder):
        return failed
    if builder == "html":
        print(OUTPUT / "index.html")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
