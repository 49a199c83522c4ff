"""The pages that the site is made of: every public name, every command, docstrings as they are."""

import importlib
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import amt_stream
from amt_stream.cli.command import COMMANDS

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def pages():
    """The module of `docs` that writes them."""
    sys.path.insert(0, str(DOCS))
    try:
        return importlib.import_module("reference_pages")
    finally:
        sys.path.remove(str(DOCS))


@pytest.fixture
def written(pages, tmp_path, monkeypatch):
    monkeypatch.setattr(pages, "FOLDER", tmp_path)
    pages.write_pages(None)
    return tmp_path


def test_every_public_name_and_every_command_has_its_place(written):
    rooms = {name for name in amt_stream.__all__ if (DOCS.parent / "amt_stream" / name).is_dir()}
    names = {path.stem for path in (written / "api").iterdir()}
    assert names >= set(amt_stream.__all__) - rooms
    assert names >= {"Health", "Frames", "SampleRing", "COMMANDS"}  # of rooms
    listed = (written / "names.md").read_text()
    assert all(f"(api/{name}.rst)" in listed for name in names)
    commands = (written / "command_line.md").read_text()
    assert all(f"\n## {name}\n" in commands for name in COMMANDS)


def test_every_page_of_docs_is_in_the_contents():
    contents = (DOCS / "index.md").read_text().split()
    assert {page.stem for page in DOCS.glob("*.md")} - {"index"} <= set(contents)


def test_programs_that_read_find_every_page_with_what_it_is_about(pages, tmp_path):
    pages.write_summary(
        SimpleNamespace(builder=SimpleNamespace(name="html"), outdir=tmp_path), None
    )
    summary = (tmp_path / "llms.txt").read_text(encoding="utf-8")
    listed = {Path(link).stem for link in re.findall(r"^- \[.+\]\((.+)\): For .+", summary, re.M)}
    assert {page.stem for page in DOCS.glob("*.md")} - {"index"} <= listed


@pytest.mark.parametrize(
    ("docstring", "page"),
    [
        ("Loudness of *one* ear.", r"Loudness of \*one\* ear."),
        ("The `State` of `a stage`.", "The `State` of ``a stage``."),
        (
            "As in\n\nfs: rate\nstl, ltl: loudness\n    in sone",
            "As in\n\n* **fs**: rate\n* **stl, ltl**: loudness\n  in sone",
        ),
        (
            "queue_s    what waits\n           in the ring",
            "* **queue_s**: what waits\n  in the ring",
        ),
        (
            "Use it:\n\n    with x as y:\n        y()",
            "Use it:\n\n::\n\n    with x as y:\n        y()",
        ),
        (">>> 1 * 2\n2", ">>> 1 * 2\n2"),
    ],
)
def test_docstrings_keep_their_form(pages, docstring, page):
    lines = docstring.split("\n")
    pages.to_restructured_text(None, "", "", None, None, lines)
    assert "\n".join(lines).strip() == page
