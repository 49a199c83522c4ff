"""Instantaneous compression of a waveform, as in the cochlea."""

import numpy as np
import torch
from torch import Tensor

from amt_stream.dsp.checkpoints import number
from amt_stream.dsp.streaming import Pointwise


class _Compression(Pointwise):
    """A knee in dB and an exponent, shared by all channels or one for each of `num_channels`.

    exponent: a number, or a tensor (num_channels,)
    channel_dim: axis of the channels if there is an exponent for each
    """

    binding = ("dboffset",)

    def __init__(
        self,
        knee_db: float = 30.0,
        exponent: object = 0.3,
        dboffset: float = 100.0,
        num_channels: int | None = None,
        learnable: bool = False,
        channel_dim: int = -1,
    ) -> None:
        super().__init__()
        name = type(self).__name__
        if not isinstance(exponent, float | int | Tensor):
            kind = type(exponent).__name__
            raise TypeError(f"{name}: exponent is a {kind}: give a number or a tensor")
        given = (
            exponent.detach().cpu().double().numpy() if isinstance(exponent, Tensor) else exponent
        )
        n = np.array(given, dtype=np.float64)
        if n.ndim == 0 and num_channels is not None:
            n = np.full(num_channels, n)
        if n.ndim > 1 or (num_channels is not None and n.shape != (num_channels,)):
            raise ValueError(
                f"{name}: an exponent of shape {n.shape} does not fit num_channels={num_channels}: "
                "give one number, or one for each channel"
            )
        self.dboffset, self.num_channels = dboffset, num_channels
        self.learnable, self.channel_dim = learnable, channel_dim
        self.time_dim = self.out_time_dim = -2 if channel_dim == -1 else -1
        if n.ndim:
            self.fixed_axes = {channel_dim: n.size}
            self.shape_remedy = "give one channel for each exponent"
        self._knee_db = float(knee_db)
        self.register_constant("exponent", n, learnable)
        if learnable:
            self.register_constant("knee_db_param", np.array(self._knee_db), True)

    @property
    def knee_db(self) -> float | Tensor:
        """Level of the knee in dB: a number, or the parameter when learnable."""
        return self.knee_db_param if self.learnable else self._knee_db

    @property
    def knee(self) -> Tensor:
        """Amplitude of the knee, 0-dim, where 1.0 is `dboffset` dB."""
        # Not `as_tensor`, which would copy from the host in every step.
        level = (
            self.knee_db_param
            if self.learnable
            else torch.full((), self._knee_db, dtype=self.dtype, device=self.device)
        )
        return 10 ** ((level - self.dboffset) / 20)

    def broadcast_exponent(self) -> Tensor:
        """The exponent, shaped to broadcast to an input."""
        n = self.exponent
        return n.view(-1, *[1] * (-self.channel_dim - 1)) if n.dim() else n

    def get_parameters(self) -> dict[str, object]:
        """knee_db, exponent (the mean over channels), dboffset and learnable."""
        return {
            "knee_db": number(self.knee_db),
            "exponent": number(self.exponent.mean()),
            "dboffset": self.dboffset,
            "learnable": self.learnable,
        }


class BrokenStickCompression(_Compression):
    """Broken-stick compression of `x`, any shape with channels last: linear below the knee.

    Above the knee sign(x) |x|^n knee^(1 - n), with an exponent n per channel (King et al. 2019).

    Attributes: `knee_db`, the level or the parameter; `knee`, 0-dim, its amplitude; `exponent`,
    0-dim or (num_channels,); `knee_factor`, knee^(1 - n) of each exponent.
    """

    @property
    def knee_factor(self) -> Tensor:
        """knee^(1 - n), which makes the power law continuous at the knee."""
        return self.knee ** (1 - self.exponent)

    def transform(self, x: Tensor) -> Tensor:
        n, knee, size = self.broadcast_exponent(), self.knee, x.abs()
        # The clamp keeps the unused branch and its gradient finite.
        bent = x.sign() * size.clamp(min=knee) ** n * knee ** (1 - n)
        return torch.where(size <= knee, x, bent)


class PowerCompression(_Compression):
    """Power-law compression of `x`, any shape with channels last: sign(x) |x / knee|^n knee.

    With n below 1 it amplifies below the knee and attenuates above.
    """

    def transform(self, x: Tensor) -> Tensor:
        silent = x == 0
        size = torch.where(silent, 1.0, x.abs() / self.knee)
        return torch.where(silent, 0.0, x.sign() * size ** self.broadcast_exponent() * self.knee)
