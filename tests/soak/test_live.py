"""The engine on a real capture device, for as long as a person might watch it."""

import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch

from amt_stream import Engine, MicrophoneSource, Moore2016, aligned
from amt_stream.dsp.scales import sone_to_phon
from amt_stream.meters.calibration import Calibration
from amt_stream.meters.presets import load_preset
from tests.bench.summary import summary
from tests.bench.test_speed import shares
from tests.bench.test_window_cost import window_cost
from tests.soak.memory import resident_mb

pytestmark = pytest.mark.soak

FS = 48000
CALIBRATION = Calibration(100.0, source="test")


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """Ten seconds of pink noise, different in each ear, whose level rises and falls at 0.2 Hz."""
    rng = np.random.default_rng(5)
    n = 10 * FS
    spectrum = np.fft.rfft(rng.standard_normal((n, 2)), axis=0)
    f = np.fft.rfftfreq(n, 1 / FS)
    spectrum[1:] /= np.sqrt(f[1:, None])
    spectrum[(f < 40) | (f > 16000)] = 0
    x = np.fft.irfft(spectrum, axis=0)
    x *= 0.01 / x.std() * (1 + 0.8 * np.sin(2 * np.pi * 0.2 * np.arange(n) / FS))[:, None]
    path = tmp_path_factory.mktemp("sound") / "pink.wav"
    soundfile.write(path, x, FS, "FLOAT")
    return path


def played_until(stop: threading.Event, virtual_mic, path: Path) -> threading.Thread:
    def loop():
        while not stop.is_set():
            virtual_mic.play(path)

    thread = threading.Thread(target=loop)
    thread.start()
    return thread


def expected_maximum(path: Path) -> float:
    """Largest LTL of the sound repeated, as analyzed from the file."""
    x, _ = soundfile.read(path, dtype="float32", always_2d=True)
    x = np.concatenate([x, x]).T * CALIBRATION.pascal_per_unit
    with torch.no_grad():
        y = aligned(Moore2016(FS), torch.tensor(x, dtype=torch.float32)[None])
    return float(y.ltl.max())


@pytest.mark.parametrize(("run_in", "seconds"), [("engine", 600), ("callback", 60)])
def test_on_the_virtual_microphone(record, virtual_mic, sound, run_in, seconds):
    stop = threading.Event()
    player = played_until(stop, virtual_mic, sound)
    loudest = []

    def watch(frames):
        loudest.append(float(frames.values.ltl.max()))

    try:
        source = MicrophoneSource("virtual_mic", fs=FS)
        with Engine(
            source, Moore2016(FS), sinks=[watch], calibration=CALIBRATION, run_in=run_in
        ) as engine:
            time.sleep(min(30, seconds / 2))
            early = resident_mb()
            time.sleep(seconds - min(30, seconds / 2))
            health, grown = engine.health, resident_mb() - early
    finally:
        stop.set()
        player.join()
    # Between two plays of the file a moment of silence passes, so its maximum is a little lower.
    off = sone_to_phon(max(loudest)) - sone_to_phon(expected_maximum(sound))
    record(
        f"{seconds} s live on the virtual microphone, run_in={run_in!r}, 10 ms blocks",
        f"overruns {health.overruns}, lost samples {health.lost_samples}, load {health.load:.3f}, "
        f"share of the block: median {health.block_share_median:.3f}, "
        f"p99 {health.block_share_p99:.3f}, max {health.block_share_max:.3f}; "
        f"memory {grown:+.1f} MB; maximum LTL {off:+.3f} phon re analysis",
    )
    assert health.overruns == 0
    assert health.lost_samples == 0
    assert grown < 8
    assert abs(off) < 0.1


def test_blocks_of_a_millisecond_below_a_window(record, qtbot, tmp_path, virtual_mic, sound):
    from amt_monitor.base.settings import Settings
    from amt_monitor.window.main_window import MainWindow

    def make_engine(wanted):
        model = load_preset("moore2016").models(FS, 2, specific_loudness=True)
        source = MicrophoneSource("virtual_mic", fs=FS)
        return Engine(source, model, calibration=CALIBRATION, block_ms=1.0)

    stop = threading.Event()
    player = played_until(stop, virtual_mic, sound)
    window = MainWindow(make_engine, settings=Settings(tmp_path / "monitor.json"))
    qtbot.addWidget(window)
    window.show()
    try:
        qtbot.waitUntil(lambda: window.updater.shown is not None, timeout=60000)
        qtbot.wait(600_000)
        health = window.measurement.engine.health
    finally:
        stop.set()
        player.join()
        window.close_now()
    record(
        "600 s live on the virtual microphone, 1 ms blocks, below a window",
        f"overruns {health.overruns}, lost samples {health.lost_samples}, load {health.load:.3f}, "
        f"share of the block: median {health.block_share_median:.3f}, "
        f"p99 {health.block_share_p99:.3f}, max {health.block_share_max:.3f}",
    )
    assert health.overruns == 0
    assert health.lost_samples == 0


def test_window_and_engine(record, xvfb, tmp_path):
    words, share = window_cost(tmp_path, seconds=300)
    record("window with engine and demo sound", words)
    assert share < 0.45


def test_speed(record):
    for block_ms, accuracy, limit in (
        (10, "exact", 0.18),
        (1, "exact", 0.32),
        (10, "coarse", 0.10),
    ):
        taken = shares(block_ms, seconds=20, accuracy=accuracy)
        record(
            f"thread CPU seconds per second of audio, {accuracy}, {block_ms} ms blocks",
            f"{summary(taken)} (asked: median {limit})",
        )
        assert len(taken) > 1000


def test_starting_the_meter(record):
    """From the command line to the end of one second of sound, kernels cached."""
    meter = [sys.executable, "-m", "amt_stream.cli", "meter", "--source", "demo"]
    took = []
    for _ in range(3):
        start = time.monotonic()
        done = subprocess.run(
            [*meter, "--format", "csv", "--duration", "1"],
            capture_output=True,
            text=True,
            check=True,
        )
        took.append(time.monotonic() - start)
        assert done.stdout.count("\n") >= 9
    record("`amt-stream meter` for one second of sound, whole process", f"{min(took):.1f} s")
