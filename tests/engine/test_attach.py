"""Sinks that join a running engine and leave it, and readings that a screen follows."""

import time

import numpy as np
import pytest

from amt_stream.dsp.stages import SoundLevel
from amt_stream.engine import Engine, SignalSource, Tone
from amt_stream.meters.frames import Event
from amt_stream.meters.rows import JoinedRows, Rows, readings_of
from amt_stream.sessions.outputs import FollowedReadings

FS = 48000


def followed():
    return FollowedReadings(JoinedRows(readings_of(["spl"], 2), 100, FS))


def wait_until(true, seconds=60.0):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)


def tone(**settings):
    return SignalSource([Tone(1000.0, level_db=60.0)], FS, **settings)


def test_one_that_joins_hears_the_present_and_one_that_left_nothing():
    ended, first = [], followed()

    class Sink:
        def __init__(self):
            self.frames = 0

        def __call__(self, frames):
            self.frames += len(frames)

        def ended(self, end_s):
            ended.append(end_s)

    sink, began = Sink(), []
    with Engine(tone(), {"spl": SoundLevel(FS)}, [first], history_s=0.2) as engine:
        wait_until(lambda: first.row is not None and first.row["time_s"] > 0.5)
        engine.attach(sink, began.append)
        assert sink in engine.sinks
        with pytest.raises(ValueError, match="is attached already"):
            engine.attach(sink)
        wait_until(lambda: sink.frames > 50)
        engine.detach(sink)
        wait_until(lambda: ended)
        heard = sink.frames
        assert sink not in engine.sinks
        with pytest.raises(ValueError, match="is not attached"):
            engine.detach(sink)
        reached = first.row["time_s"]
        wait_until(lambda: first.row["time_s"] > reached + 0.3)
        assert sink.frames == heard
    assert ended == [None]
    assert 0.4 < began[0] < 10.0


def test_every_row_is_taken_once_and_what_was_counted_is_timed():
    sink, taken = followed(), []
    with Engine(tone(duration=3.0, paced=False), {"spl": SoundLevel(FS)}, [sink]) as engine:
        while not engine.wait(0.01):
            taken += sink.take()
    taken += sink.take()
    rows = Rows.concatenated(taken, taken[0].columns)
    np.testing.assert_allclose(np.diff(rows["time_s"]), 0.1, atol=1e-9)
    assert rows["time_s"][-1] == sink.row["time_s"]
    assert sink.measured_s == pytest.approx(len(rows) / 10)


def test_what_is_paused_is_not_timed_and_a_reset_begins_anew():
    sink = followed()
    with Engine(tone(), {"spl": SoundLevel(FS)}, [sink]) as engine:
        wait_until(lambda: sink.measured_s > 0.4)
        engine.pause()
        wait_until(lambda: sink.paused)
        stood, at = sink.measured_s, sink.row["time_s"]
        wait_until(lambda: sink.row["time_s"] > at + 0.5)
        assert sink.measured_s == stood
        engine.unpause()
        wait_until(lambda: sink.measured_s > stood + 0.2)
        engine.reset_readings()
        wait_until(lambda: sink.measured_s < stood)


def test_an_engine_goes_on_with_the_readings_of_one_that_was_stopped():
    sink = followed()
    with Engine(tone(), {"spl": SoundLevel(FS)}, [sink]) as engine:
        wait_until(lambda: sink.measured_s > 1.0)
    counted, level = sink.measured_s, sink.totals["laeq_db"]
    stood = sink.standing
    sink.take()
    models = {"spl": SoundLevel(FS)}
    with Engine(tone(), models, [sink], restore=stood.state) as engine:
        wait_until(lambda: sink.measured_s > counted + 0.3)
        assert engine.first_sample == stood.sample
    rows = sink.take()
    assert rows[0]["time_s"][0] > counted
    assert sink.totals["laeq_db"] == pytest.approx(level, abs=0.05)


def test_frames_are_followed_without_a_sink_each_once():
    handed, found, end_s = [], [], -np.inf
    models = {"spl": SoundLevel(FS), "other": SoundLevel(FS)}
    with Engine(tone(), models, [handed.append]) as engine:
        while end_s < 1.0:
            new = engine.recent("spl", end_s)
            found += new
            end_s = new[-1].end_s if new else end_s
            time.sleep(0.03)
        assert not engine.recent("another")
        assert engine.recent("spl", end_s - 0.015)[0].end_s > end_s - 0.015
    handed = [one for one in handed if one.model == "spl"]
    for of in (lambda one: one.sample, lambda one: one.values.power):
        got, all_of = (np.concatenate([*map(of, part)], axis=-1) for part in (found, handed))
        np.testing.assert_array_equal(got, all_of[..., : got.shape[-1]])


def test_only_the_last_seconds_are_there_to_be_followed():
    source = tone(duration=12.0, paced=False)
    with Engine(source, {"spl": SoundLevel(FS)}) as engine:
        assert engine.wait(60)
    times = np.concatenate([one.time_s for one in engine.recent("spl")])
    assert times[-1] == pytest.approx(12.0, abs=0.02)
    assert 3.7 < times[-1] - times[0] < 4.1  # of sound that comes 0.3 s at a time


def test_what_counts_is_known_however_much_happens():
    sink = followed()
    sink.event(Event("readings_reset", 0, 1.0, 0.0))
    for second in range(1500):
        sink.event(Event("limit", 0, float(second), 0.0))
    assert len(sink.events) == 1001
    assert [sink.events[k].time_s for k in (0, 1, -1)] == [1.0, 500.0, 1499.0]
