"""The dual-resonance nonlinear filterbank against published constants and levels calculated apart.

`ROWS` and `LEVELS` were calculated in float64 from the formulas of Lopez-Poveda & Meddis (2001),
Jepsen et al. (2008) and Paulick et al. (2024), independently of this code.
"""

import numpy as np
import pytest
import torch

from amt_stream import DRNLFilterbank, FastDRNLFilterbank, audfiltbw, check_stage
from amt_stream.dsp.stages.drnl import ORDERS, VECTORS, broken_stick
from tests.dsp.parity.golden import close

ROWS = {  # at 250, 1000, 4000 and 8000 Hz
    "CF_lin": [234.74, 961.06, 3934.76, 7961.65],
    "BW_lin": [68.507, 193.767, 548.056, 921.717],
    "LP_lin_cutoff": [226.10, 917.02, 3719.29, 7490.33],
    "g": [1135.59, 584.494, 300.842, 215.833],
    "CF_nlin": [242.65, 993.07, 4064.19, 8221.88],
    "BW_nlin": [65.235, 189.701, 551.641, 940.696],
    "a": [2330, 7252, 10110, 10110],
    "b": [0.4529, 0.1456, 0.1045, 0.1045],
    "c": [0.25] * 4,
    "knee": [1.126e-5, 5.456e-7, 2.251e-7, 2.251e-7],
}

LEVELS = {  # rms in m/s of the linear path, the nonlinear one and the sum, for a tone at 1 kHz
    20: (2.785e-6, 7.279e-5, 7.467e-5),
    40: (2.785e-5, 7.279e-4, 7.467e-4),
    60: (2.785e-4, 1.905e-3, 2.100e-3),
    80: (2.785e-3, 3.393e-3, 5.639e-3),
    100: (2.785e-2, 6.033e-3, 3.217e-2),
}

AT_4_KHZ = {40: 7.691e-4, 60: 1.531e-3, 80: 3.929e-3}  # the sum

CENTERS = [250.0, 1000.0, 4000.0, 8000.0]
BANKS = pytest.mark.parametrize("cls", [DRNLFilterbank, FastDRNLFilterbank])
MODELS = pytest.mark.parametrize("model", ORDERS)


def stapes(*shape, level_db=60.0, seed=0):
    """Noise in m/s, about as loud at 1 kHz as a tone of `level_db` dB SPL."""
    x = torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return 8.235e-9 * 10 ** (level_db / 20) * x


def paths(cf, levels_db, fs=44100):
    """Rms of both paths and of their sum, for tones at `cf` of so many dB SPL, once settled."""
    t = torch.arange(fs // 2, dtype=torch.float64) / fs
    amplitude = 8.235e-9 * 10 ** (torch.tensor(levels_db, dtype=torch.float64) / 20)
    x = amplitude[:, None] * torch.sin(2 * torch.pi * cf * t)
    both = DRNLFilterbank([cf], fs)(x)
    linear = DRNLFilterbank([cf], fs, subject="HIx")(x)
    late = slice(fs // 4, None)
    rms = [y[:, 0, late].square().mean(-1).sqrt() for y in (linear, both - linear, both)]
    return torch.stack(rms, -1)


def test_constants():
    bank = DRNLFilterbank(CENTERS, 44100)
    got = {name: getattr(bank, name) for name in VECTORS}
    got["BW_lin"] = bank.BW_lin_norm * audfiltbw(bank.CF_lin)
    got["BW_nlin"] = bank.BW_nlin_norm * audfiltbw(bank.CF_nlin)
    got["knee"] = (bank.b / bank.a) ** (1 / (1 - bank.c))
    for name, row in ROWS.items():
        assert got[name].tolist() == pytest.approx(row, rel=1e-3), name
    assert bank.LP_nlin_cutoff.equal(bank.CF_nlin)


def test_levels():
    assert paths(1000, list(LEVELS)).numpy() == pytest.approx(
        np.array([*LEVELS.values()]), rel=1e-3
    )
    assert paths(4000, list(AT_4_KHZ))[:, 2].tolist() == pytest.approx(
        [*AT_4_KHZ.values()], rel=1e-3
    )


def test_soft_sounds_grow_as_their_level_and_loud_ones_a_quarter_of_it():
    soft, softer, loud, louder = paths(1000, [20, 10, 90, 80])[:, 1].log10().mul(20).tolist()
    assert soft - softer == pytest.approx(10, abs=0.05)
    assert (loud - louder) / 10 == pytest.approx(0.25, abs=1e-3)


def test_an_impaired_ear_is_linear():
    bank, x = DRNLFilterbank(CENTERS, 44100, subject="HIx"), stapes(800)
    close(bank(1000 * x), 1000 * bank(x), 1e-12)
    assert bank.a.eq(0).all()
    assert bank.c.tolist() == pytest.approx([0.25] * 4)
    # The power law goes on to fall above 1 kHz, where normal hearing holds it.
    assert bank.b[-1] < DRNLFilterbank(CENTERS, 44100).b[-1]


def test_orders():
    for model, orders in ORDERS.items():
        bank = DRNLFilterbank(CENTERS, 44100, model=model)
        assert (bank.n_gt_lin, bank.n_lp_lin, bank.n_gt_nlin, bank.n_lp_nlin) == orders
    assert ORDERS == {"paulick2024": (2, 4, 2, 1), "jepsen2008": (3, 4, 3, 3)}


def test_centers():
    bank = DRNLFilterbank((250, 8000), 44100)
    assert bank.num_channels == 50
    assert bank.fc[[0, -1]].tolist() == pytest.approx([250, 8000])
    assert DRNLFilterbank((250, 8000), 44100, n_channels=7).num_channels == 7
    assert DRNLFilterbank(torch.tensor(CENTERS), 44100).fc.tolist() == CENTERS
    # A cutoff above half the rate stops short of it.
    y = DRNLFilterbank([8000.0], 16000)(stapes(500))
    assert y.isfinite().all()


@pytest.mark.cases(2)
@BANKS
@MODELS
@pytest.mark.parametrize("shape", [(50,), (2, 50), (2, 3, 50)])
def test_the_output_is_in_the_dtype_of_the_bank(cls, model, shape):
    y = cls(CENTERS, 44100, model=model)(stapes(*shape).float())
    assert y.shape == (*shape[:-1], 4, 50)
    assert y.dtype == torch.float64
    assert (
        cls(CENTERS, 44100, model=model, dtype=torch.float32)(stapes(*shape)).dtype == torch.float32
    )


@MODELS
@pytest.mark.parametrize("level_db", [0, 100])
def test_single_precision(model, level_db):
    x = stapes(22050, level_db=level_db)
    exact = DRNLFilterbank((250, 8000), 44100, n_channels=12, model=model)(x)
    single = DRNLFilterbank((250, 8000), 44100, n_channels=12, model=model, dtype=torch.float32)(x)
    assert ((single - exact).abs().amax(-1) <= 1e-4 * exact.abs().amax(-1)).all()


def test_the_fast_bank_gives_the_same():
    x = stapes(2, 700)
    fast = FastDRNLFilterbank(CENTERS, 44100, ir_length=64)
    assert fast.ir_length == 64
    assert fast(x).equal(DRNLFilterbank(CENTERS, 44100)(x))


@pytest.mark.cases(2)
@BANKS
@MODELS
@pytest.mark.parametrize("learnable", [False, True])
def test_contract(cls, model, learnable):
    make = lambda: cls(CENTERS[:2], 44100, model=model, learnable=learnable)  # noqa: E731
    check_stage(make, stapes(2, 77))


@BANKS
def test_what_is_learned(cls):
    fixed, bank = cls(CENTERS, 44100), cls(CENTERS, 44100, learnable=True)
    learned = VECTORS if cls is DRNLFilterbank else ("a", "b", "c")
    assert [name for name, _ in bank.named_parameters()] == [f"log_{name}" for name in learned]
    x = stapes(400)
    close(bank(x), fixed(x), 1e-10)
    for name in VECTORS:
        close(getattr(bank, name), getattr(fixed, name), 1e-12)
    # From silence on: the power law has an infinite slope at 0.
    bank(torch.cat([torch.zeros(50), x])).square().sum().mul(1e12).backward()
    assert all(p.grad.isfinite().all() and p.grad.ne(0).any() for p in bank.parameters())


def test_gradients():
    bank = DRNLFilterbank([1000.0], 8000, learnable=True)
    names = [name for name, _ in bank.named_parameters()]

    def run(x, *logs):
        given = dict(zip(names, logs, strict=True))
        return 1e3 * torch.func.functional_call(bank, given, (x * 1e-5,))

    given = [stapes(1, 52).mul(1e5), *(p.detach().clone() for p in bank.parameters())]
    assert torch.autograd.gradcheck(run, [v.requires_grad_() for v in given], fast_mode=True)


def test_broken_stick():
    a, b, c = (torch.tensor(v, dtype=torch.float64) for v in (4.0, 1.0, 0.25))
    x = torch.tensor([-16.0, -0.01, 0.0, 0.01, 16.0], dtype=torch.float64, requires_grad=True)
    y = broken_stick(x, a, b, c)
    assert y.tolist() == pytest.approx([-2, -0.04, 0, 0.04, 2])
    y.sum().backward()
    assert x.grad.tolist() == pytest.approx([1 / 32, 4, 4, 4, 1 / 32])
    assert broken_stick(torch.tensor(torch.nan), a, b, c).isnan()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"subject": "HI1"}, "give NH or HIx"),
        ({"model": "dau1997"}, "give paulick2024 or jepsen2008"),
        ({"fc": [9000.0]}, "up to fs / 2 = 8000 Hz"),
        ({"fc": (500.0, 100.0)}, "a tuple is a range"),
        ({"fc": (100.0, 500.0), "n_channels": 0}, "centers above 0"),
    ],
)
@BANKS
def test_refusals(cls, options, message):
    with pytest.raises(ValueError, match=message):
        cls(**{"fc": [500.0], "fs": 16000, **options})
