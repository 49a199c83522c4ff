"""What the chains from sound to modulation filters have in common."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, TypeVar

import torch
from torch import Tensor

from amt_stream.dsp.compose import Chain
from amt_stream.dsp.stages.modulation import ModulationFilterbank
from amt_stream.dsp.streaming import Outputs, Stage, Step

Arguments = Mapping[str, Any] | None
"""Arguments of a stage that replace those which a model gives it."""

Made = TypeVar("Made", bound=Stage)


def made(kind: Callable[..., Made], own: Arguments, **usual: Any) -> Made:
    """A stage with the `usual` arguments, and with `own` in place of these."""
    return kind(**{**usual, **(own or {})})


class AuditoryModel(Chain):
    """Named stages from sound (..., time) to modulation filters.

    Streamed, it gives one tensor (..., band, modulation, time); called directly, what its reference
    documents, and with `return_stages` also a dict of what the stages on the way gave. A stream
    gives no such dict: `register_forward_hook` on a stage shows each of its blocks.
    """

    step: Step[Tensor]

    _shown: ClassVar[dict[str, str]]
    """Key in that dict of each stage that is in it."""

    def __init__(
        self,
        fs: float,
        learnable: bool,
        return_stages: bool,
        dtype: torch.dtype,
        stages: dict[str, Stage],
    ) -> None:
        super().__init__(**stages)
        self.fs, self.learnable, self.return_stages = fs, learnable, return_stages
        self.to(dtype)

    @property
    def num_channels(self) -> int:
        """How many auditory bands there are."""
        return len(self.fc)

    @property
    def fc(self) -> Tensor:
        """Centers of the auditory bands in Hz (band,)."""
        raise NotImplementedError(f"{type(self).__name__} must define fc")

    def documented(self, y: Tensor) -> Outputs:
        """The streamed output of a whole sound in the form that the reference documents."""
        raise NotImplementedError(f"{type(self).__name__} must define documented(y)")

    def forward(self, x: Tensor) -> Outputs:
        """The documented output for a whole sound (..., time), from silence."""
        y, given = self.checked(x), {}
        for name, stage in self.stages().items():
            y = stage.whole_by(stage.hooked_step, y)
            if name in self._shown:
                given[self._shown[name]] = y
        return (self.documented(y), given) if self.return_stages else self.documented(y)

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, num_channels={self.num_channels}"


class ModulationModel(AuditoryModel):
    """A chain that ends in a `ModulationFilterbank`, after a stage of bands `fc`.

    Called directly it gives a list, one tensor (..., modulation, time) per band. Streamed, all
    bands have as many modulation filters; `mask` (band, modulation) says which there are, the
    others give 0.
    """

    modulation: ModulationFilterbank

    @property
    def fc(self) -> Tensor:
        return self.modulation.fc

    @property
    def mask(self) -> Tensor:
        """Which modulation filters each band has, (band, modulation)."""
        return self.modulation.mask

    @property
    def mfc(self) -> list[Tensor]:
        """Centers of the modulation filters of each band in Hz."""
        return self.modulation.mfc

    def documented(self, y: Tensor) -> list[Tensor]:
        return self.modulation.split(y)

    def distribute_gradients(self) -> None:
        """Nothing: modulation filters of equal centers share their weights as it is."""
