"""The basilar membrane as a linear gammatone filterbank."""

import warnings
from collections.abc import Sequence
from math import factorial, pi

import numpy as np
import torch
from torch import Tensor, nn

from amt_stream.dsp.contract import hertz
from amt_stream.dsp.functional.filters.state_space import Blocks
from amt_stream.dsp.functional.gammatone import cascade_blocks, gammatone, one_poles
from amt_stream.dsp.scales import audfiltbw, erb2fc, erb_spaced, fc2erb
from amt_stream.dsp.streaming import Shape, Stage, State

SYSTEM = tuple(f"fixed_{name}" for name in Blocks._fields)
"""Tables of the cascade in matrix form."""

Centers = tuple[float, float] | Sequence[float] | np.ndarray | Tensor


def erb_factor(n: int) -> float:
    """Decay bandwidth per ERB of a gammatone filter of order `n`: 1.0186 for 4 (Patterson 1987)."""
    return factorial(n - 1) ** 2 * 2 ** (2 * n - 2) / (pi * factorial(2 * n - 2))


def channel_centers(stage: str, fc: Centers, fs: float, count: int | None = None) -> np.ndarray:
    """Center frequencies (channel,) in Hz from `fc`: a tuple is a range, anything else is centers.

    count: number of centers over the range, both ends included; by default about one per ERB

    Raises ValueError, naming `stage`, for centers outside (0, fs / 2].
    """
    hertz(stage, fs)
    if isinstance(fc, tuple):
        if len(fc) != 2 or not 0 < fc[0] < fc[1]:
            raise ValueError(
                f"{stage}: fc is {fc}, and a tuple is a range: give (low, high) in Hz, or centers "
                "as a list or a tensor"
            )
        if count is None:
            centers = erb_spaced(*fc)
        else:
            centers = erb2fc(np.linspace(fc2erb(fc[0]), fc2erb(fc[1]), count))
    else:
        given = fc.detach().cpu().double().numpy() if isinstance(fc, Tensor) else fc
        centers = np.array(given, dtype=np.float64).reshape(-1)
    # A range up to fs / 2 may exceed it by rounding.
    if not (centers.size and (centers > 0).all() and (centers <= fs / 2 * (1 + 1e-6)).all()):
        above = f", or sound of {2 * centers.max():g} Hz" if (centers > fs / 2).any() else ""
        raise ValueError(
            f"{stage}: fc is {fc}: give centers above 0 and up to fs / 2 = {fs / 2:g} Hz{above}"
        )
    return centers


class GammatoneFilterbank(Stage):
    """Sound (..., time) to basilar-membrane motion (..., band, time).

    All-pole gammatone filters of order n with fine structure: twice the real part of n complex
    one-pole filters in cascade, u_k[t] = p u_k[t-1] + (1 - |p|) u_{k-1}[t], with the pole p =
    exp(-2 pi beta / fs - j 2 pi fc / fs) and beta = betamul (24.7 + fc / 9.265) (Hohmann 2002). The
    gain at fc is 1. `group_delay` is the delay of a band's envelope, a property of the filter; the
    stage's `latency` is 0.

    fc: (low, high) in Hz for centers about one ERB apart, both included; or the centers, as a list
        or a tensor (band,)
    n: order
    betamul: bandwidth beta of a filter in ERB of 24.7 + fc / 9.265 Hz; by default its equivalent
        rectangular bandwidth is one ERB
    learnable: center and bandwidth of each band, as logarithms, which keeps every filter stable
    implementation: accepted and ignored; there is one

    Raises ValueError for centers above fs / 2. The output has the stage's dtype.
    """

    binding = ("fs", "n")

    fs: float

    def __init__(
        self,
        fc: Centers,
        fs: float,
        n: int = 4,
        betamul: float | None = None,
        learnable: bool = False,
        dtype: torch.dtype = torch.float32,
        implementation: str = "sos",
    ) -> None:
        super().__init__()
        if n < 1:
            raise ValueError(f"GammatoneFilterbank: n is {n}: give an order of 1 or more")
        if betamul is not None and betamul <= 0:
            raise ValueError(f"GammatoneFilterbank: betamul is {betamul}: give one above 0")
        if implementation not in ("sos", "poly"):
            raise ValueError(
                f"GammatoneFilterbank: implementation is {implementation!r}: give sos or poly"
            )
        if implementation == "poly":
            warnings.warn(
                "GammatoneFilterbank: implementation='poly' is ignored: polynomial coefficients of "
                "this filter are not accurate",
                stacklevel=2,
            )
        centers = channel_centers("GammatoneFilterbank", fc, fs)
        self.fs, self.n, self.learnable = fs, n, learnable
        self.implementation = implementation
        self.num_channels = len(centers)
        factor = erb_factor(n) if betamul is None else float(betamul)
        self.register_table("betamul", np.array(factor))
        self.register_table("centers", centers)
        bandwidth = factor * audfiltbw(centers)
        if learnable:
            self.log_fc = nn.Parameter(torch.tensor(np.log(centers)))
            self.log_bandwidth = nn.Parameter(torch.tensor(np.log(bandwidth)))
        else:
            design = one_poles(torch.from_numpy(centers), torch.from_numpy(bandwidth), fs)
            self.register_table("fixed", design.numpy())
            for name, table in cascade_blocks(design, 2.0, n)._asdict().items():
                self.register_table(f"fixed_{name}", table.numpy())
        self.to(dtype)

    @property
    def fc(self) -> Tensor:
        """Center frequency of each band in Hz."""
        return self.log_fc.exp() if self.learnable else self.centers

    @property
    def coefficients(self) -> Tensor:
        """Real and imaginary part of each band's p - 1, and 1 - |p|: (3, band)."""
        if self.learnable:
            return one_poles(self.log_fc.exp(), self.log_bandwidth.exp(), self.fs)
        return self.fixed

    @property
    def poles(self) -> Tensor:
        """The pole of each band, complex (band,)."""
        real, imaginary, _ = self.coefficients.unbind()
        return torch.complex(1 + real, imaginary)

    @property
    def gains(self) -> Tensor:
        """(1 - |p|)^n of each band, complex (band,), which makes the gain at the center 1."""
        gains = self.coefficients[2] ** self.n
        return torch.complex(gains, torch.zeros_like(gains))

    @property
    def group_delay(self) -> Tensor:
        """Delay in seconds at the center of each band, n |p| / (1 - |p|) / fs.

        The envelope of a click peaks at (n - 1) / n of it.
        """
        gap = self.coefficients[2]
        return self.n * (1 - gap) / gap / self.fs

    def initial_state(self, shape: Shape) -> State:
        return {"u": self.state_like("u", (*shape, 2, self.n, self.num_channels))}

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        system = None
        if not self.learnable:
            system = Blocks(*self.registered(*SYSTEM))
        y, u = gammatone(x[..., None, :], self.coefficients, 2.0, state["u"], system)
        return y, {"u": u}

    def out_shape(self, shape: Shape) -> Shape:
        return (*shape, self.num_channels)

    def translated(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
        if not self.learnable or not {"poles", "gains"} <= set(given):
            return {}
        poles = given["poles"].to(torch.complex128)
        bandwidth = -poles.abs().log() * self.fs / (2 * pi)
        fc = torch.remainder(-poles.angle() * self.fs / (2 * pi), self.fs)
        if not ((bandwidth > 0) & (fc > 0)).all():
            raise ValueError("a learned pole is on or outside the unit circle, or at 0 Hz")
        unit, gains = ((1 - poles.abs()) ** self.n).to(poles.dtype), given["gains"]
        if not torch.allclose(gains.to(poles.dtype), unit, rtol=1e-3, atol=0):
            raise ValueError("learned gains do not give a gain of 1 at the center")
        del given["poles"], given["gains"]
        return {"log_fc": fc.log(), "log_bandwidth": bandwidth.log()}

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, num_channels={self.num_channels}"
