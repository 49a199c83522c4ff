"""What is compiled before the tests is of all stages, each once."""

import pytest

from tests.dsp.kernels import compiling
from tests.dsp.kernels.compiling import CASES, ORDERS, step, taken


def test_each_part_is_taken_once(tmp_path):
    first, last = (taken(tmp_path, ORDERS[order](CASES)) for order in ("first", "last"))
    both = [name for pair in zip(first, last, strict=False) for name in pair]
    assert sorted([*both, *first, *last]) == sorted(CASES)


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
