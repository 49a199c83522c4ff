"""What runs on the CPU alone gives its numbers everywhere, and no gradient."""

import pytest
import torch
from torch import func
from torch.utils._python_dispatch import TorchDispatchMode

import amt_stream as amt
from amt_stream.dsp.compute_device import ComputeDevice
from tests.dsp import torch_warnings
from tests.dsp.contract.test_module_contract import CASES, fields, shape_of
from tests.dsp.contract.test_module_contract import STAGES as EXPORTED

STAGES = sorted(name for name, kind in EXPORTED.items() if kind.on_host)

pytestmark = torch_warnings.IGNORED


@pytest.mark.cases(2)
@pytest.mark.parametrize("name", STAGES)
def test_it_gives_the_same_numbers_with_and_without_gradients_and_in_a_graph(name):
    case = CASES[name]
    stage = case.make().double()
    x, shape = case.input(stage), shape_of(case, stage)

    def step(x):
        # A state wants a gradient where the stage before it learned in the last block.
        state = {key: v + 0 * x.sum().to(v.dtype) for key, v in stage.initial_state(shape).items()}
        # An output of the input's shape is the input.
        return [v for v in fields(stage.step(x, state)[0]) if v.shape != x.shape]

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


class Operators(TorchDispatchMode):
    """Notes whether an operator ran that computes on the CPU: it has no gradient."""

    found = False

    def __torch_dispatch__(self, called, types, args=(), kwargs=None):
        if called.namespace == "amt_stream":
            name = called.name().removeprefix("amt_stream::")
            self.found |= not hasattr(torch.ops.amt_stream, f"{name.split('.')[0]}_backward")
        return called(*args, **(kwargs or {}))


@pytest.mark.cases(11)
@pytest.mark.parametrize("name", EXPORTED)
def test_what_computes_on_the_cpu_is_left_there_and_all_else_moved(name):
    stage = CASES[name].make()
    elsewhere = ComputeDevice("meta")
    elsewhere.take(stage)
    moved = stage.device.type == "meta"
    assert moved or type(elsewhere.stream(stage, shape_of(CASES[name], stage))) is amt.Stream
    stage.to("meta")
    x = CASES[name].input(stage).to("meta")
    with Operators() as ran:
        stage.step(x, stage.initial_state(shape_of(CASES[name], stage)))
    assert moved is not ran.found
