"""The modulation filterbanks against golden files, scipy, and the figures of their publications."""

from math import pi, sqrt

import numpy as np
import pytest
import scipy
import torch

from amt_stream import (
    FastKing2019ModulationFilterbank,
    FastModulationFilterbank,
    King2019ModulationFilterbank,
    ModulationFilterbank,
    Stream,
    check_stage,
)
from amt_stream.dsp.stages.modulation import modulation_centers
from tests.dsp.kernels.forms import compiledly, plainly
from tests.dsp.noise import noise
from tests.dsp.parity.golden import close, golden

CHANNELS = [60.0, 200.0, 1000.0, 5000.0]  # 4, 6, 8 and 8 filters where fc limits them
DAU = [ModulationFilterbank, FastModulationFilterbank]
KING = [King2019ModulationFilterbank, FastKing2019ModulationFilterbank]
FILTER_TYPES = ["efilt", "butterworth"]
DTYPES = [torch.float32, torch.float64]


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-6), (torch.float32, 1e-5)])
@pytest.mark.parametrize("preset", ["dau1997", "jepsen2008"])
def test_golden_one_poles(preset, dtype, tolerance):
    """To the rounding of the files, which are float32."""
    stage, given, expected, par = golden(f"ORACLE_modfb_{preset}_efilt", dtype=dtype)
    outputs = stage(given["x"].to(dtype))
    assert len(outputs) == len(stage.mfc) == stage.num_channels == 4
    for f, y in enumerate(outputs):
        close(y, expected[f"ch{f}"], tolerance)
        close(stage.mfc[f].float(), par[f"mfc{f}"])


@pytest.mark.parametrize("kind", ["default", "nmod"])
def test_golden_king(kind):
    """The files' float64 output; the float32 one is off by what a recursion in float32 loses."""
    for dtype, tolerance in ((torch.float64, 1e-6), (torch.float32, 1e-5)):
        stage, given, expected, par = golden(f"king2019_modfb_{kind}", dtype=dtype)
        close(stage(given["x"].to(dtype)), expected["y64"], tolerance)
        close(stage.mfc.float(), par["mfc"])
    stage, given, expected, _ = golden(f"fastking2019_modfb_{kind}")
    close(stage(given["x"]), expected["y"], 1e-3)


@pytest.mark.parametrize("filter_type", FILTER_TYPES)
@pytest.mark.parametrize("fs", [8000, 44100, 48000])
def test_filters_are_those_of_scipy(fs, filter_type):
    x = noise(1, 6000, seed=1)
    stage = ModulationFilterbank(
        fs, [4000.0], preset="jepsen2008", filter_type=filter_type, dtype=torch.float64
    )
    (got,) = stage(x)
    before = scipy.signal.sosfilt(scipy.signal.butter(1, 150, fs=fs, output="sos"), x[0].numpy())
    expected = [scipy.signal.sosfilt(scipy.signal.butter(2, 2.5, fs=fs, output="sos"), before)]
    for mfc in stage.mfc[0][1:].tolist():
        bandwidth = 5 if mfc < 10 else mfc / 2
        if filter_type == "efilt":
            e0 = np.exp(-pi * bandwidth / fs)
            y = 2 * scipy.signal.lfilter([1 - e0], [1, -e0 * np.exp(2j * pi * mfc / fs)], before)
        else:
            edges = [mfc - bandwidth / 2, mfc + bandwidth / 2]
            y = scipy.signal.sosfilt(
                scipy.signal.butter(2, edges, "band", fs=fs, output="sos"), before
            )
        expected.append(y.real if mfc <= 10 else np.abs(y) / sqrt(2))
    # At 48 kHz the direct forms of scipy are themselves good to a few 1e-9.
    for y, want in zip(got, expected, strict=True):
        close(y, torch.from_numpy(want), 1e-9 if fs == 8000 else 2e-8)


def test_king_filters_are_those_of_scipy():
    x = noise(2, 4000, seed=2)
    stage = King2019ModulationFilterbank(8000, dtype=torch.float64)
    y = stage(x)
    for m, f in enumerate(stage.mfc.tolist()):
        edges = [f * (sqrt(5) - 1) / 2, f * (sqrt(5) + 1) / 2]
        expected = scipy.signal.sosfilt(
            scipy.signal.butter(2, edges, "band", fs=8000, output="sos"), x.numpy()
        )
        close(y[:, m], torch.from_numpy(expected), 1e-9)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("fs", [44100, 48000])
def test_gains_of_the_one_poles(fs, dtype):
    """|2 H| at the center, half a bandwidth above, and at DC; as a real filter where it is one."""
    stage = ModulationFilterbank(fs, [1000.0] * 2, max_mfc=50.0, dtype=dtype)
    t = torch.arange(fs, dtype=torch.float64) / fs
    real = {(5.0, 5.0): 1.085, (10.0, 10.0): 1.023, (5.0, 0.0): 0.400, (10.0, 0.0): 0.118}
    for m, mfc in enumerate(stage.mfc[0].tolist()[1:]):
        bandwidth = 5 if mfc < 10 else mfc / 2
        at_dc = 0.894 if mfc == 5 else 0.485
        for f, gain in ((mfc, 2.0), (mfc + bandwidth / 2, sqrt(2)), (0.0, at_dc)):
            # Both quadratures of a tone: the filters are linear before their magnitude is taken.
            x = torch.stack([torch.cos(2 * pi * f * t), torch.sin(2 * pi * f * t)]).to(dtype)
            y, state = stage.step(x, stage.initial_state((2,)))
            u = 2 * torch.view_as_complex(state["bands"])[:, m]
            assert abs(u[0] + 1j * u[1]).item() == pytest.approx(gain, abs=1e-3)
            if (mfc, f) in real:
                gained = torch.linalg.vector_norm(y[:, m + 1, -1]).item()
                assert gained == pytest.approx(real[mfc, f], abs=1e-3)


def gains(stage, frequencies, seconds):
    """Gain (filter,) of each filter at one frequency of its own, from its impulse response."""
    x = torch.zeros(1, int(seconds * stage.fs), dtype=stage.dtype)
    x[0, 0] = 1
    y = stage.whole(x)[0].double()
    n = torch.arange(x.shape[1], dtype=torch.float64)
    turns = torch.outer(torch.as_tensor(frequencies), 2 * pi / stage.fs * n)
    return torch.hypot((y * torch.cos(turns)).sum(-1), (y * torch.sin(turns)).sum(-1)).tolist()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("fs", [44100, 48000])
def test_gains_of_the_band_passes(fs, dtype):
    """1 at the center (of log frequency), 1 / sqrt(2) at the edges, 0 at DC; and the low-pass's."""
    stage = ModulationFilterbank(fs, [1000.0], max_mfc=10.0, filter_type="butterworth", dtype=dtype)
    assert stage.mfc[0].tolist() == [0, 5, 10]
    assert gains(stage, [0.0, sqrt(2.5 * 7.5), sqrt(7.5 * 12.5)], 3) == pytest.approx(
        [1] * 3, abs=1e-3
    )
    assert gains(stage, [2.5, 2.5, 7.5], 3) == pytest.approx([sqrt(0.5)] * 3, abs=1e-3)
    assert gains(stage, [2.5, 7.5, 12.5], 3) == pytest.approx([sqrt(0.5)] * 3, abs=1e-3)
    assert gains(stage, [0.0, 0.0, 0.0], 3) == pytest.approx([1, 0, 0], abs=1e-3)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("fs", [44100, 48000])
def test_king_centers_edges_and_delays(fs, dtype):
    stage = King2019ModulationFilterbank(fs, dtype=dtype)
    centers = stage.mfc.double()
    assert centers.tolist() == pytest.approx([2, 5.236, 13.708, 35.889, 93.957], rel=5e-5)
    low, high = centers * (sqrt(5) - 1) / 2, centers * (sqrt(5) + 1) / 2
    assert gains(stage, centers, 4) == pytest.approx([1] * 5, abs=1e-4)
    assert gains(stage, low, 4) == pytest.approx([0.7071] * 5, abs=1e-4)
    assert gains(stage, high, 4) == pytest.approx([0.7071] * 5, abs=1e-4)
    delays = [0.225, 0.086, 0.033, 0.0125, 0.0048]
    assert stage.group_delay.tolist() == pytest.approx(delays, rel=0.01)


def test_group_delay_is_that_of_a_slow_envelope():
    """What the band at 13.7 Hz does to a burst at its center."""
    stage = King2019ModulationFilterbank(4000, dtype=torch.float64)
    t = torch.arange(12000, dtype=torch.float64) / 4000
    phase = 2 * pi * stage.mfc[2] * (t - 1)
    envelope = torch.exp(-((t - 1) / 0.3).square())
    y = stage(envelope * torch.stack([torch.cos(phase), torch.sin(phase)]))[:, 2]
    power = y.square().sum(0)
    assert ((power * t).sum() / power.sum() - 1).item() == pytest.approx(0.033, rel=0.02)


def test_king_centers_in_number_and_at_the_limits():
    assert King2019ModulationFilterbank(48000, mfhigh=120.0).num_filters == 5
    given = King2019ModulationFilterbank(48000, mflow=4.0, mfhigh=64.0, nmod=5)
    assert given.mfc.tolist() == pytest.approx([4, 8, 16, 32, 64])
    # Up to and including mfhigh, whatever rounding does to it.
    top = 2 * ((sqrt(5) + 1) / (sqrt(5) - 1)) ** 4
    assert King2019ModulationFilterbank(48000, mfhigh=top * (1 - 1e-8)).num_filters == 5
    # An edge above fs/2 comes down to 0.1 Hz below it.
    assert King2019ModulationFilterbank(250).num_filters == 5
    with pytest.raises(ValueError, match="reaches fs/2 = 90 Hz"):
        King2019ModulationFilterbank(180)
    for wrong in ({"mflow": 0.0}, {"mflow": 200.0}, {"qfactor": 0.0}, {"nmod": 0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            King2019ModulationFilterbank(48000, **wrong)


EIGHT = [0, 5, 10, 16.67, 27.78, 46.30, 77.16, 128.60]


@pytest.mark.parametrize(
    ("limit", "count"),
    [(4.9, 1), (5, 2), (9.99, 2), (10, 3), (10.1, 4), (16.6, 4), (25, 4), (62.5, 6), (150, 8)],
)
def test_centers_up_to_a_limit(limit, count):
    """The first exponential center is there from just above 10 Hz, though it passes the limit."""
    assert modulation_centers(limit) == pytest.approx(EIGHT[:count], rel=1e-3)
    assert modulation_centers(12.5 / 0.75 * (5 / 3) ** 3)[-1] == pytest.approx(77.16, rel=1e-3)


def test_mfc_of_each_channel():
    """Never more than 8 filters; 4 at 100 Hz where fc limits them."""
    fc = torch.tensor([18.0, 20.0, 39.9, 40.0, 41.0, 100.0, 250.0, 600.0, 8000.0])
    stage = ModulationFilterbank(48000, fc, preset="jepsen2008")
    assert [len(mfc) for mfc in stage.mfc] == [1, 2, 2, 3, 4, 4, 6, 8, 8]
    assert all(len(mfc) == 8 for mfc in ModulationFilterbank(48000, fc).mfc)
    for mfc in stage.mfc:
        assert mfc[0] == 0
        assert (mfc.diff() > 0).all()
    assert stage.mask.shape == (9, 8)
    assert stage.mask.sum(-1).tolist() == [len(mfc) for mfc in stage.mfc]
    assert stage.fc.tolist() == fc.tolist()


@pytest.mark.parametrize("kind", [list, tuple, torch.tensor])
def test_fc_is_centers_in_any_form(kind):
    assert ModulationFilterbank(48000, kind([100.0, 400.0])).num_channels == 2


def test_presets():
    chosen = {
        preset: ModulationFilterbank(48000, CHANNELS, preset=preset, max_mfc=150.0)
        for preset in ("dau1997", "jepsen2008", "paulick2024")
    }
    for preset, stage in chosen.items():
        later = preset != "dau1997"
        assert stage.preset == preset
        assert stage.lp_cutoff == 2.5
        assert stage.max_mfc == 150
        assert stage.att_factor == (1 / sqrt(2) if later else 1.0)
        assert isinstance(stage.att_factor, float)
        assert stage.use_upper_limit is stage.use_lp150_prefilter is later
    assert ModulationFilterbank(48000, CHANNELS, preset="dau1997", max_mfc=50.0).max_mfc == 50


@pytest.mark.parametrize("preset", ["dau1997", "jepsen2008", "paulick2024"])
def test_what_is_given_beside_a_preset_stands(preset):
    """A default given is given too."""
    for given in (
        {"max_mfc": 150.0, "lp_cutoff": 2.5, "att_factor": 1.0, "use_upper_limit": False},
        {"max_mfc": 100.0, "lp_cutoff": 3.0, "att_factor": 0.5, "use_upper_limit": True},
    ):
        stage = ModulationFilterbank(48000, CHANNELS, preset=preset, **given)
        assert {name: getattr(stage, name) for name in given} == given
        assert stage.use_lp150_prefilter is (preset != "dau1997")
        for name, value in given.items():
            one = ModulationFilterbank(48000, CHANNELS, preset=preset, **{name: value})
            assert getattr(one, name) == value


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"preset": "dau1998"}, "preset is 'dau1998'"),
        ({"filter_type": "fir"}, "filter_type is 'fir'"),
        ({"filter_type": "butterworth", "fs": 320}, "band at 128.601 Hz reaches fs/2 = 160 Hz"),
        ({"fs": 250}, "band at 128.601 Hz reaches fs/2 = 125 Hz"),
        ({"fs": 0}, "fs is 0"),
        ({"fc": []}, "fc has to be"),
        ({"fc": [100.0, -1.0]}, "fc has to be"),
        ({"Q": 0.5}, "Q is 0.5"),
        ({"max_mfc": 0.0}, "max_mfc is 0"),
        ({"lp_cutoff": 0.0}, "lp_cutoff is 0"),
    ],
)
def test_what_is_refused(arguments, words):
    with pytest.raises(ValueError, match=words):
        ModulationFilterbank(**{"fs": 8000, "fc": CHANNELS, **arguments})


def test_another_number_of_channels_is_refused():
    with pytest.raises(ValueError, match="takes 4 on axis -2, given 3 in shape"):
        ModulationFilterbank(8000, CHANNELS)(noise(2, 3, 40))
    with pytest.raises(ValueError, match="takes 4 on axis -2, given none in shape"):
        ModulationFilterbank(8000, CHANNELS)(noise(40))


@pytest.mark.parametrize("filter_type", FILTER_TYPES)
@pytest.mark.parametrize("fs", [8000, 16000, 44100, 48000])
def test_fast_is_exact(fs, filter_type):
    x = noise(2, 4, 600, dtype=torch.float32)
    slow, fast = (cls(fs, CHANNELS, preset="jepsen2008", filter_type=filter_type) for cls in DAU)
    for a, b in zip(slow(x), fast(x), strict=True):
        close(b, a, 1e-6)
    slow, fast = (cls(fs) for cls in KING)
    close(fast(x), slow(x), 1e-6)


def test_arguments_of_the_fast_classes_change_no_number():
    x = noise(4, 200, dtype=torch.float32)
    merged = FastModulationFilterbank(8000, CHANNELS, tolerance=0)
    assert merged.tolerance == 0
    assert merged.distribute_gradients() is None
    for a, b in zip(merged(x), ModulationFilterbank(8000, CHANNELS)(x), strict=True):
        assert torch.equal(a, b)
    with pytest.warns(UserWarning, match=r"ir_length_ratio=0\.5 has no effect"):
        cut = FastKing2019ModulationFilterbank(8000, ir_length_ratio=0.5)
    assert cut.ir_length_ratio == 0.5
    assert torch.equal(cut(x), King2019ModulationFilterbank(8000)(x))
    with pytest.raises(ValueError, match=r"ir_length_ratio is 1\.5"):
        FastKing2019ModulationFilterbank(8000, ir_length_ratio=1.5)


@pytest.mark.parametrize("cls", [*DAU, *KING])
@pytest.mark.parametrize("learnable", [False, True])
def test_documented_interface(cls, learnable):
    arguments = {"fs": 8000, **({"fc": CHANNELS} if cls in DAU else {})}
    stage = cls(**arguments, learnable=learnable)
    assert stage.extra_repr()
    assert stage.learnable is learnable
    parameters = dict(stage.named_parameters())
    expected = {"log_center", "log_bandwidth", *(["att_factor"] if cls in DAU else [])}
    assert set(parameters) == (expected if learnable else set())
    assert all(p.requires_grad for p in parameters.values())
    batch, single = stage(noise(3, 4, 50)), stage(noise(3, 4, 50)[1])
    if cls in DAU:
        assert [tuple(y.shape) for y in single] == [(8, 50)] * 4
        assert [tuple(y.shape) for y in batch] == [(3, 8, 50)] * 4
        assert isinstance(stage.att_factor, torch.nn.Parameter if learnable else float)
        assert stage.att_factor == 1
        batch, single = torch.stack(batch, 1), torch.stack(single)
    else:
        assert single.shape == (4, 5, 50)
        assert (stage.num_filters, stage.nmod) == (5, None)
    # The output's dtype is that of the input, float64, though the module is float32.
    assert batch.dtype == single.dtype == torch.float64
    close(batch[1], single)


def test_learnable_filters_begin_as_the_others():
    x = noise(4, 300)
    for filter_type in FILTER_TYPES:
        given = {"preset": "jepsen2008", "filter_type": filter_type, "dtype": torch.float64}
        fixed = ModulationFilterbank(8000, CHANNELS, **given)
        learning = ModulationFilterbank(8000, CHANNELS, learnable=True, **given)
        for a, b in zip(fixed(x), learning(x), strict=True):
            close(b, a, 1e-12)


@pytest.mark.parametrize("cls", ["efilt", "butterworth", "king"])
def test_learning_cannot_make_a_filter_unstable(cls):
    for shift in (-40.0, 40.0):
        stage = make(cls, learnable=True)()
        with torch.no_grad():
            for p in (stage.log_center, stage.log_bandwidth):
                p.add_(shift)
            y = stage.whole(noise(2, 4, 2000))
        assert y.isfinite().all()


def make(kind, learnable=False, fast=False):
    """A function that makes an equal new bank at each call."""
    if kind == "king":
        return lambda: KING[fast](4000, learnable=learnable)
    arguments = {"filter_type": kind, "preset": "jepsen2008", "learnable": learnable}
    return lambda: DAU[fast](4000, CHANNELS, **arguments)


@pytest.mark.cases(2)
@pytest.mark.parametrize("learnable", [False, True])
@pytest.mark.parametrize("kind", [*FILTER_TYPES, "king"])
@pytest.mark.parametrize("fast", [False, True])
def test_contract(kind, learnable, fast):
    check_stage(make(kind, learnable, fast), noise(2, 4, 97, seed=5))


def test_contract_of_low_passes_alone():
    check_stage(
        lambda: ModulationFilterbank(4000, [12.0], use_upper_limit=True), noise(2, 1, 60, seed=5)
    )


@pytest.mark.soak
@pytest.mark.parametrize("kind", [*FILTER_TYPES, "king"])
def test_gradients_of_what_is_learned(kind):
    """Each number of the Jacobian; `test_module_contract.py` has it along a random direction."""
    stage = make(kind, learnable=True)().double()
    x = noise(4, 7, seed=6)
    weights = {name: p.detach() for name, p in stage.named_parameters()}

    class Whole(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.stage = stage

        def forward(self):
            return self.stage.whole(x)

    def run(*values):
        given = {f"stage.{name}": v for name, v in zip(weights, values, strict=True)}
        return torch.func.functional_call(Whole(), given, ())

    assert torch.autograd.gradcheck(run, [v.clone().requires_grad_() for v in weights.values()])


def test_filters_that_are_not_there_are_silent_and_keep_no_state():
    stage = ModulationFilterbank(8000, CHANNELS, preset="jepsen2008")
    x = noise(4, 40, dtype=torch.float32)
    x[0, 20] = torch.nan
    y, state = stage.step(x, stage.initial_state((4,)))
    assert y.shape == (4, 8, 40)
    assert torch.equal(y[~stage.mask], torch.zeros(4 + 2, 40))
    assert state["bands"][~stage.mask[:, 1:]].abs().max() == 0
    assert y[0, :4, 20:].isnan().all()
    assert not y[1:].isnan().any()


@pytest.mark.parametrize("form", [compiledly, plainly])
@pytest.mark.parametrize("kind", [*FILTER_TYPES, "king"])
def test_right_in_float32_at_48_khz(kind, form):
    """-90 dB of each filter's peak; the figure asked of the low-pass and King's bands is -70 dB."""
    make32 = {
        "king": lambda: King2019ModulationFilterbank(48000),
        "efilt": lambda: ModulationFilterbank(48000, [1000.0]),
        "butterworth": lambda: ModulationFilterbank(48000, [1000.0], filter_type="butterworth"),
    }[kind]
    x = noise(1, 48000, seed=7, dtype=torch.float32)
    exact = make32().double().whole(x)
    y = form(make32().whole, x)
    error = (y - exact).abs().amax(-1) / exact.abs().amax(-1)
    assert error.max() < 10 ** (-90 / 20)


def test_a_stream_gives_the_padded_tensor():
    x = noise(4, 960, dtype=torch.float32)
    stage = FastModulationFilterbank(48000, CHANNELS, preset="paulick2024")
    live = Stream(stage, (4,))
    y = torch.cat([live(block) for block in x.split(480, -1)], -1)
    assert y.shape == (4, 8, 960)
    for f, want in enumerate(stage(x)):
        close(y[f, : len(want)], want, 1e-6)
