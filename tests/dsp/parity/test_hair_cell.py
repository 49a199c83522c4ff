"""Hair cells against golden files, difference equations and the figures of their circuit."""

import numpy as np
import pytest
import scipy
import torch

from amt_stream import IHCEnvelope, IHCPaulick2024, Stream, check_stage
from tests.dsp.noise import noise
from tests.dsp.parity.golden import close, golden

METHODS = {"dau1996": 1000, "breebaart2001": 2000, "king2019": 1500, "lindemann": 800}
FS = 48000


@pytest.mark.parametrize("method", METHODS)
def test_golden_envelope(method):
    stage, given, expected, par = golden(f"ihc_{method}")
    close(stage(given["x"]), expected["y"])
    for name, values in par.items():
        close(getattr(stage, name), values)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("fs", [44100, FS])
def test_envelope_is_a_rectifier_and_butterworth_low_passes(method, fs):
    x = noise(2, 3, 1001)
    stage = IHCEnvelope(fs, method=method, dtype=torch.float64)
    b, a = scipy.signal.butter(1, METHODS[method], fs=fs)
    expected = x.clamp(min=0).numpy()
    for _ in range(stage.iterations):
        expected = scipy.signal.lfilter(b, a, expected)
    np.testing.assert_allclose(stage(x).numpy(), expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(stage.b.numpy(), b, rtol=1e-12)
    np.testing.assert_allclose(stage.a.numpy(), a, rtol=1e-12)


def test_five_low_passes_are_3_db_down_at_770_hz():
    stage = IHCEnvelope(FS, method="breebaart2001", dtype=torch.float64)
    b, a = stage.b.numpy(), stage.a.numpy()
    _, response = scipy.signal.freqz(b, a, [770.0], fs=FS)
    assert 20 * np.log10(np.abs(response[0]) ** stage.iterations) == pytest.approx(-3.01, abs=0.05)


@pytest.mark.parametrize("method", METHODS)
def test_envelope_in_float32(method):
    x = noise(1, 2, FS)
    exact = IHCEnvelope(FS, method=method, dtype=torch.float64)(x)
    got = IHCEnvelope(FS, method=method)(x.float()).double()
    assert (got - exact).abs().amax() <= 1e-6 * exact.abs().amax()


def test_envelope_arguments():
    stage = IHCEnvelope(16000, cutoff=500.0, order=4, method="king2019")
    assert (stage.cutoff, stage.order, stage.iterations, stage.method) == (500, 1, 1, "king2019")
    with pytest.raises(ValueError, match="method is 'meddis1986': give one of dau1996"):
        IHCEnvelope(16000, method="meddis1986")
    with pytest.raises(ValueError, match="between 0 and fs/2 = 800 Hz, given 1000"):
        IHCEnvelope(1600)


def test_a_learned_low_pass_is_its_difference_equation_and_stays_stable():
    stage = IHCEnvelope(16000, method="breebaart2001", learnable=True)
    assert isinstance(stage.b, torch.nn.Parameter)
    assert IHCEnvelope(16000, learnable=True).a[1].item() == pytest.approx(-0.6681786, rel=1e-6)
    x = noise(2, 400).float()
    close(stage(x), IHCEnvelope(16000, method="breebaart2001")(x), 1e-5)
    with torch.no_grad():
        stage.b.copy_(torch.tensor([0.5, -0.2]))
        stage.a.copy_(torch.tensor([2.0, -1.6]))
    expected = x.clamp(min=0).double().numpy()
    for _ in range(5):
        expected = scipy.signal.lfilter([0.25, -0.1], [1, -0.8], expected)
    close(stage(x), torch.from_numpy(expected).float(), 1e-5)
    for pole in (-30.0, 30.0):
        with torch.no_grad():
            stage.a[1] = pole
        assert stage(x).abs().max() < 1e30


def test_potential_of_a_constant_displacement():
    """Settled potentials from the published circuit, in volts."""
    stage = IHCPaulick2024(44100, dtype=torch.float64)
    meters = torch.tensor([[0.0], [1e-9], [1e-8], [1e-7]], dtype=torch.float64)
    y = stage((meters / stage.scaling_factor).expand(4, 2000))[:, -1]
    assert y.tolist() == pytest.approx([0, 0.8273e-3, 9.5205e-3, 54.166e-3], rel=1e-3)
    assert stage.resting_potential.item() == pytest.approx(-0.0616644310, abs=1e-10)
    assert stage.G_precharge.item() == pytest.approx(3.3514023657e-9, rel=1e-9)


def euler(x, fs):
    """The circuit as published, sample by sample from rest."""
    gain, k, leak = 10 ** (-105 / 20), 1 / (fs * 12.5e-12), 19.8e-9

    def conductance(d):
        up, down = (np.exp(np.minimum((20e-9 - d) / width, 80)) for width in (35e-9, 16e-9))
        return 30e-9 / (1 + up * (1 + down))

    g0 = conductance(0.0)
    rest = (0.09 * g0 - leak * 0.149) / (g0 + 2 * leak)
    v, y = np.full(x.shape[:-1], rest), np.empty(x.shape)
    for t in range(x.shape[-1]):
        g = conductance(gain * x[..., t])
        v = v + k * (-g * (v - 0.09) - leak * (v + 0.071) - leak * (v + 0.078))
        y[..., t] = v - rest
    return y


@pytest.mark.parametrize("size", [1e-6, 0.02, 1.0])
def test_potential_is_that_of_euler_steps(size):
    x = size * noise(2, 3, 600)
    expected = euler(x.numpy(), 44100)
    peak = np.abs(expected).max()
    y = IHCPaulick2024(44100, dtype=torch.float64)(x).numpy()
    # The published form subtracts the resting potential, 0.06 V, from one as large.
    np.testing.assert_allclose(y, expected, rtol=0, atol=1e-12 * peak + 1e-16)
    single = IHCPaulick2024(44100)(x.float()).double().numpy()
    np.testing.assert_allclose(single, y, rtol=0, atol=2e-6 * np.abs(y).max())


def test_exponential_steps_are_right_at_low_rates():
    """At 16 kHz and 96 kHz alike for an input that both rates hold for as long."""
    slow = 0.02 * noise(2, 100)
    fine = IHCPaulick2024(96000, dtype=torch.float64, integrator="exponential")
    coarse = IHCPaulick2024(16000, dtype=torch.float64, integrator="exponential")
    expected = fine(slow.repeat_interleave(6, -1))[:, 5::6]
    np.testing.assert_allclose(coarse(slow), expected, rtol=1e-9, atol=1e-15)
    assert (IHCPaulick2024(16000, dtype=torch.float64)(slow) - expected).abs().max() > 1e-4


def test_potential_arguments():
    stage = IHCPaulick2024(44100)
    assert stage.V_rest.item() == pytest.approx(-57.03e-3)
    assert stage.precharge_duration == 0.05
    assert (stage.s0.item(), stage.s1.item()) == pytest.approx((16e-9, 35e-9))
    assert stage.Cm.dim() == 0
    with pytest.raises(ValueError, match="integrator is 'rk4': give euler or exponential"):
        IHCPaulick2024(44100, integrator="rk4")
    with pytest.raises(ValueError, match="give 5568 Hz or more, or integrator='exponential'"):
        IHCPaulick2024(4000)


def test_what_is_learned_of_the_cell_keeps_its_sign_and_it_stays_stable():
    stage = IHCPaulick2024(16000, learnable=True)
    for name in ("scaling_factor", "Gmet_max", "Cm", "Gkf", "EP", "Ekf"):
        assert getattr(stage, name).item() == getattr(IHCPaulick2024(16000), name).item()
    with torch.no_grad():
        stage.log_ratios -= 8 * torch.rand(11, generator=torch.Generator().manual_seed(1))
    assert stage.Ekf < 0 < stage.Cm
    assert stage(noise(2, 400).float()).abs().max() < 1


MAKERS = [
    *(lambda method=method, **o: IHCEnvelope(16000, method=method, **o) for method in METHODS),
    lambda **o: IHCPaulick2024(16000, **o),
    lambda **o: IHCPaulick2024(16000, integrator="exponential", **o),
]


@pytest.mark.cases(2)
@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("learnable", [False, True])
def test_contract(make, learnable):
    check_stage(lambda: make(learnable=learnable), 0.1 * noise(2, 3, 77))


@pytest.mark.parametrize("make", MAKERS)
def test_gradients(make):
    stage = make(learnable=True, dtype=torch.float64)
    names, weights = zip(*stage.named_parameters(), strict=True)

    def run(x, *given):
        return 1e3 * torch.func.functional_call(stage, dict(zip(names, given, strict=True)), (x,))

    x = noise(2, 9).requires_grad_()
    weights = [weight.detach().clone().requires_grad_() for weight in weights]
    assert torch.autograd.gradcheck(run, (x, *weights))


@pytest.mark.parametrize("make", MAKERS)
def test_silence_stays_silent_and_sound_dies_away(make):
    stage = make()
    assert not stage(torch.zeros(2, 3, 5000)).any()
    live = Stream(stage, (2, 3))
    live(noise(2, 3, 100).float())
    for _ in range(4):
        rest = live(torch.zeros(2, 3, 16000))
    assert rest.abs().max() < 1e-30


@pytest.mark.parametrize("make", MAKERS)
def test_a_row_is_the_same_alone(make):
    x = 0.1 * noise(5, 17, 300).float()
    stage = make()
    assert torch.equal(stage(x)[3], stage(x[3]))
    torch.testing.assert_close(stage(x)[3, 4:6], stage(x[3, 4:6]), rtol=0, atol=1e-9)
    broken = x.clone()
    broken[0, 0, 10] = float("nan")
    y = stage(broken)
    assert y[0, 0, 10:].isnan().all()
    assert y[1:].isfinite().all()
