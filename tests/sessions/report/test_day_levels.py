"""Lden, Ldn and their periods against plain calculations, over a change of the clock."""

import csv
import json
import math
from dataclasses import replace
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import numpy as np
import pytest
import soundfile

from amt_stream import measure
from amt_stream.cli.command import run_command
from amt_stream.meters.frames import Event
from amt_stream.meters.rows import Rows
from amt_stream.sessions.report.day_levels import HOURS, NoDayLevels, day_levels, hours_named
from amt_stream.sessions.results import Results

BERLIN = ZoneInfo("Europe/Berlin")
STEP_S = 10
WEEKS = {
    "autumn": datetime(2026, 10, 20, 10, 34, 50, tzinfo=UTC),
    "spring": datetime(2026, 3, 24, 21, 1, 10, tzinfo=UTC),
}


def levels(start, count, seed=0, step_s=STEP_S):
    """A level for each step: 65 dB by day, 45 dB by night, and noise of 3 dB; another each day."""
    rng = np.random.default_rng(seed)
    utc_s = start.timestamp() + step_s * np.arange(1, count + 1)
    hour = np.array([datetime.fromtimestamp(t, BERLIN).hour for t in utc_s - step_s / 2])
    day = (utc_s // 86400).astype(int)
    level = 55 + 10 * np.sin((hour - 8) / 24 * 2 * math.pi) + day % 3 + rng.normal(0, 3, count)
    return utc_s, np.round(level, 4)


def plain(utc_s, level, hours=HOURS["eu"], step_s=STEP_S):
    """By the definition, a row after another: sums of energy by the hour that each row is of."""
    sums = {name: [0.0, 0] for name in hours.periods}
    for end_s, one in zip(utc_s, level, strict=True):
        hour = datetime.fromtimestamp(end_s - step_s / 2, BERLIN).hour
        for name, (begin, end) in hours.periods.items():
            if begin <= hour < end or begin <= hour + 24 < end:
                sums[name][0] += 10 ** (one / 10)
                sums[name][1] += step_s
    mean = {name: 10 * math.log10(total / (n / step_s)) for name, (total, n) in sums.items()}
    added = {"day": 0, "evening": 5, "night": 10}
    weighted = sum(
        (end - begin) / 24 * 10 ** ((mean[name] + added[name]) / 10)
        for name, (begin, end) in hours.periods.items()
    )
    return 10 * math.log10(weighted), mean, {name: n for name, (_, n) in sums.items()}


@pytest.fixture(scope="module")
def short():
    """A measurement whose header the made ones have."""
    given = {"columns": ["laf_db", "laeq_10s_db"], "step_ms": 10_000, "calibration": 110.0}
    tone = 0.01 * np.sin(np.arange(48000 * 20))
    return Results.of_measured(measure(tone, 48000, "spl", **given))


def made(short, utc_s, level, name="laeq_10s_db", step_s=STEP_S):
    """Rows with these levels at these times, from a first row at 0 s on."""
    count = len(level) + 1
    times = np.concatenate([[utc_s[0] - step_s], utc_s])
    columns = {
        "time_s": step_s * np.arange(float(count)),
        "utc": np.rint(times * 1000).astype("int64").astype("datetime64[ms]"),
        "sample": 48000 * step_s * np.arange(count),
        name: np.concatenate([[np.nan], level]),
        "laf_db": np.full(count, np.nan),
        "fault": np.zeros(count, np.uint8),
        "settling": np.zeros(count, bool),
        "settling_columns": np.full(count, "", object),
        "clipped_columns": np.full(count, "", object),
        "calibrated": np.ones(count, bool),
    }
    return replace(short, rows=Rows(columns), header={**short.header, "step_ms": 1000 * step_s})


@pytest.mark.cases(2)
@pytest.mark.parametrize("season", WEEKS)
@pytest.mark.parametrize("hours", ["eu", "de", "us", "7,18,22"])
def test_a_week_with_a_change_of_the_clock(short, season, hours):
    utc_s, level = levels(WEEKS[season], 7 * 8640)
    chosen = hours_named(hours)
    expected, means, seconds = plain(utc_s, level, chosen)
    found = day_levels([made(short, utc_s, level)], chosen, BERLIN)
    assert found.whole.rating_db == pytest.approx(expected, abs=0.01)
    for name, one in found.whole.periods.items():
        assert one.level_db == pytest.approx(means[name], abs=0.01)
        assert one.measured_s == pytest.approx(seconds[name], abs=STEP_S)
    nights = {round(day.periods["night"].whole_s / 3600) for day in found.days}
    usual = 24 + chosen.day - chosen.night
    assert nights == {usual, usual + (1 if season == "autumn" else -1)}


def test_the_command_prints_the_same(short, tmp_path, capsys):
    utc_s, level = levels(WEEKS["autumn"], 7 * 8640)
    results = made(short, utc_s, level)
    path = tmp_path / "week.jsonl"
    with path.open("w") as file:
        print(json.dumps({"header": dict(results.header)}), file=file)
        for row in results.rows:
            print(json.dumps(row), file=file)
    typed = ["lden", str(path), "--zone", "Europe/Berlin"]
    assert run_command([*typed, "--format", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    expected, means, _ = plain(utc_s, level)
    assert told["whole"]["lden_db"] == pytest.approx(expected, abs=0.01)
    assert told["whole"]["lnight_db"] == pytest.approx(means["night"], abs=0.01)
    assert told["days"][0]["date"] == "2026-10-20"
    assert told["days"][5]["night_coverage"] == 1.0
    assert told["days"][5]["night_measured_s"] == 8 * 3600
    assert told["days"][4]["night_measured_s"] == 9 * 3600
    assert told["clock"] == "Europe/Berlin"
    assert run_command(typed) == 0
    text = capsys.readouterr().out.splitlines()
    assert text[0].split()[:5] == ["Lden", "Lday", "Levening", "Lnight", "measured"]
    assert text[-3].split()[:2] == ["all", f"{expected:.1f}"]
    assert "NOT CALIBRATED" not in text[-1]
    assert run_command([*typed, "--hours", "us", "--format", "csv"]) == 0
    out = capsys.readouterr().out
    assert "ldn_db" in out
    assert "evening" not in out
    with pytest.raises(SystemExit) as refused:
        run_command([*typed, "--hours", "7,23,19"])
    assert refused.value.code == 2
    assert "are invalid" in capsys.readouterr().err
    assert run_command(["lden", str(tmp_path), *typed[2:]]) == 0  # a folder with it
    assert f"{expected:.1f}" in capsys.readouterr().out


@pytest.mark.parametrize(("name", "rated"), [("laeq_db", False), ("rating_db", True)])
def test_intervals_of_a_log_are_taken_before_its_rows(short, name, rated):
    """15 min each, counted while it was measured, of a log that began between two of them."""
    utc_s, level = levels(WEEKS["spring"], 672, step_s=900)
    rows = made(short, utc_s[:2], level[:2])
    start = utc_s[0] - 900
    table = Rows.of(
        [
            {
                "time_s": 900.0 * k,
                "utc": str(np.datetime64(round(1000 * (end - 900)), "ms")) + "Z",
                "end_s": 900.0 * (k + 1),
                "measured_s": 900.0 if k % 7 else 450.0,
                "calibrated": True,
                "fault": "",
                name: one,
            }
            for k, (end, one) in enumerate(zip(utc_s, level, strict=True))
        ]
    )
    shift = math.ceil(start / 900) * 900 - start
    table = Rows(
        {
            **{n: table[n] for n in table.columns},
            "utc": table["utc"] + np.timedelta64(round(1000 * shift), "ms"),
        }
    )
    header = {**short.header, "interval": {"seconds": 900, "clock": "Europe/Berlin"}}
    found = day_levels([replace(rows, intervals=table, header=header)], zone=BERLIN, rated=rated)
    assert found.rated == rated
    ends = utc_s + shift
    weight = table["measured_s"] / 900
    by_hand = {}
    for name, (begin, end) in HOURS["eu"].periods.items():
        hour = np.array([datetime.fromtimestamp(t - 450, BERLIN).hour for t in ends])
        own = ((hour >= begin) & (hour < end)) | ((hour + 24 >= begin) & (hour + 24 < end))
        mean = (10 ** (level[own] / 10) * weight[own]).sum() / weight[own].sum()
        by_hand[name] = 10 * math.log10(mean)
    for name, one in found.whole.periods.items():
        assert one.level_db == pytest.approx(by_hand[name], abs=1e-3)
    assert found.how == "the log's own intervals of 900 s"
    assert 0.9 < found.days[2].periods["day"].coverage < 0.95


def test_a_pause_and_a_gap_are_told_and_left_out(short):
    utc_s, level = levels(WEEKS["autumn"], 2 * 8640)
    results = made(short, utc_s, level)
    events = [Event(kind, 0, t, 0.0) for kind, t in (("paused", 36_000.0), ("continued", 43_200.0))]
    lost = (results.rows["time_s"] > 60_000) & (results.rows["time_s"] < 63_600)
    rows = results.rows.where(~lost)
    rows["fault"][np.searchsorted(rows["time_s"], 63_600)] = 1
    told = replace(results, rows=rows, events=events)
    found = day_levels([told], zone=BERLIN)
    counted = (results.rows["time_s"][1:] <= 36_000) | (results.rows["time_s"][1:] > 43_200)
    counted &= (results.rows["time_s"][1:] <= 60_000) | (results.rows["time_s"][1:] > 63_600)
    expected, _, seconds = plain(utc_s[counted], level[counted])
    assert found.whole.rating_db == pytest.approx(expected, abs=0.01)
    for name, one in found.whole.periods.items():
        assert one.measured_s == pytest.approx(seconds[name], abs=STEP_S)


def test_logs_that_follow_one_another_are_one_place(short):
    utc_s, level = levels(WEEKS["autumn"], 4 * 8640)
    parts = [slice(0, 9000), slice(9000, 20_000), slice(22_000, None)]
    given = [made(short, utc_s[part], level[part]) for part in parts]
    found = day_levels(given, zone=BERLIN)
    there = np.concatenate([np.arange(len(level))[part] for part in parts])
    expected, *_ = plain(utc_s[there], level[there])
    assert found.whole.rating_db == pytest.approx(expected, abs=0.01)


def test_rating_levels_are_those_of_the_intervals(tmp_path, capsys):
    """By the command, of a sound with a tone: each interval has its own adjustments."""
    fs, seconds = 8000, 130
    t = np.arange(fs * seconds) / fs
    noise = np.random.default_rng(3).normal(0, 0.01, t.size)
    sound = tmp_path / "fan.wav"
    soundfile.write(sound, noise + 0.05 * np.sin(2 * np.pi * 500 * t) * (t < 60), fs)
    table = tmp_path / "fan.csv"
    typed = ["analyze", str(sound), "--model", "rating", "--full-scale-db", "100"]
    typed += ["--began", "2026-11-02T22:59:00+00:00", "--zone", "UTC", "--interval", "1min"]
    assert run_command([*typed, "--out", str(table)]) == 0
    capsys.readouterr()
    assert run_command(["lden", str(table), "--rating", "--zone", "UTC", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    lines = [one for one in table.read_text().splitlines() if not one.startswith("#")]
    first = next(csv.DictReader(lines))
    assert found["rated"] is True
    assert found["whole"]["levening_db"] == pytest.approx(float(first["rating_db"]), abs=0.01)
    assert float(first["rating_db"]) > float(first["rating_laeq_db"]) + 3


def test_what_has_no_day_and_night_is_refused(short, tmp_path, capsys):
    with pytest.raises(NoDayLevels, match="the time of the measurement is unknown"):
        day_levels([short])
    utc_s, level = levels(WEEKS["autumn"], 200, step_s=7200)
    coarse = made(short, utc_s, level, "laeq_2h_db", 7200)
    columns = [
        {
            **one,
            "name": one["name"].replace("10s", "2h"),
            "statistic": one["statistic"].replace("10s", "2h"),
        }
        for one in short.header["columns"]
    ]
    with pytest.raises(NoDayLevels, match="no rating level of intervals that end with"):
        day_levels([coarse], rated=True)
    with pytest.raises(NoDayLevels, match="no A-weighted level in steps that end with"):
        day_levels([replace(coarse, header={**coarse.header, "columns": columns})], zone=BERLIN)
    silent = made(short, utc_s, np.full(len(utc_s), np.nan), step_s=7200)
    with pytest.raises(NoDayLevels, match="nothing was measured, or only digital silence"):
        day_levels([silent], zone=BERLIN)
    for text in ("0,24", "0,19,24", "24,7"):
        with pytest.raises(NoDayLevels, match=r"the hours .* are invalid"):
            hours_named(text)
    assert run_command(["lden", str(tmp_path)]) == 1
    assert "has no log" in capsys.readouterr().err


def test_an_interval_whose_rating_level_is_not_known_is_not_silence(short):
    utc_s = levels(WEEKS["spring"], 4, step_s=900)[0] - 600
    table = {
        "time_s": 900.0 * np.arange(4),
        "utc": np.array([np.datetime64(round(1000 * (end - 900)), "ms") for end in utc_s]),
        "end_s": 900.0 * np.arange(1, 5),
        "measured_s": np.array([900.0, 900.0, 300.0, 900.0]),
        "excluded_s": np.array([0.0, 0.0, 600.0, 0.0]),
        "calibrated": np.ones(4, bool),
        "fault": np.zeros(4, np.uint8),
        "rating_laeq_db": np.array([60.0, 80.0, np.nan, np.nan]),
        # Its adjustments are not known; less than half was measured; digital silence.
        "rating_db": np.array([60.0, np.nan, np.nan, np.nan]),
    }
    header = {**short.header, "interval": {"seconds": 900, "clock": "Europe/Berlin"}}
    log = replace(made(short, utc_s, np.full(4, 60.0)), intervals=Rows(table), header=header)
    found = day_levels([log], zone=BERLIN, rated=True).whole.periods
    (period,) = (one for one in found.values() if one.level_db is not None)
    assert period.measured_s == 1800
    assert period.level_db == pytest.approx(60 - 10 * math.log10(2))
    none = table | {"rating_db": np.full(4, np.nan), "rating_laeq_db": np.full(4, 60.0)}
    with pytest.raises(NoDayLevels, match="no rating level is known"):
        day_levels([replace(log, intervals=Rows(none))], zone=BERLIN, rated=True)
