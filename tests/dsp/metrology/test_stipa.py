"""Modulation transfer of signals that have a known one, and the STIPA test signal itself."""

import json
from pathlib import Path

import numpy as np
import pytest
import scipy.fft
import torch

from amt_stream import Stipa, StipaCells, check_stage, stipa_signal
from amt_stream.dsp.stages.levels.stipa import octave_taps
from amt_stream.dsp.stipa_signal import DEPTH, LEVELS_DB, MODULATIONS, OCTAVES
from amt_stream.meters.accumulators.stipa import Reason, StipaMeter

DATA = json.loads((Path(__file__).parents[2] / "data" / "stipa.json").read_text("utf-8"))
FS = 48000


def carriers(transfer, seconds=20, away=0.0, late=None):
    """Sines at the midband frequencies, or at two so many octaves away, modulated so deep."""
    t = np.arange(FS * seconds) / FS
    x = np.zeros_like(t)
    late = np.zeros((7, 2)) if late is None else late
    for k, octave in enumerate(OCTAVES):
        slow, fast = (
            transfer[k][n] * np.sin(2 * np.pi * MODULATIONS[k][n] * t - late[k][n])
            for n in range(2)
        )
        envelope = np.sqrt(np.maximum(0, 0.5 * (1 + DEPTH * (slow - fast))))
        for hertz in {octave * 2**away, octave * 2**-away}:
            x += 10 ** (LEVELS_DB[k] / 20) * envelope * np.sin(2 * np.pi * hertz * t)
    return 0.05 * x


def result(x, fs=FS, calibrated=False):
    """What a meter reads at the end of a sound."""
    cells = Stipa(fs)(torch.from_numpy(np.asarray(x, np.float32))[None]).cells[0]
    meter = StipaMeter()
    meter.calibrated = calibrated
    # The first cells are of the delay; then a second is left out.
    heard = cells.double().numpy()[12:]
    meter.update(heard, 0.1 * np.arange(1, len(heard) + 1), np.ones(len(heard), bool))
    return meter.overall


@pytest.mark.cases(2)
@pytest.mark.parametrize("case", DATA["sine_carriers_C32"][::2], ids=lambda case: str(case["m"]))
def test_sine_carriers(case):
    got = result(carriers(np.full((7, 2), case["m"])))
    np.testing.assert_allclose(got.m, case["m"], atol=0.001)
    assert got.sti == pytest.approx(case["sti"], abs=0.005)
    assert got.seconds == pytest.approx(18.8)
    assert (got.reasons == Reason.NO_SIGNAL) == (case["m"] == 0)


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    ("away", "m", "worst"), [(0.25, 0.5, 1e-4), (0.25, 1, 0), (0.4, 0.5, 0.01)]
)
def test_sine_carriers_at_the_edges(away, m, worst):
    expected = {0.5: 0.5, 1: 1.0}[m]
    assert abs(result(carriers(np.full((7, 2), m), 25, away)).sti - expected) <= worst


@pytest.mark.parametrize(("t60", "sti"), [(0.5, 0.7394), (2, 0.4418)])
def test_reverberation(t60, sti):
    phase = 2 * np.pi * np.array(MODULATIONS) * t60 / 13.8155
    got = result(carriers(1 / np.sqrt(1 + phase**2), 20, late=np.arctan(phase)))
    assert got.sti == pytest.approx(sti, abs=0.001)
    assert not got.reasons


def noise_like(x, seed):
    """Noise with the levels of the signal in full octaves."""
    random, y = np.random.default_rng(seed), np.zeros(len(x))
    for octave, level_db in zip(OCTAVES, LEVELS_DB, strict=True):
        seconds = len(x) / FS
        low, high = round(octave * 2**-0.5 * seconds), round(octave * 2**0.5 * seconds)
        spectrum = np.zeros(len(x) // 2 + 1, complex)
        spectrum[low:high] = np.exp(2j * np.pi * random.random(high - low))
        band = scipy.fft.irfft(spectrum, len(x))
        y += 10 ** (level_db / 20) * band / band.std()
    return y * np.sqrt(np.mean(np.square(x)) / np.mean(np.square(y)))


def test_the_signal_alone_and_with_as_much_noise():
    x = stipa_signal(FS, 3, 25)
    alone, noisy = result(x), result(x + noise_like(x, 4))
    assert 0.97 <= alone.sti <= 1
    assert noisy.sti == pytest.approx(0.49, abs=0.015)
    assert not alone.reasons | noisy.reasons
    # Levels are of both.
    assert noisy.level_db - alone.level_db == pytest.approx(3.01, abs=0.6)


def test_the_signal():
    x = stipa_signal(24000, 5)
    assert x.shape == (2400000,)
    assert np.sqrt(np.mean(np.square(x, dtype=float))) == pytest.approx(0.1, rel=5e-3)
    assert 12 < 20 * np.log10(np.abs(x).max() / 0.1) < 16.5
    np.testing.assert_array_equal(stipa_signal(24000, 5, 101)[-24000:], x[:24000])
    power = np.square(np.abs(scipy.fft.rfft(x)))
    hertz = np.arange(power.size) / 100
    in_band = [power[(hertz > f * 2**-0.5) & (hertz < f * 2**0.5)].sum() for f in OCTAVES]
    levels = 10 * np.log10(in_band / in_band[2])
    np.testing.assert_allclose(levels, LEVELS_DB, atol=0.05)
    # The root of the intensity has faint lines beside those of the modulation.
    assert power[(hertz > 11314) | (hertz < 80)].sum() < 1e-5 * power.sum()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"fs": 16000}, "give whole hertz, 22050 or more"),
        ({"seconds": 0}, "seconds is 0: give more than 0"),
        ({"rms": 0.5}, "rms is 0.5: give up to 0.15"),
    ],
)
def test_a_signal_that_cannot_be(given, words):
    with pytest.raises(ValueError, match=words):
        stipa_signal(**given)


def test_noise_is_no_signal():
    x = np.random.default_rng(1).normal(0, 0.05, 20 * FS)
    assert Reason.NO_SIGNAL in result(x).reasons


def test_a_band_without_sound_shows_in_its_index_alone():
    transfer = np.ones((7, 2))
    whole = result(carriers(transfer))
    t = np.arange(FS * 20) / FS
    x = carriers(transfer)
    slow, fast = (np.sin(2 * np.pi * f * t) for f in MODULATIONS[2])
    x -= (
        0.05
        * np.sqrt(np.maximum(0, 0.5 * (1 + DEPTH * (slow - fast))))
        * np.sin(2 * np.pi * 500 * t)
    )
    missing = result(x)
    np.testing.assert_allclose(np.delete(missing.mti - whole.mti, 2), 0, atol=0.01)
    assert missing.mti[2] < 0.1
    assert missing.reasons == Reason.EMPTY_BAND


def test_octaves_are_as_wide_as_octaves():
    """-3 dB at the edges, 41 dB or more at the neighbors' midband, and an octave of white noise."""
    taps = octave_taps()
    n = np.arange(taps.size)

    def gain_db(octaves):
        waves = np.exp(-2j * np.pi * 2**octaves / 6 * n)
        return 20 * np.log10(abs(taps @ waves))

    assert [gain_db(edge) for edge in (-0.5, 0.5)] == pytest.approx([-3.16, -3.16], abs=0.01)
    assert max(gain_db(-1), gain_db(1)) < -60
    wide = np.square(taps).sum() / 2
    assert wide == pytest.approx((2**0.5 - 2**-0.5) / 6, rel=1e-3)


def test_the_stage_streams():
    noise = torch.randn(2, 8 * 4800, generator=torch.Generator().manual_seed(1)).double()
    check_stage(StipaCells, noise)


def test_other_rates_are_resampled():
    x = carriers(np.full((7, 2), 0.5), 17)
    there = scipy.fft.irfft(scipy.fft.rfft(x)[: 17 * 22050 + 1], 17 * 44100) * 44100 / FS
    assert result(there, 44100).sti == pytest.approx(result(x).sti, abs=0.001)
    with pytest.raises(ValueError, match="give whole hertz, 22050 or more"):
        Stipa(16000)
    with pytest.raises(ValueError, match="give 48000, after a Resample"):
        StipaCells(44100)
