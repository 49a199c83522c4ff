"""The rules of the house that a program can hold: sizes, names, private names of dependencies."""

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOPS = ("amt_stream", "apps")
FILES = sorted(path for top in TOPS for path in (ROOT / top).rglob("*.py"))
LINES = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in FILES}

MOST_LINES, MOST_FILES = 112_792, 739
"""Of the whole product. These only go down."""

LINES_OF_ROOM, FILES_OF_FOLDER, LINES_OF_FILE = 14_000, 25, 500
METHODS, ATTRIBUTES = 20, 12

REASONS = ROOT / "tests" / "project" / "larger.txt"
"""What is larger than the rules have it, under the reason: its size, and what it is."""


def name(path):
    return path.relative_to(ROOT).as_posix()


def is_record(node):
    """Whether a class holds named values: its fields are data, not state."""
    marks = [ast.unparse(one) for one in (*node.decorator_list, *node.bases)]
    return any(re.match("dataclass|NamedTuple|TypedDict|Protocol", mark) for mark in marks)


def attributes(node):
    """Names that the methods of a class assign to `self`."""
    return {
        one.attr
        for one in ast.walk(node)
        if isinstance(one, ast.Attribute) and isinstance(one.ctx, ast.Store)
        if isinstance(one.value, ast.Name) and one.value.id == "self"
    }


def sizes():
    """Each thing that the rules bound: its kind and name, its size, its bound."""
    for path, lines in LINES.items():
        yield f"lines of {name(path)}", lines, LINES_OF_FILE
    for folder, files in Counter(path.parent for path in FILES).items():
        yield f"files of {name(folder)}", files, FILES_OF_FOLDER
    rooms = Counter()
    for path, lines in LINES.items():
        rooms["/".join(path.relative_to(ROOT).parts[:2])] += lines
    for room, lines in rooms.items():
        yield f"lines of {room}", lines, LINES_OF_ROOM
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.ClassDef):
                continue
            methods = sum(
                isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef) for one in node.body
            )
            yield f"methods of {name(path)}:{node.name}", methods, METHODS
            if not is_record(node):
                yield f"attributes of {name(path)}:{node.name}", len(attributes(node)), ATTRIBUTES


def test_the_product_grows_no_larger():
    assert len(FILES) <= MOST_FILES
    assert sum(LINES.values()) <= MOST_LINES


def test_what_is_larger_than_the_rules_has_a_reason():
    found = {what: size for what, size, bound in sizes() if size > bound}
    written, reason = {}, ""
    for line in REASONS.read_text(encoding="utf-8").splitlines():
        size, _, what = line.partition(" ")
        if size == "#":
            reason = what
        else:
            assert reason, f"{what} has no reason"
            written[what] = int(size)
    grown = {what: size for what, size in found.items() if size > written.get(what, 0)}
    assert not grown, "make them smaller, or write why not"
    assert not set(written) - set(found), "these keep the rules now: take their lines out"


@pytest.mark.parametrize("form", [r"deepcopy\(self\)", r"\.__dict__\.update\("])
def test_no_object_copies_itself_to_be_undone(form):
    """What can be undone is a pair of states, of one class."""
    assert not [name(path) for path in FILES if re.search(form, path.read_text(encoding="utf-8"))]
