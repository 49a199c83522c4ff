"""The meter that docs/adding.md adds: built in a copy of the tree by its blocks, and run."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "adding.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```python\n# (\S+?)(?:, (at the end|in \w+))?\n(.*?)^```$", re.M | re.S)

TESTS = (
    "test_crest or every_exported or every_meter_has_checks or every_model_passes and crest "
    "or test_help_is or few_readings and crest or cut_off and crest or entry_is_true and crest"
)
"""Those of the meter, and those of all meters that need no document."""


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A copy of the package with its compiled kernels, the window and the tests, and each block."""
    tree = tmp_path_factory.mktemp("adding")
    for name in ("amt_stream", "apps", "tests", "presets"):
        ignored = shutil.ignore_patterns("*.tmp.*", "*.pyc.*")  # other tests may write them now
        shutil.copytree(ROOT / name, tree / name, ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", tree)
    for name, place, code in BLOCK.findall(PAGE):
        path = tree / name
        if not place:
            assert not path.exists(), f"{name} is there already"
            path.write_text(code, encoding="utf-8")
            continue
        text = path.read_text(encoding="utf-8")
        if place == "at the end":
            text = f"{text}\n\n{code}"
        else:
            table = place.removeprefix("in ")
            begins = re.search(rf"^{table}\b.*[(\[{{]$", text, re.MULTILINE)
            assert begins, f"{name} has no {table}"
            ends = re.compile(r"^[)\]}]", re.MULTILINE).search(text, begins.end())
            text = text[: ends.start()] + code + text[ends.start() :]
        path.write_text(text, encoding="utf-8")
    return tree


def ran(tree, *words):
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(tree), str(tree / "apps")]),
        "QT_QPA_PLATFORM": "offscreen",
    }
    done = subprocess.run(
        [sys.executable, *words],
        cwd=tree,
        env=environment,
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_tests_of_the_added_meter_pass(tree):
    told = ran(
        tree,
        *("-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider"),
        *("tests/dsp/metrology/test_crest.py", "tests/dsp/contract/test_module_contract.py"),
        *("tests/offline/test_selftest.py", "tests/cli/test_help.py"),
        "tests/apps/test_readings_window.py",
        *("-k", TESTS),
    )
    assert "passed" in told
    assert "skipped" not in told


@pytest.mark.quick
def test_the_command_offers_it(tree):
    assert "crest" in ran(tree, "-m", "amt_stream", "meter", "--help")
