"""What is compiled before the tests is of all stages, each once."""

from itertools import zip_longest

import pytest

from tests.dsp.kernels import compiling
from tests.dsp.kernels.compiling import CASES, ORDERS, step, taken


def test_each_part_is_taken_once(tmp_path):
    first, last = (taken(tmp_path, ORDERS[order](CASES)) for order in ("first", "last"))
    both = [name for pair in zip_longest(first, last) for name in pair if name is not None]
    assert sorted(both) == sorted(CASES)


def test_stages_and_meters_are_gone_through(monkeypatch, tmp_path):
    stepped = []
    monkeypatch.setattr(compiling, "CASES", {"Gain": CASES["Gain"]})
    monkeypatch.setattr(compiling, "run_command", stepped.append)
    monkeypatch.setattr(compiling, "step", lambda *given: stepped.append(step(*given)))
    compiling.main(tmp_path, "first")
    compiling.main(tmp_path, "last")
    assert len(stepped) == 2 + len(compiling.MODELS)  # the stage in both widths, and the meters


@pytest.mark.parametrize("name", ["AdaptLoop", "Sharpness"])
def test_a_step_is_taken(name):
    step(CASES[name], CASES[name].make())
