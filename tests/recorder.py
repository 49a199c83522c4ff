"""A device that is the host itself and records what a graph of it would do."""

from contextlib import nullcontext

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from amt_stream.dsp.compute_device import ComputeDevice
from amt_stream.dsp.cuda_stream import HostedStream


class Tape(TorchDispatchMode):
    """Notes every operation with the memory that it read and wrote."""

    def __init__(self):
        super().__init__()
        self.done = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func is torch.ops.aten._local_scalar_dense.default:
            raise RuntimeError("operation not permitted when stream is capturing")
        out = func(*args, **(kwargs or {}))
        self.done.append((func, args, kwargs or {}, out))
        return out


class Recorder:
    """What is captured is done again operation by operation in the same memory, as graphs do.

    launches: how many times something was given to it, and how many of these were replays
    """

    def __init__(self):
        self.launches = self.replays = 0

    def working(self):
        self.launches += 1
        return nullcontext()

    def memory(self, shape, dtype):
        return torch.zeros(shape, dtype=dtype)

    def captured(self, work):
        with Tape() as tape:
            work()

        def replay():
            self.replays += 1
            for func, args, kwargs, out in tape.done:
                again = func(*args, **kwargs)
                for old, new in zip(tree_leaves(out), tree_leaves(again), strict=True):
                    if isinstance(old, torch.Tensor) and old.data_ptr() != new.data_ptr():
                        old.copy_(new)

        return replay

    def wait(self):
        """All is done."""


class Recorded(ComputeDevice):
    """Where an engine's models run as they do on a GPU, on the host."""

    on_cpu = False

    def __init__(self):
        super().__init__()
        object.__setattr__(self, "recorder", Recorder())

    def stream(self, model, shape):
        return HostedStream(model, shape, self.recorder)
