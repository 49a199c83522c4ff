"""The compute device of an engine's models."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from amt_stream.dsp.cuda_stream import HostedStream
from amt_stream.dsp.functional.compiler.gpu import refuse_short_products
from amt_stream.dsp.stream import Stream
from amt_stream.dsp.streaming import Stage

CPU = torch.device("cpu")


@dataclass(frozen=True)
class ComputeDevice:
    """The CPU or a CUDA device.

    note: why the CPU is used although CUDA was requested, as a sentence; else ""
    """

    device: torch.device = CPU
    note: str = ""

    @property
    def on_cpu(self) -> bool:
        return self.device.type == "cpu"

    def take(self, model: Stage) -> None:
        """Move `model` here; raises ValueError if it is neither here nor on the CPU."""
        if model.device == self.device:
            return
        if model.device.type != "cpu":
            remedy = f"model.cpu(), or device={str(model.device)!r}"
            if model.device.type == "meta":
                remedy = "one that was not made on meta, which holds no values"
            raise ValueError(
                f"{type(model).__name__} is on the device {model.device}, and the engine on "
                f"{self.device}: give {remedy}"
            )
        model.to(self.device)

    def stream(self, model: Stage, shape: Sequence[int]) -> Stream:
        """A stream of a model on this device, taking and giving CPU tensors."""
        return Stream(model, shape) if self.on_cpu else HostedStream(model, shape)


HERE = ComputeDevice()


def compute_device(device: str | torch.device) -> ComputeDevice:
    """The requested device, or the CPU if that CUDA device does not exist.

    Raises ValueError for any other device, and for CUDA while matrix products have reduced
    precision.
    """
    name = str(device)
    if not re.fullmatch(r"cpu|cuda(:\d+)?", name):
        raise ValueError(f"device is {name!r}: give 'cpu' or 'cuda'")
    if name == "cpu":
        return HERE
    why = _missing(torch.device(name).index or 0)
    if why:
        return ComputeDevice(note=f"{why}: the models run on the CPU, though {name} was asked for")
    refuse_short_products()
    return ComputeDevice(torch.device("cuda", torch.device(name).index or 0))


def _missing(index: int) -> str:
    """Why CUDA device `index` is not available, or ""."""
    if torch.version.cuda is None:
        return "this PyTorch is built without CUDA"
    count = torch.cuda.device_count()
    if index >= count:
        return f"there is no CUDA device {index}" if count else "there is no CUDA device"
    return ""


def device_words(device: torch.device) -> str:
    """The device type, with the name of a GPU."""
    if device.type != "cuda":
        return device.type
    return f"{device} ({torch.cuda.get_device_name(device)})"
