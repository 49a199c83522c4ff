"""The loudness model in the engine: one sound, every way in, the same numbers."""

import subprocess
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch

from amt_stream import Moore2016, aligned
from amt_stream.dsp.scales import sone_to_phon
from amt_stream.engine import Engine, Fault, FileSource, StdinSource
from amt_stream.engine.sources import LARGEST_SAMPLE
from amt_stream.meters.calibration import Calibration
from amt_stream.offline.analysis import CheckedFile, analyze

FULL_SCALE = Calibration(100.0, source="test")
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def model():
    return Moore2016(fs=48000)


@pytest.fixture
def bursts(tmp_path):
    """Two seconds of tone bursts around 80 dB SPL that begin and end abruptly, as 16-bit PCM."""
    t = np.arange(96000) / 48000
    on = (t % 0.5 < 0.3)[:, None]
    tones = np.stack([np.sin(2 * np.pi * 1000 * t), np.sin(2 * np.pi * 440 * t)], axis=1)
    path = tmp_path / "bursts.wav"
    soundfile.write(path, 0.1 * on * tones, 48000, subtype="PCM_16")
    return path


def phon(sone: np.ndarray) -> np.ndarray:
    return sone_to_phon(np.asarray(sone, np.float64), "iso532-3")


def test_offline_file_pipe_and_both_threads_agree(model, bursts, collector):
    x, _ = soundfile.read(bursts, dtype="float32")
    pascal = torch.from_numpy(x.T * np.float32(FULL_SCALE.pascal_per_unit))[None]
    with torch.inference_mode():
        expected = aligned(model, torch.nn.functional.pad(pascal, (0, 48)))
    analyzed = list(analyze(CheckedFile(bursts), model, FULL_SCALE))
    raw = bursts.with_suffix(".raw")
    raw.write_bytes((x * 2**15).astype("<i2").tobytes())
    with subprocess.Popen(["cat", str(raw)], stdout=subprocess.PIPE) as cat:
        ways = [
            (FileSource(bursts, paced=False), "engine"),
            (FileSource(bursts, paced=False), "callback"),
            (StdinSource("s16le", 48000, 2, cat.stdout), "engine"),
            (FileSource(bursts, paced=True), "engine"),
        ]
        for source, run_in in ways:
            collector.all.clear()
            # A busy computer is not what this is about.
            with Engine(
                source, model, [collector], calibration=FULL_SCALE, run_in=run_in, ladder=()
            ) as engine:
                assert engine.wait(60), engine.error
            assert engine.health.lost_samples == 0
            np.testing.assert_allclose(collector.column("time_s"), np.arange(2001) / 1000)
            for name in ("stl", "ltl"):
                y = np.concatenate([getattr(frames.values, name) for frames in analyzed])
                np.testing.assert_allclose(collector.column(name), y, rtol=2e-5, atol=1e-6)
            # The slow mean of a file is removed, and that of a tensor is not.
            for name in ("stl", "ltl", "stl_ears", "ltl_ears"):
                y = getattr(expected, name)[0].numpy()
                np.testing.assert_allclose(collector.column(name), y, rtol=3e-4, atol=1e-6)
            settling, time_s = collector.column("settling"), collector.column("time_s")
            np.testing.assert_array_equal(settling, time_s < model.settle_s)


def test_the_microphone_reads_the_same_loudness(model, bursts, record, collector):
    with Engine(
        FileSource(bursts, paced=False), model, [collector], calibration=FULL_SCALE
    ) as engine:
        assert engine.wait(60), engine.error
    expected = phon(collector.column("ltl").max())
    collector.all.clear()
    engine = record(bursts, model)
    # Whoever plays into the microphone may stand still for a moment on a busy computer.
    assert phon(collector.column("ltl").max()) == pytest.approx(expected, abs=0.05)
    health = engine.final_health
    assert health.lost_samples == 0
    assert health.latency_s >= 0.033


def test_a_click_is_reported_when_it_came(model, collector, tmp_path):
    """Time is the sample count less the model's latency."""
    x = np.zeros((48000, 2), np.float32)
    x[24000] = 0.9
    path = tmp_path / "click.wav"
    soundfile.write(path, x, 48000, subtype="FLOAT")
    with Engine(FileSource(path, paced=False), model, [collector]) as engine:
        assert engine.wait(60), engine.error
    loudest = collector.column("time_s")[collector.column("stl").argmax()]
    assert loudest == pytest.approx(0.5, abs=0.035)
    assert not collector.all[0].calibrated


@pytest.mark.parametrize("sample", [1e19, LARGEST_SAMPLE])
def test_one_absurd_sample_does_not_spoil_what_comes_after(model, collector, tmp_path, sample):
    x = np.full((48000, 2), 0.01, np.float32)
    x[4800] = sample
    path = tmp_path / "absurd.wav"
    soundfile.write(path, x, 48000, subtype="FLOAT")
    calibration = Calibration(250.0, source="the highest there is")
    with Engine(
        FileSource(path, paced=False), model, [collector], calibration=calibration
    ) as engine:
        assert engine.wait(60), engine.error
    assert np.isfinite(collector.column("stl")).all()
    assert np.isfinite(collector.column("ltl")).all()
    # A floating-point file has no full scale, so that what is no number alone is a fault.
    assert collector.column("fault")[100] == (Fault.NON_FINITE if sample > LARGEST_SAMPLE else 0)


@pytest.mark.quick
def test_optional_outputs_come_through(collector, bursts):
    model = Moore2016(fs=48000, specific_loudness=True)
    with Engine(
        FileSource(bursts, paced=False), model, [collector], calibration=FULL_SCALE
    ) as engine:
        assert engine.wait(60), engine.error
        assert engine.history.fields == ("stl", "ltl")
    values = collector.all[0].values
    assert values.specific_loudness.shape == (2, len(values.stl), 150)
    assert values.excitation_db is None


def test_the_example_runs(forks):
    done = forks.run("apps/embed.py", options=["program"])
    assert done.returncode == 0, done.stderr
    lines = done.stdout.decode().splitlines()
    assert [line.split()[0] for line in lines] == [f"{0.2 * n:.1f}" for n in range(11)]
    assert float(lines[-2].split()[4]) == pytest.approx(60.0, abs=1.0)
    assert len((ROOT / "apps/embed.py").read_text().splitlines()) <= 40
