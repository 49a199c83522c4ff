"""The loudness classes of the reference documentation against its formulas, number by number.

The files hold what an independent program gave for the documented formulas, in float32.
"""

import pytest
import torch

from amt_stream import (
    BinauralInhibition,
    BrokenStickCompression,
    LoudnessIntegration,
    Moore2016AGC,
    Moore2016BinauralLoudness,
    Moore2016SpecificLoudness,
    Moore2016TemporalIntegration,
    PowerCompression,
    SpatialSmoothing,
    SpecificLoudness,
    Stream,
    check_stage,
)
from amt_stream.dsp.streaming import fields
from tests.dsp.parity.golden import close, golden

COMPRESSIONS = [
    *(f"broken_stick_{kind}" for kind in ("default", "scalar", "chan_uniform", "expand")),
    *(f"power_{kind}" for kind in ("default", "scalar", "chan_uniform", "chan_vector", "expand")),
]


@pytest.mark.parametrize("name", COMPRESSIONS)
def test_compression(name):
    stage, given, expected, par = golden(name)
    close(stage(given["x"]), expected["y"])
    assert stage.knee.item() == pytest.approx(par["knee"].item(), rel=1e-6)


@pytest.mark.parametrize("name", ["specific_loudness_default", "specific_loudness_grid"])
def test_documented_specific_loudness(name):
    stage, given, expected, par = golden(name)
    close(stage(given["excitation_db"]), expected["N"])
    close(stage.fc_erb, par["fc_erb"])
    close(stage.get_threshold(), par["threshold"])
    assert stage.n_erb_bands == par["fc_erb"].numel()
    assert stage(torch.full((1, 1, stage.n_erb_bands), 140.0)).max() < 0.81


def test_documented_moore2016_specific_loudness():
    stage, given, expected, par = golden("moore2016_specific_loudness")
    close(stage(given["excitation_db"]), expected["N"])
    for name, values in par.items():
        close(torch.as_tensor(getattr(stage, name)), values.float())
    stage, given, expected, _ = golden("moore2016_specific_loudness_1d")
    close(stage(given["excitation_db"]), expected["N"])


@pytest.mark.parametrize("kind", ["default", "alt", "1d"])
def test_documented_spatial_smoothing(kind):
    stage, given, expected, par = golden(f"spatial_smoothing_{kind}")
    close(stage(given["N"]), expected["y"])
    if par:
        close(stage.gaussian_kernel, par["kernel"])


@pytest.mark.parametrize("kind", ["default", "alt"])
def test_documented_inhibition_and_binaural_loudness(kind):
    stage, given, expected, _ = golden(f"binaural_inhibition_{kind}")
    left, right = stage(given["left"], given["right"])
    close(left, expected["inh_left"])
    close(right, expected["inh_right"])
    stage, given, expected, _ = golden(f"moore2016_binaural_loudness_{kind}")
    y = stage(given["left"], given["right"])
    for name, want in expected.items():
        close(getattr(y, name), want)


@pytest.mark.parametrize("kind", ["stl", "ltl", "alt"])
def test_agc(kind):
    stage, given, expected, par = golden(f"moore2016_agc_{kind}")
    y = stage(given["x"])
    close(y, expected["y"])
    cut = int(par["split"])
    close(stage(given["x"][cut:], state=y[cut - 1]), expected["y_tail_from_state"])


def test_temporal_integration():
    stage, given, expected, _ = golden("moore2016_temporal_integration")
    y = stage(given["N"], return_intermediate=True)
    for name in ("ltl", "stl_spec", "stl"):
        close(getattr(y, name), expected[name])
    assert torch.equal(stage(given["N"]), y.ltl)


def test_loudness_integration_goes_on_from_call_to_call():
    stage, given, expected, par = golden("loudness_integration")
    assert stage.frame_rate == par["frame_rate"]
    assert stage.get_time_constants() == pytest.approx((0.05, 0.2), rel=1e-6)
    ltl, stl = stage(given["N"], return_stl=True)
    close(ltl, expected["ltl"])
    close(stl, expected["stl"])
    stage.reset_state()
    close(stage(given["N"][:, :25]), expected["ltl_chunk1"])
    close(stage(given["N"][:, 25:]), expected["ltl_chunk2"])
    with pytest.raises(ValueError, match=r"reset_state\(\)"):
        stage(given["N"][:1])
    assert stage.state_dict() == {}


def test_two_readings_of_the_inhibition():
    """Sech of ln r makes two equal ears four times one; sech of r, as published, 1.5 times."""
    ones, none = torch.full((1, 150), 10.0), torch.zeros(1, 150)
    for variant, ratio in (("documented", 4.0), ("iso532-3", 1.5)):
        stage = Moore2016BinauralLoudness(variant=variant).double()
        both, one = stage(ones, ones).total, stage(ones, none).total
        assert (both / one).item() == pytest.approx(ratio, rel=1e-4)
    assert Moore2016BinauralLoudness()(ones, ones).total.item() == pytest.approx(750)
    assert Moore2016BinauralLoudness()(ones, none).total.item() == pytest.approx(187.5)


def test_smoothing_reflects_or_has_zeros_beyond_the_channels():
    n = torch.ones(150)
    assert SpatialSmoothing()(n)[0].item() == pytest.approx(1.0, abs=1e-6)
    assert SpatialSmoothing(variant="iso532-3")(n)[0].item() == pytest.approx(0.506, abs=1e-3)


def test_iso_specific_loudness_is_that_of_the_meter():
    stage = Moore2016SpecificLoudness(variant="iso532-3").double()
    level = torch.tensor([0, 3.63, 20, 60, 100, 105], dtype=torch.float64)
    n = stage(level[:, None].expand(-1, 150))[:, round((15.5 - 1.75) / 0.25)]
    expected = [0.00160993, 0.00722482, 0.0741455, 0.912946, 6.21451, 7.82361]
    assert n.tolist() == pytest.approx(expected, rel=5e-6)


@pytest.mark.parametrize("cls", [BrokenStickCompression, PowerCompression])
def test_per_channel_exponents(cls):
    n = torch.linspace(0.2, 0.4, 6)
    whole = cls(exponent=n, num_channels=6)
    x = torch.randn(2, 40, 6)
    apart = [cls(exponent=float(v))(x[..., i]) for i, v in enumerate(n)]
    close(torch.stack(apart, -1), whole(x))
    close(cls(exponent=n, channel_dim=-2)(x.mT), whole(x).mT)
    with pytest.raises(ValueError, match="takes 6 on axis -1, given 40 in shape"):
        whole(torch.randn(40))
    with pytest.raises(ValueError, match="does not fit num_channels=5"):
        cls(exponent=n, num_channels=5)
    with pytest.raises(TypeError, match="exponent is a list"):
        cls(exponent=[0.2, 0.3])


def test_broken_stick_is_continuous_at_the_knee_of_each_channel():
    stage = BrokenStickCompression(exponent=torch.linspace(0.2, 1.4, 6)).double()
    at_knee = stage.knee.expand(1, 6)
    close(stage(at_knee * (1 + 1e-9)), at_knee, 1e-8)


PARAMETERS = {
    BrokenStickCompression: ["knee_db", "exponent", "dboffset", "learnable"],
    PowerCompression: ["knee_db", "exponent", "dboffset", "learnable"],
    SpecificLoudness: ["C", "alpha", "E0_offset", "learnable"],
    Moore2016SpecificLoudness: [
        "n_channels",
        "C",
        *("G_min", "G_max", "Alpha_min", "Alpha_max", "A_min", "A_max"),
    ],
    SpatialSmoothing: ["kernel_width", "sigma", "kernel_size", "learnable"],
    BinauralInhibition: ["p"],
    Moore2016BinauralLoudness: ["spatial_smoothing", "inhibition"],
    Moore2016AGC: ["attack_alpha", "release_alpha"],
    Moore2016TemporalIntegration: ["stl", "ltl"],
}


@pytest.mark.parametrize("learnable", [False, True])
@pytest.mark.parametrize("cls", [*PARAMETERS, LoudnessIntegration])
def test_documented_interface(cls, learnable):
    stage = cls(learnable=learnable)
    assert stage.extra_repr()
    assert stage.learnable is learnable
    parameters = list(stage.parameters())
    assert bool(parameters) is learnable
    assert all(p.requires_grad for p in parameters)
    if cls in PARAMETERS:
        values = stage.get_parameters()
        assert list(values) == PARAMETERS[cls]
        assert not any(isinstance(v, torch.Tensor) for v in values.values())


def test_learnable_knee_is_a_parameter_and_a_level():
    stage = BrokenStickCompression(knee_db=40.0, learnable=True)
    assert stage.knee_db_param.item() == 40.0
    assert stage.knee_db is stage.knee_db_param
    assert BrokenStickCompression().knee_db == 30.0


def test_learning_cannot_leave_the_range():
    agc, integration = Moore2016AGC(learnable=True), LoudnessIntegration(learnable=True)
    assert agc.attack_alpha.item() == pytest.approx(0.045, rel=1e-6)
    with torch.no_grad():
        for p in [*agc.parameters(), *integration.parameters()]:
            p.add_(-30)
    assert agc.coefficients.tolist() == [0, 0]
    assert list(agc.get_parameters().values()) == [0, 0]
    assert integration.get_time_constants() == pytest.approx((0.001, 0.001))
    with pytest.raises(ValueError, match=r"attack_alpha is 1\.5: give a number from 0 to 1"):
        Moore2016AGC(attack_alpha=1.5, learnable=True)


@pytest.mark.cases(2)
@pytest.mark.parametrize(("start", "aim"), [(-3.0, 0.2), (4.0, 0.7), (0.5, 0.0), (0.5, 1.0)])
def test_an_optimizer_brings_a_coefficient_back_and_keeps_it_at_an_end(start, aim):
    """A clamped value has no slope; here the way back has one, and the way out has none."""
    stage, aimed = Moore2016AGC(learnable=True), Moore2016AGC(aim, 0.033)
    with torch.no_grad():
        stage.attack_alpha.fill_(start)
    x = torch.rand(40, 3, generator=torch.Generator().manual_seed(1)).cumsum(0)
    optimizer = torch.optim.Adam([stage.attack_alpha], lr=0.02, betas=(0.0, 0.99))
    for _ in range(400):
        optimizer.zero_grad()
        (stage(x) - aimed(x)).square().mean().backward()
        optimizer.step()
    assert stage.coefficients[0].item() == pytest.approx(aim, abs=0.03)
    assert -0.1 < stage.attack_alpha.item() < 1.1


@pytest.mark.parametrize(
    ("stage", "names"),
    [
        (Moore2016AGC(learnable=True), ["attack_alpha", "release_alpha"]),
        (LoudnessIntegration(learnable=True), ["tau_attack", "tau_release"]),
        (SpatialSmoothing(learnable=True), ["sigma", "kernel_width"]),
    ],
)
def test_documented_parameters_are_parameters(stage, names):
    assert [name for name, _ in stage.named_parameters()] == names
    for name in names:
        value = getattr(stage, name)
        assert isinstance(value, torch.nn.Parameter)
        assert value.is_leaf
        assert value.dim() == 0
        torch.optim.Adam([value])


def patterns(cls, *shape):
    """Specific loudness, or levels in dB for a class that takes those."""
    x = torch.rand(*shape, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    return x * (60 if "Specific" in cls.__name__ else 5)


STAGES = [
    (BrokenStickCompression, (2, 12, 5)),
    (PowerCompression, (2, 12, 5)),
    (SpecificLoudness, (2, 12, 150)),
    (Moore2016SpecificLoudness, (2, 12, 150)),
    (SpatialSmoothing, (2, 12, 150)),
    (BinauralInhibition, (2, 2, 12, 150)),
    (Moore2016BinauralLoudness, (2, 2, 12, 150)),
    (Moore2016AGC, (2, 12, 5)),
    (Moore2016TemporalIntegration, (2, 12, 150)),
    (LoudnessIntegration, (2, 12, 9)),
]
each_stage = pytest.mark.parametrize(
    ("cls", "shape"), STAGES, ids=[cls.__name__ for cls, _ in STAGES]
)


@each_stage
@pytest.mark.parametrize("learnable", [False, True])
def test_contract(cls, shape, learnable):
    check_stage(lambda: cls(learnable=learnable), patterns(cls, *shape))


@pytest.mark.soak
@each_stage
def test_gradients_of_what_is_learned(cls, shape):
    """Each number of the Jacobian; `test_module_contract.py` has it along a random direction."""
    stage = cls(learnable=True).double()
    x = patterns(cls, *shape)[..., :3, :]
    weights = {name: p.detach() for name, p in stage.named_parameters() if p.numel() < 10}

    class Whole(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.stage = stage

        def forward(self):
            return torch.cat([v.flatten() for v in fields(self.stage.whole(x))])

    def run(*values):
        given = {f"stage.{name}": v for name, v in zip(weights, values, strict=True)}
        return torch.func.functional_call(Whole(), given, ())

    assert torch.autograd.gradcheck(run, [v.clone().requires_grad_() for v in weights.values()])


def test_a_stream_of_one_of_them():
    x = patterns(Moore2016TemporalIntegration, 40, 150).float()
    live = Stream(Moore2016TemporalIntegration(), (150,))
    pieces = [live(x[i : i + 8]).ltl for i in range(0, 40, 8)]
    close(torch.cat(pieces), Moore2016TemporalIntegration()(x))
