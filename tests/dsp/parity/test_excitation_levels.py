"""Excitation in decibels: against figures of the published method, and the documented formulas."""

import math

import numpy as np
import pytest
import torch

from amt_stream import (
    Chain,
    EarFilter,
    ERBIntegration,
    Excitation,
    ExcitationPattern,
    Gain,
    Moore2016,
    Moore2016ExcitationPattern,
    Moore2016SpecificLoudness,
    RunningSpectrum,
    SpecificLoudness,
    check_stage,
)
from amt_stream.dsp.scales import P0, erb, erb_number_to_hz, hz_to_erb_number
from amt_stream.dsp.stages.spectrum import component_frequencies
from tests.dsp.noise import noise

FREQUENCY = component_frequencies()


# Levels at the cochlea, excitation in dB at ERB numbers, and 0.25 times the sum of the specific
# loudness of one ear: figures of an independent program for the formulas of the standard.
LINES = [
    (
        {1000.0: 40.0},
        {13: -0.8427, 15.5: 39.7549, 17: 22.8136, 20: -16.4504},
        0.671987,
    ),
    (
        {1000.0: 80.0},
        {13: 39.1573, 15.5: 79.7549, 17: 71.4446, 20: 49.6756},
        10.747826,
    ),
    (
        {1000.0: 60.0, 1100.0: 60.0},
        {13: 19.2608, 15.5: 60.3709, 17: 55.7997, 20: 24.8168},
        3.617192,
    ),
    (
        {200.0: 50.0, 4000.0: 70.0},
        {5: 41.4820, 25: 40.0224, 30: 45.3434},
        6.611414,
    ),
]


@pytest.mark.parametrize(("lines", "expected", "sum_of_loudness"), LINES)
def test_published_pattern_of_lines(lines, expected, sum_of_loudness):
    pattern = Moore2016ExcitationPattern(dtype=torch.float64)
    # Padded with zeros, as a batch of lists of different length is.
    freqs = torch.tensor([[*lines, 0.0, 0.0]], dtype=torch.float64)
    levels = torch.tensor([[*lines.values(), 0.0, 50.0]], dtype=torch.float64)
    e = pattern(freqs=freqs, levels=levels)
    assert e.shape == (1, 150)
    cams = pattern.erb_channels.tolist()
    for cam, level in expected.items():
        assert e[0, cams.index(cam)].item() == pytest.approx(level, abs=1e-4)
    loudness = Moore2016SpecificLoudness(variant="iso532-3").double()(e)
    assert 0.25 * loudness.sum().item() == pytest.approx(sum_of_loudness, rel=1e-5)


def test_documented_attributes_of_the_published_pattern():
    pattern = Moore2016ExcitationPattern()
    assert (pattern.n_channels, pattern.level_dep_factor, pattern.reference_level) == (
        150,
        0.35,
        51,
    )
    assert pattern.min_p_lower == 0.1
    assert pattern.p1000 == pytest.approx(30.2013, abs=1e-4)
    at = [round((cam - 1.75) / 0.25) for cam in (1.75, 5, 10, 15.5, 20, 30, 39)]
    fc = [47.5165, 163.467, 443.653, 987.722, 1747.05, 5576.26, 15083.6]
    p = [6.37935, 15.4615, 24.4821, 30.1315, 32.8153, 35.6518, 36.5606]
    assert pattern.fc_channels[at].tolist() == pytest.approx(fc, rel=1e-5)
    assert pattern.p_channels[at].tolist() == pytest.approx(p, rel=1e-5)
    for wrong in ({"learnable": True}, {"spreading_limit_octaves": 3.0}, {"erb_step": 0.0}):
        with pytest.raises(ValueError, match=f"Moore2016ExcitationPattern: .*{next(iter(wrong))}"):
            Moore2016ExcitationPattern(**wrong)
    with pytest.raises(ValueError, match="give both as"):
        pattern(torch.ones(3), torch.ones(4))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_one_frame_of_a_spectrum_is_a_list_of_components(dtype):
    """What the stage and the call give for the same sound, where no component is left out."""
    x = noise(2, 1, 960).square() * 1e4 + 10
    pattern = Moore2016ExcitationPattern(dtype=dtype)
    streamed, _ = pattern.step(x.to(dtype), {})
    f = torch.tensor(FREQUENCY, dtype=dtype).expand(2, 960)
    called = pattern(f, 10 * torch.log10(x[:, 0]).to(dtype))
    torch.testing.assert_close(streamed[:, 0], called, rtol=0, atol=2e-3)


def test_from_pascal_to_specific_loudness():
    """The chain of the documented classes gives what the meter has on its way."""
    sound = 0.05 * noise(1, 2, 32 * 150)
    chain = Chain(
        ear=EarFilter(),
        spectrum=RunningSpectrum(),
        excitation=Moore2016ExcitationPattern(),
        loudness=Moore2016SpecificLoudness(variant="iso532-3"),
    ).double()
    seen = []
    chain.excitation.register_forward_hook(lambda module, args, y: seen.append(y))
    loudness = chain(sound)
    meter = Moore2016(accuracy="reference", excitation_db=True).double()(sound)
    torch.testing.assert_close(seen[0], meter.excitation_db, rtol=0, atol=1e-9)
    assert loudness.shape == (1, 2, 150, 150)
    assert (chain.in_quantity, chain.out_quantity, chain.fs) == (None, "sone/Cam", 32000)


def test_a_source_for_the_documented_bands():
    """A grid that begins at 50 Hz serves the documented specific loudness."""
    loudness = SpecificLoudness()
    pattern = Moore2016ExcitationPattern(
        erb_lower=hz_to_erb_number(50.0), erb_upper=hz_to_erb_number(15221.2)
    )
    torch.testing.assert_close(pattern.fc_channels, loudness.fc_erb, rtol=1e-5, atol=0)
    chain = Chain(spectrum=RunningSpectrum(), excitation=pattern, loudness=loudness)
    assert chain(torch.zeros(1, 2, 320)).abs().max() == 0
    assert chain(noise(1, 2, 320).float()).max() > 0


def test_published_pattern_keeps_the_contract():
    x = noise(2, 2, 9, 960).square() * torch.logspace(6, 2, 960)
    check_stage(Moore2016ExcitationPattern, x)
    check_stage(lambda: Moore2016ExcitationPattern(5.0, 20.0, 0.5), x)


def test_excitation_on_another_grid_is_that_of_its_channels():
    x = noise(1, 1, 960).square() * 1e4
    all_bands = Excitation("reference").double().step(x, {})[0]
    some = Excitation(cams=1.75 + 0.25 * np.arange(20, 80, 3)).double().step(x, {})[0]
    torch.testing.assert_close(some, all_bands[..., 20:80:3], rtol=1e-9, atol=0)
    with pytest.raises(ValueError, match="leave accuracy exact"):
        Excitation("coarse", cams=[5.0, 6.0])
    with pytest.raises(ValueError, match="cams is"):
        Excitation(cams=[6.0, 5.0])


FFT = np.arange(1025) * 32000 / 2048


def test_levels_of_a_tone_in_a_spectral_density():
    """1 Pa is 93.979 dB SPL in each band whose ERB holds the tone, and nothing elsewhere."""
    stage = ERBIntegration().double()
    psd = torch.zeros(1, 1, 1025, dtype=torch.float64)
    psd[..., 64] = 1 / 15.625
    level = stage(psd=psd, freqs=torch.from_numpy(FFT))[0, 0]
    holds = (stage.fc_erb - 1000).abs() <= stage.get_erb_bandwidths() / 2
    assert level[holds].tolist() == pytest.approx([93.9794] * int(holds.sum()), abs=1e-4)
    assert level[~holds].tolist() == pytest.approx([-26.0206] * int((~holds).sum()), abs=1e-4)
    assert torch.equal(stage(psd), stage(psd, torch.from_numpy(FFT)))
    assert stage.get_erb_frequencies() is stage.fc_erb
    assert stage.n_erb_bands == 150
    assert stage.fc_erb[-1].item() == pytest.approx(15221.2, abs=0.05)
    assert stage.get_erb_bandwidths()[0].item() == pytest.approx(24.673 * (4.368 * 0.05 + 1))


def test_levels_of_bands_bin_by_bin():
    """Against the sum as it is written, in another program of one line."""
    psd = noise(2, 3, 1025).square()
    got = ERBIntegration(f_min=80.0, f_max=8000.0, erb_step=0.5).double()(psd).numpy()
    c = hz_to_erb_number(80.0) + 0.5 * np.arange(62)
    for k, fc in enumerate(erb_number_to_hz(c)):
        inside = [n for n in range(1025) if abs(FFT[n] - fc) <= erb(fc) / 2]
        power = 15.625 * psd.numpy()[..., inside].sum(-1)
        assert got[..., k] == pytest.approx(10 * np.log10(power / 4e-10), abs=1e-9)


def test_a_learnable_band_holds_as_much_of_noise_as_the_rectangle():
    """The Gaussian has the area of the rectangle: white noise gives density times ERB."""
    stage = ERBIntegration(f_min=1000.0, f_max=6000.0, learnable=True).double()
    level = stage(torch.full((1, 1, 1025), 1e-6, dtype=torch.float64))[0, 0]
    expected = 10 * np.log10(1e-6 * stage.get_erb_bandwidths().numpy() / P0**2)
    assert level.tolist() == pytest.approx(expected.tolist(), abs=1e-9)
    assert [name for name, _ in stage.named_parameters()] == [
        "bandwidth_scale",
        "integration_weights",
    ]
    with torch.no_grad():
        stage.bandwidth_scale.fill_(100)
    wide = stage(torch.full((1, 1, 1025), 1e-6, dtype=torch.float64))[0, 0]
    assert wide.tolist() == pytest.approx((level + 10).tolist(), abs=1e-9)


def power_density():
    """A stage whose output is one."""
    stage = Gain(1.0, time_dim=-2)
    stage.out_quantity = "power density"
    return stage


def test_what_bands_refuse():
    with pytest.raises(ValueError, match="not evenly spaced"):
        ERBIntegration(frequency=[100.0, 200.0, 400.0])
    with pytest.raises(ValueError, match="give a frequency for each bin"):
        ERBIntegration()(torch.ones(1, 5), torch.arange(4.0))
    with pytest.raises(ValueError, match=r"ExcitationPattern: f_min=50\.0, f_max=10\.0"):
        ExcitationPattern(f_max=10.0)
    with pytest.raises(ValueError, match="takes dB, the stage before it gives power density"):
        Chain(a=power_density(), b=ExcitationPattern())


def test_documented_slopes():
    stage = ExcitationPattern()
    assert stage.get_spreading_slopes(60) == pytest.approx((27, 11))
    assert stage.get_spreading_slopes(80) == pytest.approx((19.6, 10))
    assert stage.get_spreading_slopes(40) == pytest.approx((34.4, 15))
    assert stage.get_spreading_slopes(120) == pytest.approx((10, 10))
    assert (stage.upper_slope_base.item(), stage.lower_slope_base.item(), stage.level_ref) == (
        27,
        11,
        60,
    )


def test_documented_spread_of_one_band():
    stage = ExcitationPattern().double()
    level = torch.full((1, 1, 150), -26.0, dtype=torch.float64)
    level[..., 60] = 80.0
    e = stage(level)[0, 0].tolist()
    assert e[60] == pytest.approx(80)
    for k in range(1, 10):
        assert e[60 + k] == pytest.approx(80 - 19.6 * 0.25 * k, abs=1e-9)
        assert e[60 - k] == pytest.approx(80 - 10 * 0.25 * k, abs=1e-9)
    assert e[71] == pytest.approx(0)  # 53.9 dB down
    assert e[39] == pytest.approx(0)  # 52.5 dB down
    level[..., 64] = 70.0
    both = math.log(1 + math.exp(80 - 19.6) + math.exp(70))
    assert stage(level)[0, 0, 64].item() == pytest.approx(both)


def test_silence_of_the_documented_chain_is_not_silent():
    """As measured of the batch library: 4.26 for no sound at all."""
    chain = Chain(
        power=ERBIntegration(), excitation=ExcitationPattern(), loudness=SpecificLoudness()
    )
    assert chain(torch.zeros(1, 4, 1025)).sum(-1)[0].tolist() == pytest.approx([4.26] * 4, abs=5e-3)


def test_from_pascal_through_the_documented_bands():
    density = Gain(P0**2 / 15.625, time_dim=-2)
    chain = Chain(
        spectrum=RunningSpectrum(calibration_db=4.26),
        density=density,
        bands=ERBIntegration(frequency=FREQUENCY),
        excitation=ExcitationPattern(),
        loudness=SpecificLoudness(),
    ).double()
    t = torch.arange(32 * 120, dtype=torch.float64) / 32000
    tone = 2**0.5 * P0 * 10 ** (60 / 20) * torch.sin(2 * math.pi * 500 * t)
    seen = []
    chain.bands.register_forward_hook(lambda module, args, y: seen.append(y))
    chain(tone[None])
    # The calibration keeps the tone's power, and the window smears some of it out of the band.
    assert 58 < seen[0][0, 100].max().item() < 60


@pytest.mark.parametrize("learnable", [False, True])
def test_documented_stages_keep_the_contract(learnable):
    def bands():
        return ERBIntegration(
            f_min=500.0, f_max=3000.0, frequency=25.0 * np.arange(200), learnable=learnable
        )

    check_stage(bands, noise(2, 12, 200).square())
    x = 40 + 20 * noise(2, 12, 17)
    check_stage(lambda: ExcitationPattern(f_max=200.0, learnable=learnable), x)
