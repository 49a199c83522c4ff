"""The gammatone filterbank against its closed form, published figures and the documented class."""

import math

import numpy as np
import pytest
import torch

from amt_stream import Chain, GammatoneFilterbank, Stream, audfiltbw, check_stage
from amt_stream.dsp.functional.compiler.dispatch import compiled
from amt_stream.dsp.functional.gammatone import gammatone, one_poles
from tests.dsp.kernels.forms import plainly
from tests.dsp.noise import noise
from tests.dsp.parity.golden import close, golden

CENTERS = [80.0, 250.0, 1000.0, 4000.0, 8000.0]
LEARNERS = pytest.mark.parametrize("learnable", [False, True])


@pytest.mark.parametrize("name", ["gammatone_list", "gammatone_tuple"])
def test_documented_numbers(name):
    """Within 2e-4 of the peak: the files cut the response of each one-pole filter at e^-10."""
    stage, given, expected, par = golden(name)
    close(stage(given["x"]), expected["y"], 2e-4)
    close(stage.fc, par["fc"], 1e-6)
    assert stage.betamul.item() == pytest.approx(par["betamul"].item(), rel=1e-6)


def closed_form(n, fs, samples):
    """Impulse responses (band, time): 2 (1 - |p|)^n C(t + n - 1, n - 1) Re p^t."""
    fc = np.array(CENTERS)[:, None]
    beta = math.factorial(n - 1) ** 2 * 2 ** (2 * n - 2) / math.pi / math.factorial(2 * n - 2)
    decay = 2 * np.pi * beta * audfiltbw(fc) / fs
    t = np.arange(samples)
    ways = np.prod([np.ones(samples), *((t + k) / k for k in range(1, n))], 0)
    return (
        2 * (1 - np.exp(-decay)) ** n * ways * np.exp(-decay * t) * np.cos(2 * np.pi * fc * t / fs)
    )


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-5)])
@pytest.mark.parametrize("n", [1, 2, 4, pytest.param(6, marks=pytest.mark.soak)])
@pytest.mark.parametrize("fs", [44100, 48000])
def test_impulse_response(fs, n, dtype, tolerance):
    click = torch.zeros(4800, dtype=dtype)
    click[0] = 1
    got = GammatoneFilterbank(CENTERS, fs, n, dtype=dtype)(click).double().numpy()
    expected = closed_form(n, fs, 4800)
    assert (np.abs(got - expected).max(-1) <= tolerance * np.abs(expected).max(-1)).all()


@pytest.mark.parametrize("fs", [44100, 48000])
def test_gain_phase_and_delay_at_the_centers(fs):
    """Figures of Hohmann's all-pole filter: gain 1 and phase 0 at fc, but for the mirror image."""
    stage = GammatoneFilterbank(CENTERS, fs, dtype=torch.float64)
    click = torch.zeros(fs, dtype=torch.float64)
    click[0] = 1
    h, t = stage(click).numpy(), np.arange(fs)
    turn = np.exp(-2j * np.pi * np.array(CENTERS)[:, None] * t / fs)
    response = (h * turn).sum(-1)
    gain_db = 20 * np.log10(np.abs(response))
    assert np.abs(gain_db[0]) < 0.011
    assert (np.abs(gain_db[1:]) < 0.001).all()
    assert (np.abs(np.degrees(np.angle(response))) < 0.1).all()
    delay = ((t * h * turn).sum(-1) / response).real / fs
    assert stage.group_delay.numpy() == pytest.approx(delay, rel=2e-3)
    published = [18.7e-3, 12.05e-3, 4.67e-3, 1.33e-3, 0.66e-3]
    assert stage.group_delay.tolist() == pytest.approx(published, rel=5e-3)


def test_equivalent_rectangular_bandwidths():
    stage = GammatoneFilterbank(CENTERS, 48000, dtype=torch.float64)
    click = torch.zeros(48000, dtype=torch.float64)
    click[0] = 1
    bandwidths = 24000 * stage(click).square().sum(-1)  # Parseval; the gain at fc is 1
    assert bandwidths.tolist() == pytest.approx([33.24, 51.67, 132.63, 456.6, 889.0], rel=3e-3)


@pytest.mark.parametrize(
    ("n", "factor"), [(2, 0.63662), (3, 0.84883), (4, 1.0185916)], ids=["2", "3", "4"]
)
def test_bandwidth_of_an_order(n, factor):
    assert GammatoneFilterbank([1000.0], 48000, n).betamul.item() == pytest.approx(factor, rel=1e-5)


def test_centers_over_a_range_or_as_given():
    over = GammatoneFilterbank((80, 8000), 48000)
    assert over.num_channels == 31
    assert over.fc[:3].tolist() == pytest.approx([80.0, 115.71, 155.55], abs=0.01)
    assert over.fc[-1].item() == pytest.approx(8000)
    for given in (CENTERS, torch.tensor(CENTERS), np.array(CENTERS)):
        assert GammatoneFilterbank(given, 48000).fc.tolist() == pytest.approx(CENTERS)


@pytest.mark.parametrize("shape", [(60,), (2, 60), (2, 3, 60)])
def test_shapes_and_dtypes(shape):
    stage = GammatoneFilterbank(CENTERS, 48000)
    y = stage(noise(*shape))
    assert y.shape == (*shape[:-1], 5, 60)
    assert y.dtype == torch.float32
    assert stage.poles.shape == stage.gains.shape == (5,)
    assert stage.poles.is_complex()
    assert stage.gains.is_complex()


def test_single_precision():
    """-100 dB of each band's peak or less."""
    x = noise(48000)
    for fs in (44100, 48000):
        exact = GammatoneFilterbank((50, 16000), fs, dtype=torch.float64)(x)
        single = GammatoneFilterbank((50, 16000), fs)(x)
        assert ((single - exact).abs().amax(-1) <= 1e-5 * exact.abs().amax(-1)).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("own", [False, True], ids=["shared", "own"])
@pytest.mark.parametrize(("channels", "order", "time"), [(1, 1, 1), (31, 2, 47), (33, 4, 200)])
def test_compiled_form_is_the_plain_one(dtype, own, channels, order, time):
    fc = torch.linspace(100, 9000, channels, dtype=torch.float64)
    coefficients = one_poles(fc, audfiltbw(fc), 44100).to(dtype)
    x = noise(2, 3, channels if own else 1, time, dtype=dtype)
    zi = noise(2, 3, 2, order, channels, dtype=dtype, seed=1)
    given = x, coefficients, 2.0, zi
    assert compiled(x, coefficients, zi)
    for fast, plain in zip(gammatone(*given), plainly(gammatone, *given), strict=True):
        assert fast.shape == plain.shape
        tolerance = 1e-5 if dtype == torch.float32 else 1e-13
        assert (fast - plain).abs().amax() <= tolerance * plain.abs().amax()


@LEARNERS
@pytest.mark.parametrize("n", [1, 4])
def test_contract(learnable, n):
    check_stage(lambda: GammatoneFilterbank(CENTERS, 48000, n, learnable=learnable), noise(2, 97))


def test_blocks_of_a_stream_in_single_precision():
    stage, x = GammatoneFilterbank((80, 8000), 48000), noise(4096, dtype=torch.float32)
    live = Stream(stage, ())
    whole, at = stage(x), 0
    for size in (1, 7, 64, 480, 3000):
        y = live(x[at : at + size])
        assert (y - whole[:, at : at + size]).abs().amax() <= 1e-6 * whole.abs().amax()
        at += size


def test_what_is_learned():
    fixed = GammatoneFilterbank(CENTERS, 48000, dtype=torch.float64)
    stage = GammatoneFilterbank(CENTERS, 48000, learnable=True, dtype=torch.float64)
    x = noise(300)
    close(stage(x), fixed(x), 1e-12)
    assert [name for name, _ in stage.named_parameters()] == ["log_fc", "log_bandwidth"]
    with torch.no_grad():
        stage.log_bandwidth.sub_(10)
        stage.log_fc.add_(3)
    assert (stage.poles.abs() < 1).all()
    assert stage(x).isfinite().all()


def test_a_chain_with_a_rectifier_streams_and_learns():
    def chain():
        bank = GammatoneFilterbank(CENTERS, 48000, learnable=True)
        return Chain(bank=bank, rectifier=torch.nn.PReLU())

    check_stage(chain, noise(2, 300))
    learner = chain()
    learner(noise(300)).sum().backward()
    assert all(p.grad.ne(0).any() for p in learner.parameters())


def test_gradients():
    fc, bandwidth = torch.tensor([300.0, 2500.0]).double(), torch.tensor([60.0, 400.0]).double()

    def run(x, log_fc, log_bandwidth, zi):
        coefficients = one_poles(log_fc.exp(), log_bandwidth.exp(), 8000)
        return gammatone(x, coefficients, 2.0, zi)

    given = (noise(2, 1, 60), fc.log(), bandwidth.log(), noise(2, 2, 3, 2, seed=1))
    assert torch.autograd.gradcheck(run, [v.requires_grad_() for v in given], fast_mode=True)


def test_not_a_number_is_passed_on():
    x = noise(40)
    x[20] = torch.nan
    y = GammatoneFilterbank(CENTERS, 48000)(x)
    assert y[:, :20].isfinite().all()
    assert y[:, 20:].isnan().all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fc": [100.0, 5000.0]}, "up to fs / 2 = 4000 Hz, or sound of 10000 Hz"),
        ({"fc": [0.0, 500.0]}, "centers above 0"),
        ({"fc": []}, "centers above 0"),
        ({"fc": (500.0, 100.0)}, "a tuple is a range"),
        ({"fc": (100.0, 200.0, 300.0)}, "a tuple is a range"),
        ({"fs": 0}, "a rate above 0 Hz"),
        ({"n": 0}, "an order of 1 or more"),
        ({"betamul": 0.0}, "betamul is 0"),
        ({"implementation": "fft"}, "give sos or poly"),
    ],
)
def test_refusals(options, message):
    with pytest.raises(ValueError, match=message):
        GammatoneFilterbank(**{"fc": [500.0], "fs": 8000, **options})


def test_the_polynomial_form_is_ignored():
    with pytest.warns(UserWarning, match="is ignored"):
        stage = GammatoneFilterbank(CENTERS, 48000, implementation="poly")
    x = noise(100)
    assert stage(x).equal(GammatoneFilterbank(CENTERS, 48000)(x))
