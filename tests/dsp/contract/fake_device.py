"""What a stage must not do on a GPU, found without one: run as a program, it prints its remarks.

`python -m tests.dsp.contract.fake_device NAME ...` gives a JSON object, {name: [remarks]}, of these
stages, defects and budgets. It is a program of its own, as torch knows one made-up device a process
and never forgets it. Tensors there have a shape and a device and no numbers, so that whatever asks
for one fails: the captured graph of a GPU would silently keep the number of the block in which it
was captured.
"""

import json
import os
import sys
import traceback
from pathlib import Path

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

import amt_stream as amt
from amt_stream import Stage, Stream
from amt_stream.dsp.functional.compiler import gpu
from amt_stream.dsp.streaming import fields, without
from tests.dsp.contract.test_module_contract import CASES, LEARNERS

GPU = "gpu"
FEW = 2
ROOT = Path(__file__).parents[3]


class Watch(TorchDispatchMode):
    """Notes every operation that no device should be given, or that has to do with another."""

    def __init__(self):
        super().__init__()
        self.remarks = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        if any(v.device.type != GPU for v in tensors((*args, out, *(kwargs or {}).values()))):
            self.remarks.append(f"{func} on the host{place(traceback.extract_stack())}")
        if func is torch.ops.aten.convolution.default:  # of which cuDNN rounds the factors
            self.remarks.append(f"a convolution{place(traceback.extract_stack())}")
        return out


def tensors(given):
    """The tensors among what an operation was given, or gave."""
    for v in given:
        if isinstance(v, torch.Tensor):
            yield v
        elif isinstance(v, list | tuple):
            yield from tensors(v)


def place(stack):
    """Where in this repository a stack of calls ends, in words."""
    own = [f for f in stack if f.filename.startswith(str(ROOT)) and "fake_device" not in f.filename]
    return f" ({Path(own[-1].filename).name}:{own[-1].lineno})" if own else ""


def moved(mode, module):
    """`module` with its tensors on the made-up device."""
    for part in module.modules():
        for name, buffer in part._buffers.items():
            if buffer is not None:
                part._buffers[name] = mode.from_tensor(buffer, static_shapes=True).to(GPU)
        for name, weight in part._parameters.items():
            if weight is not None:
                there = mode.from_tensor(weight, static_shapes=True).detach().to(GPU)
                part._parameters[name] = nn.Parameter(there)
    return module


def remarks(stage, x, learner=None):
    """What `stage` does, as a stream and in `reset`, and `learner` with gradients, on a device."""
    shape = without(x.shape, stage.time_dim)
    live, learner = Stream(stage, shape), Stream(learner or stage, shape)
    mode = FakeTensorMode()
    with mode:
        for stream in (live, learner):
            moved(mode, stream)
        x = mode.from_tensor(x, static_shapes=True).to(GPU)
        rows = torch.ones(shape[0], dtype=torch.bool, device=GPU)
        with Watch() as watch:
            try:
                with torch.no_grad():
                    outputs = fields(live(x))
                    live.reset()
                    live.reset(rows)
                y, state = learner.stage.step(x.requires_grad_(), learner.state)
                total = sum(v.sum() for v in fields(y) if v.is_floating_point())
                if total.requires_grad:
                    total.backward()
            except Exception as error:  # whatever it is, it is the remark
                told = str(error).split("\n")[0].split(". ")[0]
                tail = place(traceback.extract_tb(error.__traceback__))
                return [f"{type(error).__name__}: {told}{tail}", *watch.remarks]
            for v in (*outputs, *fields(y), *state.values(), *live.state.values()):
                if not isinstance(v, FakeTensor) or v.device.type != GPU:
                    watch.remarks.append(f"gives a tensor on {v.device}")
    return watch.remarks


class Defect(Stage):
    """A stage of one axis that does in its step what no stage may; subclasses say what."""

    binding = ()

    def __init__(self):
        super().__init__()
        self.register_table("table", torch.arange(3.0).numpy())
        self.on_host = (torch.ones(3),)  # a tuple, which no `.to()` moves

    def initial_state(self, shape):
        return {"last": self.state_like("last", shape)}

    def step(self, x, state):
        return self.wrong(x), {"last": x[..., -1]}


DEFECTS = {
    "item": lambda stage, x: x * x.amax().item(),
    "float of a value": lambda stage, x: x * float(stage.table[1]),
    "branch on a value": lambda stage, x: x if x.sum() > 0 else -x,
    "table on the host": lambda stage, x: x + stage.on_host[0][0],
    "host table by rows": lambda stage, x: x * stage.on_host[0][:1],
    "number from the host": lambda stage, x: x * torch.tensor(3.0, device=x.device),
    "index by a list": lambda stage, x: x[..., [0, 0, 1]],
    "index by a mask": lambda stage, x: x[x > 0],
    "places of what is not 0": lambda stage, x: x.nonzero(),
    "numpy": lambda stage, x: x + torch.from_numpy(x.detach().numpy()),
    "missing device": lambda stage, x: x + torch.arange(x.shape[-1]),
    "to the host": lambda stage, x: x.cpu().to(x.device),
    "tolist": lambda stage, x: x * sum(stage.table.tolist()),
    "convolution": lambda stage, x: nn.functional.conv1d(x[:, None], stage.table.expand(1, 1, 3)),
    "output on the host": lambda stage, x: torch.zeros(x.shape),
}


def of_defect(name):
    """Remarks on one of `DEFECTS`."""
    return remarks(type("Seeded", (Defect,), {"wrong": DEFECTS[name]})(), torch.ones(2, 8))


def of_stage(name):
    """Remarks on a stage, and where it can learn, on one that does."""
    case = CASES[name]
    stage = case.make().float()
    learner = case.make(learnable=True).float() if name in LEARNERS else None
    x = case.input(stage)
    # Few samples, and one line of a pattern in each band: what a loop does once, it does always.
    for part in [*stage.modules(), *(learner or stage).modules()]:
        if isinstance(part, amt.ZwickerLoudness):
            part.segments = (1,) * len(part.segments)
    most = stage.block_size * max(1, FEW // stage.block_size)
    few = x.narrow(stage.time_dim, 0, min(most, x.shape[stage.time_dim]))
    return remarks(stage, few, learner)


class Launches(TorchDispatchMode):
    """Counts what a device is given to do: all but what only looks at memory, or takes some."""

    def __init__(self):
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        nothing = func.is_view or func.namespace == "prim" or "empty" in func.__name__
        self.count += not nothing and "view" not in func.__name__
        return func(*args, **(kwargs or {}))


BUDGETS = {
    "launches of Moore2016": (lambda: amt.Moore2016(48000), (1, 2), 100),
    "launches of ZwickerTimeVarying": (lambda: amt.ZwickerTimeVarying(48000), (1,), 80),
    "launches of Dau1997": (lambda: amt.Dau1997(48000), (1,), 40),
    "launches of King2019": (lambda: amt.King2019(48000), (1,), 40),
    "launches of BS1770": (lambda: amt.BS1770(48000, 2), (1, 2), 40),
    "launches of SoundLevel": (lambda: amt.SoundLevel(48000), (1, 2), 80),
    "launches of Octaves": (lambda: amt.Octaves(48000), (1, 2), 100),
    "launches of ThirdOctaves": (lambda: amt.ThirdOctaves(48000), (1, 2), 100),
    "launches for 64 listeners": (lambda: amt.Moore2016(48000), (64, 2), 100),
}
"""A model, the shape of its input, and how many launches a block of 10 ms may take."""


def of_budget(name):
    """A remark where a block takes more launches than it may."""
    make, shape, most = BUDGETS[name]
    live, mode = Stream(make(), shape), FakeTensorMode()
    with mode, torch.no_grad():
        moved(mode, live)
        x = torch.empty(*shape, 480, device=GPU)
        with Launches() as launches:
            live(x)
    return [f"{launches.count} launches, at most {most}"] if launches.count > most else []


def main(names):
    """Remarks on each of these stages, defects and budgets."""
    found = {}
    for name in names:
        of = of_defect if name in DEFECTS else of_budget if name in BUDGETS else of_stage
        found[name] = of(name)
    return found


if __name__ == "__main__":
    _setup_privateuseone_for_python_backend(GPU)
    gpu.DEVICES.add(GPU)
    json.dump(main(sys.argv[1:]), sys.stdout)
    sys.stdout.flush()
    # A thread of gradients on the made-up device would be waited for by nobody, and end it badly.
    os._exit(0)
