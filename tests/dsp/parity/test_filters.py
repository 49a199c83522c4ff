"""Filters by their coefficients against scipy.signal, and their designs."""

import numpy as np
import pytest
import scipy
import torch

from amt_stream import ButterworthFilter, IIRFilter, SOSFilter, check_stage
from tests.dsp.noise import noise

FS = 48000


DESIGNS = [
    (1, 3.0, "high"),
    (1, 150.0, "low"),
    (2, 2.5, "low"),
    (5, 4000.0, "high"),
    (2, (20.0, 40.0), "band"),
    (3, (500.0, 5000.0), "band"),
    (3, (500.0, 15000.0), "bandstop"),
    (4, 1000.0, "low"),
]


@pytest.mark.parametrize(("order", "cutoff", "btype"), DESIGNS)
def test_butterworth_against_scipy(order, cutoff, btype):
    x = noise(3, 2000)
    stage = ButterworthFilter(order, cutoff, FS, btype, dtype=torch.float64)
    sections = scipy.signal.butter(order, cutoff, btype, fs=FS, output="sos")
    expected = scipy.signal.sosfilt(sections, x.numpy())
    peak = np.abs(expected).max()
    np.testing.assert_allclose(stage(x).numpy(), expected, rtol=0, atol=1e-9 * peak)
    # Coefficients and state are float64 in a float32 module too.
    single = stage.to(torch.float32)(x.float()).double().numpy()
    np.testing.assert_allclose(single, expected, rtol=0, atol=3e-7 * peak)


@pytest.mark.parametrize("rows", [1, 5, 17])
def test_sections_against_scipy(rows):
    x = noise(rows, 300)
    sections = scipy.signal.ellip(6, 1, 60, 0.3, output="sos")
    expected = scipy.signal.sosfilt(sections, x.numpy())
    got = SOSFilter(torch.tensor(2 * sections)).double()(x)  # a0 = 2 is divided out
    np.testing.assert_allclose(got.numpy(), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("b", "a"), [([2.0, 1.0], [2.0]), ([1.0], [1, -0.9]), ([0, 1, 2], [1, 0.5])]
)
def test_polynomials_against_scipy(b, a):
    x = noise(2, 3, 200)
    got = IIRFilter(b, a).double()(x)
    np.testing.assert_allclose(
        got.numpy(), scipy.signal.lfilter(b, a, x.numpy()), rtol=0, atol=1e-12
    )
    learnable = IIRFilter(b, a, learnable=True).double()(x)
    torch.testing.assert_close(learnable, got, rtol=0, atol=1e-6)


MAKERS = {
    "sos": lambda **more: SOSFilter([[1, 0.5, 0.2, 1, -0.5, 0.3]] * 2, **more),
    "iir": lambda **more: IIRFilter([1, 0.5, 0.2], [1, -0.5, 0.3], **more),
    "butterworth": lambda **more: ButterworthFilter(2, (50.0, 500.0), 8000, "band", **more),
}


@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("learnable", [False, True])
def test_contract(kind, learnable):
    check_stage(lambda: MAKERS[kind](learnable=learnable), noise(2, 3, 97))


@pytest.mark.parametrize("kind", MAKERS)
def test_no_training_step_makes_it_unstable(kind):
    stage = MAKERS[kind](learnable=True)
    with torch.no_grad():
        for p in stage.parameters():
            p.add_(3 * torch.randn(p.shape, generator=torch.Generator().manual_seed(1)))
    a = stage.a[None] if kind == "iir" else stage.sos[:, 3:]
    for row in a.detach().numpy():
        assert np.abs(np.roots(row)).max(initial=0) < 1


@pytest.mark.parametrize("kind", MAKERS)
def test_gradients(kind):
    stage = MAKERS[kind](learnable=True).double()
    x = noise(2, 12).requires_grad_()
    names = [name for name, _ in stage.named_parameters()]

    def run(x, *weights):
        return torch.func.functional_call(stage, dict(zip(names, weights, strict=True)), (x,))

    weights = [p.detach().clone().requires_grad_() for p in stage.parameters()]
    assert torch.autograd.gradcheck(run, (x, *weights), fast_mode=True)


def test_what_is_no_filter_is_refused():
    with pytest.raises(ValueError, match=r"shape \(sections, 6\), given \(5,\)"):
        SOSFilter([1.0, 0, 0, 1, 0])
    with pytest.raises(ValueError, match="pole on or outside the unit circle"):
        SOSFilter([[1.0, 0, 0, 1, -2.1, 1.1]])
    with pytest.raises(ValueError, match="pole on or outside the unit circle"):
        IIRFilter([1.0], [1.0, -1.0])
    with pytest.raises(ValueError, match=r"a\[0\] is 0"):
        IIRFilter([1.0], [0.0, 1.0])
    with pytest.raises(ValueError, match="btype is 'notch'"):
        ButterworthFilter(2, 100.0, FS, "notch")
    with pytest.raises(ValueError, match="two rising cutoffs between 0"):
        ButterworthFilter(2, 100.0, FS, "band")
    with pytest.raises(ValueError, match="one cutoff between 0"):
        ButterworthFilter(2, 24000.0, FS)
