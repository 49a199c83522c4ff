"""Readings take the frames of several blocks together, and give what they give block by block."""

import math
from dataclasses import replace

import numpy as np
import pytest

from amt_stream import Moore2016, SoundLevel
from amt_stream.engine.models.ready_stage import ReadyStage
from amt_stream.meters.calibration import Calibration
from amt_stream.meters.frames import Event, Fault
from amt_stream.meters.rows import JoinedRows, frame_queue, readings_of
from tests.engine.measuring import measuring

FS = 48000
FAR = Calibration(110.0, source="test")


@pytest.fixture(scope="module")
def heard():
    """Frames of two models that heard the same 1.2 s in blocks of 1 ms, with a gap and a clip."""
    x = 0.05 * np.random.default_rng(0).standard_normal((FS * 12 // 10, 2)).astype(np.float32)
    x[30000] = 1.0
    given = []
    models = {"moore2016": Moore2016(FS), "spl": SoundLevel(FS)}

    def epoch(audio_s):
        return 1e9 + 1e-6 * audio_s

    measurements = [
        measuring(ReadyStage(model, FS, 1.0), given.append, FAR, epoch=epoch, name=name)
        for name, model in models.items()
    ]
    for at in range(0, len(x), 48):
        for measurement in measurements:
            measurement.take(x[at : at + 48], lost=480 * (at == 14400))
    for measurement in measurements:
        measurement.flush()
    return given


def rows_of(frames, step_ms, held_s, monkeypatch):
    """Rows, the summary, and how often readings were asked; paused for a while."""
    monkeypatch.setattr(frame_queue, "HELD_S", held_s)
    readings = readings_of(("moore2016", "spl"), 2)
    calls = []
    for one in readings.values():
        monkeypatch.setattr(one, "take", lambda f, take=one.take: calls.append(len(f)) or take(f))
    table = JoinedRows(readings, step_ms, FS)
    rows = []
    for at, one in enumerate(frames):
        if at in (1300, 1500):
            kind = "paused" if at == 1300 else "continued"
            table.event(Event(kind, 0, one.begin_s, math.nan))
        rows.append(table(one.copy()))
    rows.append(table.rest(1.2))
    return [row for part in rows for row in part], table.summary(), calls


@pytest.mark.cases(1)
@pytest.mark.parametrize("step_ms", [7, 100])
def test_rows_and_statistics_are_those_of_every_block_alone(heard, step_ms, monkeypatch):
    rows, summary, calls = rows_of(heard, step_ms, 0.1, monkeypatch)
    wanted, wanted_summary, alone = rows_of(heard, step_ms, -1.0, monkeypatch)
    assert repr(rows) == repr(wanted)
    assert len(rows) > 1
    assert summary == wanted_summary
    assert sum(calls) == sum(alone)
    assert len(calls) <= len(alone)
    if step_ms >= 100:
        assert len(calls) < len(alone) / 2


@pytest.mark.quick
def test_a_row_comes_with_the_frames_that_complete_it(heard, monkeypatch):
    monkeypatch.setattr(frame_queue, "HELD_S", 5.0)
    table = JoinedRows(readings_of(("moore2016", "spl"), 2), 100, FS)
    reached = dict.fromkeys(("moore2016", "spl"), -1.0)
    given = 0
    for one in heard:
        given += len(table(one.copy()))
        reached[one.model] = min(one.end_s, one.ended_s)
        assert table.reached_s == min(reached.values()) or -1.0 in reached.values()
        if table.reached_s >= 0:
            assert given >= int(table.reached_s * 10 + 1e-6) - 1
    assert given == 12


def test_rows_are_of_what_frames_made_of_others_say(heard, monkeypatch):
    """Of each its own clock and marks, though the engine's frames would be held together."""
    monkeypatch.setattr(frame_queue, "HELD_S", 5.0)
    table = JoinedRows(readings_of(("spl",), 2), 100, FS)
    rows = []
    for one in heard:
        if one.model == "spl" and one.end_s < 0.25:
            utc = one.time_s + np.where(one.time_s > 0.15, 86400.0, 0.0)
            fault = one.fault | np.uint8(Fault.CLIP if 0.115 < one.begin_s < 0.125 else 0)
            rows += table(replace(one, utc=utc, fault=fault))
    told = [(row["utc"], row["fault"]) for row in rows]
    assert told == [
        ("1970-01-01T00:00:00.000Z", ""),
        ("1970-01-01T00:00:00.100Z", ""),
        ("1970-01-02T00:00:00.200Z", "clip"),
    ]
