"""Limits by themselves: what a column's values make of them, row after row."""

import dataclasses
import math

import numpy as np
import pytest

from amt_stream.core.saved_state import Unfitting
from amt_stream.dsp.stages import SoundLevelOutput
from amt_stream.meters.accumulators.limit_state import STATES, UNMEASURED_SHARE
from amt_stream.meters.frames import Event, Fault, Frames
from amt_stream.meters.limits import Limit, LimitError, limit_from_text, limit_of
from amt_stream.meters.rows import (
    JoinedRows,
    LimitEvents,
    LimitMonitor,
    choose,
    columns_of,
    header,
    readings_of,
    summary,
)
from amt_stream.meters.rows.limit_words import (
    alarm_words,
    forecast_words,
    state_words,
    unknown_words,
    value_words,
)
from amt_stream.offline.measure import measure
from amt_stream.service.message import Message
from amt_stream.service.screen import Screens


def judged(
    monitor, values, time_s=None, step_s=0.1, size=None, calibrated=True, clipped=(), missed=()
):
    values = np.asarray(values, np.float64)
    time_s = np.arange(len(values)) * step_s if time_s is None else time_s
    known, full = np.broadcast_to(calibrated, len(values)), np.zeros(len(values), bool)
    full[list(clipped)] = True
    heard = np.ones(len(values), bool)
    heard[list(missed)] = False
    size = size or max(1, len(values))
    rows = [*zip(time_s, values, known, full, heard, strict=True)]
    parts = [monitor.update(rows[at : at + size]) for at in range(0, len(rows), size)]
    return [state for part in parts for state in part]


def plainly(limit, time_s, values):
    """The rule as it is written, a row at a time."""
    level, calm, told = 0, [], []
    warn = limit.threshold if limit.amber is None else limit.amber

    def rank(value, back=0.0):
        return 2 if value > limit.threshold - back else 1 if value > warn - back else 0

    for at, value in zip(time_s, values, strict=True):
        if np.isnan(value):
            told.append("unknown")
            continue
        if rank(value) >= level or rank(value, limit.hysteresis) >= level:
            level, calm = max(level, rank(value)), []
        else:
            calm.append((at, rank(value, limit.hysteresis)))
            if at - calm[0][0] >= limit.hold_s - 1e-9:
                level, calm = max(r for _, r in calm), []
        told.append(STATES[level])
    return told


@pytest.mark.parametrize("hysteresis", [0.0, 1.0])
@pytest.mark.parametrize("hold_s", [0.0, 0.7])
@pytest.mark.parametrize("amber", [None, 97.5])
@pytest.mark.parametrize("size", [1, 7, None])
def test_states_are_those_of_the_rule(hysteresis, hold_s, amber, size):
    limit = Limit("laf_db", 100.0, amber=amber, hysteresis=hysteresis, hold_s=hold_s)
    rng = np.random.default_rng(3)
    values = 99 + 3 * np.sin(np.arange(2000) / 40) + rng.normal(0, 0.6, 2000)
    values[500:510] = values[700] = np.nan
    time_s = np.arange(2000) * 0.1
    monitor = LimitMonitor(limit, 0.1)
    told = judged(monitor, values, size=size)
    assert told == plainly(limit, time_s, values)
    assert set(told) == {"green", "red", "unknown"} | ({"amber"} if amber else set())
    stood = monitor.stood
    assert stood.seconds["red"] == pytest.approx(told.count("red") / 10)
    assert (stood.worst, stood.worst_s) == (np.nanmax(values), time_s[np.nanargmax(values)])
    assert stood.exceeded
    assert stood.to_dict()["unknown_s"] == 1.1


def test_a_level_that_wobbles_across_it_is_told_once():
    """Wobbles of 4 dB are beyond the hysteresis, and shorter than the hold."""
    time_s = np.arange(1200) * 0.1
    wobble = np.where((time_s > 20) & (time_s < 80), 100 + 2 * np.sin(2 * np.pi * time_s), 90.0)
    times = {}
    for hysteresis, hold_s in ((0.0, 0.0), (1.0, 2.0)):
        limit = Limit("laf_db", 100.0, hysteresis=hysteresis, hold_s=hold_s)
        monitor = LimitMonitor(limit, 0.1)
        told = judged(monitor, wobble)
        times[hold_s] = monitor.stood.times
    assert times == {0.0: 60, 2.0: 1}
    red = [at for at, state in zip(time_s, told, strict=True) if state == "red"]
    assert len(red) == pytest.approx((red[-1] - red[0]) * 10 + 1)  # without a break
    assert 20 < red[0] < 20.2
    assert red[-1] == pytest.approx(80 + 2, abs=0.5)


def test_lower_can_be_worse():
    limit = Limit("integrated_lufs", -23.5, below=True, amber=-23.2, at_end=True)
    monitor = LimitMonitor(limit, 0.1)
    told = judged(monitor, [-23.0, -23.3, -23.6, -23.4, -23.1])
    assert told == ["green", "amber", "red", "amber", "green"]
    stood = monitor.stood
    assert (stood.times, stood.worst, stood.state, stood.exceeded) == (1, -23.1, "green", False)


def test_what_counts_may_be_where_it_ends():
    for end, exceeded in ((-22.9, False), (-22.1, True)):
        monitor = LimitMonitor(Limit("integrated_lufs", -22.5, at_end=True), 0.1)
        judged(monitor, [-20.0, end])
        assert monitor.stood.exceeded is exceeded
    judged(monitor, [np.nan])
    assert monitor.stood.exceeded is None


def test_nothing_is_green_that_is_not_known():
    limit = Limit("laf_db", 100.0)
    monitor = LimitMonitor(limit, 0.1)
    assert monitor.stood.state == "unknown"
    assert judged(monitor, [np.nan, -np.inf]) == ["unknown"] * 2
    assert monitor.stood.exceeded is None
    assert judged(monitor, [101.0] * 2, calibrated=False) == ["uncalibrated"] * 2
    assert monitor.stood.exceeded is None
    # Clipped sound may have been louder; red it is all the same.
    assert judged(monitor, [99.0, 99.0, 101.0], clipped=[1, 2]) == ["green", "unknown", "red"]
    assert monitor.stood.seconds == pytest.approx(
        {"green": 0.1, "amber": 0.0, "red": 0.1, "unknown": 0.3, "uncalibrated": 0.2}
    )


def test_clipped_sound_can_only_be_louder():
    """So an upper limit is never green by it, and a lower one green alone."""
    upper = LimitMonitor(Limit("laf_db", 100.0, amber=97.0), 0.1)
    told = judged(upper, [90.0, 98.0, 101.0, 90.0], clipped=[0, 1, 2])
    assert told == ["unknown", "amber", "red", "green"]
    lower = LimitMonitor(Limit("laf_db", 60.0, below=True, amber=62.0), 0.1)
    told = judged(lower, [70.0, 61.0, 59.0, 70.0], clipped=[0, 1, 2])
    assert told == ["green", "unknown", "unknown", "green"]


def test_the_end_of_a_clipped_sound_is_no_row_more():
    monitor = LimitMonitor(Limit("laf_db", 80.0), 0.1)
    judged(monitor, [70.0, 70.0], [0.1, 0.2], clipped=[1])
    monitor.update_end(0.2, 70.5, True, False)
    told = monitor.stood.to_dict()
    assert (told["state"], told["green_s"], told["unknown_s"]) == ("unknown", 0.1, 0.1)


@pytest.mark.parametrize("missed", [5, 20])
def test_a_limit_of_all_that_was_counted_is_unknown_while_too_much_of_it_is_missing(missed):
    """Rows that are missing, rows with a fault and rows without a value are the same."""
    limit, count = Limit("laeq_db", 100.0), 1000
    hole = np.arange(300, 300 + missed)
    time_s = np.arange(count) / 10
    values = np.full(count, 90.0)
    without = np.delete(np.arange(count), hole)
    nothing = values.copy()
    nothing[hole] = np.nan
    of = [LimitMonitor(limit, 0.1, counted=True) for _ in range(3)]
    absent = judged(of[0], values[without], time_s[without])
    faulty = judged(of[1], values, missed=hole)
    off = judged(of[2], nothing)
    later = np.arange(300 + missed, count)
    plain = np.where(missed / (later + 1) > UNMEASURED_SHARE, "unknown", "green").tolist()
    assert absent[300:] == plain
    assert faulty[300 + missed :] == plain
    assert off[300 + missed :] == plain
    assert ("unknown" in plain, plain[-1]) == (True, "unknown" if missed == 20 else "green")
    for one in of:
        stood = one.stood
        assert (stood.unjudged_s, stood.counted_s) == pytest.approx((missed / 10, 100.0))
        assert stood.verdict == ("kept" if missed == 5 else "not known")


def test_a_window_with_a_hole_is_unknown_until_the_hole_has_left_it():
    limit = Limit("laeq_1min_db", 100.0)
    for hole, unknown in ((5, 0), (7, 600)):
        monitor = LimitMonitor(limit, 0.1, window_s=60.0, adds_up=True)
        time_s = np.delete(np.arange(1, 3001), np.arange(1000, 1000 + hole)) / 10
        told = np.array(judged(monitor, np.full(len(time_s), 99.0), time_s))
        assert set(told[time_s < 59.95]) == {"unknown"}
        assert set(told[(time_s > 60.05) & (time_s < 100.05)]) == {"green"}
        # It leaves the window row by row, and a hundredth of the window may be missing.
        after = told[time_s > 100.05]
        assert np.count_nonzero(after == "unknown") == pytest.approx(unknown, abs=hole)
        assert after[-1] == "green"


def test_red_is_red_however_much_is_missing():
    monitor = LimitMonitor(Limit("laf_db", 100.0), 0.1)
    assert judged(monitor, [101.0, 90.0, 101.0], missed=[0, 1, 2]) == ["red", "unknown", "red"]
    assert monitor.stood.verdict == "exceeded"
    lower = LimitMonitor(Limit("integrated_lufs", -23.0, below=True), 0.1, counted=True)
    told = judged(lower, [-24.0, -24.0, -22.0], missed=[1])
    assert told == ["red", "unknown", "unknown"], "louder sound was perhaps missed"


def test_too_little_judged_leaves_the_verdict_unknown():
    """A gap of a hundredth of the time does not, and what is uncalibrated is not judged."""
    for count, verdict in ((10, "kept"), (11, "not known")):
        monitor = LimitMonitor(Limit("laf_db", 100.0), 0.1)
        judged(monitor, np.full(1000, 90.0), missed=range(100, 100 + count))
        assert monitor.stood.verdict == verdict
        assert monitor.stood.exceeded is (False if verdict == "kept" else None)
    monitor = LimitMonitor(Limit("laf_db", 100.0), 0.1)
    judged(monitor, np.full(1000, 90.0), calibrated=np.arange(1000) >= 20)
    assert monitor.stood.verdict == "not known"
    assert monitor.stood.unjudged_s == pytest.approx(2.0)


def test_a_window_that_is_not_whole_is_red_only_where_nothing_can_help():
    """So much that silence for the rest of it leaves the level of the whole window above."""
    time_s = np.arange(1, 9001) / 10
    for level, first_red_s in ((99.9, None), (100.2, 900 * 10**-0.02), (110.0, 90.0)):
        monitor = LimitMonitor(Limit("laeq_15min_db", 100.0), 0.1, window_s=900.0, adds_up=True)
        told = judged(monitor, np.full(9000, level), time_s)
        assert monitor.stood.worst == pytest.approx(level, abs=0.001)
        assert not monitor.stood.whole
        if first_red_s is None:
            assert set(told[:-1]) == {"unknown"}
            assert monitor.stood.verdict == "kept so far"
            continue
        assert set(told) == {"amber", "red"}
        assert time_s[told.index("red")] == pytest.approx(first_red_s, abs=0.3)
    monitor = LimitMonitor(Limit("l10_15min_db", 100.0), 0.1, window_s=900.0)
    told = judged(monitor, np.full(9002, 101.0), np.arange(1, 9003) / 10)
    assert told.index("red") == 9000


def test_a_judge_goes_on_in_a_new_one():
    limit = Limit("laf_db", 100.0, amber=98.0, hysteresis=0.5, hold_s=1.0)
    values = 99 + 2 * np.sin(np.arange(600) / 17)
    time_s = np.arange(600) * 0.1
    one, other = LimitMonitor(limit, 0.1), LimitMonitor(limit, 0.1)
    judged(one, values[:333], time_s[:333])
    other.load_state_dict(one.state_dict())
    told = [judged(monitor, values[333:], time_s[333:]) for monitor in (one, other)]
    assert told[0] == told[1]
    assert one.stood.to_dict() == other.stood.to_dict()
    with pytest.raises(Unfitting):
        LimitMonitor(limit, 0.1).load_state_dict(one.state_dict() | {"_state/11": "0"})


def test_a_pause_and_a_reset():
    monitor = LimitMonitor(Limit("laf_db", 100.0, hold_s=5.0), 0.1)
    judged(monitor, [101.0, 101.0])
    monitor.pause(True)
    assert judged(monitor, [99.0] * 3) == ["red"] * 3
    assert monitor.stood.seconds["red"] == pytest.approx(0.2)
    monitor.pause(False)
    monitor.reset()
    assert monitor.stood.seconds["red"] == 0
    assert judged(monitor, [99.0]) == ["green"]


def test_a_limit_in_one_line():
    assert limit_from_text("laeq_15min_db>100") == Limit("laeq_15min_db", 100.0)
    assert limit_from_text("laeq_15min_db>100").name == "laeq_15min_100"
    warns = limit_from_text("laeq_15min_db>100,ahead=300")
    assert warns == limit_of(warns.to_dict()) == Limit("laeq_15min_db", 100.0, ahead_s=300.0)
    found = limit_from_text("integrated_lufs < -23.5, hysteresis=0.1, hold=2, name=too_soft")
    expected = {"hysteresis": 0.1, "hold_s": 2.0, "name": "too_soft", "below": True}
    assert found == Limit("integrated_lufs", -23.5, **expected)
    assert limit_from_text("integrated_lufs<-23.5").name == "integrated_below_m23_5"
    assert limit_of(found.to_dict()) == found


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("laeq_15min_db", "is not a limit: write it as laeq_15min_db>100"),
        ("laeq_15min_db>loud", "is not a limit"),
        ("laeq_15min_db>1e", "'1e' is not a number"),
        ("laeq_15min_db>100,ambre=97", "is not a limit"),
        ("laeq_15min_db>100,amber=101", "amber is 101, beyond the limit itself: give less"),
        ("laeq_15min_db<100,amber=99", "amber is 99, beyond the limit itself: give more"),
        ("laeq_15min_db>100,ahead=-1", "the ahead_s of laeq_15min_db is -1: give 0 or more"),
        ("laeq_15min_db>100,hold=-1", "the hold_s of laeq_15min_db is -1: give 0 or more"),
        ("laeq_15min_db>100,hysteresis=nan", "the hysteresis of .* is 'nan': give a number"),
        (
            "laeq_15min_db>100,name=A b",
            "the name of a limit is 'A b': give small letters, digits and _",
        ),
    ],
)
def test_what_is_no_limit_is_refused(text, said):
    with pytest.raises(LimitError, match=said):
        limit_from_text(text)


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"above": 1.0}, "a limit needs a column"),
        ({"column": "laf_db"}, "a limit needs a column, and either above or below"),
        ({"column": "laf_db", "above": 1.0, "below": 0.0}, "either above or below"),
        ({"column": "laf_db", "above": "loud"}, "the threshold of laf_db is 'loud': give a number"),
        ({"column": "laf_db", "above": True}, "give a number"),
        ({"column": "laf_db", "above": 10**400}, "give a number"),
        ({"column": "laf_db", "above": float("nan")}, "give a number"),
        ({"column": "laf*", "above": 1}, r"column of a limit is 'laf\*': give its whole name"),
        ({"column": "laf_db", "above": 1, "at_end": 1}, "at_end of laf_db is '1': give true or"),
        ({"column": "laf_db", "above": 1, "treshold": 1}, "treshold is not a key of a limit"),
    ],
)
def test_a_table_that_is_no_limit_is_refused(table, said):
    with pytest.raises(LimitError, match=said):
        limit_of(table)


def sound_levels(power, since_s=np.inf, fault=None, calibrated=True, start=0, skipped=0):
    """Frames of `spl` whose mean squares are these, of all weightings."""
    n = len(power)
    weighted, timed = np.tile(power, (3, 1))[None], np.tile(power, (9, 1))[None]
    values = SoundLevelOutput(weighted, timed, timed, timed, weighted, np.sqrt(2 * weighted))
    number = start + np.arange(1, n + 1)
    return Frames(
        time_s=number / 100,
        sample=number * 480,
        utc=1.7e9 + number / 100,
        values=values,
        fault=np.zeros(n, np.uint8) if fault is None else np.asarray(fault, np.uint8),
        settling=np.zeros(n, bool),
        since_s=np.broadcast_to(np.float64(since_s), n).copy(),
        level_db=np.zeros((2, n), np.float32),
        calibrated=calibrated,
        skipped=skipped,
        model="spl",
    )


def square(level_db):
    return 4e-10 * 10 ** (np.asarray(level_db) / 10)


def limited(*limits, step_ms=100, columns=("laf_db",), **more):
    readings = readings_of(["spl"], 1)
    choose(readings, columns, [limit.column for limit in limits])
    choose(readings, None, columns_of(limit for limit in limits if limit.ahead_s))
    return JoinedRows(readings, step_ms, 48000, limits=limits, **more)


def test_rows_have_a_column_for_each_limit():
    limits = Limit("laf_db", 80.0, amber=70.0, name="fast"), Limit("laeq_2s_db", 75.0)
    table = limited(*limits)
    assert table.names[3:-5] == ("laf_db", "laeq_2s_db", "limit_fast", "limit_laeq_2s_75")
    level = np.repeat([60.0, 72.0, 82.0, 60.0], 300)
    rows = table(sound_levels(square(level)))
    for row in rows:
        if row["laf_db"] is not None:
            loud = row["laf_db"]
            assert row["limit_fast"] == ("red" if loud > 80 else "amber" if loud > 70 else "green")
    assert [*dict.fromkeys(rows["limit_laeq_2s_75"].tolist())] == ["unknown", "green", "red"]
    told = header(table, [], [], {"channels": []})
    assert [one["name"] for one in told["columns"]] == list(table.names[3:-5])
    assert told["columns"][-1]["quantity"] == "state of the limit laeq_2s_db > 75"
    assert told["limits"][0] == {"name": "fast", "column": "laf_db", "above": 80.0, "amber": 70.0}
    fast, rolling = summary(table, [], [], {"channels": []})["limits"]
    assert (fast["state"], fast["times"], fast["worst"]) == ("green", 1, 82.0)
    assert fast["red_s"] == pytest.approx(3.0)
    assert rolling["exceeded"] is True


def test_events_tell_what_became_of_a_limit():
    limits = [Limit("laf_db", 80.0, amber=70.0, name="fast")]
    table, events = limited(*limits), LimitEvents(limits)
    level = np.repeat([60.0, 72.0, 82.0, 60.0], 300)
    found = []
    for at in range(0, 1200, 70):
        rows = table(sound_levels(square(level[at : at + 70]), start=at))
        found += events(rows)
    assert [event.kind for event in found] == ["limit"] * 3
    assert [event.text for event in found] == [
        "fast is amber: LAF 72.0 dB, limit 80 dB",
        "fast is red: LAF 82.0 dB, limit 80 dB",
        "fast is green: LAF 60.0 dB, limit 80 dB",
    ]
    assert [event.time_s for event in found] == pytest.approx([3.1, 6.1, 9.1])
    assert found[0].sample == pytest.approx(3.1 * 48000)
    assert found[0].utc == pytest.approx(1.7e9 + 3.1)


def test_a_gap_is_counted_out_of_a_rolling_level_and_said():
    """Against the plain calculation over what was there; 0.01 dB is what is asked for."""
    rng = np.random.default_rng(1)
    level = 95 + 6 * np.sin(np.arange(30_000) / 900) + rng.normal(0, 2, 30_000)
    power = square(level)
    table = limited(Limit("laeq_1min_db", 98.0), columns=("laeq_1min_db",))
    since = np.full(18_000, np.inf)
    first = table(sound_levels(power[:12_000]))
    fault = np.zeros(18_000 - 1500, np.uint8)
    fault[0] = Fault.GAP
    since = np.arange(len(fault)) / 100
    rest = power[13_500:]
    second = table(sound_levels(rest, since, fault, start=13_500, skipped=1500))
    there = power.copy()
    there[12_000:13_500] = np.nan
    there[13_500 : 13_500 + 12] = np.nan  # the filters still hear the gap
    checked = 0
    for row in (*first, *second):
        end = round(row["time_s"] * 100)
        if end < 1 or row["laeq_1min_db"] is None:
            continue
        plain = 10 * np.log10(np.nanmean(there[max(0, end - 6000) : end]) / 4e-10)
        assert row["laeq_1min_db"] == pytest.approx(plain, abs=0.01)
        if end > 6000 + 1:
            # 15 s are missing: far more than the share that may be.
            within = "unknown" if 13_500 <= end < 13_500 + 6000 - 60 else "green"
            if not 13_500 + 6000 - 60 <= end < 13_500 + 6000:
                above = row["laeq_1min_db"] > 98
                assert row["limit_laeq_1min_98"] == ("red" if above else within)
        checked += 1
    assert checked > 2500
    gap = [row for row in second if "gap" in row["fault"]]
    assert len(gap) == 1
    whole = [row for row in second if not row["settling_columns"]]
    assert min(row["time_s"] for row in whole) == pytest.approx(135 + 60.12, abs=0.2)


def test_what_was_lost_when_the_sound_was_stopped_leaves_no_limit_kept():
    """Nobody waits for a lost microphone: no later row says that it was away."""
    table = limited(Limit("laf_db", 80.0), to_s=9.0)
    table(sound_levels(square(np.full(300, 60.0))))
    table.event(Event("gap", 3 * 48_000, 3.0, math.nan, 4 * 48_000, cause="device"))
    assert len(table.rest(None)) == 0
    (stood,) = table.stood()
    assert (stood.state, stood.verdict) == ("unknown", "not known")
    assert (stood.unjudged_s, stood.counted_s) == pytest.approx((4.0, 7.1))


def test_uncalibrated_rows_have_no_color():
    table = limited(Limit("laf_db", 80.0))
    rows = table(sound_levels(square(np.full(300, 90.0)), calibrated=False))
    assert {row["limit_laf_80"] for row in rows} == {"uncalibrated"}
    assert {row["calibrated"] for row in rows} == {False}
    assert table.stood()[0].exceeded is None


def test_what_comes_before_the_part_that_rows_cover_does_not_count():
    table = limited(Limit("laf_db", 80.0), from_s=2.0)
    level = np.repeat([90.0, 60.0], [150, 250])
    rows = table(sound_levels(square(level)))
    assert rows["time_s"][0] == 2.0
    assert {row["limit_laf_80"] for row in rows} == {"green"}
    assert table.stood()[0].worst == 60.0


def test_rows_of_limits_go_on_in_new_ones():
    limits = Limit("laf_db", 80.0, hold_s=4.0), Limit("laeq_2s_db", 75.0)
    level = np.repeat([60.0, 82.0, 60.0, 60.0], 200)
    one, other = limited(*limits), limited(*limits)
    one(sound_levels(square(level[:430])))
    other.load_state_dict(one.state_dict())
    rest = [table(sound_levels(square(level[430:]), start=430)) for table in (one, other)]
    assert [*rest[0]] == [*rest[1]]
    assert "red" in rest[0]["limit_laf_80"]
    assert [s.to_dict() for s in one.stood()] == [s.to_dict() for s in other.stood()]


def test_a_limit_of_an_equivalent_level_brings_its_forecasts():
    limits = [
        Limit("laeq_15min_db", 99.5),
        Limit("lex_8h_left_db", 85),
        Limit("laf_db", 80.0),
        Limit("laeq_1min_db", 30.0, below=True),
    ]
    assert columns_of(limits) == [
        *("laeq_15min_db", "laeq_15min_allowed_99p5_db", "laeq_15min_until_99p5_s"),
        *("lex_8h_left_db", "lex_8h_allowed_85_left_db", "lex_8h_until_85_left_s"),
        *("laf_db", "laeq_1min_db"),
    ]
    readings = readings_of(["spl"], 2)
    choose(readings, [], columns_of(limits))
    assert [column.name for column in readings["spl"].columns] == columns_of(limits)


def test_what_is_allowed_is_what_both_channels_may():
    readings = readings_of(["spl"], 2)
    names = ["laeq_30s_allowed_80_db", "laeq_30s_until_80_s"]
    sides = [name.replace("80_", f"80_{side}_") for side in ("left", "right") for name in names]
    choose(readings, [*names, *sides])
    quiet, loud = (sound_levels(square(np.full(3500, level))) for level in (70.0, 77.0))
    loud.values.mean_square[..., 3000:] *= 4
    both = zip(quiet.values, loud.values, strict=True)
    given = dataclasses.replace(
        quiet, values=SoundLevelOutput(*(np.concatenate(pair) for pair in both))
    )
    allowed, until, *each = readings["spl"].take(given)[-1]
    assert (allowed, until) == tuple(each[2:])
    assert allowed < each[0]
    assert 0 < until < 30
    assert np.isnan(each[1])


def test_a_limit_of_no_column_is_refused():
    readings = readings_of(["spl"], 1)
    with pytest.raises(LimitError, match="ltl_phon > 80: there is no such column in these rows"):
        JoinedRows(readings, 100, 48000, limits=[Limit("ltl_phon", 80.0)])


def test_a_rolling_level_is_the_plain_calculation():
    """Through the whole chain: 1 kHz, of which A leaves all, whose level wobbles by 12 dB."""
    fs = 48000
    time_s = np.arange(12 * fs) / fs
    tone = np.sin(2 * np.pi * 1000 * time_s) * 10 ** ((6 * np.sin(0.9 * time_s) - 20) / 20)
    m = measure(tone, fs, "spl", calibration=100.0, limits=["laeq_5s_db>81"], step_ms=100)
    power = 2 * np.concatenate([[0], np.cumsum(tone**2)]) / fs
    for row in m.rows:
        if row["time_s"] > 5.1:
            end = round(row["time_s"] * fs)
            plain = 100 + 10 * np.log10((power[end] - power[end - 5 * fs]) / 5)
            assert row["laeq_5s_db"] == pytest.approx(plain, abs=0.01)
            assert row["limit_laeq_5s_81"] == ("red" if row["laeq_5s_db"] > 81 else "green")
    assert {"red", "green"} <= {*m["limit_laeq_5s_81"].tolist()}


WARNS = Limit("laeq_1min_db", 90.0, ahead_s=15.0, hold_s=5.0)


def louder_from(limit, begin_s=70, level_db=95.0, seconds=100):
    """Rows of 80 dB, and of another level from then on."""
    levels = np.where(np.arange(seconds * 100) < begin_s * 100, 80.0, level_db)
    return limited(limit, step_ms=1000)(sound_levels(square(levels)))


def test_a_limit_warns_before_it_is_exceeded():
    """At 95 dB for 17.6 s and 80 dB before, the level of a minute is 90 dB."""
    found = louder_from(WARNS)
    states, level = found[WARNS.state], found["laeq_1min_db"]
    amber, red = (int(np.argmax(states == color)) for color in ("amber", "red"))
    assert found["time_s"][red] == 88
    assert 10 <= red - amber <= 15
    assert level[amber] < 88 < level[red - 1] < 90
    assert (states[amber:red] == "amber").all()
    assert (louder_from(dataclasses.replace(WARNS, ahead_s=0.0))[WARNS.state] != "amber").all()
    events = LimitEvents([WARNS])(found)
    assert [event.text.split()[2] for event in events] == ["amber:", "red:"]
    left = round(found["laeq_1min_until_90_s"][amber])
    assert events[0].text.endswith(f"limit 90 dB; over the limit in {left} s at this level")
    assert "level" not in events[1].text
    row = next(iter(found.where(slice(amber, None))))
    assert state_words(WARNS, row) == f"Over the limit in {left} s at this level"
    assert alarm_words([Limit("laf_db", 70.0), WARNS], row) == (
        f"{value_words(WARNS, row)}: over the limit in {left} s at this level. Up to "
        f"{row['laeq_1min_allowed_90_db']:.1f} dB allowed from now on"
    )
    assert alarm_words([WARNS], row | {WARNS.state: "red"}) == ""


def test_a_warning_by_forecast_ends_when_it_is_quieter():
    found = louder_from(WARNS, level_db=95.0, seconds=80)
    levels = np.repeat([80.0, 95.0, 70.0], [7000, 800, 4000])
    rows = limited(WARNS, step_ms=1000)(sound_levels(square(levels)))
    states = rows[WARNS.state].tolist()
    assert "red" not in {*found[WARNS.state], *states}
    last = len(states) - 1 - states[::-1].index("amber")
    assert last < 100
    assert states[-1] == "green"


@pytest.mark.parametrize("column", ["laf_db", "lcpeak_db", "laeq_db"])
def test_a_warning_needs_a_forecast(column):
    with pytest.raises(LimitError, match=f"{column} has no forecast"):
        columns_of([Limit(column, 90.0, ahead_s=300.0)])
    with pytest.raises(LimitError, match="has no forecast of an upper limit"):
        columns_of([Limit("laeq_15min_db", 90.0, below=True, ahead_s=300.0)])
    readings = readings_of(["spl"], 1)
    choose(readings, ["laeq_1min_db"])
    with pytest.raises(LimitError, match="needs laeq_1min_until_90_s, which these rows lack"):
        JoinedRows(readings, 100, 48000, limits=[WARNS])


def on_page(limit, row):
    """What the page shows of a limit."""
    screens = Screens()
    screens.take(Message("header", {"limits": [limit.to_dict()]}))
    screens.take(Message("state", {"state": "measuring"}))
    screens.take(Message("row", {"fault": "", "time_s": 1.0} | row))
    (screen,) = screens.messages()
    (told,) = screen.content["limits"]
    return told


def test_the_words_of_a_limit_are_those_of_all_displays():
    limit = Limit("laeq_15min_db", 99.5)
    row = {"laeq_15min_db": 97.31, limit.state: "amber"}
    row |= {"laeq_15min_allowed_99p5_db": 98.24, "laeq_15min_until_99p5_s": 840.0}
    forecast = "Forecast: 14 min left at this level; up to 98.2 dB allowed from now on"
    assert state_words(limit, row) == "Close to the limit"
    assert value_words(limit, row) == "LAeq,15min 97.3 dB, limit 99.5 dB"
    assert value_words(limit, row, brief=True) == "LAeq,15min 97.3, limit 99.5 dB"
    assert forecast_words(limit, row) == forecast
    assert value_words(limit, row, ["lost"]) == "LAeq,15min --- dB, limit 99.5 dB"
    assert state_words(limit, row, ["lost"]) == "Not known: lost"
    assert forecast_words(limit, row, ["lost"]) == ""
    assert forecast_words(limit, row | {limit.state: "uncalibrated"}) == "", "it is not judged"
    page = on_page(limit, row)
    told = [page[key] for key in ("state", "word", "value", "without", "more")]
    wanted = ["amber", "Close to the limit", "LAeq,15min 97.3 dB, limit 99.5 dB"]
    assert told == [*wanted, "LAeq,15min --- dB, limit 99.5 dB", forecast]
    early = {limit.state: "amber", "laeq_15min_db": 101.0}
    page = on_page(limit, early)
    assert page["word"] == state_words(limit, early) == "Above the limit so far"
    assert page["more"] == "Only part of its time was measured"
    early = {limit.state: "unknown", "laeq_15min_db": 85.5}
    assert state_words(limit, early) == "Within the limit so far"
    assert value_words(limit, early) == "LAeq,15min 85.5 dB so far, limit 99.5 dB"
    clipped = early | {"clipped_columns": "laf_db laeq_15min_db"}
    assert state_words(limit, clipped) == "Not known: the sound was clipped"
    assert (
        value_words(limit, clipped)
        == "LAeq,15min \N{GREATER-THAN OR EQUAL TO} 85.5 dB, limit 99.5 dB"
    )
    assert forecast_words(limit, clipped) == ""
    lower = Limit("laeq_15min_db", 30.0, below=True)
    missed = {"laeq_15min_db": 28.0, lower.state: "red"}
    assert state_words(lower, missed) == "Below the limit"
    assert value_words(lower, missed) == "LAeq,15min 28.0 dB, at least 30 dB"


@pytest.mark.parametrize(
    ("text", "rises", "value", "verdict"),
    [
        ("laf_db>80", True, 70.0, "not known"),
        ("laf_db>80,amber=60", True, 70.0, "not known"),
        ("laf_db>80", True, 90.0, "exceeded"),
        ("laf_db<60", True, 70.0, "kept"),
        ("laf_db<60", True, 50.0, "not known"),
        ("laf_db<60", False, 70.0, "not known"),
    ],
)
def test_one_clipped_row_of_a_thousand_leaves_no_limit_kept_that_louder_sound_breaks(
    text, rises, value, verdict
):
    for clipped, expected in ((True, verdict), (False, None)):
        monitor = LimitMonitor(limit_from_text(text), 0.1, rises=rises)
        monitor.update((0.1 * k, 70.0, True, False, True) for k in range(1, 1000))
        monitor.update([(100.0, value, True, clipped, True)])
        monitor.update((100.0 + 0.1 * k, 70.0, True, False, True) for k in range(1, 1000))
        stood = monitor.stood
        assert stood.verdict == (expected or ("kept" if value == 70.0 else "exceeded"))
        assert stood.clipped_s == pytest.approx(0.1 * clipped)
        assert (stood.exceeded is None) == (stood.verdict == "not known")


def test_a_clipped_limit_says_for_how_long():
    state = {"worst": 70.0, "unjudged_s": 0.1, "counted_s": 200.0, "clipped_s": 0.1}
    assert unknown_words(state) == "is not known: the sound was clipped for 0.1 s"
