"""Sounds that begin at once or are short: statistics of them by default, however they are asked."""

import json
from itertools import product

import numpy as np
import pytest

from amt_stream.meters.rows import reading_text
from amt_stream.offline.measure import measure
from amt_stream.sessions.report import report_page
from amt_stream.sessions.results import read_results
from tests.data.synth import render

FS = 48000
LOUD = ["--full-scale-db", "100"]
FULL_SCALE = 2 * np.sqrt(2)
"""The peak of a full-scale sine in pascal, where that is 100 dB SPL."""


def pulse(level_db, on, off):
    return {
        "kind": "gauss_tone",
        "frequency": 1000,
        "level_db_spl": level_db,
        "on": on,
        "off": off,
        "sigma": 0.0011855,
        "duration": 1.0,
    }


def ramp(frequency):
    tone = {"kind": "level_ramp_tone", "frequency": frequency, "level_db_spl": 30}
    tone |= {"level_end_db_spl": 80, "duration": 10, "start": 0.1, "ramp": 0.0135}
    return {"duration": 10.6, "components": [tone]}


SIGNALS = {
    6: (14.3592, ramp(250)),
    7: (15.9534, ramp(1000)),
    8: (23.9501, ramp(4000)),
    10: (4.2998, {"duration": 1.0, "components": [pulse(70, 0.014, 0.024)]}),
    11: (5.9746, {"duration": 1.0, "components": [pulse(70, 0.014, 0.064)]}),
    12: (8.0772, {"duration": 1.0, "components": [pulse(70, 0.014, 0.514)]}),
    13: (
        9.9756,
        {"duration": 1.0, "components": [pulse(60, 0.014, 0.114), pulse(80, 0.122, 0.132)]},
    ),
}
"""Nmax in sone as ISO 532-1:2017, Annex B.4 prints it, and how to make the signal.

Edges are fitted to the standard's recordings: pulses within half a bit of 16, fades of ramps 1 %.
"""


@pytest.mark.cases(2)
@pytest.mark.parametrize("signal", SIGNALS)
def test_signals_of_the_standard_have_their_maximum(printed, sound_file, tmp_path, signal):
    """By `analyze`, `measure`, `meter` and in a report."""
    loudest, recipe = SIGNALS[signal]
    path = sound_file(render(recipe, FS)[:, 0] / FULL_SCALE)
    wanted = ["--model", "zwicker", *LOUD]
    nmax = pytest.approx(loudest, rel=5e-4)
    assert json.loads(printed("analyze", path, "--summary", *wanted))["zwicker_nmax_sone"] == nmax
    measured = measure(path, models="zwicker", calibration=100.0)
    assert measured.summary["zwicker_nmax_sone"] == nmax
    assert measured["zwicker_nmax_sone"][-1] == nmax
    kept = tmp_path / "kept.jsonl"
    kept.write_text(printed("meter", "--source", path, "--fast", *wanted, "--format", "jsonl"))
    results = read_results(kept)
    found = results.summary["zwicker_nmax_sone"]
    assert found == nmax
    assert f">{reading_text('zwicker_nmax_sone', found)}<" in report_page(results)


MODELS = ["moore2016", "gm2002", "zwicker", "bs1770", "spl", "third_octave", "spectrum"]
MAXIMA = {
    "max_stl_sone": "stl_sone",
    "max_ltl_sone": "ltl_sone",
    "gm2002_max_stl_sone": "gm2002_stl_sone",
    "gm2002_max_ltl_sone": "gm2002_ltl_sone",
    "zwicker_nmax_sone": "zwicker_n_sone",
    "sharpness_max_acum": "sharpness_acum",
    "spectrum_max_db": "spectrum_peak_db",
}
"""By what it is the maximum of, where that has a row for each frame."""


LENGTHS_S, PLACES = (0.011, 0.2, 0.51, 0.64, 1.5, 5.0), (0.0, 0.5, 1.0)
QUICK = {(0.011, 0.0), (0.2, 1.0), (0.51, 0.5), (0.64, 1.0), (1.5, 0.0), (5.0, 1.0)}
"""Each length once; `make soak` measures the others."""


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    ("length_s", "place"),
    [
        pytest.param(*one, marks=[] if one in QUICK else pytest.mark.soak)
        for one in product(LENGTHS_S, PLACES)
    ],
)
def test_ten_milliseconds_have_their_maxima(length_s, place):
    """At the start, in the middle, at the end: those of the rows, and of a file that goes on."""
    x = np.zeros(round((length_s + 0.3) * FS))
    begin = round((length_s - 0.01) * place * FS)
    x[begin : begin + 480] = 0.3 * np.sin(2 * np.pi * 1000 * np.arange(480) / FS)
    columns = [*MAXIMA, *MAXIMA.values(), "*max_db", "lcpeak_db", "lzfmax_1000hz_db"]
    wanted = {"models": MODELS, "columns": columns, "calibration": 100.0, "step_ms": 1}
    short, longer = (
        measure(x[: round(seconds * FS)], FS, **wanted) for seconds in (length_s, length_s + 0.3)
    )
    for maximum, moment in MAXIMA.items():
        assert short[maximum][-1] == short.summary[maximum]
        there = np.append(short[moment], 0.0)
        assert short.summary[maximum] >= np.nanmax(there) * (1 - 1e-6), maximum
        assert longer.summary[maximum] >= short.summary[maximum] * (1 - 1e-6)
    told = [name for name in short.columns if name.endswith(("max_db", "lcpeak_db"))]
    assert len(told) > 8
    for name in told:
        assert short[name][-1] == short.summary[name]
    for name in ("lafmax_db", "lasmax_db", "lzsmax_db", "laimax_db", "lcpeak_db"):
        assert short.summary[name] == pytest.approx(longer.summary[name], abs=0.05), name
    for name in ("zwicker_nmax_sone", "max_stl_sone", "gm2002_max_stl_sone"):
        assert short.summary[name] == pytest.approx(longer.summary[name], rel=0.002), name


def counted(time_s, values, rise_s):
    """Those that count by the rule: of the rise, none below the least of the others."""
    there = ~np.isnan(values)
    time_s, values = time_s[there], values[there]
    rest = values[time_s > rise_s - 1e-9]
    if not len(rest):
        return values
    return np.append(rest, values[(time_s <= rise_s - 1e-9) & (values >= rest.min())])


def sound(name, length_s):
    """Noise of 70 dB for as long, or 20 ms of it at the start or the end, a step, or nothing."""
    noise = 0.0447 * np.random.default_rng(3).standard_normal(round(length_s * FS))
    time_s = np.arange(len(noise)) / FS
    if name == "early":
        return noise * (time_s < 0.02)
    if name == "late":
        return noise * (time_s > length_s - 0.05)
    if name == "step":
        return noise * np.where(time_s < 0.4, 0.01, 1.0)
    return noise * (name == "steady")


@pytest.mark.parametrize(
    "name",
    ["early", "step"]
    + [pytest.param(name, marks=pytest.mark.soak) for name in ("steady", "late", "silence")],
)
def test_percentiles_and_minima_follow_the_rule(name):
    """Worked out from all frames in rows, of files 10 ms apart about the rise, and of others."""
    wanted = {"models": ["spl", "zwicker"], "calibration": 100.0, "step_ms": 2}
    wanted["columns"] = ["laf_db", "las_db", "zwicker_n_sone"]
    for length_s in (0.05, 0.31, 0.49, 0.5, 0.51, 0.61, 0.62, 0.63, 0.64, 0.65, 1.0, 4.99, 5.01):
        told = measure(sound(name, length_s), FS, **wanted)
        frames = slice(5, None, 5)  # of sound level, one in 10 ms
        time_s = told["time_s"]
        level = np.where(np.isfinite(told["laf_db"]), told["laf_db"], -200.0)[frames]
        fast = counted(time_s[frames], level, 0.625)
        slow = np.where(np.isfinite(told["las_db"]), told["las_db"], -200.0)[frames]
        # The first frame after the rise begins where the last one of the rise ends.
        lowest = {
            "lafmin_db": counted(time_s[frames], level, 0.615 if length_s > 0.625 else 1.0).min(),
            "lasmin_db": counted(time_s[frames], slow, 4.99 if length_s > 5.0 else 6.0).min(),
        }
        loudness = counted(time_s, told["zwicker_n_sone"], 0.5)
        for name_of, percent in (("l10_db", 90), ("l90_db", 10), ("l50_db", 50)):
            expected = np.percentile(fast, percent)
            if expected > -190:
                assert told.summary[name_of] == pytest.approx(expected, abs=0.1), length_s
        for name_of, expected in lowest.items():
            if expected > -100:
                assert told.summary[name_of] == pytest.approx(expected, abs=0.1), length_s
        expected = np.percentile(loudness, 95)
        assert told.summary["zwicker_n5_sone"] == pytest.approx(expected, rel=0.01, abs=0.001)


def test_loudness_percentiles_follow_the_rule():
    for name in ("steady", "early", "late"):
        for length_s in (0.3, 0.5, 0.52, 1.0):
            told = measure(
                sound(name, length_s), FS, "moore2016", calibration=100.0, columns=["ltl_phon"]
            )
            ltl = counted(told["time_s"], told["ltl_phon"], 0.5)
            for column, percent in (("ltl_n5_phon", 95), ("ltl_n90_phon", 10)):
                expected = np.percentile(ltl, percent)
                assert told.summary[column] == pytest.approx(expected, abs=0.1), (name, length_s)
