"""A shorter way of blocks through a stream of a fused stage."""

from collections.abc import Mapping, Sequence
from itertools import chain
from operator import is_
from typing import Any

from torch import Tensor

from amt_stream.dsp.functional.compiler.private_torch import (
    autocast,
    forward_mode,
    trace,
    transform,
)
from amt_stream.dsp.streaming import Outputs, Stage, State


class Shortcut:
    """A stream of a `FusedStage` for blocks of one shape, without gradients.

    Checks at once all that `Stream` and `Fused` check one after the other, which takes longer than
    the kernels of a short model.
    """

    def __init__(
        self,
        fused: Any,
        model: Stage,
        pool: list[Any],
        state: State,
        buffers: Mapping[str, Any],
        hooks: Sequence[Any],
    ) -> None:
        self.fused, self.model, self.state, self.buffers = fused, model, state, buffers
        self.watchers = [*hooks, *fused.watchers]
        self.pool, self.token = pool, object()
        # With an end, so that a longer or shorter dict is not equal.
        self.values = [*map(dict.values, [*fused.buffers, buffers]), (self.token,)]
        *tensors, _ = self.tensors = list(chain.from_iterable(self.values))
        self.filled = [x for x in tensors if x.numel()]
        self.places = list(map(Tensor.data_ptr, self.filled))

    def __call__(self, x: Tensor, stage: object, buffers: object) -> Outputs:
        fused = self.fused
        if (
            x.dtype is not fused.dtype
            or not x.is_cpu
            or stage is not self.model
            or buffers is not self.buffers
            or any(self.watchers)
            or autocast()
            or forward_mode()
            or transform() is not None
            or trace() is not None
            or not all(map(is_, chain.from_iterable(self.values), self.tensors))
            or list(map(Tensor.data_ptr, self.filled)) != self.places
        ):
            return None
        try:
            workspace = self.pool.pop()
        except IndexError:  # another thread has it
            return None
        if workspace.owner is not self.token:
            workspace.remember(self.state)
            workspace.owner = self.token
        return fused.processed(x, workspace)
