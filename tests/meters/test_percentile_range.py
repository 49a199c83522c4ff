"""Percentiles of any range: of hydrophones, of what is far below 0 dB, and of silence."""

import json
import math

import numpy as np
import pytest
import soundfile

from amt_stream import measure
from amt_stream.meters.accumulators import Histogram, RollingHistogram, SoundLevelMeter
from amt_stream.meters.rows.models.ecma418 import LOUDNESS
from tests.meters.one_quantity import ecma_meter, sharpness_meter, zwicker_meter

FS = 48000
PERCENTS = (1, 5, 10, 50, 90, 95, 99)
RANGES = [(-145.0, -139.0), (-140.0, 10.0), (20.0, 90.0), (149.9, 150.1), (120.0, 260.0)]


def walk(low, high, count=6000, seed=0):
    """Values that wander through a range, up and down."""
    turns = np.cumsum(np.random.default_rng(seed).normal(0, 0.05, count))
    return low + (high - low) * (0.5 + 0.5 * np.sin(turns))


@pytest.mark.parametrize(("low", "high"), RANGES)
@pytest.mark.parametrize("size", [1, 77, 6000])
def test_percentiles_are_those_of_the_values(low, high, size):
    """Of all and of a window, and after a state of another range."""
    values = walk(low, high)
    histogram, rolling = Histogram(), RollingHistogram(0.01, 20.0)
    for at in range(0, len(values), size):
        for one in (histogram, rolling):
            one.add(values[at : at + size])
    again, window = Histogram(), RollingHistogram(0.01, 20.0)
    for one, before in ((again, histogram), (window, rolling)):
        one.load_state_dict(before.state_dict())
        assert one.percentiles(PERCENTS).tolist() == before.percentiles(PERCENTS).tolist()
    shares = [100 - p for p in PERCENTS]
    for one, counted in ((again, values), (window, values[-2000:])):
        expected = np.percentile(counted, shares)
        assert one.percentiles(PERCENTS) == pytest.approx(expected, abs=0.0251)
    window.add(np.full(2020, 77.0))
    assert window.percentiles(PERCENTS) == pytest.approx(77.0, abs=0.0251)


def test_memory_is_bounded_by_the_range():
    """Of any values, also absurd ones, in 130 kB; of usual ones in a tenth."""
    histogram = Histogram()
    histogram.add(np.array([-np.inf, -1e300, 1e300, np.inf, np.nan, *walk(-1000, 1000)]))
    assert histogram.counts.nbytes <= 8 * (800 / 0.05 + 1)
    usual = Histogram()
    usual.add(walk(40, 60))
    assert usual.counts.nbytes < 12_800


def test_silence_has_no_level():
    """A percentile among values of silence is none, and one beside them that of the others."""
    histogram = Histogram()
    histogram.add([-np.inf, -np.inf, 50.0, 60.0, 70.0])
    got = histogram.percentiles([100, 75, 74, 50, 25, 0])
    assert got[:3].tolist() == [-np.inf] * 3
    assert got[3:] == pytest.approx([50, 60, 70], abs=0.0251)
    rolling = RollingHistogram(0.01, 1.0)
    rolling.add(np.full(100, -np.inf))
    assert rolling.percentiles([50]).tolist() == [-np.inf]
    rolling.add(np.full(200, 50.0))
    assert rolling.percentiles([99]) == pytest.approx([50], abs=0.0251)
    level = SoundLevelMeter(["l90_db", "l10_db"])
    power = np.full((9, 400), 4e-4)
    power[:, 200:] = 0.0
    columns = level.update(power[:3], power, power, power, power[:3], power[:3])
    assert not np.isfinite(columns[0, -1])
    assert level.reading()["l90_db"] is None
    assert columns[1, -1] == level.reading()["l10_db"] == pytest.approx(60, abs=0.0251)


@pytest.mark.parametrize(
    ("make", "name", "low", "high", "near"),
    [
        (zwicker_meter, "n{}_sone", 0.002, 0.01, 2e-4),
        (zwicker_meter, "n{}_sone", 900.0, 90_000.0, 2e-4),
        (lambda: ecma_meter(LOUDNESS), "n{}_sone", 900.0, 90_000.0, 2e-4),
        (sharpness_meter, "s{}_acum", 15.0, 60.0, 2e-4),
    ],
)
def test_sones_and_acums_of_any_range(make, name, low, high, near):
    values = walk(low, high)
    meter = make()
    meter.update(np.arange(6000) / 500 + 1, values)
    for p in PERCENTS:
        expected = np.percentile(values, 100 - p)
        assert meter.reading()[name.format(p)] == pytest.approx(expected, rel=near)


def test_what_is_beyond_all_classes_is_no_value():
    """As of Aures's sharpness at the levels of hydrophones."""
    meter = sharpness_meter(["s5_acum", "s90_acum"])
    columns = meter.update(np.arange(6000) / 500 + 1, walk(400, 5000))
    reading = meter.reading()
    assert reading["s5_acum"] is None
    assert not np.isfinite(columns[0, -1])
    assert reading["max_acum"] > 4900
    assert reading["s90_acum"] is None or reading["s90_acum"] < 500


def test_of_nothing_loudness_is_0():
    meter = zwicker_meter(["n90_sone"])
    sone = np.repeat([4.0, 0.0], 3000)
    columns = meter.update(np.arange(6000) / 500 + 1, sone)
    assert columns[0, -1] == meter.reading()["n90_sone"] == 0
    assert meter.reading()["n10_sone"] == pytest.approx(4, rel=2e-4)


@pytest.mark.parametrize("full_scale_db", [0.0, 94.0, 170.0, 230.0, 250.0])
def test_percentiles_do_not_stop_at_a_level(full_scale_db):
    """Whatever full scale is, they move with it, in rows, windows, intervals and the summary."""
    t = np.arange(3 * FS) / FS
    x = (0.5 + 0.4 * np.sin(2 * np.pi * 0.7 * t)) * np.sin(2 * np.pi * 1000 * t)
    columns = ["l10_db", "l90_db", "l10_2s_db", "lzs50_db", "lafmax_db"]

    def read(full):
        return measure(x, FS, "spl", calibration=full, columns=columns, step_ms=100, interval=1)

    found, usual = read(full_scale_db), read(100.0)
    for name in columns:
        expected = usual[name][-1] - 100 + full_scale_db
        assert found[name][-1] == pytest.approx(expected, abs=0.051), name
        if "2s" not in name:
            assert found.summary[name] == pytest.approx(found[name][-1], abs=1e-3), name
    assert found.summary["l10_db"] < found.summary["lafmax_db"]
    moved = found.intervals["l10_db"] - usual.intervals["l10_db"]
    assert moved == pytest.approx(full_scale_db - 100, abs=0.051)


def test_a_hydrophone_in_the_command(tmp_path, forks):
    """Levels re 1 micropascal up to 230 dB: rows, a limit, the summary."""
    t = np.arange(2 * FS) / FS
    soundfile.write(tmp_path / "sea.wav", 0.9 * np.sin(2 * np.pi * 1000 * t), FS, "FLOAT")
    level_db = 230 + 20 * math.log10(0.9)
    done = forks.run(
        *("analyze", tmp_path / "sea.wav", "--model", "spl", "--full-scale-db", "230"),
        *("--limit", "l10_db>229", "--limit", "l90_db>228", "--fail-above", "--format", "jsonl"),
        *("--columns", "l10_db,l90_db,laf_db"),
    )
    assert done.returncode == 4, done.stderr
    last = json.loads(done.stdout.splitlines()[-1])["summary"]
    for name in ("l10_db", "l90_db", "lafmax_db"):
        assert last[name] == pytest.approx(level_db, abs=0.06), name
