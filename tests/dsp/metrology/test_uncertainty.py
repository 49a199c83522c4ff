"""The band that the level's uncertainty makes around loudness."""

import math

import pytest
import torch

from amt_stream import Moore2016, Rebuffer, Stream
from amt_stream.dsp.scales import P0, sone_to_phon

FS = 32000
SAMPLES = FS // 8


def sounds():
    """A tone, pink-like noise, and a voice: harmonics of 120 Hz in syllables, another each ear."""
    t = torch.arange(SAMPLES, dtype=torch.float64) / FS
    noise = torch.randn(SAMPLES, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    falling = torch.fft.rfft(noise) / torch.arange(1, SAMPLES // 2 + 2).sqrt()
    voice = sum(torch.sin(2 * math.pi * 120 * k * t) / k for k in range(1, 40))
    voice = voice * (1 + torch.sin(2 * math.pi * 8 * t))
    return {
        "tone": torch.sin(2 * math.pi * 1000 * t).expand(2, -1),
        "noise": torch.fft.irfft(falling, SAMPLES).expand(2, -1),
        "voice": torch.stack([voice, voice.roll(9) / 3]),
    }


SOUNDS = sounds()


def pascal(name, level_db):
    x = SOUNDS[name]
    return (x / x.square().mean().sqrt() * P0 * 10 ** (level_db / 20))[None]


@pytest.fixture(scope="module")
def models():
    """Models by their uncertainty; None gives no band."""
    return {u: Moore2016(FS, uncertainty_db=u).double() for u in (None, 0.0, 1.0, 3.0)}


@pytest.mark.parametrize(
    ("name", "level_db", "uncertainty_db"),
    [("tone", 40, 1.0), ("tone", 100, 3.0), ("noise", 50, 3.0), ("voice", 60, 1.0)],
)
def test_the_edges_are_the_loudness_at_the_level_less_and_more(
    models, name, level_db, uncertainty_db
):
    got = models[uncertainty_db](pascal(name, level_db))
    for edge, change in (("low", -uncertainty_db), ("high", uncertainty_db)):
        alone = models[None](pascal(name, level_db + change))
        for kind in ("stl", "ltl"):
            expected = getattr(alone, kind)
            torch.testing.assert_close(
                getattr(got, f"{kind}_{edge}"), expected, rtol=0, atol=1e-5 * expected.max()
            )


@pytest.mark.parametrize("level_db", [0, 20])
def test_those_of_faint_sounds_too_as_near_as_anyone_hears(models, level_db):
    got, low = (m(pascal("noise", v)) for m, v in ((models[3.0], level_db), (models[None], -3)))
    high = models[None](pascal("noise", level_db + 3))
    assert (got.stl_high - high.stl).abs().max() < 1e-4
    if level_db == 0:
        assert (got.stl_low - low.stl).abs().max() < 1e-4


@pytest.mark.parametrize("name", SOUNDS)
def test_the_reading_itself_is_the_same_bit_for_bit(models, name):
    x = pascal(name, 55)
    without, within = models[None](x), models[1.0](x)
    for field in ("stl", "ltl", "stl_ears", "ltl_ears"):
        assert torch.equal(getattr(without, field), getattr(within, field)), field
    assert without.stl_low is without.stl_high is without.ltl_low is without.ltl_high is None


def test_a_level_without_doubt_has_no_width(models):
    y = models[0.0](pascal("voice", 60))
    assert torch.equal(y.stl_low, y.stl)
    assert torch.equal(y.ltl_high, y.ltl)


def test_no_edge_depends_on_how_the_sound_is_cut(models):
    x = pascal("voice", 60)[..., : 96 * 32]
    whole = models[1.0](x)
    door = Rebuffer(Stream(models[1.0], (1, 2)).double())
    parts = [y for chunk in x.split(441, -1) if (y := door.push(chunk)) is not None]
    for field in ("stl_low", "stl_high", "ltl_low", "ltl_high"):
        chunked = torch.cat([getattr(y, field) for y in parts], -1)
        torch.testing.assert_close(chunked, getattr(whole, field), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("level_db", [40, 60, 80])
def test_a_phon_per_decibel_for_the_tone_that_defines_it(models, level_db):
    y = models[3.0](pascal("tone", level_db))
    low, middle, high = (sone_to_phon(v[0, 90]) for v in (y.stl_low, y.stl, y.stl_high))
    assert middle - low == pytest.approx(3.0, abs=0.1)
    assert high - middle == pytest.approx(3.0, abs=0.1)


def test_loudness_changes_by_seven_percent_per_decibel(models):
    # Sone double in 10 phon at 40 phon and above: 2 ** 0.1 = 1.072 (ISO 532-3:2023, clause 4).
    y = models[1.0](pascal("tone", 60))
    assert float(y.stl_high[0, 90] / y.stl[0, 90]) == pytest.approx(1.072, abs=0.01)


def test_the_width_is_that_of_the_sound_and_not_of_its_loudness(models):
    # As loud as each other, yet noise that grows out of the threshold in more channels grows
    # faster: a table of slopes by loudness would be 40 % off.
    widths = []
    for name, level_db in (("tone", 57.5), ("noise", 40)):
        y = models[1.0](pascal(name, level_db))
        middle, high = (float(sone_to_phon(v[0, 100])) for v in (y.stl, y.stl_high))
        assert middle == pytest.approx(56.8, abs=0.3)
        widths.append(high - middle)
    assert widths == pytest.approx([1.0, 1.4], abs=0.03)


@pytest.mark.parametrize("uncertainty_db", [-0.1, 20.1, math.nan, math.inf, "1"])
def test_an_uncertainty_that_cannot_be_is_refused(uncertainty_db):
    with pytest.raises(ValueError, match=f"uncertainty_db is {uncertainty_db!r}: give 0 to 20 dB"):
        Moore2016(FS, uncertainty_db=uncertainty_db)
