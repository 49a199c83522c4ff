"""What torch promises of any module: every stage is repeated, watched and saved.

Some stages, and every one in `make soak`, are compiled and exported, as a user would: exported for
any length of time, and compiled for one, in `make soak` for several by every backend.
"""

import inspect
import io
from collections import Counter
from itertools import product

import pytest
import torch
from torch import nn
from torch.nn.utils import prune
from torch.utils.checkpoint import checkpoint

import amt_stream as amt
from amt_stream import Chain, Gain, Parallel, Stream, check_stage
from amt_stream.dsp.streaming import Stage
from tests.dsp.contract.test_module_contract import CASES, LEARNERS, STAGES
from tests.dsp.contract.test_transforms import RECURRENCES, assert_close, tensors
from tests.dsp.noise import noise

pytestmark = [pytest.mark.filterwarnings("ignore:`torch.jit.(script|trace).*` is deprecated")]

BY_ARGUMENTS = {  # called without an axis of time: which axis of the arguments may have any length
    "BinauralInhibition": ({0: torch.export.Dim.DYNAMIC},) * 2,
    "Moore2016BinauralLoudness": ({0: torch.export.Dim.DYNAMIC},) * 2,
    "Moore2016ExcitationPattern": (None, {1: torch.export.Dim.DYNAMIC}),
}


TYPED = [name for name, kind in STAGES.items() if "dtype" in inspect.signature(kind).parameters]


def given(name, stage, length):
    """Arguments of a call with so much time."""
    case = CASES[name]
    x = case.input(stage)
    axis = stage.time_dim
    x = torch.cat([x] * -(-length // x.shape[axis]), axis).narrow(axis, 0, length)
    return tuple(part.contiguous() for part in case.parts(x))


def lengths(stage):
    """Of time: within a block, whole blocks, and one sample more.

    torch takes a count of 1 for a constant: none of the parts of a stage has only one hop.
    """
    size = stage.block_size * (4 if isinstance(stage, amt.ECMA418) else 1)
    return 5 * size + size // 2, 3 * size, 6 * size + (size > 1)


def called(stage, *args):
    """Tensors that a call from silence gives."""
    if hasattr(stage, "reset_state"):
        stage.reset_state()
    return tensors(stage(*args))


def compiles(name, backend, count):
    """At the first `count` of `lengths`; each of the first two is compiled anew."""
    stage = CASES[name].make().float()
    inputs = [given(name, stage, length) for length in lengths(stage)[:count]]
    expected = [called(stage, *args) for args in inputs]
    torch.compiler.reset()
    form = torch.compile(stage, backend=backend, fullgraph=True)
    for args, y in zip(inputs, expected, strict=True):
        if name == "LoudnessIntegration":
            stage.reset_state()
        assert_close(tensors(form(*args)), y)


def exports(name):
    stage = CASES[name].make().float()
    inputs = [given(name, stage, length) for length in lengths(stage)]
    first = inputs[0]
    shapes = BY_ARGUMENTS.get(name, ({first[0].dim() + stage.time_dim: torch.export.Dim.DYNAMIC},))
    program = torch.export.export(stage, first, dynamic_shapes=shapes, strict=False)
    file = io.BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    form = torch.export.load(file).module()
    y = [form(*args) for args in inputs]
    if name != "Parallel":  # whose outputs are of one class for equal names
        assert type(y[0]) is type(stage(*first))
    for args, got in zip(inputs, y, strict=True):
        assert_close(tensors(got), called(stage, *args))


def repeats(name):
    """The gradient is that of a plain call where torch.utils.checkpoint calls twice."""
    case = CASES[name]
    stage = case.make(**({"learnable": True} if name in LEARNERS else {})).double()
    x = case.input(stage).requires_grad_()
    weights = [x, *stage.parameters()]

    def slopes(y):
        learns = [v.abs().square().sum() for v in tensors(y) if v.requires_grad]
        return torch.autograd.grad(learns, weights, allow_unused=True) if learns else ()

    expected = slopes(called(stage, *case.parts(x)))
    if name == "LoudnessIntegration":
        stage.reset_state()
    got = slopes(checkpoint(stage, *case.parts(x), use_reentrant=False))
    assert [v is None for v in got] == [v is None for v in expected]
    assert_close([v for v in got if v is not None], [v for v in expected if v is not None], 1e-9)


def is_watched(name):
    """Every kind of hook fires, in a `Chain` and of the parts that a stage is made of."""
    case = CASES[name]
    stage = case.make().double()
    x = case.input(stage).requires_grad_()
    seen, chain = Counter(), Chain(only=stage)
    parts = [m for m in stage.modules() if isinstance(m, Stage)]

    def count(kind, result=None):
        return lambda module, *rest: seen.update([(kind, id(module))])

    def fails(module, args, y):
        raise ZeroDivisionError

    for part in parts:
        part.register_forward_pre_hook(count("before"))
        part.register_forward_hook(count("after"))
        part.register_full_backward_pre_hook(count("backward pre"))
        part.register_full_backward_hook(count("backward"))
    y, _ = chain.step(x, chain.initial_state(shape_of(x, stage)))
    learns = [v for v in tensors(y) if v.requires_grad]
    if learns:
        sum(v.square().sum() for v in learns).backward()
    kinds = ["before", "after", *(["backward pre", "backward"] if learns else [])]
    stepped = [part for part in parts if ("before", id(part)) in seen]
    assert stage in stepped
    # What a part is made of but does not step, such as a table of another, is called nowhere.
    assert all(seen[kind, id(part)] == 1 for kind in kinds for part in stepped)
    stage.register_forward_hook(count("always"), always_call=True, prepend=True)
    stage.register_forward_pre_hook(fails)
    with torch.no_grad(), pytest.raises((ZeroDivisionError, TypeError)):
        Stream(chain, shape_of(x, stage))(x)
    assert seen["always", id(stage)] == 1


def shape_of(x, stage):
    shape = list(x.shape)
    del shape[stage.time_dim]
    return tuple(shape)


def keeps_extra_state(name):
    """What `get_extra_state` of one's own gave is set again; a hook may rename what is loaded."""
    kind = STAGES[name]

    class Own(kind):
        told = 3

        def get_extra_state(self):
            return {"told": self.told}

        def set_extra_state(self, state):
            self.told = state["told"]

    made = CASES[name].make(**({"learnable": True} if name in LEARNERS else {}))
    stage, other = made, CASES[name].make(**({"learnable": True} if name in LEARNERS else {}))
    stage.__class__ = other.__class__ = Own
    stage.told = 5
    saved = stage.state_dict()
    assert saved["_extra_state"] == {"told": 5}
    other.load_state_dict(saved)
    assert other.told == 5
    del saved["_extra_state"]
    with pytest.raises(RuntimeError, match=r'Missing key.*"_extra_state"'):
        other.load_state_dict(saved)
    old = {f"{key}_of_old": value for key, value in stage.state_dict().items()}

    def rename(module, state_dict, prefix, *rest):
        for key in [key for key in state_dict if key.endswith("_of_old")]:
            state_dict[key.removesuffix("_of_old")] = state_dict.pop(key)

    other.told = 0
    other.register_load_state_dict_pre_hook(rename)
    other.load_state_dict(old)
    assert other.told == 5


PROMISES = {
    "compiled": lambda name: compiles(name, "eager", 1),
    "exported": exports,
    "repeated": repeats,
    "watched": is_watched,
    "saved": keeps_extra_state,
}


TRACED = {*RECURRENCES, *BY_ARGUMENTS, "Dau1997"} - {"AdaptLoop", "Moore2016"}
"""What is compiled and exported here: stages that have most of the operators between them, those of
another call, and a chain; all in `make soak`. `test_transforms.py` compiles `AdaptLoop` and exports
`Moore2016`."""

DEAR = {
    *product(("compiled", "exported"), {*CASES} - TRACED),
    *product(
        ("repeated", "watched"),
        (
            "DanielWeber",
            "ECMA418",
            "ECMAFluctuation",
            "ECMALoudness",
            "ECMARoughness",
            "ECMATonalNoise",
            "ECMATonality",
        ),
    ),
}


@pytest.mark.cases(60)
@pytest.mark.parametrize(
    ("promise", "name"),
    [
        pytest.param(*one, marks=[pytest.mark.soak] if one in DEAR else [])
        for one in product(PROMISES, CASES)
    ],
)
def test_what_torch_promises_holds(promise, name):
    PROMISES[promise](name)


def test_a_chain_is_exported_for_sounds_of_any_length():
    """The length is a symbol then, which knows no fractions."""
    exports("Chain")


@pytest.mark.soak
@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore:Torchinductor does not support code generation for complex")
@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_every_stage_is_compiled(name, backend):
    compiles(name, backend, 3)


@pytest.mark.parametrize("name", TYPED)
def test_the_dtype_of_every_class_that_takes_one(name):
    case = CASES[name]
    for dtype in (torch.float64, torch.float32):
        stage = case.make(dtype=dtype)
        assert stage.dtype == dtype
        x = case.input(stage)
        y, _ = stage.step(x, stage.initial_state(shape_of(x, stage)))
        assert {v.dtype for v in tensors(y) if v.is_floating_point()} == {dtype}
    with pytest.raises(TypeError, match=r"does not run in torch\.float16"):
        case.make(dtype=torch.float16)


def test_hooks_of_a_chain_in_training():
    chain = Chain(a=Gain(2.0), b=nn.PReLU(3))
    slopes = []
    chain.b.register_full_backward_hook(lambda m, x, y: slopes.append((x[0], y[0])))
    chain.a.register_full_backward_hook(lambda m, x, y: (3 * x[0],))
    x = noise(2, 3, 8).requires_grad_()
    chain.double()(x).sum().backward()
    assert torch.equal(slopes[0][1], torch.ones_like(x))
    assert_close([x.grad], [6 * slopes[0][0]])


def test_always_called_hooks_are_called_once_and_their_failure_is_told():
    chain = Chain(a=Gain(2.0))
    seen = []
    chain.a.register_forward_hook(lambda *given: seen.append(given), always_call=True)
    chain(torch.ones(1, 4))
    assert len(seen) == 1

    def fails(*given):
        raise ValueError("of the hook")

    chain.a.register_forward_hook(fails, always_call=True)
    chain.a.register_forward_pre_hook(lambda module, args: 1 / 0)
    with (
        pytest.warns(UserWarning, match="always_call=True raised too: of the hook"),
        pytest.raises(ZeroDivisionError),
    ):
        chain(torch.ones(1, 4))
    assert seen[-1][2] is None


def test_the_module_of_a_pointwise_stage_is_tried_whenever_it_is_set():
    chain = Parallel(now=Gain(1.0), b=nn.PReLU(3)).double()
    with pytest.raises(TypeError, match="Conv1d cannot be a stage, it looks at other instants"):
        chain.b.module = nn.Conv1d(3, 3, 3, padding=1)
    chain.b.module = nn.PReLU(5)
    assert (chain.b.bands, chain.b.module.weight.dtype) == (5, torch.float64)
    assert chain(noise(5, 8)).b.shape == (5, 8)


def test_a_pruned_module_goes_into_a_chain_after_its_weights_are_fixed():
    linear = nn.Conv1d(3, 3, 1)
    prune.l1_unstructured(linear, "weight", 0.5)
    with pytest.raises(TypeError, match=r"Conv1d cannot be a stage, it cannot be copied .*remove"):
        Chain(a=Gain(2.0), b=linear)
    prune.remove(linear, "weight")
    x = torch.randn(1, 3, 8)
    assert_close([Chain(a=Gain(2.0), b=linear)(x)], [linear(2 * x)])


def test_a_loudness_integration_under_transforms_and_after_inference_mode():
    stage = amt.LoudnessIntegration(learnable=True)
    x = torch.rand(3, 2, 5, 4)
    assert_close([torch.func.vmap(stage)(x)], [torch.stack([called(stage, one)[0] for one in x])])
    stage.reset_state()
    torch.func.grad(lambda x: stage(x).sum())(x[0])
    assert stage.ltl_state is None
    with torch.inference_mode():
        stage(x[0])
    kept = stage.ltl_state.clone()
    stage(x[0].requires_grad_()).sum().backward()
    assert stage.tau_attack.grad is not None
    assert not torch.equal(kept, stage.ltl_state)
    assert stage.double().ltl_state.dtype == torch.float64


def test_only_the_last_call_of_a_loudness_integration_can_be_repeated():
    stage = amt.LoudnessIntegration()
    x = torch.rand(2, 2, 5, 4, requires_grad=True)
    first, last = (checkpoint(stage, one, use_reentrant=False) for one in x)
    last.sum().backward()
    with pytest.raises(RuntimeError, match="can repeat only the last call"):
        first.sum().backward()


def test_a_number_as_the_state_of_an_agc():
    agc, x = amt.Moore2016AGC(), torch.rand(5, 3)
    assert torch.equal(agc(x, state=0.5), agc(x, state=torch.full((3,), 0.5)))
    assert torch.equal(agc(x[:, 0], state=1), agc(x[:, 0], state=torch.tensor(1.0)))


def test_check_stage_of_a_stage_says_what_to_give():
    with pytest.raises(TypeError, match=r"given a Gain: give its class, or .* lambda: Gain\(...\)"):
        check_stage(Gain(1.0), noise(2, 64))
    with pytest.raises(TypeError, match="it gave ReLU"):
        check_stage(nn.ReLU, noise(2, 64))


def test_parameters_are_told_as_they_were_given():
    assert amt.SpatialSmoothing(learnable=True).get_parameters()["sigma"] == 0.08
    assert amt.BinauralInhibition().get_parameters() == {"p": 1.5978}
    assert amt.Moore2016AGC(0.1, 0.033).get_parameters()["attack_alpha"] == 0.1
    assert amt.LoudnessIntegration(learnable=True).get_time_constants() == (0.05, 0.2)
    assert amt.SpecificLoudness().get_parameters()["C"] == 0.047
