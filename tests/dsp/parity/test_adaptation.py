"""Adaptation loops against golden files and settled and first outputs calculated apart."""

import numpy as np
import pytest
import torch

from amt_stream import AdaptLoop, Stream, check_stage
from amt_stream.dsp.data import table
from tests.dsp.parity.golden import close, golden

FS = 16000
SETTLED = {0: 0, 20: 17.230, 40: 35.745, 60: 55.642, 80: 77.024, 100: 100.0}
"""Output in model units of a constant level in dB SPL."""


def sound(*shape, seed=5):
    """Amplitudes from below the smallest input to 100 dB SPL."""
    generator = torch.Generator().manual_seed(seed)
    return 10 ** (6 * torch.rand(*shape, generator=generator, dtype=torch.float64) - 6)


# The files hold float32 coefficients: an exact loop differs by 1.02e-5 of the peak.
@pytest.mark.parametrize("kind", ["dau1997", "osses2021", "nolimit", "paulick2024"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_golden(kind, dtype):
    stage, given, expected, par = golden(f"adaptloop_{kind}", dtype=dtype)
    close(stage(given["x"]), expected["y"], 2e-5)
    close(stage.a1, par["a1"].to(dtype))
    if kind == "paulick2024":
        close(stage.minlvl_per_channel, par["minlvl"].to(dtype))
    else:
        close(stage.minlvl, par["minlvl"].to(dtype))
        close(stage.init_state, par["init_state"].to(dtype))


def constant(level, seconds=8.0):
    size = 10 ** ((level - 100) / 20)
    return torch.full((1, int(FS * seconds)), size, dtype=torch.float64)


@pytest.mark.parametrize(("level", "settled"), list(SETTLED.items()))
def test_settled_output(level, settled):
    stage = AdaptLoop(FS, dtype=torch.float64)
    y = stage(constant(level))[0, -1].item()
    assert y == pytest.approx(settled, rel=1e-4, abs=1e-4)
    root = 10 ** ((level - 100) / 20 / 32)
    assert y == pytest.approx(((root - stage.corr) * stage.mult).item(), abs=1e-9)


@pytest.mark.parametrize(
    ("limit", "level", "first"), [(10, 20, 1280.33), (10, 60, 1443.98), (5, 60, 614.47)]
)
def test_onset(limit, level, first):
    y = AdaptLoop(FS, limit=limit, dtype=torch.float64)(constant(level, 0.01))
    assert y[0, 0].item() == pytest.approx(first, rel=1e-4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("fs", [8000, 44100, 48000])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"preset": "osses2021"},
        {"limit": 0, "minspl": 5.0},
        {"preset": "paulick2024", "per_channel_init": True},
    ],
)
def test_silence_gives_exactly_0(dtype, fs, options):
    live = Stream(AdaptLoop(fs, dtype=dtype, **options), (50,))
    before = {key: value.clone() for key, value in live.state.items()}
    assert not live(torch.zeros(50, 1000)).any()
    # Where the state does not move, an hour of silence is this block over and over.
    assert all(torch.equal(value, before[key]) for key, value in live.state.items())


def test_presets():
    dau, osses = AdaptLoop(FS, preset="dau1997"), AdaptLoop(FS, preset="osses2021")
    assert (dau.limit.item(), osses.limit.item(), dau.num_loops) == (10, 5, 5)
    assert dau.b0.tolist() == pytest.approx((1 - dau.a1).tolist(), abs=1e-7)
    assert dau.corr.item() == pytest.approx(dau.init_state[-1].item(), rel=1e-6)
    assert dau.mult.item() == pytest.approx(100 / (1 - 1e-5 ** (1 / 32)), rel=1e-6)
    assert dau.minlvl_per_channel is None
    paulick = AdaptLoop(FS, preset="paulick2024")
    assert paulick.use_freq_specific_minlvl
    assert paulick.minlvl_per_channel.shape == (50,)
    own = AdaptLoop(FS, preset="paulick2024", tau=[0.1, 0.2], minlvl_per_channel=[1e-4])
    assert (own.num_loops, own.limit.item(), own.minlvl_per_channel.shape) == (2, 10, (1,))


@pytest.mark.parametrize("preset", ["dau1997", "osses2021", "paulick2024"])
def test_what_is_given_beside_a_preset_stands(preset):
    """A default given is given too."""
    own = AdaptLoop(FS, preset=preset, limit=10, minspl=0.0, tau=[0.1])
    assert (own.limit.item(), own.num_loops, own.minlvl_per_channel) == (10, 1, None)
    assert own.minlvl.item() == pytest.approx(1e-5, rel=1e-6)
    assert AdaptLoop(FS, preset=preset, limit=20.0).limit.item() == 20


@pytest.mark.parametrize("per_channel", [False, True])
def test_where_channels_begin(per_channel):
    stage = AdaptLoop(FS, preset="paulick2024", per_channel_init=per_channel, dtype=torch.float64)
    floor = 1e-6 * table("paulick2024_minlevel")["min_1e-6"]
    start = floor if per_channel else np.full(50, floor[0])
    state = stage.initial_state((3, 50))["loops"][1, :, :, 0].numpy()
    halvings = 0.5 ** np.arange(1, 6)
    np.testing.assert_allclose(state, start[:, None] ** halvings, rtol=1e-12)
    # As documented, the others drift from the rest of channel 0 to their own.
    silent = stage(torch.zeros(50, 10, dtype=torch.float64))
    assert bool(silent[1:].any()) is not per_channel
    assert not silent[0].any()


def test_each_channel_with_its_own_floor_is_as_alone():
    levels = torch.tensor([0.0, 5.0, 11.0])
    x = sound(2, 3, 200)
    y = AdaptLoop(FS, minspl=levels, per_channel_init=True, dtype=torch.float64)(x)
    for i, level in enumerate(levels.tolist()):
        alone = AdaptLoop(FS, minspl=level, dtype=torch.float64)(x[:, i])
        torch.testing.assert_close(y[:, i], alone, rtol=1e-6, atol=1e-6)  # levels are float32


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"preset": "dau1996"}, "preset is 'dau1996': give one of dau1997, osses2021, paulick2024"),
        ({"tau": [0.1, 0.0]}, "give one time constant above 0 s or more"),
        ({"tau": 0.1}, "give one time constant above 0 s or more"),
        ({"minspl": 100.0}, "above 0 and below 1"),
        ({"minlvl_per_channel": [1e-5, 0.0]}, "above 0 and below 1"),
        ({"limit": 1.5}, r"leaves no room for onsets: give more than 1\.949, or 0 for no limit"),
    ],
)
def test_what_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        AdaptLoop(FS, **options)


def test_another_number_of_channels_is_refused():
    stage = AdaptLoop(FS, preset="paulick2024")
    for shape in ((3, 49), ()):
        with pytest.raises(ValueError, match="give exactly that many channels"):
            Stream(stage, shape)


OPTIONS = [
    {},
    {"limit": 0.0},
    {"preset": "osses2021", "tau": [0.02, 0.3]},
    {"minlvl_per_channel": [1e-5, 1e-4, 5e-5]},
    {"minlvl_per_channel": [1e-5, 1e-4, 5e-5], "per_channel_init": True},
]


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("learnable", [False, True])
def test_contract(options, learnable):
    check_stage(lambda: AdaptLoop(FS, learnable=learnable, **options), sound(2, 3, 64))


@pytest.mark.parametrize("options", OPTIONS)
def test_gradients(options):
    stage = AdaptLoop(FS, learnable=True, dtype=torch.float64, **options)
    names, weights = zip(*stage.named_parameters(), strict=True)

    def run(level, *given):
        y = torch.func.functional_call(stage, dict(zip(names, given, strict=True)), (10**level,))
        return y / 100

    level = sound(2, 3, 7).log10().requires_grad_()
    weights = [weight.detach().clone().requires_grad_() for weight in weights]
    assert torch.autograd.gradcheck(run, (level, *weights))


def test_learning_starts_from_the_same_and_stays_in_range():
    fixed, stage = AdaptLoop(FS), AdaptLoop(FS, learnable=True)
    for name in ("minlvl", "a1", "b0", "limit", "corr", "mult", "init_state"):
        torch.testing.assert_close(getattr(stage, name), getattr(fixed, name), rtol=1e-5, atol=0)
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for weight in stage.parameters():
            weight += 2 * torch.randn(weight.shape, generator=generator)
    assert 0 < stage.minlvl < 1
    assert 0 < stage.b0.min() <= stage.b0.max() < 1
    assert stage(sound(2, 3, 200).float()).isfinite().all()


@pytest.mark.parametrize("level", [20, 60, 95])
def test_float32_settles_where_float64_does(level):
    """Steps of 4e-5 of the way to a steady output, which float32 alone would lose."""
    x = torch.full((1, 4 * 48000), 10 ** ((level - 100) / 20))
    exact = AdaptLoop(48000, limit=5, dtype=torch.float64)(x.double())
    off = (AdaptLoop(48000, limit=5)(x) - exact).abs().amax() / exact.abs().amax()
    assert 20 * off.log10() <= -110


@pytest.mark.parametrize("preset", ["dau1997", "osses2021", "paulick2024"])
def test_float32_is_as_good_as_float64(preset):
    """A second of noise that comes and goes; -90 dB of each channel's peak."""
    fs = 48000
    x = (sound(50, 60).repeat_interleave(800, -1) * sound(50, fs, seed=6) ** 0.1).float()
    exact = AdaptLoop(fs, preset=preset, dtype=torch.float64)(x.double())
    off = (AdaptLoop(fs, preset=preset)(x) - exact).abs().amax(-1) / exact.abs().amax(-1)
    assert 20 * off.max().log10() <= -90


def test_a_row_is_the_same_alone():
    x = sound(5, 33, 300).float()
    stage = AdaptLoop(FS)
    y = stage(x)
    assert torch.equal(y[3], stage(x[3]))
    torch.testing.assert_close(y[3, 30:], stage(x[3, 30:]), rtol=1e-5, atol=1e-3)
    x[0, 0, 10] = float("nan")
    y = stage(x)
    assert y[0, 0, 10:].isnan().all()
    assert y[0, 1:].isfinite().all()
    x[1, 2, 20:22] = float("inf")
    assert stage(x)[1, 2].isfinite().all()
