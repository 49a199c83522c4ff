"""An hour of sound by two processes: the rows of one, in little more than half the time."""

import time

import pytest
import soundfile

from amt_stream import measure
from tests.offline.test_split import FS, swelling

pytestmark = pytest.mark.soak


def test_an_hour_is_much_faster_by_two_processes(tmp_path, record):
    part = swelling(60.0)
    with soundfile.SoundFile(tmp_path / "hour.wav", "w", FS, 2, "PCM_16") as file:
        for _ in range(60):
            file.write(part)
    took = []
    for jobs in (1, 2):
        began = time.monotonic()
        found = measure(tmp_path / "hour.wav", calibration=100.0, step_ms=100, jobs=jobs)
        took.append(time.monotonic() - began)
        if jobs == 1:
            alone = list(found.rows)
    assert list(found.rows) == alone
    record("an hour of moore2016 by two processes", f"{took[0] / took[1]:.2f} x faster")
    assert took[0] > 1.8 * took[1]
