"""A training loss on the loudness of a sound."""

from typing import Literal

import torch
from torch import Tensor, nn

from amt_stream.dsp.models import Moore2016
from amt_stream.dsp.streaming import Stage

Of = Literal["stl", "ltl", "specific_loudness"]
Unit = Literal["sone", "doublings"]
Reduction = Literal["mean", "sum", "none"]

FLOOR = 1e-3
"""Loudness in sone, or sone/Cam, below which all values are equal with unit="doublings"."""


class LoudnessLoss(nn.Module):
    """Squared error in loudness of a sound (batch, 2, time) in pascal.

    fs: sampling rate in whole hertz
    of: "stl" or "ltl", short-term or long-term loudness (batch, frame) in sone, or
        "specific_loudness", short-term (batch, 2, frame, 150) in sone/Cam; a frame per ms
    unit: "sone", or "doublings": log2 of it, so that 1 is twice as loud, about 10 phon
    reduction: "mean" or "sum" of the squares, or "none", all of them in the shape of the loudness
    skip_s: seconds to ignore at the start; long-term loudness rises for about 1 s
    model: replaces `Moore2016`; its output must have the attribute `of`

    Call it with a sound and one of

    target: the wanted loudness in sone, a number or a tensor that broadcasts to the loudness
    reference: a sound of the same shape with the wanted loudness

    Raises ValueError for an unknown word, a sound with no frame after `skip_s`, a target or
    reference of the wrong shape, and unless exactly one of target and reference is given.

    >>> loss = LoudnessLoss(fs=32000, of="stl")
    >>> loss(torch.zeros(1, 2, 3200), target=2.0)
    tensor(4.)
    """

    def __init__(
        self,
        fs: int,
        of: Of = "ltl",
        unit: Unit = "sone",
        reduction: Reduction = "mean",
        skip_s: float = 0.0,
        model: Stage | None = None,
    ) -> None:
        super().__init__()
        for name, word, known in (
            ("of", of, ("stl", "ltl", "specific_loudness")),
            ("unit", unit, ("sone", "doublings")),
            ("reduction", reduction, ("mean", "sum", "none")),
        ):
            if word not in known:
                raise ValueError(f"LoudnessLoss: {name} is {word!r}: choose one of {list(known)}")
        if not skip_s >= 0:
            raise ValueError(f"LoudnessLoss: skip_s is {skip_s}: give seconds from 0 up")
        self.fs, self.skip_s = fs, skip_s
        self.of, self.unit, self.reduction = of, unit, reduction
        wanted = of == "specific_loudness"
        self.model: Stage = model or Moore2016(fs, specific_loudness=wanted)

    def loudness(self, sound: Tensor) -> Tensor:
        """The loudness that `of` names, after `skip_s`."""
        found = getattr(self.model(sound), self.of, None)
        if found is None:
            raise ValueError(
                f"LoudnessLoss: {type(self.model).__name__} gives no {self.of}: give a model that "
                "does"
            )
        dim = self.model.out_time_dim
        dim = getattr(dim, self.of) if isinstance(dim, tuple) else dim
        first = round(self.skip_s * self.fs * self.model.ratio)
        if first >= found.shape[dim]:
            raise ValueError(
                f"LoudnessLoss: {found.shape[dim]} frames of loudness, the first {first} of which "
                f"do not count: give a longer sound or less than skip_s = {self.skip_s:g}"
            )
        kept: Tensor = found.narrow(dim, first, found.shape[dim] - first)
        return kept

    def forward(
        self, sound: Tensor, target: Tensor | float | None = None, reference: Tensor | None = None
    ) -> Tensor:
        """The loss, 0-dim, or per value with reduction "none"."""
        if (target is None) == (reference is None):
            raise ValueError("LoudnessLoss: give either a target or a reference")
        given = self.loudness(sound)
        if reference is not None:
            if reference.shape != sound.shape:
                raise ValueError(
                    f"LoudnessLoss: a reference of shape {tuple(reference.shape)} for a sound of "
                    f"{tuple(sound.shape)}: give one of the same shape"
                )
            target = self.loudness(reference)
        wanted = torch.as_tensor(target, dtype=given.dtype, device=given.device)
        try:
            wanted = wanted.expand_as(given)
        except RuntimeError:
            raise ValueError(
                f"LoudnessLoss: a target of shape {tuple(wanted.shape)} for loudness of "
                f"{tuple(given.shape)}: give a number, or a shape that goes with it"
            ) from None
        if self.unit == "doublings":
            given, wanted = (v.clamp(min=FLOOR).log2() for v in (given, wanted))
        squares = (given - wanted).square()
        if self.reduction == "none":
            return squares
        return squares.mean() if self.reduction == "mean" else squares.sum()

    def extra_repr(self) -> str:
        return f"of={self.of}, unit={self.unit}, reduction={self.reduction}, skip_s={self.skip_s:g}"
