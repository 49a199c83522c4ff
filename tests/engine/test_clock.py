"""UTC of rows where the computer's clock moves, sleeps or halts; and counts near powers of two."""

import json
import os
import signal
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest

from amt_stream.dsp.stages import SoundLevel
from amt_stream.engine import Engine, RowSink, SignalSource
from amt_stream.engine.clock import Clocks, UtcScale, clocks
from amt_stream.meters.signals import Tone

TIME, UTC, SAMPLE, DAY_CLOCK, RUNNING = range(5)
HOUR, DAY = 3600.0, 86400.0


class Simulated:
    """Clocks of a computer on which somebody sets the time, and that sleeps."""

    def __init__(self) -> None:
        self.running = 100.0
        self.set_s = self.slept_s = 0.0

    def __call__(self) -> Clocks:
        since_boot = self.running + self.slept_s
        return Clocks(1e9 + since_boot + self.set_s, self.running, since_boot)


class Followed:
    """UTC of samples that come promptly, every 10 ms."""

    def __init__(self) -> None:
        self.clocks = Simulated()
        self.scale = UtcScale(self.clocks)
        self.audio_s = 0.0
        self.utc, self.told = [], []

    def hear(self, seconds: float, delay_s: float = 0.0) -> None:
        for _ in range(round(seconds * 100)):
            self.clocks.running += 0.01
            self.audio_s += 0.01
            if change := self.scale.change():
                self.told.append(change)
            began_s = 100.0 + delay_s
            self.utc.append(self.scale.epoch(began_s, self.audio_s) + self.audio_s)

    @property
    def off_s(self) -> float:
        """How far UTC is ahead of the clock."""
        return self.utc[-1] - self.clocks().day


@pytest.fixture
def followed():
    return Followed()


def test_the_real_clocks_are_those_of_the_computer():
    seen = [now for _ in range(100) if (now := clocks())]
    assert len(seen) > 50
    assert abs(seen[-1].day - time.time()) < 5
    assert abs(seen[-1].running - time.monotonic()) < 5


def test_a_clock_that_stays_is_followed_and_nothing_is_told(followed):
    followed.hear(10.0)
    assert followed.off_s == pytest.approx(0.0, abs=1e-6)
    assert followed.told == []


@pytest.mark.parametrize("set_s", [0.6, HOUR, DAY])
def test_a_clock_that_is_set_forward_is_followed_at_once(followed, set_s):
    followed.hear(1.0)
    followed.clocks.set_s = set_s
    followed.hear(1.0)
    assert followed.off_s == pytest.approx(0.0, abs=1e-3)
    assert followed.told == [
        f"the computer's clock was set forward by {set_s:.1f} s: UTC follows the clock"
    ]
    assert (np.diff(followed.utc) > 0).all()


def test_utc_never_runs_back_and_waits_for_a_clock_that_was_set_back(followed):
    followed.hear(1.0)
    followed.clocks.set_s = -1.0
    followed.hear(100.0)
    assert followed.told == [
        "the computer's clock was set back by 1.0 s: "
        "UTC goes on as before, 1.0 s ahead of the clock"
    ]
    assert followed.off_s == pytest.approx(1.0 - 100 * 500e-6, abs=1e-3)
    assert followed.scale.ahead_s == pytest.approx(followed.off_s, abs=1e-3)
    followed.hear(2000.0)
    assert followed.off_s == pytest.approx(0.0, abs=1e-3)
    assert followed.told[1:] == ["UTC follows the clock"]
    assert (np.diff(followed.utc) > 0.00999).all()


def test_a_clock_set_back_and_then_forward_again_is_right_again(followed):
    followed.hear(1.0)
    for set_s in (-HOUR, 0.0, DAY):
        followed.clocks.set_s = set_s
        followed.hear(1.0)
    assert followed.off_s == pytest.approx(0.0, abs=1e-2)
    assert [told.rpartition(": ")[2] for told in followed.told] == [
        "UTC goes on as before, 3600.0 s ahead of the clock",
        "UTC follows the clock",
        "UTC follows the clock",
    ]
    followed.clocks.set_s = 0.0
    followed.hear(1.0)
    assert followed.off_s == pytest.approx(DAY, abs=1e-2)
    assert (np.diff(followed.utc) > 0).all()


@pytest.mark.parametrize("counted", [True, False])
def test_a_sleep_is_told_as_one(followed, counted):
    """A microphone counts it as lost; sound that a program makes goes on as if it had not been."""
    followed.hear(1.0)
    followed.clocks.slept_s = 30.0
    followed.audio_s += 30.0 * counted
    followed.hear(1.0, delay_s=30.0 * (not counted))
    assert followed.off_s == pytest.approx(0.0, abs=1e-3)
    assert followed.told == ["the computer slept for 30.0 s: UTC follows the clock"]


def test_a_leap_second_and_a_small_step_are_told_by_nobody(followed):
    followed.hear(1.0)
    followed.clocks.set_s = -0.4
    followed.hear(10.0)
    followed.clocks.set_s = 0.0
    followed.hear(10.0)
    assert followed.told == []
    assert (np.diff(followed.utc) > 0).all()


def test_sound_that_comes_later_moves_utc_forward_and_earlier_never_back(followed):
    followed.hear(1.0)
    followed.hear(1.0, delay_s=3.0)
    assert followed.off_s == pytest.approx(3.0, abs=1e-3)
    followed.hear(70.0, delay_s=0.0)
    assert followed.off_s == pytest.approx(0.0, abs=0.05)
    assert (np.diff(followed.utc) > 0).all()
    assert followed.told == []


PROGRAM = """
import json, sys, time
from amt_stream.engine import Engine, RowSink, SignalSource
from amt_stream.meters.signals import Tone
from amt_stream.dsp.stages import SoundLevel

def show(row):
    told = [row["time_s"], row["utc"], row["sample"], time.time(), time.monotonic()]
    print(json.dumps(told, default=str), flush=True)

source = SignalSource([Tone(1000.0, level_db=70.0)])
with Engine(source, SoundLevel(48000), [RowSink(show, step_ms=50)]) as engine:
    sys.stdin.readline()
    print(json.dumps({"events": [[e.kind, e.text] for e in engine.events],
                      "lost": engine.health.lost_samples, "note": engine.health.note}), flush=True)
"""


class Running:
    """A program that measures, and prints its rows."""

    def __init__(self, folder: Path, shim: Path | None = None) -> None:
        environment = dict(os.environ)
        self.clock = folder / "clock"
        if shim is not None:
            environment |= {"LD_PRELOAD": str(shim), "SET_CLOCK": str(self.clock)}
        self.set(0)
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            text=True,
        )
        self.rows = []

    def set(self, seconds: int) -> None:
        draft = self.clock.with_suffix(".new")
        draft.write_text(str(seconds))
        draft.replace(self.clock)

    def read(self, rows: int) -> None:
        for _ in range(rows):
            self.rows.append(json.loads(self.process.stdout.readline()))

    def end(self) -> dict:
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        while isinstance(last := json.loads(self.process.stdout.readline()), list):
            self.rows.append(last)
        self.process.communicate(timeout=20)
        assert self.process.returncode == 0
        return last

    def column(self, place: int) -> np.ndarray:
        values = [row[place] for row in self.rows]
        if place == UTC:
            values = [datetime.fromisoformat(text).timestamp() for text in values]
        return np.array(values)


@pytest.fixture
def running(tmp_path):
    """Starts the program; ends it whatever happens."""
    started = []

    def start(**options) -> Running:
        started.append(Running(tmp_path, **options))
        return started[-1]

    yield start
    for one in started:
        one.process.kill()
        one.process.wait()
        one.process.stdin.close()
        one.process.stdout.close()


def test_a_measurement_on_a_clock_that_is_set(running, clock_shim):
    """Set back by an hour, right again, corrected by a day: rows stay in order and true."""
    measuring = running(shim=clock_shim)
    measuring.read(10)
    for seconds in (-3600, 0, 86400):
        measuring.set(seconds)
        measuring.read(8)
    told = measuring.end()
    time_s, utc, sample = map(measuring.column, (TIME, UTC, SAMPLE))
    assert (np.diff(time_s) > 0).all()
    assert (np.diff(sample) > 0).all()
    assert (np.diff(utc) > 0).all()
    day = measuring.column(DAY_CLOCK)
    assert abs(utc[9] - day[9]) < 10
    assert abs(utc[17] - day[17] - HOUR) < 10
    assert abs(utc[25] - day[25]) < 10
    assert abs(utc[-1] - day[-1]) < 10
    texts = [text for kind, text in told["events"] if kind == "clock"]
    assert [text.partition(" by ")[0].rpartition(" ")[2] for text in texts] == [
        "back",
        "forward",
        "forward",
    ]
    assert told["lost"] == 0


def test_a_process_that_was_stopped_goes_on_with_true_rows(running):
    measuring = running()
    measuring.read(10)
    measuring.process.send_signal(signal.SIGSTOP)
    time.sleep(2.0)
    measuring.process.send_signal(signal.SIGCONT)
    measuring.read(50)
    told = measuring.end()
    time_s, utc = measuring.column(TIME), measuring.column(UTC)
    assert (np.diff(utc) > 0).all()
    assert (np.diff(time_s) > 0).all()
    # The source played on what it had not played meanwhile, in its time.
    late = measuring.column(RUNNING) - time_s
    assert abs(late[-1] - late[0]) < 1.0
    assert abs(utc[-1] - measuring.column(DAY_CLOCK)[-1]) < 1.0
    assert "overload" not in [kind for kind, _ in told["events"]]


@pytest.mark.parametrize("place", [2**31, 2**32, 365 * 86400 * 48000])
def test_a_count_from_anywhere_gives_the_same_numbers(place):
    first = (place - 12000) // 480 * 480
    told = []
    for begin in (0, first):
        rows = []
        source = SignalSource([Tone(1000.0, level_db=70.0)], duration=0.5, paced=False)
        sinks = [RowSink(rows.append, step_ms=10)]
        with Engine(source, SoundLevel(48000), sinks, first_sample=begin) as engine:
            assert engine.wait(60)
        told.append(rows)
        assert engine.history.read().sample[-1] == begin + 24000
    for row, early in zip(told[1], told[0], strict=True):
        assert row["sample"] == early["sample"] + first
        assert row["time_s"] == pytest.approx(early["time_s"] + first / 48000, abs=1e-6)
        assert row["laf_db"] == early["laf_db"] or np.isnan(row["laf_db"])
    assert told[1][0]["utc"] is not None


def test_a_first_sample_within_a_block_is_refused():
    source = SignalSource([Tone(1000.0, level_db=70.0)], duration=0.5, paced=False)
    with pytest.raises(ValueError, match="first_sample is 7: give a multiple of"):
        Engine(source, SoundLevel(48000), first_sample=7)
