"""Rows over a quarter of an hour: what rolls and what accumulates, against plain calculations."""

import numpy as np
import pytest

from amt_stream.meters.calibration import Calibration
from amt_stream.meters.presets import Preset
from amt_stream.meters.rows import JoinedRows, Rows, choose, readings_of
from amt_stream.offline.analysis import CheckedFile, analyze

pytestmark = pytest.mark.soak

FS, MINUTES = 8000, 20


def test_levels_of_15_minutes_are_the_plain_ones(record, tmp_path):
    """20 min of noise whose level changes every second by up to 60 dB."""
    soundfile = pytest.importorskip("soundfile")
    rng = np.random.default_rng(0)
    levels = np.repeat(10 ** rng.uniform(-4, -1, MINUTES * 60), FS)
    x = (levels * rng.standard_normal(len(levels))).astype(np.float32)
    path = tmp_path / "sound.wav"
    soundfile.write(path, x, FS, subtype="FLOAT")
    readings = readings_of(["spl"], 1)
    choose(readings, ["lzeq_15min_db", "lzeq_db"])
    recording = CheckedFile(path)
    table = JoinedRows(readings, 1000, FS)
    models = Preset(("spl",)).models(FS, 1)
    parts = [table(frames) for frames in analyze(recording, models, Calibration(100.0))]
    rows = Rows.concatenated([*parts, table.rest(recording.duration_s)], table.names)
    stop = np.rint(rows["time_s"][1:] * FS).astype(int)
    power = np.concatenate([[0.0], np.cumsum(np.float64(x) ** 2)])
    for name, start in (("lzeq_15min_db", np.maximum(0, stop - 900 * FS)), ("lzeq_db", 0)):
        plain = 100 + 10 * np.log10(2 * (power[stop] - power[start]) / (stop - start))
        worst = np.abs(rows[name][1:] - plain).max()
        record(f"{name} of {MINUTES} min in rows, against the plain calculation", f"{worst:.5f} dB")
        assert worst < 0.01
