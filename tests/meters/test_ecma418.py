"""Readings of ECMA-418-2: single values, both ears, files, and what is left out."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from amt_stream import measure
from amt_stream.dsp.models.ecma418_all import ECMA418Output
from amt_stream.dsp.stages.ecma418_modulation import ECMARoughnessOutput
from amt_stream.meters import catalog
from amt_stream.meters.rows import choose, readings_of
from amt_stream.meters.rows.models.ecma418 import LOUDNESS, TONALITY
from tests.data.synth import render
from tests.meters.one_quantity import ecma_meter
from tests.meters.test_readings import frames

DATA = Path(__file__).parents[1] / "data"
CASES = {
    case["id"]: case
    for name in ("ecma418_2.json", "ecma418_2_roughness.json", "ecma418_2_fluctuation.json")
    for case in json.loads((DATA / name).read_text(encoding="utf-8"))["cases"]
}
FS = 48000
T = np.arange(FS * 3 // 4) / FS
TONE = 0.002 * np.sqrt(2) * np.sin(2 * np.pi * 1000 * T)


def rough(rate, duration=1.0):
    """1 kHz of 60 dB, fully modulated."""
    part = {"kind": "am_tone", "frequency": 1000, "rate": rate, "depth": 1.0}
    part |= {"level_db_spl": 60, "duration": duration}
    return render({"duration": duration, "components": [part]}, FS)[:, 0]


def read(x, model, **settings):
    return measure(x, FS, model, calibration="pascal", **settings)


@pytest.mark.parametrize(
    ("name", "key", "case"),
    [
        ("ecma_loudness_mean_sone", "N", "burst_1k_300ms_60"),
        ("ecma_tonality_mean_tu", "T", "burst_1k_300ms_60"),
        pytest.param("ecma_loudness_mean_sone", "N", "tone_in_pink_1k_+0", marks=pytest.mark.soak),
        pytest.param("ecma_tonality_mean_tu", "T", "tone_in_pink_1k_+0", marks=pytest.mark.soak),
        ("ecma_roughness_r10_asper", "R", "nb_1k_160_60"),
        ("ecma_roughness_r10_asper", "R", "am_step_rough"),
        ("ecma_fluctuation_f10_vacil", "F", "am_1k_4_60"),
    ],
)
def test_single_values_are_those_of_other_programs(name, key, case):
    x = render(CASES[case]["recipe"], FS)[:, :1]
    found = read(x, "_".join(name.split("_")[:2]), step_ms=100)
    expected = CASES[case][key]
    assert found.summary[name] == pytest.approx(expected["expect"], abs=expected["tol"])
    assert found[name][-1] == pytest.approx(found.summary[name], rel=1e-5)


@pytest.mark.parametrize(
    ("sound", "stem", "unit", "single"),
    [
        (TONE, "ecma_loudness", "sone", "mean"),
        (rough(70), "ecma_roughness", "asper", "r10"),
        (rough(4, 6.0), "ecma_fluctuation", "vacil", "f10"),
    ],
)
def test_the_rule_for_two_ears(sound, stem, unit, single):
    """One silent ear divides by the root of 2; the other reads 1, as the unit is defined."""
    found = read(np.stack([sound, 0 * sound], 1), stem, step_ms=250)
    both, left, right = (found[f"{stem}{side}_{unit}"][-1] for side in ("", "_left", "_right"))
    assert left == pytest.approx(1, rel=0.01)
    assert right == 0
    assert both == pytest.approx(left / np.sqrt(2), rel=1e-5)
    assert found.summary[f"{stem}_{single}_left_{unit}"] == pytest.approx(1, rel=0.01)


def test_tonality_of_two_channels_is_the_higher_one_with_its_tone():
    """1 kHz at 40 dB beside 500 Hz at 20 dB."""
    soft = 0.0002 * np.sin(2 * np.pi * 500 * T)
    found = read(np.stack([soft, TONE], 1), "ecma_tonality", columns="ecma*", step_ms=250)
    last = {name: found[name][-1] for name in found.columns if name.startswith("ecma")}
    assert last["ecma_tonality_tu"] == last["ecma_tonality_right_tu"] == pytest.approx(1, rel=0.01)
    assert 0.02 < last["ecma_tonality_left_tu"] < 0.5
    assert last["ecma_tonality_hz"] == last["ecma_tonality_right_hz"] == pytest.approx(999.0, abs=3)
    assert last["ecma_tonality_left_hz"] == pytest.approx(500, abs=3)


def test_the_modulation_rate_is_that_of_the_roughest_band():
    sound = np.append(rough(50), np.zeros(FS // 2))
    found = read(sound[:, None], "ecma_roughness", step_ms=100)
    rate, asper = found["ecma_roughness_hz"], found["ecma_roughness_asper"]
    assert np.nanmax(np.abs(rate[5:10] - 50)) < 0.1
    silent = asper <= 0.02
    assert silent[0]
    assert not silent[5:10].any()
    np.testing.assert_array_equal(np.isnan(rate), silent)


def test_all_at_once_have_the_rows_of_each():
    """To the last digit, also between the frames of 187.5 a second, and in intervals."""
    time_s = np.arange(2 * FS) / FS
    turn = 2 * np.pi * time_s
    sound = 0.02 * np.random.default_rng(0).standard_normal(2 * FS) * (1 + np.cos(4 * turn))
    sound += 0.02 * np.sin(1000 * turn) * (1 + np.cos(70 * turn))
    wanted = {"columns": "ecma*", "step_ms": 7, "interval": 1}
    each = ",".join(catalog.entry("ecma").includes)
    together, apart = (read(sound[:, None], names, **wanted) for names in ("ecma", each))
    for got, expected in ((together, apart), (together.intervals, apart.intervals)):
        assert set(got.columns) == set(expected.columns)
        for name in (name for name in expected.columns if name.startswith("ecma")):
            np.testing.assert_array_equal(got[name], expected[name], name)
    values = {name: v for name, v in apart.summary.items() if name.startswith("ecma")}
    assert values.items() <= together.summary.items()
    assert min(values[f"ecma_{name}"] for name in ("roughness_r10_asper", "tonality_t5_tu")) > 0.02
    assert np.nanmax(apart["ecma_fluctuation_vacil"]) > 0.1


SOME = [(44100, 0.5), (48000, 1.0), (96000, 0.5), (16000, 1.0)]
OTHERS = [
    pytest.param(fs, depth, marks=pytest.mark.soak)
    for fs in (44100, 48000, 32000, 22050, 96000, 88200, 16000)
    for depth in (0.5, 1.0)
    if (fs, depth) not in SOME
]


@pytest.mark.cases(1)
@pytest.mark.parametrize(("fs", "depth"), [*SOME, *OTHERS])
def test_all_at_once_have_the_values_of_each_at_any_rate(fs, depth):
    """Also those of sounds that are cut within a frame: a steady one goes on for each model."""
    turn = 2 * np.pi * np.arange(round(2.1237 * fs)) / fs
    swells = (1 + depth * np.cos(70 * turn)) * (1 + 0.9 * depth * np.cos(4 * turn))
    sound = (0.02 * np.sin(1000 * turn) * swells)[:, None]
    each = ",".join(catalog.entry("ecma").includes)
    together, apart = (
        measure(sound, fs, names, calibration="pascal", columns="ecma*", step_ms=20)
        for names in ("ecma", each)
    )
    for name in (name for name in apart.columns if name.startswith("ecma")):
        np.testing.assert_array_equal(together[name], apart[name], name)
    values = {name: v for name, v in apart.summary.items() if name.startswith("ecma")}
    assert values.items() <= together.summary.items()
    assert values["ecma_fluctuation_f90_vacil"] > 0.1
    assert values["ecma_roughness_r90_asper"] > 0.1


@pytest.mark.soak
def test_the_rate_does_not_change_the_values():
    """Blocks begin with the sound, whatever a resampler puts before it (docs/departures.md)."""
    found = []
    for fs in (48000, 44100, 32000):
        turn = 2 * np.pi * np.arange(2 * fs) / fs
        swells = (1 + np.cos(70 * turn)) * (1 + 0.9 * np.cos(4 * turn))
        sound = (0.02 * np.sin(1000 * turn) * swells)[:, None]
        found.append(measure(sound, fs, "ecma", calibration="pascal", step_ms=20))
    for name in ("loudness_sone", "tonality_tu", "roughness_asper", "fluctuation_vacil"):
        expected = found[0][f"ecma_{name}"]
        for other in found[1:]:
            difference = np.abs(other[f"ecma_{name}"] - expected).max()
            assert difference < 1e-4 * expected.max(), name


def test_missing_frames_count_for_each_metric():
    """Of 15 missing ones, 4 of roughness, as of its own model."""
    every, alone = (readings_of([model], 1)[model] for model in ("ecma", "ecma_roughness"))
    for readings in (every, alone):
        choose({"it": readings}, ["ecma_roughness_asper", "ecma_roughness_r50_1s_asper"])
    dims = ECMA418Output(*[-1] * 6, *[-2] * 4)
    for first, last in ((0, 300), (360, 720)):
        each = np.arange(first, last)
        r = np.float32(each * 4 // 15 % 7)[None] / 100
        values = ECMA418Output(*[r] * 6, *[np.repeat(r[..., None], 53, -1)] * 4)
        found = every.take(every.refined(replace(frames(each / 187.5, values), time_dim=dims)))
        each = np.arange(first * 4 // 15, last * 4 // 15)
        r = np.float32(each % 7)[None] / 100
        values = ECMARoughnessOutput(r, r, np.repeat(r[..., None], 53, -1))
        expected = alone.take(frames(each / 50, values))
        every.skip(60)
        alone.skip(16)
        np.testing.assert_array_equal(found[-1], expected[-1])
    assert np.isfinite(found[-1]).all()


def test_outputs_by_band():
    sound = TONE[:24000, None]
    for what in ("loudness", "tonality"):
        name = f"ecma_specific_{what}"
        found = read(sound, f"ecma_{what}", outputs=name, step_ms=250)
        assert found[name].shape == (len(found), 1, 53)
        bark = found.axes[name][-1].values
        np.testing.assert_allclose(bark[[0, -1]], [0.5, 26.5])
        # Its center frequency in Hz.
        hz = 81.9289 / 0.1618 * np.sinh(0.1618 * bark[found[name][-1, 0].argmax()])
        assert hz == pytest.approx(1000, rel=0.15)


def test_the_start_counts_in_nothing():
    """The standard leaves out 57 frames, also where they are loud."""
    values = np.where(np.arange(400) < 57, 9.0, 1.0)
    meter = ecma_meter(LOUDNESS, ["mean_sone", "max_sone", "n1_sone"])
    columns = meter.update(np.arange(400) / 187.5, values)
    assert np.isfinite(columns).sum() == 3 * 343
    reading = meter.reading()
    assert reading["mean_sone"] == pytest.approx(1)
    assert reading["max_sone"] == 1
    assert reading["n1_sone"] == pytest.approx(1, rel=2e-4)
    assert reading["measured_s"] == pytest.approx(343 / 187.5)


def test_means_are_those_of_the_standard():
    values = np.random.default_rng(0).uniform(0, 0.1, 500)
    values[values < 0.01] = 0
    late = np.arange(500) / 187.5 + 1
    loudness, tonality = ecma_meter(LOUDNESS), ecma_meter(TONALITY)
    for meter in (loudness, tonality):
        for part in np.array_split(np.arange(500), 7):
            meter.update(late[part], values[part])
    e = 1 / np.log10(2)
    power_mean = np.mean(values**e) ** (1 / e)
    assert loudness.reading()["mean_sone"] == pytest.approx(power_mean)
    assert tonality.reading()["mean_tu"] == pytest.approx(values[values > 0.02].mean())
    assert tonality.reading()["t99_tu"] == 0
    silent = ecma_meter(TONALITY)
    assert silent.reading()["mean_tu"] is None
    silent.update(late, np.zeros(500))
    assert silent.reading()["mean_tu"] == 0
