"""Compiles what tests ask for, a family of it: `python -m tests.dsp.kernels.compiling 0`, 1 or 2.

Each stage takes a step in both widths, with a gradient and without, and the meters of the family
read the demo sound: so their kernels are on the disk before workers need them at the same time, of
which each would compile its own.
"""

import contextlib
import io
import sys

import torch

from amt_stream.cli.command import run_command
from amt_stream.dsp.streaming import fields
from tests.dsp.contract.test_module_contract import CASES, LEARNERS, shape_of

FAMILIES = {  # about as long for each, with beginnings of names; what is in no other is in the last
    "moore2016,gm2002": ("Binaural", "DRNL", "EarFilter", "Excitation", "Monaural", "Moore2016"),
    "zwicker,bs1770,spl,third_octave": ("BS1770", "Core", "Glasberg", "Sound", "Third", "Zwicker"),
    "king2019": (),
}
METER = ["meter", "--source", "demo", "--fast", "--duration", "0.1", "--format", "csv", "--model"]


def stages_of(family):
    every = tuple(beginning for some in FAMILIES.values() for beginning in some)
    rest = [name for name in CASES if not name.startswith(every)]
    return [name for name in CASES if name.startswith(FAMILIES[family] or tuple(rest))]


def step(case, stage):
    x, state = case.input(stage), stage.initial_state(shape_of(case, stage))
    with torch.no_grad():
        stage.step(x, state)
    y, _ = stage.step(x.requires_grad_(), state)
    total = sum(v.sum() for v in fields(y) if v.is_floating_point())
    if total.requires_grad:
        total.backward()


def main(family):
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        run_command([*METER, family])
    for name in stages_of(family):
        for options in [{}, {"learnable": True}] if name in LEARNERS else [{}]:
            for dtype in (torch.float32, torch.float64):
                step(CASES[name], CASES[name].make(**options).to(dtype))


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(list(FAMILIES)[int(sys.argv[1])])
