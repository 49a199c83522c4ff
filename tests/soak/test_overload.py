"""What faults cost, a computer that is too busy, and a process that is held, at full length."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch

from amt_stream.engine.models.ready_stage import ReadyStage
from amt_stream.meters.calibration import Calibration
from amt_stream.meters.presets import Preset
from tests.cli import slow_meter
from tests.cli.test_slow_computer import MODELS
from tests.engine.measuring import measuring
from tests.engine.test_clock import DAY_CLOCK, RUNNING, TIME, UTC, Running
from tests.soak.test_live import played_until
from tests.torch_threads import torch_threads

pytestmark = pytest.mark.soak

FS = 48000
NAMES = ("moore2016", "gm2002", "zwicker", "bs1770", "spl")


def cost_of(models, x) -> float:
    """Seconds of CPU for each second of sound."""
    made = [
        measuring(ReadyStage(model, FS, 10.0), lambda frames: None, Calibration(100.0))
        for model in models.values()
    ]
    with torch.inference_mode():
        began = time.thread_time()
        for at in range(0, len(x), 480):
            for measurement in made:
                measurement.take(x[at : at + 480])
        return (time.thread_time() - began) * FS / len(x)


def test_every_second_sample_clipped_costs_little_more(record):
    models = Preset(NAMES).models(FS, 2)
    clean = 0.05 * np.random.default_rng(1).standard_normal((2 * FS, 2)).astype(np.float32)
    clipped, broken, sparse = clean.copy(), clean.copy(), clean.copy()
    clipped[::2] = 1.0
    broken[::2], broken[5::101] = 1.0, np.nan
    sparse[::149] = 1.0
    with torch_threads(1):
        cost_of(models, clean[:FS])
        costs = [[cost_of(models, x) for x in (clean, clipped, broken, sparse)] for _ in range(3)]
    plain, *others = np.min(costs, axis=0)
    ratios = [float(one / plain) for one in others]
    record(
        "cost of five models against clean sound: every second sample clips, NaN too, one in 149",
        f"{', '.join(f'{ratio:.2f}' for ratio in ratios)} of {plain:.2f} s a second",
    )
    assert max(ratios) < 1.3


@pytest.mark.parametrize("seconds", [5, 60])
def test_a_process_that_was_held_goes_on_with_true_rows(tmp_path, seconds, record):
    measuring = Running(tmp_path)
    try:
        measuring.read(20)
        measuring.process.send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        measuring.process.send_signal(signal.SIGCONT)
        measuring.read(100)
        told = measuring.end()
    finally:
        measuring.process.kill()
        measuring.process.wait()
        measuring.process.stdin.close()
        measuring.process.stdout.close()
    time_s, utc = measuring.column(TIME), measuring.column(UTC)
    assert (np.diff(time_s) > 0).all()
    assert (np.diff(utc) > 0).all()
    off_s = utc[-1] - measuring.column(DAY_CLOCK)[-1]
    late = measuring.column(RUNNING) - time_s
    record(
        f"a process held for {seconds} s: UTC against the clock, lateness after it against before",
        f"{off_s:+.2f} s, {late[-1] - late[0]:+.2f} s, {told['lost']} samples lost",
    )
    assert abs(off_s) < 1.0
    assert abs(late[-1] - late[0]) < 1.0


PROGRAM = """
import json, os, sys, time
os.sched_setaffinity(0, {int(sys.argv[1])})
import numpy as np
from amt_stream.engine import Engine, SignalSource
from amt_stream.engine.models import ladder
from amt_stream.meters.presets import Preset
from amt_stream.meters.signals import demo_sound
ladder.CALM_S = 3.0
models = Preset(("moore2016", "gm2002", "zwicker", "bs1770", "spl")).models(48000, 2)
with Engine(SignalSource(demo_sound()), models) as engine:
    began = time.monotonic() - engine.health.samples / 48000
    print("ready", flush=True)
    for line in sys.stdin:
        end, longest = time.monotonic() + float(line), 0.0
        while time.monotonic() < end:
            longest = max(longest, engine.health.queue_s)
            time.sleep(0.1)
        health = engine.health
        known = (health.samples + health.lost_samples) / 48000 + health.queue_s
        print(json.dumps({"longest": longest, "note": health.note,
                          "unknown": time.monotonic() - began - known,
                          "overloaded": health.overloaded, "lost": health.lost_samples,
                          "kinds": [event.kind for event in engine.events],
                          "texts": [event.text for event in engine.events]}), flush=True)
"""


def test_a_busy_computer_steps_down_and_up(record):
    """Four programs that spin share the core of five models."""
    core = min(os.sched_getaffinity(0))
    spin = f"import os; os.sched_setaffinity(0, {{{core}}})\nwhile True: pass"
    spinning = []
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(core)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
        text=True,
    ) as process:

        def after(seconds: float) -> dict:
            process.stdin.write(f"{seconds}\n")
            process.stdin.flush()
            return json.loads(process.stdout.readline())

        try:
            assert process.stdout.readline() == "ready\n"
            calm = after(3)
            spinning = [subprocess.Popen([sys.executable, "-c", spin]) for _ in range(4)]
            busy = after(15)
            for one in spinning:
                one.kill()
                one.wait()
            for _ in range(15):
                again = after(10)
                if not again["overloaded"]:
                    break
        finally:
            for one in spinning:
                one.kill()
                one.wait()
            process.stdin.close()
            process.wait()
    record(
        "a core shared with four that spin: longest queue, lost, steps down and up",
        f"{busy['longest']:.2f} s, {busy['lost'] / FS:.2f} s, {again['kinds'].count('overload')} "
        f"and {again['kinds'].count('recovered')}; before it {calm['longest']:.2f} s",
    )
    assert "overload" in busy["kinds"]
    assert busy["longest"] <= 1.0
    assert max(abs(busy["unknown"]), abs(again["unknown"])) < 1.0
    assert "recovered" in again["kinds"]
    assert not again["overloaded"]


@pytest.mark.parametrize("source", ["file", "microphone"])
def test_a_fifth_of_a_core_for_a_minute(forks, virtual_mic, tmp_path, record, source):
    path, stop = tmp_path / "noise.wav", threading.Event()
    sound = 0.05 * np.random.default_rng(3).standard_normal((120 * FS, 2))
    soundfile.write(path, sound, FS, subtype="FLOAT")
    player = None if source == "file" else played_until(stop, virtual_mic, path)
    heard = [path] if source == "file" else ["mic", "-d", "virtual_mic"]
    call = ["meter", "--source", *heard, *MODELS, *slow_meter.OPTIONS]
    try:
        with forks.begin(*call, folder=tmp_path) as meter:
            told = slow_meter.told_while_held(meter, 60.0)
    finally:
        stop.set()
        if player is not None:
            player.join()
    slow_meter.refuse_what_is_off(told)
    slow_meter.refuse_another_cause(told)
    slow_meter.refuse_a_state_of_what_was_not_measured(told.rows)
    slow_meter.refuse_a_verdict_on_what_was_dropped(told.summary)
    steps_s = np.diff([row["time_s"] for row in told.rows])
    missing, (limit,) = told.summary.get("missing", {}), told.summary["limits"]
    record(
        f"every model and a limit on a fifth of a core for 60 s, {source}",
        f"dropped {missing.get('buffer_s', 0.0):.1f} s; limit green {limit['green_s']:.1f} s, "
        f"unknown {limit['unknown_s']:.1f} s, {limit['verdict']}; "
        f"longest time without a row {steps_s.max():.1f} s",
    )
    if source == "file":
        assert not missing
