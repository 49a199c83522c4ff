"""NaN given to a model shows in what it says; it never goes on with plausible numbers."""

import pytest
import torch

from amt_stream import Glasberg2002, Moore2016, Stream, ZwickerTimeVarying
from amt_stream.dsp.functional.excitation import select_components
from amt_stream.dsp.functional.zwicker import loudness_pattern
from amt_stream.dsp.functional.zwicker_decay import decayed
from amt_stream.dsp.stages import Excitation, ZwickerLoudness
from amt_stream.dsp.streaming import fields
from tests.dsp.contract.test_module_contract import CASES, DEAR, shape_of

FADE = {torch.float32: 48, torch.float64: 160}
"""Powers of ten by which sound fades: its square passes below the least number of the dtype."""


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
@pytest.mark.parametrize(
    ("make", "loudness"),
    [
        (lambda: Moore2016(32000), ("stl", "ltl")),
        (lambda: Glasberg2002(32000), ("stl", "ltl")),
        (lambda: ZwickerTimeVarying(48000), ("n",)),
    ],
)
def test_what_a_model_says_after_it_is_no_number_until_reset(make, loudness, value):
    torch.manual_seed(0)
    sound = 0.1 * torch.randn(2, 2, 9600)
    spoiled = sound.clone()
    spoiled[0, 0, 3200] = value
    live = Stream(make(), (2, 2))
    with torch.no_grad():
        live(spoiled)
        y = live(sound)
        for name in loudness:
            v = getattr(y, name)
            assert (v[0] if v.dim() == 2 else v[0, 0]).isnan().all()
            assert v[1].isfinite().all()
        live.reset(torch.tensor([True, False]))
        assert all(getattr(live(sound), name).isfinite().all() for name in loudness)


@pytest.mark.parametrize("grad", [False, True])
def test_which_components_are_weak_cannot_be_said_beside_one_that_is_none(grad):
    x = torch.full((2, 2, 3, 960), 1e4)
    x[0, 0, 1, 7] = torch.nan
    y = select_components(x.requires_grad_(grad)).detach()
    assert y[0, :, 1].isnan().all()
    assert y.isnan().sum() == 2 * 960
    stage = Excitation()
    excitation, _ = stage.step(x, {})
    assert excitation[0, :, 1].isnan().all()
    assert excitation.isnan().sum() == 2 * 150


@pytest.mark.parametrize("grad", [False, True])
def test_a_decay_does_not_recover(grad):
    stage = ZwickerLoudness()
    core = torch.ones(2, 6, 20)
    core[0, 1, 3] = torch.nan
    state = stage.initial_state((2, 20))
    y, zf = decayed(core.requires_grad_(grad), stage.decay, state["cores"], state["begun"])
    assert y[0, 1:, 3].isnan().all()
    assert zf[0, :2, 3].isnan().all()
    assert y.isnan().sum() == 5


@pytest.mark.parametrize("grad", [False, True])
def test_a_slope_out_of_a_band_that_is_none_is_none(grad):
    core = torch.ones(2, 20)
    core[0, 10] = torch.nan
    total, specific = loudness_pattern(
        core.requires_grad_(grad), ZwickerLoudness().tables(), specific=True
    )
    assert total.isnan().tolist() == [True, False]
    first = int(specific[0].isnan().nonzero()[0])
    assert 0 < first < 239
    assert specific[0, first:].isnan().all()
    assert specific[1].isfinite().all()


@pytest.mark.cases(40)
@pytest.mark.parametrize("dtype", FADE)
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.soak] if name in DEAR else []) for name in CASES],
)
def test_sound_that_dies_away_leaves_numbers(name, dtype):
    stage = CASES[name].make().to(dtype)
    x, live = CASES[name].input(stage), Stream(stage, shape_of(CASES[name], stage))
    with torch.no_grad():
        for tens in range(0, FADE[dtype] + 1, 4):
            assert all(v.isfinite().all() for v in fields(live(x * 10.0**-tens))), tens
        assert all(v.isfinite().all() for v in fields(live(0 * x)))
