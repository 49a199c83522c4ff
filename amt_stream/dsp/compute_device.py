"""The compute device of an engine's models."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from amt_stream.core.importing import has_torch

# Torch is slow to import, and models that are compiled ahead need none of it.
if TYPE_CHECKING:
    import torch

    from amt_stream.dsp.stream import Stream
    from amt_stream.dsp.streaming import Stage


@dataclass(frozen=True)
class ComputeDevice:
    """The CPU or a CUDA device.

    name: "cpu", or as in "cuda:0"
    note: why the CPU is used although CUDA was requested, as a sentence; else ""
    """

    name: str = "cpu"
    note: str = ""

    @property
    def on_cpu(self) -> bool:
        return self.name == "cpu"

    def take(self, model: "Stage") -> None:
        """Move `model` here, unless a stage of it computes on the CPU anyway.

        Raises ValueError if it is neither here nor on the CPU.
        """
        there = str(model.device)
        if there == self.name or (there == "cpu" and computes_on_host(model)):
            return
        if there != "cpu":
            remedy = f"model.cpu(), or device={there!r}"
            if there == "meta":
                remedy = "one that was not made on meta, which holds no values"
            raise ValueError(
                f"{type(model).__name__} is on the device {there}, and the engine on "
                f"{self.name}: give {remedy}"
            )
        model.to(self.name)

    def stream(self, model: "Stage", shape: Sequence[int]) -> "Stream":
        """A stream of a model on this device, taking and giving CPU tensors."""
        from amt_stream.dsp.cuda_stream import HostedStream
        from amt_stream.dsp.stream import Stream

        return Stream(model, shape) if model.device.type == "cpu" else HostedStream(model, shape)


HERE = ComputeDevice()


def compute_device(device: "str | torch.device") -> ComputeDevice:
    """The requested device, or the CPU if that CUDA device does not exist.

    Raises ValueError for any other device, and for CUDA while matrix products have reduced
    precision.
    """
    name = str(device)
    if not re.fullmatch(r"cpu|cuda(:\d+)?", name):
        raise ValueError(f"device is {name!r}: give 'cpu' or 'cuda'")
    if name == "cpu":
        return HERE
    index = int(name.partition(":")[2] or 0)
    if why := _missing(index):
        return ComputeDevice(note=f"{why}: the models run on the CPU, though {name} was asked for")
    from amt_stream.dsp.functional.compiler.gpu import refuse_short_products

    refuse_short_products()
    return ComputeDevice(f"cuda:{index}")


def _missing(index: int) -> str:
    """Why CUDA device `index` is not available, or ""."""
    if not has_torch():
        return "PyTorch is not installed"
    import torch

    if torch.version.cuda is None:
        return "this PyTorch is built without CUDA"
    count = torch.cuda.device_count()
    if index >= count:
        return f"there is no CUDA device {index}" if count else "there is no CUDA device"
    return ""


def computes_on_host(model: "Stage") -> bool:
    """Whether one of its stages computes on the CPU on whatever device it is."""
    return any(getattr(member, "on_host", False) for member in model.modules())


def device_words(name: str) -> str:
    """The device of this name, as torch writes it, with the name of a GPU."""
    if not name.startswith("cuda"):
        return name
    import torch

    return f"{name} ({torch.cuda.get_device_name(name)})"
