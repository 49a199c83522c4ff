"""Kernels that a second process compiles."""

import os
import subprocess
import sys

import numpy as np
import pytest

from amt_stream.functional import component_loudness
from amt_stream.functional.ahead import compile_kernel, compiled_ahead, is_kept

HOME = component_loudness.__name__


def test_the_second_process_keeps_what_it_compiles(tmp_path):
    names = ["to_end", "to_shifted"]
    with subprocess.Popen(
        [sys.executable, "-m", "amt_stream.functional.ahead", HOME, "float32", *names],
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
        stdin=subprocess.PIPE,
    ) as process:
        assert process.wait(60) == 0  # before its input ends, with which it would end too
    kept = {path.name.split("-")[0] for path in tmp_path.rglob("*.nbc")}
    assert kept == {"component_loudness._to_end", "component_loudness._to_shifted"}


@pytest.mark.parametrize("name", ["to_end", ".to_loudness"])
def test_there_is_none_where_kernels_are_kept(name, monkeypatch):
    def started(*_, **__):
        raise AssertionError("a process was started")

    compile_kernel(HOME, name, np.dtype(np.float32))
    assert is_kept(HOME, name)
    monkeypatch.setattr(subprocess, "Popen", started)
    with compiled_ahead(HOME, [name], np.dtype(np.float32)):
        pass
