"""Stages of the loudness model, one by one, against numbers of the published method.

The numbers are independent evaluations of the printed formulas and tables of ISO 532-3:2023
(Tables 1 to 5) and ANSI S3.4-2007.
"""

import numpy as np
import pytest
import scipy
import torch

from amt_stream import EarFilter, Excitation, Resample
from amt_stream.dsp.functional.loudness import SILENT, inhibition_gains, specific_loudness
from amt_stream.dsp.scales import erb, erb_number_to_hz
from amt_stream.dsp.stages import BinauralLoudness
from amt_stream.dsp.stages.ear import ear_gain_db, ear_taps
from amt_stream.dsp.stages.moore.excitation import CAM_STEP
from amt_stream.dsp.stages.moore.specific_loudness import channel_constants


def at(cam):
    """Index of the channel at an ERB number."""
    return round((cam - 1.75) / 0.25)


def response_db(taps, f, fs):
    phase = np.exp(-2j * np.pi * np.outer(f, np.arange(taps.size)) / fs)
    return 20 * np.log10(np.abs(phase @ taps))


@pytest.mark.cases(2)
@pytest.mark.parametrize("fs", [44100, 48000, 88200, 96000, 192000])
def test_resampler_passes_15_khz_and_rejects_what_would_fold_into_it(fs):
    stage = Resample(fs, 32000).double()
    up, down = stage.ratio.numerator, stage.ratio.denominator
    # The whole impulse response at the common rate, read back from its phases.
    taps = np.zeros(stage.length * up)
    for q in range(up):
        start, phase = q * down // up, q * down % up
        taps[phase::up] = stage.bank[q, start : start + stage.length].flip(0).numpy()
    taps = np.trim_zeros(taps) / up
    assert taps.size == 2 * fs * up * 2 // 1000 + 1
    passed = scipy.signal.zoom_fft(taps, [0, 15000], 301, fs=fs * up, endpoint=True)
    assert np.abs(20 * np.log10(np.abs(passed))).max() < 0.001
    folds = [17000, min(fs * up / 2, 8 * fs)]
    stopped = scipy.signal.zoom_fft(taps, folds, 1200, fs=fs * up, endpoint=True)
    assert 20 * np.log10(np.abs(stopped).max()) < -110


def test_resampler_refuses_an_odd_pair_of_rates():
    with pytest.raises(ValueError, match=r"44056 to 32000 .* nearest rates .* 44050 and 44080 Hz"):
        Resample(44056, 32000)
    with pytest.raises(ValueError, match=r"Resample: fs is 44100\.5: give whole hertz"):
        Resample(44100.5, 32000)


@pytest.mark.parametrize(("field", "gain_db"), [("free", 0.0), ("diffuse", 1.2), ("eardrum", -2.6)])
def test_ear_at_1_khz(field, gain_db):
    assert ear_gain_db(field, np.array([1000.0]))[0] == pytest.approx(gain_db, abs=1e-9)


@pytest.mark.parametrize("field", ["free", "diffuse", "eardrum"])
def test_ear_filter_follows_the_table(field):
    f = np.concatenate([np.arange(40, 1000, 7), np.arange(1000, 15001, 50)]).astype(float)
    taps = ear_taps(32000, field, "linear")
    off = response_db(taps, f, 32000) - ear_gain_db(field, f)
    assert np.abs(off).max() <= 0.21
    assert np.abs(off[f >= 125]).max() <= 0.06


@pytest.mark.parametrize("field", ["free", "diffuse", "eardrum"])
def test_ear_filter_of_mixed_phase_has_the_gain_of_the_reference(field):
    """From wherever in its blocks the sound begins, down to 25 Hz."""
    firsts = [0, 1, 31]
    clicks = torch.zeros(3, 32 * 160, dtype=torch.float64)
    clicks[range(3), firsts] = 1
    mixed, linear = (
        torch.fft.rfft(EarFilter(field=field, phase=phase).double().whole(clicks), 32000).abs()
        for phase in ("mixed", "linear")
    )
    off = 20 * torch.log10(mixed / linear)[:, 25:15001]  # bins of 1 Hz
    assert off.abs().max() <= 0.025


@pytest.mark.parametrize("field", ["free", "diffuse", "eardrum"])
def test_ear_filter_of_mixed_phase_is_linear_in_phase_from_150_hz(field):
    """Within 0.02 ms of a constant delay."""
    f = np.arange(150, 15001, 10.0)
    taps = ear_taps(32000, field, "mixed")
    mixed = scipy.signal.zoom_fft(taps, [150, 15000], f.size, fs=32000, endpoint=True)
    late = -np.unwrap(np.angle(mixed * np.exp(2j * np.pi * f * 352 / 32000))) / (2 * np.pi * f)
    assert np.abs(late).max() <= 2e-5


def test_channel_frequencies_and_slopes():
    fc = erb_number_to_hz(np.array([1.75, 5, 10, 15.5, 20, 30, 39]))
    expected = [47.5165, 163.467, 443.653, 987.722, 1747.05, 5576.26, 15083.6]
    assert fc == pytest.approx(expected, rel=5e-6)
    p = [6.37935, 15.4615, 24.4821, 30.1315, 32.8153, 35.6518, 36.5606]
    assert 4 * fc / erb(fc) == pytest.approx(p, rel=5e-6)


@pytest.mark.parametrize(
    ("cam", "gain_db", "alpha", "a", "threshold_db"),
    [(5, -6.2858, 0.213566, 5.29471, 9.9158), (10, -0.4902, 0.201034, 4.66438, 4.1202)],
)
def test_channel_constants(cam, gain_db, alpha, a, threshold_db):
    iso = channel_constants("iso")
    assert iso.pop("c") == 0.063
    constants = {key: values[at(cam)] for key, values in iso.items()}
    assert 10 * np.log10(constants["gain"]) == pytest.approx(gain_db, abs=1e-4)
    assert constants["alpha"] == pytest.approx(alpha, abs=1e-6)
    assert constants["a"] == pytest.approx(a, abs=1e-5)
    assert 10 * np.log10(constants["threshold"]) == pytest.approx(threshold_db, abs=1e-4)


def specific(excitation):
    return specific_loudness(excitation, BinauralLoudness().double().tables())


@pytest.mark.quick
def test_specific_loudness():
    level = torch.tensor([3.63, 20, 60, 100, 105], dtype=torch.float64)
    e = torch.cat([torch.ones(1, dtype=torch.float64), 10 ** (level / 10)])
    n = specific(e[:, None].expand(-1, 150))
    expected = [0.00160993, 0.00722482, 0.0741455, 0.912946, 6.21451, 7.82361]
    assert n[:, at(15.5)].tolist() == pytest.approx(expected, rel=5e-6)
    e = 10 ** torch.tensor([2.0, 4.0], dtype=torch.float64)
    n = specific(e[:, None].expand(-1, 150))[:, at(3)]
    assert n.tolist() == pytest.approx([0.0110028, 0.156286], rel=5e-6)
    assert torch.all(specific(torch.zeros(1, 150, dtype=torch.float64)) == 0)


def inhibited(n):
    """Gains under the other ear, and the smoothed patterns that they come from."""
    stage = BinauralLoudness().double()
    q = n @ stage.smoothing.T + SILENT
    return inhibition_gains(q, stage.theta), q


LINES = [
    # components (Hz, dB at the cochlea), excitation level (Cam: dB), loudness of one ear
    ({1000: 40}, {13: -0.8427, 15.5: 39.7549, 17: 22.8136, 20: -16.4504}, 0.671987),
    ({1000: 80}, {13: 39.1573, 15.5: 79.7549, 17: 71.4446, 20: 49.6756}, 10.747826),
    ({1000: 60, 1100: 60}, {13: 19.2608, 15.5: 60.3709, 17: 55.7997, 20: 24.8168}, 3.617192),
    ({200: 50, 4000: 70}, {5: 41.4820, 25: 40.0224, 30: 45.3434}, 6.611414),
]


@pytest.mark.parametrize(("lines", "levels", "loudness"), LINES)
def test_excitation_and_loudness_of_spectral_lines(lines, levels, loudness):
    x = 10 ** (torch.tensor([*lines.values()], dtype=torch.float64) / 10)
    e, _ = Excitation(frequency=[*lines]).double().step(x.expand(1, 2, 1, -1), {})
    for cam, level in levels.items():
        assert 10 * np.log10(e[0, 0, 0, at(cam)].item()) == pytest.approx(level, abs=2e-4)
    n = specific(e)
    assert CAM_STEP * n[0, 0, 0].sum().item() == pytest.approx(loudness, rel=1e-6)
    gains, _ = inhibited(n)
    both = CAM_STEP * (gains * n).sum().item()
    assert both == pytest.approx(1.5 * loudness, rel=2e-5)


def test_inhibition_between_unequal_ears():
    x = torch.tensor([1e6, 1e5], dtype=torch.float64).view(1, 2, 1, 1)
    n = specific(Excitation(frequency=[1000]).double().step(x, {})[0])
    raw = CAM_STEP * n.sum(-1).flatten()
    assert raw.tolist() == pytest.approx([2.802996, 1.412315], rel=1e-6)
    gains, q = inhibited(n)
    loudness = CAM_STEP * (gains * n).sum(-1).flatten()
    assert loudness.tolist() == pytest.approx([2.552849, 0.794712], rel=1e-6)
    assert (q[0, 1] / q[0, 0])[0, at(15.5)].item() == pytest.approx(0.507234, abs=1e-6)
    assert gains[0, :, 0, at(15.5)].tolist() == pytest.approx([0.910475, 0.562891], abs=1e-6)
