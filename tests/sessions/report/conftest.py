"""A measurement in a log, with all that a report tells of: a gap, a mark, limits."""

import numpy as np
import pytest

from amt_stream.engine import Engine, PushSource
from amt_stream.meters.calibration import Calibration
from amt_stream.meters.limits import limit_from_text
from amt_stream.meters.presets import Preset
from amt_stream.meters.specification import RowSettings
from amt_stream.meters.table import Sound, Table
from amt_stream.sessions import SessionLog

FS = 48000
SURE = Calibration(100.0, "calibrator of 94 dB", "2026-11-01T10:00:00Z", True, 0.3, 0.4)
NAMELESS = Calibration(100.0, source="nominal: not calibrated", calibrated=False)
LIMITS = ("laf_db>70,amber=60", "laeq_2s_db>200")
MARK = 'singer <script>alert(1)</script> & "band"'


def measure_into(
    folder, gain=0.01, calibration=SURE, models=("spl",), limits=LIMITS, gap=True, format="sqlite"
):
    """4 s of noise into a log: 1 s is missing in the middle, and what is after it is louder."""
    given = tuple(map(limit_from_text, limits))
    preset = Preset(models, limits=given, uncertainty_db=calibration.uncertainty_db)
    made = preset.models(FS, 2)
    sound = Sound("hall <1>", FS, (1, 2), [calibration], None)
    named = {"station": "roof <2>", "labels": {"city": "Graz"}}
    table = Table(preset, made, sound, RowSettings(100), named)
    source = PushSource(FS, 2, live=False)
    noise = np.random.default_rng(0).standard_normal((FS // 10, 2)).astype(np.float32)
    log = SessionLog(folder, table, format=format)
    with log, Engine(source, made, [log], calibration=calibration) as engine, source:
        for number in range(40):
            if number == 20:
                engine.mark(MARK)
            lost = FS if gap and number == 25 else 0
            source.push(gain * (1 + 9 * (number >= 30)) * noise, lost=lost)
        source.close()
        assert engine.wait(60)
    return folder


@pytest.fixture(scope="session")
def log(tmp_path_factory):
    """The folder of such a log."""
    return measure_into(tmp_path_factory.mktemp("logs") / "night")
