"""State-variable sections: both forms alike, and both what scipy's sections give."""

import numpy as np
import pytest
import scipy
import torch

from amt_stream.dsp.functional.compiler.dispatch import compiled
from amt_stream.dsp.functional.filters.svf import BAND, LOW, svf
from tests.dsp.kernels.forms import compiledly, plainly
from tests.dsp.noise import noise

FS = 48000
FORMS = [compiledly, plainly]
CLOSE = {torch.float32: 2e-6, torch.float64: 1e-13}


def coefficients(f, k, weights, dtype=torch.float64):
    """Sections of (channel, section) frequencies in Hz, all with the same k and weights."""
    g = torch.tan(torch.pi * torch.tensor(f, dtype=torch.float64) / FS)
    k = torch.full_like(g, k)
    if weights is None:
        w = torch.stack([torch.ones_like(k), -k, -torch.ones_like(k)], -1)
    else:
        w = torch.tensor(weights, dtype=torch.float64).expand(*g.shape, 3)
    return g.to(dtype), k.to(dtype), w.to(dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("sections", [1, 2, 4])
@pytest.mark.parametrize(("lead", "time"), [((), 1), ((2,), 47), ((3, 2), 150)])
def test_both_forms_agree(dtype, sections, lead, time):
    channels = 7
    f = np.geomspace(2, 15000, channels * sections).reshape(channels, sections)
    g, k, _ = coefficients(f.tolist(), 0.9, LOW, dtype)
    weights = noise(channels, sections, 3, dtype=dtype, seed=1)
    x = noise(*lead, channels, time, dtype=dtype, seed=2)
    zi = noise(*lead, channels, sections, 2, dtype=dtype, seed=3)
    given = x, g, k, weights, zi
    assert compiled(*given)
    for a, b in zip(svf(*given), plainly(svf, *given), strict=True):
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        assert (a - b).abs().amax() <= CLOSE[dtype] * 10 * b.abs().amax()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("btype", "weights"), [("low", LOW), ("high", None)], ids=["low", "high"])
def test_butterworth_of_order_two(btype, weights, form):
    f = [[2.5], [150.0], [20000.0]]
    x = noise(2, 3, 4000)
    y, _ = form(svf, x, *coefficients(f, 2**0.5, weights), torch.zeros(2, 3, 1, 2).double())
    for i, (fc,) in enumerate(f):
        # The direct form of scipy itself is good to about 1e-9 at 2.5 Hz.
        sos = scipy.signal.butter(2, fc, btype, fs=FS, output="sos")
        expected = scipy.signal.sosfilt(sos, x[:, i].numpy())
        assert np.abs(y[:, i].numpy() - expected).max() <= 2e-9 * np.abs(expected).max()


def test_band_output():
    """The gain at the center is 1 / k, with no change of phase."""
    g, k, w = coefficients([[1000.0]], 0.25, BAND)
    x = torch.sin(2 * torch.pi * 1000 / FS * torch.arange(FS // 4, dtype=torch.float64))[None]
    y, _ = svf(x, g, k, w, torch.zeros(1, 1, 2).double())
    assert (y - 4 * x)[:, FS // 8 :].abs().max() < 1e-9


@pytest.mark.parametrize("form", FORMS)
def test_right_in_float32_at_low_frequencies(form):
    """-90 dB at 2.5 Hz and 48 kHz, where a direct form has a DC gain of 1.8 instead of 1."""
    x = noise(1, FS)
    zi = torch.zeros(1, 1, 2)
    exact, _ = svf(x, *coefficients([[2.5]], 2**0.5, LOW), zi.double())
    y, _ = form(svf, x.float(), *coefficients([[2.5]], 2**0.5, LOW, torch.float32), zi)
    assert (y - exact).abs().max() <= 10 ** (-90 / 20) * exact.abs().max()
    y, _ = svf(torch.ones(1, 2 * FS), *coefficients([[2.5]], 2**0.5, LOW, torch.float32), zi)
    assert y[0, -1].item() == pytest.approx(1, abs=1e-4)


def test_not_a_number_is_passed_on():
    x = torch.zeros(2, 8)
    x[0, 3] = torch.nan
    g, k, w = coefficients([[300.0], [300.0]], 0.8, LOW, torch.float32)
    y, _ = svf(x, g, k, w, torch.zeros(2, 1, 2))
    assert y[0, 3:].isnan().all()
    assert not y[0, :3].isnan().any()
    assert not y[1].isnan().any()
