"""What a log costs beside the models: CPU time of its threads, by second of sound."""

import threading
import time

import pytest

from amt_stream.core.formats import LOG_FORMATS
from amt_stream.engine import Engine, demo_source
from amt_stream.meters.presets import load_preset
from amt_stream.meters.specification import RowSettings
from amt_stream.meters.table import Sound, Table
from amt_stream.sessions import SessionLog

pytestmark = pytest.mark.bench
SECONDS = 20.0


def cpu_s(name):
    """Of the threads so called, of this process."""
    threads = [one for one in threading.enumerate() if one.name.startswith(name)]
    assert len(threads) == 1
    return time.clock_gettime(time.pthread_getcpuclockid(threads[0].ident))


@pytest.mark.parametrize("format", LOG_FORMATS)
def test_a_log_costs_little(tmp_path, format):
    """Rows every 100 ms; its table counts what every table of rows counts."""
    preset = load_preset()
    source = demo_source()
    models = preset.models(source.fs, 2)
    sound = Sound("demo", source.fs, (1, 2), [source.calibration], None)
    log = SessionLog(
        tmp_path / "night", Table(preset, models, sound, RowSettings(100)), format=format
    )
    with Engine(source, models, [log]) as engine:
        engine.wait(SECONDS)
        heard_s = engine.health.samples / source.fs
        rows_s, disk_s = cpu_s("sink SessionLog"), cpu_s("log ")
    print(f"\n{format}: {rows_s / heard_s:.5f} for its rows, {disk_s / heard_s:.5f} for the disk")
    assert disk_s / heard_s < 0.01  # with a snapshot each second
