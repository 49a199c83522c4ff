"""What is said of a start that compiles, and the sound that comes meanwhile."""

import contextlib
import os
import sqlite3
import subprocess
import sys
import time
from datetime import datetime

import numpy as np
import pytest
import soundfile

from amt_stream.cli.compiling import say_when_compiling
from amt_stream.core.compiling import LIVE_WORDS, WORDS, Compiling, compiling


@pytest.mark.parametrize(("patience_s", "times"), [(0.0, 1), (1e-9, 1), (1000.0, 0)])
def test_it_is_said_once_where_it_takes_its_time(patience_s, times):
    said, one = [], Compiling(patience_s)
    one.have_said(said.append)
    assert not one.note
    for _ in range(3):
        one.begins()
        one.begins()  # one that it calls
        time.sleep(0.001)
        one.ends()
        assert one.note == (LIVE_WORDS if times else "")
        one.ends()
    assert said == [WORDS] * times


def test_a_command_that_makes_models_has_it_said(said, monkeypatch):
    told = []
    monkeypatch.setattr(compiling, "have_said", lambda *what: told.append(what))
    say_when_compiling.__wrapped__.cache_clear()
    try:
        asked = ("meter", "--source", "demo", "--fast", "--duration", "0.1", "--format", "csv")
        assert said(*asked, "--model", "spl")[0] == 0
        ((say, words),) = told
        assert (say.__name__, words) == ("say", LIVE_WORDS)
    finally:
        say_when_compiling.__wrapped__.cache_clear()


@pytest.fixture
def exact(virtual_mic):
    """The microphone without its hum, for what it hears to the last bit."""
    virtual_mic.hush()
    yield
    virtual_mic.hum()


def test_a_microphone_is_heard_while_its_models_are_compiled(playing, exact, tmp_path):
    """The first start of all: it says what takes so long, and nothing is missing."""
    sound = tmp_path / "noise.wav"
    rng = np.random.default_rng(5)
    played = (0.1 * rng.standard_normal((60 * 48000, 2))).astype(np.float32)
    soundfile.write(sound, played, 48000, subtype="FLOAT")
    log, empty = tmp_path / "log", tmp_path / "kernels"
    meter = ["meter", "-d", "virtual_mic", "--quiet", "--log", str(log), "--log-sound", "wav"]
    with playing(sound):
        time.sleep(0.5)
        began = time.time()
        done = subprocess.run(
            [sys.executable, "-m", "amt_stream", *meter, "--model", "spectrum", "--duration", "1"],
            env={**os.environ, "NUMBA_CACHE_DIR": str(empty)},
            capture_output=True,
            text=True,
            check=True,
        )
        took_s = time.time() - began
    assert done.stderr.count(LIVE_WORDS) == 1
    assert "0 samples lost" in done.stderr
    with contextlib.closing(sqlite3.connect(log / "rows.sqlite")) as rows:
        utc, sample = zip(*rows.execute("SELECT utc, sample FROM rows"), strict=True)
    # It heard from its first seconds on, and was compiling when what it heard was over.
    first_s = datetime.fromisoformat(utc[0]).timestamp() - began
    assert 0 < first_s + 1 < took_s
    assert [*sample] == [*range(0, 48_001, sample[1])]
    (path,) = log.glob("*.wav")
    heard, _ = soundfile.read(path, dtype="float32")
    assert len(heard) >= 48_000
    heard = heard[:48_000]  # later a busy computer may lose some, which no row is of
    (at,) = np.flatnonzero((played == heard[0]).all(-1))
    np.testing.assert_array_equal(heard, played[at : at + len(heard)])
