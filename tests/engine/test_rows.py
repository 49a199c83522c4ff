"""Several microphones through one model at once: each as if it were alone."""

import threading
import time

import numpy as np
import pytest

from amt_stream.engine import MISSING, Engine, Microphone, PushSource, RowSink, SourceError
from amt_stream.meters import catalog
from amt_stream.meters.calibration import Calibration
from amt_stream.meters.rows import FieldReadings, JoinedRows

FS = 48000
PIECE = 1000


class ByRow:
    """A sink that keeps what each row gave, and what happened."""

    def __init__(self):
        self.frames, self.events = {}, []

    def __call__(self, frames):
        self.frames.setdefault(frames.microphone, []).append(frames)

    def event(self, event):
        self.events.append(event)

    def column(self, row, name):
        parts = [
            getattr(one, name) if hasattr(one, name) else getattr(one.values, name)
            for one in self.frames[row]
        ]
        return np.concatenate(parts, axis=-1)

    def values(self, row):
        """The model's output, all frames of each field one after another."""
        given, dims = [one.values for one in self.frames[row]], self.frames[row][0].time_dim
        if isinstance(given[0], np.ndarray):
            return {"value": np.concatenate(given, axis=dims)}
        fields = zip(given[0]._fields, dims, *given, strict=True)
        return {n: np.concatenate(v, axis=dim) for n, dim, *v in fields if v[0] is not None}


class Script:
    """What happens to one row: its sound, what it lacks, its settings, and when it is reset."""

    def __init__(self, number, samples, channels, rng):
        self.name = f"mic{number}"
        self.calibration = Calibration(80.0 + number, source=f"test {number}")
        self.gain_db = 0.5 * (number % 5) - 1.0
        level = 10 ** rng.uniform(-4, -0.5)
        sound = (level * rng.standard_normal((samples, channels))).clip(-0.9, 0.9)
        self.sound = sound.astype(np.float32)
        if number % 4 == 1:
            self.sound[int(samples * 0.9)] = np.nan
        if number % 4 == 2:
            self.sound[int(samples * 0.95)] = 1.0
        self.missing = np.zeros(samples, np.bool_)
        end = 0
        if number % 3:
            longest = 1.4 * FS if number % 6 == 1 else 0.1 * FS
            start = int(rng.integers(1, samples // 4))
            end = start + int(longest * rng.uniform(0.8, 1))
            self.missing[start:end] = True
        # Right after a gap an engine may wait in the middle of a block, and nowhere else.
        later = np.arange(end // PIECE + 3, samples // PIECE)
        self.reset_at = PIECE * int(rng.choice(later)) if number % 2 else None


def push_alone(scripts, source, engine):
    """As a device tells of what it lost: a count, before the sound after it."""
    (script,) = scripts
    lost = 0
    for at in range(0, len(script.sound), PIECE):
        reset_in_time(scripts, at, engine)
        missing = script.missing[at : at + PIECE]
        places = np.arange(at, at + len(missing))
        for part in np.split(places, np.flatnonzero(np.diff(missing)) + 1):
            if script.missing[part[0]]:
                lost += len(part)
            else:
                source.push(script.sound[part], lost)
                lost = 0
    source.push(script.sound[:0], lost)


def push_together(scripts, source, engine):
    """All of them side by side, with MISSING for what one lacks."""
    given = [np.where(one.missing[:, None], MISSING, one.sound) for one in scripts]
    sound = np.concatenate(given, axis=1)
    for at in range(0, len(sound), PIECE):
        reset_in_time(scripts, at, engine)
        source.push(sound[at : at + PIECE])


def reset_in_time(scripts, at, engine):
    """Once all blocks that were pushed have been heard."""
    due = [script for script in scripts if script.reset_at == at]
    models = engine._models
    give_up = time.monotonic() + 120
    block = models.first.ready.block
    while due and models.position < at // block * block:
        assert time.monotonic() < give_up
        time.sleep(0.0005)
    for script in due:
        engine.reset_filters(microphone=script.name)


def run(model, scripts, push, channels, block_ms):
    """All that one engine gave of these, and its rows."""
    numbers = np.arange(1, len(scripts) * channels + 1).reshape(-1, channels).tolist()
    rows = [
        Microphone(own, script.name, script.calibration, script.gain_db)
        for own, script in zip(numbers, scripts, strict=True)
    ]
    sink, source = ByRow(), PushSource(FS, len(scripts) * channels, live=False)
    engine = Engine(source, model, [sink], microphones=rows, ladder=(), block_ms=block_ms)
    feed, table = engine.rows(step_ms=50), []
    # What nobody reads holds up a source that can wait.
    reader = threading.Thread(target=lambda: table.extend(row for rows in feed for row in rows))
    reader.start()
    with engine:
        push(scripts, source, engine)
        source.close()
        assert engine.wait(120), engine.error
        reader.join()
    return sink, engine, table


def compare(name, count, channels, seconds, block_ms=10.0):
    """Each row of one run against a run of its own: all numbers, marks and gaps, bit for bit."""
    rng = np.random.default_rng(7)
    scripts = [Script(k, int(seconds * FS), channels, rng) for k in range(count)]
    model = catalog.entry(name).build(FS, {}, layout=channels)
    many, engine, table = run(model, scripts, push_together, channels, block_ms)
    for script in scripts:
        row = script.name
        alone, single, expected = run(model, [script], push_alone, channels, block_ms)
        mine, theirs = many.values(row), alone.values(row)
        for field in mine:
            np.testing.assert_array_equal(mine[field], theirs[field], f"{row} {field}")
        for column in ("time_s", "sample", "fault", "settling"):
            found = many.column(row, column), alone.column(row, column)
            np.testing.assert_array_equal(*found, f"{row} {column}")
        # Before a gap has ended nobody knows how long before its end a frame stands.
        since = [np.maximum(one.column(row, "since_s"), 0.0) for one in (many, alone)]
        np.testing.assert_array_equal(*since, row)
        levels = [one.column(row, "level_db") for one in (many, alone)]
        np.testing.assert_allclose(*levels, atol=1e-4)
        gaps = [[gap for f in one.frames[row] for gap in f.gaps] for one in (many, alone)]
        assert gaps[0] == gaps[1]
        rows = [
            [{k: v for k, v in one.items() if k != "utc"} for one in given if one["row"] == row]
            for given in (table, expected)
        ]
        assert rows[0] == rows[1]
        assert len(rows[0]) > 4 * seconds
        assert engine.health.microphones[row] == single.health.microphones[row]
    return scripts, engine, many


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    ("name", "count", "channels", "block_ms"),
    [
        ("spl", 3, 1, 10.0),
        ("third_octave", 3, 2, 1.0),
        ("spectrum", 3, 2, 10.0),
        ("moore2016", 3, 2, 10.0),
        pytest.param("moore2016", 2, 1, 1.0, marks=pytest.mark.soak),
    ],
)
def test_rows_are_what_they_are_alone(name, count, channels, block_ms):
    scripts, engine, many = compare(name, count, channels, 2.0, block_ms)
    assert any(script.missing.sum() > FS for script in scripts)
    events = [(event.kind, event.microphone) for event in many.events]
    for script in scripts:
        health = engine.health.microphones[script.name]
        assert health.lost_samples == script.missing.sum()
        assert (("gap", script.name) in events) == script.missing.any()
        assert (("filters_reset", script.name) in events) == (script.reset_at is not None)
        assert health.non_finite == np.isnan(script.sound).sum()


LOUDER = Calibration(106.0, source="test")


def pushed(power_meter, rows, x, act=lambda engine: None, **options):
    """An engine that has heard `x`, with `act` done once half of it was."""
    sink, source = ByRow(), PushSource(FS, x.shape[1], live=False)
    with Engine(source, power_meter(), [sink], microphones=rows, ladder=(), **options) as engine:
        half = len(x) // 2
        source.push(x[:half])
        give_up = time.monotonic() + 20
        while engine._models.position < half:
            assert time.monotonic() < give_up
            time.sleep(0.0005)
        act(engine)
        source.push(x[half:])
        source.close()
        assert engine.wait(60), engine.error
    return sink, engine


@pytest.mark.parametrize("run_in", ["engine", "callback"])
def test_a_calibration_a_gain_and_a_reset_of_one_row_leave_the_others(power_meter, noise, run_in):
    x = np.repeat(noise(FS // 5, rms=0.05)[:, :1], 3, axis=1)

    def act(engine):
        engine.calibrate(LOUDER, microphone="2")
        engine.calibrate(gain_db=-6.0, microphone="3")
        engine.reset_filters(microphone="3")

    full = Calibration(100.0, source="test")
    sink, engine = pushed(power_meter, 3, x, act, calibration=full, run_in=run_in)
    assert engine.microphone_names == ("1", "2", "3")
    one, two, three = (sink.values(row) for row in engine.microphone_names)
    half = len(one["stl"]) // 2
    np.testing.assert_array_equal(one["stl"][:half], two["stl"][:half])
    np.testing.assert_allclose(two["stl"][half:], 10**0.6 * one["stl"][half:], rtol=1e-5)
    np.testing.assert_allclose(three["stl"][half:], 10**-0.6 * one["stl"][half:], rtol=1e-5)
    assert three["ltl"][half] < 0.1 * one["ltl"][half] < two["ltl"][half]
    settling = {row: sink.column(row, "settling")[half + 1] for row in engine.microphone_names}
    assert settling == {"1": False, "2": True, "3": True}
    assert [f.stretch for f in (sink.frames[row][-1] for row in engine.microphone_names)] == [
        0,
        1,
        2,
    ]
    told = [(one.kind, one.microphone) for one in sink.events]
    assert told == [("calibrated", "2"), ("calibrated", "3"), ("filters_reset", "3")]
    assert engine.health.microphones["2"].calibration == (LOUDER,)
    assert engine.health.microphones["3"].gain_db == -6.0
    assert set(engine.histories) == set(engine.microphone_names)
    assert engine.histories["2"].read().stl[-2] == two["stl"][-2]


def test_the_newest_of_each_and_a_sink_of_rows(power_meter, noise):
    rows = []
    sink, source = RowSink(rows.append, step_ms=20), PushSource(FS, 4, live=False)
    names = [Microphone((1, 2), "desk"), Microphone((3, 4), "door", LOUDER)]
    with Engine(source, {"power": power_meter()}, [sink], microphones=names) as engine:
        assert engine.latest() is None
        with source:
            source.push(np.tile(noise(FS // 2), 2))
        assert engine.wait(60)
        latest = engine.latest()
    assert set(latest) == {"desk", "door"}
    assert latest["door"]["row"] == "door"
    levels = [latest[row]["power_stl"] for row in ("desk", "door")]
    assert levels[1] == pytest.approx(10**0.6 * levels[0], rel=1e-5)
    assert not latest["desk"]["calibrated"]
    assert latest["door"]["calibrated"]
    assert set(engine.histories) == {"desk/power", "door/power"}
    assert [row["row"] for row in rows].count("desk") == 26
    assert list(rows[0])[:4] == ["time_s", "utc", "sample", "row"]


def test_where_a_row_has_no_sound_it_says_so_and_the_others_go_on(power_meter, noise):
    x = noise(FS)[:, :2]
    x[FS // 2 - 100 :, 1] = MISSING
    seen = []
    sink, engine = pushed(
        power_meter, 2, x, lambda engine: seen.append(engine.health.microphones["2"].missing)
    )
    assert seen == [True]
    gaps = [(one.microphone, one.sample, one.samples) for one in sink.events if one.kind == "gap"]
    assert gaps == [("2", FS // 2 - 100, FS // 2 + 100)]
    assert len(sink.column("1", "time_s")) == 1001
    assert sink.column("2", "time_s")[-1] < 0.5
    assert not sink.column("1", "fault").any()
    assert engine.health.microphones["1"].lost_samples == 0
    assert (
        engine.health.lost_samples == engine.health.microphones["2"].lost_samples == FS // 2 + 100
    )


def test_rows_go_on_where_they_were(power_meter, noise):
    x = noise(FS // 2)
    x[9000:9500, 1] = MISSING
    x[12000 : FS // 4 + 700, 1] = MISSING

    class Keeper(ByRow):
        def snapshot(self, snapshot):
            self.last = snapshot

    def heard(sound, restore=None):
        sink, source = Keeper(), PushSource(FS, 2, live=False)
        source.seekable = True
        source.seek = lambda sample: None
        with Engine(source, power_meter(), [sink], microphones=2, restore=restore) as engine:
            source.push(sound)
            source.close()
            assert engine.wait(60), engine.error
        return sink

    whole, first = heard(x), heard(x[: FS // 4])
    rest = heard(x[FS // 4 :], first.last.state)
    for row in ("1", "2"):
        count = len(rest.column(row, "time_s"))
        for name in ("time_s", "fault", "settling"):
            expected = whole.column(row, name)[-count:]
            np.testing.assert_array_equal(rest.column(row, name), expected)
        np.testing.assert_array_equal(rest.values(row)["ltl"], whole.values(row)["ltl"][-count:])


@pytest.mark.parametrize(
    ("rows", "error", "told"),
    [
        (3, SourceError, "microphones is 3, and pushed sound has 4 channels"),
        (0, SourceError, "microphones is 0, and"),
        (True, TypeError, "microphones is True: give their number"),
        ("12", TypeError, "microphones is '12'"),
        ([], TypeError, r"microphones is \[\]"),
        ([()], TypeError, r"the channels of a microphone are \(\)"),
        ([(1, 5)], SourceError, "has no channel 5"),
        ([(1, 2, 3)], SourceError, "choose one, or two different ones"),
        ([(1,), (1,)], ValueError, "two microphones are called '1'"),
    ],
)
def test_rows_that_there_are_not_are_refused(power_meter, rows, error, told):
    with pytest.raises(error, match=told):
        Engine(PushSource(FS, 4), power_meter(), microphones=rows)


def test_what_makes_no_sense_of_rows_is_refused(power_meter):
    with pytest.raises(ValueError, match="microphones and channels are given"):
        Engine(PushSource(FS, 4), power_meter(), microphones=2, channels=(1,))
    with pytest.raises(ValueError, match="gain_db is nan"):
        Microphone((1,), gain_db=float("nan"))
    engine = Engine(PushSource(FS, 4), power_meter(), microphones=2)
    with pytest.raises(ValueError, match=r"no microphone is called 'x': there are 1\+2, 3\+4"):
        engine.reset_filters(microphone="x")
    with pytest.raises(ValueError, match="give one of them"):
        engine.calibrate(microphone="1+2")
    with pytest.raises(ValueError, match="no names, because there is only one"):
        Engine(PushSource(FS, 2), power_meter()).reset_filters(microphone="1")
    mixed = [(1, 2), (3,)]
    with pytest.raises(ValueError, match="SoundLevel measures each channel on its own"):
        Engine(PushSource(FS, 4), catalog.entry("spl").build(FS, {}), microphones=mixed)


def test_what_takes_frames_of_one_row_refuses_those_of_another(power_meter, noise):
    sink, _ = pushed(power_meter, 2, noise(FS // 10))
    rows = JoinedRows({"": FieldReadings("", ("stl",))}, 10, FS, microphone="1")
    rows(sink.frames["1"][0])
    with pytest.raises(ValueError, match="rows of '1', and the frames of '2'"):
        rows(sink.frames["2"][0])
