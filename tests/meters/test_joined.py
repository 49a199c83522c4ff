"""Rows of several models: the latest value of each that is not after the row's time."""

import math

import numpy as np
import pytest

from amt_stream.dsp.stages import SoundLevel
from amt_stream.engine import Engine, PushSource
from amt_stream.engine.models.ready_stage import ReadyStage
from amt_stream.meters import catalog
from amt_stream.meters.accumulators import loops
from amt_stream.meters.calibration import Calibration
from amt_stream.meters.frames import Event, Fault, Frames
from amt_stream.meters.limits import Limit
from amt_stream.meters.rows import Column, JoinedRows, Readings, readings_of
from amt_stream.sessions.outputs import LatestReadings
from tests.engine.measuring import measuring

FS = 44100


class Given(Readings):
    """Readings that are the frames' values as they stand, with how many were counted."""

    headlines = ("counted",)

    def __init__(self, *columns):
        offered = [Column(name, "", "a number", "given") for name in columns]
        super().__init__("given", offered, columns)

    def renew(self):
        self.reset()

    def take(self, frames):
        self.number += 0 if self.paused else int(self.counted(frames).sum())
        return frames.values

    def summary(self):
        return {"counted": self.number}

    def reset(self):
        self.number = 0


def frames(model, time_s, values, fault=None, settling=False, calibrated=True):
    n = len(time_s)
    return Frames(
        time_s=np.asarray(time_s, np.float64),
        sample=np.zeros(n, np.int64),
        utc=np.zeros(n),
        values=np.asarray(values, np.float64).reshape(n, -1),
        fault=np.zeros(n, np.uint8) if fault is None else np.asarray(fault, np.uint8),
        settling=np.full(n, settling),
        since_s=np.full(n, np.inf),
        level_db=np.zeros((2, n), np.float32),
        calibrated=calibrated,
        model=model,
    )


@pytest.mark.parametrize("step_ms", [1, 7, 10, 100])
def test_each_column_has_its_latest_value(step_ms):
    """Against the rule as it is written, for models of uneven rates that come in uneven pieces."""
    rng = np.random.default_rng(step_ms)
    times = {
        "a": np.arange(0, 501) / 1000,
        "b": np.arange(1, 51) / 100,
        "c": 0.0213 + np.arange(0, 41) * 441 / 44100 * 1.1,
    }
    values = {name: rng.standard_normal(len(t)) for name, t in times.items()}
    table = JoinedRows({"a": Given("a"), "b": Given("b"), "c": Given("c")}, step_ms, FS)
    assert [column.name for column in table.columns] == ["a", "b", "c"]
    assert len(table.rest(0.5)) == 0  # where nothing was heard
    rows, at = [], dict.fromkeys(times, 0)
    while any(at[name] < len(times[name]) for name in times):
        name = rng.choice(list(times))
        start, stop = at[name], at[name] + int(rng.integers(1, 60))
        if start < len(times[name]):
            piece = slice(start, stop)
            rows += list(table(frames(name, times[name][piece], values[name][piece])))
            at[name] = stop
        if all(at.values()):
            reached = min(times[n][min(at[n], len(times[n])) - 1] for n in times)
            assert len(rows) == math.floor(reached * 1000 / step_ms + 1e-3) + 1
        else:
            assert rows == []
    rows += list(table.rest(0.5))
    assert [row["time_s"] for row in rows] == [
        k * step_ms / 1000 for k in range(500 // step_ms + 1)
    ]
    for row in rows:
        assert row["sample"] == math.floor(row["time_s"] * FS + 1e-6)
        for name in "abc":
            before = np.flatnonzero(times[name] <= row["time_s"] + 1e-9)
            expected = float(f"{values[name][before[-1]]:.7g}") if len(before) else None
            assert row[name] == expected


def test_marks_are_those_of_all_frames_since_the_row_before():
    table = JoinedRows({"a": Given("x"), "b": Given("y", "z")}, 100, FS)
    time_s = np.arange(0, 301) / 1000
    fault = np.zeros(301, np.uint8)
    fault[50] = Fault.CLIP
    assert len(table(frames("a", time_s, time_s, fault))) == 0
    more = np.zeros(31, np.uint8)
    more[[20, 21]] = Fault.GAP, Fault.NON_FINITE
    ys = np.full((31, 2), np.nan)
    ys[:, 1] = -np.inf
    rows = table(frames("b", np.arange(31) / 100, ys, more, settling=True, calibrated=False))
    assert [row[-5:] for row in rows.tuples()] == [
        ("", True, "y z", "", False),
        ("clip", True, "y z", "", False),
        ("gap", True, "y z", "", False),
        ("non_finite", True, "y z", "", False),
    ]
    # Neither NaN nor an infinity is a reading.
    assert all((row["y"], row["z"]) == (None, None) for row in rows)


def test_a_model_that_is_off_takes_nothing_from_the_others():
    """No sound is missing, so no row says so; what the other counts goes on."""
    limits = [Limit("x", 50.0), Limit("y", 50.0)]
    table = JoinedRows({"a": Given("x"), "b": Given("y")}, 100, FS, limits=limits)
    given = []
    ready = ReadyStage(SoundLevel(FS), FS, 10.0)
    measurement = measuring(ready, given.append, Calibration(100.0))
    measurement.switch_off()
    measurement.take(np.zeros((FS, 2), np.float32))
    resting = given[-1].fault[-1]
    time_s = np.arange(11) / 10
    table(frames("a", time_s, time_s))
    rows = table(frames("b", time_s, np.full(11, np.nan), np.full(11, resting)))
    assert {row["fault"] for row in rows} == {"overload off"}
    assert [row["x"] for row in rows] == pytest.approx(time_s)
    assert {row["y"] for row in rows} == {None}
    assert [{row[one.state] for row in rows} for one in limits] == [{"green"}, {"unknown"}]
    assert [one.number for one in table.readings.values()] == [11, 0]


def test_the_newest_row_and_the_headlines_are_kept():
    latest = LatestReadings(JoinedRows({"a": Given("x")}, 100, FS, to_s=0.25))
    assert latest.row is None
    assert latest.of("a") == {"x": None, "counted": None}
    time_s = np.arange(0, 401) / 1000
    latest(frames("a", time_s[:101], time_s[:101]))
    assert latest.of("a") == {"x": 0.1, "counted": 101}
    latest.event(Event("paused", 101, 0.101, math.nan))
    assert latest.rows.paused
    latest(frames("a", time_s[101:], time_s[101:]))
    latest.sum_up()
    assert latest.row["time_s"] == 0.2  # and nothing after the end
    assert latest.totals == {"counted": 101}
    latest.event(Event("readings_reset", 401, 0.401, math.nan))
    latest.sum_up()
    assert latest.totals == {"counted": 0}
    assert latest.row["x"] == 0.2


def test_no_maximum_is_seen_below_the_present_value():
    """While a sound rises, a display reads both at any time."""
    latest = LatestReadings(JoinedRows(readings_of(["spl"], 1), 10, FS))
    seen = []

    def look(frames):
        latest(frames)
        if latest.row is not None:
            seen.append((latest.row["laf_db"], latest.totals["lafmax_db"]))

    rising = 1e-3 * np.geomspace(1, 100, FS) * np.random.default_rng(0).standard_normal(FS)
    source = PushSource(FS, 1)
    with Engine(source, {"spl": SoundLevel(FS)}, [look]) as engine, source:
        source.push(rising.astype(np.float32)[:, None])
        source.close()
        assert engine.wait(60)
    known = np.array([pair for pair in seen if None not in pair])
    assert len(known) > 5
    assert known[-1, 0] > known[0, 0] + 20
    assert (known[:, 1] >= known[:, 0] - 1e-4).all()  # rows have seven digits


@pytest.mark.parametrize("name", catalog.models_side_by_side())
def test_what_rows_are_made_by_is_compiled_before_the_first_one(name):
    """Else the first start has no room for the rows that come meanwhile."""
    loops.compile_loops()
    asked = loops.compile_loops.__wrapped__.cache_info().hits
    JoinedRows(readings_of([name], 2), 100, FS)
    assert loops.compile_loops.__wrapped__.cache_info().hits > asked
