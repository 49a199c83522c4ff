"""Compiled gradients: those of the plain forms, finite differences."""

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

from amt_stream.dsp.functional import excitation as module_of_single_skirts
from amt_stream.dsp.functional import group_skirts as module_of_skirts
from amt_stream.dsp.functional import modulation
from amt_stream.dsp.functional.compiler import dispatch
from amt_stream.dsp.functional.excitation import Filters, lower_skirts
from amt_stream.dsp.functional.filters.direct_form import direct_form
from amt_stream.dsp.functional.filters.first_order import first_order
from amt_stream.dsp.functional.filters.svf import svf
from amt_stream.dsp.functional.gammatone import gammatone, one_poles
from amt_stream.dsp.functional.group_skirts import Groups, group_skirts
from amt_stream.dsp.functional.loudness import agc
from amt_stream.dsp.functional.modulation import BandPasses, OnePoles, Readout
from amt_stream.dsp.functional.relaxation import relax
from amt_stream.dsp.functional.zwicker_decay import decayed
from amt_stream.dsp.scales import erb, erb_number_to_hz
from amt_stream.dsp.stages.moore.excitation import CAMS, grouped
from amt_stream.dsp.stages.zwicker import ZwickerLoudness
from tests.dsp.kernels.forms import plainly
from tests.dsp.noise import noise


def between(low, high, *shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return low + (high - low) * torch.rand(shape, generator=generator, dtype=torch.float64)


def gammatones(time, order=4, channels=2, own=False):
    fc = torch.linspace(80, 3000, channels, dtype=torch.float64)
    x, zi = noise(2, channels if own else 1, time), noise(2, 2, order, channels, seed=1)
    given = x, one_poles(fc, 0.1 * fc + 20, 8000.0), zi
    return lambda x, c, zi: gammatone(x, c, 1.3, zi), given


def variable_sections(time):
    g, k = between(0.01, 1, 2, 3, seed=1), between(0.5, 2, 2, 3, seed=2)
    return svf, (noise(3, 2, time), g, k, noise(2, 3, 3, seed=3), noise(3, 2, 3, 2, seed=4))


def first_orders(time, high=False, rectify=False, channels=()):
    g, zi = between(0.05, 0.4, *channels), noise(3, 2, 4, seed=1)
    return lambda x, g, zi: first_order(x, g, zi, high, rectify), (noise(3, 2, time), g, zi)


def direct_forms(time, order=2):
    a = 0.2 * noise(3, order + 1, seed=1)
    a[:, 0] = 1
    return direct_form, (noise(4, time), noise(3, order + 1, seed=2), a, noise(4, 3, order, seed=3))


def control(time):
    return agc, (noise(2, time, 3), between(0.05, 0.9, 2), noise(2, 3, seed=1))


def relaxation(time):
    return relax, (noise(3, time), between(0.05, 0.9, 3, time), noise(3, seed=1))


def skirts(frames, scale):
    """Narrow skirts at a low level; at the highest all are at their least steepness."""
    f = np.arange(40.0, 1500.0, 15.0)
    tables = grouped(f, erb_number_to_hz(CAMS[:40]), 0.25)
    precise = [torch.as_tensor(tables[name]) for name in Groups._fields]

    def run(x, density):
        groups = Groups(*(t.to(x.dtype) if t.is_floating_point() else t for t in precise))
        return (group_skirts(scale * x, 10 * scale * density, groups, 3.0) / scale,)

    return run, (between(0.2, 2, frames, len(f)), between(0.2, 2, frames, len(tables["middle"])))


def single_skirts(frames):
    f, fc = torch.linspace(20, 2000, 40).double(), torch.linspace(100, 3000, 33).double()
    below = torch.searchsorted(f, fc)

    def run(x, level):
        filters = Filters(*(t.to(x.dtype) for t in (f, fc, 4 / erb(fc))), below)
        return (lower_skirts(x, level, filters),)

    return run, (between(0.2, 2, frames, 40), between(20, 90, frames, 40, seed=1))


def decays(frames):
    """Cores that fall, at once and over many frames, and rise."""
    core = between(0.1, 3, 2, frames, 4) * between(0, 1, 2, frames, 4, seed=1).round()
    zi, started = between(0.1, 3, 2, 3, 4, seed=2), torch.tensor([True, False])
    table = ZwickerLoudness().double().decay
    return lambda core, zi: decayed(core, table, zi.double(), started), (core + 0.01, zi)


def bank(kind, time, first, envelope):
    """Channels with all and with two of the filters, the envelopes of some bands."""
    bands, states = 3, (noise(2, 2, first, 2, seed=5), noise(2, 2, 3, 2, seed=6))
    parts = OnePoles(between(-0.5, -0.1, bands, 2), between(0.1, 0.9, bands, seed=1))
    f = modulation.one_pole_bank
    if kind is BandPasses:
        parts = BandPasses(*(between(0.1, 1, bands, 2, seed=seed) for seed in range(3)))
        f, states = modulation.band_pass_bank, (states[0], noise(2, 2, bands, 2, 2, seed=6))
    counts = torch.tensor([bands + first, 2])

    def run(x, low, *given):
        *parts, scale, low_zi, zi = given
        wanted = torch.tensor([False, envelope, envelope])
        readout = Readout(scale, wanted, counts)
        y, zf = f(x, low, kind(*parts), readout, (low_zi, zi))
        return (y, *zf) if first else (y, zf[1])

    return run, (noise(2, 2, time), between(0.01, 0.1, first), *parts, noise(bands), *states)


CASES = {
    "gammatone": gammatones,
    "gammatone, own inputs": lambda time: gammatones(time, order=1, channels=19, own=True),
    "svf": variable_sections,
    "low-pass": lambda time: first_orders(time, rectify=True),
    "high-pass": lambda time: first_orders(time, high=True, channels=(2,)),
    "direct form": direct_forms,
    "direct form of order 4": lambda time: direct_forms(time, 4),
    "direct form of order 0": lambda time: direct_forms(time, 0),
    "gain control": control,
    "relaxation": relaxation,
    "narrow skirts": lambda time: skirts(time, 1e-2),
    "wide skirts": lambda time: skirts(time, 1e5),
    "some skirts of least steepness": lambda time: skirts(time, 1e9),
    "skirts of least steepness": lambda time: skirts(time, 1e13),
    "skirts of single components": single_skirts,
    "decay": decays,
    "one-poles": lambda time: bank(OnePoles, time, 1, True),
    "one-poles without a low-pass": lambda time: bank(OnePoles, time, 0, False),
    "band-passes": lambda time: bank(BandPasses, time, 1, True),
    "band-passes without a low-pass": lambda time: bank(BandPasses, time, 0, False),
}


def gradients(f, given, slopes=None):
    """Output of `f`, and its gradient of each of `given` along `slopes`."""
    given = [v.clone().requires_grad_() for v in given]
    y = f(*given)
    slopes = [noise(*v.shape, seed=9).to(v) for v in y] if slopes is None else slopes
    total = sum((v * slope).sum() for v, slope in zip(y, slopes, strict=True))
    return [v.detach() for v in y], torch.autograd.grad(total, given, allow_unused=True)


def same(got, expected, tolerance):
    for a, b in zip(got, expected, strict=True):
        if b is not None and b.numel():
            assert (a - b).abs().amax() <= tolerance * b.abs().amax()


# One sample, a tile of the kernels and its neighbors.
@pytest.mark.cases(8)
@pytest.mark.parametrize("time", [1, 32, 101])
@pytest.mark.parametrize("name", CASES)
def test_the_compiled_gradient_is_that_of_the_plain_form(name, time):
    f, given = CASES[name](time)
    values, slopes = gradients(f, given)
    assert compiles(f, given)
    plain, expected = gradients(lambda *v: plainly(f, *v), given)
    same(values, plain, 1e-12)
    same(slopes, expected, 1e-11)
    # What a kernel kept of one call is nothing to the next.
    same(gradients(f, given)[1], slopes, 0.0)


def compiles(f, given):
    """Whether a gradient of `f` is a compiled one: the plain forms make a graph of their own."""
    y, seen, ahead = f(*(v.clone().requires_grad_() for v in given))[0], set(), []
    ahead.append(y.grad_fn)
    while ahead:
        node = ahead.pop()
        seen.add(type(node).__name__)
        ahead += [after for after, _ in node.next_functions if after is not None]
    return "_DifferentiableBackward" in seen or not given[-1].numel()


@pytest.mark.cases(3)
@pytest.mark.parametrize("name", CASES)
def test_gradients_in_float32(name):
    f, given = CASES[name](101)
    given = [v.float() for v in given]
    _, slopes = gradients(f, given)
    assert all(slope is None or slope.dtype == torch.float32 for slope in slopes)
    weights = [noise(*v.shape, seed=9).float().double() for v in f(*given)]
    _, expected = gradients(f, [v.double() for v in given], weights)
    # Levels of skirts are in decibels; torch's own gradient is 2.3e-5 off.
    same(slopes, expected, 3e-5 if "skirts" in name else 1e-5)


@pytest.mark.cases(3)
@pytest.mark.parametrize("name", CASES)
def test_finite_differences(name):
    # Frames of skirts are apart, and each has 400 arguments.
    f, given = CASES[name](2 if "skirts" in name else 5)
    assert gradcheck(f, [v.requires_grad_() for v in given])


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    "name",
    ["gammatone", "svf", "high-pass", "direct form", "gain control", "relaxation", "one-poles"],
)
def test_gradients_of_gradients(name):
    f, given = CASES[name](3)
    assert gradgradcheck(f, [v.requires_grad_() for v in given], fast_mode=True)


@pytest.mark.parametrize("fixed", [False, True])
def test_right_in_float32_next_to_one(fixed):
    """The gradient of a low-pass at 2.5 Hz and 48 kHz, whose poles float32 cannot hold."""
    g = torch.full((1, 1), torch.pi * 2.5 / 48000)
    k, weights, zi = torch.full_like(g, 2**0.5), torch.tensor([[[0.0, 0, 1]]]), torch.zeros(1, 1, 2)
    x = noise(1, 48000).float()

    def slopes(dtype):
        given = [v.to(dtype).requires_grad_(not fixed) for v in (g, k)]
        sound = x.to(dtype).requires_grad_()
        y, _ = svf(sound, *given, weights.to(dtype), zi.to(dtype))
        return torch.autograd.grad(y.square().sum(), [sound, *([] if fixed else given)])

    same(slopes(torch.float32), slopes(torch.float64), 1e-4)


def test_silence_behind_the_sound_costs_no_more():
    """What fades away is 0 at last: the least numbers are slow."""
    f, given = gammatones(48000)
    slope = torch.zeros(2, 2, 48000, dtype=torch.float64)
    slope[..., -1] = 1
    x, *others = (v.clone().requires_grad_() for v in given)
    y, _ = f(x, *others)
    (gx,) = torch.autograd.grad(y, x, slope)
    kept = gx.abs()
    assert kept[..., -100:].amin() > 0
    assert not ((kept > 0) & (kept < 1e-290)).any()


@pytest.mark.parametrize("name", [name for name in CASES if "skirts" in name])
def test_where_no_kernel_serves_the_gradient_of_skirts_is_computed_again(name, monkeypatch):
    """As on a GPU, where torch would keep gigabytes for a second of sound."""
    f, given = CASES[name](40)
    values, slopes = gradients(f, given)
    monkeypatch.setattr(dispatch, "compilable", lambda *tensors: False)
    for module in (module_of_skirts, module_of_single_skirts):
        monkeypatch.setattr(module, "compilable", lambda *tensors: False)
    again, others = gradients(f, given)
    same(again, values, 1e-12)
    same(others, slopes, 1e-11)
    kept = []

    def keep(x):
        kept.append(x.untyped_storage().nbytes())
        return x

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda x: x):
        f(*(v.clone().requires_grad_() for v in given))
    assert sum(kept) < 4 * sum(v.numel() for v in given) * 8
