"""What `make cuda` would find is found, tried with the host in place of a GPU."""

import os
import re
import sys
import time

import pytest
import torch

import amt_stream
from amt_stream import Gain, Stage
from amt_stream.dsp.functional.compiler import dispatch
from tests.cuda import __main__ as main
from tests.cuda import checks
from tests.cuda.results import RESULTS, ROOT, SOURCES, source_hash
from tests.recorder import Recorder


@pytest.fixture
def gpu(monkeypatch):
    monkeypatch.setattr(dispatch, "_KINDS", ())  # kernels of the CPU leave no operation to record
    return Recorder()


def test_without_a_gpu_nothing_was_checked(forks):
    without = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    done = forks.run(main.__file__, options=["program"], environment=without)
    of = "this source" if source_hash() in RESULTS.read_text("utf-8") else "another source"
    said = f"nothing was checked: no CUDA device; the last run was of {of}\n"
    assert (done.returncode, done.stdout.decode()) == (2, said)


@pytest.mark.parametrize("name", ["BS1770", "EarFilter", "Moore2016SpecificLoudness"])
def test_a_stage_that_gives_the_same_numbers_holds(gpu, name):
    row = checks.of_stage(name, gpu)
    assert row.holds
    assert (row.single <= checks.SINGLE, row.double <= checks.DOUBLE) == (True, True)
    assert row.told().startswith(f"| {name} | ")
    assert row.told().count("|") == checks.HEAD.partition("\n")[0].count("|")


def test_a_model_and_many_listeners_hold_in_time(gpu):
    row = checks.of_model("BS1770", 3, gpu)
    assert row.holds == (row.p99_ms < checks.BLOCK_MS)
    assert row.p50_ms > 0
    assert 20 < row.launches < 400
    row = checks.of_listeners(2, 1, gpu)
    assert row.single <= checks.SINGLE


@pytest.mark.skipif(sys.platform != "linux", reason="Triton is for Linux")
def test_a_kernel_holds(forks):
    program = "from tests.cuda.checks import of_kernel\nprint(of_kernel('agc', 'cpu').told())"
    interpreted = {**os.environ, "TRITON_INTERPRET": "1"}
    done = forks.run(program, options=["code"], environment=interpreted)
    assert done.stdout.decode().startswith("| kernel agc | "), done.stderr.decode()
    assert done.stdout.decode().endswith("| yes |\n")


def test_an_engine_holds():
    assert checks.of_engine("callback", "cpu").holds
    assert not checks.of_engine("callback", "cuda:99").holds


def test_a_gradient_holds():
    row = checks.of_gradient("BS1770", "cpu")
    assert row.holds
    assert row.double == 0.0


class Reads(Stage):
    """Asks for a number in its step."""

    def initial_state(self, shape):
        return {}

    def step(self, x, state):
        return x * x.amax().sign().item(), state


def test_what_is_wrong_does_not_hold(gpu):
    x = torch.randn(2, 8, generator=torch.Generator().manual_seed(0)).double()
    row = checks.Row("wrong", True)
    assert checks.of_numbers(row, lambda: Gain(0.3), x, gpu).holds
    gains = iter([0.3, 0.3, 0.3001, 0.3])  # in float64 and float32 on the CPU, then there
    assert not checks.of_numbers(row, lambda: Gain(next(gains)), x, gpu).holds
    gains = iter([0.3, 0.3, 0.3, 0.3 + 1e-8])
    assert not checks.of_numbers(row, lambda: Gain(next(gains)), x, gpu).holds
    assert not checks.of_numbers(row, Reads, x, gpu).holds
    a = torch.tensor([1.0, float("inf")])
    assert checks.distance([[a]], [[a]]) == 0.0
    assert checks.distance([[a.flip(0)]], [[a]]) == float("inf")
    live = checks.hosted(Gain(0.3), x, gpu)[0]
    live.register_forward_hook(lambda *_: time.sleep(0.01))  # a block lasts 0.2 ms
    assert not checks.in_time(row, live, x.float(), 2).holds


def test_what_is_claimed_was_run():
    """Pages name the GPU and the day of the last run; of which source that was stands beside it."""
    ran = re.search(r"^(\d{4}-\d\d-\d\d), (.+?), driver", RESULTS.read_text("utf-8"), re.M)
    rows = {*re.findall(r"^\| (\w+)", RESULTS.read_text("utf-8"), re.M)}
    public = {name: getattr(amt_stream, name) for name in amt_stream.__all__}
    stages = {n for n, one in public.items() if isinstance(one, type) and issubclass(one, Stage)}
    missing = stages - rows - {"Stage"}
    on_the_cpu = "ECMA", "DanielWeber", "Tone", "Tonal", "Impulse", "Rating", "Stipa", "Partial"
    assert all(name.startswith(on_the_cpu) for name in missing), missing
    for name in ("README.md", "docs/gpu.md"):
        text = " ".join((ROOT / name).read_text(encoding="utf-8").split())
        assert f"ran on an {ran[2]} on {ran[1]}" in text, name
        exempt = re.search(r"All but the models of ECMA-418-2|but those of ECMA-418-2", text)
        assert bool(exempt) is bool(missing), name
    assert "NO |" not in RESULTS.read_text("utf-8")


def test_any_change_of_what_runs_there_is_another_source(tmp_path):
    dsp = ROOT / "amt_stream" / "dsp"
    assert all([*dsp.glob(pattern)] for pattern in SOURCES)
    for name in ("stages/one.py", "functional/compiler/two.py"):
        source = tmp_path / name
        source.parent.mkdir(parents=True)
        source.write_text("x = 1\n")
        before = source_hash(tmp_path)
        (tmp_path / "data").mkdir(exist_ok=True)
        (tmp_path / "data" / "table.txt").write_text(name)
        assert source_hash(tmp_path) == before
        source.write_text("x = 2\n")
        assert source_hash(tmp_path) != before
