"""The basilar membrane as a dual-resonance nonlinear (DRNL) filterbank."""

from math import sqrt
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from amt_stream.dsp.functional.filters.svf import svf
from amt_stream.dsp.functional.gammatone import gammatone, one_poles
from amt_stream.dsp.scales import audfiltbw
from amt_stream.dsp.stages.gammatone import Centers, channel_centers
from amt_stream.dsp.streaming import Shape, Stage, State

Subject = Literal["NH", "HIx"]
Model = Literal["paulick2024", "jepsen2008"]

ORDERS = {"paulick2024": (2, 4, 2, 1), "jepsen2008": (3, 4, 3, 3)}
"""Gammatone order and number of low-passes of the linear path, then of the nonlinear one."""

VECTORS = (
    *("CF_lin", "BW_lin_norm", "LP_lin_cutoff", "g"),
    *("CF_nlin", "BW_nlin_norm", "LP_nlin_cutoff", "a", "b", "c"),
)
"""The documented parameters, each with a value per channel."""

SCALE = 1e8
"""Internal velocities are in units of 1e-8 m/s, because float32 would lose the softest sounds."""

SILENT = 1e-30
"""Lower bound of a velocity or gain before a logarithm or a power."""


def drnl_parameters(cf: np.ndarray, subject: Subject = "NH") -> dict[str, np.ndarray]:
    """The ten `VECTORS` at center frequencies `cf` (channel,) in Hz.

    Human parameters of Lopez-Poveda & Meddis (2001) as used by Jepsen et al. (2008) and Paulick et
    al. (2024). `subject="HIx"` has no outer hair cells, hence no nonlinear path.
    """
    octave = np.log10(cf)
    cf_lin = 10 ** (-0.06762 + 1.01679 * octave)
    cf_nlin = 10 ** (-0.05252 + 1.01650 * octave)
    # Published with a jump: above 1 kHz the compression is that of 1.5 kHz.
    held = np.where(cf <= 1000, octave, np.log10(1500))
    impaired = subject == "HIx"
    return {
        "CF_lin": cf_lin,
        "BW_lin_norm": 10 ** (0.03728 + 0.75 * octave) / audfiltbw(cf_lin),
        "LP_lin_cutoff": 10 ** (-0.06762 + 1.01 * octave),
        "g": 10 ** (4.20405 - 0.47909 * octave),
        "CF_nlin": cf_nlin,
        "BW_nlin_norm": 10 ** (-0.03193 + 0.77 * octave) / audfiltbw(cf_nlin),
        "LP_nlin_cutoff": 10 ** (-0.05252 + 1.01650 * octave),
        "a": np.zeros_like(cf) if impaired else 10 ** (1.40298 + 0.81916 * held),
        "b": 10 ** (1.61912 - 0.81867 * (octave if impaired else held)),
        "c": np.full_like(cf, 10**-0.60206),
    }


class _Vector:
    """A value per channel: a table, or the exponential of the parameter `log_<name>`."""

    def __init__(self, doc: str) -> None:
        self.__doc__ = doc

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, stage: Any, owner: type | None = None) -> Any:
        if stage is None:
            return self
        if self.name in stage.learned:
            return getattr(stage, f"log_{self.name}").exp()
        return getattr(stage, f"{self.name}_table")


class _Filters(NamedTuple):
    """Coefficients of the gammatone filters (3, channel) and low-passes (channel, low-pass)."""

    lin: Tensor
    nlin: Tensor
    low_lin: Tensor
    low_nlin: Tensor


class DRNLFilterbank(Stage):
    """Stapes velocity in m/s (..., time) to basilar-membrane velocity (..., band, time).

    Each band sums a linear path (gain, gammatone, low-passes) and a nonlinear one (gammatone,
    broken stick sign(x) min(a |x|, b |x|^c), gammatone, low-passes) (Lopez-Poveda & Meddis 2001).
    The filters are recursive and exact. The output has the stage's dtype.

    fc: (low, high) in Hz for `n_channels` centers equally spaced in ERB, both ends included; or the
        centers, as a list or a tensor
    subject: "NH", normal hearing, or "HIx", impaired: without the nonlinear path
    model: filter orders of `paulick2024` or `jepsen2008`
    learnable: the ten vectors, as logarithms, which keeps every filter stable; an `a` of 0 starts
        at 1e-30

    Raises ValueError for centers above fs / 2. Low-pass cutoffs are limited to just below it.
    """

    may_learn: tuple[str, ...] = VECTORS
    learned: tuple[str, ...] = ()

    CF_lin = _Vector("Center frequency of the linear path in Hz.")
    BW_lin_norm = _Vector("Decay bandwidth of its gammatone in ERB, 24.7 + CF_lin / 9.265 Hz.")
    LP_lin_cutoff = _Vector("Cutoff of its low-passes in Hz.")
    g = _Vector("Gain of the linear path.")
    CF_nlin = _Vector("Center frequency of the nonlinear path in Hz.")
    BW_nlin_norm = _Vector("Decay bandwidth of its gammatones in ERB, 24.7 + CF_nlin / 9.265 Hz.")
    LP_nlin_cutoff = _Vector("Cutoff of its low-passes in Hz.")
    a = _Vector("Gain of the nonlinear path for soft sounds.")
    b = _Vector("Factor of its power law for loud ones, (m/s)^(1 - c).")
    c = _Vector("Exponent of that power law.")

    binding = ("fs", "model")

    fs: float

    def __init__(
        self,
        fc: Centers,
        fs: float,
        n_channels: int = 50,
        subject: Subject = "NH",
        model: Model = "paulick2024",
        learnable: bool = False,
        dtype: torch.dtype = torch.float64,
    ) -> None:
        super().__init__()
        name = type(self).__name__
        if subject not in ("NH", "HIx"):
            raise ValueError(f"{name}: subject is {subject!r}: give NH or HIx")
        if model not in ORDERS:
            raise ValueError(f"{name}: model is {model!r}: give {' or '.join(ORDERS)}")
        centers = channel_centers(name, fc, fs, n_channels)
        self.fs, self.subject, self.model, self.learnable = fs, subject, model, learnable
        self.num_channels = len(centers)
        self.n_gt_lin, self.n_lp_lin, self.n_gt_nlin, self.n_lp_nlin = ORDERS[model]
        self.learned = self.may_learn if learnable else ()
        self.register_table("fc", centers)
        vectors = drnl_parameters(centers, subject)
        for key, values in vectors.items():
            if key in self.learned:
                logs = torch.tensor(np.log(np.maximum(values, SILENT)))
                self.register_parameter(f"log_{key}", nn.Parameter(logs))
            else:
                self.register_table(f"{key}_table", values)
        if not {"CF_lin", "CF_nlin"} & set(self.learned):
            design = self._design({key: torch.from_numpy(v) for key, v in vectors.items()})
            for key, table in design._asdict().items():
                self.register_table(f"{key}_table", table.numpy())
        self.to(dtype)

    def _design(self, v: dict[str, Tensor]) -> _Filters:
        bandwidth_lin = v["BW_lin_norm"] * audfiltbw(v["CF_lin"])
        bandwidth_nlin = v["BW_nlin_norm"] * audfiltbw(v["CF_nlin"])
        top = 0.9999 * self.fs / 2
        low = {
            key: torch.tan(torch.pi / self.fs * v[f"LP_{key}_cutoff"].clamp(max=top))[:, None]
            for key in ("lin", "nlin")
        }
        return _Filters(
            one_poles(v["CF_lin"], bandwidth_lin, self.fs),
            one_poles(v["CF_nlin"], bandwidth_nlin, self.fs),
            low["lin"].expand(-1, self.n_lp_lin),
            low["nlin"].expand(-1, self.n_lp_nlin),
        )

    def _filters(self) -> _Filters:
        if "CF_lin" in self.learned:
            return self._design({key: getattr(self, key) for key in VECTORS})
        return _Filters(*(getattr(self, f"{key}_table") for key in _Filters._fields))

    def initial_state(self, shape: Shape) -> State:
        n = self.num_channels
        shapes = {
            "lin": (2, self.n_gt_lin, n),
            "low_lin": (n, self.n_lp_lin, 2),
            "nlin": (2, self.n_gt_nlin, n),
            "nlin_after": (2, self.n_gt_nlin, n),
            "low_nlin": (n, self.n_lp_nlin, 2),
        }
        return {key: self.state_like(key, (*shape, *own)) for key, own in shapes.items()}

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        filters, after = self._filters(), {}
        x = SCALE * x[..., None, :]
        y, after["lin"] = gammatone(x, filters.lin, 1.0, state["lin"])
        y, after["low_lin"] = low_passes(y, filters.low_lin, state["low_lin"])
        z, after["nlin"] = gammatone(x, filters.nlin, 1.0, state["nlin"])
        z = broken_stick(z, *(v[:, None] for v in (self.a, self.b * SCALE ** (1 - self.c), self.c)))
        z, after["nlin_after"] = gammatone(z, filters.nlin, 1.0, state["nlin_after"])
        z, after["low_nlin"] = low_passes(z, filters.low_nlin, state["low_nlin"])
        return (self.g[:, None] * y + z) / SCALE, after

    def out_shape(self, shape: Shape) -> Shape:
        return (*shape, self.num_channels)

    def translated(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
        taken = {}
        for name in self.learned:
            if name in given and name != "a" and not (given[name] > 0).all():
                raise ValueError(f"learned {name} is not above 0 in each channel")
            if name in given:
                taken[f"log_{name}"] = given[name].double().clamp(min=SILENT).log()
        for name in self.learned:
            given.pop(name, None)
        return taken

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, num_channels={self.num_channels}"


class FastDRNLFilterbank(DRNLFilterbank):
    """`DRNLFilterbank` under the name of torch_amt's fast version; the recursive form is faster.

    ir_length: accepted and ignored; no impulse response is truncated
    learnable: a, b and c only
    """

    may_learn = ("a", "b", "c")
    derived = tuple(
        f"ir_{part}{end}" for part in ("lin", "nlin_1", "nlin_2") for end in ("", "_flipped")
    )

    def __init__(
        self,
        fc: Centers,
        fs: float,
        n_channels: int = 50,
        subject: Subject = "NH",
        model: Model = "paulick2024",
        learnable: bool = False,
        dtype: torch.dtype = torch.float64,
        ir_length: int = 4096,
    ) -> None:
        super().__init__(fc, fs, n_channels, subject, model, learnable, dtype)
        self.ir_length = ir_length


def broken_stick(x: Tensor, a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    """sign(x) min(a |x|, b |x|^c), with slope a rather than infinity at 0."""
    size = x.abs()
    bent = b * size.clamp(min=SILENT) ** c
    return torch.where(a * size <= bent, a * x, x.sign() * bent)


def low_passes(x: Tensor, g: Tensor, zi: Tensor) -> tuple[Tensor, Tensor]:
    """Second-order Butterworth low-passes in series; g: (channel, low-pass) tan(pi f / fs)."""
    # The weights of `svf.LOW`, on the device of `g`.
    weights = nn.functional.pad(torch.ones_like(g)[..., None], (2, 0))
    return svf(x, g, torch.full_like(g, sqrt(2)), weights, zi)
