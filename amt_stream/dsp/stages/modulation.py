"""Modulation filterbanks: the spectrum of the envelope in each auditory channel."""

import warnings
from collections.abc import Sequence
from math import log, pi, sqrt, trunc
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from amt_stream.dsp.contract import hertz
from amt_stream.dsp.functional.filters.first_order import first_order, first_order_gain
from amt_stream.dsp.functional.modulation import (
    BandPasses,
    OnePoles,
    Readout,
    band_pass_bank,
    band_passes,
    group_delay,
    modulation_poles,
    one_pole_bank,
)
from amt_stream.dsp.streaming import Shape, Stage, State, as_given

PREFILTER = 150.0
"""Cutoff in Hz of the low-pass before the bank (Kohlrausch, Fassel & Dau 2000)."""

REAL_UP_TO = 10.0
"""Highest center in Hz whose filter keeps the modulation phase; those above give the magnitude."""

DEFAULTS: dict[str, Any] = {
    "max_mfc": 150.0,
    "lp_cutoff": 2.5,
    "att_factor": 1.0,
    "use_upper_limit": False,
}

_JEPSEN = {**DEFAULTS, "att_factor": 1 / sqrt(2), "use_upper_limit": True}

PRESETS: dict[str, dict[str, Any]] = {
    "dau1997": DEFAULTS,
    "jepsen2008": _JEPSEN,
    "paulick2024": _JEPSEN,
}
"""Presets: Dau et al. (1997); Jepsen, Ewert & Dau (2008); Paulick et al. (2024)."""


def modulation_centers(limit: float, Q: float = 2.0) -> list[float]:
    """Center frequencies in Hz of the bank up to `limit` Hz; the first, 0, is the low-pass.

    Then 5 and 10 Hz, then bands of constant Q with touching edges. With a limit above 10 Hz the
    first of these is included even if it exceeds the limit (Dau et al. 1997).
    """
    centers = [0.0, *(f for f in (5.0, 10.0) if f <= limit)]
    if limit <= 10:
        return centers
    first, ratio = 12.5 / (1 - 0.5 / Q), (1 + 0.5 / Q) / (1 - 0.5 / Q)
    steps = log(limit / first) / log(ratio)
    # The tolerance includes a center that equals the limit despite rounding.
    last = trunc(steps + 1e-9) if steps > 0 else trunc(steps)
    return centers + [first * ratio**k for k in range(last + 1)]


class _Bank(Stage):
    """A filterbank per channel: `x` (..., channel, time) to (..., channel, filter, time)."""

    binding = ("fs", "filter_type")
    foreign = ("sos_stack",)  # free sections; here a band is a center and a bandwidth

    fs: float

    def __init__(self, fs: float, learnable: bool) -> None:
        super().__init__()
        hertz(type(self).__name__, fs)
        self.fs, self.learnable = fs, learnable

    def set_bands(
        self, kind: type[OnePoles] | type[BandPasses], center: np.ndarray, bandwidth: np.ndarray
    ) -> None:
        """Register (band,) centers and bandwidths, as parameters or as fixed coefficients."""
        self._kind = kind
        values = torch.from_numpy(center), torch.from_numpy(bandwidth)
        if self.learnable:
            self.log_center, self.log_bandwidth = (nn.Parameter(v.log()) for v in values)
            return
        for name, table in self.designed(*values)._asdict().items():
            self.register_table(name, table.numpy())

    def designed(self, center: Tensor, bandwidth: Tensor) -> OnePoles | BandPasses:
        if self._kind is OnePoles:
            return modulation_poles(center, bandwidth, self.fs)
        return band_passes(center, bandwidth)

    def bands(self) -> OnePoles | BandPasses:
        """Coefficients of the bands in use."""
        if self.learnable:
            return self.designed(self.log_center.exp(), self.log_bandwidth.exp())
        return self._kind(*self.registered(*self._kind._fields))

    def band_state(self, shape: Shape) -> Tensor:
        inner = (2,) if self._kind is OnePoles else (2, 2)
        count = self.envelope.shape[0]
        return self.state_like("bands", (*shape, count, *inner))

    def filtered(
        self, x: Tensor, readout: Readout, low_zi: Tensor, zi: Tensor
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        bands = self.bands()
        (low,) = self.registered("low")
        if isinstance(bands, OnePoles):
            return one_pole_bank(x, low, bands, readout, (low_zi, zi))
        return band_pass_bank(x, low, bands, readout, (low_zi, zi))


class ModulationFilterbank(_Bank):
    """Modulations of each auditory channel: (..., channel, time) to a list of tensors, per channel.

    fs: sampling rate in Hz
    fc: center frequencies in Hz of the channels, tensor, list or tuple
    Q, max_mfc, lp_cutoff: Q of the bands above 10 Hz, highest modulation frequency and low-pass
        cutoff in Hz
    use_upper_limit: also limits modulation frequencies to fc / 4, so that channels have different
        numbers of filters
    att_factor: factor on the magnitudes
    preset: "dau1997", "jepsen2008" or "paulick2024"; the last two add a low-pass of 150 Hz before
        the bank. Defaults: max_mfc 150, lp_cutoff 2.5, att_factor 1 (the last two 0.707, and the
        upper limit in use); explicit arguments override them
    filter_type: "efilt", complex one-poles with a gain of 2 at the center (Dau et al. 1997), or
        "butterworth", real band-passes of four poles with a gain of 1

    Filter 0 is the low-pass. Filters up to 10 Hz give the real part, the others the magnitude.
    Called directly it gives (..., M_f, time) for each channel f; as a stage, (..., channel, M,
    time) with zeros where `mask` (channel, M) is false. `mfc` are the designed centers in Hz.

    Learnable: `att_factor`, and for each band, shared by all channels, `log_center` and
    `log_bandwidth`, of Hz ("efilt") or of tan(pi f / fs) at center and edges ("butterworth"). All
    values are stable.
    """

    att_factor: Any

    def __init__(
        self,
        fs: float,
        fc: Tensor | np.ndarray | Sequence[float],
        Q: float = 2.0,
        max_mfc: float | None = None,
        lp_cutoff: float | None = None,
        att_factor: float | None = None,
        use_upper_limit: bool | None = None,
        preset: str | None = None,
        filter_type: str = "efilt",
        learnable: bool = False,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__(fs, learnable)
        if filter_type not in ("efilt", "butterworth"):
            raise ValueError(
                f"{type(self).__name__}: filter_type is {filter_type!r}: "
                "choose 'efilt' or 'butterworth'"
            )
        given = {
            "max_mfc": max_mfc,
            "lp_cutoff": lp_cutoff,
            "att_factor": att_factor,
            "use_upper_limit": use_upper_limit,
        }
        if preset is not None and preset not in PRESETS:
            raise ValueError(
                f"{type(self).__name__}: preset is {preset!r}: choose one of {list(PRESETS)}"
            )
        chosen = DEFAULTS if preset is None else PRESETS[preset]
        chosen = {**chosen, **{key: value for key, value in given.items() if value is not None}}
        self.Q, self.preset, self.filter_type = Q, preset, filter_type
        self.max_mfc, self.lp_cutoff = chosen["max_mfc"], chosen["lp_cutoff"]
        self.use_upper_limit = chosen["use_upper_limit"]
        self.use_lp150_prefilter = preset in ("jepsen2008", "paulick2024")
        att = float(chosen["att_factor"])
        self.att_factor = nn.Parameter(torch.tensor(att, dtype=torch.float64)) if learnable else att

        channels = np.atleast_1d(torch.as_tensor(fc, device="cpu").detach().double().numpy())
        self._refuse(channels)
        self.num_channels = channels.size
        self.fixed_axes = {-2: self.num_channels}
        self.shape_remedy = "each channel has filters by its center, give one for each of `fc`"
        limits = [min(f / 4, self.max_mfc) for f in channels] if self.use_upper_limit else None
        lists = [modulation_centers(limit, Q) for limit in limits or [self.max_mfc] * channels.size]
        # All channels share one list of filters and differ only in how many they use.
        longest = max(lists, key=len)
        counts = np.array([len(centers) for centers in lists])
        self.register_table("fc", channels)
        self.register_table("centers", np.array(longest))
        self.register_table("mask", np.arange(len(longest)) < counts[:, None])
        self.register_table("counts", counts)
        self.register_table("low", np.tan([pi * self.lp_cutoff / fs]))
        if self.use_lp150_prefilter:
            self.register_table("prefilter", np.array(first_order_gain(PREFILTER, fs)))
        self._set_filters(np.array(longest[1:]), att)
        self.to(self.device, dtype)

    def _refuse(self, channels: np.ndarray) -> None:
        name, half = type(self).__name__, self.fs / 2
        if channels.ndim != 1 or not channels.size or not (channels > 0).all():
            raise ValueError(f"{name}: fc has to be center frequencies in Hz, (channel,)")
        if not self.Q > 0.5:
            raise ValueError(f"{name}: Q is {self.Q}: give a value above 0.5")
        if not self.max_mfc > 0:
            raise ValueError(f"{name}: max_mfc is {self.max_mfc}: give a frequency above 0 Hz")
        if not 0 < self.lp_cutoff < half:
            raise ValueError(
                f"{name}: lp_cutoff is {self.lp_cutoff}: give one above 0 and below "
                f"fs/2 = {half:g} Hz"
            )

    def _set_filters(self, center: np.ndarray, att: float) -> None:
        bandwidth = np.where(center < 10, 5.0, center / self.Q)
        sections = self.filter_type == "butterworth"
        edges = center + np.array([[-0.5], [0.5]]) * bandwidth * sections
        if center.size and edges.max() >= self.fs / 2:
            raise ValueError(
                f"{type(self).__name__}: the band at {center[-1]:g} Hz reaches fs/2 = "
                f"{self.fs / 2:g} Hz: lower max_mfc or raise fs"
            )
        self._gain = 1.0 if sections else 2.0
        envelope = center > REAL_UP_TO
        self.register_table("envelope", envelope)
        if not self.learnable:
            self.register_table("scale", self._gain * np.where(envelope, att, 1.0))
        if sections:
            low, high = np.tan(pi * edges / self.fs)
            self.set_bands(BandPasses, np.sqrt(low * high), high - low)
        else:
            self.set_bands(OnePoles, center, bandwidth)

    @property
    def mfc(self) -> list[Tensor]:
        """Centers in Hz of the filters of each channel, the first of each 0."""
        return [self.centers[:n] for n in self._designs["counts"]]

    def readout(self) -> Readout:
        if self.learnable:
            return Readout(self._learned_scale(), self.envelope, self.counts)
        return Readout(*self.registered(*Readout._fields))

    def _learned_scale(self) -> Tensor:
        return self._gain * torch.where(self.envelope, self.att_factor, 1.0)

    def initial_state(self, shape: Shape) -> State:
        self.check_shape(shape)
        state = {"low": self.state_like("low", (*shape, 1, 2)), "bands": self.band_state(shape)}
        if self.use_lp150_prefilter:
            state["prefilter"] = self.state_like("prefilter", (*shape, 1))
        return state

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        after = {}
        if self.use_lp150_prefilter:
            x, after["prefilter"] = first_order(x, self.prefilter, state["prefilter"])
        y, (low, bands) = self.filtered(x, self.readout(), state["low"], state["bands"])
        return y, {"low": low, "bands": bands, **after}

    def out_shape(self, shape: Shape) -> Shape:
        return (*shape, self.centers.shape[0])

    def forward(self, x: Tensor) -> list[Tensor]:
        """(..., M_f, time) for each channel f, in the dtype of `x` (..., channel, time)."""
        return self.split(as_given(self.whole(x), x))

    def split(self, y: Tensor) -> list[Tensor]:
        """A streamed output (..., channel, filter, time) as a list, one entry per channel."""
        return [y[..., f, :n, :] for f, n in enumerate(self._designs["counts"])]


class FastModulationFilterbank(ModulationFilterbank):
    """`ModulationFilterbank` under the name of torch_amt's fast version; both are the same here.

    tolerance: accepted and ignored; filters are never merged
    """

    def __init__(
        self,
        fs: float,
        fc: Tensor | np.ndarray | Sequence[float],
        Q: float = 2.0,
        max_mfc: float | None = None,
        lp_cutoff: float | None = None,
        att_factor: float | None = None,
        use_upper_limit: bool | None = None,
        preset: str | None = None,
        filter_type: str = "efilt",
        learnable: bool = False,
        dtype: torch.dtype = torch.float32,
        tolerance: int = 2,
    ) -> None:
        bank = Q, max_mfc, lp_cutoff, att_factor, use_upper_limit, preset, filter_type
        super().__init__(fs, fc, *bank, learnable, dtype)
        self.tolerance = tolerance

    def distribute_gradients(self) -> None:
        """Does nothing: channels share one set of weights, so gradients are already complete."""


class King2019ModulationFilterbank(_Bank):
    """Modulations of each channel (..., channel, time): (..., channel, M, time).

    Butterworth band-passes of four poles, of equal Q, gain 1 at their centers `mfc` in Hz and
    1 / sqrt(2) at the edges they share (King, Varnet & Lorenzi 2019).

    fs: sampling rate in Hz
    mflow, mfhigh: lowest and highest center in Hz
    qfactor: center / bandwidth, which also sets the spacing of the centers
    nmod: number of centers, log-spaced from mflow to mfhigh; overrides that spacing

    Learnable: `log_center` and `log_bandwidth` (M,), of tan(pi f / fs) at center and edges; all
    values are stable. `mfc` are the designed centers.
    """

    def __init__(
        self,
        fs: float,
        mflow: float = 2.0,
        mfhigh: float = 150.0,
        qfactor: float = 1.0,
        nmod: int | None = None,
        learnable: bool = False,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__(fs, learnable)
        self.mflow, self.mfhigh, self.qfactor, self.nmod = mflow, mfhigh, qfactor, nmod
        name = type(self).__name__
        if not 0 < mflow <= mfhigh:
            raise ValueError(f"{name}: mflow {mflow} and mfhigh {mfhigh}: give 0 < mflow <= mfhigh")
        if not qfactor > 0:
            raise ValueError(f"{name}: qfactor is {qfactor}: give a value above 0")
        if nmod is not None and nmod < 1:
            raise ValueError(f"{name}: nmod is {nmod}: give 1 filter or more, or None")
        root = sqrt(4 * qfactor**2 + 1)
        if nmod is None:
            ratio = (root + 1) / (root - 1)
            count = trunc(log(mfhigh * (1 + 1e-6) / mflow) / log(ratio)) + 1
            center = mflow * ratio ** np.arange(count)
        else:
            center = np.geomspace(mflow, mfhigh, nmod)
        # Edges with geometric mean center and difference center / Q.
        edges = center * np.array([[root - 1], [root + 1]]) / (2 * qfactor)
        edges = edges.clip(0.1, fs / 2 - 0.1)
        if not (center < edges[1]).all():
            raise ValueError(
                f"{name}: the band at {center[-1]:g} Hz reaches fs/2 = {fs / 2:g} Hz: "
                "lower mfhigh or raise fs"
            )
        low, high = np.tan(pi * edges / fs)
        self.fixed_axes = {-2: None}
        self.num_filters = center.size
        self.register_table("mfc", center)
        self.register_table("low", np.zeros(0))
        self.register_table("scale", np.ones(center.size))
        self.register_table("envelope", np.zeros(center.size, bool))
        self.register_table("counts", np.array([center.size]))
        self.set_bands(BandPasses, np.sqrt(low * high), high - low)
        self.to(self.device, dtype)

    @property
    def group_delay(self) -> Tensor:
        """Group delay (M,) in seconds of each band at its center `mfc`."""
        bands = self.bands()
        assert isinstance(bands, BandPasses)
        return group_delay(bands, 2 * pi / self.fs * self.mfc) / self.fs

    def initial_state(self, shape: Shape) -> State:
        return {"bands": self.band_state(shape)}

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        readout = Readout(*self.registered(*Readout._fields))
        none = state["bands"][..., :0, 0, :]
        y, (_, bands) = self.filtered(x, readout, none, state["bands"])
        return y, {"bands": bands}

    def out_shape(self, shape: Shape) -> Shape:
        return (*shape, self.num_filters)

    def forward(self, x: Tensor) -> Tensor:
        """(..., channel, M, time), in the dtype of `x` (..., channel, time)."""
        return as_given(self.whole(x), x)


class FastKing2019ModulationFilterbank(King2019ModulationFilterbank):
    """`King2019ModulationFilterbank` under the name of torch_amt's fast version; both are the same.

    ir_length_ratio: accepted and ignored; below 1 it warns that responses are not truncated
    """

    def __init__(
        self,
        fs: float,
        mflow: float = 2.0,
        mfhigh: float = 150.0,
        qfactor: float = 1.0,
        nmod: int | None = None,
        learnable: bool = False,
        dtype: torch.dtype = torch.float32,
        ir_length_ratio: float = 1.0,
    ) -> None:
        super().__init__(fs, mflow, mfhigh, qfactor, nmod, learnable, dtype)
        if not 0 < ir_length_ratio <= 1:
            raise ValueError(
                f"FastKing2019ModulationFilterbank: ir_length_ratio is {ir_length_ratio}: "
                "give one above 0, up to 1"
            )
        if ir_length_ratio < 1:
            warnings.warn(
                f"ir_length_ratio={ir_length_ratio} has no effect: this filterbank is recursive "
                "and cuts no impulse response",
                stacklevel=2,
            )
        self.ir_length_ratio = ir_length_ratio
