"""Filters of octaves and third octaves against the class 1 limits of IEC 61260-1:2014."""

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch

from amt_stream import Octaves, SoundLevel, ThirdOctaves, check_stage, measure
from amt_stream.dsp.functional.third_octave import BAND_PASS
from amt_stream.dsp.scales import P0
from amt_stream.meters.signals import Noise, mix

GIVEN = json.loads((Path(__file__).parents[2] / "data/iec61260.json").read_text())
G = 10**0.3
RATES = (44100, 48000, 96000)
OTHERS = (8000, 12000, 16000, 22050, 32000, 88200, 192000)


@cache
def limits(fraction=3):
    """Places over the midband, lowest and highest attenuation in dB there."""
    octave = G ** np.array(GIVEN["omega_exponent_of_G"], float)
    band = 1 + (G ** (0.5 / fraction) - 1) / (G**0.5 - 1) * (octave - 1)
    highest = [np.inf if v is None else v for v in GIVEN["maximum_db"]]
    return band, np.array(GIVEN["minimum_db"]), np.array(highest)


def allowed(places, fraction=3):
    """Lowest and highest attenuation at `places` on either side, linear in log frequency between.

    At the edge of the band the highest ends and the lowest jumps.
    """
    band, lowest, highest = limits(fraction)
    aside, edge = np.abs(np.log(places)), np.log(G ** (0.5 / fraction))
    inside, outside = GIVEN["edge"]["maximum_inside_db"], GIVEN["edge"]["minimum_outside_db"]
    least = np.interp(aside, [edge, *np.log(band[4:])], [outside, *lowest[4:]])
    most = np.interp(aside, [*np.log(band[:4]), edge], [*highest[:4], inside])
    is_in = aside < edge
    return np.where(is_in, -0.4, least), np.where(is_in, most, np.inf)


def response(stage, f):
    """Magnitude (band, f) of what the stage filters with."""
    z = np.exp(-2j * np.pi * np.asarray(f) / stage.fs)
    a1, a2 = stage.design("poles").reshape(-1, 2, stage.midbands.size).swapaxes(0, 1)
    b1, b2 = BAND_PASS
    sections = (1 + b1 * z + b2 * z**2) / (1 + a1[..., None] * z + a2[..., None] * z**2)
    return stage.design("gain")[:, None] * np.abs(sections.prod(0))


@pytest.mark.parametrize("fs", [*RATES, *OTHERS])
@pytest.mark.parametrize("kind", [ThirdOctaves, Octaves])
def test_every_band_is_within_class_1(kind, fs):
    stage = kind(fs)
    band, *_ = limits(stage.fraction)
    edge = G ** (0.5 / stage.fraction) * np.array([1 - 1e-9, 1 + 1e-9])
    one_side = np.union1d(np.geomspace(1, 1.01 * band[-1], 600), [*band, *edge])
    places = np.concatenate([1 / one_side[::-1], one_side])
    for k, f in enumerate(stage.midbands):
        here = places[places * f < 0.4999 * fs]
        attenuation = -20 * np.log10(response(stage, here * f)[k])
        lowest, highest = allowed(here, stage.fraction)
        assert (attenuation >= lowest - 1e-9).all(), f
        assert (attenuation <= highest).all(), f
        far = np.geomspace(here[-1], 0.4999 * fs / f, 50)[1:]
        if here[-1] > band[-1]:
            assert (-20 * np.log10(response(stage, far * f)[k]) >= 70).all(), f


def test_there_are_all_bands():
    assert ThirdOctaves(44100).nominal == ThirdOctaves(96000).nominal
    nominal = ThirdOctaves().nominal
    assert (len(nominal), nominal[0], nominal[-1]) == (36, 6.3, 20000.0)
    assert {31.5, 63.0, 315.0, 1250.0, 6300.0} <= set(nominal)
    exact = 1000 * 10 ** (np.arange(-22, 14) / 10)
    np.testing.assert_allclose(ThirdOctaves().midbands, exact, rtol=1e-12)
    assert ThirdOctaves(8000).nominal[-1] == 3150.0
    assert ThirdOctaves(32000).nominal[-1] == 12500.0
    octaves = 8.0, 16.0, 31.5, 63.0, 125.0, 250.0, 500.0, 1e3, 2e3, 4e3, 8e3, 16e3
    assert Octaves(44100).nominal == Octaves(192000).nominal == octaves
    assert Octaves(8000).nominal[-1] == 2000.0
    exact = 1000 * 10 ** (3 * np.arange(-7, 5) / 10)
    np.testing.assert_allclose(Octaves().midbands, exact, rtol=1e-12)


def tones(f, fs, onset_s, rest_s):
    """Rows of tones at RMS 1, with an onset that strays into no other band, of whole frames."""
    t = np.arange(round(100 * (onset_s + rest_s)) * fs // 100) / fs
    part = np.clip(t / onset_s, 0, 1)
    onset = part - np.sin(2 * np.pi * part) / (2 * np.pi)
    return np.sqrt(2) * onset * np.sin(2 * np.pi * np.asarray(f)[:, None] * t)


@pytest.mark.parametrize(
    ("kind", "fs"),
    [
        *(
            pytest.param(ThirdOctaves, fs, marks=[] if fs == 48000 else [pytest.mark.soak])
            for fs in RATES
        ),
        (Octaves, 44100),
    ],
)
def test_tones_at_each_limit_are_read_within_it(kind, fs):
    """In every band, what a stage of it alone gives of tones at each place of the mask.

    The test above has the mask at every rate.
    """
    band, *_ = limits(kind.fraction)
    for f in kind(fs, low_hz=12.5).midbands:
        stage = kind(fs, f, f)
        places = np.concatenate([1 / band[:0:-1], band])
        places = places[places * f < 0.49 * fs]
        x = tones(places * f, fs, max(0.2, 40 / f), max(0.2, 50 / f))
        y = stage(torch.tensor(x, dtype=torch.float32)).mean_square[:, 0].double()
        last = max(10, round(20 / f * 100))
        level = 10 * np.log10(y[:, -last:].mean(-1).numpy())
        attenuation = level[np.argmin(np.abs(places - 1))] - level
        lowest, highest = allowed(places, kind.fraction)
        assert (attenuation >= lowest - 0.02).all(), f
        assert (attenuation <= highest).all(), f
        expected = 20 * np.log10(response(stage, places * f)[0])
        near = expected > -45
        assert near.sum() >= 8
        np.testing.assert_allclose(level[near], expected[near], atol=0.1, err_msg=str(f))


def test_a_band_alone_is_that_among_the_others():
    """To the same bits."""
    x = torch.randn(2, 4800, generator=torch.Generator().manual_seed(0))
    bands = ThirdOctaves(48000)(x)
    for k in (0, 7, 35):
        f = float(ThirdOctaves().midbands[k])
        alone = ThirdOctaves(48000, f, f)(x)
        for one, all_of_them in zip(alone, bands, strict=True):
            assert torch.equal(one[..., 0, :], all_of_them[..., k, :])


@pytest.mark.cases(2)
@pytest.mark.parametrize("fs", RATES)
@pytest.mark.parametrize("kind", [ThirdOctaves, Octaves])
def test_white_noise_passes_as_through_ideal_bands(kind, fs):
    stage = kind(fs)
    half, off = G ** (0.5 / stage.fraction), {1: 0.12, 3: 0.03}[stage.fraction]
    ideal = stage.midbands * (half - 1 / half)
    for k, f in enumerate(stage.midbands):
        grid = np.geomspace(f / 6, min(6 * f, fs / 2), 4001)
        through = np.trapezoid(response(stage, grid)[k] ** 2, grid)
        cut_off = f * half > fs / 2
        assert 10 * np.log10(through / ideal[k]) == pytest.approx(0, abs=0.3 if cut_off else off)


def test_a_tone_anywhere_is_in_all_bands_together():
    """At a band's edge, too: the sum of powers is nearly its own, less so at the highest."""
    stage = ThirdOctaves(48000)
    f = np.geomspace(20, 18_000, 2000)
    off = np.abs(10 * np.log10((response(stage, f) ** 2).sum(0)))
    assert off[f < 8000].max() < 0.6
    assert off.max() < 1.0


def test_bands_of_pink_noise_add_up_to_its_level():
    fs = 48000
    x = mix([Noise("pink", low=200, high=5000, level_db=80.0)], fs, 0, 3 * fs)[:, 0]
    given = torch.tensor(x, dtype=torch.float32)[None]
    bands = ThirdOctaves(fs)(given).mean_square[0].sum(0)
    whole = SoundLevel(fs)(given).mean_square[0, 2]
    off = 10 * torch.log10(bands[100:].mean() / whole[100:].mean())
    assert off.item() == pytest.approx(0, abs=0.05)


@pytest.mark.parametrize(("fs", "low_hz"), [(8000, 100.0), (11025, 1000.0), (48000, 25.0)])
def test_contract(fs, low_hz):
    x = torch.randn(2, 8 * ThirdOctaves(fs).block_size + 7, generator=torch.manual_seed(0))
    check_stage(lambda: ThirdOctaves(fs, low_hz), 0.02 * x)


def test_low_bands_are_exact_in_a_float32_module():
    """Poles of 6.3 Hz lie next to 1, where float32 would be of no use."""
    x = P0 * torch.tensor(tones([6.3096], 192000, 1.0, 2.0))
    single, double = ThirdOctaves(192000, 6.3, 6.3), ThirdOctaves(192000, 6.3, 6.3).double()
    a, b = single(x.float()).power, double(x).power
    torch.testing.assert_close(a.double(), b, rtol=1e-4, atol=0)


def test_low_bands_beside_loud_high_sound():
    """90 dB more at 10 kHz changes a tone of 6.3 Hz by less than the limits of the filter do."""
    soft = P0 * tones([6.3096], 192000, 1.0, 3.0)
    loud = 10**4.5 * P0 * tones([10000.0], 192000, 1.0, 3.0)
    stage = ThirdOctaves(192000, 6.3, 6.3)
    level = [
        10 * torch.log10(stage(torch.tensor(x).float()).mean_square[0, 0, -100:].mean())
        for x in (soft, soft + loud)
    ]
    assert abs(level[1] - level[0]) < 0.1


def test_three_third_octaves_make_no_octave_filter():
    """Why octaves have their own: a sum is 0.47 dB low where thirds meet, at 16 kHz too low."""
    thirds, octaves = ThirdOctaves(48000), Octaves(48000)
    for hz, within in ((1000.0, True), (16000.0, False)):
        k, own = thirds.nominal.index(hz), octaves.nominal.index(hz)
        f = octaves.midbands[own] * np.geomspace(1 / 1.28, 1.28, 401)
        added = -10 * np.log10((response(thirds, f)[k - 1 : k + 2] ** 2).sum(0))
        passed = -20 * np.log10(response(octaves, f)[own])
        lowest, highest = allowed(f / octaves.midbands[own], 1)
        assert ((passed >= lowest) & (passed <= highest)).all()
        assert ((added >= lowest) & (added <= highest)).all() == within
        aside = np.abs(np.log10(f / octaves.midbands[own])) < 0.08
        assert added[aside].max() > passed[aside].max() + 0.4


def test_what_cannot_be_is_refused():
    with pytest.raises(ValueError, match=r"low_hz is 0\.5 Hz: give 1 Hz or more"):
        ThirdOctaves(48000, 0.5)
    with pytest.raises(ValueError, match=r"from 100\.0 to 50\.0 Hz: give two ascending"):
        ThirdOctaves(48000, 100.0, 50.0)
    with pytest.raises(ValueError, match="the band of 5000 Hz does not fit below half of 8000 Hz"):
        ThirdOctaves(8000, 5000.0)
    with pytest.raises(ValueError, match="ThirdOctaves"):
        ThirdOctaves(7999)


def test_rows_have_the_levels_of_the_stage():
    """Of each channel and of the louder one, band by band."""
    fs = 44100
    one, other = (
        mix([Noise(low=low, high=2 * low, level_db=70.0)], fs, 0, 2 * fs)[:, 0]
        for low in (500, 4000)
    )
    names = ["lzf_1000hz_db", "lzf_1000hz_left_db", "lzf_5000hz_right_db", "lzs_5000hz_db"]
    names += ["lzeq_1000hz_db", "lzeq_5000hz_1s_right_db", "lzfmax_1000hz_left_db"]
    x = np.stack([one, other], 1)
    m = measure(x, fs, "third_octave", calibration="pascal", columns=names, step_ms=10)
    stage = ThirdOctaves(fs)
    y = stage(torch.tensor(x.T, dtype=torch.float32))
    at = {f: stage.nominal.index(f) for f in (1000.0, 5000.0)}

    def db(v):
        return 10 * np.log10(v.double().numpy() / P0**2)

    fast, slow = db(y.power[:, 0]), db(y.power[:, 1])
    got = {name: m[name][1:201] for name in names}
    np.testing.assert_allclose(got["lzf_1000hz_left_db"], fast[0, at[1000.0]], atol=1e-4)
    np.testing.assert_array_equal(got["lzf_1000hz_db"], got["lzf_1000hz_left_db"])
    np.testing.assert_allclose(got["lzf_5000hz_right_db"], fast[1, at[5000.0]], atol=1e-4)
    np.testing.assert_allclose(got["lzs_5000hz_db"], slow[1, at[5000.0]], atol=1e-4)
    mean = y.mean_square.double().cumsum(-1) / torch.arange(1, 201)
    np.testing.assert_allclose(got["lzeq_1000hz_db"], db(mean[0, at[1000.0]]), atol=1e-4)
    last = y.mean_square[1, at[5000.0], 100:].mean()
    assert got["lzeq_5000hz_1s_right_db"][-1] == pytest.approx(float(db(last)), abs=1e-3)
    assert m.summary["lzeq_1000hz_db"] == pytest.approx(float(db(mean[0, at[1000.0], -1])))
    assert m.summary["lzfmax_1000hz_left_db"] >= fast[0, at[1000.0], 100:].max()
    assert {"lzeq_12_5hz_db", "lzsmax_20000hz_right_db"} <= set(m.summary)


def test_low_rates_have_fewer_columns():
    x = np.zeros(8000)
    names = [c["name"] for c in measure(x, 8000, "third_octave").header["columns"]]
    assert names[-1] == "lzf_3150hz_db"
    with pytest.raises(ValueError, match="no column is called 'lzf_4000hz_db'"):
        measure(x, 8000, "third_octave", columns=["lzf_4000hz_db"])
