"""Where the models run, as a person asks for it, and what is said where there is no GPU."""

import io
import json

import numpy as np
import pytest

from amt_stream import Engine, SignalSource, measure
from amt_stream.dsp import compute_device
from amt_stream.engine import engine as engine_module

WITHOUT = "there is no CUDA device: the models run on the CPU, though cuda was asked for"


@pytest.fixture(autouse=True)
def no_gpu(monkeypatch):
    """Here there is none, whatever the computer has."""
    monkeypatch.setattr(compute_device, "_missing", lambda index: "there is no CUDA device")


@pytest.fixture
def sound(sound_file):
    x = 0.02 * np.random.default_rng(0).standard_normal((24000, 2))
    return sound_file(x.astype(np.float32))


def cells(text):
    import pandas

    return pandas.read_csv(io.StringIO(text), comment="#").drop(columns="utc")


@pytest.mark.parametrize("command", ["meter", "analyze"])
def test_without_a_gpu_a_command_says_so_once_and_gives_the_same_rows(said, sound, command):
    import pandas

    chosen = [command, *(["--source"] if command == "meter" else []), sound, "--model", "spl"]
    chosen += ["--format", "csv", *(["--fast"] if command == "meter" else [])]
    status, plain, err = said(*chosen)
    assert (status, "CUDA" in err) == (0, False)
    assert '\n# compute: "cpu"\n' in plain
    status, out, err = said(*chosen, "--compute", "cuda")
    assert status == 0
    assert err.count(WITHOUT) == 1
    assert '\n# compute: "cpu"\n' in out
    pandas.testing.assert_frame_equal(cells(out), cells(plain))


def test_what_is_no_device_is_refused(said):
    status, out, err = said("meter", "--compute", "tpu")
    assert (status, out) == (2, "")
    assert "argument --compute: invalid choice: 'tpu' (choose from cpu, cuda)" in err.replace(
        "'cpu', 'cuda'", "cpu, cuda"
    )


def test_a_preset_says_it_and_what_is_typed_wins(said, sound, tmp_path):
    preset = tmp_path / "gpu.toml"
    preset.write_text('[model]\nname = "spl"\n[engine]\ncompute = "cuda"\n')
    assert WITHOUT in said("analyze", sound, "--preset", preset)[2]
    assert WITHOUT not in said("analyze", sound, "--preset", preset, "--compute", "cpu")[2]


def test_measure_warns(sound):
    expected = measure(sound, models="spl")
    with pytest.warns(RuntimeWarning, match=WITHOUT):
        m = measure(sound, models="spl", compute="cuda")
    assert list(m.rows) == list(expected.rows)
    assert m.header["compute"] == expected.header["compute"] == "cpu"
    with pytest.raises(ValueError, match="device is 'tpu': give 'cpu' or 'cuda'"):
        measure(sound, models="spl", compute="tpu")


def test_the_log_of_another_device_is_replayed_with_a_word_of_it(said, sound):
    command = ["meter", "--source", sound, "--fast", "--model", "spl", "--quiet"]
    status, _, err = said(*command, "--log", "hall", "--log-sound", "wav", "--compute", "cuda")
    assert (status, WITHOUT in err) == (0, True)
    assert said("replay", "hall")[0] == 0
    path = sound.parent / "hall" / "session.json"
    told = json.loads(path.read_text())
    told["header"]["compute"] = "cuda:0 (a GPU)"
    path.write_text(json.dumps(told))
    status, out, err = said("replay", "hall")
    assert status == 0, out
    assert "it was measured on 'cuda:0 (a GPU)', and this is cpu: last digits may differ" in err


def test_the_window_says_in_its_status_line_where_the_models_run(monkeypatch):
    from amt_stream.dsp.stages import SoundLevel
    from amt_stream.views.status_text import status_text

    monkeypatch.setattr(engine_module, "device_words", lambda device: "cuda:0 (a GPU)")
    engine = Engine(SignalSource(), SoundLevel(48000))
    assert status_text(engine, engine.health).endswith("on cuda:0 (a GPU)")
    monkeypatch.undo()
    other = Engine(SignalSource(), SoundLevel(48000))
    assert "on cpu" not in status_text(other, other.health)
