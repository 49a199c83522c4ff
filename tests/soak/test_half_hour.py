"""The command as it is left running: half an hour of a microphone, with a log and its sound."""

import subprocess
import sys
import threading
import time

import pytest

from amt_stream.sessions import Session, verify
from tests.soak.memory import resident_mb
from tests.soak.test_live import FS, played_until, sound  # noqa: F401 (a fixture)

pytestmark = pytest.mark.soak

SECONDS = 1800
MOST_MB = 5.0


def test_half_an_hour_of_a_microphone(virtual_mic, sound, tmp_path, record):  # noqa: F811
    command = [sys.executable, "-m", "amt_stream", "meter", "--source", "mic", "-d", "virtual_mic"]
    command += ["--model", "moore2016,spl,bs1770", "--full-scale-db", "100"]
    command += ["--log", "night", "--log-sound", "--quiet", "--duration", str(SECONDS)]
    stop = threading.Event()
    player = played_until(stop, virtual_mic, sound)
    seen = []
    try:
        with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as meter:
            began = time.monotonic()
            while meter.poll() is None:
                seen.append((time.monotonic() - began, resident_mb(meter.pid)))
                time.sleep(5.0)
            told = meter.stderr.read()
            took_s = time.monotonic() - began
    finally:
        stop.set()
        player.join()
    assert meter.returncode == 0, told
    verdict = verify(tmp_path / "night")
    assert verdict.word == "intact", verdict
    session = Session(tmp_path / "night")
    rows = list(session.rows(1))
    gaps = [event for event in session.events(1) if event.kind == "gap"]
    # From here on the bounded stores of engine and meters are full.
    mb = [mb for at, mb in seen if at > SECONDS / 4]
    record(
        "half an hour of the virtual microphone, three models, a log with its sound",
        f"memory {max(mb) - mb[0]:+.1f} MB after the first quarter, {mb[-1]:.0f} MB in all; "
        f"{len(rows)} rows in {took_s:.0f} s, {len(gaps)} gaps, {verdict.word}",
    )
    lost_s = sum(gap.samples for gap in gaps) / FS
    assert abs(len(rows) * 0.1 + lost_s - SECONDS) < 1.0 + 0.2 * len(gaps)
    assert max(mb) - mb[0] < MOST_MB
