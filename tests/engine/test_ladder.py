"""Overload: what is done without, in which order, what it does to numbers, and how it ends."""

import threading

import numpy as np
import pytest

from amt_stream.dsp.models import Moore2016
from amt_stream.engine import Engine, Fault, RowSink, SignalSource
from amt_stream.engine.models import ladder as ladder_module
from amt_stream.engine.models.ladder import CALM_S, Pace
from amt_stream.engine.models.ready_stage import ReadyStage
from amt_stream.meters.calibration import Calibration
from amt_stream.meters.catalog import entry, entry_of
from amt_stream.meters.frames import BUFFER
from amt_stream.meters.signals import Tone
from tests.engine.given_time import Slow, engine_of, slow
from tests.engine.measuring import measuring
from tests.engine.slow_models import FS

FULL_SCALE = Calibration(100.0, source="test")
TONE = [Tone(1000.0, level_db=60.0)]
COARSE = "Moore 2016 with coarse accuracy"


def paced(seconds, busy_s, audio_s, pace=None, start=0.0):
    """How often a pace was too slow, over so many seconds of blocks one after another."""
    pace = pace or Pace()
    now, slow = start, 0
    while now < start + seconds:
        now += busy_s
        slow += pace.add(now, busy_s, audio_s)
    return slow


def test_a_pace_below_that_of_the_sound_is_noticed_within_seconds():
    assert paced(1.1, 0.012, 0.010) == 1
    assert paced(10.0, 0.2, 0.010) >= 7
    assert paced(10.0, 1.5, 1.0) == 1


def test_a_burst_that_is_worked_off_faster_than_it_sounds_is_no_overload():
    assert paced(10.0, 0.008, 0.010) == 0


def test_a_process_that_was_held_is_no_overload():
    pace = Pace()
    assert not pace.add(60.0, 60.0, 0.01)
    assert paced(1.0, 0.001, 0.01, pace, 60.0) == 0


def test_a_rest_in_between_is_no_overload():
    pace, now = Pace(), 0.0
    for _ in range(100):
        for _ in range(50):
            now += 0.012
            assert not pace.add(now, 0.012, 0.010)
        pace.rest()


def test_calm_is_a_rest_in_every_second():
    pace, now = Pace(), 0.0
    for _ in range(1000):
        now += 0.01
        pace.add(now, 0.005, 0.01)
    assert pace.calm_s >= 7.9
    for _ in range(300):
        now += 0.01
        pace.add(now, 0.0095, 0.01)
    assert pace.calm_s == 0.0


def measured(collector, model, block_ms=10.0):
    ready = ReadyStage(model, 48000, block_ms)
    return measuring(ready, collector, FULL_SCALE)


def long_term_loudness(collector, x):
    """Of Moore2016 as usual, and where it settles; leaves the collector empty."""
    measured(collector, Moore2016(fs=48000)).take(x)
    values = collector.column("ltl"), collector.column("settling")
    collector.all.clear()
    return values


def take_with_exchange(measurement, other, x):
    """Measure the middle of a second with another form of the model."""
    own = measurement.ready
    measurement.take(x[:10000])
    measurement.exchange(own, other)
    measurement.take(x[10000:30000])
    assert measurement.ready is other
    measurement.exchange(other, own)
    measurement.take(x[30000:])


@pytest.fixture
def speech_like():
    """Noise whose level changes every 50 ms, `(time, channel)`, and lasts a second."""
    rng = np.random.default_rng(3)
    level = np.repeat(10 ** rng.uniform(-3, -1, 20), 2400)[:, None]
    return (level * rng.standard_normal((48000, 2))).astype(np.float32)


def test_a_form_that_costs_less_goes_on_from_the_state_of_the_other(collector, speech_like):
    x = speech_like
    exact, settling = long_term_loudness(collector, x)

    changing = measured(collector, Moore2016(fs=48000))
    settings = entry("moore2016").cheaper_than(changing.ready.model)
    assert settings == {"accuracy": "coarse"}
    before = changing.ready
    after = before.of(before.model.with_arguments(**settings))
    assert entry("moore2016").cheaper_than(after.model) == {}
    take_with_exchange(changing, after, x)
    assert changing.ready is before
    np.testing.assert_array_equal(np.diff(collector.column("sample")), 48)
    np.testing.assert_array_equal(collector.column("settling"), settling)
    np.testing.assert_allclose(collector.column("ltl"), exact, rtol=0.005)
    assert {f.stretch for f in collector.all} == {0}


def test_longer_blocks_change_no_number(collector, speech_like):
    expected, _ = long_term_loudness(collector, speech_like)
    changing = measured(collector, Moore2016(fs=48000))
    before = changing.ready
    after = before.lasting(2400)
    take_with_exchange(changing, after, speech_like)
    np.testing.assert_allclose(collector.column("ltl"), expected, rtol=1e-6)


def test_an_exchange_for_a_model_that_is_no_longer_there_does_nothing(collector, power_meter):
    measurement = measured(collector, power_meter())
    old = measurement.ready
    measurement.swap(ReadyStage(power_meter(), 48000, 10.0))
    measurement.take(np.zeros((960, 2), np.float32))
    new = measurement.ready
    measurement.exchange(old, old.lasting(2400))
    measurement.take(np.zeros((960, 2), np.float32))
    assert measurement.ready is new


@pytest.mark.parametrize("name", ["moore2016", "gm2002", "zwicker", "bs1770", "spl"])
def test_a_model_that_is_off_gives_nan_marked_as_off_and_settles_when_it_is_on(
    collector, speech_like, name
):
    model = entry(name).build(48000, channels=2)
    measurement = measured(collector, model)
    measurement.take(speech_like[:19200])
    measurement.commands.put(measurement.switch_off)
    measurement.take(speech_like[19200:33600])
    measurement.commands.put(measurement.switch_on)
    measurement.take(np.tile(speech_like, (2, 1))[33600:])
    measurement.flush()
    sample, fault = collector.column("sample"), collector.column("fault")
    assert np.ptp(np.diff(sample)) == 0
    readings = entry_of(model).make_readings(2, band=False, model=model)
    column = np.concatenate([readings.take(frames) for frames in collector.all])[:, 0]
    away = (sample > 19200 + 4800) & (sample <= 33600 - 4800)
    assert np.isnan(column[away]).all()
    off = fault & Fault.OFF > 0
    assert off[away].all()
    assert not off[sample > 33600 + 4800].any()
    assert not (fault & Fault.GAP).any()
    assert np.isfinite(column[sample > 33600 + 24000]).all()
    told = readings.summary()
    assert all(value is None or np.isfinite(value) for value in told.values())
    assert measurement.listeners[0].gaps.lost == 0


def kinds_of(engine):
    return [event.kind for event in engine.events if event.kind != "gap"]


def omitted(engine, kind="overload"):
    """What each event of this kind says that is done without."""
    return [event.text.partition(": ")[2] for event in engine.events if event.kind == kind]


KEEPS_UP = "processing keeps up with the sound again"


def test_an_engine_steps_down_and_up_and_says_so(power_meter, clock):
    models = {"first": power_meter(), **slow(clock, slow=1.5)}
    rows, frames = [], []
    with engine_of(clock, models, [RowSink(rows.append), frames.append]) as engine:
        longest = 0.0
        while len(kinds_of(engine)) < 2:
            clock.go_on(0.1)
            longest = max(longest, engine.health.queue_s)
        assert "slow off" in engine.health.note
        assert engine.health.overloaded
        models["slow"].seconds = 0.1
        clock.go_on(CALM_S + 3)
        assert kinds_of(engine)[-1] == "recovered"
        assert engine.health.overloaded
        clock.go_on(CALM_S + 1)
        assert not engine.health.overloaded
        assert engine.health.note == ""
        clock.go_on(1.0)
    assert kinds_of(engine) == ["overload", "overload", "recovered", "recovered"]
    texts = [event.text for event in engine.events]
    assert texts[0].endswith("blocks of 50 ms")
    assert texts[1].endswith("blocks of 50 ms, slow off")
    assert texts[2].endswith("blocks of 50 ms")
    assert texts[3] == KEEPS_UP
    assert longest <= 1.0
    down, up = engine.events[0].time_s, engine.events[-1].time_s
    time_s = np.array([row["time_s"] for row in rows])
    assert np.all(np.diff(time_s) > 0)
    overloaded = np.array(["overload" in str(row["fault"]) for row in rows])
    assert overloaded[(time_s > down + 0.2) & (time_s < up)].all()
    assert not overloaded[(time_s < down) | (time_s > up + 0.2)].any()
    first = np.array([row["first_stl"] for row in rows], float)
    assert np.isfinite(first[1:]).all()
    assert np.isnan(np.array([row["slow_value"] for row in rows], float)).any()
    of_first = np.concatenate([f.sample for f in frames if f.model == "first"])
    assert np.all(np.diff(of_first) > 0)


@pytest.mark.cases(1)
@pytest.mark.parametrize("order", [("dear", "cheap", "mid"), ("cheap", "mid", "dear")])
def test_the_dearest_model_rests_first_and_is_the_last_to_run_again(clock, order):
    models = slow(clock, main=0.1, dear=0.9, mid=0.45, cheap=0.05)
    models = {name: models[name] for name in ("main", *order)}
    with engine_of(clock, models, ladder=("models",), needed=["main"]) as engine:
        clock.go_on(3.0)
        assert omitted(engine) == ["dear off"]
        models["main"].seconds = 0.65  # what rests is no candidate, however dear it was
        clock.go_on(3.0)
        models["main"].seconds = 0.1
        models["mid"].seconds = models["dear"].seconds = 0.1
        clock.go_on(2 * CALM_S + 5)
        assert engine.events[-1].text == KEEPS_UP
    assert omitted(engine) == ["dear off", "dear off, mid off"]
    assert omitted(engine, "recovered") == ["dear off", ""]


def test_what_soon_fails_again_is_tried_ever_later(clock, monkeypatch):
    monkeypatch.setattr(ladder_module, "CALM_S", 2.0)
    with engine_of(clock, slow(clock, first=0.5, slow=0.8), ladder=("models",)) as engine:
        clock.go_on(25.0)
    ups = [event.time_s for event in engine.events if event.kind == "recovered"]
    first, second, third = ups[:3]
    assert 4.0 < second - first < 8.0 < third - second < 13.0


@pytest.mark.parametrize("run_in", ["engine", "callback"])
def test_what_nothing_helps_is_left_out_and_never_lags_further(clock, run_in):
    """One model at twice the time that it has, and no step allowed."""
    models = Slow(2.0, clock)
    with engine_of(clock, models, run_in=run_in, ladder=(), ring_s=0.5) as engine:
        longest, passed_s = 0.0, 0.0
        while passed_s < 6.0:
            clock.go_on(0.1)
            passed_s += 0.1
            health = engine.health
            longest = max(longest, health.queue_s)
            known_s = (health.samples + health.lost_samples) / FS + health.queue_s
            assert passed_s - known_s < 0.3  # and what the microphone holds
        assert health.overruns
        assert health.overloaded
        assert "cannot keep up" in health.note
        frames = engine.history.read()
    assert 0.4 < longest < 0.6
    # About half of it, in pieces long enough to be of use; each is told once.
    assert health.samples / (health.samples + health.lost_samples) == pytest.approx(0.5, abs=0.1)
    gaps = [event for event in engine.events if event.kind == "gap"]
    assert 4 <= len(gaps) < 30
    assert sum(event.samples for event in gaps) == engine.health.lost_samples
    assert {event.cause for event in gaps} == {BUFFER}
    assert kinds_of(engine) == ["overload"]
    assert np.all(np.diff(frames.sample) > 0)
    assert (frames.fault[frames.time_s > 3.0] & Fault.OVERLOAD > 0).all()


def test_a_long_ring_that_fills_is_marked(clock):
    with engine_of(clock, Slow(3.0, clock), ladder=(), ring_s=10.0) as engine:
        clock.go_on(4.0)
        health = engine.health
        assert health.overloaded
        assert not health.lost_samples
        assert 2.5 < health.queue_s < 3.0
        assert engine.history.read().fault[-1] & Fault.OVERLOAD
        assert "cannot keep up" in health.note


def test_a_source_without_a_pace_is_never_overloaded(clock, collector):
    source = SignalSource(TONE, duration=1.0, paced=False)
    clock.go_on_freely()
    with Engine(source, Slow(2.0, clock), [collector]) as engine:
        assert engine.wait(60)
    assert not engine.events
    assert not collector.column("fault").any()


def cheaper_models_are_made():
    return "cheaper models" not in [thread.name for thread in threading.enumerate()]


def test_models_of_the_catalog_run_in_their_cheaper_form_first(clock, until):
    """Another model takes more time than there is."""
    models = {"moore2016": Moore2016(fs=FS), **slow(clock, slow=1.2)}
    with engine_of(clock, models, ladder=("accuracy", "models")) as engine:
        clock.go_on(1.5)
        assert [one.rpartition(": ")[2] for one in omitted(engine)] == [COARSE]
        until(cheaper_models_are_made)
        clock.go_on(1.5)
        assert engine.model.arguments()["accuracy"] == "coarse"
    assert omitted(engine) == [COARSE, f"{COARSE}, slow off"]


def test_a_cheaper_form_that_cannot_be_made_is_told_and_the_next_step_is_taken(clock, until):
    def refuse(**settings):
        raise MemoryError("no room for it")

    model = Moore2016(fs=FS)
    model.with_arguments = refuse
    models = {"moore2016": model, **slow(clock, slow=1.2)}
    with engine_of(clock, models, ladder=("accuracy", "models")) as engine:
        clock.go_on(1.5)
        until(cheaper_models_are_made)
        clock.go_on(2.0)
        note = engine.health.note
    wanted, failed, instead = [e.text for e in engine.events if e.kind == "overload"]
    assert wanted.endswith(f": {COARSE}")
    assert failed.endswith(f"; {COARSE} could not be made (no room for it)")
    assert instead == note
    assert note.endswith(": slow off")


@pytest.mark.parametrize("ladder", ["models", ("models", "models"), ("rows",), (1,)])
def test_what_is_no_ladder_is_refused(power_meter, ladder):
    with pytest.raises(ValueError, match="ladder is"):
        Engine(SignalSource(TONE), power_meter(), ladder=ladder)


def test_what_is_saved_in_an_overload_goes_on_in_a_model_as_usual(collector, speech_like):
    x = speech_like
    expected, _ = long_term_loudness(collector, x)

    measurement = measured(collector, Moore2016(fs=48000))
    before = measurement.ready
    cheaper = before.of(before.model.with_arguments(accuracy="coarse"))
    measurement.take(x[:12000])
    measurement.exchange(before, cheaper)
    measurement.exchange(cheaper, cheaper.lasting(2400))
    measurement.take(x[12000:30123])
    assert measurement.block == 2400
    state = measurement.state_dict()

    after = measured(collector, Moore2016(fs=48000))
    after.load_state_dict(state)
    after.take(x[30123:])
    assert after.block == 480
    np.testing.assert_array_equal(np.diff(collector.column("sample")), 48)
    np.testing.assert_allclose(collector.column("ltl"), expected, rtol=0.005)
    with pytest.raises(ValueError, match="block"):
        measured(collector, Moore2016(fs=48000)).load_state_dict({**state, "block": 2401})


def test_no_model_is_still_being_made_when_the_engine_has_stopped(clock):
    models = {"moore2016": Moore2016(fs=FS), **slow(clock, slow=2.0)}
    with engine_of(clock, models, ladder=("accuracy",)) as engine:
        clock.go_on(2.0)
        assert engine.health.overloaded
    assert cheaper_models_are_made()
