"""Compiled recurrences of hair cells, adaptation and filters against their plain torch forms."""

import pytest
import scipy
import torch

from amt_stream.dsp.functional.adaptation import Loops, adaptation_loops, plain_loops
from amt_stream.dsp.functional.compiler.dispatch import compiled
from amt_stream.dsp.functional.filters.direct_form import direct_form
from amt_stream.dsp.functional.filters.first_order import first_order, first_order_gain
from amt_stream.dsp.functional.relaxation import plain_relax, relax
from tests.dsp.kernels.forms import plainly
from tests.dsp.noise import noise

CLOSE = {torch.float32: 1e-5, torch.float64: 1e-12}
DTYPES = [torch.float32, torch.float64]

pytestmark = pytest.mark.parametrize("dtype", DTYPES)

# Fewer rows than lanes, all lanes, and some over; fewer samples than a tile, and some over.
SHAPES = [(1, 1), (2, 3, 7), (32, 128), (3, 11, 130)]


def same(got, expected):
    for a, b in zip(got, expected, strict=True):
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        if b.numel():  # a filter of order 0 has no state
            assert (a - b).abs().amax() <= CLOSE[a.dtype] * b.abs().amax()


def both_forms(f, x, *more):
    """`f` as it runs live, and in torch."""
    assert compiled(x, *more)
    return f(x, *more), plainly(f, x, *more)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("passes", "high"), [(1, True), (5, False)])
def test_first_order(dtype, shape, passes, high):
    x, zi = noise(*shape, dtype=dtype), noise(*shape[:-1], passes, dtype=dtype, seed=1)
    cutoffs = torch.linspace(40, 2000, shape[-2], dtype=torch.float64).tolist()
    for g in (first_order_gain(40.0, 8000), [first_order_gain(f, 8000) for f in cutoffs]):
        gain = torch.tensor(g, dtype=dtype)
        same(*both_forms(lambda *a: first_order(*a, high=high, rectify=True), x, gain, zi))


def test_first_order_high_pass_at_3_hz_is_that_of_scipy(dtype):
    fs = 48000
    x, zi = noise(2, fs, dtype=dtype) + 1, torch.zeros(2, 1, dtype=dtype)
    y, _ = first_order(x, torch.tensor(first_order_gain(3.0, fs), dtype=dtype), zi, high=True)
    expected = torch.from_numpy(
        scipy.signal.lfilter(*scipy.signal.butter(1, 3.0, "high", fs=fs), x.double().numpy())
    )
    tolerance = {torch.float32: 1e-6, torch.float64: 1e-12}[dtype]
    assert (y.double() - expected).abs().amax() <= tolerance * expected.abs().amax()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("sections", "order"), [(1, 0), (1, 1), (3, 2), (1, 4)])
def test_direct_form(dtype, shape, sections, order):
    b = noise(sections, order + 1, dtype=dtype, seed=1)
    a = 0.2 * noise(sections, order + 1, dtype=dtype, seed=2)
    a[:, 0] = 1
    x = noise(*shape, dtype=dtype)
    same(*both_forms(direct_form, x, b, a, noise(*shape[:-1], sections, order, dtype=dtype)))


@pytest.mark.parametrize("shape", SHAPES)
def test_relax(dtype, shape):
    target, zi = noise(*shape, dtype=dtype), noise(*shape[:-1], dtype=dtype, seed=1)
    rate = noise(*shape, dtype=dtype, seed=2).sigmoid()
    same(relax(target, rate, zi), plain_relax(target, rate, zi))
    same(*both_forms(relax, target, rate, zi))


def loops_of(channels, limit, dtype):
    """`Loops` that differ by channel, or not where `channels` is None, and their states at rest."""
    floor = torch.tensor(1e-5, dtype=torch.float64)
    if channels:
        floor = floor * torch.linspace(1, 5, channels, dtype=torch.float64)
    rest = floor[..., None] ** 0.5 ** torch.arange(1.0, 6.0, dtype=torch.float64)
    rates = torch.tensor([0.02, 0.005, 0.001, 5e-4, 2e-4], dtype=dtype)
    overshoot = ((1 - rest**2) * limit - 1).to(dtype) if limit else None
    corr = rest[..., -1].to(dtype)
    return Loops(floor.to(dtype), rates, overshoot, corr, 100 / (1 - corr)), rest.to(dtype)


def at_rest(rest, *shape):
    """States of silence, of which rounding has left nothing."""
    rest = rest.expand(*shape, rest.shape[-1])
    return torch.stack([rest, torch.zeros_like(rest)], -1)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("limit", [None, 10.0])
def test_adaptation_loops(dtype, shape, own, limit):
    loops, rest = loops_of(shape[-2] if own else None, limit, dtype)
    x, zi = 10 ** (noise(*shape, dtype=dtype) - 3), at_rest(rest, *shape[:-1])
    same(adaptation_loops(x, loops, zi), plain_loops(x, loops, zi))


def test_a_channel_at_rest_is_the_same_beside_one_with_an_onset(dtype):
    """Only where a channel of some side by side has an onset is the limit looked at."""
    loops, rest = loops_of(None, 10.0, dtype)
    x = 10 ** (noise(20, 300, dtype=dtype) * 0.01 - 4)
    zi = adaptation_loops(x, loops, at_rest(rest, 20))[1]
    calm = adaptation_loops(x, loops, zi)
    x[::2, ::7] *= 1000
    beside = adaptation_loops(x, loops, zi)
    for a, b in zip(calm, beside, strict=True):
        assert (a[1::2] == b[1::2]).all()
        assert not (a[::2] == b[::2]).all()
    same(beside, plain_loops(x, loops, zi))


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("limit", [None, 10.0])
def test_gradient_of_the_adaptation_loops(dtype, own, limit):
    loops, rest = loops_of(5 if own else None, limit, dtype)
    x, zi = 10 ** (noise(2, 5, 40, dtype=dtype) - 4), at_rest(rest, 2, 5)
    weights = [noise(2, 5, n, dtype=dtype, seed=n) for n in (40, 5)]
    weights[1] = torch.stack([weights[1], torch.zeros_like(weights[1])], -1)
    given = [t.clone().requires_grad_() for t in (x, zi, *loops) if t is not None]
    gradients = []
    for f in (adaptation_loops, plain_loops):
        tail = given[2:] if limit else [*given[2:4], None, *given[4:]]
        y = f(given[0], Loops(*tail), given[1])
        total = sum((v * w).sum() for v, w in zip(y, weights, strict=True))
        gradients.append(torch.autograd.grad(total, given))
    same(*gradients)
