"""Headphone, outer ear and middle ear as causal FIR filters from tables."""

import warnings
from fractions import Fraction
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn

from amt_stream.dsp.checkpoints import number
from amt_stream.dsp.contract import hertz
from amt_stream.dsp.data import table
from amt_stream.dsp.design import GRID, linear_phase, minimum_phase
from amt_stream.dsp.functional.filters.fir import fir
from amt_stream.dsp.scales import P0
from amt_stream.dsp.streaming import Shape, Stage, State, as_given, with_time

Phase = Literal["minimum", "linear"]


class _TabulatedFilter(Stage):
    """`x` (..., time) through an FIR with a tabulated gain; the output is as long as `x`.

    order: number of taps minus one
    phase_type: "minimum" has no delay; "linear" delays by order / 2 and needs an even order
    """

    binding = ("fs",)

    fs: float

    def __init__(self, fs: float, order: int, phase_type: Phase, learnable: bool) -> None:
        super().__init__()
        name = type(self).__name__
        if phase_type not in ("minimum", "linear"):
            why = ", which needs the end of the sound before its start" * (phase_type == "zero")
            raise ValueError(
                f"{name}: phase_type is {phase_type!r}{why}: give 'minimum' or 'linear'"
            )
        if order < 2 or (phase_type == "linear" and order % 2):
            raise ValueError(
                f"{name}: order is {order}: give one of at least 2, and an even one for "
                "phase_type='linear'"
            )
        fs = hertz(type(self).__name__, fs)
        self.fs, self.order, self.phase_type, self.learnable = fs, order, phase_type, learnable
        self.group_delay = order // 2 if phase_type == "linear" else 0
        self.latency = Fraction(self.group_delay)

    def _grid(self) -> np.ndarray:
        """Frequencies in Hz of the design grid."""
        return np.linspace(0, self.fs / 2, GRID // 2 + 1)

    def _taps(self, gain: np.ndarray) -> np.ndarray:
        if self.phase_type == "linear":
            return linear_phase(gain, self.order + 1)
        # The logarithm needs a positive gain; -120 dB re the peak suffices.
        return minimum_phase(np.maximum(gain, 1e-6 * gain.max()), self.order + 1)

    def _register_taps(self, taps: np.ndarray) -> None:
        if self.learnable:
            self.fir_coeffs = nn.Parameter(torch.tensor(taps))
        else:
            self.register_table("fir_coeffs", taps)

    def initial_state(self, shape: Shape) -> State:
        return {"past": self.state_like("past", with_time(shape, -1, self.order))}

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        y, past = fir(x, self.fir_coeffs, state["past"])
        return y, {"past": past}

    def forward(self, x: Tensor) -> Tensor:
        """`whole(x)`, in the dtype of `x` if that is floating point."""
        return as_given(self.whole(x), x)

    def translated(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
        tables = {"frequency_data", "tf_gains", "gain_normalization"} & set(given)
        if not tables:
            return {}
        names = " and ".join(sorted({"fir_coeffs", *tables}))
        said = f"{names} of the checkpoint define a filter that torch_amt designs differently"
        if self.learnable:
            raise ValueError(f"{said}, and it learns these in place of the taps")
        for name in {"fir_coeffs", *tables}:
            given.pop(name, None)
        warnings.warn(
            f"{type(self).__name__}: {said}: not taken, the filter here stays", stacklevel=2
        )
        return {}

    def _response(self, nfft: int) -> tuple[Tensor, Tensor]:
        """Frequencies in Hz and complex gains, nfft // 2 + 1 each."""
        if nfft <= self.order:
            raise ValueError(
                f"{type(self).__name__}: nfft is {nfft}: give at least {self.order + 1}, the "
                "number of taps"
            )
        freqs = torch.fft.rfftfreq(nfft, 1 / self.fs, dtype=self.dtype, device=self.device)
        return freqs, torch.fft.rfft(self.fir_coeffs, nfft)

    def get_parameters(self) -> dict[str, object]:
        """fs, order, phase_type and learnable."""
        names = ("fs", "order", "phase_type", "learnable")
        return {name: getattr(self, name) for name in names}


class _PointsFilter(_TabulatedFilter):
    """A filter with amplitudes given at points: linear interpolation, 0 at DC and fs / 2."""

    def _through(self, hz: np.ndarray, gain: np.ndarray) -> np.ndarray:
        """Taps for the points below fs / 2, which become `frequency_data`."""
        below = hz < self.fs / 2
        if not below.any():
            raise ValueError(
                f"{type(self).__name__}: fs is {self.fs}: give a rate above {2 * hz[0]:g} Hz, for "
                f"the table begins at {hz[0]:g} Hz"
            )
        hz, gain = hz[below], gain[below]
        self.register_table("frequency_data", np.stack([hz, gain], -1))
        return self._taps(np.interp(self._grid(), np.r_[0, hz, self.fs / 2], np.r_[0, gain, 0]))

    def get_frequency_response(self, nfft: int = 8192) -> tuple[Tensor, Tensor]:
        """Frequencies in Hz and complex gains, each (nfft // 2 + 1,)."""
        return self._response(nfft)

    def get_parameters(self) -> dict[str, object]:
        """fs, order, phase_type, learnable, compensate_delay, and what the table spans."""
        hz = self.frequency_data[:, 0]
        return {
            **super().get_parameters(),
            "num_frequency_points": hz.numel(),
            "frequency_range": (number(hz[0]), number(hz[-1])),
            "compensate_delay": self.compensate_delay,
        }


class HeadphoneFilter(_PointsFilter):
    """Sound (..., time) through HD 250 headphones to the eardrum; the unit is unchanged.

    Amplitudes of Pralong & Carlile (1996), as Osses et al. (2021) use them. The output is causal,
    of full length, and later than the input by `group_delay` samples: 0 with
    phase_type="minimum", order / 2 with "linear". torch_amt's output is early instead.

    compensate_delay: accepted and ignored; nothing is advanced or cut off
    learnable: `fir_coeffs` (order + 1,) becomes a parameter

    Attributes: `frequency_data` (points, 2), the table below fs / 2 in Hz and as amplitude. Raises
    ValueError for phase_type="zero", which cannot stream.
    """

    def __init__(
        self,
        fs: float,
        order: int = 512,
        phase_type: Phase = "minimum",
        learnable: bool = False,
        compensate_delay: bool = True,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__(fs, order, phase_type, learnable)
        self.compensate_delay = compensate_delay
        rows = table("headphone_hd250")
        self._register_taps(self._through(rows["freq_hz"], rows["gain"]))
        self.to(dtype)


class MiddleEarFilter(_PointsFilter):
    """Sound pressure at the eardrum (..., time) to stapes velocity, the same shape.

    filter_type: "lopezpoveda2001", velocities after Goode et al. (Lopez-Poveda & Meddis 2001,
        Fig. 2b), for an input in pascal; "jepsen2008", the reciprocal of the stapes impedance
        (Jepsen et al. 2008), for an input in which 1.0 is 104 dB SPL, 10 dB more than pascal
    normalize_gain: True, as documented, scales the filter to a maximum gain of 1, so the output is
        no velocity. False gives m/s: peak velocity for an RMS pressure, as in the table, hence 3 dB
        more than the velocity of the waveform. Use it before a DRNL
    compensate_delay: accepted and ignored: the output is causal and of full length, later than the
        input by `group_delay` samples, 0 with phase_type="minimum" and order / 2 with "linear";
        torch_amt cuts off order / 2 samples
    learnable: `fir_coeffs` (order + 1,) becomes a parameter

    Attributes: `frequency_data` (points, 2), the rows below fs / 2 in Hz and m/s per unit,
    extrapolated above 10 kHz; `gain_normalization`, the dB added by normalize_gain. Raises
    ValueError for phase_type="zero", which cannot stream.
    """

    def __init__(
        self,
        fs: float,
        filter_type: str = "lopezpoveda2001",
        order: int = 512,
        phase_type: Phase = "minimum",
        normalize_gain: bool = True,
        learnable: bool = False,
        compensate_delay: bool = True,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__(fs, order, phase_type, learnable)
        self.filter_type, self.normalize_gain = filter_type, normalize_gain
        self.compensate_delay = compensate_delay
        taps = self._through(*_extended(*stapes_gain(filter_type), fs / 2))
        largest = np.abs(np.fft.rfft(taps, max(8192, taps.size))).max()
        scale = 1 / largest if normalize_gain else 1.0
        self.gain_normalization = float(20 * np.log10(scale))
        self._register_taps(scale * taps)
        self.to(dtype)

    def get_parameters(self) -> dict[str, object]:
        """Those of every tabulated filter, filter_type, normalize_gain and gain_normalization."""
        names = ("filter_type", "normalize_gain", "gain_normalization")
        return {**super().get_parameters(), **{name: getattr(self, name) for name in names}}


def stapes_gain(filter_type: str) -> tuple[np.ndarray, np.ndarray]:
    """Frequencies in Hz of a middle-ear table, and the gains in m/s per unit of input."""
    if filter_type == "lopezpoveda2001":
        rows = table("middle_ear_lopezpoveda2001")
        return rows["freq_hz"], rows["velocity_m_s"] / P0
    if filter_type == "jepsen2008":
        rows = table("middle_ear_jepsen2008")
        gain = rows["impedance"].min() / rows["impedance"]
        # 1e-8 m/s at 0 dB SPL at the frequency of best hearing; an input of 1.0 is 104 dB SPL.
        return rows["freq_hz"], gain * 1e-8 * 10 ** (104 / 20)
    raise ValueError(
        f"MiddleEarFilter: filter_type is {filter_type!r}: give 'lopezpoveda2001' or 'jepsen2008'"
    )


def _extended(hz: np.ndarray, gain: np.ndarray, top: float) -> tuple[np.ndarray, np.ndarray]:
    """A middle-ear table extrapolated in steps of 1 kHz, each 1 / 1.1 lower, to below `top`."""
    more = np.arange(1, max(1, np.ceil((top - hz[-1]) / 1000)))
    return np.r_[hz, hz[-1] + 1000 * more], np.r_[gain, gain[-1] / 1.1**more]


MIDDLE_EAR = {
    "tfOuterMiddle1997": "revised_2006_db",
    "tfOuterMiddle2007": "ansi_s34_2007_iso532_2_db",
}
"""Column of the middle-ear editions for each documented name."""


class OuterMiddleEarFilter(_TabulatedFilter):
    """Sound pressure (..., time) in a field, as it reaches the cochlea, in pascal.

    compensation_type: edition of the middle ear, "tfOuterMiddle1997" or "tfOuterMiddle2007"
        (ANSI S3.4-2007)
    field_type: "free" or "diffuse" field, or "eardrum" to omit the outer ear
    flow, fhigh: range of the table in Hz; beyond it the gain is constant
    phase_type: "minimum" has no delay; "linear" delays by order / 2
    learnable: `fir_coeffs` (order + 1,) becomes a parameter

    The filter applies the tabulated gain once and causally; torch_amt's is zero-phase with four
    times the dB. Attributes: `fvec`, every 1 Hz from flow to fhigh below fs / 2, and `tf_gains`,
    the gains there in dB, 0 at 1 kHz in a free field. The loudness meters use `EarFilter`.
    """

    def __init__(
        self,
        fs: float,
        compensation_type: str = "tfOuterMiddle1997",
        field_type: str = "free",
        flow: float = 20.0,
        fhigh: float = 16000.0,
        order: int = 4096,
        learnable: bool = False,
        dtype: torch.dtype = torch.float32,
        phase_type: Phase = "minimum",
    ) -> None:
        super().__init__(fs, order, phase_type, learnable)
        if compensation_type not in MIDDLE_EAR:
            raise ValueError(
                f"OuterMiddleEarFilter: compensation_type is {compensation_type!r}: give "
                f"{' or '.join(map(repr, MIDDLE_EAR))}"
            )
        if field_type not in ("free", "diffuse", "eardrum"):
            raise ValueError(
                f"OuterMiddleEarFilter: field_type is {field_type!r}: give 'free', 'diffuse' or "
                "'eardrum'"
            )
        if not 0 <= flow < min(fhigh, fs / 2):
            raise ValueError(
                f"OuterMiddleEarFilter: flow={flow}, fhigh={fhigh}, fs={fs}: give 0 <= flow < "
                "fhigh, and flow below fs / 2"
            )
        self.compensation_type, self.field_type = compensation_type, field_type
        self.flow, self.fhigh = flow, fhigh
        middle, outer = table("middle_ear_editions"), table("moore_ear_transfer")
        gain_db = middle[MIDDLE_EAR[compensation_type]]
        if field_type != "eardrum":
            gain_db = gain_db + outer[f"{field_type}_field_db"]

        def at(f: np.ndarray) -> np.ndarray:
            return np.interp(f.clip(flow, fhigh), middle["freq_hz"], gain_db)

        fvec = np.arange(flow, min(fhigh, fs / 2) + 0.5)
        self.register_table("fvec", fvec)
        self.register_table("tf_gains", at(fvec))
        self._register_taps(self._taps(10 ** (at(self._grid()) / 20)))
        self.to(dtype)

    def get_frequency_response(self, nfft: int = 8192) -> tuple[Tensor, Tensor]:
        """Frequencies in Hz and gains in dB, each (nfft // 2 + 1,)."""
        freqs, response = self._response(nfft)
        return freqs, 20 * response.abs().log10()

    def get_transfer_function(self) -> tuple[Tensor, Tensor]:
        """The table: `fvec` in Hz and `tf_gains` in dB."""
        return self.fvec, self.tf_gains

    def get_parameters(self) -> dict[str, object]:
        """fs, order, phase_type, learnable, compensation_type, field_type, flow and fhigh."""
        names = ("compensation_type", "field_type", "flow", "fhigh")
        return {**super().get_parameters(), **{name: getattr(self, name) for name in names}}
