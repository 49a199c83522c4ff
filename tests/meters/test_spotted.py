"""Events of sound by themselves: what rows tell of where one begins, and where it has ended."""

import numpy as np
import pytest

from amt_stream.meters.rows import Rows, Spotter
from amt_stream.meters.triggers import Trigger, TriggerError, trigger_from_text, trigger_of

FS = 48000


def rows_of(values, step_s=0.1, row=None, clipped=()):
    time_s = np.arange(len(values)) * step_s
    columns = {
        "time_s": time_s,
        "utc": np.datetime64(0, "ms") + np.rint(1000 * time_s).astype("timedelta64[ms]"),
        "sample": np.rint(time_s * FS).astype(np.int64),
        "laf_db": np.asarray(values, np.float64),
        "clipped_columns": np.full(len(values), "", object),
    }
    columns["clipped_columns"][list(clipped)] = "all"
    return Rows(columns | ({} if row is None else {"row": np.array(row, object)}))


@pytest.mark.parametrize(("at", "begin", "end"), [(3, "", "≥ "), (2, "≥ ", "≥ "), (6, "", "")])
def test_of_clipped_sound_it_says_that_it_was_louder(at, begin, end):
    rows = rows_of([50, 50, 90, 95, 50, 50, 50, 50], clipped=[at])
    spot = Spotter([trigger_from_text("laf_db>80,hold=0")], 0.1, FS)
    texts = [one.event(FS).text for one in spot(rows)]
    assert [f"laf_db is {begin}90.0" in texts[0], f"laf_db was {end}95.0" in texts[1]] == [True] * 2


def spotted(text, values, size=None, step_s=0.1, row=None):
    """Which row each event is at, whether it begins there, and its value; handed in in parts."""
    spot, rows = Spotter([trigger_from_text(text)], step_s, FS), rows_of(values, step_s, row)
    size = size or len(values)
    found = []
    for at in range(0, len(values), size):
        found += spot(rows.where(slice(at, at + size)))
    return [(round(one.time_s / step_s), one.is_begin, one.worst) for one in found], found


@pytest.mark.parametrize("size", [1, 3, None])
def test_it_begins_above_and_ends_where_it_has_come_back_for_long_enough(size):
    wobble = [80, 86, 90, 84, 83, 86, 81, 81, 83, 81, 81, 81, 81, 81, 81, 95]
    places, found = spotted("laf_db>85,hysteresis=3,hold=0.5", wobble, size)
    assert places == [(1, True, 86), (9, False, 90), (15, True, 95)]
    assert [one.samples for one in found] == [0, round(0.8 * FS), 0]
    events = [one.event(FS) for one in found]
    assert [event.kind for event in events] == ["sound_begin", "sound_end", "sound_begin"]
    assert events[0].text == "laf_85 begins: laf_db is 86.0, laf_db > 85"
    assert events[1].text == "laf_85 has ended after 0.80 s: laf_db was 90.0 at most"
    assert (events[1].sample, events[1].utc) == (round(0.9 * FS), pytest.approx(0.9))


def test_no_number_is_no_event_and_ends_one():
    values = [np.nan, 90, 90, *[np.nan] * 12, 90]
    places, _ = spotted("laf_db>85", values)
    assert places == [(1, True, 90), (3, False, 90), (15, True, 90)]
    assert spotted("laf_db<30", [np.nan, 40, 20, np.nan])[0] == [(2, True, 20)]


def test_of_several_each_has_its_own():
    values, whose = [90, 20, 90, 90], ["left", "right"] * 2
    _, found = spotted("laf_db>85", values, row=whose)
    assert [(one.microphone, one.sample) for one in found] == [
        ("left", 0),
        ("right", round(0.3 * FS)),
    ]
    assert found[1].event(FS).microphone == "right"


def test_the_background_is_what_was_exceeded_most_of_the_time():
    rng = np.random.default_rng(1)
    quiet = 40 + rng.normal(0, 1, 6000)
    quiet[1500:2500:4] += 30
    quiet[:3] = 90
    places, found = spotted("laf_db>background+20,hold=0.3", quiet, size=50)
    # It is known after 10 s; before that nothing can be over it.
    assert places[0][0] == 1500
    assert all((row - 1500) % 4 <= 1 for row, is_begin, _ in places if is_begin)
    assert places[-1][0] <= 2500
    lower = np.percentile(quiet[:1500], 10)
    shifted = np.concatenate([quiet[:1500], np.full(20, lower + 21), np.full(20, lower)])
    assert spotted("laf_db>background+20", shifted)[0] == [
        (1500, True, pytest.approx(lower + 21)), (1520, False, pytest.approx(lower + 21)),
    ]  # fmt: skip
    assert spotted("laf_db>background+22", shifted)[0] == []
    assert found[0].event(FS).text.endswith("laf_db > background + 20")


def test_what_does_not_last_is_none():
    # A click; what dips, and lasts; what goes on.
    values = [20, 90, *[20] * 12, 90, 83, 90, 91, 86, 90, *[20] * 12, *[90] * 9]
    places, found = spotted("laf_db>85,for=0.5,hold=0.3", values, size=2)
    assert places == [(14, True, 91), (20, False, 91), (32, True, 90)]
    assert found[1].samples == round(0.6 * FS)
    assert spotted("laf_db>85,for=0.5,hold=5", values[:14])[0] == []
    assert spotted("laf_db>85,for=0.6,hold=0.3", values[:20])[0] == []


def test_an_alarm_lasts_as_long_as_any_limit_is_red():
    rows = rows_of(np.zeros(30))
    venue, night = np.full(30, "green", object), np.full(30, "unknown", object)
    venue[3:6], night[5:9], night[25:] = "red", "red", "red"
    rows = Rows({name: rows[name] for name in rows.columns} | {"limit_venue": venue})
    rows = Rows({name: rows[name] for name in rows.columns} | {"limit_night": night})
    spot = Spotter([trigger_from_text("limits")], 0.1, FS)
    events = [one.event(FS) for one in spot(rows)]
    assert [(round(10 * one.time_s), one.text) for one in events] == [
        (3, "limits begins: venue is red"),
        (9, "limits has ended after 0.60 s: venue was red"),
        (25, "limits begins: night is red"),
    ]


def test_what_is_typed_is_what_a_file_says():
    for text, name in (
        ("laf_db>85", "laf_85"),
        ("laf_db > background + 12.5,hold=3", "laf_background_12_5"),
        ("limits", "limits"),
        ("laf_db>85 , for = 2.5, hold=3,name=a", "a"),
        ("laf_db<30,hysteresis=0,hold=0,name=calm", "calm"),
    ):
        trigger = trigger_from_text(text)
        assert trigger.limit.name == name
        assert trigger_of(trigger.to_dict()) == trigger
    assert isinstance(trigger, Trigger)
    assert (trigger.limit.hysteresis, trigger.limit.hold_s) == (0, 0)
    assert trigger_from_text("laf_db>85").to_dict()["hysteresis"] == 3


@pytest.mark.parametrize(
    "text", ["", "laf_db", "laf_db>", "laf_db<background+3", "laf_db>85,amber=80", "laf_db>x"]
)
def test_what_begins_nothing_is_refused(text):
    with pytest.raises(TriggerError, match="is not a trigger: write it as laf_db>85 or laf_db>bac"):
        trigger_from_text(text)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"column": "laf_db", "above": 3, "amber": 2}, "amber is only for limits"),
        ({"column": "laf_db", "above": 3, "over_background": 1}, "give true or false"),
        (
            {"column": "laf_db", "below": 3, "over_background": True},
            "a threshold relative to the background must be above",
        ),
        ({"column": "limits", "above": 3}, "of limits may only have a name, hold_s and for_s"),
        ({"column": "laf_db", "above": 3, "for_s": -1}, "for_s is -1: give 0 to 600 seconds"),
        ({"column": "laf_db"}, "an event: a limit needs a column, and either above or below"),
    ],
)
def test_a_table_that_describes_none_is_refused(table, words):
    with pytest.raises(TriggerError, match=words):
        trigger_of(table)
