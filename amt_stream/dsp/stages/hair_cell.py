"""Inner hair cells: from basilar-membrane motion to the receptor potential."""

from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn

from amt_stream.dsp.contract import hertz
from amt_stream.dsp.functional.filters.direct_form import direct_form
from amt_stream.dsp.functional.filters.first_order import first_order, first_order_gain
from amt_stream.dsp.functional.relaxation import relax
from amt_stream.dsp.stages.within import within
from amt_stream.dsp.streaming import Shape, Stage, State, as_given

Method = Literal["dau1996", "breebaart2001", "king2019", "lindemann"]

METHODS = {
    "dau1996": (1000.0, 1),
    "breebaart2001": (2000.0, 5),
    "king2019": (1500.0, 1),
    "lindemann": (800.0, 1),
}
"""Cutoff of each low-pass in Hz, and number of low-passes in series."""

MOST_POLE = 1 - 1e-6
"""Largest pole of a learned low-pass: a time constant of 1e6 samples."""


class IHCEnvelope(Stage):
    """`x` (..., channel, time) half-wave rectified and smoothed by first-order low-passes.

    fs: sampling rate in Hz
    cutoff: of each low-pass in Hz; overrides the method's
    order: accepted and ignored; each low-pass has order 1
    method: "dau1996" 1000 Hz; "breebaart2001" 2000 Hz five times, -3 dB at 770 Hz; "king2019"
        1500 Hz; "lindemann" 800 Hz (Dau, Puschel & Kohlrausch 1996; Breebaart, van de Par &
        Kohlrausch 2001; King, Varnet & Lorenzi 2019; Lindemann 1986)
    learnable: `b` and `a` (2,), the low-pass's difference equation, are parameters; the pole from
        `a` is clamped inside the unit circle

    Raises ValueError for an unknown method and a cutoff outside (0, fs / 2).
    """

    keeps_double = ("past",)
    binding = ("fs",)

    def __init__(
        self,
        fs: float,
        cutoff: float | None = None,
        order: int = 1,
        method: Method = "dau1996",
        learnable: bool = False,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__()
        self.to(dtype)
        if method not in METHODS:
            raise ValueError(f"IHCEnvelope: method is {method!r}: give one of {', '.join(METHODS)}")
        own, self.iterations = METHODS[method]
        fs = hertz("IHCEnvelope", fs)
        self.fs, self.method, self.learnable, self.order = fs, method, learnable, 1
        self.cutoff = float(own if cutoff is None else cutoff)
        g = first_order_gain(self.cutoff, fs)
        self.register_constant("b", np.array([g, g]), learnable)
        self.register_constant("a", np.array([1, 2 * g - 1]), learnable)
        if not learnable:
            # K / (1 + K) with K = tan(pi cutoff / fs), between 0 and 1.
            self.register_table("gain", np.array(g))

    def initial_state(self, shape: Shape) -> State:
        if self.learnable:
            return {"past": self.state_like("past", (*shape, self.iterations, 1))}
        return {"low": self.state_like("low", (*shape, self.iterations))}

    def _sections(self) -> tuple[Tensor, Tensor]:
        """Learned numerators and denominators (pass, 2) in float64, divided by a[0]."""
        b, a = self.b.double(), self.a.double()
        pole = within(a[1] / a[0], -MOST_POLE, MOST_POLE)
        denominator = torch.stack([torch.ones_like(pole), pole])
        return (b / a[0]).expand(self.iterations, 2), denominator.expand(self.iterations, 2)

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        if self.learnable:
            y, past = direct_form(x.double().clamp(min=0), *self._sections(), state["past"])
            return y.to(x.dtype), {"past": past}
        y, low = first_order(x, self.gain, state["low"], rectify=True)
        return y, {"low": low}

    def forward(self, x: Tensor) -> Tensor:
        """`whole(x)`, in the dtype of `x` if that is floating point."""
        return as_given(self.whole(x), x)

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, iterations={self.iterations}"


Integrator = Literal["euler", "exponential"]

CELL = {
    "scaling_factor": 10 ** (-105 / 20),
    "Gmet_max": 30e-9,
    "x0": 20e-9,
    "s0": 16e-9,
    "s1": 35e-9,
    "EP": 90e-3,
    "Cm": 12.5e-12,
    "Gkf": 19.8e-9,
    "Gks": 19.8e-9,
    "Ekf": -71e-3,
    "Eks": -78e-3,
}
"""Constants of the cell in SI units (Lopez-Poveda & Eustaquio-Martin 2006; Paulick et al. 2024)."""

LARGEST_EXPONENT = 40.0
"""Limit of each Boltzmann exponent; beyond it the transducer is closed, and float32 overflows."""


def _constant(name: str, meaning: str) -> property:
    place = list(CELL).index(name)

    def get(cell: "IHCPaulick2024") -> Tensor:
        return cell.constants[place]

    return property(get, doc=f"{meaning}, 0-dim.")


class IHCPaulick2024(Stage):
    """Basilar-membrane motion (..., channel, time), as from a DRNL, to receptor potential.

    In volts above rest, from the circuit model of a hair cell whose transducer opens with the
    displacement of its stereocilia (Lopez-Poveda & Eustaquio-Martin 2006; Paulick et al. 2024). It
    starts exactly at rest; the documented cell starts 8.3 nV below and drifts.

    integrator: "euler", as published, or "exponential", exact for an input constant over a sample
        and so better below 32 kHz

    Learnable: every constant but `V_rest`, the start of the documented cell's precharge of
    `precharge_duration` seconds, which has no effect here. Derived values such as `G_precharge`
    follow. Signs are fixed: the parameter `log_ratios` (11,) holds logarithms of the ratios to the
    published values, in the order of `CELL`.

    Raises ValueError for an unknown integrator, and if fs is too low for "euler".
    """

    precharge_duration = 0.05

    binding = ("fs", "integrator")

    def __init__(
        self,
        fs: float,
        learnable: bool = False,
        dtype: torch.dtype = torch.float32,
        integrator: Integrator = "euler",
    ) -> None:
        super().__init__()
        if integrator not in ("euler", "exponential"):
            raise ValueError(
                f"IHCPaulick2024: integrator is {integrator!r}: give euler or exponential"
            )
        fastest = (CELL["Gmet_max"] + CELL["Gkf"] + CELL["Gks"]) / CELL["Cm"]
        if integrator == "euler" and hertz("IHCPaulick2024", fs) < fastest:
            raise ValueError(
                f"IHCPaulick2024: Euler steps at fs = {fs} Hz are longer than the cell's shortest "
                f"time constant: give {fastest:.0f} Hz or more, or integrator='exponential'"
            )
        self.fs, self.learnable, self.integrator = fs, learnable, integrator
        self.register_table("published", np.array(list(CELL.values())))
        self.register_table("V_rest", np.array(-57.03e-3))
        if learnable:
            self.log_ratios = nn.Parameter(torch.zeros(len(CELL), dtype=torch.float64))
        self.to(dtype)

    @property
    def constants(self) -> Tensor:
        """Values (11,) of the constants, in the order of `CELL`."""
        return self.published * self.log_ratios.exp() if self.learnable else self.published

    scaling_factor = _constant("scaling_factor", "Displacement in meters for an input of 1")
    Gmet_max = _constant("Gmet_max", "Largest conductance of the transducer in siemens")
    x0 = _constant("x0", "Displacement in meters about which the transducer opens")
    s0 = _constant("s0", "Width in meters of the steeper step of its opening")
    s1 = _constant("s1", "Width in meters of the flatter step of its opening")
    EP = _constant("EP", "Endocochlear potential in volts")
    Cm = _constant("Cm", "Capacitance of the membrane in farads")
    Gkf = _constant("Gkf", "Conductance of the fast potassium channels in siemens")
    Gks = _constant("Gks", "Conductance of the slow potassium channels in siemens")
    Ekf = _constant("Ekf", "Reversal potential of the fast potassium channels in volts")
    Eks = _constant("Eks", "Reversal potential of the slow potassium channels in volts")

    @property
    def G_precharge(self) -> Tensor:
        """Conductance of the transducer at rest in siemens, 0-dim."""
        flat, steep = self._closed()
        return self.Gmet_max / (1 + flat.exp() + (flat + steep).exp())

    @property
    def resting_potential(self) -> Tensor:
        """Potential in volts of the cell in silence, 0-dim."""
        g = self.G_precharge
        currents = g * self.EP + self.Gkf * self.Ekf + self.Gks * self.Eks
        return currents / (g + self.Gkf + self.Gks)

    def _closed(self) -> tuple[Tensor, Tensor]:
        """Exponents of the flatter and the steeper Boltzmann term at rest."""
        flat, steep = self.x0 / self.s1, self.x0 / self.s0
        return flat.clamp(max=LARGEST_EXPONENT), steep.clamp(max=LARGEST_EXPONENT)

    def initial_state(self, shape: Shape) -> State:
        return {"potential": self.state_like("potential", shape)}

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        flat, steep = self._closed()
        both = flat + steep
        d = x * self.scaling_factor
        u = torch.minimum(-d / self.s1, LARGEST_EXPONENT - flat)
        w = torch.minimum(-d * (1 / self.s0 + 1 / self.s1), 2 * LARGEST_EXPONENT - both)
        open_share = 1 / (1 + (flat + u).exp() + (both + w).exp())
        # The change of conductance from rest, computed without cancellation for small d.
        closed = flat.exp() * torch.expm1(u) + both.exp() * torch.expm1(w)
        opened = -self.G_precharge * (closed * open_share)
        total = self.Gmet_max * open_share + self.Gkf + self.Gks
        # At rest the currents cancel, so only the change of conductance drives the cell.
        target = opened * (self.EP - self.resting_potential) / total
        rate = total / (self.Cm * self.fs)
        rate = rate.clamp(max=1) if self.integrator == "euler" else -torch.expm1(-rate)
        y, potential = relax(target, rate, state["potential"])
        return y, {"potential": potential}

    def forward(self, x: Tensor) -> Tensor:
        """`whole(x)`, in the dtype of `x` if that is floating point."""
        return as_given(self.whole(x), x)

    def translated(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
        if not self.learnable or not set(CELL) <= set(given):
            return {}
        values = torch.stack([given[name] for name in CELL]).double().reshape(-1)
        ratios = values / torch.tensor(list(CELL.values()), dtype=values.dtype)
        if not (ratios > 0).all():
            raise ValueError("a learned constant of the cell has changed its sign, or is 0")
        for name in CELL:
            del given[name]
        return {"log_ratios": ratios.log()}
