"""What is compiled before the tests is of all stages, each once."""

import pytest

from tests.conftest import COMPILED
from tests.dsp.kernels import compiling
from tests.dsp.kernels.compiling import CASES, FAMILIES, stages_of, step


def test_each_stage_is_in_one_family():
    assert len(FAMILIES) == COMPILED
    assert sorted(name for family in FAMILIES for name in stages_of(family)) == sorted(CASES)


def test_a_family_goes_through_all_of_its_stages(monkeypatch):
    stepped = []
    monkeypatch.setattr(compiling, "CASES", {"Gain": CASES["Gain"]})
    monkeypatch.setattr(compiling, "run_command", stepped.append)
    monkeypatch.setattr(compiling, "step", lambda *given: stepped.append(step(*given)))
    compiling.main("king2019")
    assert len(stepped) == 1 + 2  # the meters, and the stage in both widths


@pytest.mark.parametrize("name", ["AdaptLoop", "Sharpness"])
def test_a_step_is_taken(name):
    step(CASES[name], CASES[name].make())
