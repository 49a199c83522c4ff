"""Base classes of the models from sound to modulation filters."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, TypeVar, cast

import torch
from torch import Tensor

from amt_stream.dsp.compose import Chain
from amt_stream.dsp.stages.modulation import ModulationFilterbank
from amt_stream.dsp.streaming import Outputs, Stage, Step

Arguments = Mapping[str, Any] | None
"""Arguments that override a model's arguments for one of its stages."""

Built = TypeVar("Built", bound=Stage)


def make_stage(kind: Callable[..., Built], overrides: Arguments, **defaults: Any) -> Built:
    """A stage made with `defaults`, some replaced by `overrides`."""
    return kind(**{**defaults, **(overrides or {})})


class AuditoryModel(Chain):
    """Named stages from sound (..., time) to modulation filters.

    A stream gives one tensor (..., band, modulation, time). Called directly, the model gives its
    documented output, and with `return_stages` also a dict of intermediate outputs. In a stream,
    use `register_forward_hook` on a stage to see its blocks.
    """

    step: Step[Tensor]

    _shown: ClassVar[dict[str, str]]
    """Stages in that dict, with their keys."""
    _centered: ClassVar[str]
    """The stage whose center frequencies are those of the model."""

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
        """Number of auditory bands."""
        return len(self.fc)

    @property
    def fc(self) -> Tensor:
        """Center frequencies of the auditory bands in Hz (band,)."""
        return cast(Tensor, getattr(self, self._centered).fc)

    def documented(self, y: Tensor) -> Outputs:
        """Convert the streamed output of a whole sound to the documented form."""
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
    """A chain that ends in a `ModulationFilterbank` for bands `fc`.

    Called directly it gives a list with a tensor (..., modulation, time) per band. In a stream, all
    bands have the same number of modulation filters; those missing in `mask` (band, modulation)
    give 0.
    """

    _centered = "modulation"

    modulation: ModulationFilterbank

    @property
    def mask(self) -> Tensor:
        """Which modulation filters each band has, (band, modulation)."""
        return self.modulation.mask

    @property
    def mfc(self) -> list[Tensor]:
        """Center frequencies of the modulation filters of each band in Hz."""
        return self.modulation.mfc

    def documented(self, y: Tensor) -> list[Tensor]:
        return self.modulation.split(y)

    def distribute_gradients(self) -> None:
        """Does nothing: equal modulation filters share their weights."""
