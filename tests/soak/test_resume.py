"""Measurements that are killed again and again and go on; damaged snapshots; a long replay."""

import random
import subprocess
import sys
import time

import numpy as np
import pytest
import soundfile

from amt_stream.sessions import Session, verify
from amt_stream.sessions.replay import replay_session
from amt_stream.sessions.snapshot import SNAPSHOT
from tests.sessions.test_snapshot import fuzz

pytestmark = pytest.mark.soak
KILLS = 50
FS = 32000
METER = [sys.executable, "-m", "amt_stream.cli", "meter", "--fast", "--quiet"]
WITHIN = 1e-6


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """A minute of noise that swells and ebbs by 40 dB."""
    path = tmp_path_factory.mktemp("sound") / "noise.wav"
    time_s = np.arange(60 * FS) / FS
    level = 10 ** (np.sin(time_s * 0.7) - 2)
    noise = np.random.default_rng(0).uniform(-1, 1, len(time_s))
    soundfile.write(path, (level * noise).astype(np.float32), FS)
    return path


def command(sound, folder, *more):
    models = ["--model", "bs1770,spl,zwicker", "--full-scale-db", "100"]
    return [*METER, "--source", str(sound), "--log", str(folder), *models, *more]


def written_at(folder):
    try:
        return (folder / SNAPSHOT).stat().st_mtime_ns
    except FileNotFoundError:
        return None


def killed(arguments, folder, delay_s):
    """Whether the meter was killed, some time after its first snapshot, and not over before."""
    before = written_at(folder)
    with subprocess.Popen(arguments) as meter:
        give_up = time.monotonic() + 120
        while meter.poll() is None and written_at(folder) == before:
            assert time.monotonic() < give_up
            time.sleep(0.005)
        time.sleep(delay_s)
        if meter.poll() is None:
            meter.kill()
            return True
    assert meter.returncode == 0
    return False


def numbers(rows):
    """Of all rows what is a number, (row, column); NaN where there is none."""
    names = [name for name, value in rows[-1].items() if isinstance(value, int | float)]
    return np.array([[row[name] for name in names] for row in rows], np.float64)


def test_fifty_kills(sound, tmp_path, record):
    """At random moments; each log goes on to the same end, without a row twice or missing."""
    subprocess.run(command(sound, tmp_path / "whole"), check=True)
    whole = numbers(list(Session(tmp_path / "whole").rows()))
    chosen = random.Random(0)
    kills, logs, furthest = 0, 0, 0.0
    while kills < KILLS:
        folder = tmp_path / f"log {logs}"
        logs += 1
        while killed(command(sound, folder, "--restore"), folder, chosen.uniform(0.0, 2.0)):
            kills += 1
            Session(folder)
        session = Session(folder)
        found = numbers([row for run in session.runs for row in session.rows(run)])
        assert found.shape == whole.shape
        size = np.maximum(np.abs(whole), 1.0)
        furthest = max(furthest, float(np.nanmax(np.abs(found - whole) / size)))
        assert (np.isnan(found) == np.isnan(whole)).all()
        assert verify(folder).word == "intact"
    assert furthest <= WITHIN
    record(f"{kills} kills of {logs} meters that went on: rows differ by", f"{furthest:.0e}")


def test_ten_thousand_damaged_snapshots(tmp_path, record):
    refused = fuzz(tmp_path, 10_000, seed=1)
    record("of 10,000 damaged snapshots were refused", f"{refused}, the others held numbers alone")


def test_a_long_replay(sound, tmp_path, record):
    """All models, a minute of sound."""
    folder = tmp_path / "session"
    names = "moore2016,gm2002,zwicker,bs1770,spl"
    arguments = command(sound, folder, "--log-sound", "wav")
    arguments[arguments.index("--model") + 1] = names
    subprocess.run(arguments, check=True)
    found = replay_session(folder)
    assert found.same, found.differs
    assert found.rows == 601
    record("rows of five models that a replay gave again, bit for bit", str(found.rows))
