"""Whether files that were moved say the same: their syntax trees, but for imports, are equal.

    python tools/moves.py BEFORE AFTER

BEFORE and AFTER are commits. A moved file is the one that git takes for a rename. Import statements
are left out, names of our modules in strings and in attributes are brought to their new form, and
what else differs is printed, a line for each file; the exit status is 1 then.
"""

import ast
import re
import subprocess
import sys
from collections.abc import Mapping

PYTHON = re.compile(r".*\.pyi?$")
OURS = re.compile(r"\bamt_stream(?:[./][A-Za-z_]\w*)+")


def git(*words: str) -> str:
    return subprocess.run(["git", *words], check=True, capture_output=True, text=True).stdout


def renames(before: str, after: str) -> dict[str, str]:
    """New paths by old ones, of every Python file that is in both commits."""
    lines = git("diff", "--name-status", "-M50%", "--diff-filter=RM", before, after).splitlines()
    pairs = (line.split("\t")[1:] for line in lines)
    return {old: new for old, *rest in pairs for new in [*rest, old][:1] if PYTHON.match(old)}


def modules(moved: Mapping[str, str]) -> dict[str, str]:
    """New dotted names by old ones, packages too."""
    found = {}
    for old, new in moved.items():
        one, other = (
            re.sub(r"(/__init__)?\.pyi?$", "", path).replace("/", ".") for path in (old, new)
        )
        while one != other and one and other:
            found[one] = other
            (one, _, last), (other, _, its) = one.rpartition("."), other.rpartition(".")
            if last != its:
                break
    return found


class Bare(ast.NodeTransformer):
    """A tree without imports, with the names of modules as they are afterwards."""

    def __init__(self, moved: Mapping[str, str]) -> None:
        self._moved = moved

    def visit_Import(self, node: ast.Import) -> None: ...

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None: ...

    def _new(self, text: str) -> str:
        def one(found: re.Match[str]) -> str:
            parts = found[0].replace("/", ".").split(".")
            for count in range(len(parts), 1, -1):
                new = self._moved.get(".".join(parts[:count]))
                if new is not None:
                    return ".".join([new, *parts[count:]])
            return ".".join(parts)

        # Names within sentences change where lines end.
        return " ".join(OURS.sub(one, text).split())

    def visit_Constant(self, node: ast.Constant) -> ast.Constant:
        return ast.Constant(self._new(node.value)) if isinstance(node.value, str) else node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        text = ast.unparse(node)
        if re.fullmatch(r"amt_stream(\.\w+)+", text):
            return ast.Name(self._new(text))
        self.generic_visit(node)
        return node


def tree(commit: str, path: str, moved: Mapping[str, str]) -> str:
    return ast.dump(Bare(moved).visit(ast.parse(git("show", f"{commit}:{path}"))), indent=1)


def main(before: str, after: str) -> int:
    moved = renames(before, after)
    new = modules(moved)
    differ = [
        f"{old} -> {now}"
        for old, now in moved.items()
        if tree(before, old, new) != tree(after, now, new)
    ]
    went = sum(old != now for old, now in moved.items())
    print(*differ, f"{went} files moved, {len(differ)} of {len(moved)} differ", sep="\n")
    return bool(differ)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
