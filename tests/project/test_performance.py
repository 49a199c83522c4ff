"""The page of speed is made of its figures, and what other texts say of speed is in them."""

import re
from pathlib import Path

import pytest

from tools import performance

ROOT = Path(__file__).parents[2]


def test_the_page_is_made_of_the_figures():
    parts = performance.kept()
    page = performance.PAGE.read_text(encoding="utf-8")
    assert page == performance.markdown(parts)
    shown = re.findall(r"\]\(pictures/(\w+\.svg)\)", page)
    assert len(shown) == 5
    assert all((performance.PICTURES / name).exists() for name in shown)


@pytest.mark.parametrize("text", ["README.md", "docs/paper/paper.md"])
def test_texts_say_what_the_binaural_model_costs(text):
    (figure,) = performance.wholes(
        performance.kept()["models"], model="moore2016", block_ms=10, streams=1
    )
    words = " ".join((ROOT / text).read_text(encoding="utf-8").split())
    assert f" takes about {100 * figure['median']:.0f} % of " in words


def test_keeping_a_model_leaves_the_others(tmp_path, monkeypatch):
    monkeypatch.setattr(performance, "NUMBERS", tmp_path / "performance.json")
    performance.keep("models", [{"model": "one", "median": 1}], model="one")
    performance.keep("models", [{"model": "two", "median": 2}], model="two")
    performance.keep("models", [{"model": "one", "median": 3}], model="one")
    assert performance.kept() == {
        "models": [{"model": "two", "median": 2}, {"model": "one", "median": 3}]
    }
