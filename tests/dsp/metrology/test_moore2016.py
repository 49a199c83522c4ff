"""Moore2016 against published loudness, the authors' program and independent calculations."""

import inspect
import json
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch

from amt_stream import Moore2016, aligned
from amt_stream.dsp.scales import P0, phon_to_sone, sone_to_phon
from amt_stream.dsp.streaming import map_fields
from tests.data.bursts import DB_SPL, HZ, MS, off_by_burst
from tests.data.synth import render

DATA = Path(__file__).parents[2] / "data"
CASES = json.loads((DATA / "tvl_cases.json").read_text())["cases"]
AUTHOR = json.loads((DATA / "author_program_traces.json").read_text())["cases"]
AT_48 = pytest.param(48000, marks=pytest.mark.soak)
"""`test_traces_of_the_authors_program` and `test_the_same_reading_at_every_rate` have it always."""
RATES = (32000, 44100, AT_48)
DEFAULTS = inspect.signature(Moore2016).parameters


@cache
def model(fs, field="free", **options):
    return Moore2016(fs, field, **options)


def measure(recipe, fs=32000, field="free", dtype=torch.float32, **options):
    """Output for a recipe, frames k = 0 .. duration in ms, that at the very end included."""
    options = {k: v for k, v in options.items() if v != DEFAULTS[k].default}
    return measured(json.dumps(recipe, sort_keys=True), fs, field, dtype, **options)


@cache
def measured(recipe, fs, field, dtype, **options):
    """The same of a recipe as text; tests that ask for one sound share what it gives."""
    recipe = json.loads(recipe)
    pascal = torch.tensor(render(recipe, fs).T, dtype=dtype)[None]
    pascal = torch.nn.functional.pad(pascal, (0, -(-fs // 1000)))
    with torch.no_grad():
        y = aligned(model(fs, field, **options).to(dtype), pascal)
    last = int(recipe["duration"] * 1000 + 1e-6)
    y = map_fields(lambda v, dim: v.narrow(dim, 0, last + 1), y, type(y)(-1, -1, -1, -1, -2, -2))
    return type(y)(*(v if v is None else v.squeeze(0).double().numpy() for v in y))


def tone(f, level, duration=1.5, ramp=0.1, ear="both", **more):
    component = {"kind": "tone", "frequency": f, "level_db_spl": level, "duration": duration}
    return {"duration": duration, "components": [component | {"ramp": ramp, "ear": ear} | more]}


def phon_off(got, expected):
    return float(sone_to_phon(got) - sone_to_phon(expected))


def lowest(recipe):
    return min((c.get("frequency", 1000.0) for c in recipe["components"]), default=1000.0)


@pytest.mark.cases(10)
@pytest.mark.parametrize("fs", RATES)
@pytest.mark.parametrize("case", CASES, ids=lambda c: c["id"])
def test_maxima(case, fs):
    """With linear phase at one rate: `test_traces_of_the_authors_program` has it at all."""
    expected = case["oracle"]
    for phase, tolerance in (("mixed", 0.03), ("linear", 0.02))[: 2 if fs == RATES[0] else 1]:
        y = measure(case["recipe"], fs, case["field"], ear_filter=phase)
        for got, want in ((y.stl, "max_stl_sone"), (y.ltl, "max_ltl_sone")):
            assert abs(phon_off(got.max(), expected[want])) <= tolerance, (phase, want)
        published = case.get("published", {}).get("max_ltl_phon")
        if published is not None:
            assert abs(sone_to_phon(y.ltl.max()) - published) <= 1.0


@pytest.mark.cases(9)
@pytest.mark.parametrize(
    ("fs", "tolerance"),
    [(32000, 0.02), (44100, 0.05), pytest.param(48000, 0.05, marks=pytest.mark.soak)],
)
@pytest.mark.parametrize("case", CASES, ids=lambda c: c["id"])
def test_traces_of_the_reference_mode(case, fs, tolerance):
    y = measure(case["recipe"], fs, case["field"], ear_filter="linear")
    step = case["trace"]["step_ms"]
    for got, want in ((y.stl, "stl_sone"), (y.ltl, "ltl_sone")):
        expected = np.array(case["trace"][want])
        got = got[::step]
        assert got.size == expected.size
        audible = expected > phon_to_sone(20.0)
        off = np.abs(sone_to_phon(got) - sone_to_phon(expected))[audible]
        assert off.max(initial=0.0) <= tolerance
        # Below 20 phon the phon scale is steep: there the sone itself is compared.
        assert np.abs(got - expected)[~audible].max(initial=0.0) <= 1e-3


@pytest.mark.parametrize("fs", RATES)
@pytest.mark.parametrize("case", CASES, ids=lambda c: c["id"])
def test_traces_of_the_default_mode(case, fs):
    """The stated tolerance of anyone's meter: 95 % of STL, all of LTL."""
    y = measure(case["recipe"], fs, case["field"])
    step = case["trace"]["step_ms"]
    stl, ltl = (np.array(case["trace"][key]) for key in ("stl_sone", "ltl_sone"))
    off = np.abs(sone_to_phon(y.stl[::step]) - sone_to_phon(stl)), np.abs(y.stl[::step] - stl)
    assert np.mean((off[0] <= 1.0) | (off[1] <= 0.05)) >= 0.95
    off = np.abs(sone_to_phon(y.ltl[::step]) - sone_to_phon(ltl)), np.abs(y.ltl[::step] - ltl)
    assert np.all((off[0] <= 0.5) | (off[1] <= 0.03))


@pytest.mark.parametrize("fs", [32000, 44100, 48000])
@pytest.mark.parametrize("phase", ["mixed", "linear"])
@pytest.mark.parametrize("case", AUTHOR, ids=lambda c: c["id"])
def test_traces_of_the_authors_program(case, phase, fs):
    y = measure(case["recipe"], fs, case["field"], ear_filter=phase)
    for got, want, phon, sone in ((y.stl, "stl_sone", 0.3, 0.05), (y.ltl, "ltl_sone", 0.2, 0.03)):
        expected = np.array(case[want])
        got = got[: expected.size]
        close = np.abs(sone_to_phon(got) - sone_to_phon(expected)) <= phon
        assert np.all(close | (np.abs(got - expected) <= sone))


def test_author_constants_follow_the_authors_program():
    case = AUTHOR[0]
    options = {"ear_filter": "linear", "constants": "author"}
    y = measure(case["recipe"], field=case["field"], **options)
    for got, want in ((y.stl, "stl_sone"), (y.ltl, "ltl_sone")):
        expected = np.array(case[want])
        off = np.abs(sone_to_phon(got[: expected.size]) - sone_to_phon(expected))
        assert off[expected > phon_to_sone(20.0)].max() <= 0.02


@pytest.mark.cases(4)
@pytest.mark.parametrize(
    "case",
    [case for case in CASES if "author_constants_max_stl_sone" in case["oracle"]],
    ids=lambda c: c["id"],
)
def test_maxima_with_the_authors_constants(case):
    y = measure(case["recipe"], field=case["field"], ear_filter="linear", constants="author")
    for got, want in ((y.stl, "max_stl_sone"), (y.ltl, "max_ltl_sone")):
        expected = case["oracle"][f"author_constants_{want}"]
        # Low tones lie on the curved part of the tables, which that program interpolates by pchip.
        assert abs(phon_off(got.max(), expected)) <= (
            0.02 if lowest(case["recipe"]) > 125 else 0.05
        )


@pytest.mark.parametrize("fs", [32000, 44100, 48000, 96000])
def test_the_tone_that_defines_one_sone(fs):
    y = measure(tone(1000, 40), fs)
    assert y.stl.max() == pytest.approx(1.0, abs=0.005)
    assert y.ltl.max() == pytest.approx(1.0, abs=0.005)


# ISO 532-3:2023 Annex B and C (printed), and what the method gives with a linear ear filter.
PRINTED = [
    (tone(1000, 20), "free", 0.14, 0.1376),
    (tone(1000, 40), "free", 1.00, 1.0005),
    (tone(1000, 60), "free", 4.1, 4.1096),
    (tone(1000, 80), "free", 15.4, 15.240),
    (tone(3000, 40), "free", 1.9, 1.948),
    (tone(3000, 80), "free", 26.4, 26.35),
    (tone(4000, 40), "free", float(phon_to_sone(48.9)), float(phon_to_sone(48.98))),
    (tone(1000, 40, ear="left"), "eardrum", 0.54, 0.5413),
    (tone(1000, 60, ear="left"), "eardrum", 2.3, 2.3066),
]


@pytest.mark.parametrize(("recipe", "field", "printed", "calculated"), PRINTED)
def test_printed_loudness(recipe, field, printed, calculated):
    for phase, tolerance in (("linear", 0.02), ("mixed", 0.03)):
        n = measure(recipe, field=field, ear_filter=phase).ltl.max()
        assert abs(phon_off(n, printed)) <= 1.0
        assert abs(phon_off(n, calculated)) <= tolerance


@pytest.mark.parametrize(
    ("f", "level", "field", "ear", "sone"),
    [
        (63, 70, "free", "both", 1.265),
        (250, 60, "free", "both", 2.429),
        (2000, 60, "free", "both", 5.235),
        (8000, 60, "free", "both", 2.071),
        (1000, 100, "free", "both", 64.5),
        (3000, 60, "diffuse", "both", 6.863),
        (1000, 60, "free", "left", 2.740),
    ],
)
def test_steady_tones(f, level, field, ear, sone):
    for phase, tolerance in (("linear", 0.02), ("mixed", 0.03)):
        y = measure(tone(f, level, 1.2, ear=ear), field=field, ear_filter=phase)
        assert abs(phon_off(np.median(y.stl[600:1000]), sone)) <= tolerance


BURSTS_MS = (10, 20, 50, 100, 200, 500)


@pytest.mark.parametrize(
    ("ramp", "stl", "ltl"),
    [
        (
            0.002,
            (2.147, 2.891, 3.873, 4.181, 4.214, 4.214),
            (0.526, 0.809, 1.538, 2.463, 3.480, 4.083),
        ),
        (
            0.0,
            (3.406, 4.001, 4.658, 4.825, 4.832, 4.831),
            (0.866, 1.157, 1.859, 2.712, 3.616, 4.141),
        ),
    ],
)
def test_bursts(ramp, stl, ltl):
    for ms, stl_max, ltl_max in zip(BURSTS_MS, stl, ltl, strict=True):
        recipe = tone(1000, 60, ms / 1000, ramp, start=0.1)
        recipe["duration"] = 0.5 + ms / 1000
        for phase, tolerance in (("linear", 0.02), ("mixed", 0.03)):
            y = measure(recipe, ear_filter=phase)
            assert abs(phon_off(y.stl.max(), stl_max)) <= tolerance
            assert abs(phon_off(y.ltl.max(), ltl_max)) <= tolerance


def test_short_bursts_are_as_loud_as_through_the_linear_phase_filter():
    """1 to 100 ms, 100 Hz to 8 kHz, 40 to 80 dB; with the other ramps and fields in tests/soak."""
    off = off_by_burst(lambda phase: Moore2016(ear_filter=phase), ramps_ms=(0.5,))
    assert {key[:3] for key in off} == set(product(MS, HZ, DB_SPL))
    assert {key: v for key, v in off.items() if np.abs(v).max() > 0.03} == {}


def test_step_has_no_overshoot_but_its_end_has():
    recipe = next(case["recipe"] for case in CASES if case["id"] == "step_1kHz_50_to_70dB")
    y = measure(recipe, ear_filter="linear")
    phon = sone_to_phon(y.stl)
    assert phon[620:1100].max() == pytest.approx(69.96, abs=0.02)
    assert 620 + phon[620:1100].argmax() == pytest.approx(705, abs=2)
    assert phon.max() == pytest.approx(72.1, abs=0.05)
    assert phon.argmax() == 1200
    y = measure({**recipe, "duration": 1.4}, ear_filter="linear")
    assert sone_to_phon(y.stl.max()) == pytest.approx(72.5, abs=0.05)
    assert y.stl.argmax() == 1202


def test_long_term_loudness_is_smoothed_in_each_ear_before_the_sum():
    case = next(case for case in CASES if case["id"] == "ltl_order")
    for phase, tolerance in (("linear", 0.001), ("mixed", 0.03)):
        y = measure(case["recipe"], ear_filter=phase)
        assert abs(phon_off(y.ltl.max(), 8.25155)) <= tolerance
        assert y.ltl.max() > y.stl.max()


def test_decay_after_the_sound_is_exponential():
    recipe = {**tone(1000, 60, 0.5, 0.005), "duration": 2.0}
    y = measure(recipe, dtype=torch.float64)
    for trace, seconds, start, stop in (
        (y.stl, -1e-3 / np.log(1 - 0.033), 600, 700),
        (y.ltl, -1e-3 / np.log(1 - 0.00133), 800, 1900),
    ):
        slope = np.polyfit(np.arange(start, stop) * 1e-3, np.log(trace[start:stop]), 1)[0]
        assert -1 / slope == pytest.approx(seconds, rel=1e-3)
    assert -1e-3 / np.log(1 - 0.033) == pytest.approx(0.0298, abs=1e-4)
    assert -1e-3 / np.log(1 - 0.00133) == pytest.approx(0.751, abs=1e-3)


NOISE = {
    "duration": 0.4,
    "components": [
        {"kind": "noise", "low": 50, "high": 14000, "level_db_spl": 65, "seed": seed, "ear": ear}
        | {"duration": 0.4, "ramp": 0.01}
        for seed, ear in ((3, "left"), (4, "right"))
    ],
}


def test_swapped_ears_and_polarity_change_nothing():
    x = torch.tensor(render(NOISE).T)[None]
    stage = Moore2016(specific_loudness=True).double()
    with torch.no_grad():
        y, swapped, inverted = stage(x), stage(x.flip(-2)), stage(-x)
    assert torch.equal(y.stl, swapped.stl)
    assert torch.equal(y.ltl_ears, swapped.ltl_ears.flip(-2))
    assert torch.equal(y.specific_loudness, swapped.specific_loudness.flip(1))
    assert torch.equal(y.stl, inverted.stl)
    assert torch.equal(y.ltl, inverted.ltl)


def test_two_ears_are_one_and_a_half_times_one():
    both, left = (measure(tone(1000, 60, ear=ear), dtype=torch.float64) for ear in ("both", "left"))
    assert both.ltl.max() / left.ltl.max() == pytest.approx(1.5, abs=1e-4)


def test_silence_is_exactly_nothing():
    y = measure({"duration": 0.3, "components": []})
    assert y.stl.max() == 0
    assert y.ltl.max() == 0


def test_nothing_sounds_before_the_sound():
    """Frames for t < 0 come first in a stream, read 0, and leave the smoothing untouched."""
    recipe = tone(1000, 50, 0.2, 0.0)
    x = torch.tensor(render(recipe, 48000).T, dtype=torch.float32)[None]
    with torch.no_grad():
        y = model(48000).float()(x)
    assert y.stl[0, :44].abs().max() == 0
    assert y.stl[0, 44] > 0
    assert y.stl[0, 44:] == pytest.approx(measure(recipe, 48000).stl[: y.stl.shape[1] - 44])


@pytest.mark.cases(2)
@pytest.mark.parametrize("f", [50, 100, 440, 1000, 3150, 8000, 12000])
def test_the_same_reading_at_every_rate(f):
    reference, *others = (
        np.median(measure(tone(f, 60, 0.8), fs, dtype=torch.float64).stl[400:600])
        for fs in (32000, 44100, 48000, 96000)
    )
    for n in others:
        assert n == pytest.approx(reference, rel=5e-4)


def test_float32_agrees_with_float64():
    for case in CASES[::3]:
        single = measure(case["recipe"], field=case["field"])
        double = measure(case["recipe"], field=case["field"], dtype=torch.float64)
        for a, b in ((single.stl, double.stl), (single.ltl, double.ltl)):
            audible = b > phon_to_sone(20.0)
            off = np.abs(sone_to_phon(a) - sone_to_phon(b))[audible]
            assert off.max(initial=0.0) <= 1e-4


def farthest(recipe, accuracy, field="free"):
    """From the reference, in phon, of the audible part of both traces."""
    reference = measure(recipe, field=field, accuracy="reference")
    y = measure(recipe, field=field, accuracy=accuracy)
    worst = 0.0
    for a, b in ((y.stl, reference.stl), (y.ltl, reference.ltl)):
        off = np.abs(sone_to_phon(a) - sone_to_phon(b))[b > phon_to_sone(20.0)]
        worst = max(worst, off.max(initial=0.0))
    return worst


GROUPS = [("exact", 0.001), ("coarse", 0.011)]


@pytest.mark.parametrize(("accuracy", "limit"), GROUPS)
def test_components_in_groups_are_as_near_to_those_one_by_one_as_stated(accuracy, limit):
    for case in CASES[::4]:
        assert farthest(case["recipe"], accuracy, case["field"]) <= limit


@pytest.mark.parametrize("f", [63, 1000])
@pytest.mark.parametrize("level", [100, 132, 140])
@pytest.mark.parametrize(("accuracy", "limit"), GROUPS)
def test_groups_are_near_where_slopes_are_at_their_flattest(accuracy, limit, level, f):
    recipe = tone(f, level, 0.15, 0.02)
    # Beyond 120 phon the table of phon ends: there it is sone, of which 0.01 % are 0.001 phon.
    y, reference = (measure(recipe, accuracy=kind) for kind in (accuracy, "reference"))
    loud = reference.stl > 0.01 * reference.stl.max()
    assert np.abs(y.stl / reference.stl - 1)[loud].max() <= 0.07 * limit
    assert farthest(recipe, accuracy) <= limit


def test_components_are_selected_in_both_ears_together():
    """A soft tone 65 dB below a loud one in the other ear is dropped, whole."""
    loud = {"kind": "tone", "frequency": 1000, "level_db_spl": 95, "duration": 0.6, "ramp": 0.05}
    soft = {**loud, "frequency": 4000, "level_db_spl": 30}
    recipe = {"duration": 0.6, "components": [{**loud, "ear": "left"}, {**soft, "ear": "right"}]}
    y = measure(recipe, field="eardrum", excitation_db=True)
    assert np.all(y.excitation_db[1, 200:400] == -100)
    alone = {"duration": 0.6, "components": [{**soft, "ear": "right"}]}
    assert measure(alone, field="eardrum").stl[400] > 0.1


def test_pascal_and_full_scale():
    """calibration of the recipes themselves: 1 Pa rms is 93.98 dB SPL."""
    pascal = render(tone(1000, 94))
    assert np.sqrt(np.mean(pascal[8000:24000, 0] ** 2)) == pytest.approx(1.00237, abs=1e-4)
    assert P0 == 2e-5
