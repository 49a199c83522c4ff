"""Recursive filters with given coefficients."""

from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn

from amt_stream.dsp.contract import hertz
from amt_stream.dsp.design import butterworth, numbers
from amt_stream.dsp.functional.filters.direct_form import direct_form
from amt_stream.dsp.streaming import Shape, Stage, State, as_given


class _DirectForm(Stage):
    """Sections b, a (section, order + 1) in series along time, initially at rest.

    Learnable: the numerators, and the inverse hyperbolic tangents of each denominator's reflection
    coefficients, which keep all poles inside the unit circle.
    """

    keeps_double = ("numerators", "denominators", "past")

    def _design(self, b: np.ndarray, a: np.ndarray, learnable: bool) -> None:
        name = type(self).__name__
        if not (a[:, 0] != 0).all():
            raise ValueError(f"{name}: a[0] is 0: give another value")
        b, a = b / a[:, :1], a / a[:, :1]
        reflections = np.array([_step_down(row) for row in a]).reshape(a.shape[0], -1)
        if not (np.abs(reflections) < 1).all():
            raise ValueError(
                f"{name}: a pole on or outside the unit circle lets the output grow without bound: "
                f"give a stable filter, not a = {a.tolist()}"
            )
        self.learnable = learnable
        self.n_sections, self.order = a.shape[0], a.shape[1] - 1
        if learnable:
            self.numerators = nn.Parameter(torch.from_numpy(b))
            self.poles = nn.Parameter(torch.from_numpy(np.arctanh(reflections)))
        else:
            self.register_table("numerators", b)
            self.register_table("denominators", a)
        self.to(self.device, self.dtype)

    def _coefficients(self) -> tuple[Tensor, Tensor]:
        """Numerators and denominators (section, order + 1), in float64."""
        if not self.learnable:
            return self.numerators, self.denominators
        one = torch.ones_like(self.poles[:, :1], dtype=torch.float64)
        a = one
        for k in torch.tanh(self.poles.double()).split(1, -1):
            a = torch.cat([a, 0 * one], -1)
            a = a + k * a.flip(-1)
        return self.numerators.double(), a

    def _parameters_of(self, b: Tensor, a: Tensor) -> dict[str, Tensor]:
        """Parameters for coefficients (section, order + 1); raises ValueError for unstable ones."""
        if b.shape != self.numerators.shape or a.shape != b.shape or (a[:, 0] == 0).any():
            raise ValueError(
                f"learned coefficients of shape {tuple(b.shape)} are not of this filter"
            )
        b, a = (b / a[:, :1]).double(), (a / a[:, :1]).double()
        reflections = np.array([_step_down(row) for row in a.cpu().numpy()])
        if not (np.abs(reflections) < 1).all():
            raise ValueError("a learned pole is on or outside the unit circle")
        shape = a.shape[0], a.shape[1] - 1
        return {"numerators": b, "poles": torch.from_numpy(np.arctanh(reflections).reshape(shape))}

    def initial_state(self, shape: Shape) -> State:
        return {"past": self.state_like("past", (*shape, self.n_sections, self.order))}

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        y, past = direct_form(x.double(), *self._coefficients(), state["past"])
        return y.to(x.dtype), {"past": past}

    def forward(self, x: Tensor) -> Tensor:
        """`whole(x)`, in the dtype of `x` if that is floating point."""
        return as_given(self.whole(x), x)


def _step_down(a: np.ndarray) -> list[float]:
    """Reflection coefficients, lowest order first, of a monic polynomial.

    All magnitudes are below 1 exactly if all roots are inside the unit circle (Schur, Cohn).
    """
    found: list[float] = []
    while len(a) > 1:
        k = float(a[-1])
        found.insert(0, k)
        if abs(k) >= 1:
            return [k] * (len(found) + len(a) - 2)
        a = (a - k * a[::-1])[:-1] / (1 - k * k)
    return found


class SOSFilter(_DirectForm):
    """`x` (..., time) through second-order sections in series, initially at rest.

    sos: (section, 6) b0 b1 b2 a0 a1 a2, divided by a0. Coefficients and state stay float64 in a
    float32 module, because rounding would shift the poles of a low cutoff. Learnable sections stay
    stable. Raises ValueError for another shape, a0 = 0 and an unstable section.
    """

    def __init__(self, sos: object, learnable: bool = False) -> None:
        super().__init__()
        rows = numbers(sos)
        if rows.ndim != 2 or rows.shape[1] != 6 or not len(rows):
            raise ValueError(
                f"SOSFilter takes coefficients of shape (sections, 6), given {rows.shape}"
            )
        self._design(rows[:, :3], rows[:, 3:], learnable)

    @property
    def sos(self) -> Tensor:
        """Sections (section, 6) in float64, a0 = 1."""
        return torch.cat(self._coefficients(), -1)

    def translated(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
        if not self.learnable or "sos" not in given or given["sos"].shape != self.sos.shape:
            return {}
        taken = self._parameters_of(given["sos"][:, :3], given["sos"][:, 3:])
        del given["sos"]
        return taken


class IIRFilter(_DirectForm):
    """`x` (..., time) through a filter with coefficients `b` and `a`, initially at rest.

    a0 y[t] = b0 x[t] + b1 x[t-1] + ... - a1 y[t-1] - ..., both 1-D. Coefficients and state stay
    float64 in a float32 module. A learnable filter stays stable. Raises ValueError for other
    shapes, a0 = 0 and an unstable filter. Above order 4 use `SOSFilter`: the poles of a long
    polynomial are sensitive to rounding.
    """

    def __init__(self, b: object, a: object, learnable: bool = False) -> None:
        super().__init__()
        above, below = numbers(b), numbers(a)
        if above.ndim != 1 or below.ndim != 1 or not above.size or not below.size:
            raise ValueError(
                f"IIRFilter: b and a have shapes {above.shape} and {below.shape}: "
                "give one coefficient or more each, 1-D"
            )
        length = max(above.size, below.size)
        above = np.pad(above, (0, length - above.size))
        below = np.pad(below, (0, length - below.size))
        self._design(above[None], below[None], learnable)

    @property
    def b(self) -> Tensor:
        """Numerator (order + 1,) in float64, divided by a0."""
        return self._coefficients()[0][0]

    @property
    def a(self) -> Tensor:
        """Denominator (order + 1,) in float64, divided by a0."""
        return self._coefficients()[1][0]

    def translated(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
        if not self.learnable or not {"b", "a"} <= set(given):
            return {}
        b, a = (
            nn.functional.pad(given[name], (0, self.order + 1 - given[name].numel()))
            for name in ("b", "a")
        )
        taken = self._parameters_of(b[None], a[None])
        del given["b"], given["a"]
        return taken


class ButterworthFilter(SOSFilter):
    """`x` (..., time) through a Butterworth filter, initially at rest.

    order: of the low-pass prototype; "band" and "bandstop" have twice as many poles
    cutoff: -3 dB in Hz; for "band" and "bandstop" the lower and the upper edge
    fs: sampling rate in Hz
    btype: "low", "high", "band" or "bandstop"

    A kind of `SOSFilter`; raises ValueError for an unknown type and cutoffs outside (0, fs / 2).
    """

    def __init__(
        self,
        order: int,
        cutoff: object,
        fs: float,
        btype: Literal["low", "high", "band", "bandstop"] = "low",
        learnable: bool = False,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        edges = numbers(cutoff)
        super().__init__(
            butterworth(order, edges, hertz("ButterworthFilter", fs), btype), learnable
        )
        self.cutoff, self.fs, self.btype, self.filter_order = edges.tolist(), fs, btype, order
        self.to(self.device, dtype)
