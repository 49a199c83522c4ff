"""From the excitation pattern to specific loudness."""

from math import ceil
from typing import ClassVar, Literal

import numpy as np
import torch
from torch import Tensor

from amt_stream.dsp.checkpoints import number, short_text
from amt_stream.dsp.data import table
from amt_stream.dsp.functional.loudness import Channels, specific_loudness
from amt_stream.dsp.scales import erb_number_to_hz, hz_to_erb_number
from amt_stream.dsp.stages.moore.excitation import CAMS
from amt_stream.dsp.streaming import Pointwise

Constants = Literal["iso", "author"]
Edition = Literal[Constants, "ansi"]
Variant = Literal["documented", "iso532-3"]

C = {"iso": 0.063, "author": 0.0631, "ansi": 0.046871, "documented": 0.0631}


ROUNDING_DB = 1e-3
"""Float32 rounding in dB of a threshold, which is a difference of larger numbers."""


def channel_constants(edition: Edition, cams: np.ndarray = CAMS) -> dict[str, np.ndarray]:
    """The values of `Channels` from ISO 532-3:2023, its authors' program, or ANSI S3.4-2007.

    cams: ERB numbers of the channels
    """
    rows = table("moore_threshold")
    threshold = rows["ansi_s34_2007_db" if edition == "ansi" else "iso532_3_db"]
    level = np.interp(erb_number_to_hz(cams), rows["freq_hz"], threshold)
    gain_db = threshold[-1] - level
    if edition == "iso":
        rows = table("moore_a_iso")
        # From 500 Hz up, the standard's constant; its table rounds this to 4.6135.
        a = np.where(gain_db < 0, np.interp(gain_db, rows["g_db"], rows["iso532_3_a"]), 4.614)
    else:
        rows = table("moore_a_ansi")
        a = np.interp(gain_db, rows["g_db"], rows["a"])
    alpha = _alpha(gain_db)
    return {
        "threshold": 10 ** (level / 10),
        "gain": 10 ** (gain_db / 10),
        "a": a,
        "alpha": alpha,
        "scale": C[edition] * a**alpha,
        "c": np.array(C[edition]),
    }


def _alpha(gain_db: np.ndarray) -> np.ndarray:
    rows = table("moore_alpha")
    return np.interp(gain_db, rows["g_db"], rows["alpha"])


def threshold_in_quiet_db(f: np.ndarray) -> np.ndarray:
    """Threshold in quiet in the free field, dB SPL at `f` Hz (Terhardt 1979)."""
    khz = f / 1000
    return 3.64 * khz**-0.8 - 6.5 * np.exp(-0.6 * (khz - 3.3) ** 2) + 1e-3 * khz**4


def documented_constants() -> dict[str, np.ndarray]:
    """Threshold, gain, A and alpha as the documented class reads them, each (150,).

    Unlike the standard, the gain follows the ERB number instead of the threshold, the field
    threshold replaces the excitation at threshold, and the table of A is read as dB.
    """
    fc = erb_number_to_hz(CAMS)
    e = 21.366 * np.log10(fc / 228.7 + 1)
    gain_db = 10 * np.where(e < 13, (e - 13) / 15, (e - 13) / 7.5)
    rows = table("moore_a_ansi")
    return {
        "threshold": 10 ** (threshold_in_quiet_db(fc) / 10),
        "gain": 10 ** (gain_db / 10),
        "a": 10 ** (np.interp(gain_db, rows["g_db"], rows["a"]) / 10),
        "alpha": _alpha(gain_db),
    }


def erb_grid(stage: str, f_min: float, f_max: float, erb_step: float) -> np.ndarray:
    """Centers (band,) in Hz every `erb_step` Cam from `f_min` to the first at `f_max` or above.

    Raises ValueError, naming `stage`, for limits that give no bands.
    """
    if not 0 < f_min < f_max or erb_step <= 0:
        raise ValueError(
            f"{stage}: f_min={f_min}, f_max={f_max}, erb_step={erb_step}: give 0 < f_min < f_max "
            "and a step above 0"
        )
    low, high = hz_to_erb_number(f_min), hz_to_erb_number(f_max)
    return erb_number_to_hz(low + erb_step * np.arange(ceil((high - low) / erb_step) + 1))


class OfVariant(Pointwise):
    """A stage as `torch_amt` documents it, or as in ISO 532-3.

    Raises ValueError for an unknown variant.
    """

    binding = ("variant",)

    def __init__(self, learnable: bool, dtype: torch.dtype, variant: Variant) -> None:
        super().__init__()
        self.to(dtype)
        if variant not in ("documented", "iso532-3"):
            raise ValueError(f"variant is {variant!r}: give documented or iso532-3")
        self.learnable, self.variant = learnable, variant


class Moore2016SpecificLoudness(OfVariant):
    """Excitation (..., 150) to specific loudness, as documented; not in the meter.

    From dB to sone/Cam. variant="documented" follows the documented formulas to the letter;
    "iso532-3" follows the standard and gives sone (ISO 532-3:2023, clause 7.5).
    """

    time_dim = -2
    out_time_dim = -2
    in_quantity, out_quantity = "dB", "sone/Cam"
    rounding: ClassVar = {"threshold_db": ROUNDING_DB}

    C: float | Tensor

    def __init__(
        self,
        learnable: bool = False,
        dtype: torch.dtype = torch.float32,
        variant: Variant = "documented",
    ) -> None:
        super().__init__(learnable, dtype, variant)
        self.fixed_axes = {-1: CAMS.size}
        values = documented_constants() if variant == "documented" else channel_constants("iso")
        self.register_table("erb_scale", CAMS)
        self.register_table("fc", erb_number_to_hz(CAMS))
        self.register_table("threshold_db", 10 * np.log10(values["threshold"]))
        for name, key in (("G", "gain"), ("A", "a"), ("Alpha", "alpha")):
            self.register_constant(name, values[key], learnable)
        c = C["documented" if variant == "documented" else "iso"]
        if learnable:
            self.register_constant("C", np.array(c), True)
        else:
            self.C = c

    def forward(self, excitation_db: Tensor) -> Tensor:
        """`transform` of `excitation_db` (..., 150), in its dtype if that is floating point."""
        return super().forward(excitation_db)

    def transform(self, x: Tensor) -> Tensor:
        threshold = 10 ** (self.threshold_db / 10)
        c = self.C
        if not isinstance(c, Tensor):
            # Not `as_tensor`, which would copy from the host in every step.
            c = torch.full((), c, dtype=self.dtype, device=self.device)
        scale = c * self.A**self.Alpha
        channels = Channels(threshold, self.G, self.A, self.Alpha, scale, c)
        return specific_loudness(10 ** (x / 10), channels)

    def get_parameters(self) -> dict[str, object]:
        """n_channels, C, and the minimum and maximum of Alpha, G and A."""
        ends = {
            f"{name}_{end}": number(getattr(getattr(self, name), end)())
            for name in ("G", "Alpha", "A")
            for end in ("min", "max")
        }
        return {"n_channels": CAMS.size, "C": number(self.C), **ends}

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, C={short_text(self.C)}"


class ERBBands(Pointwise):
    """A stage of `torch_amt` over bands at equal distances of the ERB number.

    fs: sampling rate in Hz
    f_min, f_max, erb_step: first center in Hz, and spacing of the centers in Cam up to the first at
        f_max or above

    Raises ValueError for invalid limits.

    Attributes: `fc_erb` (band,), the centers in Hz.
    """

    time_dim = -2
    out_time_dim = -2
    binding = ("f_min", "f_max", "erb_step")

    def __init__(
        self,
        fs: float = 32000,
        f_min: float = 50.0,
        f_max: float = 15000.0,
        erb_step: float = 0.25,
        learnable: bool = False,
    ) -> None:
        super().__init__()
        fc = erb_grid(type(self).__name__, f_min, f_max, erb_step)
        self.fs, self.f_min, self.f_max, self.erb_step = fs, f_min, f_max, erb_step
        self.learnable, self.n_erb_bands = learnable, fc.size
        self.fixed_axes = {-1: fc.size}
        self.register_table("fc_erb", fc)
        self.register_values(fc)

    def register_values(self, fc: np.ndarray) -> None:
        """Register what else the stage has for its bands (band,) in Hz."""
        raise NotImplementedError(f"{type(self).__name__} must define register_values(fc)")


class SpecificLoudness(ERBBands):
    """Excitation levels in dB (..., band) to the documented specific loudness, the same shape.

    Not calibrated: a power law of decibels above threshold, at most 0.8 at 140 dB. For code written
    against the documentation; meters use `Moore2016SpecificLoudness(variant="iso532-3")`.
    """

    in_quantity, out_quantity = "dB", "sone/Cam"

    rounding: ClassVar = {"ethrq_base": ROUNDING_DB}

    def register_values(self, fc: np.ndarray) -> None:
        self.register_table("ethrq_base", threshold_in_quiet_db(fc))
        start = {"ethrq_adjustment": np.zeros(fc.size), "C": 0.047, "alpha": 0.2, "E0_offset": 10.0}
        for name, value in start.items():
            self.register_constant(name, np.array(value), self.learnable)

    def get_threshold(self) -> Tensor:
        """Absolute threshold (band,) in dB SPL, including its adjustment."""
        return self.ethrq_base + self.ethrq_adjustment

    def forward(self, excitation: Tensor) -> Tensor:
        """`transform` of `excitation` (..., band), in its dtype if that is floating point."""
        return super().forward(excitation)

    def transform(self, x: Tensor) -> Tensor:
        above = x - self.get_threshold()
        steep = self.C * above
        # The maximum keeps the unused branch and its gradient finite.
        size = torch.maximum(above, self.E0_offset)
        flat = self.C * self.E0_offset ** (1 - self.alpha) * size**self.alpha
        return torch.where(above <= 0, 0.0, torch.where(above <= self.E0_offset, steep, flat))

    def get_parameters(self) -> dict[str, object]:
        """C, alpha, E0_offset and learnable."""
        values = {name: number(getattr(self, name)) for name in ("C", "alpha", "E0_offset")}
        return {**values, "learnable": self.learnable}

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, n_erb_bands={self.n_erb_bands}, not calibrated"
