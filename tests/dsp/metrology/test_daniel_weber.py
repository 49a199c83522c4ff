"""Roughness after Daniel & Weber against what was heard, and an independent calculation."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from amt_stream import DanielWeber, DanielWeberRoughness, Rebuffer, Stream, aligned, check_stage
from tests.data.independent_daniel_weber import specific_roughness
from tests.data.synth import render
from tests.dsp.chunks import pushed

FILE = Path(__file__).parents[2] / "data" / "daniel_weber.json"
CARRIER, RATE, HEARD, AUTHORS, MOSQITO = np.array(json.loads(FILE.read_text("utf-8"))["rows"]).T
JUST_HEARD = 0.17
"""Smallest difference of roughness (Fastl & Zwicker 2007, 11.1)."""


def sound(kind, duration=0.6, level_db=60, fs=48000, **more):
    part = {"kind": kind, "level_db_spl": level_db, "duration": duration} | more
    return render({"duration": duration, "components": [part]}, fs)[:, 0]


def modulated(carrier, rate, depth=1.0, **more):
    return sound("am_tone", frequency=carrier, rate=rate, depth=depth, **more)


def roughness(*sounds):
    """Roughness (sound,), the mean of windows within the sounds."""
    model, rows = DanielWeber().double(), torch.from_numpy(np.stack(sounds))
    with torch.no_grad():  # all 96 at once would take 300 MB
        return np.concatenate([model(some).r[:, 1:].mean(-1) for some in rows.split(16)])


@pytest.fixture(scope="module")
def found():
    return roughness(*(modulated(*v) for v in zip(CARRIER, RATE, strict=True)))


def test_most_is_as_heard(found):
    """In as many cases, but for one, as the authors of the model show, and in more than MoSQITo."""
    just = [np.abs(v / HEARD - 1) <= JUST_HEARD for v in (found, AUTHORS, MOSQITO)]
    assert [v.sum() for v in just] == [77, 78, 67]
    assert np.abs(found - HEARD).max() < 0.12
    assert [round(np.abs(v - HEARD).max(), 3) for v in (AUTHORS, MOSQITO)] == [0.099, 0.173]


@pytest.mark.parametrize("carrier", [125, 500, 1000, 2000, 4000, 8000])
def test_the_roughest_rate_of_a_carrier(found, carrier):
    here = carrier == CARRIER
    highest = HEARD[here].argmax()
    assert found[here][highest] == pytest.approx(HEARD[here][highest], rel=JUST_HEARD)
    assert abs(RATE[here][found[here].argmax()] - RATE[here][highest]) <= 20


def test_the_unit():
    assert roughness(modulated(1000, 70)) == pytest.approx(1, abs=0.001)


def test_depth():
    """R grows as depth to the power 1.6 (Fastl & Zwicker 2007, 11.1)."""
    depth = np.array([0.4, 0.5, 0.6, 0.7, 0.8, 0.9])
    r = roughness(*(modulated(1000, 70, v) for v in depth), modulated(1000, 70))
    np.testing.assert_allclose(r[:-1] / r[-1], depth**1.6, rtol=JUST_HEARD)


def test_what_is_not_rough():
    """Below 0.07 asper nobody hears roughness (Daniel & Weber 1997): steady tones, white noise."""
    tones = roughness(*(sound("tone", frequency=f, level_db=80) for f in (100, 250, 1003, 12010)))
    assert (tones < 0.002).all()
    noise = sound("noise", duration=2.0, level_db=70, low=20, high=20000, seed=1)
    assert roughness(noise) == pytest.approx(0.02, abs=0.01)


def test_silence_is_not_rough():
    assert not DanielWeber()(torch.zeros(2, 48000)).r.any()


@pytest.mark.parametrize(
    "x",
    [
        modulated(250, 50, 0.8, duration=0.2) + modulated(3000, 90, duration=0.2, level_db=75),
        sound("am_noise", duration=0.2, low=50, high=15000, seed=3, rate=60, depth=0.7),
        sound("fm_tone", duration=0.2, frequency=1600, rate=70, deviation=800),
        sound("tone", duration=0.2, frequency=990, level_db=95),
    ],
    ids=["tones", "noise", "fm", "loud"],
)
def test_specific_roughness_is_that_of_an_independent_calculation(x):
    """At every sample, where the stage takes 800 values in a window."""
    with torch.no_grad():
        got = DanielWeberRoughness().double()(torch.from_numpy(x)).specific[1].numpy()
    expected = specific_roughness(x)
    np.testing.assert_allclose(got, expected, atol=0.012 * expected.max() + 1e-4)
    assert got.sum() == pytest.approx(expected.sum(), rel=0.001, abs=0.001)


def noises(rows=2, seconds=0.85):
    generator = torch.Generator().manual_seed(0)
    x = 0.02 * torch.randn(rows, int(seconds * 48000), generator=generator, dtype=torch.float64)
    t = torch.arange(x.shape[-1]) / 48000
    return x * (1 + torch.sin(2 * torch.pi * 60 * t))


def test_the_contract():
    check_stage(DanielWeberRoughness, noises())


def test_any_split_gives_the_same():
    x, model = noises(1)[0], DanielWeber().double()
    with torch.no_grad():
        whole = model(x).specific
        for sizes in ([1000], [4801], [31, 1024, 1, 777]):
            pieces = pushed(Rebuffer(Stream(model, ())), x, sizes)
            y = torch.cat([piece.specific for piece in pieces])
            assert y.equal(whole[: len(y)])
    assert whole.max() > 0.01


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_both_forms_give_the_same(dtype):
    x, stage = noises().to(dtype), DanielWeberRoughness().to(dtype)
    with torch.no_grad():
        compiled = stage(x).specific
    plain = stage(x.clone().requires_grad_()).specific.detach()
    assert compiled.max() > 0.05
    tolerance = (1e-4 if dtype == torch.float32 else 1e-10) * compiled.max().item()
    torch.testing.assert_close(compiled, plain, rtol=0, atol=tolerance)


@pytest.mark.parametrize("loudness", [1, 0.1, 0.02])
def test_rounding_leads_no_further(loudness):
    """Also next to channels with a single line, whose envelopes are steady but for rounding."""
    x, stage = loudness * noises(), DanielWeberRoughness()
    with torch.no_grad():
        single, double = stage(x.float()).specific, stage.double()(x).specific
        moved = stage(x * (1 + 1e-15)).specific
    assert double.max() > 0.01
    assert (single - double).abs().max() < 1e-5 * double.max()
    assert (moved - double).abs().max() < 1e-13 * double.max()


def test_a_sample_that_is_no_number_shows():
    x = noises()
    x[0, 9000] = torch.nan
    with torch.no_grad():
        r = DanielWeberRoughness().double()(x).r
    assert r[0, 1:3].isnan().all()
    assert r[0, [0, *range(3, 9)]].isfinite().all()
    assert r[1].isfinite().all()


@pytest.mark.parametrize("fs", [8000, 32000, 44100, 96000])
def test_another_rate(fs):
    x = torch.from_numpy(modulated(1000, 70, fs=fs)).float()
    with torch.no_grad():
        r = aligned(DanielWeber(fs), x).r
    np.testing.assert_allclose(r[1:4], 1, rtol=0.003)


def rows_of_roughness(*sounds):
    """Values that stand for 0.1, 0.2 ... s."""
    with torch.no_grad():
        return aligned(DanielWeber(), torch.from_numpy(np.stack(sounds)).float()).r


def test_what_was_louder_is_forgotten():
    """It was 50 dB louder until 0.45 s."""
    quiet = 0.3 * modulated(1000, 70, duration=1.2)
    later = np.arange(quiet.size) >= 0.45 * 48000
    alone, after = rows_of_roughness(quiet * later, np.where(later, quiet, 316 * quiet))
    assert after[4] > 1.1 * alone[4]  # 0.5 s
    assert 0.5 < 0.45 + DanielWeber.memory_s < 0.6
    assert after[5:].equal(alone[5:])


def test_the_end_is_past():
    x = modulated(1000, 70, duration=1.2)
    x *= np.arange(x.size) < 0.33 * 48000
    (y,) = rows_of_roughness(x)
    assert y[3] > 0.1  # 0.4 s
    assert 0.4 < 0.33 + DanielWeber.tail_s < 0.5
    assert not y[4:].any()
