"""Things that are made at their first use, used first by eight threads at once.

Each in a fresh process, with threads that take turns as often as Python allows.
"""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

TOGETHER = """
import sys, threading, traceback
sys.setswitchinterval(1e-6)

def together(use):
    gate, results, faults = threading.Barrier(8), [None] * 8, []
    def work(k):
        gate.wait()
        try:
            results[k] = use(k)
        except BaseException:
            faults.append(traceback.format_exc())
    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults, faults[0]
    assert all(one == results[0] for one in results), results
"""

MEASURE = """
import numpy as np
sound = 0.01 * np.random.default_rng(0).standard_normal(9600)
def use(k):
    import amt_stream
    m = amt_stream.measure(sound, 48000, {models!r}, calibration="pascal", step_ms=50)
    return [m[name][1:].tobytes() for name in m.columns[1:] if m[name].dtype.kind == "f"]
together(use)
"""

WHOLE = """
import torch, amt_stream
model, sound = {model}, torch.full(({channels}, 9600), 0.01)
def use(k):
    with torch.no_grad():
        y = model(sound)
    parts = y if isinstance(y, tuple) else (y,)
    return [float(part.sum()) for part in parts if part is not None]
together(use)
"""

THINGS = {
    "names of the package": """
def use(k):
    import amt_stream
    return [id(getattr(amt_stream, n)) for n in ("Engine", "Moore2016", "measure", "Calibration")]
together(use)
""",
    "input gate": """
from amt_stream.dsp.functional.input_gate import make_ready
together(lambda k: make_ready())
""",
    "loops of accumulators": """
def use(k):
    from amt_stream.meters.accumulators import Histogram, RollingLevel
    histogram, level = Histogram(), RollingLevel(1.0, 0.01)
    histogram.add([50.0, 60.0])
    return histogram.exceeded(50), level.add([1.0]).tolist()
together(use)
""",
    "catalog, presets and tables": """
def use(k):
    from amt_stream.dsp.data import table
    from amt_stream.meters import catalog, presets
    from amt_stream.meters.norms import shipped_norms
    return sorted(catalog.entries()), table("ecma418_ear")["b0"].tolist(), shipped_norms()
together(use)
""",
    "layout of a chain's state": """
import torch
from amt_stream.dsp.compose import parted
for n in range(100):
    state = {f"{n}_{k}/x": torch.zeros(1) for k in range(60)}
    together(lambda k: len(parted(state)))
""",
    "outputs of parallel stages": """
from amt_stream.dsp.compose import _outputs
for n in range(100):
    together(lambda k: id(_outputs((f"a{n}", "b"))))
""",
    "measure spl": MEASURE.format(models="spl"),
    "measure ecma": MEASURE.format(models="ecma"),
    "measure several": MEASURE.format(
        models="moore2016,zwicker,third_octave,spectrum,daniel_weber"
    ),
    "one model": WHOLE.format(model="amt_stream.Moore2016()", channels=2),
    "one gammatone filterbank": WHOLE.format(
        model="amt_stream.GammatoneFilterbank([500.0, 1000.0], 48000)", channels=1
    ),
    "a model each": """
import numpy as np
MODELS = ("moore2016", "zwicker", "spl", "ecma", "king2019", "dau1997", "octave", "gm2002")
sound = 0.01 * np.random.default_rng(0).standard_normal(9600)
def use(k):
    import amt_stream
    return len(amt_stream.measure(sound, 48000, MODELS[k], calibration="pascal")) > 1
together(use)
""",
    "live engines": """
import numpy as np
def use(k):
    import amt_stream
    source = amt_stream.PushSource(48000, 1)
    with amt_stream.Engine(source, amt_stream.SoundLevel()) as engine:
        source.push(np.zeros((4800, 1), np.float32))
    return engine.health.lost_samples
together(use)
""",
}


def run(program, **more):
    environment = os.environ | {"PYTHONPATH": str(ROOT)} | more
    return subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        timeout=300,
    )


QUICK = {"names of the package", "input gate", "loops of accumulators", "a model each"}


@pytest.mark.parametrize(
    "name",
    [pytest.param(one, marks=[] if one in QUICK else pytest.mark.soak) for one in THINGS],
)
def test_by_eight_threads_at_once(name):
    done = run(TOGETHER + THINGS[name])
    assert done.returncode == 0, done.stderr[-3000:]


def test_compiled_by_eight_threads_at_once(tmp_path):
    """With nothing in the cache: one compiles, the others wait."""
    done = run(TOGETHER + THINGS["input gate"], NUMBA_CACHE_DIR=str(tmp_path))
    assert done.returncode == 0, done.stderr[-3000:]


MADE_TWICE = {
    "amt_stream/cli/terminal/palette.py": {"style"},
    "amt_stream/cli/terminal/panes.py": {"_columns_of"},
    "amt_stream/cli/terminal/pictures.py": {"digits"},
    "amt_stream/dsp/data/__init__.py": {"table"},
    "amt_stream/dsp/functional/compiler/fourier.py": {"turns", "twists"},
    "amt_stream/dsp/functional/gammatone.py": {"_block_shapes"},
    "amt_stream/dsp/functional/compiler/gpu.py": {"_there"},
    "amt_stream/dsp/functional/compiler/kernel_cache.py": {"_stamps"},
    "amt_stream/core/built_ahead.py": {"sources_digest", "_loops"},
    "amt_stream/core/importing.py": {"has_torch"},
    "amt_stream/dsp/functional/compiler/threads.py": {"_setters"},
    "amt_stream/dsp/scales.py": {"sone_table"},
    "amt_stream/dsp/stages/ear.py": {"ear_taps"},
    "amt_stream/dsp/stages/spectrum.py": {"_weights"},
    "amt_stream/engine/microphone/microphone_correction.py": {"ready_stage"},
    "amt_stream/engine/readers/flac.py": {"_table"},
    "amt_stream/engine/readers/mpeg.py": {"frame_of"},
    "amt_stream/meters/accumulators/stipa.py": {"_tables"},
    "amt_stream/meters/catalog.py": {"_installed"},
    "amt_stream/meters/rows/models/level_columns.py": {"level_column"},
    "amt_stream/meters/rows/models/quantity.py": {"_form"},
    "amt_stream/meters/rows/readings.py": {"_column_named", "_widest"},
    "amt_stream/meters/rows/words.py": {"_writer_of"},
    "amt_stream/service/transports/osc.py": {"address_of"},
}
"""Functions with a cache of functools, which several threads may run at once for one value, by
file: each gives the same whichever of its results is kept. `made_once` is for all others."""


def cached_functions():
    """Names of the functions that functools caches, by file."""
    found = {}
    for path in sorted((ROOT / "amt_stream").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.FunctionDef):
                continue
            for one in node.decorator_list:
                name = one.func if isinstance(one, ast.Call) else one
                if isinstance(name, ast.Name) and name.id in ("cache", "lru_cache"):
                    found.setdefault(path.relative_to(ROOT).as_posix(), set()).add(node.name)
    return found


def test_what_is_cached_may_be_made_twice():
    assert cached_functions() == MADE_TWICE


@pytest.mark.cases(1)
@pytest.mark.parametrize("command", ["analyze x.wav --model spl", "selftest --model spl"])
def test_without_a_compiler_one_sentence_says_so(command, tmp_path):
    program = (
        "import sys, numpy, soundfile; soundfile.write('x.wav', numpy.zeros(4800), 48000);"
        "from amt_stream.cli.command import run_command;"
        f"sys.exit(run_command({command.split()!r}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT), "NUMBA_DISABLE_JIT": "1"},
        timeout=120,
    )
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "NUMBA_DISABLE_JIT is set, and amt_stream cannot run without" in done.stderr
