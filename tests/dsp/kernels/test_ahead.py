"""Kernels that a second process compiles."""

import os
import subprocess
import sys

import numpy as np
import pytest

from amt_stream.dsp.functional import component_loudness
from amt_stream.dsp.functional.compiler.ahead import Ahead, compile_kernel, is_kept

HOME = component_loudness.__name__


def test_the_second_process_keeps_what_it_compiles(tmp_path):
    names = ["to_end", "to_shifted", "amt_stream.dsp.functional.input_gate:make_ready"]
    with subprocess.Popen(
        [sys.executable, "-m", "amt_stream.dsp.functional.compiler.ahead", HOME, "float32", *names],
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
        stdin=subprocess.PIPE,
    ) as process:
        assert process.wait(300) == 0  # before its input ends, with which it would end too
    kept = {path.name.split("-")[0] for path in tmp_path.rglob("*.nbc")}
    assert kept == {
        "component_loudness._to_end",
        "component_loudness._to_shifted",
        "input_gate._remove_offset",
        "input_gate.scale_and_check",
        "input_gate.without_offset",
        "numba_runtime",
    }


@pytest.mark.quick
@pytest.mark.parametrize("name", ["to_end", ".to_loudness"])
def test_there_is_none_where_kernels_are_kept(name):
    compile_kernel(HOME, name, np.dtype(np.float32))
    assert is_kept(HOME, name)
    ahead = Ahead(HOME, [name], np.dtype(np.float32))
    process = ahead._process  # of this one: models of other tests may have begun some in threads
    ahead.end()
    assert process is None


STARTED = """
import subprocess
from amt_stream import Moore2016

begun = []

class Process(subprocess.Popen):
    def __init__(self, *given, **named):
        super().__init__(*given, **named)
        begun.append(self)

subprocess.Popen = Process
model = Moore2016(48000)
model.begin_to_compile()
(process,) = begun
del model
assert process.wait(300) < 0, "it was not ended"
"""


@pytest.mark.soak
def test_a_model_that_is_never_used_ends_its_second_process(tmp_path):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", STARTED], env=environment, check=True)
