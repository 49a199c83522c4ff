"""What a type-approved meter prints, worked out from all frames at once."""

import numpy as np
import pytest

from amt_stream import measure
from amt_stream.meters.accumulators import SoundLevelMeter
from amt_stream.meters.accumulators.level import level_db
from amt_stream.meters.accumulators.sound_level import DIFFERENCES, LEVELS, RISEN

SECONDS = 17.37
NAMES = ("lapeak_db", "lzpeak_db", "laieq_db", "lcieq_db", "lzieq_db", "laft3eq_db", "laft5eq_db")
NAMES += tuple(DIFFERENCES)


def frames(seconds, seed=0):
    """Of a sound whose levels wander, each weighting and speed for itself."""
    random = np.random.default_rng(seed)
    count = round(seconds * 100)

    def walk(rows):
        steps = np.cumsum(random.normal(0, 0.08, (rows, count)), 1)
        return 4e-10 * 10 ** ((60 + 25 * np.sin(steps)) / 10)

    timed = walk(9)
    return walk(3), timed, 1.2 * timed, timed / 1.2, walk(3), 9 * np.sqrt(walk(3))


def of_intervals(highest, length):
    whole = highest[: len(highest) // length * length].reshape(-1, length)
    return whole.max(1).mean() if len(whole) else np.nan


@pytest.mark.parametrize("seconds", [0.13, 4.0, SECONDS])
@pytest.mark.parametrize("size", [1, 77, 4000])
def test_readings_and_columns(seconds, size):
    given = frames(seconds)
    mean_square, _, highest, _, impulse, peak = given
    meter, told = SoundLevelMeter(NAMES), []
    for at in range(0, peak.shape[1], size):
        told.append(meter.update(*(v[:, at : at + size] for v in given)))
    columns, reading = np.concatenate(told, 1), meter.reading()
    means = impulse.mean(1)
    laeq, lceq, _ = level_db(mean_square.mean(1))
    third, fifth = (level_db(of_intervals(highest[0], n)) for n in (300, 500))
    expected = [*level_db(peak.max(1)[[0, 2]] ** 2), *level_db(means), third, fifth]
    expected += [lceq - laeq, level_db(means[0]) - laeq, third - laeq, fifth - laeq]
    np.testing.assert_allclose(columns[:, -1], expected, atol=1e-9)
    for name, value in zip(NAMES, expected, strict=True):
        assert reading[name] == (None if np.isnan(value) else pytest.approx(value, abs=1e-9))


@pytest.mark.parametrize("seconds", [0.2, 0.5037, 1.0, 2.0])
@pytest.mark.parametrize("kind", ["steady", "bursts"])
def test_laieq_is_the_mean_of_what_i_shows_from_the_first_sample(seconds, kind):
    """In rows, in the summary and in the only interval: its rise counts like the rest.

    I is the square, averaged over 35 ms and held with 1.5 s, of a tone whose gain is 1 in A.
    """
    fs = 48000
    t = np.arange(round(seconds * fs)) / fs
    x = 0.1 * np.sin(2 * np.pi * 1000 * t) * (1 if kind == "steady" else t % 0.25 < 0.05)
    average, held, total = 0.0, 0.0, 0.0
    for square in (x**2).tolist():
        average += (square - average) * -np.expm1(-1 / (0.035 * fs))
        held = max(average, held * np.exp(-1 / (1.5 * fs)))
        total += held
    expected = level_db(total / len(x))
    m = measure(x, fs, "spl", calibration="pascal", columns=["laieq_db"], step_ms=10, interval=60)
    assert m.summary["laieq_db"] == pytest.approx(expected, abs=0.05)
    assert m["laieq_db"][-1] == pytest.approx(m.summary["laieq_db"], abs=1e-5)
    assert m.intervals["laieq_db"] == pytest.approx([m.summary["laieq_db"]], abs=1e-5)


def test_a_pause_and_what_was_not_heard_take_no_time_of_an_interval():
    given = frames(20.0, seed=1)
    valid = np.ones(2000, bool)
    valid[700:800] = False
    meter = SoundLevelMeter(["laft3eq_db"])
    for at in range(0, 2000, 50):
        meter.paused = 300 <= at < 450
        part = slice(at, at + 50)
        meter.update(*(v[:, part] for v in given), valid[part], np.full(50, np.inf))
    left = given[2][0][valid & ~((np.arange(2000) >= 300) & (np.arange(2000) < 450))]
    assert meter.reading()["laft3eq_db"] == pytest.approx(level_db(of_intervals(left, 300)))


def test_percentiles_of_every_level():
    given = frames(SECONDS, seed=2)
    names = [f"{level}{p}_db" for level in LEVELS for p in (5, 50, 90)]
    meter = SoundLevelMeter([*names, "l90_db", "lzs50_2s_db"])
    for at in range(0, given[0].shape[1], 77):
        meter.update(*(v[:, at : at + 77] for v in given))
    reading = meter.reading()
    for k, level in enumerate(LEVELS):
        power = given[1][k]
        rising = np.arange(len(power)) + 1 < RISEN[k]
        counted = level_db(power[~rising | (power >= power[~rising].min())])
        for p in (5, 50, 90):
            expected = np.percentile(counted, 100 - p)
            assert reading[f"{level}{p}_db"] == pytest.approx(expected, abs=0.06), (level, p)
    assert reading["laf90_db"] == reading["l90_db"]
    last = level_db(given[1][LEVELS.index("lzs"), -200:])
    assert reading["lzs50_2s_db"] == pytest.approx(np.median(last), abs=0.2)


def test_rows_of_two_channels():
    """A tone of 63 Hz and noise: by name, by pattern, of each side and the higher of both."""
    fs = 48000
    t = np.arange(6 * fs) / fs
    noise = np.random.default_rng(0).normal(0, 0.02, len(t))
    x = np.stack([0.3 * np.sin(2 * np.pi * 63 * t), noise], 1)
    columns = [
        "l?peak_left_db",
        "lzpeak_db",
        "*_minus_laeq_*",
        "laft5eq_right_db",
        "lcs9?_db",
        "laf37_db",
    ]
    m = measure(x, fs, "spl", calibration="pascal", columns=columns, step_ms=100)
    names = [column["name"] for column in m.header["columns"]]
    assert {"lapeak_left_db", "lzpeak_db", "lcs90_db", "lcs99_db", "laf37_db"} <= set(names)
    assert m["lzpeak_db"][-1] == pytest.approx(level_db(0.3**2), abs=0.05)
    for name, (one, other) in {
        "lceq_minus_laeq": ("lceq", "laeq"),
        "laft5eq_minus_laeq": ("laft5eq", "laeq"),
    }.items():
        left, right = (
            m.summary[f"{one}_{side}_db"] - m.summary[f"{other}_{side}_db"]
            for side in ("left", "right")
        )
        assert m[f"{name}_left_db"][-1] == pytest.approx(left, abs=1e-3)
        assert m[f"{name}_db"][-1] == pytest.approx(max(left, right), abs=1e-3)
    # Of 63 Hz by IEC 61672-1, Table 3.
    assert m.summary["lceq_minus_laeq_left_db"] == pytest.approx(26.2 - 0.8, abs=0.2)
    assert np.isnan(m["laft5eq_right_db"][40])


def test_silence_has_no_difference():
    m = measure(np.zeros(48000), 48000, "spl", calibration="pascal", columns="*_minus_laeq_db")
    assert np.isnan([m[name][-1] for name in DIFFERENCES]).all()
    assert {m.summary[name] for name in DIFFERENCES} == {None}


def test_only_what_there_is():
    for name in ("laf100_db", "lapeak_1s_db", "lzeq_minus_laeq_db", "laft4eq_db", "lax5_db"):
        with pytest.raises(ValueError, match=f"no column is called '{name}'"):
            measure(np.zeros(480), 48000, "spl", calibration="pascal", columns=[name])
