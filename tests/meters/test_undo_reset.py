"""A reset that is undone has never been: rows and summaries are those without it."""

import contextlib
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from amt_stream.dsp.stages import SoundLevel, ThirdOctaves
from amt_stream.engine import Engine, Microphone, Noise, PushSource, RowSink, SignalSource, Tone
from amt_stream.meters.calibration import UNCALIBRATED
from amt_stream.meters.frames import Event
from amt_stream.meters.limits import Limit
from amt_stream.meters.rows import JoinedRows, readings_of
from amt_stream.sessions.outputs import FollowedReadings

FS = 48000
SOUND = [Noise(level_db=60.0), Tone(1000.0, level_db=80.0, start=1.0, duration=0.3)]
MODELS = {"spl": SoundLevel(FS), "third_octave": ThirdOctaves(FS)}


def at(kind, time_s):
    return Event(kind, round(time_s * FS), time_s, 0.0)


@pytest.fixture(scope="module")
def frames():
    """What two meters give of 4 s."""
    found = []
    source = SignalSource(SOUND, FS, duration=4.0, paced=False)
    with Engine(source, MODELS, [found.append], run_in="callback") as engine:
        assert engine.wait(60)
    return found


def rows_with(frames, events, of=MODELS, limits=()):
    """Rows, how each limit was kept and what is told in the end."""
    table = JoinedRows(readings_of([*of], 2), 100, FS, limits=limits)
    found, waiting = [], list(events)
    for one in frames:
        while waiting and one.begin_s >= waiting[0].time_s:
            table.event(waiting.pop(0))
        found.append(table(one))
    told = {name: readings.summary() for name, readings in table.readings.items()}
    return type(found[0]).concatenated(found, table.names), table.stood(), told


def same(one, other):
    for name in one.columns:
        np.testing.assert_array_equal(one[name], other[name])


HALTED = (at("paused", 2.1), at("gap", 2.3), at("continued", 2.4))


@pytest.mark.parametrize("between", [(), HALTED, (at("readings_reset", 2.2),)])
def test_all_is_as_if_there_had_been_no_reset(frames, between):
    limits = [Limit("laf_db", 75.0)]
    resets = [one for one in between if one.kind == "readings_reset"]
    halts = [one for one in between if one.kind != "readings_reset"]
    first = [] if resets else [at("readings_reset", 2.0)]
    events = [*first, *between, at("reset_undone", 2.7)]
    rows, stood, told = rows_with(frames, halts, limits=limits)
    again, again_stood, again_told = rows_with(frames, events, limits=limits)
    assert again_told == told
    assert again_stood == stood
    assert stood[0].times == 1
    late, again_late = (one.where(one["time_s"] > 2.75) for one in (rows, again))
    same(again_late, late)
    meanwhile = (again["time_s"] > 2.45) & (again["time_s"] < 2.65)
    assert (again["laeq_db"][meanwhile] < rows["laeq_db"][meanwhile] - 3).tolist() == [True, True]


def test_a_reset_is_undone_with_those_before_it(frames):
    *_, told = rows_with(frames, [])
    several = [
        at("readings_reset", 0.9),
        at("readings_reset", 2.0),
        at("readings_reset", 2.2),
        at("reset_undone", 2.5),
    ]
    *_, again = rows_with(frames, several)
    assert again == told
    *_, again = rows_with(frames, [*several, at("reset_undone", 2.6)])
    assert again == told


def test_a_reset_within_the_rise_is_undone(frames):
    *_, told = rows_with(frames, [])
    *_, again = rows_with(frames, [at("readings_reset", 0.3), at("reset_undone", 0.9)])
    assert again == told


def test_what_is_too_long_ago_is_not_kept(frames):
    source = SignalSource(SOUND, FS, duration=14.0, paced=False)
    found = []
    with Engine(source, {"spl": MODELS["spl"]}, [found.append], run_in="callback") as engine:
        assert engine.wait(60)
    *_, cleared = rows_with(found, [at("readings_reset", 1.5)], ["spl"])
    *_, told = rows_with(found, [at("readings_reset", 1.5), at("reset_undone", 13.7)], ["spl"])
    assert told == cleared
    again = [at("readings_reset", 1.5), at("readings_reset", 11.6), at("reset_undone", 12.0)]
    *_, told = rows_with(found, again, ["spl"])
    assert told == cleared


def test_a_row_is_undone_by_itself_and_at_once():
    source = SignalSource([Tone(1000.0, level_db=60.0)], FS)
    with Engine(
        source, SoundLevel(FS), microphones=[Microphone((1,), "front"), Microphone((2,), "back")]
    ) as engine:
        engine.reset_readings("front")
        assert [engine.can_undo_reset(row) for row in (None, "front", "back")] == [0, 1, 0]
        engine.undo_reset("front")
        assert not engine.can_undo_reset("front")


LOUD, QUIET = 0.5, 0.0005


def wait(true):
    end = time.monotonic() + 60.0
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)


class Pushed:
    """An engine that hears two rows, and the last equivalent level of each, by its name."""

    def __init__(self) -> None:
        self.laeq_db, self._reached_s, self._pushed_s = {}, {}, 0.0
        self.source = PushSource(FS, 2, live=False)
        sink = RowSink(self._take, columns=["laeq_db"])
        rows = [Microphone((1,), "a"), Microphone((2,), "b")]
        self.engine = Engine(self.source, SoundLevel(FS), [sink], microphones=rows)

    def _take(self, row):
        self.laeq_db[row["row"]] = row["laeq_db"]
        self._reached_s[row["row"]] = row["time_s"]

    def push(self, seconds, amplitude):
        """So much of a tone; gives the rows that count the loud one still."""
        t = np.arange(round(seconds * FS))[:, None] / FS
        self.source.push(np.repeat(amplitude * np.sin(2000 * np.pi * t), 2, axis=1))
        self._pushed_s += seconds
        wait(lambda: self.engine.health.samples == round(self._pushed_s * FS))
        wait(lambda: min(map(self._reached, "ab")) > self._pushed_s - 0.15)
        limit_db = UNCALIBRATED.full_scale_db_spl + 10 * np.log10(LOUD * QUIET)
        return [name for name in "ab" if self.laeq_db[name] > limit_db]

    def _reached(self, name):
        return self._reached_s.get(name, 0.0)


def test_resets_of_one_row_and_of_all_are_undone_together():
    pushed = Pushed()
    with pushed.engine as engine, pushed.source:
        assert pushed.push(2.0, LOUD) == ["a", "b"]
        engine.reset_readings()
        assert pushed.push(1.0, QUIET) == []
        engine.reset_readings("a")
        pushed.push(0.5, QUIET)
        engine.undo_reset()
        assert not any(engine.can_undo_reset(row) for row in (None, "a", "b"))
        assert pushed.push(0.5, QUIET) == ["a", "b"]
        with pytest.raises(ValueError, match="nothing to undo"):
            engine.undo_reset("a")


def test_a_row_is_undone_and_another_stays_reset():
    pushed = Pushed()
    with pushed.engine as engine, pushed.source:
        pushed.push(2.0, LOUD)
        engine.reset_readings("a")
        pushed.push(0.5, QUIET)
        engine.reset_readings()
        pushed.push(0.5, QUIET)
        engine.undo_reset("a")
        assert [engine.can_undo_reset(row) for row in (None, "a", "b")] == [False, False, True]
        assert pushed.push(0.5, QUIET) == ["a"]
        with pytest.raises(ValueError, match="nothing to undo"):
            engine.undo_reset()
        engine.undo_reset("b")
        assert pushed.push(0.5, QUIET) == ["a", "b"]


def test_who_undoes_what_another_undoes_just_then_is_told_so():
    engine = Engine(SignalSource(SOUND, FS), SoundLevel(FS))

    def undo(_):
        for _ in range(2000):
            engine.reset_readings()
            with contextlib.suppress(ValueError):
                engine.undo_reset()

    was = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(3) as pool:
            list(pool.map(undo, range(3)))
    finally:
        sys.setswitchinterval(was)
    assert not engine.can_undo_reset()


def test_an_engine_undoes_a_reset_and_counts_what_came_since():
    source = SignalSource(
        [Tone(1000.0, level_db=90.0, duration=0.8), Tone(1000.0, level_db=60.0)], FS
    )
    with Engine(source, {"spl": SoundLevel(FS)}) as engine:
        readings = FollowedReadings(engine.new_rows())
        engine.attach(readings)
        wait(lambda: readings.measured_s > 2.2)
        with pytest.raises(ValueError, match="in the last 10 s"):
            engine.undo_reset()
        engine.reset_readings()
        wait(lambda: (readings.totals.get("lafmax_db") or 99) < 80 and readings.measured_s > 0.5)
        assert readings.measured_s < 2.0
        engine.reset_readings()
        wait(lambda: 0.1 < readings.measured_s < 0.5)
        engine.undo_reset()
        wait(lambda: readings.measured_s > 2.7)
        wait(lambda: readings.totals["lafmax_db"] > 85)
        with pytest.raises(ValueError, match="nothing to undo"):
            engine.undo_reset()
    assert [event.kind for event in readings.events] == [
        "readings_reset",
        "readings_reset",
        "reset_undone",
    ]


def test_of_many_events_those_that_count_crowd_no_other_out():
    readings = FollowedReadings(JoinedRows(readings_of(["spl"], 1), 100, FS))
    kinds = [kind for _ in range(600) for kind in ("paused", "continued")]
    events = [at("mark", 0.0), *(at(kind, k) for k, kind in enumerate(kinds)), at("lost", 1200.0)]
    for event in events:
        readings.event(event)
    assert readings.events == (events[0], *events[201:])
    for k in range(1000):
        readings.event(at("mark", 1201.0 + k))
    assert [event.kind for event in readings.events] == kinds[200:] + ["mark"] * 1000
