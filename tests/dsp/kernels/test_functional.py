"""The compiled form of each function against the plain torch form, which is its definition."""

from itertools import product

import numpy as np
import pytest
import torch

from amt_stream.dsp.design import partitioned
from amt_stream.dsp.functional import loudness
from amt_stream.dsp.functional.banded import band_blocks, banded, filled_up
from amt_stream.dsp.functional.compiler.dispatch import compiled
from amt_stream.dsp.functional.compiler.fourier import transform, transform_columns, turns, twists
from amt_stream.dsp.functional.excitation import lower_skirts, select_components
from amt_stream.dsp.functional.filters.fir import fir, partitioned_fir, polyphase
from amt_stream.dsp.functional.group_skirts import group_skirts
from amt_stream.dsp.functional.loudness import (
    Channels,
    agc,
    binaural_loudness,
    inhibition_gains,
    monaural_loudness,
    specific_loudness,
)
from amt_stream.dsp.functional.spectrum import running_spectrum
from amt_stream.dsp.stages import BinauralLoudness, Excitation, Resample, RunningSpectrum
from amt_stream.dsp.stages.moore.loudness import MonauralLoudness
from amt_stream.dsp.stages.spectrum import HALVES
from tests.dsp.kernels.forms import plainly
from tests.dsp.noise import noise

# Relative to the peak: rounding of sums of up to 2048 terms.
CLOSE = {torch.float32: 5e-6, torch.float64: 1e-13}
DTYPES = [torch.float32, torch.float64]

pytestmark = pytest.mark.parametrize("dtype", DTYPES)


def same(f, x, *more, rtol=1.0):
    """`f` gives the same in both forms, elementwise relative to the output's peak."""
    assert compiled(x)
    fast, plain = flat(f(x, *more)), flat(plainly(f, x, *more))
    assert len(fast) == len(plain)
    for a, b in zip(fast, plain, strict=True):
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        assert (a - b).abs().amax() <= rtol * CLOSE[x.dtype] * b.abs().amax()


def flat(y):
    return [y] if isinstance(y, torch.Tensor) else [t for part in y for t in flat(part)]


@pytest.mark.parametrize("time", [1, 3, 32, 441])
@pytest.mark.parametrize("taps", [2, 7, 1025])
def test_fir(dtype, time, taps):
    x, zi = noise(2, 2, time, dtype=dtype), noise(2, 2, taps - 1, dtype=dtype)
    same(fir, x, noise(taps, dtype=dtype), zi)


@pytest.mark.parametrize("blocks", [1, 2, 14])
@pytest.mark.parametrize(("taps", "hop"), [(4097, 32), (1, 16), (50, 16)])
def test_partitioned_fir(dtype, blocks, taps, hop):
    h = noise(taps, dtype=dtype)
    tables = [torch.tensor(t).to(dtype) for t in partitioned(h.numpy().astype(float), hop)]
    zi = noise(2, 2, (tables[0].shape[0] - 1) * 2 * hop, dtype=dtype)
    same(partitioned_fir, noise(2, 2, blocks * hop, dtype=dtype), *tables, zi, rtol=4)
    # Without a past it is the convolution itself, and in one block after another the same bits.
    x = noise(2, 2, blocks * hop, dtype=dtype)
    y, after = partitioned_fir(x, *tables, torch.zeros_like(zi))
    direct, _ = fir(x, h, torch.zeros(2, 2, taps - 1, dtype=dtype))
    assert (y - direct).abs().max() <= 4 * CLOSE[dtype] * direct.abs().max()
    state, parts = torch.zeros_like(zi), []
    for block in x.split(hop, -1):
        part, state = partitioned_fir(block, *tables, state)
        parts.append(part)
    assert torch.equal(torch.cat(parts, -1), y)
    assert torch.equal(state, after)


@pytest.mark.parametrize(("fs_in", "fs_out"), [(48000, 32000), (44100, 32000), (32000, 48000)])
def test_polyphase(dtype, fs_in, fs_out):
    stage = Resample(fs_in, fs_out).to(dtype)
    x, zi = noise(3, 5 * stage.block_size, dtype=dtype), noise(3, stage.length - 1, dtype=dtype)
    same(polyphase, x, stage.bank, stage.block_size, stage.length, zi)


@pytest.mark.parametrize("rows", [1, 2, 3])
@pytest.mark.parametrize("frames", [1, 4, 11])
def test_running_spectrum(dtype, rows, frames):
    s = RunningSpectrum().to(dtype)
    x, zi = noise(rows, 32 * frames, dtype=dtype), noise(rows, 2016, dtype=dtype)
    same(running_spectrum, x, s.cosine, s.sine, HALVES, s.bins, 32, zi, rtol=2)


def test_running_spectrum_is_six_discrete_fourier_transforms(dtype):
    x = noise(1, 2048, dtype=torch.float64)
    s = RunningSpectrum().to(dtype)
    got, _ = s.step(x[:, -32:].to(dtype), {"past": x[:, :-32].to(dtype)})
    edges = [1, 5, 32, 80, 162, 259, 961]
    for i in range(6):
        length = 2048 >> i
        w = np.zeros(2048)
        w[1024 - length // 2 : 1024 + length // 2] = np.hanning(length)
        bins = slice(edges[i], edges[i + 1])
        y = np.fft.rfft(w * x[0].numpy() / (np.sqrt(2) * 20e-6))[bins]
        expected = (2 * np.abs(y) / 2048) ** 2 * 10**0.332 * 2**i
        off = np.abs(got[0, 0, edges[i] - 1 : edges[i + 1] - 1].numpy() - expected)
        assert off.max() <= 4 * CLOSE[dtype] * expected.max()


@pytest.mark.parametrize("size", [256, 512, 1024, 4096])
def test_transform_is_a_discrete_fourier_transform(dtype, size):
    x = noise(2, size, dtype=dtype).numpy()
    expected, y = np.fft.fft(x[0] + 1j * x[1].astype(np.float64)), np.empty_like(x)
    tables = turns(4096, x.dtype.type), twists(4096, x.dtype.type)
    re, im = y if transform(x, y, *tables, size) else x
    assert np.abs(re + 1j * im - expected).max() <= CLOSE[dtype] * np.abs(expected).max()


@pytest.mark.cases(2)
@pytest.mark.parametrize("rows", [2, 5, 32, 160, 800, 1000])
def test_transform_columns_are_discrete_fourier_transforms(dtype, rows):
    """Of lengths that are a power of five times one of two, with turns of a longer one."""
    z = noise(2, rows, 48, dtype=dtype).numpy()
    x, y = z.reshape(2, -1).copy(), np.full((2, rows * 48), np.nan, z.dtype)
    given = y if transform_columns(x, y, turns(3 * rows, z.dtype.type), rows) else x
    re, im = given.reshape(z.shape)
    expected = np.fft.fft(z[0] + 1j * z[1].astype(np.float64), axis=0)
    assert np.abs(re + 1j * im - expected).max() <= CLOSE[dtype] * np.abs(expected).max()


def intensities(dtype, *shape):
    return noise(*shape, 960, dtype=dtype).square() * torch.logspace(7, -4, 960, dtype=dtype)


@pytest.mark.parametrize("ears", [1, 2])
@pytest.mark.parametrize("frames", [1, 2, 7])
def test_select_components(dtype, frames, ears):
    same(select_components, intensities(dtype, 2, ears, frames))


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 5, 40])
@pytest.mark.parametrize("accuracy", ["exact", "reference"])
def test_banded(dtype, rows, accuracy):
    stage = Excitation(accuracy).to(dtype)
    x = intensities(dtype, rows)
    same(banded, x, stage.levels, stage.levels_blocks, stage.nodes)
    same(banded, x, stage.upper, stage.upper_blocks, 150)


@pytest.mark.parametrize("columns", [1, 15, 16, 17, 40])
def test_a_row_of_a_banded_product_is_the_same_among_others(dtype, columns):
    """To the last bit: the order of its sums does not depend on how many rows there are."""
    matrix = noise(50, columns, dtype=dtype).numpy()
    blocks = torch.from_numpy(band_blocks(matrix))
    x, table = noise(9, 50, dtype=dtype), torch.from_numpy(filled_up(matrix))
    together = banded(x, table, blocks, columns)
    same(banded, x, table, blocks, columns)
    for rows in range(1, 9):
        for first in range(9 - rows):
            part = slice(first, first + rows)
            assert torch.equal(banded(x[part], table, blocks, columns), together[part])


def test_a_frame_of_a_spectrum_is_the_same_among_others(dtype):
    s = RunningSpectrum().to(dtype)
    x = noise(3, 32 * 7, dtype=dtype)
    together, _ = s.step(x, s.initial_state((3,)))
    for row in range(3):
        state = s.initial_state(())
        for n in range(7):
            y, state = s.step(x[row, 32 * n : 32 * n + 32], state)
            assert torch.equal(y[0], together[row, n])


@pytest.mark.parametrize("frames", [1, 33])
def test_lower_skirts(dtype, frames):
    s = Excitation("reference").to(dtype)
    kept = select_components(intensities(dtype, 2, frames))
    level = 10 * torch.log10(kept + 1e-3) + 6 + 40 * noise(960, dtype=dtype).abs()
    same(lower_skirts, kept, level, s.filters(), rtol=2)


GROUPED = [(1, "exact", 0), (17, "exact", 80), (17, "coarse", 0), (1, "coarse", 80)]
"""Any two of these together; in `make soak` all three, and a level between."""


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    ("frames", "accuracy", "db"),
    [
        pytest.param(*one, marks=[] if one in GROUPED else [pytest.mark.soak])
        for one in product((1, 17), ("exact", "coarse"), (0, 40, 80))
    ],
)
def test_group_skirts(dtype, frames, accuracy, db):
    """Up to levels at which some groups have the flattest slope, some not, and some are silent."""
    s = Excitation(accuracy).to(dtype)
    kept = select_components(10 ** (db / 10) * intensities(dtype, 2, 2, frames))
    density = banded(kept, s.levels, s.levels_blocks, s.nodes)
    same(group_skirts, kept, density, s.groups(), rtol=2)
    quiet = 1e-3 * kept
    same(
        group_skirts,
        quiet,
        banded(quiet, s.levels, s.levels_blocks, s.nodes),
        s.groups(),
        3.0,
        rtol=2,
    )


def test_specific_loudness(dtype):
    stage = BinauralLoudness().to(dtype)
    e = torch.logspace(-8, 14, 45, dtype=dtype)[:, None].repeat(1, 150)
    e[0] = 0
    fast = specific_loudness(e, stage.tables())
    plain = specific_loudness(e.clone().requires_grad_(), stage.tables())
    assert torch.all(fast[0] == 0)
    assert torch.all((fast - plain).abs() <= 10 * CLOSE[dtype] * plain)


def test_agc(dtype):
    x = noise(2, 2, 40, 150, dtype=dtype).abs()
    x[0, 0, 5] = 0
    same(agc, x, torch.tensor([0.045, 0.033], dtype=dtype), noise(2, 2, 150, dtype=dtype).abs())


def test_gradients_of_agc(dtype, monkeypatch):
    """The compiled backward pass against torch's own through the plain form."""
    x, zi = noise(2, 2, 33, 7, dtype=dtype), noise(2, 2, 7, dtype=dtype, seed=1)
    arguments = (x, torch.tensor([0.3, 0.1], dtype=dtype), zi)

    def results():
        given = [t.clone().requires_grad_() for t in arguments]
        y, zf = agc(*given)
        weights = torch.linspace(-1, 2, y.numel(), dtype=dtype).view_as(y)
        total = (y * weights).sum() + zf.square().sum()
        return y, zf, *torch.autograd.grad(total, given)

    fast = results()
    monkeypatch.setattr(loudness, "compilable", lambda *tensors: False)
    for a, b in zip(fast, results(), strict=True):
        assert (a - b).abs().amax() <= CLOSE[dtype] * b.abs().amax()


def test_inhibition_gains(dtype):
    x = noise(2, 2, 7, 150, dtype=dtype).abs()
    x[0, 1] = 0
    x[1, :, 3] = 0
    same(inhibition_gains, x + 1e-13, torch.tensor(1.5978, dtype=dtype))


@pytest.mark.parametrize("frames", [1, 10])
def test_binaural_loudness(dtype, frames):
    s = BinauralLoudness().to(dtype)
    e = noise(3, 2, frames, 150, dtype=dtype).square() * 1e5
    before = torch.tensor([0, 1, 30])
    zi = noise(3, 2, 150, dtype=dtype).abs(), noise(3, 2, dtype=dtype).abs()
    more = (s.smoothing, s.theta, 0.25, s.short_term, s.long_term, before, zi)
    same(binaural_loudness, e, s.tables(), *more, rtol=2)


@pytest.mark.parametrize("frames", [1, 10])
@pytest.mark.parametrize("ears", [1, 2])
def test_monaural_loudness(dtype, frames, ears):
    s = MonauralLoudness().to(dtype)
    e = noise(3, ears, frames, 150, dtype=dtype).square() * 1e5
    before = torch.tensor([0, 1, 30])
    zi = noise(3, 2, dtype=torch.float64).abs(), noise(3, 2, dtype=torch.float64).abs()
    channels = Channels(*s.registered(*Channels._fields))
    y = monaural_loudness(e, channels, 0.25, s.short_term, s.long_term, before, zi)
    assert y[0][0].shape == (3, 2, frames)
    same(monaural_loudness, e, channels, 0.25, s.short_term, s.long_term, before, zi, rtol=2)


def test_not_a_number_is_passed_on(dtype):
    """No guard, but no swallowing either: what is not finite shows."""
    x = noise(1, 8, dtype=dtype)
    x[0, 3] = torch.nan
    y, _ = fir(x, torch.ones(2, dtype=dtype), torch.zeros(1, 1, dtype=dtype))
    assert y.isnan().sum() == 2
