"""Excitation in decibels, the input of the stages of specific loudness."""

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from amt_stream.dsp.checkpoints import number
from amt_stream.dsp.contract import hertz
from amt_stream.dsp.functional.excitation import LEVEL_SLOPE
from amt_stream.dsp.scales import P0, erb, erb_number_to_hz, hz_to_erb_number
from amt_stream.dsp.stages.moore.excitation import CAM_STEP, CAMS, Excitation
from amt_stream.dsp.stages.moore.specific_loudness import ERBBands, erb_grid
from amt_stream.dsp.stages.within import within
from amt_stream.dsp.streaming import Pointwise, Shape, Shapes, Stage, State, as_given

SOFTEST = 1e-10
"""Lower limit of excitation, a power ratio re 0 dB: -100 dB."""


class Moore2016ExcitationPattern(Stage):
    """A spectrum, or components, to excitation in dB; named as documented, not in the meter.

    `step` takes intensities (..., ear, frame, component) and gives levels (..., ear, frame, band):
    `Excitation` in dB, at least -100, the published pattern of rounded-exponential filters whose
    lower skirt flattens with level (ANSI S3.4-2007, 3.5; ISO 532-3:2023, clause 7.4). Its input is
    that of `RunningSpectrum`, so that `Chain(ear=EarFilter(), spectrum=RunningSpectrum(),
    excitation=Moore2016ExcitationPattern(), loudness=Moore2016SpecificLoudness(variant=
    "iso532-3"))` goes from pascal to specific loudness.

    Called directly it takes components, `levels` in dB (..., component) at `freqs` in Hz, of the
    same shape or (component,), with 0 Hz for none, and gives (..., band), without omitting weak
    components. Unlike `torch_amt` it makes the slope depend on the level at the filter, not at the
    component, so that excitation spreads upward.

    erb_lower, erb_upper, erb_step: ERB numbers of the bands in Cam
    spreading_limit_octaves: must be 4; a component further above a filter (in units of its center
        frequency, as published) is ignored
    learnable: must be False; nothing can be learned
    frequency: of the components in Hz, ascending; by default those of `RunningSpectrum`

    Raises ValueError for a grid without bands, another limit, and learnable=True.
    >>> import torch
    >>> excitation = Moore2016ExcitationPattern()
    >>> e = excitation(torch.tensor([1000.0]), torch.tensor([40.0]))
    >>> round(e[55].item(), 2)  # at 15.5 Cam, 988 Hz
    39.75
    """

    time_dim = -2
    out_time_dim = -2
    in_quantity, out_quantity = "power", "dB"

    level_dep_factor = 0.35
    reference_level = 51.0
    min_p_lower = 0.1

    def __init__(
        self,
        erb_lower: float = CAMS[0],
        erb_upper: float = CAMS[-1],
        erb_step: float = CAM_STEP,
        spreading_limit_octaves: float = 4.0,
        learnable: bool = False,
        dtype: torch.dtype = torch.float32,
        frequency: ArrayLike | None = None,
    ) -> None:
        super().__init__()
        if not 0 < erb_lower <= erb_upper or not erb_step > 0:
            raise ValueError(
                f"Moore2016ExcitationPattern: erb_lower={erb_lower}, erb_upper={erb_upper}, "
                f"erb_step={erb_step}: give 0 < erb_lower <= erb_upper and a step above 0"
            )
        if spreading_limit_octaves != 4:
            raise ValueError(
                f"Moore2016ExcitationPattern: spreading_limit_octaves is "
                f"{spreading_limit_octaves}: the published pattern has 4"
            )
        if learnable:
            raise ValueError(
                "Moore2016ExcitationPattern: learnable is True: the published pattern has nothing "
                "to learn, give False"
            )
        self.learnable = False
        cams = np.arange(erb_lower, erb_upper + erb_step / 2, erb_step)
        fc = erb_number_to_hz(cams)
        self.n_channels, self.p1000 = cams.size, 4000 / erb(1000.0)
        self.register_table("erb_channels", cams)
        self.register_table("fc_channels", fc)
        self.register_table("p_channels", 4 * fc / erb(fc))
        self.excitation = Excitation(frequency=frequency, cams=cams)
        self.fixed_axes = self.excitation.fixed_axes
        self.to(dtype)

    def initial_state(self, shape: Shape) -> State:
        return self.excitation.initial_state(shape)

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        y, state = self.excitation.hooked_step(x, state)
        return _decibels(y), state

    def out_shape(self, shape: Shape) -> Shapes:
        return self.excitation.out_shape(shape)

    def forward(self, freqs: Tensor, levels: Tensor) -> Tensor:  # type: ignore[override]
        """Excitation levels (..., band) of components `freqs`, `levels` (..., component)."""
        f, level = self.converted(freqs), self.converted(levels)
        if not f.dim() or f.shape not in (level.shape, level.shape[-1:]):
            raise ValueError(
                f"Moore2016ExcitationPattern: freqs of shape {tuple(f.shape)} and levels of shape "
                f"{tuple(level.shape)}: give both as (..., component), or freqs as (component,)"
            )
        f = f.expand_as(level)
        given = f > 0
        f = torch.where(given, f, 1.0)[..., None, :]
        intensity = torch.where(given, 10 ** (level / 10), 0.0)[..., None, :]
        own = f.mT
        # The level per ERB at each component, from a filter centered on it.
        x = (_roex(4 * own / erb(own), (f - own) / own) * intensity).sum(-1)
        x = 10 * torch.log10(x.clamp(min=SOFTEST))[..., None, :]
        fc, p = self.fc_channels[:, None], self.p_channels[:, None]
        low = p - LEVEL_SLOPE * p * (x - self.reference_level)
        g = (f - fc) / fc
        slope = torch.where(g < 0, low.clamp(min=self.min_p_lower), p)
        return as_given(_decibels((_roex(slope, g) * intensity).sum(-1)), levels)

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, n_channels={self.n_channels}"


def _roex(p: Tensor, g: Tensor) -> Tensor:
    """Weight (1 + p |g|) exp(-p |g|) of a filter, 0 beyond 4 centers above it."""
    z = p * g.abs()
    return torch.where(g <= 4, (1 + z) * torch.exp(-z), 0.0)


def _decibels(excitation: Tensor) -> Tensor:
    return 10 * torch.log10(excitation.clamp(min=SOFTEST))


class ERBIntegration(Pointwise):
    """Power spectral densities in Pa^2/Hz (..., frame, bin) to levels in dB SPL (..., frame, band).

    A level is that of the densities, summed and multiplied by the bin width, within half an ERB of
    the band's center; at least -26.02 dB, which is 1e-12 Pa^2. For code written against
    `torch_amt`; the meters use `Excitation`.

    Called directly it takes psd and its bin frequencies in Hz (bin,), evenly spaced. As a stage it
    takes bins at `frequency`, by default those of a 2048-point DFT at `fs`. Intensities of
    `RunningSpectrum` become densities by `Gain(4e-10 / 15.625, time_dim=-2)`.

    f_min, f_max, erb_step: first center in Hz, and spacing of the centers in Cam up to the first at
        f_max or above
    learnable: the rectangle becomes a Gaussian of the same area with standard deviation
        `bandwidth_scale` ERB / 2; that scale, within 0.1 to 10, and `integration_weights`, a factor
        of at least 0 on each band's power, are parameters (band,)

    Raises ValueError for invalid limits and frequencies.
    """

    time_dim = -2
    out_time_dim = -2
    in_quantity, out_quantity = "power density", "dB"
    binding = ("f_min", "f_max", "erb_step")

    def __init__(
        self,
        fs: float = 32000,
        f_min: float = 50.0,
        f_max: float = 15000.0,
        erb_step: float = 0.25,
        learnable: bool = False,
        frequency: ArrayLike | None = None,
    ) -> None:
        super().__init__()
        fc = erb_grid("ERBIntegration", f_min, f_max, erb_step)
        hertz("ERBIntegration", fs)
        f = np.arange(1025) * fs / 2048 if frequency is None else np.asarray(frequency, np.float64)
        _spacing(torch.from_numpy(f))
        self.fs, self.learnable, self.n_erb_bands = fs, learnable, fc.size
        self.fixed_axes = {-1: f.size}
        self.register_table("fc_erb", fc)
        self.register_table("erb_bandwidths", erb(fc))
        self.register_table("frequency", f)
        for name in ("bandwidth_scale", "integration_weights"):
            self.register_constant(name, np.ones(fc.size), learnable)

    def get_erb_frequencies(self) -> Tensor:
        """Center frequencies of the bands (band,) in Hz."""
        return self.fc_erb

    def get_erb_bandwidths(self) -> Tensor:
        """ERB of the bands (band,) in Hz."""
        return self.erb_bandwidths

    def _weights(self, f: Tensor, spacing: float) -> Tensor:
        """Weights of the bins (bin,) in the bands (bin, band), in Hz."""
        away = (f[:, None] - self.fc_erb).abs()
        if not self.learnable:
            return spacing * (away <= self.erb_bandwidths / 2).to(f.dtype)
        width = within(self.bandwidth_scale, 0.1, 10.0) * self.erb_bandwidths
        bell = torch.exp(-2 * (away / width) ** 2)
        area = width * within(self.integration_weights, 0.0, float("inf"))
        # The clamp serves bands so narrow that all weights underflow in float32.
        return area * bell / bell.sum(0).clamp(min=torch.finfo(bell.dtype).tiny)

    def _levels(self, x: Tensor, f: Tensor, spacing: float) -> Tensor:
        return 10 * torch.log10((x @ self._weights(f, spacing)).clamp(min=1e-12) / P0**2)

    def transform(self, x: Tensor) -> Tensor:
        f = self.design("frequency")
        return self._levels(x, self.frequency, float(f[1] - f[0]))

    def out_shape(self, shape: Shape) -> Shape:
        return (*shape[:-1], self.n_erb_bands)

    def forward(self, psd: Tensor, freqs: Tensor | None = None) -> Tensor:
        """Band levels of `psd` (..., bin) at `freqs` (bin,) in Hz."""
        if freqs is None:
            return super().forward(psd)
        f, x = self.converted(freqs), self.converted(psd)
        if f.dim() != 1 or not x.dim() or x.shape[-1] != f.shape[0]:
            raise ValueError(
                f"ERBIntegration: a psd of shape {tuple(x.shape)} and freqs of shape "
                f"{tuple(f.shape)}: give a frequency for each bin"
            )
        return as_given(self._levels(x, f, _spacing(freqs.double())), psd)

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, n_erb_bands={self.n_erb_bands}"


def _spacing(f: Tensor) -> float:
    """Spacing in Hz of evenly spaced frequencies (bin,); raises ValueError for others."""
    if f.dim() == 1 and f.shape[0] > 1:
        gaps = f.diff()
        if gaps[0] > 0 and (gaps - gaps[0]).abs().max() <= 1e-3 * gaps[0]:
            return ((f[-1] - f[0]) / (f.shape[0] - 1)).item()
    raise ValueError(
        f"ERBIntegration: frequencies of shape {tuple(f.shape)} are not evenly spaced and "
        "ascending: give those of a Fourier transform"
    )


class ExcitationPattern(ERBBands):
    """Levels in dB (..., band) to the documented excitation in dB, the same shape: not calibrated.

    A level L spreads by slopes in dB/Cam, at least 10: 27 - 0.37 (L - 60) towards higher bands, 11
    - 0.2 (L - 60) towards lower ones, down to 50 dB below it. The contributions to a band add up as
    ln(1 + sum of exp(dB)), so that silence gives 0 dB. For code written against `torch_amt`; no
    meter uses it.

    Arguments are those of `ERBIntegration`, whose output it takes.
    learnable: `upper_slope_base`, `upper_slope_per_db`, `lower_slope_base` and
        `lower_slope_per_db`, 0-dim, are parameters

    Raises ValueError for invalid limits.

    Attributes: `fc_erb` and `erb_centers` (band,), the centers in Hz and as ERB numbers in Cam.
    """

    in_quantity = out_quantity = "dB"

    level_ref = 60.0

    def register_values(self, fc: np.ndarray) -> None:
        cams = hz_to_erb_number(fc)
        self.register_table("erb_centers", cams)
        # Positive towards higher bands: (receiving band, spreading band).
        self.register_table("distance", cams[:, None] - cams)
        slopes = {
            "upper_slope_base": 27.0,
            "upper_slope_per_db": -0.37,
            "lower_slope_base": 11.0,
            "lower_slope_per_db": -0.2,
        }
        for name, value in slopes.items():
            self.register_constant(name, np.array(value), self.learnable)

    def _slopes(self, level: Tensor) -> tuple[Tensor, Tensor]:
        over = level - self.level_ref
        upper = self.upper_slope_base + self.upper_slope_per_db * over
        lower = self.lower_slope_base + self.lower_slope_per_db * over
        return upper.clamp(min=10), lower.clamp(min=10)

    def get_spreading_slopes(self, level_db: float) -> tuple[float, float]:
        """Slopes in dB/Cam of a level, towards higher and lower bands."""
        level = torch.as_tensor(level_db, dtype=self.dtype, device=self.device)
        upper, lower = self._slopes(level)
        return number(upper), number(lower)

    def transform(self, x: Tensor) -> Tensor:
        upper, lower = (slope[..., None, :] for slope in self._slopes(x))
        down = torch.where(self.distance > 0, upper * self.distance, -lower * self.distance)
        level = x[..., None, :]
        spreads = ~((down > 50) | (level < 0))  # negated, so that NaN spreads
        spread = torch.where(spreads, level - down, -torch.inf)
        return torch.cat([spread, torch.zeros_like(x)[..., None]], -1).logsumexp(-1)

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, n_erb_bands={self.n_erb_bands}, not calibrated"
