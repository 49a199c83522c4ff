"""The generated pages: the live meter, each public name, and each command with its options."""

import importlib
import importlib.util
import re
import shutil
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from types import GenericAlias
from typing import Any

from amt_stream.native.build import Request, build_library
from amt_stream.native.web_files import WASM, web_files

ROOT = Path(__file__).resolve().parent.parent
FOLDER = Path(__file__).resolve().parent / "generated"
CallableAlias = type(Callable[[], None])
EXPORT = re.compile(r"^from (\.[\w.]*) import (\w+) as (\w+)$", re.MULTILINE)
PARTS = {  # module of a name: the heading that it is listed under; the first that fits
    "amt_stream.dsp.models": "Models",
    "amt_stream.dsp.stages": "Stages",
    "amt_stream.dsp": "Streaming",
    "amt_stream.engine": "Engine",
    "amt_stream.meters": "Meters",
    "amt_stream.native": "Without torch",
    "amt_stream.offline": "Arrays and files",
    "amt_stream.sessions": "Sessions",
    "amt_stream.service": "Service",
}
FIELD = re.compile(r"^(\w+(?:, \w+)*): (?=\S)|^([\w*]+(?:, [\w*]+)*)  +(?=\S)")
OUTSIDE = re.compile(r"\[([^\]]+)\]\((\.\./[^)#]+)\)")
TICKED = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
NAMED = re.compile(r"[A-Za-z_][\w.]*(\(\))?")
MARKUP = re.compile(r"([*|\\])|(?<=\w)_(?!\w)")


def public_names() -> dict[str, tuple[str, str]]:
    """Each exported name, with the package that exports it and the module that defines it."""
    found: dict[str, tuple[str, str]] = {}
    for stub in [ROOT / "amt_stream/__init__.pyi", *sorted(ROOT.glob("amt_stream/*/__init__.pyi"))]:
        package = ".".join(stub.parent.relative_to(ROOT).parts)
        for home, _, name in EXPORT.findall(stub.read_text(encoding="utf-8")):
            if home != ".":
                found.setdefault(name, (package, importlib.util.resolve_name(home, package)))
    return found


def write_pages(app: Any) -> None:
    """Write the pages into `generated`, anew each time."""
    shutil.rmtree(FOLDER / "api", ignore_errors=True)
    (FOLDER / "api").mkdir(parents=True)
    write_names()
    write_commands()
    write_outside()


def write_live_meter() -> Path:
    """Write the meter of the first page, a model as WebAssembly; gives its folder."""
    model, folder = "zwicker", FOLDER / "live"
    files = web_files(model, build_library(Request(model, 48000, 1, 0.01, (WASM,))))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "meter.html").write_bytes(files[f"{model}.html"])
    return folder


def write_names() -> None:
    """A page of each name, and one that lists them."""
    parts: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for name, (package, home) in public_names().items():
        value = getattr(importlib.import_module(home), name)
        kind = "class" if isinstance(value, type) else "function" if callable(value) else "data"
        if isinstance(value, GenericAlias | CallableAlias):
            kind = "data"
        place = home if kind == "data" else package  # only its file has the docstring of a constant
        lines = [name, "=" * len(name), "", f".. currentmodule:: {place}", ""]
        lines += [f".. auto{kind}:: {name}", *["   :members:"] * (kind == "class"), ""]
        (FOLDER / "api" / f"{name}.rst").write_text("\n".join(lines), encoding="utf-8")
        said = value.__doc__ or "" if kind != "data" else ""
        part = next(title for start, title in PARTS.items() if home.startswith(start))
        parts[part].append((name, " ".join(said.split("\n\n")[0].split())))
    lines = ["# Names", "", "Every public name, each with a page.", ""]
    for title, names in parts.items():
        names.sort(key=lambda one: one[0].lower())
        lines += [f"## {title}", "", "| name | what it is or gives |", "|---|---|"]
        lines += [f"| [`{name}`](api/{name}.rst) | {in_cell(first)} |" for name, first in names]
        lines += ["", "```{toctree}", ":hidden:", ""]
        lines += [*(f"api/{name}" for name, _ in names), "```", ""]
    (FOLDER / "names.md").write_text("\n".join(lines), encoding="utf-8")


CONTENTS = re.compile(r"^:caption: ([^\n]+)\n:hidden:\n\n(.*?)^```", re.MULTILINE | re.DOTALL)


def write_summary(app: Any, error: Exception | None) -> None:
    """Write llms.txt beside the site: for programs that read, each page with what it is about."""
    if error or app.builder.name != "html":
        return
    docs = FOLDER.parent
    lines = ["# amt_stream", "", f"> {first_sentence(ROOT / 'README.md')}"]
    for caption, names in CONTENTS.findall((docs / "index.md").read_text(encoding="utf-8")):
        lines += ["", f"## {caption}", ""]
        for name in names.split():
            page = docs / f"{name}.md"
            if page.exists():
                title = page.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
                lines.append(f"- [{title}]({name}.html): {first_sentence(page)}")
    Path(app.outdir, "llms.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def first_sentence(page: Path) -> str:
    """The first sentence below the title, which says what the page is about and who needs it."""
    paragraph = " ".join(page.read_text(encoding="utf-8").split("\n\n")[1].split())
    return re.split(r"(?<=\.) (?=[A-Z`\[])", paragraph)[0]


def in_cell(text: str) -> str:
    return text.replace("|", "\\|")


def write_commands() -> None:
    """The help of each command, as the parser prints it."""
    command = importlib.import_module("amt_stream.cli.command")
    parser = command.build_parser()
    (commands,) = (one for one in parser._actions if one.dest == "command")
    lines = [
        "# Command line",
        "",
        "For people who type commands: each command and its options, as `--help` prints them.",
        "",
    ]
    for name, described in command.COMMANDS.items():
        usage = commands.choices[name].format_help().rstrip()
        lines += [f"## {name}", "", described.help[0].upper() + described.help[1:] + ".", ""]
        lines += ["```", usage, "```", ""]
    (FOLDER / "command_line.md").write_text("\n".join(lines), encoding="utf-8")


def link_what_is_outside(app: Any, name: str, source: list[str]) -> None:
    """Lead links to files outside `docs` to their pages here, and write out names of folders."""

    def led(link: re.Match[str]) -> str:
        goal = ((ROOT / "docs" / name).parent / link[2]).resolve()
        if goal.is_dir():
            return link[1]
        if goal == ROOT / "README.md":
            return f"[{link[1]}](index.md)"
        if goal.suffix == ".md":
            return f"[{link[1]}](generated/{title_of(goal)}.md)"
        return link[0]

    source[0] = OUTSIDE.sub(led, source[0])


def title_of(page: Path) -> str:
    return "_".join(page.relative_to(ROOT).with_suffix("").parts).lower()


def write_outside() -> None:
    """Copies of the pages that live beside what writes them."""
    for page in (*ROOT.glob("tests/*/RESULTS.md"), ROOT / "tests/data/README.md"):
        shutil.copy(page, FOLDER / f"{title_of(page)}.md")


def to_restructured_text(app, what, name, obj, options, lines: list[str]) -> None:
    """Turn a docstring into reStructuredText, in place.

    The docstrings have blank lines between paragraphs, "name: what it is" for arguments with four
    blanks before their further lines, and names in single backticks.
    """
    made: list[str] = []
    for block in "\n".join(lines).strip("\n").split("\n\n"):
        rows = block.split("\n")
        if block.startswith("    "):
            rows = ["::", "", *rows]
        elif not block.startswith(">>> "):
            rows = prose(rows)
        made += [*rows, ""]
    lines[:] = made


def prose(rows: list[str]) -> list[str]:
    """A paragraph, or a list of arguments or fields, or both."""
    made: list[str] = []
    in_list = False
    for row in rows:
        field = FIELD.match(row)
        goes_on = in_list and row.startswith(" ")
        if made and not goes_on and (field is not None) != in_list:
            made.append("")  # between a list and a paragraph
        if field:
            made.append(f"* **{escaped(field[1] or field[2])}**: {escaped(row[field.end() :])}")
        else:
            made.append("  " * goes_on + escaped(row.strip()))
        in_list = field is not None or goes_on
    return made


def escaped(line: str) -> str:
    """Text with its code in double backticks, and without markup of reStructuredText by chance."""
    pieces = re.split(TICKED.pattern, line)
    made = []
    for number, piece in enumerate(pieces):
        if number % 2 == 0:
            made.append(MARKUP.sub(lambda found: "\\" + found[0], piece))
            continue
        after = pieces[number + 1][:1]
        ticks = "`" if NAMED.fullmatch(piece) else "``"
        made.append(f"{ticks}{piece}{ticks}" + ("\\ " if after.isalnum() else ""))
    return "".join(made)
