"""On a device no step reads a number, brings one from the host or branches on one."""

import json
from functools import cache

import pytest
import torch

from amt_stream.dsp.cuda_stream import HostedStream
from amt_stream.dsp.functional.compiler import dispatch
from amt_stream.dsp.stream import Stream
from amt_stream.dsp.streaming import fields
from tests.dsp.contract import fake_device
from tests.dsp.contract.fake_device import BUDGETS, DEFECTS
from tests.dsp.contract.test_module_contract import CASES, shape_of
from tests.recorder import Recorder

CHAINS = ["DanielWeber", "ECMA418", "ECMAFluctuation", "ECMALoudness", "ECMARoughness"]
CHAINS += [
    "ECMATonality",
    "Glasberg2002",
    "King2019",
    "Osses2021",
    "PartialLoudness",
    "Paulick2024",
    "ZwickerTimeVarying",
]
"""Those of which each stage is tried by itself, as are two chains: in `make soak`."""

DEAR = [*CHAINS, "ECMASpecificFluctuation", "ECMASpecificRoughness", "ECMATonalNoise"]
STAGES = [name for name in CASES if name not in CHAINS]
PARTS = {
    "some": [*DEFECTS, *STAGES[::10], *BUDGETS],
    "others": [name for name in STAGES if name not in STAGES[::10]] + CHAINS,
}


@cache
def remarks(forks, part):
    """Of a program of its own, on each name of a part."""
    done = forks.run(fake_device.__file__, *PARTS[part], options=["program"])
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


@pytest.mark.parametrize("part", ["some", pytest.param("others", marks=pytest.mark.soak)])
def test_no_step_needs_the_host_nor_many_launches(forks, part):
    found = remarks(forks, part)
    assert list(found) == PARTS[part]
    assert {name: told for name, told in found.items() if told and name not in DEFECTS} == {}


def test_what_needs_the_host_is_found(forks):
    assert len(DEFECTS) >= 12
    assert [name for name in DEFECTS if not remarks(forks, "some")[name]] == []


LOUDNESSES = (1.0, 30.0, 1e-3, 0.0, 1.0, 1e-5)
"""Factors on the input of one block after another: soft and loud ones, and silence."""


@pytest.mark.cases(9)
@pytest.mark.quick
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.soak] if n in DEAR else []) for n in CASES]
)
def test_a_step_replayed_is_the_step(name, monkeypatch):
    """What a graph captured on a device does: the operations of one block, on others."""
    case = CASES[name]
    stage = case.make().double()
    x = case.input(stage)
    most = stage.block_size * max(1, 8 // stage.block_size)
    x = x.narrow(stage.time_dim, 0, min(most, x.shape[stage.time_dim]))
    live, device = Stream(stage, shape_of(case, stage)), Recorder()
    captured = HostedStream(stage, live.shape, device)
    with monkeypatch.context() as patch:
        patch.setattr(dispatch, "_KINDS", ())  # kernels of the CPU leave no operation to record
        assert captured.capture(x.shape[stage.time_dim])
    for factor in LOUDNESSES:
        with torch.no_grad():
            got, expected = fields(captured(factor * x)), fields(live(factor * x))
        got, expected = [*got, *captured.state.values()], [*expected, *live.state.values()]
        for a, b in zip(got, expected, strict=True):
            peak = b.abs().max().item() if b.numel() and b.is_floating_point() else 0
            torch.testing.assert_close(a, b, rtol=0, atol=1e-9 * peak, equal_nan=True)
    assert device.replays == len(LOUDNESSES)
