"""Sound that is held back until news of its input have come."""

import numpy as np
import pytest

from amt_stream.engine.devices import delay_line
from amt_stream.engine.devices.delay_line import DelayLine


@pytest.fixture
def clock(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(delay_line, "since_boot_s", lambda: now[0])
    return now


def block(samples):
    return np.ones((samples, 1), np.float32)


def test_a_block_is_passed_on_once_it_is_old_enough(clock):
    heard = []
    line = DelayLine(lambda sound, lost, flags: heard.append((len(sound), line.age_s)), 0.1)
    line.put(100.0, block(1), 0, 0)
    line.put(100.05, block(2), 0, 0)
    line.pass_due()
    assert heard == []
    clock[0] = 100.12
    line.pass_due()
    assert heard == [(1, pytest.approx(0.12))]
    line.flush()
    assert heard[1:] == [(2, pytest.approx(0.07))]
    assert line.age_s == 0.0


def test_what_is_dropped_is_counted_with_what_was_missing(clock):
    heard = []
    line = DelayLine(lambda *one: heard.append(one), 0.1)
    line.put(100.0, block(480), 20, 0)
    line.put(100.0, block(480), 0, 0)
    assert line.discard() == 980
    line.flush()
    assert heard == []
