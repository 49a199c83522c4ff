"""Tags of threads in docstrings: they hold, they are explained, and they cost nothing."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from amt_stream.engine import Engine
from amt_stream.engine.thread_check import LEGEND, TAG, WrongThread

ROOT = Path(__file__).parents[2]
CHECKED = ("engine", "sessions", "service")
"""Rooms whose classes are checked: those above the engine's module, and it."""


def classes():
    for room in CHECKED:
        for path in sorted((ROOT / "amt_stream" / room).rglob("*.py")):
            for node in ast.parse(path.read_text(encoding="utf-8")).body:
                if isinstance(node, ast.ClassDef):
                    yield f"{path.relative_to(ROOT)}: {node.name}", node


def test_a_call_from_the_wrong_thread_is_told(power_meter, scripted, noise, until):
    def script(deliver):
        while not done:
            deliver(noise(480))

    done, heard = [], []
    with Engine(scripted(script), power_meter(), [heard.append]) as engine:
        until(lambda: len(heard) > 2)
        with pytest.raises(WrongThread, match=r"\[model-thread\] was called in MainThread"):
            engine._models.first.flush()
        done.append(True)
    assert engine.error is None


def test_a_sink_that_calls_what_may_wait_is_told(power_meter, scripted, noise):
    told = []

    def sink(frames):
        if not told:
            with pytest.raises(
                WrongThread, match=r"\[main-thread\] was called in sink-thread"
            ) as wrong:
                engine.start()
            told.append(wrong)

    engine = Engine(
        scripted(lambda deliver: deliver(noise(4800)), live=False), power_meter(), [sink]
    )
    with engine:
        assert engine.wait(60)
    assert told


def test_each_class_with_tags_is_checked():
    forgotten = []
    for name, node in classes():
        tags = [
            TAG.search(ast.get_docstring(one) or "") for one in node.body if hasattr(one, "args")
        ]
        tagged = any(tag and "any-thread" not in tag[1] for tag in tags)
        if tagged and "thread_checked" not in [ast.unparse(one) for one in node.decorator_list]:
            forgotten.append(name)
    assert not forgotten


def test_the_legend_has_each_tag_and_the_page_has_the_legend():
    used = set()
    for path in [*(ROOT / "amt_stream").rglob("*.py"), *(ROOT / "apps").rglob("*.py")]:
        for found in TAG.finditer(path.read_text(encoding="utf-8")):
            used.update(found[1].split(", "))
    assert used == set(LEGEND)
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    for tag, who in LEGEND.items():
        assert f"| [{tag}] | {who} |" in page


def test_without_the_environment_nothing_is_wrapped():
    program = """
from amt_stream.engine.inputs.ring import SampleRing
from amt_stream.engine.models.model_runner import Work
print(hasattr(SampleRing.write, "__wrapped__"), hasattr(Work.run, "__wrapped__"))
"""
    environment = {"PATH": "", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True, env=environment
    )
    assert done.stdout.split() == ["False", "False"]
