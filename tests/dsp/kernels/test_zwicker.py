"""The compiled steps of Zwicker loudness against the plain ones, which are their definition."""

import pytest
import torch

from amt_stream.dsp.functional.compiler.dispatch import compiled
from amt_stream.dsp.functional.zwicker import (
    core_loudness,
    loudness_pattern,
    third_octave_powers,
    weighted,
)
from amt_stream.dsp.functional.zwicker_decay import decayed
from amt_stream.dsp.stages.zwicker import CoreLoudness, ThirdOctaveLevels, ZwickerLoudness
from tests.dsp.kernels.forms import plainly

# Relative to the peak: rounding, in float32 also of levels that a power of ten follows.
CLOSE = {torch.float32: 2e-6, torch.float64: 1e-12}

pytestmark = pytest.mark.parametrize("dtype", [torch.float32, torch.float64])


def random(*shape, dtype, seed=0):
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def same(f, x, *more, close=None):
    assert compiled(x)
    for a, b in zip(f(x, *more), plainly(f, x, *more), strict=True):
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        assert (a - b).abs().amax() <= (close or CLOSE[x.dtype]) * b.abs().amax()


@pytest.mark.parametrize("smooth", [True, False])
@pytest.mark.parametrize(("lead", "frames"), [((), 1), ((3,), 5), ((2, 2), 41)])
def test_third_octave_powers(dtype, smooth, lead, frames):
    stage = ThirdOctaveLevels(smooth).to(dtype)
    x = random(*lead, 24 * frames, dtype=dtype) - 0.5
    zi = stage.initial_state(lead)["filters"]
    zi[..., :6, :] = stage.gain * (random(*zi[..., :6, :].shape, dtype=zi.dtype, seed=1) - 0.5)
    smoothing = stage.smoothing if smooth else None
    # Poles next to 1: at 25 Hz rounding comes back 1e3 times as large in each of three filters.
    same(third_octave_powers, x, stage.poles, stage.gain, smoothing, zi, close=1e-8)


@pytest.mark.parametrize("field", ["free", "diffuse"])
def test_core_loudness(dtype, field):
    stage = CoreLoudness(field).to(dtype)
    x = 150 * random(3, 50, 28, dtype=dtype) - 26
    same(lambda v: [core_loudness(v, stage.tables())], x)
    assert stage.transform(torch.full((1, 28), -26.0, dtype=dtype)).eq(0).all()


@pytest.mark.parametrize("begun", [False, True])
@pytest.mark.parametrize(("lead", "frames"), [((), 1), ((2, 2), 40)])
def test_decay(dtype, begun, lead, frames):
    stage = ZwickerLoudness().to(dtype)
    x = (5 * random(*lead, frames, 20, dtype=dtype) - 2).clamp(min=0)
    x[..., frames // 2 :, :] *= 0.01
    zi = random(*lead, 3, 20, dtype=torch.float64, seed=1) * begun
    same(decayed, x, stage.decay, zi, torch.full(lead, begun))


@pytest.mark.parametrize("begun", [False, True])
@pytest.mark.parametrize(("lead", "frames"), [((), 1), ((2, 2), 100)])
def test_weighting(dtype, begun, lead, frames):
    stage = ZwickerLoudness().to(dtype)
    x = 10 * random(*lead, frames, dtype=dtype)
    zi = random(*lead, 2, dtype=torch.float64, seed=1) * begun
    same(weighted, x, stage.weighting, zi, torch.full(lead, begun))


@pytest.mark.parametrize("specific", [False, True])
def test_pattern(dtype, specific):
    """Few bands that are loud, so that slopes cross many ranges, and all that are."""
    stage = ZwickerLoudness().to(dtype)
    x = 40 * random(200, 20, dtype=dtype) ** 3
    x[:100] *= random(100, 20, dtype=dtype, seed=1) < 0.2
    x[0] = 0
    x[1, 0] = 500
    same(lambda v: [t for t in loudness_pattern(v, stage.tables(), specific) if t is not None], x)


def test_the_area_is_that_of_the_samples(dtype):
    stage = ZwickerLoudness().to(dtype)
    x = 4 * random(50, 20, dtype=dtype)
    total, specific = loudness_pattern(x, stage.tables(), True)
    assert specific.shape == (50, 240)
    torch.testing.assert_close(specific.sum(-1) / 10, total, rtol=0.03, atol=0)


def test_not_a_number_is_passed_on(dtype):
    levels = torch.full((3, 6, 28), 60.0, dtype=dtype)
    levels[0, 2, 3] = torch.nan
    levels[1, 2, 20] = torch.nan
    levels[2, 2, 20] = torch.inf
    cores = CoreLoudness().to(dtype).transform(levels)
    assert cores[0, 2, 0].isnan()
    assert cores[1, 2, 12].isnan()
    assert cores.isnan().sum() == 2
    stage = ZwickerLoudness().to(dtype)
    total, _ = loudness_pattern(cores, stage.tables())
    assert total.isnan().sum() == 2
    y, _ = stage.step(levels[..., :20] / 60, stage.initial_state((3, 20)))
    assert not y.n[..., 0].isnan().any()
