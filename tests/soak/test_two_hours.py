"""Hours of sound as fast as they go, with every kind of sink, across powers of two of the count."""

import gc
import threading
from collections import Counter

import numpy as np
import pytest

from amt_stream.engine import Engine, RowSink, ThreadedSource
from amt_stream.meters.calibration import Calibration
from amt_stream.meters.presets import Preset
from amt_stream.meters.specification import RowSettings
from amt_stream.meters.table import Sound, Table
from amt_stream.sessions import SessionLog
from amt_stream.sessions.verify import verify
from tests.soak.memory import resident_mb

pytestmark = pytest.mark.soak

FS = 48000
LEVELS = ("moore2016", "gm2002", "zwicker", "bs1770", "spl")
JUDGED = ("rating", "stipa", "partial")
CALIBRATION = Calibration(100.0, source="test")
YEAR = 365 * 86400 * FS
RUNS = {
    "five models, all sinks, from 2^31": (LEVELS, 2**31, 7200),
    "five models, all sinks, from 2^32": (LEVELS, 2**32, 1200),
    "five models, all sinks, from one year": (LEVELS, YEAR, 1200),
    "rating, stipa, partial, all sinks": (JUDGED, 2**27, 3600),
}
"""Models, the count of samples that a run crosses, and its seconds."""

MOST_MB = 5.0


class Noise(ThreadedSource):
    """Ten seconds of noise whose level changes twice a second, over and over; it can wait."""

    calibration = CALIBRATION

    def __init__(self, seconds: int) -> None:
        super().__init__("noise", FS, 2, live=False)
        self.seconds = seconds
        rng = np.random.default_rng(2)
        level = np.repeat(10 ** rng.uniform(-3, -1, 20), FS // 2)[:, None]
        self.sound = (level * rng.standard_normal((10 * FS, 2))).astype(np.float32)

    def blocks(self):
        for second in range(self.seconds):
            at = second % 10 * FS
            yield self.sound[at : at + FS]


@pytest.mark.parametrize("run", RUNS)
def test_memory_is_flat_once_the_meters_are_full(run, tmp_path, record):
    """Rows at two steps, one of them in a log, a feed, the newest row, and history."""
    names, count, seconds = RUNS[run]
    first = (count - 10 * FS) // 480 * 480
    preset = Preset(names)
    models = preset.models(FS, 2)
    table = Table(
        preset, models, Sound("noise", FS, (1, 2), [CALIBRATION], None), RowSettings(1000)
    )
    table.rows.begin(first / FS)
    seen, steps = {}, Counter()
    rows, last = 0, None

    def count_row(row) -> None:
        """Nothing is kept of it: this runs in the process whose memory is looked at."""
        nonlocal rows, last
        steps[row["sample"] - (row["sample"] - 4800 if last is None else last)] += 1
        rows, last = rows + 1, row["sample"]
        if rows % 600 == 0:
            gc.collect()
            seen[rows // 10] = resident_mb()

    with SessionLog(tmp_path / "session", table) as log:
        sinks = [log, RowSink(count_row, columns=["*"])]
        engine = Engine(Noise(seconds), models, sinks, block_ms=50.0, first_sample=first)
        feed = engine.rows(step_ms=500)
        read = threading.Thread(target=lambda: [len(rows) for rows in feed])
        read.start()
        with engine:
            engine.latest()
            assert engine.wait(4 * seconds), engine.error
        read.join()
    assert rows - 10 * seconds in (0, 1)
    assert set(steps) == {4800}
    assert engine.histories[names[-1]].read().sample[-1] == first + FS * seconds
    assert engine.health.lost_samples == 0
    verdict = verify(tmp_path / "session")
    assert verdict.word == "intact", verdict
    full_s = seconds // 4
    before = [mb for at, mb in seen.items() if at <= full_s]
    after = [mb for at, mb in seen.items() if at > full_s]
    growth = max(after) - before[-1]
    record(
        f"resident memory over {seconds / 60:.0f} min, {run}",
        f"{growth:+.1f} MB after the first quarter, {after[-1]:.0f} MB in all",
    )
    assert growth < MOST_MB
