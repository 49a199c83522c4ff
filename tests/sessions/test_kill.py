"""What is left of a log when its meter is killed."""

import random
import signal
import time
from contextlib import ExitStack
from datetime import UTC, datetime
from itertools import pairwise

import pytest

from amt_stream.core.formats import LOG_FORMATS
from amt_stream.sessions import Session, verify
from tests.service.served import forks

COMMAND = ["meter", "--source", "demo", "--quiet", "--model", "spl"]
LOST_S = 5.0


def killed(folders, formats, delay):
    """Start a meter for each folder and kill it some seconds after its first rows; gives when."""
    meters, ends = [], []
    with ExitStack() as running:
        for folder, format in zip(folders, formats, strict=True):
            wanted = ["--log", str(folder), "--log-format", format, "--log-sound", "wav"]
            meters.append(running.enter_context(forks().begin(*COMMAND, *wanted)))
        for meter, folder in zip(meters, folders, strict=True):
            give_up = time.monotonic() + 120
            while not is_begun(folder):
                assert meter.poll() is None
                assert time.monotonic() < give_up, f"{folder} was not begun"
                time.sleep(0.05)
            time.sleep(delay())
            meter.send_signal(signal.SIGKILL)
            ends.append(time.time())
    return ends


def is_begun(folder):
    try:
        return any(True for _ in Session(folder).rows())
    except RuntimeError:
        return False


def in_order(rows, events):
    """A row every 100 ms, but where a computer that is too busy has lost sound, and says so."""
    samples = [row["sample"] for row in rows]
    gaps = [event for event in events if event.kind == "gap"]
    assert samples[0] == 0
    for before, after in pairwise(samples):
        within = [gap.samples for gap in gaps if before <= gap.sample + gap.samples <= after + 4800]
        assert after - before > 0
        assert after - before == 4800 or (within and after - before <= sum(within) + 2 * 4800)


def check(folder, killed_at, go_on):
    """Everything until shortly before can be read, nothing is torn, and it can be gone on with."""
    rows = list(Session(folder).rows())
    in_order(rows, Session(folder).events())
    last = datetime.fromisoformat(rows[-1]["utc"]).astimezone(UTC).timestamp()
    assert killed_at - LOST_S < last < killed_at + 0.5
    heard = list(Session(folder).sound())
    heard_s = heard[-1].sample / 48000 if heard else 0.0
    assert abs(heard_s - rows[-1]["time_s"]) < LOST_S
    verdict = verify(folder)
    assert (verdict.word, verdict.running) == ("intact", False)
    assert 1 <= len(verdict.open) <= 4
    with go_on(folder):
        pass
    again = verify(folder)
    assert (again.word, again.open) == ("intact", [])
    assert list(Session(folder).rows(1)) == rows
    return killed_at - last


@pytest.mark.parametrize("format", LOG_FORMATS)
def test_a_meter_that_is_killed_leaves_a_log(new_log, tmp_path, format):
    (end,) = killed([tmp_path / "night"], [format], lambda: random.uniform(0.0, 1.0))
    check(tmp_path / "night", end, new_log)
