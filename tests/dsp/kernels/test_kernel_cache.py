"""Compiled kernels on the disk never keep a program from its start, and never give another one."""

import hashlib
import importlib.util
import os
import pickle
import re
import subprocess
import sys

import numpy as np
import pytest
from numba import config, types

from amt_stream.dsp.functional.compiler import kernel_cache
from amt_stream.dsp.functional.compiler.private_numba import code_of
from tests.cli.conftest import COMPILES

SOURCE = (
    "from amt_stream.dsp.functional.compiler.kernel_cache import cached_njit\n"
    "@cached_njit()\n"
    "def twice(x):\n"
    "    return 2 * x\n"
)


@pytest.fixture
def load(tmp_path, monkeypatch):
    """The kernel as a program that starts finds it, and the folder where it is kept."""
    # In the environment as well: numba reads it anew once any of its variables has changed.
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(kernel_cache, "_said", set())
    path = tmp_path / "doubling.py"
    path.write_text(SOURCE)

    def start():
        spec = importlib.util.spec_from_file_location("doubling", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.twice

    return start


def kept(tmp_path, ending):
    return list((tmp_path / "cache").rglob(f"doubling*{ending}"))


def test_a_kernel_is_kept(load, tmp_path):
    assert load()(21) == 42
    again = load()
    assert again(21) == 42
    assert (len(again.stats.cache_hits), len(again.stats.cache_misses)) == (1, 0)
    assert len(kept(tmp_path, ".nbc")) == 1


POWERS = """
import ast, sys
import numpy as np
from numba.core.codegen import CPUCodeLibrary
from amt_stream.dsp.functional.compiler.kernel_cache import cached_njit

@cached_njit()
def powers(base):
    found = np.empty(3)
    for k in range(3):
        found[k] = base**k
    return found

optimize, compiled = CPUCodeLibrary._optimize_final_module, []
CPUCodeLibrary._optimize_final_module = lambda self: (compiled.append(self), optimize(self))
for base in sys.argv[1:]:
    found = powers(ast.literal_eval(base)).tolist()
    hits = sum(powers.stats.cache_hits.values())
    print(found, hits, len(compiled), "scipy.linalg" in sys.modules)
"""


def test_a_kept_kernel_is_read_without_what_the_compiler_needs(tmp_path):
    path = tmp_path / "powers.py"
    path.write_text(POWERS)

    def run(*bases):
        done = subprocess.run(
            [sys.executable, str(path), *bases],
            check=True,
            capture_output=True,
            text=True,
            env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")},
        )
        return done.stdout.splitlines()

    (first,) = run("2")
    assert first.startswith("[1.0, 2.0, 4.0] 0 ")
    assert first.endswith(" True")
    again, other = run("2", "0.5")
    assert again == "[1.0, 2.0, 4.0] 1 0 False"  # nothing at all is compiled
    assert other.startswith("[1.0, 0.5, 0.25] 1 ")
    assert other.endswith(" True")
    for file in (tmp_path / "cache").rglob("numba_runtime*"):
        file.write_bytes(file.read_bytes()[:-20])
    assert run("2") == ["[1.0, 2.0, 4.0] 1 1 False"]  # what counts references, anew
    assert run("2") == ["[1.0, 2.0, 4.0] 1 0 False"]


@pytest.mark.cases(2)
@pytest.mark.parametrize("ending", [".nbi", ".nbc"])
@pytest.mark.parametrize("at", [0, 40, -20, None])
def test_a_damaged_file_is_compiled_anew_and_told_once(load, tmp_path, caplog, ending, at):
    load()(21)
    (path,) = kept(tmp_path, ending)
    content = bytearray(path.read_bytes())
    if at is None:
        content = content[: len(content) // 2]
    else:
        content[at] ^= 0x10
    path.write_bytes(content)
    damaged = load()
    assert (damaged(21), damaged(1.5)) == (42, 3.0)
    (said,) = caplog.messages
    assert said == f"a compiled kernel is damaged and is recompiled: {path}"
    mended = load()
    assert mended(21) == 42
    assert len(mended.stats.cache_hits) == 1


@pytest.mark.parametrize("ending", [".nbi", ".nbc"])
def test_a_file_that_names_a_removed_class_is_replaced_in_silence(
    load, tmp_path, caplog, monkeypatch, ending
):
    load()(21)
    (path,) = kept(tmp_path, ending)
    removed = type("PowerState", (), {"__module__": kernel_cache.__name__})
    monkeypatch.setattr(kernel_cache, "PowerState", removed, raising=False)
    content = pickle.dumps(removed())
    path.write_bytes(hashlib.sha256(content).digest() + content)
    monkeypatch.delattr(kernel_cache, "PowerState")
    stale = load()
    assert (stale(21), len(stale.stats.cache_hits)) == (42, 0)
    mended = load()
    assert (mended(21), len(mended.stats.cache_hits)) == (42, 1)
    assert not caplog.messages


def test_a_kernel_for_something_else_is_not_taken(load, tmp_path):
    """Two processes that wrote at once have mixed up their files."""
    first = load()
    assert (first(21), first(1.5)) == (42, 3.0)
    one, other = sorted(kept(tmp_path, ".nbc"))
    content = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(content)
    again = load()
    assert (again(21), again(1.5)) == (42, 3.0)
    assert not again.stats.cache_hits


# Of a process in which neither folder was known when it began.
ELSEWHERE = "import sys, numba; sys.path.insert(0, sys.argv[1]); numba.config.reload_config()\n"


def test_a_kernel_that_calls_another_is_compiled_anew_with_it(forks, load, tmp_path):
    """Machine code holds what it calls: that of another file, which has changed."""
    (tmp_path / "doubling.py").write_text(
        "from amt_stream.dsp.functional.compiler.kernel_cache import cached_njit\n"
        "from factor_beside import factor\n"
        "@cached_njit()\n"
        "def twice(x):\n"
        "    return factor() * x\n"
    )
    for by in (2, 30):
        (tmp_path / "factor_beside.py").write_text(
            "from amt_stream.dsp.functional.compiler.kernel_cache import cached_njit\n"
            "@cached_njit()\n"
            f"def factor():\n    return {by}\n"
        )
        program = (
            f"{ELSEWHERE}sys.dont_write_bytecode = True\n"
            "from doubling import twice; print(twice(21), len(twice.stats.cache_hits))"
        )
        elsewhere = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
        for hits in (0, 1):
            done = forks.run(program, tmp_path, options=["code"], environment=elsewhere)
            assert done.stdout.decode() == f"{21 * by} {hits}\n", done.stderr.decode()


SORTING = """
import numpy as np
from amt_stream.dsp.functional.compiler.kernel_cache import cached_njit

@cached_njit()
def twice(values):
    return 2 * np.sort(values)[0]
"""


def test_a_kernel_calls_its_own_copy_of_a_function(load, tmp_path):
    """Copies differ in the last bit: none is taken from another kernel of the process."""
    (tmp_path / "doubling.py").write_text(SORTING)
    kernel = load()
    _, code = code_of(kernel, (types.float64[::1],))
    assert re.search(r"define internal .*sort", code)
    assert "define linkonce_odr" not in code
    assert kernel(np.array([3.0, 1.0])) == 2.0


def test_where_none_can_be_kept_it_is_compiled_each_time(load, caplog):
    space = {}
    exec(compile(SOURCE, "<nowhere>", "exec"), space)
    assert space["twice"](21) == 42
    (said,) = caplog.messages
    assert said.startswith("compiled kernels cannot be cached: cannot cache function")


@pytest.mark.skipif(os.name == "nt", reason="limits of POSIX")
def test_a_full_disk_is_told_once(forks, load, tmp_path):
    """No file may grow, as on a disk without room."""
    load()
    program = (
        f"{ELSEWHERE}import resource\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"
        "from doubling import twice\n"
        "print(twice(21), twice(1.5))\n"
    )
    elsewhere = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "full")}
    done = forks.run(program, tmp_path, options=["code"], environment=elsewhere)
    assert done.stdout == b"42 3.0\n", done.stderr
    said = COMPILES.sub("", done.stderr.decode())  # on a slow computer also that it compiles
    # What a command forks says whose it is.
    assert said.removeprefix("amt-stream: ") == (
        "compiled kernels cannot be cached: [Errno 27] File too large\n"
    )


TURNS = """
import time
from pathlib import Path
from amt_stream.core import compiling
from amt_stream.dsp.functional.compiler.private_numba import OwnCodeCompiler

compile_extra, sleep = OwnCodeCompiler.compile_extra, time.sleep

def compile_when_told(self, function):
    assert Path("go").exists() or not Path("compiles").exists()
    Path("compiles").touch()
    while not Path("go").exists():
        sleep(0.01)
    return compile_extra(self, function)

def wait(seconds):
    Path("waits").touch()
    sleep(seconds)

OwnCodeCompiler.compile_extra, compiling.time.sleep = compile_when_told, wait
from doubling import twice
print(twice(21), len(twice.stats.cache_misses))
"""


@pytest.mark.skipif(os.name == "nt", reason="locks of POSIX")
@pytest.mark.parametrize(("killed", "misses"), [(False, 0), (True, 1)])
def test_two_processes_compile_a_kernel_once(forks, load, tmp_path, killed, misses):
    load()
    settings = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    program = {"environment": settings, "folder": tmp_path, "options": ["code"]}

    def until(name, process):
        while not (tmp_path / name).exists():
            assert process.poll() is None, process.communicate()

    with forks.begin(ELSEWHERE + TURNS, tmp_path, **program) as first:
        until("compiles", first)
        with forks.begin(ELSEWHERE + TURNS, tmp_path, **program) as second:
            until("waits", second)
            if killed:
                first.kill()
            (tmp_path / "go").touch()
            out, errors = second.communicate()
            assert (out, COMPILES.sub("", errors)) == (f"42 {misses}\n", "")
        assert first.communicate()[0] == ("" if killed else "42 1\n")
