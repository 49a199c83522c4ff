"""What runs on the CPU alone gives its numbers everywhere, and no gradient."""

import pytest
import torch
from torch import func

import amt_stream as amt
from tests.dsp import torch_warnings
from tests.dsp.contract.test_module_contract import CASES, fields, shape_of

STAGES = [
    "ECMAEnvelopes",
    "ECMASpecificFluctuation",
    "ECMASpecificLoudness",
    "ECMASpecificRoughness",
    "ECMASpecificTonality",
    "ECMATonalNoise",
]

pytestmark = torch_warnings.IGNORED


@pytest.mark.parametrize("name", STAGES)
def test_it_gives_the_same_numbers_with_and_without_gradients_and_in_a_graph(name):
    case = CASES[name]
    stage = case.make().double()
    x, shape = case.input(stage), shape_of(case, stage)

    def step(x):
        # A state wants a gradient where the stage before it learned in the last block.
        state = {key: v + 0 * x.sum().to(v.dtype) for key, v in stage.initial_state(shape).items()}
        return fields(stage.step(x, state)[0])

    with torch.no_grad():
        expected = step(x)
    torch.compiler.reset()
    forms = step, torch.compile(step, backend="aot_eager", fullgraph=True)
    for form in forms:
        for a, b in zip(form(x.clone().requires_grad_()), expected, strict=True):
            assert a.equal(b)
            assert not a.requires_grad
    rows = func.vmap(step)(torch.stack([x, 0 * x]))
    for a, b in zip(rows, expected, strict=True):
        assert a[0].equal(b)
    assert not func.grad(lambda x: sum(v.sum() for v in step(x)))(x).any()


def test_a_model_gives_no_gradient():
    x = torch.zeros(1, 4096, requires_grad=True)
    y = amt.ECMALoudness()(x)
    with pytest.raises(RuntimeError, match="does not require grad"):
        y.n.sum().backward()
