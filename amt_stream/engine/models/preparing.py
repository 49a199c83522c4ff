"""Which form of `ReadyModel` runs a model; torch is imported only for those that need it."""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from amt_stream.dsp.compute_device import HERE, ComputeDevice
from amt_stream.engine.models.ready_model import ReadyModel
from amt_stream.native.compiled_model import CompiledModel

if TYPE_CHECKING:
    from amt_stream.dsp.streaming import Stage


def ready_model(
    model: "Stage | CompiledModel",
    fs: int,
    block_ms: float,
    channels: int = 2,
    device: ComputeDevice = HERE,
    batch: int = 1,
) -> ReadyModel:
    """Prepare a model to run, on `device` if it is a stage of torch.

    Raises as `refuse_no_model` and `ReadyModel` do.
    """
    refuse_no_model(model, fs)
    if isinstance(model, CompiledModel):
        from amt_stream.engine.models.ready_library import ReadyLibrary

        return ReadyLibrary(model, fs, block_ms, channels, batch)
    from amt_stream.engine.models.ready_stage import ReadyStage

    return ReadyStage(model, fs, block_ms, channels, device, batch)


def refuse_no_model(model: object, fs: float) -> None:
    """Raise TypeError unless `model` is a stage or a compiled model."""
    if isinstance(model, CompiledModel):
        return
    from amt_stream.dsp.streaming import Stage

    if not isinstance(model, Stage):
        raise TypeError(f"the model is {model!r}: give a Stage, such as Moore2016(fs={fs})")


@contextmanager
def working(models: Iterable[ReadyModel], owns_thread: bool) -> Iterator[None]:
    """What a thread needs in which all these models run; the argument is that of `ReadyModel`."""
    with ExitStack() as stack:
        for kind in {type(one) for one in models}:
            stack.enter_context(kind.working(owns_thread))
        yield
