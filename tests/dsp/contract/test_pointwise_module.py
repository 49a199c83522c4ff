"""Plain torch modules as stages: which ones may, where the bands go, and why others may not."""

import copy
import pickle

import pytest
import torch
from torch import nn

from amt_stream import (
    Chain,
    Delay,
    Moore2016AGC,
    Parallel,
    PointwiseModule,
    Rebuffer,
    Stream,
    check_stage,
)
from tests.dsp.noise import noise


def channelwise(bands=3):
    """A PReLU with a different weight for each band."""
    module = nn.PReLU(bands)
    with torch.no_grad():
        module.weight.copy_(torch.arange(1, bands + 1) / 10)
    return module


class BandNorm(nn.Module):
    """Works over bands with a module that works on the last axis."""

    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(3)

    def forward(self, x):
        return self.norm(x.transpose(1, 2)).transpose(1, 2)


MODULES = [
    nn.CELU,
    nn.ELU,
    nn.GELU,
    nn.Hardshrink,
    nn.Hardsigmoid,
    nn.Hardswish,
    nn.Hardtanh,
    nn.Identity,
    nn.LeakyReLU,
    nn.LogSigmoid,
    nn.Mish,
    nn.PReLU,
    nn.ReLU,
    nn.ReLU6,
    nn.SELU,
    nn.SiLU,
    nn.Sigmoid,
    nn.Softplus,
    nn.Softshrink,
    nn.Softsign,
    nn.Tanh,
    nn.Tanhshrink,
]
OTHERS = {
    "threshold": lambda: nn.Threshold(0.1, -2.0),
    "in place": lambda: nn.ReLU(inplace=True),
    "per band": channelwise,
    "softmax over bands": lambda: nn.Softmax(dim=1),
    "mixing bands": lambda: nn.Conv1d(3, 3, 1),
    "sequence": lambda: nn.Sequential(channelwise(), nn.Conv1d(3, 3, 1), nn.ELU(inplace=True)),
    "one's own": BandNorm,
}


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_an_activation_gives_what_it_gives_in_torch(module):
    x = noise(2, 3, 40)
    stage = PointwiseModule(module()).double()
    assert stage(x).equal(module().double()(x.clone()))
    torch.testing.assert_close(stage(x[0]), stage(x)[0])
    assert stage.bands is None


@pytest.mark.parametrize("make", OTHERS.values(), ids=OTHERS)
def test_contract(make):
    torch.manual_seed(0)
    module = make()
    check_stage(lambda: Chain(first=Delay(1), then=copy.deepcopy(module)), noise(2, 3, 50))


def test_input_stays_as_it_was_though_the_module_writes_in_place():
    x = noise(2, 3, 40)
    kept = x.clone()
    stage = PointwiseModule(nn.ReLU(inplace=True)).double()
    y, _ = stage.step(x, {})
    assert x.equal(kept)
    assert y.equal(x.relu())
    x.requires_grad_()
    assert torch.autograd.gradcheck(stage, x)


@pytest.mark.parametrize("leading", [(), (2,), (2, 4), (1, 2, 3)])
def test_weights_go_with_the_bands_whatever_stands_before_them(leading):
    x = noise(*leading, 3, 7)
    slopes = torch.tensor([0.1, 0.2, 0.3])[:, None]
    stage = PointwiseModule(channelwise())
    expected = torch.where(x < 0, slopes * x.float(), x.float()).to(x)
    assert stage(x).equal(expected)
    frames = PointwiseModule(channelwise(), time_dim=-2)
    assert frames(x.mT).equal(expected.mT)


def test_the_axis_of_the_bands_can_be_another():
    x = noise(2, 3, 5, 7)
    stage = PointwiseModule(channelwise(), band_dim=-3)
    assert stage(x).equal(PointwiseModule(channelwise())(x.transpose(1, 2)).transpose(1, 2))
    with pytest.raises(ValueError, match="two different negative axes"):
        PointwiseModule(nn.ReLU(), band_dim=-1)


def test_another_number_of_bands_is_refused_before_any_sound():
    stage = PointwiseModule(nn.PReLU(32))
    said = "takes 32 on axis -2, given 31 in shape .* make a PReLU for that many bands"
    with pytest.raises(ValueError, match=said):
        stage(noise(2, 31, 7))
    with pytest.raises(ValueError, match=said):
        Stream(Chain(delay=Delay(1), rectify=nn.PReLU(32)), (2, 31))
    with pytest.raises(ValueError, match="given 1 in shape"):
        stage(noise(7))


class Memory(nn.Module):
    def __init__(self):
        super().__init__()
        self.last = 0.0

    def forward(self, x):
        x, self.last = x + self.last, x.mean()
        return x


class Ramp(nn.Module):
    """Knows where in the block an instant stands."""

    def forward(self, x):
        return x * torch.arange(x.shape[-1])


def identity_filter():
    """A filter along time that does nothing until it has learned."""
    module = nn.Conv1d(3, 3, 3, padding=1, groups=3, bias=False)
    nn.init.dirac_(module.weight, 3)
    return module


REFUSED = {
    "Conv1d": (lambda: nn.Conv1d(3, 3, 5), r"makes \(2, 3, 2\) of .*SOSFilter or Butterw"),
    "Conv1d same": (lambda: nn.Conv1d(32, 32, 3, padding=1), "looks at other instants: filter"),
    "Conv1d long": (lambda: nn.Conv1d(1, 1, 100), "does not take .*Kernel size"),
    "Conv1d identity": (identity_filter, "looks at other instants: filter along time with SOS"),
    "Conv1d bands": (lambda: nn.Conv1d(32, 8, 1), r"makes \(2, 8, 6\) .*Stage with out_shape"),
    "AvgPool1d": (lambda: nn.AvgPool1d(3, 1, 1), "looks at other instants"),
    "Upsample": (lambda: nn.Upsample(scale_factor=2), r"makes \(2, 2, 12\)"),
    "GLU": (nn.GLU, r"makes \(2, 2, 3\)"),
    "BatchNorm1d": (lambda: nn.BatchNorm1d(32), "changes its buffer 'running_mean' when called"),
    "GroupNorm": (lambda: nn.GroupNorm(2, 32), "looks at other instants"),
    "LayerNorm": (lambda: nn.LayerNorm(32), "does not take .*between transposes"),
    "Softmax": (lambda: nn.Softmax(dim=-1), "looks at other instants"),
    "Softmax rows": (lambda: nn.Softmax(dim=0), "looks at other rows"),
    "LSTM": (lambda: nn.LSTM(6, 6), "gives a tuple, not a tensor"),
    "Linear": (lambda: nn.Linear(6, 6), "looks at|does not take one of the instants"),
    "Dropout": (nn.Dropout, "gives another output when called again"),
    "RReLU": (nn.RReLU, "gives another output when called again"),
    "Memory": (Memory, "gives another output when called again"),
    "Ramp": (Ramp, "looks at other instants"),
    "complex": (lambda: nn.Conv1d(3, 3, 1, dtype=torch.complex64), "complex weights"),
    "Lazy": (lambda: nn.LazyConv1d(3, 1), "makes its weights at the first call"),
    "Half": (lambda: nn.PReLU(3).half(), "does not run in torch.float16"),
}


@pytest.mark.filterwarnings("ignore:Lazy modules are a new feature")
@pytest.mark.parametrize(("make", "said"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_a_stage_is_refused_in_one_sentence(make, said):
    module = make()
    weights = copy.deepcopy([*module.parameters()]) if "Lazy" not in type(module).__name__ else []
    random = torch.get_rng_state()
    for kind in (Chain, Parallel):
        with pytest.raises(TypeError, match=f"{kind.__name__}: 'odd': .*{said}") as refusal:
            kind(first=Delay(1), odd=module)
        assert "\n" not in str(refusal.value)
    # A trial leaves no trace.
    assert all(a.equal(b) for a, b in zip(weights, module.parameters(), strict=False))
    assert torch.get_rng_state().equal(random)


def test_a_chain_learns_through_a_module_of_its_own():
    torch.manual_seed(0)
    rectify = nn.PReLU(3)
    chain = Chain(delay=Delay(2), rectify=rectify, smooth=PointwiseModule(nn.Tanh()))
    assert [name for name, _ in chain.named_parameters()] == ["rectify.module.weight"]
    assert next(chain.parameters()) is rectify.weight
    x, target = noise(2, 3, 50).float(), noise(2, 3, 50).float().relu()
    live = Stream(chain, (2, 3))
    fit = torch.optim.SGD(chain.parameters(), 1.0)
    losses = []
    for _ in range(20):
        fit.zero_grad()
        loss = (live(x) - torch.roll(target, 2, -1)).square().mean()
        loss.backward()
        fit.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    assert set(chain.state_dict()) == {"rectify.module.weight"}
    other = Chain(delay=Delay(2), rectify=nn.PReLU(3), smooth=nn.Tanh())
    other.load_state_dict(chain.state_dict())
    for twin in (other, copy.deepcopy(chain), pickle.loads(pickle.dumps(chain))):
        assert twin(x).equal(chain(x))


def test_a_plain_module_finds_time_where_its_neighbors_have_it():
    after = Chain(agc=Moore2016AGC(), rectify=nn.PReLU(4))
    before = Chain(rectify=nn.PReLU(4), agc=Moore2016AGC())
    assert after.rectify.time_dim == before.rectify.time_dim == -2
    assert Chain(rectify=nn.PReLU(4)).time_dim == -1
    x = noise(2, 9, 4)
    for chain in (after, before):
        check_stage(lambda chain=chain: copy.deepcopy(chain), x)
    both = Parallel(plain=nn.ReLU(), smoothed=Moore2016AGC())
    assert both.plain.time_dim == -2
    check_stage(lambda: copy.deepcopy(both), x)


def test_dtype_and_device_are_those_of_the_module():
    assert PointwiseModule(nn.PReLU(3, dtype=torch.float64)).dtype == torch.float64
    assert PointwiseModule(nn.PReLU(3, device="meta")).device.type == "meta"
    with torch.device("meta"):
        stage = PointwiseModule(nn.PReLU(3))
    assert stage(torch.empty(2, 3, 7, device="meta")).shape == (2, 3, 7)
    stage = Chain(rectify=channelwise()).double()
    assert stage.rectify.module.weight.dtype == stage.rectify.dtype == torch.float64
    y = Rebuffer(Stream(stage, (3,))).push(noise(3, 7).float())
    assert y.dtype == torch.float64
    with pytest.raises(TypeError, match=r"does not run in torch\.bfloat16"):
        stage.to(torch.bfloat16)


def test_what_a_module_keeps_of_training_mode_is_left():
    module = nn.Sequential(nn.ReLU(), nn.Dropout(0.0)).train()
    module[1].eval()
    PointwiseModule(module)
    assert module.training
    assert not module[1].training
