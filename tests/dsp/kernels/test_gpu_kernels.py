"""Kernels for a GPU: equal to the plain form, and compiled for three kinds of GPU."""

import json
import os
import platform
import re
import subprocess
import sys
from pathlib import Path

import pytest

from amt_stream.dsp.functional.compiler import gpu

ROOT = Path(__file__).parents[3]
KERNELS = sorted(name for name, one in vars(gpu).items() if hasattr(one, "register_fake"))

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64",
    reason="Triton is a requirement for tests on Linux alone; there it may not be missing",
)


def told(folder, *form, **environment):
    """What the program beside this file says of all kernels."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.dsp.kernels.without_gpu", *form],
        check=False,
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "TRITON_CACHE_DIR": str(folder), **environment},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def interpreted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("triton")
    return told(folder, "interpreted", "float64", TRITON_INTERPRET="1")


@pytest.mark.parametrize("name", KERNELS)
def test_interpreted_they_give_what_the_plain_form_gives(interpreted, name):
    (distance,) = interpreted[name]
    assert distance < 1e-12


@pytest.mark.soak
def test_interpreted_in_float32_they_give_nearly_that(tmp_path):
    distances = told(tmp_path, "interpreted", "float32", TRITON_INTERPRET="1")
    for name in KERNELS:
        assert max(distances[name]) < 1e-5, name


def test_a_graph_with_them_gives_what_the_model_gives(interpreted):
    assert interpreted["captured"] < 1e-6


@pytest.mark.soak
def test_they_are_compiled_and_spill_nothing(tmp_path):
    """For consumers' GPUs of 2018, a data center's, and (sm_120) consumers' of 2025."""
    codes = told(tmp_path, "compiled")
    assert sorted(codes) == KERNELS
    for name, code in codes.items():
        assert len(code) >= 4, name
        for said in code:
            assert re.search(r"STACK:0 .*LOCAL:0 ", said), f"{name}: {said}"


@pytest.mark.quick
def test_on_the_cpu_they_are_not_asked():
    assert {"cuda"} == gpu.DEVICES
