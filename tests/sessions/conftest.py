"""Sessions to look into, and frames of which the clock is chosen."""

import time
from dataclasses import replace

import numpy as np
import pytest

from amt_stream.engine import Engine, PushSource
from amt_stream.meters.calibration import Calibration
from amt_stream.meters.frames import Chunk
from amt_stream.meters.presets import Preset
from amt_stream.meters.specification import RowSettings
from amt_stream.meters.table import Sound, Table
from amt_stream.sessions import SessionLog

FS = 48000
LOUD = Calibration(100.0, source="test")
HOUR = 1795356000.0
"""2026-11-22T14:00:00Z"""


@pytest.fixture
def table():
    """Makes a table of sound levels, a row every 100 ms."""

    def make(step_ms=100, columns="laf_db,laeq_db", fs=FS):
        preset = Preset(("spl",))
        sound = Sound("a sound", fs, (1, 2), [LOUD], None)
        return Table(preset, preset.models(fs, 2), sound, RowSettings(step_ms, columns=columns))

    return make


@pytest.fixture
def new_log(table):
    """Makes logs in a folder."""

    def make(path, format="sqlite", **more):
        return SessionLog(path, table(**more), format=format)

    return make


@pytest.fixture(scope="session")
def frames():
    """5 s of noise as the engine gives it, a block of 50 ms after the other."""
    found = []
    source = PushSource(FS, 2, live=False, calibration=LOUD)
    model = Preset(("spl",)).models(FS, 2)
    rng = np.random.default_rng(0)
    with Engine(source, model, [found.append]) as engine, source:
        for k in range(1, 101):
            source.push(0.01 * rng.standard_normal((2400, 2)).astype(np.float32))
            while len(found) < k:  # blocks that wait would come together
                time.sleep(0.0005)
        source.close()
        assert engine.wait(60)
    return found


@pytest.fixture
def at(frames):
    """The frames with the UTC that `clock` gives for a time in the sound."""

    def with_clock(clock):
        return [
            replace(one, utc=np.array([clock(time_s) for time_s in one.time_s])) for one in frames
        ]

    return with_clock


@pytest.fixture
def written(new_log, at):
    """A session of 5 s that has ended in order, over the end of an hour; gives its folder."""

    def write(path, format="sqlite", clock=lambda time_s: HOUR - 2.05 + time_s, events=()):
        with new_log(path, format) as log:
            for one in at(clock):
                log(one)
            for event in events:
                log.event(event)
            log.ended(5.0)
        assert (log.note, log.dropped) == ("", 0)
        return path

    return write


@pytest.fixture
def until():
    """Waits for a condition; fails after a minute, so that a broken test ends."""

    def wait(condition):
        give_up = time.monotonic() + 60
        while not condition():
            assert time.monotonic() < give_up, "the condition never came true"
            time.sleep(0.01)

    return wait


@pytest.fixture(scope="session")
def noise_chunks():
    """3 s of noise of 16 bits in blocks of 10 ms."""
    rng = np.random.default_rng(1)
    x = (rng.integers(-3000, 3000, (3 * FS, 2)) / 32768).astype(np.float32)
    return [Chunk(x[at : at + 480], at, HOUR + at / FS) for at in range(0, len(x), 480)]
