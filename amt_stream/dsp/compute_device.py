"""Where the models of an engine run."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from amt_stream.dsp.cuda_stream import HostedStream
from amt_stream.dsp.functional.gpu import refuse_short_products
from amt_stream.dsp.streaming import Stage, Stream

CPU = torch.device("cpu")


@dataclass(frozen=True)
class ComputeDevice:
    """The CPU, or a CUDA device.

    note: in a sentence, why it is the CPU where CUDA was asked for; else ""
    """

    device: torch.device = CPU
    note: str = ""

    @property
    def on_cpu(self) -> bool:
        return self.device.type == "cpu"

    def take(self, model: Stage) -> None:
        """Move `model` here. Raises ValueError for one that is elsewhere, and not on the CPU."""
        if model.device == self.device:
            return
        if model.device.type != "cpu":
            remedy = f"model.cpu(), or device={str(model.device)!r}"
            if model.device.type == "meta":
                remedy = "one that was not made on meta, where nothing has numbers"
            raise ValueError(
                f"{type(model).__name__} is on the device {model.device}, and the engine on "
                f"{self.device}: give {remedy}"
            )
        model.to(self.device)

    def stream(self, model: Stage, shape: Sequence[int]) -> Stream:
        """A stream of a model that is here, for blocks of the CPU."""
        return Stream(model, shape) if self.on_cpu else HostedStream(model, shape)


HERE = ComputeDevice()


def compute_device(device: str | torch.device) -> ComputeDevice:
    """Where `device` says, or the CPU where there is no such CUDA device.

    Raises ValueError for what is neither, and for CUDA while products are not of full precision.
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
    """Why there is no CUDA device of this number, or ""."""
    if torch.version.cuda is None:
        return "this PyTorch is built without CUDA"
    count = torch.cuda.device_count()
    if index >= count:
        return f"there is no CUDA device {index}" if count else "there is no CUDA device"
    return ""


def device_words(device: torch.device) -> str:
    """A device by its kind, and the name of a GPU."""
    if device.type != "cuda":
        return device.type
    return f"{device} ({torch.cuda.get_device_name(device)})"
