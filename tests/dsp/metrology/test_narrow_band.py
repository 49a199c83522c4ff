"""The narrow-band spectrum against tones, noise and numpy's own Fourier transform."""

import numpy as np
import pytest
import torch

from amt_stream import NarrowBandSpectrum, Stream, check_stage, measure
from amt_stream.dsp.scales import P0
from amt_stream.meters.accumulators.spectrum import strongest_line
from tests.dsp.noise import noise

RATES = (8000, 22050, 44100, 48000, 96000)


def tone(f, fs, level_db=80.0, seconds=3.0):
    """Of that level in dB SPL, on from the first sample."""
    t = np.arange(round(seconds * fs)) / fs
    return torch.from_numpy(np.sqrt(2) * P0 * 10 ** (level_db / 20) * np.sin(2 * np.pi * f * t))


def settled(stage, x):
    """The last spectrum of a sound (..., time)."""
    return stage(x).level_db[..., -1, :].numpy()


def test_it_keeps_the_contract():
    x = noise(2, 2, 12 * 320 + 7)
    x[..., :700] = 0  # silence has a gradient too
    check_stage(lambda: NarrowBandSpectrum(8000, 12.5), x)


@pytest.mark.parametrize(
    ("fs", "points", "hop"),
    [(8000, 2048, 320), (44100, 8192, 1764), (48000, 8192, 1920), (96000, 16384, 3840)],
)
def test_the_length_follows_from_the_resolution(fs, points, hop):
    stage = NarrowBandSpectrum(fs)
    assert (stage.points, stage.block_size, stage.frame_rate) == (points, hop, 25.0)
    assert fs / points <= 6 < 2 * fs / points
    assert stage.frequencies[[0, 1, -1]].tolist() == [0.0, fs / points, fs / 2]
    assert NarrowBandSpectrum(fs, 12.5).points >= 2 * hop
    assert NarrowBandSpectrum(fs, 1.0).bin_hz <= 1.0


@pytest.mark.parametrize("fs", RATES)
def test_it_is_what_numpy_gives_of_the_same_windows(fs):
    """Each transform by itself, in float64, and the powers averaged one after another."""
    stage = NarrowBandSpectrum(fs).double()
    x = noise(30 * stage.block_size)
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(stage.points) / stage.points)
    kept = np.exp(-stage.block_size / fs / 0.125)
    whole, power = np.concatenate([np.zeros(stage.points), x.numpy()]), 0.0
    y = stage(x).level_db.numpy()
    for n in range(30):
        end = stage.points + (n + 1) * stage.block_size
        bins = np.abs(np.fft.rfft(whole[end - stage.points : end] * window)) / window.sum()
        now = 2 * bins**2
        now[[0, -1]] /= 2
        power = kept * power + (1 - kept) * now
        np.testing.assert_allclose(y[n], 10 * np.log10(power / P0**2), rtol=0, atol=1e-7)


@pytest.mark.parametrize("fs", RATES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_tone_reads_its_level(fs, dtype):
    """On a bin its own, half of the next one's amplitude less beside it; between two 1.42 dB."""
    stage = NarrowBandSpectrum(fs).to(dtype)
    for k in (round(100 / stage.bin_hz), round(0.35 * fs / stage.bin_hz)):
        level = settled(stage, tone(k * stage.bin_hz, fs))
        assert level.argmax() == k
        np.testing.assert_allclose(level[k - 1 : k + 2] - 80, [-6.0206, 0, -6.0206], atol=0.002)
        assert np.delete(level, [k - 1, k, k + 1]).max() < -10
        level = settled(stage, tone((k + 0.5) * stage.bin_hz, fs))
        np.testing.assert_allclose(level[k : k + 2] - 80, -1.4236, atol=0.002)


@pytest.mark.parametrize("fs", RATES)
@pytest.mark.parametrize("f", [31.4, 440.0, 997.3, 3456.78])
def test_the_strongest_line_is_the_tone_itself(fs, f):
    stage = NarrowBandSpectrum(fs)
    x = torch.stack([tone(f, fs, 60.0), tone(1.07 * f, fs, 94.0)])
    line = strongest_line(settled(stage, x), stage.bin_hz)
    np.testing.assert_allclose(line.hz, [f, 1.07 * f], atol=0.01)
    np.testing.assert_allclose(line.level_db, [60.0, 94.0], atol=0.01)


@pytest.mark.parametrize("fs", RATES)
@pytest.mark.parametrize("f", [8.0, 15.0, 19.0])
def test_the_skirt_of_infrasound_is_no_line(fs, f):
    """Neither by itself nor above what stands in the range."""
    stage = NarrowBandSpectrum(fs)
    low = tone(f, fs, 100.0)
    both = torch.stack([low, low + tone(1000.0, fs)])
    line = strongest_line(settled(stage, both), stage.bin_hz)
    assert not line.level_db[0] > 45.0
    np.testing.assert_allclose([line.hz[1], line.level_db[1]], [1000.0, 80.0], atol=0.01)


@pytest.mark.parametrize("fs", RATES)
@pytest.mark.parametrize("f", [20.0, 20.5, 22.0, 19_998.0, 20_000.0])
def test_a_tone_at_the_edge_of_the_range_is_a_line(fs, f):
    """Whatever bin it is highest in."""
    if f > 0.49 * fs:
        return
    stage = NarrowBandSpectrum(fs)
    line = strongest_line(settled(stage, tone(f, fs)), stage.bin_hz)
    np.testing.assert_allclose([line.hz, line.level_db], [f, 80.0], atol=0.1)


def test_what_stands_out_is_a_line():
    """Of noise, of several bins that are as high, beside what is not known, and of nothing."""
    rng, bin_hz = np.random.default_rng(0), 5.0
    level = rng.uniform(20.0, 30.0, (3, 50, 4097))
    line = strongest_line(level, bin_hz)
    assert ((line.hz >= 20.0 - 0.1) & (line.hz <= 20_000.1)).all()
    assert (line.level_db >= level[..., 4:4000].max(axis=-1) - 0.1).all()
    flat = np.full(4097, -120.0)
    flat[200:204] = 60.0
    line = strongest_line(flat, bin_hz)
    assert 995.0 <= line.hz <= 1020.0
    assert 60.0 <= line.level_db < 61.5
    flat[100] = np.nan
    assert strongest_line(flat, bin_hz) == line
    assert np.isnan(strongest_line(np.full((2, 4097), np.nan), bin_hz)).all()
    falling = np.linspace(60.0, 0.0, 4097)
    assert np.isnan(strongest_line(falling, bin_hz)).all()


def test_silence_has_no_line():
    stage = NarrowBandSpectrum(48000)
    level = settled(stage, torch.zeros(2, 9600))
    np.testing.assert_allclose(level, -106.0206, atol=1e-3)
    line = strongest_line(level, stage.bin_hz)
    assert np.isnan(line.hz).all()
    assert np.isnan(line.level_db).all()


@pytest.mark.parametrize("fs", [44100, 48000])
def test_all_bins_together_have_the_power_of_the_sound(fs):
    """Of noise over 40 s, within 0.05 dB: each bin has the noise of one and a half."""
    stage, x = NarrowBandSpectrum(fs), noise(40 * fs).float()
    level = stage(x).level_db.double().numpy()
    power = (10 ** (level[25:] / 10)).sum(-1).mean() / 1.5
    # Frames from 1 s on are of the sound from about 0.8 s on.
    rms = float(x[round(0.8 * fs) :].double().square().mean().sqrt())
    assert 10 * np.log10(power) == pytest.approx(20 * np.log10(rms / P0), abs=0.05)
    # In a band too, half of it.
    half = (10 ** (level[25:, 500:1500] / 10)).sum(-1).mean() / 1.5
    expected = 20 * np.log10(rms / P0) + 10 * np.log10(1000 * stage.bin_hz / (fs / 2))
    assert 10 * np.log10(half) == pytest.approx(expected, abs=0.1)


def test_noise_reads_its_level_per_hertz_and_that_of_the_bin():
    stage, x = NarrowBandSpectrum(48000), noise(40 * 48000).float()
    power = 10 ** (stage(x).level_db[25:, 100:4000].double().numpy() / 10)
    per_hertz = 20 * np.log10(1 / P0) - 10 * np.log10(24000)
    read = 10 * np.log10(power.mean()) - per_hertz
    assert read == pytest.approx(9.44, abs=0.05)


def test_rows_apart_and_together_are_the_same_bits():
    """Whatever number of rows and of blocks is transformed at once."""
    stage, x = NarrowBandSpectrum(48000), noise(5, 20 * 1920).float()
    together = stage(x).level_db
    for row in (0, 3, 4):
        live = Stream(stage, (1,))
        parts = [live(x[row : row + 1, at : at + 1920]).level_db for at in range(0, 38400, 1920)]
        assert torch.equal(torch.cat(parts, -2)[0], together[row])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"fs": 48000.5}, "fs is 48000.5: give whole hertz, 8000 or more"),
        ({"resolution_hz": 0.1}, "resolution_hz is 0.1: give 0.5 to 12.5 Hz"),
        ({"resolution_hz": 20}, "resolution_hz is 20: give 0.5 to 12.5 Hz"),
    ],
)
def test_what_it_cannot_be_is_refused(given, said):
    with pytest.raises(ValueError, match=said):
        NarrowBandSpectrum(**given)


def test_it_is_measured_by_its_name():
    fs = 44100
    x = np.stack([tone(440.0, fs, 70.0), tone(1234.5, fs, 74.0)], 1)
    m = measure(x, fs, "spectrum", calibration="pascal", outputs=["spectrum_db"])
    assert m["spectrum_peak_hz"][-1] == pytest.approx(1234.5, abs=0.01)
    assert m["spectrum_peak_db"][-1] == pytest.approx(74.0, abs=0.01)
    assert m.summary["spectrum_max_left_hz"] == pytest.approx(440.0, abs=0.05)
    channel, hz = m.axes["spectrum_db"]
    assert (channel.name, hz.name, hz.values[-1]) == ("channel", "hz", fs / 2)
    assert m["spectrum_db"].shape == (len(m["time_s"]), 2, 4097)
    assert hz.values[m["spectrum_db"][-1].argmax(-1)].tolist() == pytest.approx([440, 1234], abs=3)
