"""What the texts say is so: their examples run, and what they name and link is there."""

import doctest
import importlib
import re
import shlex
from pathlib import Path

import pytest

import amt_stream
from tests.project.test_rooms import ROOMS
from tools import docs

ROOT = Path(__file__).parents[2]
SHOWING = [
    (ROOT / page).read_text(encoding="utf-8")
    for page in ("README.md", "docs/measuring.md", "docs/python.md", "docs/accuracy.md")
]
"""Pages whose Python and whose `$ amt-stream` run as they stand, in this order."""
EXAMPLES = [
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for path in sorted((ROOT / "amt_stream").rglob("*.py"))
    if ">>> " in path.read_text(encoding="utf-8")
]


@pytest.mark.parametrize("module", EXAMPLES)
def test_examples_of_docstrings(module):
    result = doctest.testmod(importlib.import_module(module))
    assert result.attempted
    assert not result.failed


@pytest.fixture(scope="module")
def references():
    return docs.References()


def test_no_text_names_what_is_not_there(references):
    assert docs.broken(references) == []


@pytest.mark.parametrize(
    ("text", "broken"),
    [
        ("`Stream.reset` and `Stage.block_size`, `Frames.values` and `Moore2016`", []),
        ("`amt_stream/engine/devices/listing.py`, `torch.nn.Module`, `time_s`, `--format csv`", []),
        ("`project/test_public_names.py::test_the_package_runs_as_the_command`", []),
        (
            "`project/test_public_names.py::test_nothing`",
            ["project/test_public_names.py::test_nothing"],
        ),
        ("`lceq_15min_db`, `l5_db`, `ltl_n30_1h_phon`, `max_ltl_low_sone`, `integrated_lu`", []),
        ("`lafmax_15min_db`, `ltl_n5_sone`", ["lafmax_15min_db", "ltl_n5_sone"]),
        ("`Stream.restart`", ["Stream.restart"]),
        ("`NoSuchStage` reads `quite_unheard_of`", ["NoSuchStage", "quite_unheard_of"]),
        ("`amt_stream/engine/nowhere.py`", ["amt_stream/engine/nowhere.py"]),
        ("`tests/dsp/kernels`, `part/name`, `tests/name`", ["tests/name"]),
        ("`build/frozen/unheard_of`", []),  # which a command makes
        ("`torch.nn.NoSuchModule`", ["torch.nn.NoSuchModule"]),
    ],
)
def test_a_broken_reference_is_seen(references, text, broken):
    assert [word for _, word in references.broken(text, "amt_stream.engine")] == broken


def test_a_broken_link_is_seen(references, tmp_path, monkeypatch):
    page = tmp_path / "page.md"
    page.write_text("# One title\n\n[good](#one-title) [bad](#another) [gone](gone.md)\n")
    monkeypatch.setattr(docs, "ROOT", tmp_path)
    monkeypatch.setattr(docs, "sources", list)
    monkeypatch.setattr(docs, "pages", lambda: [page])
    monkeypatch.setattr(docs, "WORDS", ())
    assert docs.broken(references) == ["page.md:3 links #another", "page.md:3 links gone.md"]


def test_the_map_of_rooms_is_that_of_the_test_and_short():
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    assert len(page.splitlines()) <= 155
    table = page.partition("## Rooms")[2].partition("\n## ")[0]
    assert tuple(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == ROOMS


def test_what_the_meter_does_not_use_says_so_first():
    used = {type(module) for module in amt_stream.Moore2016().modules()}
    named = [getattr(amt_stream, name) for name in amt_stream.__all__ if "Moore2016" in name]
    stages = [kind for kind in named if issubclass(kind, amt_stream.Stage)]
    assert len(stages) >= 5
    for kind in stages:
        first = kind.__doc__.partition("\n")[0]
        assert ("not in the meter" in first) == (kind not in used), f"{kind.__name__}: {first}"


def test_the_citation_has_the_version_and_no_doi_of_its_own():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.findall(r"^version: (.+)$", citation, re.MULTILINE) == [amt_stream.__version__]
    dois = set(re.findall(r"doi: (\S+)", citation))
    references = (ROOT / "docs" / "references.md").read_text(encoding="utf-8")
    assert dois
    assert dois <= set(re.findall(r"doi:\[(\S+?)\]", references))


def blocks(page: str, language: str) -> list[str]:
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    return [block for kind, block in fenced if kind == language]


@pytest.fixture(scope="module")
def folder(forks, tmp_path_factory):
    """Where the blocks of Python of each page have run, top to bottom as one program."""
    folder = tmp_path_factory.mktemp("pages")
    for page in SHOWING:
        strict = "import warnings; warnings.simplefilter('error')"
        program = "\n".join([strict, *blocks(page, "python")])
        done = forks.run(program, folder=folder, options=["code"])
        assert done.returncode == 0, done.stderr.decode()
    return folder


def test_the_python_of_pages_runs(folder):
    assert (folder / "tone.wav").exists()


NUMBER = re.compile(r"-?\d+\.\d+")
UTC = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z")


def same(printed: str, expected: str) -> bool:
    """Whether two lines agree: in their words, and in their fractions to 0.1 % or 1e-6.

    A row may be marked as late: the computer that runs the tests can be busy.
    """
    printed = printed.replace(",overload,", ",,")
    printed, expected = (UTC.sub("UTC", line) for line in (printed, expected))
    numbers = [[float(n) for n in NUMBER.findall(line)] for line in (printed, expected)]
    return NUMBER.sub("#", printed) == NUMBER.sub("#", expected) and numbers[0] == pytest.approx(
        numbers[1], rel=1e-3, abs=1e-6
    )


TYPED = [
    block for page in SHOWING for block in blocks(page, "") if block.startswith("$ amt-stream ")
]


@pytest.mark.parametrize(
    "block",
    [
        pytest.param(block, marks=[pytest.mark.soak] if "selftest" in block[:30] else [])
        for block in TYPED
    ],
    ids=[block.partition("\n")[0].removeprefix("$ amt-stream ") for block in TYPED],
)
def test_what_pages_type_gives_what_they_show(forks, folder, block):
    """Line for line, where "..." stands for any number of lines."""
    command, *shown = block.splitlines()
    words = shlex.split(command.removeprefix("$ amt-stream "))
    done = forks.run(*words, folder=folder)
    assert done.returncode == 0, done.stderr
    printed = done.stdout.decode().splitlines()
    for i, line in enumerate(shown):
        if line == "...":
            rest = len(shown) - i - 1
            printed[i : len(printed) - rest] = ["..."]
        assert i < len(printed), f"{line!r} is shown and nothing printed"
        assert same(printed[i], line), f"{line!r} is shown, {printed[i]!r} printed"
    assert len(printed) == len(shown)
