"""Graphs and transforms of torch: what they give is what an ordinary call gives, or they refuse."""

import pytest
import torch
from torch import func
from torch.autograd import forward_ad
from torch.utils._pytree import tree_leaves

import amt_stream as amt
from amt_stream import Stream
from amt_stream.dsp.functional.adaptation import Loops, adaptation_loops
from tests.dsp import torch_warnings
from tests.dsp.contract.test_module_contract import CASES, LEARNERS, Stepped, fields
from tests.dsp.contract.test_module_contract import shape_of as shape_without_time

RECURRENCES = [
    "AdaptLoop",
    "BS1770",
    "ButterworthFilter",
    "Excitation",
    "GammatoneFilterbank",
    "IHCEnvelope",
    "IHCPaulick2024",
    "King2019ModulationFilterbank",
    "ModulationFilterbank",
    "Moore2016",
]
"""Stages that have most of the operators between them."""


pytestmark = torch_warnings.IGNORED


def tensors(y):
    return [v for v in tree_leaves(y) if v is not None]


def assert_close(got, expected, rtol=1e-5):
    assert len(got) == len(expected)
    for a, b in zip(got, expected, strict=True):
        largest = b.abs().max().item() if b.numel() else 0
        torch.testing.assert_close(a, b, rtol=rtol, atol=rtol * largest)


def test_an_exported_stage_runs_in_another_program(forks, tmp_path):
    stage, x = amt.Moore2016(32000), 0.02 * torch.randn(1, 2, 320)
    torch.export.save(torch.export.export(stage, (x,), strict=False), tmp_path / "stage.pt2")
    torch.save((x, stage(x).stl), tmp_path / "expected.pt")
    program = (
        "import torch\nfrom amt_stream.dsp.stages import *\n"
        "x, stl = torch.load('expected.pt')\n"
        "y = torch.export.load('stage.pt2').module()(x)\n"
        "torch.testing.assert_close(y.stl, stl)\n"
    )
    done = forks.run(program, options=["code"], folder=tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.quick
def test_a_compiled_loop_is_one_operator():
    """Unrolled, 4800 samples of five loops would take hours."""
    stage = amt.AdaptLoop(48000)
    x = torch.rand(2, 2, 4800)
    graph = torch.export.export(Stepped(CASES["AdaptLoop"], stage), (x,), strict=False).graph
    targets = [node.target for node in graph.nodes]
    assert targets.count(torch.ops.amt_stream.adaptation_loops.default) == 1
    assert len(targets) < 50


@pytest.mark.cases(1)
@pytest.mark.parametrize("name", ["AdaptLoop", "GammatoneFilterbank", "Moore2016AGC"])
def test_a_compiled_stage_learns_as_the_stage_does(name):
    case = CASES[name]
    stage = case.make(learnable=True).double()
    x = case.input(stage).requires_grad_()
    inputs = [x, *stage.parameters()]

    def slopes(form):
        return torch.autograd.grad(sum(y.square().sum() for y in form(x)), inputs)

    torch.compiler.reset()
    module = Stepped(case, stage)
    compiled = torch.compile(module, backend="aot_eager", fullgraph=True)
    assert_close(slopes(compiled), slopes(module), rtol=1e-10)


def test_a_live_stream_is_exported_and_compiled_with_its_state():
    stage = amt.Dau1997(16000, 300.0, 600.0)
    live = Stream(stage, (1,))
    blocks = torch.randn(3, 1, 160).unbind()
    with torch.no_grad():
        expected = [live(block) for block in blocks]
        exported = torch.export.export(live, blocks[:1], strict=False).module()
        torch.compiler.reset()
        compiled = torch.compile(live, backend="eager", fullgraph=True)
        for form in (exported, compiled):
            live.reset()
            assert_close([form(block) for block in blocks], expected)


DEAR = ("DanielWeber", "ECMA418", "ECMAFluctuation", "ECMALoudness", "ECMARoughness")
DEAR += ("ECMATonality", "ECMATonalNoise", "PartialLoudness")
"""Chains of which each stage is transformed by itself, and other chains are, and the dearest stage:
in `make soak`."""


@pytest.mark.cases(10)
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.soak] if name in DEAR else []) for name in CASES],
)
def test_transforms_give_what_a_call_gives(name):
    case = CASES[name]
    stage = case.make().double()
    x = case.input(stage)
    shape = shape_without_time(case, stage)

    def step(x):
        return fields(stage.step(x, stage.initial_state(shape))[0])

    def total(x):
        return sum(y.sin().sum() for y in step(x) if y.is_floating_point())

    rows = torch.stack([x, x / 2])
    one_by_one = [torch.stack(pair) for pair in zip(*map(step, rows), strict=True)]
    assert_close(func.vmap(step)(rows), one_by_one, rtol=1e-10)
    whole = total(x.requires_grad_())
    slope = torch.zeros_like(x)
    if whole.requires_grad:
        (slope,) = torch.autograd.grad(whole, x)
    x = x.detach()
    assert_close([func.grad(total)(x)], [slope], rtol=1e-9)


@pytest.mark.cases(2)
@pytest.mark.parametrize("name", RECURRENCES)
def test_forward_mode_gives_the_slope(name):
    case = CASES[name]
    stage = case.make().double()
    x = case.input(stage)
    x = x[..., : stage.block_size * 8] if stage.time_dim == -1 else x
    shape = shape_without_time(case, stage)

    def total(x):
        y, _ = stage.step(x, stage.initial_state(shape))
        return sum(v.sin().sum() for v in fields(y))

    along = torch.ones_like(x)
    expected = (torch.func.grad(total)(x) * along).sum()
    _, slope = func.jvp(total, (x,), (along,))
    assert_close([slope], [expected], rtol=1e-9)
    # Without a transform the tangent was lost: a kernel saw the values alone.
    with torch.no_grad(), forward_ad.dual_level():
        tangent = forward_ad.unpack_dual(total(forward_ad.make_dual(x, along))).tangent
    assert_close([tangent], [expected], rtol=1e-9)


def test_a_jacobian_of_the_loops():
    loops = Loops(
        torch.tensor(1e-3),
        torch.tensor([0.2, 0.05]),
        torch.tensor([8.0, 9.0]),
        torch.tensor(0.0),
        torch.tensor(2.0),
    )
    loops = Loops(*(t.double() for t in loops))
    x = torch.rand(1, 5, dtype=torch.float64) + 0.1
    zi = torch.stack([torch.ones(1, 2), torch.zeros(1, 2)], -1).double()
    jacobian = torch.autograd.functional.jacobian(lambda x: adaptation_loops(x, loops, zi)[0], x)
    for transform in (func.jacrev, func.jacfwd):
        found = transform(lambda x: adaptation_loops(x, loops, zi)[0])(x)
        torch.testing.assert_close(found, jacobian, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", LEARNERS)
def test_a_learner_can_be_called_by_func(name):
    """Per-sample gradients of the weights, as torch.func makes them."""
    case = CASES[name]
    stage = case.make(learnable=True).double()
    module = Stepped(case, stage)
    weights = dict(module.named_parameters())
    x = case.input(stage)

    def loss(weights, x):
        return sum(y.square().mean() for y in func.functional_call(module, weights, (x,)))

    each = func.vmap(func.grad(loss), in_dims=(None, 0))(weights, torch.stack([x, x / 2]))
    for n, row in enumerate([x, x / 2]):
        slopes = torch.autograd.grad(loss(weights, row), list(weights.values()))
        assert_close([v[n] for v in each.values()], slopes, rtol=1e-8)


@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning")
def test_jit_trace_is_refused():
    with pytest.raises(RuntimeError, match=r"^torch.jit.trace cannot .* use torch.export.export"):
        torch.jit.trace(amt.Moore2016AGC(), torch.rand(1, 4, 3), check_trace=False)
