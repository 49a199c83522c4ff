"""Deviation from independent loudness over all cases and rates, worst and root mean square."""

import numpy as np
import pytest

from amt_stream.scales import phon_to_sone, sone_to_phon
from tests.metrology.test_moore2016 import CASES, RATES, lowest, measure, phon_off, tone

pytestmark = pytest.mark.soak


@pytest.mark.parametrize(
    ("options", "limit", "low_limit"),
    [
        ({"ear_filter": "linear"}, 0.02, 0.02),
        ({}, 0.1, 0.2),
        ({"accuracy": "grouped"}, 0.1, 0.2),
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


def test_grouped_against_exact(record):
    worst = 0.0
    for case in CASES:
        exact = measure(case["recipe"], field=case["field"])
        grouped = measure(case["recipe"], field=case["field"], accuracy="grouped")
        for a, b in ((grouped.stl, exact.stl), (grouped.ltl, exact.ltl)):
            off = np.abs(sone_to_phon(a) - sone_to_phon(b))[b > phon_to_sone(20.0)]
            worst = max(worst, off.max(initial=0.0))
    record("traces, grouped against exact, above 20 phon", f"worst {worst:.4f} phon")
    assert worst <= 0.05


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
