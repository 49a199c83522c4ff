"""Glasberg2002 against the tables of ANSI S3.4-2007 and independent calculations of the method."""

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch

from amt_stream import (
    Excitation,
    Glasberg2002,
    MonauralLoudness,
    Moore2016,
    Rebuffer,
    Stream,
    aligned,
    check_stage,
    glasberg2002_from_lines,
)
from amt_stream.dsp.scales import phon_to_sone, sone_to_phon
from amt_stream.dsp.stages.moore.specific_loudness import channel_constants
from tests.data.synth import render
from tests.dsp.chunks import pushed

FILE = Path(__file__).parents[2] / "data" / "steady_tables.json"
ANSI = {case["case"]: case for case in json.loads(FILE.read_text())["ansi_s34_2007"]}


def phon(n):
    return sone_to_phon(n, Glasberg2002.edition)


@cache
def model(fs, **options):
    return Glasberg2002(fs, **options)


def measure(recipe, fs=32000, ears=slice(1), dtype=torch.float32, **options):
    """Output for a recipe, frames k = 0, 1, ... in ms; one ear is the sound at both."""
    pascal = torch.tensor(render(recipe, fs).T[ears].copy(), dtype=dtype)
    with torch.no_grad():
        y = aligned(model(fs, **options).to(dtype), pascal)
    return type(y)(*(v.double().numpy() for v in y))


def tone(f, level, duration=0.5, ramp=0.05, **more):
    component = {"kind": "tone", "frequency": f, "level_db_spl": level, "duration": duration}
    return {"duration": duration, "components": [component | {"ramp": ramp} | more]}


def settled(recipe, **options):
    return np.median(measure(recipe, **options).stl[300:420])


def slices(low, high, width):
    """Centers of `n` equal slices about `width` Hz wide, and `n`."""
    n = max(1, round((high - low) / width))
    return low + (np.arange(n) + 0.5) * (high - low) / n, n


def third_octaves(level):
    f, db = [], []
    for i in range(-16, 13):
        low, high = (1000 * 10 ** ((i + side) / 10) for side in (-0.5, 0.5))
        centers, n = slices(low, high, 1 if i <= -9 else 10)
        f += [*centers]
        db += [level - 10 * np.log10(n)] * n
    return f, db


def noise_band(low, high, density):
    f, n = slices(low, high, 10)
    return [*f], [density + 10] * n


def spectrum(case):
    """Frequencies and levels of the lines of a row of the table, by its notation."""
    words = case.split()
    level = float(words[-1].lstrip("d")) if words[-1][-1].isdigit() else None
    if words[0] in ("T7", "ex2", "ex4"):
        return [{"1k": 1000.0, "3k": 3000.0, "100": 100.0}[words[1]]], [level]
    if words[0] == "noise":
        return noise_band(500, 1500, level)
    if words[0] == "pink":
        f, _ = slices(50, 15000, 10)
        return [*f], [*(level + 10 - 10 * np.log10(f / 1000))]
    if words[0] == "third-oct":
        return third_octaves(level)
    if case == "3 tones wide":
        return [1000, 1600, 2400], [60] * 3
    assert case == "tone+noise"
    f, db = noise_band(950, 1050, 40)
    return [1000, *f], [60, *db]


def steady(f, db, **options):
    levels = torch.tensor(db, dtype=torch.float64)[None]
    return glasberg2002_from_lines(levels, f, **options).n.item()


@pytest.mark.parametrize("case", ANSI)
def test_the_standards_table_of_steady_sounds(case):
    """Printed in ANSI S3.4-2007: 2 % or rounding. Calculated on channels 0.1 Cam apart: 0.5 %."""
    n = steady(*spectrum(case))
    printed, calculated = ANSI[case]["published_sone"], ANSI[case]["oracle_sone"]
    digits = len(str(printed).partition(".")[2])
    assert abs(n - printed) <= max(0.02 * printed, 0.5 * 10**-digits)
    assert abs(n - calculated) <= max(0.005 * calculated, 2e-4)


def test_phon_of_a_tone_at_1_khz_are_its_level():
    for level in (0, 4, 15, 40, 75, 115):
        y = glasberg2002_from_lines(torch.tensor([[float(level)]]), [1000.0])
        assert y.phon.item() == pytest.approx(level, abs=0.2 if level < 10 else 0.05)
    assert phon(0.997) == pytest.approx(40)
    assert phon_to_sone(120, "ansi-s3.4") == pytest.approx(341.982)
    assert (phon(0.0), phon(1e4)) == (0, 120)


def test_ears_are_summed_and_one_stands_for_two():
    f, db = [200.0, 1000.0, 4000.0], [50.0, 40.0, 60.0]
    both = steady(f, db)
    assert steady(f[::-1], db[::-1]) == pytest.approx(both, rel=1e-12)
    left = torch.tensor([db, [-torch.inf] * 3], dtype=torch.float64)
    assert glasberg2002_from_lines(left, f).n.item() == pytest.approx(both / 2, rel=1e-12)
    assert steady([1000.0], [40.0 - 2.6]) == pytest.approx(
        steady([1000.0], [40.0], field="eardrum"), rel=1e-9
    )
    many = torch.tensor(db).expand(5, 4, 2, 3)
    assert glasberg2002_from_lines(many, f).phon.shape == (5, 4)


def test_lines_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match=r"levels of shape \(..., 1 or 2, line\), given \(3, 1\)"):
        glasberg2002_from_lines(torch.zeros(3, 1), [1000.0])
    with pytest.raises(ValueError, match=r"\(1, 2\) and frequencies of shape \(1,\): give a freq"):
        glasberg2002_from_lines(torch.zeros(1, 2), [1000.0])
    with pytest.raises(TypeError, match=r"takes a real tensor, not list: give torch.tensor"):
        glasberg2002_from_lines([[40.0]], [1000.0])
    with pytest.raises(ValueError, match=r"frequency is \[ *0.* above 0 and ascending"):
        glasberg2002_from_lines(torch.zeros(1, 2), [1000.0, 0.0])
    with pytest.raises(ValueError, match="are taken one by one: leave accuracy exact"):
        Excitation("coarse", frequency=[1000.0])


def test_constants_of_the_standard():
    """From 500 Hz up: 3.73 dB, A = 4.72096, alpha = 0.2, no gain."""
    ansi = channel_constants("ansi")
    assert ansi["c"] == 0.046871
    assert ansi["threshold"][-1] == pytest.approx(2.36048, rel=2e-6)
    high = [ansi[key][-1] for key in ("a", "alpha", "gain")]
    assert high == pytest.approx([4.72096, 0.2, 1.0], rel=1e-9)


TONES = [
    (1000, 20, 0.1370),
    (1000, 40, 0.9967),
    (1000, 60, 4.096),
    (1000, 80, 15.20),
    (3000, 40, 1.941),
    (100, 50, 0.355),
    (4000, 60, 7.13),
]
RATES = [32000, *(pytest.param(fs, marks=pytest.mark.soak) for fs in (44100, 48000, 96000))]


@pytest.mark.parametrize("fs", RATES)
@pytest.mark.parametrize(("f", "level", "sone"), TONES)
def test_steady_tones(f, level, sone, fs):
    """Free field, both ears; calculated independently, printed to four digits or fewer."""
    for phase, tolerance in (("linear", 0.02), ("mixed", 0.03)):
        n = settled(tone(f, level), fs=fs, ear_filter=phase)
        assert abs(phon(n) - phon(sone)) <= tolerance, phase


def test_level_steps():
    soft, middle, loud = (settled(tone(1000, level)) for level in (40, 60, 80))
    assert middle / soft == pytest.approx(4.11, abs=0.01)
    assert loud / middle == pytest.approx(3.71, abs=0.01)


BURSTS = {
    10: (1.437, 0.430),
    50: (3.601, 1.525),
    100: (4.041, 2.418),
    200: (4.095, 3.429),
    500: (4.096, 4.061),
}


@pytest.mark.parametrize("fs", RATES)
@pytest.mark.parametrize("ms", BURSTS)
def test_bursts(ms, fs):
    """1 kHz, 60 dB, ramps of 5 ms; calculated independently."""
    recipe = tone(1000, 60, ms / 1000, 0.005, start=0.1)
    recipe["duration"] = 0.25 + ms / 1000
    # At 44.1 kHz a ramp has 220 samples, half a sample too few.
    for phase, tolerance in (("linear", 0.03 if fs == 44100 else 0.02), ("mixed", 0.04)):
        y = measure(recipe, fs, ear_filter=phase)
        for got, expected in zip((y.stl, y.ltl), BURSTS[ms], strict=True):
            assert abs(phon(got.max()) - phon(expected)) <= tolerance, phase


@pytest.mark.parametrize("release", [0.0005, 0.005])
def test_decay_after_the_sound_is_exponential(release):
    """49.5 ms; 2.0 s, or 199.5 ms with the other release that is published."""
    recipe = {**tone(1000, 60, 0.3, 0.005), "duration": 1.2}
    y = measure(recipe, dtype=torch.float64, ltl_release=release)
    for trace, seconds, start, stop in (
        (y.stl, 0.0495, 400, 600),
        (y.ltl, {0.0005: 1.9995, 0.005: 0.1995}[release], 1100, 1160),
    ):
        slope = np.polyfit(np.arange(start, stop) * 1e-3, np.log(trace[start:stop]), 1)[0]
        assert -1 / slope == pytest.approx(seconds, rel=1e-3 if trace is y.stl else 5e-3)


def test_long_term_loudness_reaches_what_it_falls_to_in_float32():
    """Ten time constants, in which a float32 recursion would come to rest 0.003 phon above."""
    stage = MonauralLoudness()
    x = torch.full((1, 20000, 150), 1e5)
    x[:, :300] = 1e6
    with torch.no_grad():
        y, _ = stage.step(x, stage.initial_state((1, 150)))
    above = 1 - 0.0005
    gap = (y.ltl[400] - y.stl[-1]) * above ** (20000 - 401)
    assert (y.ltl[-1] / y.stl[-1] - 1).item() == pytest.approx((gap / y.stl[-1]).item(), abs=2e-6)


def test_silence_is_exactly_nothing():
    y = measure({"duration": 0.2, "components": []})
    assert max(v.max() for v in y) == 0


def test_nothing_sounds_before_the_sound():
    x = torch.tensor(render(tone(1000, 50, 0.2, 0.0), 48000).T[:1], dtype=torch.float32)
    with torch.no_grad():
        y = Glasberg2002(48000)(x)
    assert y.stl[:44].abs().max() == 0
    assert y.stl[44] > 0


def test_the_binaural_model_reads_about_the_same():
    recipe = tone(1000, 60)
    pascal = torch.tensor(render(recipe).T, dtype=torch.float32)
    with torch.no_grad():
        binaural = Moore2016()(pascal).stl[300:420].median().item()
    assert abs(phon(settled(recipe)) - sone_to_phon(binaural)) <= 0.3


def both_ears():
    """A loud tone on the left, on the right one that is more than 60 dB softer."""
    loud, soft = tone(1000, 95, 0.4), tone(4000, 30, 0.4)
    sides = zip((loud, soft), ("left", "right"), strict=True)
    return {"duration": 0.4, "components": [r["components"][0] | {"ear": e} for r, e in sides]}


def test_each_ear_is_on_its_own():
    """No inhibition, and components selected in each ear alone."""
    y = measure(both_ears(), ears=slice(2), dtype=torch.float64)
    for i in range(2):
        alone = measure(both_ears(), ears=slice(i, i + 1), dtype=torch.float64)
        for name in ("stl", "ltl"):
            ears = getattr(y, f"{name}_ears")
            assert ears[i] == pytest.approx(getattr(alone, name) / 2, rel=1e-9)
            assert getattr(y, name) == pytest.approx(ears.sum(0), rel=1e-12)
    assert y.stl_ears[1, 300] > 0.1


def test_one_channel_is_the_sound_at_both_ears():
    recipe = tone(440, 70, 0.3)
    one, two = (measure(recipe, ears=slice(n), dtype=torch.float64) for n in (1, 2))
    for a, b in zip(one, two, strict=True):
        assert a.shape == b.shape
        assert a == pytest.approx(b, rel=1e-9)


def noise(*shape, level_db=70):
    x = torch.randn(*shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    x = x * 20e-6 * 10 ** (level_db / 20)
    x[..., x.shape[-1] // 3 : x.shape[-1] // 2] = 0
    return x


def test_float32_agrees_with_float64():
    for recipe in (tone(1000, 80, 0.3), tone(100, 50, 0.3), both_ears()):
        single, double = (
            measure(recipe, ears=slice(2), dtype=dtype) for dtype in (torch.float32, torch.float64)
        )
        for a, b in ((single.stl, double.stl), (single.ltl, double.ltl)):
            audible = b > phon_to_sone(20.0, "ansi-s3.4")
            assert np.abs(phon(a) - phon(b))[audible].max() <= 1e-4


@pytest.mark.parametrize("recipe", [tone(4000, 40, 0.3), tone(1000, 100, 0.3)])
def test_components_in_groups_are_as_near_to_those_one_by_one_as_stated(recipe):
    reference = measure(recipe, accuracy="reference")
    for accuracy, limit in (("exact", 0.001), ("coarse", 0.011)):
        y = measure(recipe, accuracy=accuracy)
        for a, b in ((y.stl, reference.stl), (y.ltl, reference.ltl)):
            audible = b > phon_to_sone(20.0, "ansi-s3.4")
            assert np.abs(phon(a) - phon(b))[audible].max() <= limit


def test_it_refuses_what_it_cannot_hear_with():
    with pytest.raises(ValueError, match=r"1 or 2 on axis -2, given 3 in shape \(1, 3, time\)"):
        Glasberg2002()(torch.zeros(1, 3, 320))
    with pytest.raises(ValueError, match="one channel stands for two ears"):
        Stream(Glasberg2002(), ())
    for wrong in (0, 1.5, float("nan")):
        with pytest.raises(ValueError, match=f"ltl_release is {wrong}: give a coefficient per ms"):
            Glasberg2002(ltl_release=wrong)
    with pytest.raises(ValueError, match="selection is 'both': give binaural or monaural"):
        Excitation(selection="both")


def test_it_says_what_it_needs():
    assert Glasberg2002(48000).latency == Moore2016(48000).latency == 44 * 48
    assert Glasberg2002(32000, ear_filter="linear").latency == 992 + 2048
    assert (Glasberg2002().settle_s, Glasberg2002(ltl_release=0.005).settle_s) == (8.0, 0.8)


@pytest.mark.parametrize("ears", [1, 2])
@pytest.mark.parametrize("frames_before", [0, 3])
def test_monaural_loudness_keeps_the_contract(ears, frames_before):
    x = noise(2, ears, 12, 150).square() * 1e9 * torch.logspace(-1, 6, 150)
    check_stage(lambda: MonauralLoudness(frames_before), x)


@pytest.mark.parametrize("ears", [1, 2])
def test_monaural_selection_keeps_the_contract(ears):
    x = noise(2, ears, 9, 960).square() * 1e9 * torch.logspace(2, -4, 960)
    check_stage(lambda: Excitation(selection="monaural"), x)


@pytest.mark.parametrize(
    ("fs", "ears", "options"),
    [
        (32000, 1, {"field": "eardrum", "ltl_release": 0.005}),
        (48000, 2, {"accuracy": "coarse", "field": "diffuse"}),
    ],
)
def test_the_model_keeps_the_contract(fs, ears, options):
    check_stage(lambda: Glasberg2002(fs, **options), noise(2, ears, int(0.05 * fs)))


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-10), (torch.float32, 1e-5)])
@pytest.mark.parametrize("ears", [1, 2])
def test_the_same_loudness_however_the_sound_is_cut(ears, dtype, tolerance):
    x = noise(1, ears, 6000).to(dtype)
    stage = Glasberg2002(48000).to(dtype)
    with torch.no_grad():
        whole = stage(x)
        for sizes in ([7, 1], [441], [5001], [31, 1024, 1, 480, 777, 64]):
            pieces = pushed(Rebuffer(Stream(stage, (1, ears))), x, sizes)
            for name, expected in whole._asdict().items():
                got = torch.cat([getattr(y, name) for y in pieces], -1)
                assert (got - expected).abs().amax() <= tolerance * expected.amax()
