"""The running rms of modulation bands: its contract, its value, how quickly and how steadily."""

import math

import pytest
import torch

from amt_stream import Stream, check_stage
from amt_stream.dsp.models import ModulationSpectrum
from amt_stream.dsp.stages.modulation_spectrum import ModulationRms
from tests.dsp.noise import noise

FS = 8000


def moving(f, seconds, dtype=torch.float32):
    """A sinusoid of rms 1 in one modulation band of one auditory band (1, 1, 1, time)."""
    time_s = torch.arange(round(FS * seconds), dtype=torch.float64) / FS
    return (math.sqrt(2) * torch.sin(2 * math.pi * f * time_s)).to(dtype)[None, None, None]


def test_it_keeps_the_contract():
    x = noise(2, 3, 2, 10 * 20 + 7)
    x[..., :50] = 0  # silence has a gradient too
    check_stage(lambda: ModulationRms(1000), x)


@pytest.mark.parametrize(
    ("fs", "block"), [(48000, 960), (44100, 882), (32000, 640), (96000, 1920), (11025, 220)]
)
def test_a_frame_is_a_whole_number_of_samples(fs, block):
    stage = ModulationRms(fs)
    assert (stage.block_size, stage.ratio.denominator) == (block, block)
    assert stage.frame_rate == fs / block
    y = stage(torch.ones(3, 2, 8, 2 * block))
    assert y.rms.shape == (3, 2, 2, 8)


@pytest.mark.parametrize(("f", "ripple_db"), [(2, 0.2), (4, 0.05), (5, 0.05), (100, 0.05)])
def test_the_reading_does_not_follow_the_modulation(f, ripple_db):
    """One period of 2 Hz is 25 frames: after 3 s every phase of it has been read."""
    rms = ModulationRms(FS)(moving(f, 5.0)).rms[0, 150:, 0, 0]
    assert (20 * rms.log10()).abs().max() < ripple_db


def test_it_is_there_within_a_second_and_goes_as_quickly():
    x = moving(5, 1.0)
    stage = ModulationRms(FS)
    rms = stage(torch.cat([x, torch.zeros_like(x)], -1)).rms[0, :, 0, 0]
    assert 20 * rms[49].log10() > -0.3
    assert 20 * rms[-1].log10() < -13
    assert stage(torch.zeros(1, 1, 1, FS)).rms.max() == 0


def test_float32_equals_float64():
    x = noise(2, 3, 5, FS)
    double, single = ModulationRms(FS).double()(x).rms, ModulationRms(FS)(x.float()).rms
    assert ((single - double).abs() / double.amax(1, keepdim=True)).max() < 1e-6


def test_not_a_number_stays_one():
    live = Stream(ModulationRms(FS), (1, 2, 1))
    x = torch.ones(1, 2, 1, 160)
    x[0, 1, 0, 80] = math.nan
    assert torch.isnan(live(x).rms).flatten().tolist() == [False, True]


@pytest.mark.parametrize(
    ("settings", "said"),
    [({"frame_ms": 0.01}, "shorter than a sample"), ({"time_constant": 0.0}, "give more than 0")],
)
def test_what_makes_no_sense_is_refused(settings, said):
    with pytest.raises(ValueError, match=said):
        ModulationRms(FS, **settings)


@pytest.mark.parametrize("model", ["king2019", "dau1997"])
def test_the_spectrum_of_a_model_keeps_the_contract(model):
    """A millisecond a frame, so that a short sound is many of them."""
    x = 0.02 * noise(2, 2, 10 * 16 + 7)
    check_stage(lambda: ModulationSpectrum(16000, model, frame_ms=1.0), x)


def test_it_is_silent_where_the_sound_is_and_says_what_it_is():
    stage = ModulationSpectrum(16000)
    assert stage(torch.zeros(1, 2, 3200)).rms.max() == 0
    assert (len(stage.fc), len(stage.mfc), stage.mask.shape) == (31, 5, (31, 5))
    assert (stage.frame_rate, stage.latency) == (50, 0)
    dau = ModulationSpectrum(16000, "dau1997")
    assert dau.mask.shape == (len(dau.fc), len(dau.mfc))
    assert dau.mfc[0] == 0
    with pytest.raises(ValueError, match="model is 'moore2016': give one of king2019, dau1997"):
        ModulationSpectrum(16000, "moore2016")


def test_pascal_are_brought_to_rms_1_at_100_db():
    """Compression begins 70 dB below that: a tone of 20 dB SPL, doubled, doubles."""
    time_s = torch.arange(16000, dtype=torch.float64) / 16000
    tone = torch.sin(2000 * math.pi * time_s) * (1 + torch.sin(8 * math.pi * time_s))
    stage = ModulationSpectrum(16000).double()
    level = [stage(10 ** (db / 20) * 20e-6 * tone).rms[-1].max() for db in (10, 16, 80, 86)]
    assert 20 * torch.log10(level[1] / level[0]).item() == pytest.approx(6, abs=1e-3)
    assert 20 * torch.log10(level[3] / level[2]).item() == pytest.approx(1.8, abs=0.5)
