"""Limits that come while a measurement runs judge what was measured before, where that is known."""

import numpy as np
import pytest

from amt_stream.dsp.models import ECMA418, ZwickerTimeVarying
from amt_stream.dsp.stages import SoundLevel, ThirdOctaves
from amt_stream.engine import Engine, Noise, SignalSource, Tone
from amt_stream.engine.inputs.faults import FaultSource
from amt_stream.meters.accumulators import RollingLevel
from amt_stream.meters.accumulators.level_memory import LevelMemory
from amt_stream.meters.frames import Event
from amt_stream.meters.limits import Limit
from amt_stream.meters.rows import JoinedRows, choose, columns_of, readings_of

FS = 48000
SOUND = [
    Noise(level_db=60.0),
    Tone(1000.0, level_db=80.0, start=1.0, duration=0.3),
    Tone(500.0, level_db=72.0, start=4.0, duration=0.5),
]
MODELS = {"spl": SoundLevel(FS), "third_octave": ThirdOctaves(FS)}


def frames_of(models, duration=6.0, source=None):
    found = []
    source = source or SignalSource(SOUND, FS, duration=duration, paced=False)
    with Engine(source, models, [found.append], run_in="callback") as engine:
        assert engine.wait(60)
    return found


@pytest.fixture(scope="module")
def frames():
    return frames_of(MODELS)


def table(names, limits=(), columns=None):
    readings = readings_of(names, 2)
    choose(readings, columns, columns_of(limits))
    rows = JoinedRows(readings, 100, FS, limits=limits)
    rows.remember()
    return rows


def at(kind, time_s):
    return Event(kind, round(time_s * FS), time_s, 0.0)


def made(rows, frames, events=(), changes=()):
    """The rows of frames, with events and changes of the rows at their times; the last of them.

    changes: pairs of a time, and a function from the present rows to those that follow
    """
    parts, waiting = [], sorted([*((one.time_s, one) for one in events), *changes], key=_time)
    for one in frames:
        while waiting and one.begin_s >= waiting[0][0]:
            (_, what), waiting = waiting[0], waiting[1:]
            if isinstance(what, Event):
                rows.event(what)
            else:
                rows = what(rows)
        parts.append(rows(one))
    return [part for part in parts if len(part)], rows


def _time(pair):
    return pair[0]


def changed(names, limits, columns=None):
    def change(rows):
        now = table(names, limits, columns)
        now.take_over(rows)
        return now

    return change


def column(parts, name, from_s):
    found = [(part["time_s"], part[name]) for part in parts if name in part.columns]
    time_s, values = (np.concatenate(v) for v in zip(*found, strict=True))
    return values[time_s >= from_s - 1e-6]


LATE = [
    Limit("lceq_db", 66.0),
    Limit("l5_db", 70.0),
    Limit("lafmax_db", 79.0),
    Limit("laeq_1min_db", 65.0),
    Limit("lex_8h_db", 40.0),
    Limit("lzeq_1000hz_db", 60.0),
]


def test_values_that_come_late_are_those_of_the_whole_measurement(frames):
    names = [*MODELS]
    whole, _ = made(table(names, LATE), frames)
    late, rows = made(table(names), frames, changes=[(3.0, changed(names, LATE))])
    again, _ = made(table(names), frames)
    for limit in LATE:
        there, wanted = (column(parts, limit.column, 3.3) for parts in (late, whole))
        np.testing.assert_allclose(there, wanted, atol=1e-6, err_msg=limit.column)
    # What was there goes on as if nothing had happened.
    for name in again[0].columns:
        np.testing.assert_array_equal(
            np.concatenate([p[name] for p in late]), np.concatenate([p[name] for p in again])
        ) if name not in ("settling_columns", "clipped_columns") else None
    assert [one.judged_from_s for one in rows.stood()] == [pytest.approx(2.9, abs=0.11)] * len(LATE)


def test_a_removed_limit_leaves_no_column(frames):
    limits = [Limit("lceq_db", 66.0), Limit("laf_db", 75.0)]
    parts, rows = made(table(["spl"], limits), frames[::2], changes=[(3.0, changed(["spl"], []))])
    assert "lceq_db" not in rows.names
    assert "limit_laf_75" in parts[0].columns
    assert "limit_laf_75" not in parts[-1].columns


def test_a_limit_that_stays_goes_on_and_another_threshold_judges_anew(frames):
    first, other = Limit("laf_db", 75.0), Limit("laf_db", 62.0)
    own = [one for one in frames if one.model == "spl"]
    _, rows = made(table(["spl"], [first]), own, changes=[(3.0, changed(["spl"], [other, first]))])
    by_threshold = {one.limit.threshold: one for one in rows.stood()}
    assert by_threshold[75.0].times == 1, "the tone at 1 s is forgotten"
    assert by_threshold[75.0].judged_from_s == 0.0
    assert by_threshold[62.0].times == 1, "only the second tone came after it"
    assert by_threshold[62.0].judged_from_s == pytest.approx(2.9, abs=0.11)
    assert by_threshold[62.0].to_dict()["judged_from_s"] == by_threshold[62.0].judged_from_s
    assert "judged_from_s" not in by_threshold[75.0].to_dict()


def test_a_limit_in_the_place_of_another_takes_nothing_from_it(frames):
    first, other = Limit("laf_db", 75.0), Limit("laf_db", 62.0)
    own = [one for one in frames if one.model == "spl"]
    stood = [
        made(table(["spl"], [first]), own, changes=[(3.0, changed(["spl"], limits))])[1].stood()[0]
        for limits in ([other], [other, first])
    ]
    assert stood[0] == stood[1]
    assert sum(stood[0].seconds.values()) == pytest.approx(stood[0].counted_s)


def test_green_is_not_known_of_a_statistic_that_missed_sound_before_its_limit():
    """A third of the sound was lost before the limit came: it could have been louder."""
    sound = SignalSource([Noise(level_db=60.0)], FS, duration=6.0, paced=False)
    own = frames_of({"spl": MODELS["spl"]}, source=FaultSource(sound, [("drop", 1.0, 1.5)]))
    limits = [Limit("laeq_db", 90.0), Limit("laeq_1min_db", 90.0), Limit("laf_db", 90.0)]
    whole, ended = made(table(["spl"], limits), own)
    late, rows = made(table(["spl"]), own, changes=[(4.0, changed(["spl"], limits))])
    for limit in limits:
        assert column(late, limit.state, 4.2).tolist() == column(whole, limit.state, 4.2).tolist()
    assert set(column(late, "limit_laeq_90", 4.2)) == {"unknown"}
    assert set(column(late, "limit_laf_90", 4.2)) == {"green"}
    counted = [one.counted_s for one in rows.stood()]
    assert counted[0] == pytest.approx(ended.stood()[0].counted_s, abs=0.3)
    assert rows.stood()[0].verdict == ended.stood()[0].verdict == "not known"


def test_a_short_window_a_percentile_and_a_dose_begin_with_their_limit(frames):
    limits = [Limit("laeq_1s_db", 90.0), Limit("l90_2s_db", 90.0), Limit("dose_70_3_percent", 90.0)]
    own = [one for one in frames if one.model == "spl"]
    late, _ = made(table(["spl"]), own, changes=[(3.5, changed(["spl"], limits))])
    whole, _ = made(table(["spl"], limits), own)
    for name, windows_s in (("limit_laeq_1s_90", 1.0), ("limit_l90_2s_90", 2.0)):
        states = column(late, name, 3.6).tolist()
        begun = round(10 * windows_s)
        assert set(states[: begun - 2]) == {"unknown"}
        assert set(states[begun + 1 :]) == {"green"}
    ends = [column(parts, "dose_70_3_percent", 5.0)[-1] for parts in (whole, late)]
    assert 0 < ends[1] < ends[0]


def test_a_dose_that_was_there_is_of_all_sound(frames):
    """So a gap before its limit counts too."""
    own = [one for one in frames if one.model == "spl"]
    limit = Limit("dose_70_3_percent", 90.0)
    columns = "laf_db,dose_70_3_percent"
    _, rows = made(table(["spl"], (), columns), own)
    now = table(["spl"], [limit], columns)
    now.take_over(rows)
    assert now.stood()[0].counted_s == pytest.approx(6.0, abs=0.1)


def test_forecasts_of_other_limits_stay_with_theirs(frames):
    own = [one for one in frames if one.model == "spl"]
    first, second = Limit("laeq_1min_db", 90.0), Limit("laeq_1min_db", 80.0)
    whole, _ = made(table(["spl"], [first]), own)
    late, _ = made(
        table(["spl"], [first]), own, changes=[(3.45, changed(["spl"], [second, first]))]
    )
    name = "laeq_1min_allowed_90_db"
    assert column(late, name, 1.0).tolist() == column(whole, name, 1.0).tolist()


def test_a_reset_is_undone_after_limits_have_changed(frames):
    own = [one for one in frames if one.model == "spl"]
    limits = [Limit("laf_db", 75.0), Limit("lceq_db", 90.0)]
    events = at("readings_reset", 2.0), at("reset_undone", 3.5)
    _, ended = made(table(["spl"], limits), own)
    _, rows = made(table(["spl"], limits[:1]), own, events, [(3.0, changed(["spl"], limits))])
    assert rows.stood()[0] == ended.stood()[0]
    assert rows.summary() == ended.summary()


@pytest.mark.cases(1)
@pytest.mark.parametrize(
    ("model", "limit"),
    [
        (("zwicker", ZwickerTimeVarying(FS)), Limit("zwicker_n10_sone", 5.0)),
        (("ecma", ECMA418(FS)), Limit("ecma_loudness_n10_sone", 5.0)),
    ],
    ids=["zwicker", "ecma"],
)
def test_percentiles_of_other_models_are_of_the_whole_measurement(model, limit):
    name, stage = model
    own = frames_of({name: stage}, 3.0)
    whole, _ = made(table([name], [limit]), own)
    late, _ = made(table([name]), own, changes=[(1.5, changed([name], [limit]))])
    there, wanted = (column(parts, limit.column, 1.9) for parts in (late, whole))
    np.testing.assert_allclose(there, wanted, rtol=1e-6)
    for shown in table([name]).readings[name].columns:
        np.testing.assert_array_equal(
            column(late, shown.name, 0.0), column(whole, shown.name, 0.0), err_msg=shown.name
        )


@pytest.mark.parametrize("window_s", [60.0, 7200.0])
def test_a_window_is_filled_with_what_was_heard(window_s):
    """Levels a second apart, with sound that was not valid, a gap, and an odd beginning."""
    random = np.random.default_rng(2)
    squares = 10 ** random.uniform(-8, -4, (3, 90_000))
    squares[:, random.random(90_000) < 0.02] = np.nan
    memory, level = LevelMemory(3), RollingLevel(window_s, 0.01)
    first, gap = 37, 700
    for at in range(0, 90_000, 10):
        number = first + at + (gap if at >= 45_000 else 0)
        memory.add(squares[:, at : at + 10], number)
    level.add(squares[1, :45_000])
    level.skip(gap)
    whole = level.add(squares[1, 45_000:])
    late = RollingLevel(window_s, 0.01)
    memory.fill(late, 1)
    now = squares[1, -1:]
    again = late.add(now)[0], level.add(now)[0]
    assert again[0] == pytest.approx(again[1], abs=0.02)
    assert np.isfinite(whole[-1])
    heard = min(window_s, 900.0 + gap / 100)
    assert memory.heard_s(window_s) == pytest.approx(heard)
    missed = np.diff(memory.missed(window_s)).sum()
    assert missed == pytest.approx(heard - late.covered_s, abs=0.3)


def test_a_memory_is_of_one_day():
    memory = LevelMemory(1)
    memory.add(np.full((1, 10), 1.0), 0)
    memory.add(np.full((1, 10), 4.0), 90_000 * 100)
    level = RollingLevel(24 * 3600.0, 0.01)
    memory.fill(level, 0)
    assert level.covered_s == pytest.approx(0.1)
    assert memory.heard_s(1e9) == pytest.approx(86_399.1, abs=1.0)
