"""Rows about a gap, through the real models: none in it, and the first one after it says so."""

import math
import tracemalloc

import numpy as np
import pytest
import torch

from amt_stream.calibration import Calibration
from amt_stream.engine.measurement import Measurement, ReadyModel
from amt_stream.engine.outlet import Outlet
from amt_stream.frames import Event, Fault
from amt_stream.models import Glasberg2002, Moore2016, ZwickerTimeVarying
from amt_stream.rows import JoinedRows, Rows, readings_of
from amt_stream.stages import BS1770, SoundLevel

FS = 48000
FULL_SCALE = Calibration(120.0, source="test")
MODELS = {
    "moore2016": lambda: Moore2016(fs=FS),
    "gm2002": lambda: Glasberg2002(fs=FS),
    "zwicker": lambda: ZwickerTimeVarying(FS),
    "bs1770": lambda: BS1770(FS, 1),
    "spl": lambda: SoundLevel(FS),
}


class Meters:
    """Models by name on one channel of sound, and their rows: an engine without its threads."""

    def __init__(self, names, step_ms=10, pass_on=lambda frames: [frames]):
        self.table = JoinedRows(readings_of(names, 1), step_ms, FS)
        self.parts, self.pass_on = [], pass_on
        self.measurements = [
            Measurement(
                ReadyModel(MODELS[name](), FS, 10.0, 1),
                FULL_SCALE,
                slice(0, 1),
                emit=self.emit,
                epoch=lambda audio_s: math.nan,
                model_changed=lambda ready: None,
                name=name,
            )
            for name in names
        ]

    def emit(self, frames):
        self.parts += [self.table(one) for one in self.pass_on(frames)]

    def take(self, x, lost=0, flags=0):
        with torch.inference_mode():
            for at in range(0, max(1, len(x)), 480):
                for one in self.measurements:
                    one.take(x[at : at + 480, None], lost, flags)
                lost = flags = 0

    @property
    def rows(self):
        return Rows.concatenated(self.parts, self.table.names)


@pytest.fixture
def noise():
    rng = np.random.default_rng(1)
    return lambda seconds: rng.standard_normal(round(seconds * FS)).astype(np.float32) * 0.01


@pytest.mark.parametrize("lost", [5, 480, 2399, 24_000, 48_480, 72_000, 2**33])
def test_no_row_stands_in_a_gap_and_the_next_one_tells_it(noise, lost):
    """At steps of 1 ms, of which some fall into a gap in which no frame of 10 ms stands."""
    meters = Meters(list(MODELS), step_ms=1)
    meters.take(noise(0.7))
    start = 33_600
    meters.take(noise(0.5), lost)
    rows, stop = meters.rows, start + lost
    sample = rows["sample"]
    assert not ((sample >= start) & (sample < stop)).any()
    assert (np.diff(sample) > 0).all()
    assert not (sample % 48).any()
    after = np.flatnonzero(sample >= stop)[0]
    assert sample[after] < stop + 2 * 480
    assert rows["fault"][after] & Fault.GAP
    assert sample[after - 1] >= start - 480 - 48
    assert not rows["fault"][sample < start - 0.2 * FS].any()


def test_what_is_missing_at_the_end_has_no_rows(noise):
    meters = Meters(["moore2016", "spl"], step_ms=1)
    meters.take(noise(0.5))
    meters.table.event(Event("gap", 24_000, 0.5, math.nan, 4800))
    meters.take(noise(0), 4800)
    for one in meters.measurements:
        one.flush()
    meters.parts.append(meters.table.rest(0.6))
    assert meters.rows["sample"][-1] == 23_952
    assert meters.rows["fault"][-1] == Fault.GAP


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("lost", [48_000, 48_480, 480_000])
def test_a_gap_that_ends_on_a_block_is_marked_in_the_rows_of_every_model(noise, name, lost):
    meters = Meters([name])
    meters.take(noise(0.5))
    meters.take(noise(0.5), lost)
    rows = meters.rows
    after = np.flatnonzero(rows["sample"] >= 24_000 + lost)[0]
    assert rows["fault"][after] & Fault.GAP
    assert rows["settling"][after]


def test_a_gap_of_six_hours_costs_nothing(noise):
    meters = Meters(list(MODELS), step_ms=1)
    meters.take(noise(0.5))
    before = len(meters.rows)
    tracemalloc.start()
    try:
        meters.take(noise(0.1), 6 * 3600 * FS)
        assert tracemalloc.get_traced_memory()[1] < 10e6
    finally:
        tracemalloc.stop()
    rows = meters.rows
    assert len(rows) - before < 100 + 600
    assert rows["time_s"][-1] > 6 * 3600


def test_a_reader_that_pauses_misses_rows_and_gets_no_old_ones(noise):
    """The queue of a sink runs over while it stands still, with two models."""
    got = []
    outlet = Outlet(got.append, limit=20, lossy=True)

    def through_the_queue(frames):
        outlet.put(frames)
        if not paused:
            while not outlet._queue.empty():
                got.append(outlet._queue.get())
        told = list(got)
        got.clear()
        return told

    paused = False
    meters = Meters(["moore2016", "spl"], pass_on=through_the_queue)
    meters.take(noise(1.0))
    paused = True
    meters.take(noise(2.0))
    paused = False
    meters.take(noise(1.0))
    rows = meters.rows
    (hole,) = np.flatnonzero(np.diff(rows["sample"]) > 480)
    assert rows["time_s"][hole] == pytest.approx(1.1, abs=0.1)
    assert rows["time_s"][hole + 1] == pytest.approx(3.0, abs=0.1)
    assert rows["fault"][hole + 1] == Fault.OVERLOAD
    for name in ("stl_phon", "laf_db"):
        assert (np.diff(rows[name][100:]) != 0).all()
