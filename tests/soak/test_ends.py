"""Ends and faults by the hundred and by the thousand."""

import logging
import random
import sys
import threading
import time

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

from amt_stream.engine import Engine, SignalSource
from tests.cli.test_signals import told_twice
from tests.engine.conftest import PowerMeter
from tests.engine.test_any_order import CASES, survive
from tests.engine.test_ends import NOISE, Waiting, started_and_stopped, stop_twice
from tests.soak.test_live import resident_mb

pytestmark = pytest.mark.soak

STOPPED_S = 1.5  # 1.2 s, and the rest for the computer


def test_two_signals_sixty_times(record):
    rng, command = random.Random(9), [sys.executable, "-m", "amt_stream.cli"]
    took_s = sorted(told_twice(command, rng, begin_s=6.0) for _ in range(60))
    record(
        "two SIGINT within 1 ms, 60 times in the first 6 s: longest until it has ended",
        f"{took_s[-1]:.2f} s, median {took_s[30]:.2f} s",
    )
    assert took_s[-1] < 2.0


def test_two_hundred_engines_in_every_order(record, monkeypatch):
    def power_meter():
        return PowerMeter(48)

    # pytest keeps what is logged, with all that it tells of.
    monkeypatch.setattr(logging.getLogger("amt_stream"), "disabled", True)
    started_and_stopped(power_meter, times=300, seed=2)  # arenas of threads fill up
    before, began = resident_mb(), time.monotonic()
    longest_s = started_and_stopped(power_meter, times=200, seed=3)
    took_s, grown = time.monotonic() - began, resident_mb() - before
    record(
        "200 engines started and stopped in every order, with sinks that stall, raise, exit, spoil",
        f"{took_s:.0f} s, memory {grown:+.1f} MB, no thread and no descriptor left, longest stop "
        f"{longest_s:.2f} s",
    )
    assert grown < 5.0
    assert longest_s < STOPPED_S


def test_a_model_that_hangs_is_left_behind_in_time(record):
    model, begun, over = Waiting(), threading.Event(), threading.Event()
    engine = Engine(SignalSource(NOISE), model).start()
    model.hang = lambda: (begun.set(), over.wait())
    begun.wait()
    took_s = stop_twice(engine)
    over.set()
    record("an engine whose model hangs: until it has stopped", f"{took_s:.2f} s")
    assert took_s < STOPPED_S


def test_ten_thousand_faults_and_calls(record):
    examples = 10_000
    done = 0

    @seed(1)
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(**CASES)
    def all_survived(faults, calls, others, stop_ms, run_in):
        nonlocal done
        survive(faults, calls, others, stop_ms, run_in)
        done += 1

    began = time.monotonic()
    all_survived()
    record(
        "random faults and calls through the engine: no crash, no hang, counters exact, in order",
        f"{done} sequences in {time.monotonic() - began:.0f} s",
    )
    assert done >= examples
