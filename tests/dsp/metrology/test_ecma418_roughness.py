"""Roughness of ECMA-418-2:2025 against other programs and an independent calculation.

Tolerances are those of `ecma418_2_roughness.json`: 2 % of R, or 0.003 asper.
"""

import json
from pathlib import Path

import numpy as np
import pytest
import scipy
import torch

from amt_stream import ECMARoughness, aligned, check_stage
from amt_stream.dsp.stages import (
    ECMAEnvelopes,
    ECMAFilterbank,
    ECMASpecificRoughness,
)
from tests.data.independent_ecma418_modulation import roughness
from tests.data.synth import render
from tests.dsp.metrology.ecma418_splits import is_the_same_in_any_split, resumes_and_rows_stay_apart

FILE = Path(__file__).parents[2] / "data" / "ecma418_2_roughness.json"
DATA = json.loads(FILE.read_text(encoding="utf-8"))
CASES = {case["id"]: case for case in DATA["cases"]}
USUAL = ("am_1k_70_60", "white_60", "nb_1k_160_60", "am_step_rough")
RISE = 16
"""Frames that the standard leaves out at the start."""


def tone(carrier, rate, depth=1.0, duration=2.0):
    part = {"kind": "am_tone", "frequency": carrier, "rate": rate, "depth": depth}
    part |= {"level_db_spl": 60, "duration": duration}
    return render({"duration": duration, "components": [part]}, 48000)[:, 0]


def read(x):
    """Roughness from frame 1 on, without the last frames, for which the sound ends."""
    with torch.no_grad():
        y = aligned(ECMARoughness(), torch.from_numpy(x).float())
    keep = x.size // 4096 * 4096 // 960 - 4
    return y.r[:keep].double().numpy(), y.specific[:keep].double().numpy()


def single_value(r):
    """The value exceeded in 10 % of the time (ECMA-418-2:2025, 7.1.10)."""
    return np.percentile(r[RISE - 1 :], 90)


def envelopes(frames, rows=2):
    """Of modulated noise, at any rate."""
    generator = torch.Generator().manual_seed(0)
    t = torch.arange(30 * frames, dtype=torch.float64) / 1500
    x = torch.rand(rows, 2, 53, t.numel(), generator=generator, dtype=torch.float64)
    x = 0.01 + 0.003 * x - 0.009 * torch.cos(2 * torch.pi * 70 * t)
    x[:, 1] = 0.25 * x[:, 0].square()
    return x


def test_the_envelopes_keep_the_contract():
    x = torch.randn(2, 32 * 12 + 5, generator=torch.Generator().manual_seed(0))
    check_stage(ECMAEnvelopes, x)


def test_envelopes_are_those_of_the_bands():
    x = torch.from_numpy(tone(1000, 70, duration=0.2))
    with torch.no_grad():
        y, bands = ECMAEnvelopes().double()(x), ECMAFilterbank().double()(x)
    power = bands.clamp(min=0).square().unflatten(-1, (-1, 32)).mean(-1)
    torch.testing.assert_close(y[1], power, rtol=0, atol=1e-12 * power.max().item())
    analytic = np.abs(scipy.signal.hilbert(bands.numpy()))[:, ::32]
    middle = slice(100, 200)
    for band in (15, 16, 20):
        np.testing.assert_allclose(y[0, band, middle], analytic[band, middle], atol=2e-5)


@pytest.mark.soak
def test_roughness_keeps_the_contract():
    check_stage(ECMASpecificRoughness, envelopes(18))


def test_any_split_gives_the_same():
    x = torch.from_numpy(tone(500, 40, 0.7, duration=0.9) + 0.3 * tone(3000, 90, duration=0.9))
    cuts = [1], [7], [480], [4096], [31, 1024, 1, 777]
    assert is_the_same_in_any_split(ECMARoughness().double(), (), x, cuts) > 0.05


def test_a_stream_resumes_and_rows_stay_apart():
    x = envelopes(40, rows=3)
    x[1] = x[1].flip(-1)
    resumes_and_rows_stay_apart(ECMASpecificRoughness, x, 17)


@pytest.mark.parametrize(("carrier", "most"), [(250, 2e-3), (1000, 1e-3)])
def test_of_the_whole_sound(carrier, most):
    """With the envelopes of complex filters for those of analytic signals."""
    x = tone(carrier, 60, 0.8, duration=1.2) + 0.1 * tone(4000, 35, duration=1.2)
    expected = 0.5 * roughness(x)[1:].sum(1)
    r, _ = read(x)
    assert np.abs(r - expected[: len(r)]).max() < most * expected.max()


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[] if name in USUAL else [pytest.mark.soak]) for name in CASES],
)
def test_roughness_is_that_of_other_programs(name):
    case = CASES[name]
    r, specific = read(render(case["recipe"], 48000)[:, 0])
    assert single_value(r) == pytest.approx(case["R"]["expect"], abs=case["R"]["tol"])
    trace = case.get("trace_R", {"frames": [], "values": []})
    for frame, value in zip(trace["frames"], trace["values"], strict=True):
        if frame <= len(r):
            assert r[frame - 1] == pytest.approx(value, rel=0.02, abs=0.003), frame
    if "R_specific" in case:
        mean = specific[RISE - 1 :].mean(0)
        np.testing.assert_allclose(mean, case["R_specific"]["values"], rtol=0.02, atol=0.003)


@pytest.mark.soak
@pytest.mark.parametrize("row", DATA["rows"], ids=lambda row: f"{row[0]}_{row[1]}")
def test_the_grid_of_carriers_and_rates(row):
    carrier, rate, expected, tolerance = row
    assert single_value(read(tone(carrier, rate))[0]) == pytest.approx(expected, abs=tolerance)


def test_calibration():
    """Of full modulation of 70 Hz at 1 kHz and 60 dB: the standard allows 0.25 %."""
    assert single_value(read(tone(1000, 70))[0]) == pytest.approx(1, abs=0.0025)


def test_a_steady_tone_is_not_rough():
    assert not single_value(read(tone(1000, 70, depth=0.0))[0])


def test_silence_is_not_rough():
    assert not ECMARoughness()(torch.zeros(2, 48000)).r.any()


def test_another_rate():
    part = {"kind": "am_tone", "frequency": 1000, "rate": 70, "depth": 1.0}
    part |= {"level_db_spl": 60, "duration": 1.0}
    x = render({"duration": 1.0, "components": [part]}, 44100)[:, 0]
    with torch.no_grad():
        r = aligned(ECMARoughness(44100), torch.from_numpy(x).float()).r
    assert float(r[35]) == pytest.approx(1, abs=0.01)


def rows_of_roughness(*sounds):
    with torch.no_grad():
        return aligned(ECMARoughness(), torch.from_numpy(np.stack(sounds)).float()).r


def test_what_was_louder_is_forgotten():
    """Within 0.05 dB, which is 0.58 %, of what follows a sound 50 dB louder."""
    memory = ECMARoughness().memory_s
    quiet, start = tone(1000, 70, duration=memory + 0.9), int(0.6 * 48000)
    quiet, loud = 0.3 * quiet, 95 * quiet
    later = np.arange(quiet.size) >= start
    alone, after = rows_of_roughness(quiet * later, np.where(later, quiet, loud))
    at = int((0.6 + memory) * 50)
    assert after[at // 2] > 1.1 * alone[at // 2]  # it takes seconds
    assert ((after[at:] / alone[at:] - 1).abs() < 0.0058).all()


def test_the_start_no_longer_matters():
    """Blocks and frames begin at once every 1.28 s: a model that began so much earlier agrees."""
    x, settle = tone(1000, 70, duration=2.4), int(ECMARoughness().settle_s * 50)
    (early,), (late,) = rows_of_roughness(x), rows_of_roughness(x[61440:])
    off = (late / early[64 : 64 + len(late)] - 1).abs()
    assert off[settle // 2] > 0.05
    assert (off[settle:] < 0.002).all()


def test_the_end_is_past():
    """A sound shorter than a block still rises after its end."""
    model, end = ECMARoughness(), 0.3
    x = tone(1000, 70, duration=end + model.tail_s + 0.5)
    x *= np.arange(x.size) < end * 48000
    (y,) = rows_of_roughness(x)
    assert (y[int(end * 50) :].diff() > 0.01).any()
    assert (y[int((end + model.tail_s) * 50) :].diff() <= 0).all()
