"""The compiled steps of programme loudness against the plain ones, which are their definition."""

import pytest
import torch

from amt_stream.dsp.design import interpolator, k_weighting
from amt_stream.dsp.functional.compiler.dispatch import compiled
from amt_stream.dsp.functional.peak import ENDLESS, ending, peaks
from amt_stream.dsp.functional.programme import filtered_mean_square
from tests.dsp.noise import noise

# Relative to the peak. Poles next to 1, at 38 Hz, make much of rounding.
CLOSE = {torch.float32: 1e-6, torch.float64: 1e-10}

pytestmark = [
    pytest.mark.parametrize("dtype", [torch.float32, torch.float64]),
    pytest.mark.parametrize("lengths", [(480,), (110, 110, 111, 110), (1,)]),
]


def same(f, x, *more):
    wanting_gradient = x.clone().requires_grad_()
    assert compiled(x)
    assert not compiled(wanting_gradient)
    for a, b in zip(f(x, *more), f(wanting_gradient, *more), strict=True):
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        assert (a - b).abs().amax() <= CLOSE[x.dtype] * b.abs().amax()


@pytest.mark.parametrize("lead", [(), (3,), (2, 2)])
def test_mean_square(dtype, lengths, lead):
    x = noise(*lead, 5 * sum(lengths), dtype=dtype)
    sections, rest = torch.from_numpy(k_weighting(48000)), torch.zeros(*lead, 2, 2).double()
    _, zi = filtered_mean_square(noise(*lead, 480, seed=1), sections, (480,), rest)
    same(filtered_mean_square, x, sections, lengths, zi)


@pytest.mark.parametrize("lead", [(), (3,), (2, 2)])
def test_peaks(dtype, lengths, lead):
    time = 5 * sum(lengths)
    x = noise(*lead, time, dtype=dtype)
    phases = torch.from_numpy(interpolator()).to(dtype)
    for first, left in ((0.0, ENDLESS), (4.0, time // 2), (11.0, 0.0), (11.0, 2.0)):
        zi = noise(*lead, 13, dtype=dtype, seed=1)
        zi[..., 0], zi[..., 1] = first, left
        same(peaks, x, phases, lengths, zi)


def test_peaks_are_those_of_the_sound(dtype, lengths):
    """A cosine that begins and ends at its crest: not even where silence makes an edge of it."""
    period, block = 16, sum(lengths)
    count = -(-period * 4 // block) * block
    end = (count - 12) // period * period + 1
    x = torch.cos(2 * torch.pi * torch.arange(count, dtype=dtype) / period)
    x[end:] = 0
    phases = torch.from_numpy(interpolator()).to(dtype)
    rest = ending(x.new_zeros(13), ENDLESS)
    for given in (x, x.clone().requires_grad_()):
        samples, between, zf = peaks(given, phases, lengths, ending(rest, end))
        assert samples.max() == 1
        assert between.max() < 1.02
        assert zf[:2].tolist() == [11.0, 0.0]
        _, between, zf = peaks(given, phases, lengths, rest)
        assert between.max() > 1.05
        assert zf[:2].tolist() == [11.0, (ending(zf, ENDLESS)[1] - count).item()]


def test_not_a_number_is_passed_on(dtype, lengths):
    x = noise(2, 30 * sum(lengths), dtype=dtype)
    x[1, 7 * sum(lengths)] = torch.nan
    phases = torch.from_numpy(interpolator()).to(dtype)
    at, before = 7 * len(lengths), ending(x.new_zeros(2, 13), ENDLESS)
    before[:, 0] = 11
    samples, between, _ = peaks(x, phases, lengths, before)
    assert samples.isnan().nonzero().tolist() == [[1, at]]
    heard = 12 if lengths == (1,) else 1
    assert between.isnan().nonzero().tolist() == [[1, at + k] for k in range(heard)]
    sections, rest = torch.from_numpy(k_weighting(48000)), torch.zeros(2, 2, 2, dtype=torch.float64)
    y, zf = filtered_mean_square(x, sections, lengths, rest)
    assert y[1].isnan().nonzero()[0] == at
    assert zf[1].isnan().any()
    assert not y[0].isnan().any()
