"""Readings of tones, impulses and the rating level, as users get them."""

import json
from pathlib import Path

import numpy as np
import pytest

from amt_stream import measure
from amt_stream.meters.accumulators.rating import (
    Rated,
    RatingMeter,
    Values,
    impulse_adjustment,
    rating_level,
    tone_adjustment,
)
from amt_stream.meters.frames import LEFT_OUT, TAKEN_IN, Event
from amt_stream.meters.rows import JoinedRows
from amt_stream.meters.rows.readings import readings_of
from amt_stream.offline.selftest.ways import Recorded
from tests.dsp.metrology.test_rating import tone, white
from tests.meters.test_state import unkept

DATA = json.loads((Path(__file__).parents[1] / "data" / "rating.json").read_text("utf-8"))
FS = 16000


def sound(seconds=13.0, tones=True):
    """A tone in noise, and two hammers, the second one stronger."""
    x = white(30, seconds, FS, 1)
    if tones:
        x += tone(1000, 60, seconds, FS)
    for at, strength in ((4, 100), (8, 400)):
        x[at * FS : at * FS + 100] *= strength
    return x


def read(x, model="rating", **settings):
    return measure(x, FS, model, calibration="pascal", **settings)


def test_adjustments():
    assert [tone_adjustment(one["dL"]) for one in DATA["kt"]] == [one["KT"] for one in DATA["kt"]]
    for one in DATA["prominence"]:
        p = 3 * np.log10(one["OR"]) + 2 * np.log10(one["LD"])
        assert p == pytest.approx(one["P"], abs=1e-4)
        assert impulse_adjustment(p) == pytest.approx(one["KI"], abs=2e-4)


def test_the_rating_level_of_intervals():
    intervals = [Rated(*one) for one in DATA["rating"]["intervals"]]
    assert rating_level(intervals) == pytest.approx(DATA["rating"]["L"], abs=1e-5)
    both = [Rated(50, 3, 4, 60)]
    assert [rating_level(both, how) for how in ("sum", "max")] == pytest.approx([57, 54])
    assert np.isnan(rating_level([]))


def test_tones_impulses_and_their_sum():
    found = read(sound()).summary
    assert found["kt_db"] >= 4
    assert found["tone_n"] == 4
    assert found["impulse_n"] == 2
    together = found["rating_laeq_db"] + found["kt_db"] + found["ki_db"]
    assert found["rating_db"] == pytest.approx(together, abs=2e-5)
    greater = read(sound(), combine="max").summary
    most = max(found["kt_db"], found["ki_db"])
    assert greater["rating_db"] == pytest.approx(found["rating_laeq_db"] + most, abs=2e-5)
    level = read(sound(), "spl").summary["laeq_db"]
    assert greater["rating_laeq_db"] == pytest.approx(level, abs=1e-3)


def test_each_model_alone_has_the_same():
    both = read(sound()).summary
    for model in ("tonal_audibility", "impulses"):
        alone = read(sound(), model).summary
        own = {k: v for k, v in alone.items() if k.startswith(("tone", "impulse", "k"))}
        assert own == {k: both[k] for k in own}
        assert len(own) >= 3


def test_there_is_no_number_without_a_tone():
    found = read(white(30, 7, FS, 2))
    assert found.summary["tone_mean_dl_db"] is None
    assert np.isnan(found["tone_dl_db"]).all()
    assert (found.summary["kt_db"], found.summary["tone_n"]) == (0, 2)
    assert np.isnan(found["kt_db"][:29]).all()
    assert found.summary["ki_db"] < 0.5


def test_a_tone_gives_its_adjustment_after_three_seconds():
    found = read(sound()[: 4 * FS], step_ms=100)
    (first,) = np.flatnonzero(np.isfinite(found["kt_db"]))[:1]
    assert found["time_s"][first] <= 3.0
    assert found["tone_hz"][first] == pytest.approx(1000, abs=2)
    # It is held, and known how old it is.
    assert np.isfinite(found["tone_dl_db"][first:]).all()
    age = found["tone_age_s"][first:]
    np.testing.assert_allclose(age, 0.1 * np.arange(len(age)), atol=1e-4)


def test_an_impulse_is_known_at_once_and_when_it_began():
    found = read(sound(), step_ms=100)
    known = found["time_s"][np.flatnonzero(found["impulse_n"] == 1)[0]]
    assert known <= 4.2
    at = np.flatnonzero(found["impulse_n"] == 1)[-1]
    assert found["impulse_s"][at] == pytest.approx(4.0, abs=0.021)
    assert found["impulse_s"][-1] == pytest.approx(8.0, abs=0.021)


def test_a_hammer_has_its_adjustment_within_200_ms():
    """Wherever it falls in a frame; the rows that come later do not change it."""
    x, strikes = white(30, 9, FS, 1), 2 + 0.87 * np.arange(8)
    for number, at in enumerate(strikes):
        x[round(at * FS) :][:800] *= 10 * 1.4**number
    found = read(x, "impulses", step_ms=100)
    adjusted = found["ki_db"]
    for at in strikes:
        first = int(np.searchsorted(found["time_s"], at + 0.2 + 1e-6)) - 1
        before = int(np.searchsorted(found["time_s"], at)) - 1
        assert adjusted[first] > adjusted[before]
        assert (adjusted[first : first + 5] == adjusted[first]).all()
    assert found["impulse_n"][-1] == len(strikes)


def test_of_two_channels_the_higher_one_decides():
    quiet = white(30, 13, FS, 3) + tone(4000, 60, 13, FS)
    found = read(np.stack([quiet, sound()], 1))
    assert found["tone_hz"][-1] == pytest.approx(1000, abs=2)
    assert found["tone_dl_db"][-1] > read(quiet)["tone_dl_db"][-1]
    columns = "tone_left_hz,tone_right_hz,impulse_ld_right_db,impulse_ld_db"
    sides = read(np.stack([quiet, sound()], 1), columns=columns)
    each = [sides[name][-1] for name in ("tone_left_hz", "tone_right_hz")]
    assert each == pytest.approx([4000, 1000], abs=2)
    assert sides["impulse_ld_db"][-1] == sides["impulse_ld_right_db"][-1]


def test_an_interval_has_its_own():
    found = read(sound(16.2), interval=8).intervals
    assert len(found) == 3
    assert (found["ki_db"][:2] > 0).all()
    assert found["ki_db"][1] > found["ki_db"][0]
    together = found["rating_laeq_db"] + found["kt_db"] + found["ki_db"]
    np.testing.assert_allclose(found["rating_db"][:2], together[:2], atol=1e-4)


def test_an_interval_says_why():
    found = read(sound(16.2), interval=8).intervals
    assert found["tone_max_hz"] == pytest.approx([1000, 1000, np.nan], abs=2, nan_ok=True)
    assert found["tone_mean_dl_db"][0] > 3
    assert found["impulse_max_p"][1] > found["impulse_max_p"][0] > 5


def test_clipped_sound_is_in_no_spectrum():
    x = tone(1000, 60, 13, FS) + white(30, 13, FS, 1)
    x *= 16000 / np.abs(x).max()
    clipped = x.copy()
    clipped[4 * FS : 4 * FS + 50] = 32767
    always = np.clip(4 * x, -32768, 32767)
    for given, spectra, discarded in ((x, 4, 0), (clipped, 3, 1), (always, 0, 4)):
        whole = given.astype(np.int16)
        found = measure(whole, FS, "tonal_audibility", calibration=94.0).summary
        assert (found["tone_n"], found["tone_discarded_n"]) == (spectra, discarded)
        assert (found["kt_db"] is None) == (spectra == 0)


def frames_of(x):
    from amt_stream.meters import catalog
    from amt_stream.offline.selftest.ways import WAYS

    model = catalog.entry("rating").build(FS)
    recorded = Recorded.of_pascal(x[None], FS, 0.5)
    return model, list(WAYS["float"].frames("rating", model, recorded))


def test_an_impulse_that_is_left_out_counts_no_more():
    model, frames = frames_of(sound())
    readings = readings_of(["rating"], 1, models={"rating": model})
    rows = JoinedRows(readings, 100, FS)
    for block in frames:
        rows(block)
    before = rows.summary()
    (first, second) = readings["rating"].impulses
    assert second.prominence > first.prominence
    assert before["ki_db"] == pytest.approx(impulse_adjustment(second.prominence))
    rows.event(Event(LEFT_OUT, 0, second.time_s, 0.0))
    after = rows.summary()
    assert after["ki_db"] == pytest.approx(impulse_adjustment(first.prominence))
    less = before["ki_db"] - after["ki_db"]
    assert after["rating_db"] == pytest.approx(before["rating_db"] - less)
    assert (before["impulse_n"], after["impulse_n"]) == (2, 1)
    rows.event(Event(TAKEN_IN, 0, second.time_s, 0.0))
    assert rows.summary() == before


def values(count, dl=5.0, p=8.0):
    """Frames with a spectrum each 3 s, and an impulse each 100 s."""
    at = np.arange(count)
    complete = (at % 30 == 29).astype(float)
    onsets = np.zeros((count, 5, 8))
    onsets[at % 1000 == 500, 2, :6] = 0.2, 0.06, 40, 20, 100, p
    full = np.full(count, 1.0)
    return Values(complete, dl * full, 440 * full, 3 * full, 4e-4 * full, onsets)


def update(meter, count, start=0, **given):
    time_s = 0.1 * (start + 1 + np.arange(count))
    yes = np.ones(count, bool)
    return meter.update(values(count, **given), time_s, yes, yes, np.full(count, np.inf), 2.9)


def test_half_hours_have_their_own_adjustments():
    meter = RatingMeter(("rating",))
    update(meter, 18000, dl=1.0, p=6.0)
    update(meter, 18000, 18000, dl=7.0, p=9.0)
    parts = [Rated(60, 1, 1.8, 1800), Rated(60, 4, 7.2, 1800)]
    assert meter.reading()["rating"] == pytest.approx(rating_level(parts))
    assert meter.reading()["ki"] == pytest.approx(7.2)
    for one in meter.impulses:
        if one.time_s < 1800:
            meter.leave_out(one.time_s)
    assert meter.reading()["rating"] == pytest.approx(
        rating_level([Rated(60, 1, 0, 1800), parts[1]])
    )


def test_days_take_no_more_memory():
    meter = RatingMeter(("rating",))
    half_hour = values(180)
    # Each frame stands for 10 s, so that a day has few.
    for _ in range(60):
        meter._intervals[-1, 0] += 1800
        yes = np.ones(180, bool)
        meter.update(half_hour, 0.1 * np.arange(180), yes, yes, np.full(180, np.inf), 2.9)
    assert len(meter._intervals) == len(meter._impulses) == 48
    assert meter.reading()["tone_n"] == 360


def test_less_than_half_of_the_time_gives_no_level():
    meter = RatingMeter(("rating",))
    update(meter, 100)
    meter.skip(90)
    assert meter.reading()["rating"] is not None
    meter.skip(20)
    assert meter.reading()["rating"] is None
    assert meter.reading()["excluded_s"] == pytest.approx(11)


def test_without_an_adjustment_there_is_no_rating_level():
    hammer = np.zeros(2 * FS)
    hammer[FS // 2 : FS // 2 + 500] = white(90, 500 / FS, FS, 2)
    x = white(40, 2, FS, 1) + hammer
    for seconds, known in ((0.005, False), (0.9, False), (2.0, True)):
        found = read(x[: round(seconds * FS)]).summary
        assert found["kt_db"] is None, seconds
        assert found["rating_db"] is None
        assert (found["ki_db"] is not None) == known
        assert (found["rating_laeq_db"] is not None) == (seconds > 0.1)


def test_time_without_a_spectrum_is_not_rated():
    meter = RatingMeter(("rating",))
    update(meter, 18000, dl=7.0)
    before = meter.reading()["rating"]
    assert before == pytest.approx(60 + 4 + 5.4)
    part = values(17000)._replace(complete=np.zeros(17000), mean_square=np.full(17000, 4e-3))
    yes, time_s = np.ones(17000, bool), 1800 + 0.1 * np.arange(17000)
    meter.update(part, time_s, yes, yes, np.full(17000, np.inf), 2.9)
    assert meter.reading()["rating"] == pytest.approx(before)
    assert meter.reading()["laeq"] > 66
    meter.update(part, time_s + 1700, yes, yes, np.full(17000, np.inf), 2.9)
    assert meter.reading()["rating"] is None


@pytest.mark.parametrize("paused", [False, True])
def test_a_spectrum_that_began_before_a_reset_or_in_a_pause_is_in_no_statistic(paused):
    meter = RatingMeter()
    meter.paused = paused
    update(meter, 45)
    if not paused:
        meter.reset()
    meter.paused = False
    update(meter, 30, 60, dl=9.0)
    found = meter.reading()
    assert (found["tone_n"], found["tone_discarded"]) == (1, 0)
    assert found["tone_mean_dl"] == pytest.approx(9)


def test_a_meter_goes_on_in_a_new_one():
    one, other = RatingMeter(), RatingMeter()
    update(one, 19000)
    one.leave_out(one.impulses[3].time_s)
    other.load_state_dict(one.state_dict())
    np.testing.assert_array_equal(update(one, 1100, 19000), update(other, 1100, 19000))
    assert one.reading() == other.reading()
    assert one.impulses == other.impulses
    assert [impulse.left_out for impulse in one.impulses].count(True) == 1
    left_out = {name.rpartition("/")[2] for name in unkept(RatingMeter(), one)}
    assert not left_out
