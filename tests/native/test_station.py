"""A station without PyTorch and numba: the numbers are those of the whole package."""

import fcntl
import os
import subprocess
import sys

import numpy as np
import pytest
import soundfile

from amt_stream import Engine, PushSource
from amt_stream.cli.command import run_command
from amt_stream.core.built_ahead import BuiltLoop, cache_folder
from amt_stream.core.importing import NeedsTorch, install
from amt_stream.dsp.stages import SoundLevel
from amt_stream.engine.models.preparing import ready_model
from amt_stream.meters.accumulators import loops
from amt_stream.meters.calibration import Calibration
from amt_stream.native.compiled_model import CompiledModel
from amt_stream.native.prebuilt import build_for_engines, of_this_computer
from tests.native.library import HOST

FS = 48000
FAR = Calibration(100.0)


@pytest.fixture(scope="session")
def station(shared):
    """A cache with the loops, and the model of sound levels."""
    folder = shared / "station"
    with (shared / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            being_built = shared / "station_being_built"
            to = being_built / "amt_stream" / "native"
            to.mkdir(parents=True, exist_ok=True)
            for _ in build_for_engines([("spl", FS, 2)], [HOST], of_this_computer, to):
                pass
            being_built.rename(folder)
    return folder


@pytest.fixture
def compiled(station, monkeypatch):
    """The model of sound levels as it was compiled ahead."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(station))
    assert cache_folder().is_dir()
    return CompiledModel("spl", FS, 2, {})


@pytest.fixture(scope="module")
def sound():
    """Six seconds of two channels, with an offset, silence and a clipped part."""
    random = np.random.default_rng(8)
    x = (0.05 * random.standard_normal((6 * FS + 321, 2)) + 0.01).astype(np.float32)
    x[FS : FS + 9000] = 0.0
    x[3 * FS : 3 * FS + 40, 1] = 1.0
    return x


def run(station, *args):
    """A command where torch and numba are not."""
    command = [sys.executable, "-m", "tests.native.without_torch", *map(str, args)]
    variables = os.environ | {"XDG_CACHE_HOME": str(station)}
    return subprocess.run(command, env=variables, capture_output=True, text=True, check=False)


def test_rows_of_a_file_are_those_of_the_whole_package(station, sound, tmp_path, capsys):
    path = tmp_path / "sound.wav"
    soundfile.write(path, sound, FS, "PCM_16")
    # With an uncertainty, of which compiled models give no band.
    asked = "analyze", path, "--full-scale-db", "100", "--calibration-uncertainty", "0.3"
    asked += "--microphone-uncertainty", "1", "--model", "spl", "--format", "csv"
    asked += "--columns", "laf_db,laeq_db,lcpeak_db,l10_db,laieq_db,laeq_1s_db", "--step-ms", "20"
    without = run(station, *asked)
    assert without.returncode == 0
    assert run_command(list(map(str, asked))) == 0
    whole, said = capsys.readouterr()
    assert without.stderr.splitlines() == [x for x in said.splitlines() if "compiling" not in x]
    assert "is clipped" in without.stderr
    assert f'"cpu, compiled ahead for {HOST}"' in without.stdout
    assert without.stdout.replace(f", compiled ahead for {HOST}", "") == whole
    assert len(whole.splitlines()) > 300


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["meter", "--source", "demo", "--model", "zwicker"], "zwicker at 48000 Hz"),
        (["meter", "--source", "demo", "--model", "spl", "--compute", "cuda"], "not installed"),
        (["meter", "--source", "demo", "--model", "bs1770", "--layout", "Ls Rs"], "Ls Rs"),
        (["bench"], "install it"),
        (["selftest"], "install it"),
        (["export", "spl", "--c", "somewhere"], "export needs"),
    ],
)
def test_what_it_leaves_out_is_refused_in_a_sentence(station, args, words):
    done = run(station, *args, *(["--format", "csv", "--duration", "0.2"] * (args[0] == "meter")))
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    if "cuda" not in args:
        assert "the package amt_stream" in done.stderr
        assert done.returncode == 1
        assert not done.stdout


def test_a_library_of_two_channels_does_not_serve_one(compiled):
    with pytest.raises(NeedsTorch, match="spl at 48000 Hz for 1 channel is not among"):
        CompiledModel("spl", FS, 1, {})


def test_the_window_opens(station, xvfb):
    done = run(station, "meter", "--source", "demo", "--model", "spl", "--duration", "1")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("torch", [True, False])
def test_an_extra_is_that_of_the_installed_package(monkeypatch, torch):
    monkeypatch.setattr("amt_stream.core.importing.has_torch", lambda: torch)
    package = "amt_stream" if torch else "amt-stream-station"
    assert install("app") == f'pip install "{package}[app]"'


def test_a_live_meter_writes_rows(station):
    asked = "--source", "demo", "--model", "spl", "--format", "csv", "--duration", "1"
    done = run(station, "meter", *asked)
    assert done.returncode == 0
    assert "1 s measured" in done.stderr
    rows = [line for line in done.stdout.splitlines() if line[:1].isdigit()]
    assert rows[-1].startswith("1.0,")
    assert "39.9" in rows[-1]  # the tone of 40 dB, A-weighted, fast


def frames_of(model, chunks, **settings):
    """All frames of an engine that is given these chunks, each with the samples lost before it."""
    found = []
    source = PushSource(FS, chunks[0][0].shape[1], live=False)
    with Engine(source, model, [found.append], calibration=FAR, **settings) as engine:
        for chunk, lost in chunks:
            source.push(chunk, lost)
        source.close()
        assert engine.wait(60)
    return found


def joined(frames):
    return [np.concatenate(parts, -1) for parts in zip(*(f.values for f in frames), strict=True)]


def test_an_engine_gives_the_same_frames(compiled, sound):
    cuts = np.cumsum([0, 481, 3, 20000, 959, 1, 50000, 77777])
    chunks = [(sound[a:b], 0) for a, b in zip(cuts, [*cuts[1:], len(sound)], strict=True)]
    chunks[3] = chunks[3][0], 700
    chunks[6] = chunks[6][0], 3 * FS
    one, other = (frames_of(model, chunks) for model in (compiled, SoundLevel(FS)))
    for name in ("time_s", "fault", "settling", "since_s", "level_db"):
        mine, theirs = (
            np.concatenate([getattr(f, name) for f in frames], -1) for frames in (one, other)
        )
        np.testing.assert_array_equal(mine, theirs)
    for mine, theirs in zip(joined(one), joined(other), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_each_of_several_microphones_is_measured_alone(compiled, sound):
    both = np.concatenate([sound, sound[::-1]], axis=1)
    given = frames_of(compiled, [(both, 0)], microphones=[(1, 2), (3, 4)])
    names = dict.fromkeys(f.microphone for f in given)
    for name, own in zip(names, (sound, sound[::-1]), strict=True):
        alone = joined(frames_of(compiled, [(own, 0)]))
        frames = [f for f in given if f.microphone == name]
        for mine, theirs in zip(joined(frames), alone, strict=True):
            np.testing.assert_array_equal(mine, theirs)


def test_a_state_is_saved_and_gone_on_with(compiled, sound):
    def ready():
        one = ready_model(compiled, FS, 50.0)
        one.make_input(one.block)
        return one

    first, second = ready(), ready()
    parts = np.split(sound[:24000].T, np.cumsum([2400, 1000, 1400, 2400, 700]), axis=1)[:-1]
    whole = []
    for k, part in enumerate(parts):
        n = part.shape[1]
        first.input[0, :, :n] = part
        whole.append(first.run(n))
        if k == 1:
            second.memory = first.memory
            assert second.held == 1000
        if k > 1:
            second.input[0, :, :n] = part
            other = second.run(n)
            assert (other is None) == (whole[-1] is None)
            for mine, theirs in zip(other or (), whole[-1] or (), strict=True):
                np.testing.assert_array_equal(mine, theirs)
    wrong = first.memory | {"state": first.memory["state"][:, :-1]}
    with pytest.raises(ValueError, match="not one of this spl"):
        second.memory = wrong


def test_a_model_of_torch_is_not_swapped_in(compiled):
    source = PushSource(FS, 2)
    with Engine(source, compiled) as engine:
        with pytest.raises(ValueError, match="run in different ways: make a new Engine"):
            engine.swap(SoundLevel(FS))
        source.close()


def test_loops_are_called_with_all_kinds_of_arguments(compiled):
    """Scalars, strided and empty arrays, and results that are a number or nothing."""
    built = BuiltLoop(loops.count.py_func)
    values = np.random.default_rng(1).uniform(-20, 120, 600)[::3]
    values[7] = np.nan
    mine, right = np.zeros(400, np.int64), np.zeros(400, np.int64)
    given = 0.5, -40.0, 400.0, -40
    assert built(values, *given, mine) == loops.count(values, *given, right) == len(values)
    np.testing.assert_array_equal(mine, right)
    assert built(values[:0], *given, mine) == 0
    digits, same = values.copy(), values.copy()
    assert BuiltLoop(loops.round_digits.py_func)(digits) is None
    loops.round_digits(same)
    np.testing.assert_array_equal(digits, same)
    assert digits[0] != values[0]


def test_an_engine_is_imported_without_torch():
    code = "import sys, amt_stream.engine.engine, amt_stream.offline.measure; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    found = done.stdout.split()
    assert "amt_stream.engine.models.batch" in found
    assert "torch" not in found
