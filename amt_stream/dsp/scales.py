"""Scales of hearing science: ERB number, level, sone and phon.

Every function takes a float, a numpy array or a torch tensor and returns the same type.
"""

import math
import sys
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from amt_stream.dsp.data import table

if TYPE_CHECKING:
    import torch
    from torch import Tensor

Quantity = TypeVar("Quantity", float, np.ndarray, "Tensor")
"""The type of a function's argument and result."""

P0 = 20e-6
"""Reference pressure of dB SPL, in pascal."""


def _as_given(given: object, result: np.ndarray) -> Any:
    """`result` in the type of `given`: float, array or tensor (of its dtype and device)."""
    torch = sys.modules.get("torch")  # a caller that holds a tensor has imported torch
    if torch is not None and isinstance(given, torch.Tensor):
        like = given if given.is_floating_point() else given.double()
        return torch.as_tensor(result, dtype=like.dtype, device=like.device)
    if isinstance(given, np.ndarray):
        return np.asarray(result)
    return result.item() if result.ndim == 0 else result


def _array(x: object) -> np.ndarray:
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(x, torch.Tensor):
        x = x.cpu().numpy()  # torch raises if x requires a gradient, which could not pass
    return np.asarray(x, dtype=np.float64)


def erb(f: Quantity) -> Quantity:
    """Equivalent rectangular bandwidth in Hz at `f` Hz (ISO 532-2:2017, Formula 1)."""
    return 24.673 * (0.004368 * f + 1)


def hz_to_erb_number(f: Quantity) -> Quantity:
    """ERB number in Cam of `f` Hz (ISO 532-2:2017, Formula 6)."""
    return _as_given(f, 21.366 * np.log10(0.004368 * _array(f) + 1))


def erb_number_to_hz(cam: Quantity) -> Quantity:
    """Frequency in Hz of an ERB number in Cam, the inverse of `hz_to_erb_number`."""
    return _as_given(cam, (10 ** (_array(cam) / 21.366) - 1) / 0.004368)


def f2erb(f: Quantity) -> Quantity:
    """Equivalent rectangular bandwidth in Hz at `f` Hz (Glasberg & Moore 1990)."""
    return 24.7 * (4.37e-3 * f + 1)


f2erbrate, erbrate2f = hz_to_erb_number, erb_number_to_hz


def audfiltbw(fc: Quantity) -> Quantity:
    """Bandwidth in Hz of an auditory filter at `fc` Hz, as filterbanks take it: 24.7 + fc / 9.265.

    Loudness models use `erb`, which differs slightly.
    """
    return 24.7 + fc / 9.265


def fc2erb(fc: Quantity) -> Quantity:
    """Number of ERBs below `fc` Hz, as filterbanks count them (Glasberg & Moore 1990)."""
    return _as_given(fc, 9.2645 * np.log(1 + 0.00437 * _array(fc)))


def erb2fc(number: Quantity) -> Quantity:
    """Frequency in Hz of a number of ERBs, the inverse of `fc2erb`."""
    return _as_given(number, (np.exp(_array(number) / 9.2645) - 1) / 0.00437)


def erb_spaced(
    flow: float, fhigh: float, spacing: float = 1.0, basef: float | None = None
) -> np.ndarray:
    """Center frequencies in Hz from `flow` to `fhigh`, both included, about `spacing` ERB apart.

    With `basef` they are exactly `spacing` ERB apart and include `basef`. Raises ValueError for
    limits or a spacing that give no filters.
    """
    if not 0 <= flow < fhigh:
        raise ValueError(f"centers from {flow} to {fhigh} Hz: give 0 <= flow < fhigh")
    if spacing <= 0:
        raise ValueError(f"a spacing of {spacing} ERB: give one above 0")
    if basef is not None and not flow <= basef <= fhigh:
        raise ValueError(f"basef is {basef} Hz: give one from {flow} to {fhigh} Hz")
    low, high = fc2erb(flow), fc2erb(fhigh)
    if basef is None:
        return erb2fc(np.linspace(low, high, math.floor((high - low) / spacing) + 1))
    base = fc2erb(basef)
    below, above = math.floor((base - low) / spacing), math.floor((high - base) / spacing)
    return erb2fc(base + spacing * np.arange(-below, above + 1))


def erbspacebw(
    flow: float,
    fhigh: float,
    bwmul: float = 1.0,
    basef: float | None = None,
    device: "torch.device | str | None" = None,
    dtype: "torch.dtype | None" = None,
) -> "Tensor":
    """`erb_spaced` as a torch tensor, float32 by default."""
    import torch

    fc = erb_spaced(flow, fhigh, bwmul, basef)
    return torch.tensor(fc, device=device, dtype=dtype or torch.float32)


def gaindb(signal: Quantity, db: "Quantity | float") -> Quantity:
    """`signal` amplified by `db` decibels."""
    return signal * 10 ** (db / 20)


def pa_to_db_spl(pressure: Quantity) -> Quantity:
    """Level in dB SPL of an RMS pressure in pascal; minus infinity for 0."""
    with np.errstate(divide="ignore"):
        return _as_given(pressure, 20 * np.log10(_array(pressure) / P0))


def pascal_per_unit(full_scale_db_spl: float) -> float:
    """Pascal per sample unit if a full-scale sine (peak 1.0) has this RMS level in dB SPL."""
    return math.sqrt(2) * P0 * 10 ** (full_scale_db_spl / 20)


_EDITIONS = {
    "iso532-3": ("moore_sone_phon", "iso532_3_sone"),
    "iso532-2": ("moore_sone_phon", "iso532_2_sone"),
    "ansi-s3.4": ("ansi_sone_phon", "sone"),
}


@cache
def sone_table(edition: str) -> tuple[np.ndarray, np.ndarray]:
    """Loudness levels in phon of a standard's table, and logarithms to base 10 of their sones."""
    if edition not in _EDITIONS:
        raise ValueError(f"edition {edition!r} is not known: use one of {', '.join(_EDITIONS)}")
    name, column = _EDITIONS[edition]
    rows = table(name)
    return rows["phon"], np.log10(rows[column])


def sone_to_phon(n: Quantity, edition: str = "iso532-3") -> Quantity:
    """Loudness level in phon of a loudness in sone, from 0 to 120 phon.

    log10(sone) is interpolated linearly in the standard's table (Table 5 of ISO 532-3:2023 or ISO
    532-2:2017; Table 7 of ANSI S3.4-2007 for "ansi-s3.4") and clamped at its ends; NaN stays NaN.
    The formula 40 + 10 log2(n) is more than 8 phon off at 20 phon.
    """
    phon, log_sone = sone_table(edition)
    return _as_given(n, level_in_table(_array(n), log_sone, phon))


def level_in_table(sone: Any, log_sone: np.ndarray, phon: np.ndarray) -> Any:
    """Loudness level in phon by a `sone_table`, for arrays and for compiled loops."""
    return np.interp(np.log10(np.maximum(sone, 1e-30)), log_sone, phon)


def phon_to_sone(level: Quantity, edition: str = "iso532-3") -> Quantity:
    """Loudness in sone of a level in phon, 0 to 120 phon: the inverse of `sone_to_phon`."""
    phon, log_sone = sone_table(edition)
    return _as_given(level, 10 ** np.interp(_array(level), phon, log_sone))


def zwicker_phon(n: Quantity) -> Quantity:
    """Loudness level in phon of `n` sone after Zwicker (ISO 532-1:2017).

    40 + 10 log2(n) for 1 sone and more, else 40 (n + 0.0005)^0.35, at least 3 phon.
    """
    return _as_given(n, zwicker_level(_array(n)))


def zwicker_level(sone: Any) -> Any:
    """`zwicker_phon` of an array or number in float64, also for compiled loops."""
    loud = 40 + 10 * np.log2(np.maximum(sone, 1.0))
    soft = np.maximum(40 * (np.minimum(sone, 1.0) + 0.0005) ** 0.35, 3.0)
    return (sone < 1) * soft + (sone >= 1) * loud
