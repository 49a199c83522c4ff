"""Deviation from independent loudness over all cases and rates, worst and root mean square."""

import numpy as np
import pytest

from amt_stream import Glasberg2002, Moore2016
from amt_stream.dsp.scales import phon_to_sone, sone_to_phon
from tests.data.bursts import off_by_burst
from tests.dsp.metrology.test_moore2016 import (
    CASES,
    GROUPS,
    farthest,
    lowest,
    measure,
    phon_off,
    tone,
)

pytestmark = pytest.mark.soak

RATES = (32000, 44100, 48000)
RAMPS_MS = (0, 1, 2)


@pytest.mark.parametrize(
    ("options", "limit", "low_limit"),
    [
        ({"ear_filter": "linear"}, 0.02, 0.02),
        ({}, 0.03, 0.03),
        ({"accuracy": "coarse"}, 0.03, 0.03),
    ],
)
def test_deviation_of_the_maxima(record, options, limit, low_limit):
    ordinary, low = [], []
    for fs in RATES:
        for case in CASES:
            y = measure(case["recipe"], fs, case["field"], **options)
            for got, want in ((y.stl, "max_stl_sone"), (y.ltl, "max_ltl_sone")):
                off = phon_off(got.max(), case["oracle"][want])
                (ordinary if lowest(case["recipe"]) >= 125 else low).append(abs(off))
    everything = np.array(ordinary + low)
    record(
        f"maxima of STL and LTL, {len(CASES)} cases at {len(RATES)} rates, {options or 'default'}",
        f"worst {max(ordinary):.4f} phon, below 125 Hz {max(low):.4f}, "
        f"rms {np.sqrt(np.mean(everything**2)):.4f}",
    )
    assert max(ordinary) <= limit
    assert max(low) <= low_limit


@pytest.mark.parametrize("model", [Moore2016, Glasberg2002])
@pytest.mark.parametrize("field", ["free", "diffuse", "eardrum"])
@pytest.mark.parametrize("fs", [32000, 48000])
def test_short_bursts(record, fs, field, model):
    off = off_by_burst(lambda phase: model(fs, field, ear_filter=phase), RAMPS_MS, fs)
    stl, ltl = np.abs(list(off.values())).max(0)
    record(
        f"{len(off)} bursts of 1 to 100 ms, 100 Hz to 8 kHz, 40 to 80 dB SPL, {model.__name__}, "
        f"{field}, {fs} Hz: default re linear-phase ear filter",
        f"maximum of STL {stl:.4f} phon off at worst, of LTL {ltl:.4f}",
    )
    assert max(stl, ltl) <= 0.03


def test_printed_loudness_and_the_definition_of_the_sone(record):
    cases = [case for case in CASES if case.get("published", {}).get("max_ltl_phon")]
    off = [
        sone_to_phon(measure(case["recipe"], field=case["field"]).ltl.max())
        - case["published"]["max_ltl_phon"]
        for case in cases
    ]
    record(
        f"loudness level printed in ISO 532-3:2023, Annex B and C, {len(off)} values, default",
        f"worst {np.abs(off).max():.2f} phon",
    )
    sone = [measure(tone(1000, 40), fs).ltl.max() for fs in (32000, 44100, 48000, 96000)]
    record(
        "1 kHz, 40 dB SPL, free field, both ears, from 32, 44.1, 48 and 96 kHz",
        ", ".join(f"{n:.5f}" for n in sone) + " sone",
    )
    assert np.abs(off).max() <= 1.0
    assert np.abs(np.array(sone) - 1).max() <= 0.005


def random_recipe(rng):
    """Tones and noise of any level from 0 to 140 dB, together or in one ear."""
    duration, components = 0.3, []
    for _ in range(rng.integers(1, 5)):
        part = {
            "level_db_spl": float(rng.uniform(0, 140)),
            "duration": float(rng.uniform(0.05, duration)),
            "ramp": 0.005,
            "ear": str(rng.choice(["both", "left", "right"])),
        }
        if rng.random() < 0.6:
            part |= {"kind": "tone", "frequency": float(10 ** rng.uniform(1.4, 4.17))}
        else:
            part |= {
                "kind": "noise",
                "seed": int(rng.integers(1 << 30)),
                "low": 20.0,
                "high": 15000.0,
            }
        components.append(part)
    return {"duration": duration, "components": components}


@pytest.mark.parametrize(("accuracy", "limit"), GROUPS)
def test_groups_against_components_one_by_one(record, accuracy, limit):
    worst = max(farthest(case["recipe"], accuracy, case["field"]) for case in CASES)
    record(f"traces, {accuracy} against reference, above 20 phon", f"worst {worst:.5f} phon")
    rng = np.random.default_rng(0)
    random = [farthest(random_recipe(rng), accuracy, "diffuse") for _ in range(200)]
    record(
        f"200 random sounds, 0 to 140 dB, {accuracy} against reference, above 20 phon",
        f"worst {max(random):.5f} phon, median {np.median(random):.5f}",
    )
    assert max(worst, *random) <= limit


@pytest.mark.parametrize("fs", RATES)
def test_deviation_of_the_traces(record, fs):
    worst = {"STL": 0.0, "LTL": 0.0}
    for case in CASES:
        y = measure(case["recipe"], fs, case["field"], ear_filter="linear")
        for name, trace in (("STL", y.stl), ("LTL", y.ltl)):
            expected = np.array(case["trace"][f"{name.lower()}_sone"])
            got = trace[:: case["trace"]["step_ms"]]
            audible = expected > phon_to_sone(20.0)
            off = np.abs(sone_to_phon(got) - sone_to_phon(expected))[audible]
            worst[name] = max(worst[name], off.max(initial=0.0))
    record(
        f"traces of the reference mode above 20 phon at {fs} Hz",
        f"worst STL {worst['STL']:.4f} phon, LTL {worst['LTL']:.4f}",
    )
    assert max(worst.values()) <= (0.02 if fs == 32000 else 0.05)
