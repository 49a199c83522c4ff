"""What a stage says of itself in its `repr`."""

import inspect
import re

import numpy as np
import pytest
import torch
from torch import nn

from amt_stream import (
    Chain,
    Gain,
    ModulationFilterbank,
    Moore2016AGC,
    PowerCompression,
    SpatialSmoothing,
)
from amt_stream.dsp.checkpoints import short_text
from tests.dsp.contract.test_module_contract import CASES, LEARNERS, STAGES


def digits(number):
    """How many significant digits `number` is written with."""
    return len(number.replace(".", "").lstrip("0"))


OPTIONS = [(name, {}) for name in STAGES] + [(name, {"learnable": True}) for name in LEARNERS]


@pytest.mark.parametrize(("name", "options"), OPTIONS)
def test_all_arguments_stand_in_it_and_no_rounding(name, options):
    stage = CASES[name].make(**options).float()
    text = stage.extra_repr()
    parameters = inspect.signature(type(stage)).parameters.values()
    by_name = [p.name for p in parameters if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]
    for argument in by_name:
        shown = argument not in ("dtype", "module")
        assert bool(re.search(rf"\b{argument}=", text)) is shown, argument
    # Nobody means more than seven; float32 widened has sixteen.
    assert all(digits(number) <= 7 for number in re.findall(r"\d*\.\d+", repr(stage)))
    assert repr(stage.double()) == repr(stage)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.3, "0.3"),
        (float(np.float32(0.3)), "0.3"),
        (torch.tensor(0.08), "0.08"),
        (np.float64(2) / 3, "0.6666667"),
        (48000, "48000"),
        (48000.0, "48000"),
        (None, "None"),
        ("free", "'free'"),
        ((80.0, 8000.0), "(80, 8000)"),
        (torch.arange(150.0), "0..149 (150)"),
        ({"tau": [0.1]}, "{'tau': [0.1]}"),
        (torch.empty(3, device="meta"), "(3)"),
    ],
)
def test_numbers_for_a_person(value, text):
    assert short_text(value) == text


def test_it_says_what_is_so_now():
    agc = Moore2016AGC(learnable=True)
    assert repr(agc) == "Moore2016AGC(attack_alpha=0.045, release_alpha=0.033, learnable=True)"
    with torch.no_grad():
        agc.attack_alpha.fill_(0.3)
    assert "attack_alpha=0.3, release_alpha=0.033" in repr(agc)
    assert "max_mfc=150, lp_cutoff=2.5" in repr(ModulationFilterbank(8000, [500.0]))
    assert repr(PowerCompression()).startswith("PowerCompression(knee_db=30, exponent=0.3, dboff")
    assert "kernel_width=18, sigma=0.08" in repr(SpatialSmoothing())
    assert repr(Chain(twice=Gain(2.0), bend=nn.Tanh())).startswith(
        "Chain(\n  (twice): Gain(factor=2, time_dim=-1)"
    )
