"""Code written for torch_amt runs when the package's name in its imports is changed."""

import importlib

import pytest
import torch

import amt_stream
import amt_stream.common

MODULES = {  # by the module of torch_amt that has them
    "adaptation": "AdaptLoop",
    "ears": "HeadphoneFilter OuterMiddleEarFilter MiddleEarFilter",
    "filterbanks": "GammatoneFilterbank ERBIntegration DRNLFilterbank FastDRNLFilterbank "
    "ExcitationPattern Moore2016ExcitationPattern audfiltbw erb2fc fc2erb f2erb f2erbrate "
    "erbrate2f erbspacebw",
    "filters": "ButterworthFilter SOSFilter IIRFilter",
    "ihc": "IHCEnvelope IHCPaulick2024",
    "loudness": "gaindb BrokenStickCompression PowerCompression SpecificLoudness "
    "Moore2016SpecificLoudness SpatialSmoothing BinauralInhibition Moore2016BinauralLoudness "
    "LoudnessIntegration Moore2016AGC Moore2016TemporalIntegration",
    "modulation": "ModulationFilterbank FastModulationFilterbank King2019ModulationFilterbank "
    "FastKing2019ModulationFilterbank",
}


@pytest.mark.parametrize("module", MODULES)
def test_the_names_are_those_of_the_package(module):
    home = importlib.import_module(f"amt_stream.common.{module}")
    assert sorted(home.__all__) == sorted(MODULES[module].split())
    for name in home.__all__:
        one = getattr(amt_stream, name)
        assert getattr(home, name) is getattr(amt_stream.common, name) is one


MODELS = ("dau1997", "king2019", "osses2021", "paulick2024", "moore2016", "glasberg2002")


@pytest.mark.parametrize("module", MODELS)
def test_models_stand_in_modules_of_their_names(module):
    name = module.capitalize()
    home = importlib.import_module(f"amt_stream.dsp.models.{module}")
    assert getattr(home, name) is getattr(amt_stream, name)


def rand(*shape):
    return torch.rand(shape, generator=torch.Generator().manual_seed(1))


def of_compressions():
    from amt_stream.common.loudness import BrokenStickCompression, PowerCompression

    for kind in (BrokenStickCompression, PowerCompression):
        assert kind(knee_db=30, exponent=0.3, dboffset=100)(rand(1000, 31)).shape == (1000, 31)
        each = kind(exponent=torch.linspace(0.2, 0.4, 31), num_channels=31)
        assert each(rand(1000, 31)).shape == (1000, 31)


def of_specific_loudness():
    from amt_stream.common.loudness import SpecificLoudness

    stage = SpecificLoudness(fs=32000, f_min=50, f_max=15000, erb_step=0.25)
    assert stage.n_erb_bands == 150
    assert stage(60 + 20 * rand(2, 100, 150)).shape == (2, 100, 150)
    threshold = stage.get_threshold()
    assert -5 < threshold.min() < 4
    assert 3000 < stage.fc_erb[threshold.argmin()] < 4000
    told = SpecificLoudness(fs=32000, learnable=True).get_parameters()
    assert (told["C"], told["alpha"], told["E0_offset"]) == (0.047, 0.2, 10.0)


def of_moore_2016_specific_loudness():
    from amt_stream.common.loudness import Moore2016SpecificLoudness

    stage = Moore2016SpecificLoudness()
    told = stage.get_parameters()
    assert (told["n_channels"], told["C"]) == (150, 0.0631)
    assert 0.2 <= told["Alpha_min"] < told["Alpha_max"] <= 0.267
    assert stage(60 + 15 * rand(4, 150)).shape == (4, 150)
    assert stage(55 + 10 * rand(150)).shape == (150,)
    assert stage.G[0] < stage.G[-10]
    assert stage.Alpha[0] > stage.Alpha[-10]
    assert len(list(Moore2016SpecificLoudness(learnable=True).parameters())) == 4


def of_spatial_smoothing():
    from amt_stream.common.loudness import SpatialSmoothing

    stage = SpatialSmoothing(kernel_width=18.0, sigma=0.08)
    told = stage.get_parameters()
    assert (told["kernel_size"], told["sigma"]) == (145, 0.08)
    x = 5 * rand(2, 150)
    assert abs(stage(x).sum() / x.sum() - 1) < 0.01
    assert stage(x[0]).shape == (150,)


def of_binaural_inhibition():
    from amt_stream.common.loudness import BinauralInhibition

    stage = BinauralInhibition(p=1.5978)
    assert stage.get_parameters()["p"] == 1.5978
    left, right = stage(5 * rand(2, 150), 4 * rand(2, 150))
    assert left.shape == right.shape == (2, 150)
    diotic, _ = stage(torch.full((1, 150), 10.0), torch.full((1, 150), 10.0))
    assert diotic[0, 0] == pytest.approx(1, abs=1e-5)
    _, quiet = stage(torch.full((1, 150), 100.0), torch.ones(1, 150))
    assert 1.9 < quiet[0, 0] < 2
    assert stage(rand(150), rand(150))[0].shape == (150,)


def of_moore_2016_binaural_loudness():
    from amt_stream.common.loudness import Moore2016BinauralLoudness

    stage = Moore2016BinauralLoudness()
    told = stage.get_parameters()
    assert told["spatial_smoothing"]["kernel_size"] == 145
    assert told["inhibition"] == {"p": 1.5978}
    total, left, right = stage(8 * rand(3, 150), 8 * rand(3, 150))
    assert total.tolist() == pytest.approx((left + right).tolist())
    diotic, _, _ = stage(torch.full((1, 150), 10.0), torch.full((1, 150), 10.0))
    assert diotic.item() == pytest.approx(750, rel=1e-4)
    alone, _, silent = stage(torch.full((1, 150), 10.0), torch.zeros(1, 150))
    assert (alone.item(), silent.item()) == (pytest.approx(187.5, rel=1e-3), 0)
    assert stage(rand(150), rand(150))[0].shape == ()


def of_loudness_integration():
    from amt_stream.common.loudness import LoudnessIntegration

    stage = LoudnessIntegration(fs=32000)
    assert stage.get_time_constants() == (0.05, 0.2)
    x = 5 * rand(2, 200, 150)
    assert stage(x).shape == (2, 200)
    ltl, stl = stage(x, return_stl=True)
    assert ltl.shape == stl.shape == (2, 200)
    pulse = torch.zeros(1, 100, 150)
    pulse[:, 20:30] = 10.0
    stage.reset_state()
    ltl, stl = stage(pulse, return_stl=True)
    assert stl[0, 19:22].tolist() == [0, 1500, 1500]
    assert 0 < ltl[0, 20] < ltl[0, 21] < ltl[0, 29]
    assert ltl[0, 30] > ltl[0, 32] > 0
    stage(5 * rand(1, 50, 150))
    assert stage.ltl_state[0] > 0
    stage.reset_state()
    assert stage.ltl_state is None


def of_agc():
    from amt_stream.common.loudness import Moore2016AGC

    short, long = Moore2016AGC(attack_alpha=0.045, release_alpha=0.033), Moore2016AGC(0.01, 0.00133)
    assert short.get_parameters() == {"attack_alpha": 0.045, "release_alpha": 0.033}
    assert long.get_parameters()["release_alpha"] == 0.00133
    assert long(50 * rand(100)).shape == (100,)
    pulse = torch.zeros(200)
    pulse[50:60] = 100.0
    y = short(pulse)
    assert y[50] < y[55] < y[59]
    assert y[60] > y[70] > y[80] > 0
    x = 5 * rand(100, 150)
    first = short(x[:50])
    rest = short(x[50:], state=first[-1, :])
    assert torch.allclose(torch.cat([first, rest]), short(x))


def of_temporal_integration():
    from amt_stream.common.loudness import Moore2016TemporalIntegration

    stage = Moore2016TemporalIntegration()
    told = stage.get_parameters()
    assert told["stl"] == {"attack_alpha": 0.045, "release_alpha": 0.033}
    assert told["ltl"] == {"attack_alpha": 0.01, "release_alpha": 0.00133}
    x = 8 * rand(200, 150)
    assert stage(x).shape == (200,)
    ltl, specific, stl = stage(x, return_intermediate=True)
    assert (ltl.shape, specific.shape, stl.shape) == ((200,), (200, 150), (200,))
    other = Moore2016TemporalIntegration(ltl_attack=0.05, ltl_release=0.01)
    assert other.get_parameters()["ltl"] == {"attack_alpha": 0.05, "release_alpha": 0.01}
    assert len(list(Moore2016TemporalIntegration(learnable=True).parameters())) == 4


def of_fast_modulation_filterbank():
    from amt_stream.common.modulation import FastModulationFilterbank

    fc = torch.linspace(100, 8000, 31)
    stage = FastModulationFilterbank(fs=16000, fc=fc, preset="jepsen2008")
    y = stage(rand(2, 31, 1600))
    assert [v.shape for v in y] == [(2, centers.numel(), 1600) for centers in stage.mfc]
    stage.distribute_gradients()


EXAMPLES = [value for name, value in list(vars().items()) if name.startswith("of_")]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda one: one.__name__)
def test_what_the_documents_of_torch_amt_show(example):
    example()
