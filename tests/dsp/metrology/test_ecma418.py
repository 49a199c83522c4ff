"""The hearing model of ECMA-418-2:2025 against other programs and an independent calculation.

Tolerances are those of `ecma418_2.json`: 0.5 % of N, 1 % or 0.005 tu_HMS of T.
"""

import json
from functools import cache
from math import log10
from pathlib import Path

import numpy as np
import pytest
import torch

from amt_stream import (
    Chain,
    ECMALoudness,
    ECMATonality,
    Rebuffer,
    Stream,
    aligned,
    check_stage,
)
from amt_stream.dsp.stages import (
    ECMAEarFilter,
    ECMAFilterbank,
    ECMASpecificLoudness,
    ECMASpecificTonality,
    ECMATonalNoise,
)
from tests.data.independent_ecma418 import tonal_and_noise
from tests.data.synth import render
from tests.dsp.chunks import pushed
from tests.dsp.noise import noise

FILE = Path(__file__).parents[2] / "data" / "ecma418_2.json"
CASES = {case["id"]: case for case in json.loads(FILE.read_text(encoding="utf-8"))["cases"]}
USUAL = ("tone_1k_40", "tone_in_pink_1k_+0", "burst_1k_300ms_60")
RISE = 57
"""Frames that the standard leaves out at the start."""


def hearing_model():
    return Chain(ear=ECMAEarFilter(), bands=ECMAFilterbank(), parts=ECMATonalNoise())


@cache
def sound():
    """A tone that starts in pink-like noise, 0.22 s, in pascal."""
    t = torch.arange(5 * 2048 + 100, dtype=torch.float64) / 48000
    tone = 0.05 * torch.sin(2 * torch.pi * 440 * t) * (t > 0.05)
    return tone + 0.003 * noise(t.numel()).cumsum(0) * 0.1 + 0.003 * noise(t.numel(), seed=2)


@pytest.mark.parametrize("field", ["free", "diffuse"])
def test_the_ear_keeps_the_contract(field):
    check_stage(lambda: ECMAEarFilter(field), noise(2, 2, 40))


@pytest.mark.parametrize(
    ("field", "gains"),
    [
        ("free", {20: -24.28, 100: -11.18, 1000: 0.0, 3000: 4.87, 8000: -8.99, 16000: -15.11}),
        ("diffuse", {100: -11.19, 1000: 0.21, 2000: 3.57, 4000: 6.74, 16000: -15.10}),
    ],
)
def test_gains_of_the_ear(field, gains):
    """Of Table 1 of the standard, as two other programs give them, in dB."""
    stage = ECMAEarFilter(field)
    for f, gain in gains.items():
        z = np.exp(2j * np.pi * f / 48000 * np.arange(0, -3, -1))
        response = np.prod((stage.design("numerators") @ z) / (stage.design("denominators") @ z))
        assert 20 * np.log10(abs(response)) == pytest.approx(gain, abs=0.006)


def test_the_sound_fades_in():
    stage, x = ECMAEarFilter().double(), torch.ones(1, 480, dtype=torch.float64)
    faded = x.clone()
    faded[:, :240] *= 0.5 - 0.5 * torch.cos(torch.pi / 240 * torch.arange(240.0).double())
    state = stage.initial_state((1,)) | {"begun": torch.full((1,), 240)}
    expected, _ = stage.step(faded, state)
    torch.testing.assert_close(stage(x), expected)


def test_another_field_is_refused():
    with pytest.raises(ValueError, match="field is 'eardrum': give free or diffuse"):
        ECMAEarFilter("eardrum")


def test_the_bands_keep_the_contract():
    check_stage(ECMAFilterbank, noise(2, 2, 40))


def test_a_band_is_a_gammatone_of_order_5():
    """Its sampled impulse response n^4 d^n, which no polynomial of the standard gives as well."""
    click = torch.zeros(1, 4000, dtype=torch.float64)
    click[0, 0] = 1
    y = ECMAFilterbank().double()(click)[0]
    n = torch.arange(4000, dtype=torch.float64)
    for band in (0, 17, 52):
        f = ECMAFilterbank.fc[band]
        d = np.exp(-np.hypot(81.9289, 0.1618 * f) / (48000 * 70 / 512))
        gain = (1 - d) ** 5 / (d + 11 * d**2 + 11 * d**3 + d**4)
        expected = 2 * gain * n**4 * d**n * torch.cos(2 * torch.pi * f / 48000 * n)
        torch.testing.assert_close(y[band], expected, rtol=0, atol=1e-13 * expected.abs().max())


@pytest.mark.soak
def test_tones_and_noise_keep_the_contract():
    x = ECMAFilterbank().double()(0.02 * noise(2, 8 * 2048 + 9))
    check_stage(ECMATonalNoise, x)


@pytest.mark.parametrize("last", [ECMASpecificLoudness, ECMASpecificTonality])
def test_the_last_stages_keep_the_contract(last):
    x = noise(2, 3, 9, 53).square()
    x[..., 4, :] = 0
    check_stage(last, x)


def close(got, expected):
    """Of the peak of loudness, and of the frequency where there is a tone."""
    for part in range(3):
        torch.testing.assert_close(
            got[part], expected[part], rtol=0, atol=1e-7 * expected[part].abs().max().item()
        )


def test_the_parts_are_those_of_the_whole_sound():
    """However it is cut."""
    x = sound()
    expected = torch.from_numpy(tonal_and_noise(x.numpy())[:, :, 1:])  # from frame 1 on
    model = hearing_model().double()
    with torch.no_grad():
        whole = aligned(model, x)
        count = expected.shape[-1]
        close(whole[:, :count].mT, expected)
        # `test_ecma418_all.py` has single samples too.
        for sizes in ([7], [480], [31, 1024, 1, 777]):
            y = torch.cat(pushed(Rebuffer(Stream(model, ())), x, sizes), -2)[:, 15:]
            assert y.equal(whole[:, : y.shape[1]])


def test_single_precision():
    x = sound()
    with torch.no_grad():
        single = aligned(hearing_model(), x.float()).double()
        double = aligned(hearing_model().double(), x)
    for part in (0, 1):
        off = (single[part] - double[part]).abs().max() / double[part].max()
        assert off < 1e-4


def single_values(n, t):
    """N and T of a whole sound, from frames 1, 2, ... (ECMA-418-2:2025, 8.1.2 and 6.2.11)."""
    n, t = n[RISE - 1 :].double(), t[RISE - 1 :].double()
    power = 1 / log10(2)
    tonal = t[t > 0.02]
    return float((n**power).mean() ** (1 / power)), float(tonal.mean()) if len(tonal) else 0.0


@cache
def read(name, dtype=torch.float32):
    """What both models say of a case."""
    x = torch.from_numpy(render(CASES[name]["recipe"], 48000)[:, 0]).to(dtype)
    with torch.no_grad():
        parts = aligned(hearing_model().to(dtype), x)
        loudness, _ = ECMASpecificLoudness().to(dtype).step(parts, {})
        tonality, _ = ECMASpecificTonality().to(dtype).step(parts, {})
    return loudness, tonality


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[] if name in USUAL else [pytest.mark.soak]) for name in CASES],
)
def test_loudness_and_tonality_are_those_of_other_programs(name):
    case, (loudness, tonality) = CASES[name], read(name)
    for key, value in zip("NT", single_values(loudness.n, tonality.t), strict=True):
        assert value == pytest.approx(case[key]["expect"], abs=case[key]["tol"]), key
    if "frequency_median_hz" in case["T"] and case["T"]["expect"] > 0.3:
        hz = tonality.hz[RISE - 1 :][tonality.t[RISE - 1 :] > 0.02]
        assert float(hz.median()) == pytest.approx(case["T"]["frequency_median_hz"], abs=3.0)
    for key, y in (("N", loudness.n), ("T", tonality.t)):
        for frame, value in zip(*case.get(f"trace_{key}", {}).values(), strict=True):
            # The last frames are those of a sound that goes on, or ends, after this one.
            if frame <= len(y):
                assert float(y[frame - 1]) == pytest.approx(value, rel=0.02, abs=0.01), frame
    if "N_specific" in case:
        power = 1 / log10(2)
        mean = (loudness.specific[RISE - 1 :].double() ** power).mean(0) ** (1 / power)
        expected = torch.tensor(case["N_specific"]["values"], dtype=torch.float64)
        torch.testing.assert_close(mean, expected, rtol=5e-3, atol=2e-3 * expected.max().item())


def test_calibration():
    """A tone of 1 kHz and 40 dB: the standard allows 0.25 %."""
    n, t = single_values(*(y[0] for y in read("tone_1k_40")))
    assert n == pytest.approx(1, abs=0.0025)
    assert t == pytest.approx(1, abs=0.0025)


@pytest.mark.parametrize("fs", [44100, 32000])
def test_other_rates(fs):
    recipe = CASES["tone_1k_40"]["recipe"]
    short = {"duration": 0.6, "components": [{**recipe["components"][0], "duration": 0.6}]}
    x = torch.from_numpy(render(short, fs)[:, 0]).float()
    stages = ECMALoudness(fs).stages()
    loudness = stages.pop("loudness")
    assert [*ECMATonality(fs).stages()] == [*stages, "tonality"]
    with torch.no_grad():
        parts = aligned(Chain(**stages), x)
        n, t = loudness.step(parts, {})[0].n, ECMASpecificTonality().step(parts, {})[0]
    assert float(n[90]) == pytest.approx(1, abs=0.005)
    assert float(t.t[90]) == pytest.approx(1, abs=0.005)
    assert float(t.hz[90]) == pytest.approx(1000, abs=1.5)


def test_a_diffuse_field():
    """Of the calibration tone, as another program reads it."""
    recipe = CASES["tone_1k_40"]["recipe"]
    x = torch.from_numpy(render(recipe, 48000)[: 48000 * 3 // 5, 0]).float()
    with torch.no_grad():
        assert float(ECMALoudness(field="diffuse")(x).n[100]) == pytest.approx(1.0123, abs=1e-3)


def test_silence_has_no_loudness_and_no_tone():
    x = torch.zeros(2, 8192)
    assert not ECMALoudness()(x).n.any()
    assert not ECMATonality()(x).t.any()


def test_what_was_louder_is_forgotten():
    """1.2 s after noise or a tone 50 dB above: 0.05 phon are 0.35 % of N."""
    t = torch.arange(int(1.6 * 48000)) / 48000
    quiet, loud = (0.003 * noise(len(t), seed=seed).float() for seed in (3, 4))
    tone = 1.4 * torch.sin(2 * torch.pi * 300 * t)
    before = torch.stack([0 * t, 316 * loud, tone]) * (t < 0.3)
    with torch.no_grad():
        parts = aligned(hearing_model(), before + quiet * (t >= 0.3))
        n, t = (
            last().step(parts, {})[0][0] for last in (ECMASpecificLoudness, ECMASpecificTonality)
        )
    at = int((0.3 + ECMALoudness().memory_s) * 187.5)
    assert ((n[1:, at:] / n[:1, at:] - 1).abs() < 0.0035).all()
    assert ((t[1:, at:] - t[:1, at:]).abs() < 0.002).all()
