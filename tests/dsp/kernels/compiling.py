"""Compiles what tests ask for, and the tests themselves: `python -m tests.dsp.kernels.compiling`.

Each stage takes a step in both widths, with a gradient and without, and meters read the demo sound:
so their kernels are on the disk before workers need them at the same time, of which each would
compile its own. Two processes share the work, by a file in a folder for each part that one has
taken; `last` takes the stages in reverse order, since neighbors have kernels in common. A third one
collects the tests. All are forks of this one, so that what they import is imported once.
"""

import contextlib
import gc
import io
import multiprocessing
import os
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
import torch

from amt_stream.cli.command import run_command
from amt_stream.dsp.functional.compiler import ahead
from amt_stream.dsp.streaming import fields
from tests.dsp.contract.test_module_contract import CASES, LEARNERS, shape_of

ORDERS = {"first": sorted, "last": lambda names: sorted(names, reverse=True)}
MODELS = ["moore2016,gm2002", "zwicker,bs1770,spl,third_octave", "king2019", "ecma"]
# As long as `ecma` takes to its first fluctuation strength.
METER = ["meter", "--source", "demo", "--fast", "--duration", "0.6", "--format", "csv", "--model"]


def taken(folder: Path, parts: Iterable[str]) -> Iterator[str]:
    """Those of `parts` that no other process has taken, one by one."""
    for part in parts:
        with contextlib.suppress(FileExistsError):
            (folder / part).touch(exist_ok=False)
            yield part


def step(case, stage):
    x, state = case.input(stage), stage.initial_state(shape_of(case, stage))
    with torch.no_grad():
        stage.step(x, state)
    y, _ = stage.step(x.requires_grad_(), state)
    total = sum(v.sum() for v in fields(y) if v.is_floating_point())
    if total.requires_grad:
        total.backward()


def main(folder, order):
    for name in taken(folder, ORDERS[order](CASES)):
        for options in [{}, {"learnable": True}] if name in LEARNERS else [{}]:
            for dtype in (torch.float32, torch.float64):
                step(CASES[name], CASES[name].make(**options).to(dtype))
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        for models in taken(folder, ORDERS[order](MODELS)):
            run_command([*METER, models])


def compile_all(folder, order):
    torch.set_num_threads(1)
    gc.disable()  # looking for garbage in all that a compiler makes takes a sixth of its time
    ahead.is_kept = lambda home, name: True  # so that no model starts a process that compiles too
    main(folder, order)


def collect_tests():
    pytest.main(["--collect-only", "-q", "-p", "no:xdist"])


if __name__ == "__main__":
    kind = multiprocessing.get_context("fork" if hasattr(os, "fork") else "spawn")
    with tempfile.TemporaryDirectory() as name:
        called = [(compile_all, (Path(name), order)) for order in ORDERS] + [(collect_tests, ())]
        processes = [kind.Process(target=function, args=given) for function, given in called]
        for process in processes:
            process.start()
        for process in processes:
            process.join()
