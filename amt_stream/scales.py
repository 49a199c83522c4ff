"""Scales of hearing science: ERB number, levels, sone and phon. Pure functions.

Every function takes a float, a numpy array or a torch tensor and returns the same kind.
"""

import math
import sys
from typing import Any

import numpy as np

from amt_stream.data import table

P0 = 20e-6
"""Reference pressure of dB SPL, in pascal."""


def _as_given(given: Any, result: np.ndarray) -> Any:
    """`result` as the kind of thing `given` is: float, array or tensor (dtype and device too)."""
    torch = sys.modules.get("torch")  # a caller that holds a tensor has imported torch
    if torch is not None and isinstance(given, torch.Tensor):
        like = given if given.is_floating_point() else given.double()
        return torch.as_tensor(result, dtype=like.dtype, device=like.device)
    if isinstance(given, np.ndarray):
        return np.asarray(result)
    return result.item() if result.ndim == 0 else result


def _array(x: Any) -> np.ndarray:
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(x, torch.Tensor):
        x = x.cpu().numpy()  # torch refuses one that wants a gradient, which could not pass
    return np.asarray(x, dtype=np.float64)


def erb(f: Any) -> Any:
    """Equivalent rectangular bandwidth in Hz at `f` Hz (ISO 532-2:2017, Formula 1)."""
    return 24.673 * (0.004368 * f + 1)


def hz_to_erb_number(f: Any) -> Any:
    """ERB number in Cam of `f` Hz (ISO 532-2:2017, Formula 6)."""
    return _as_given(f, 21.366 * np.log10(0.004368 * _array(f) + 1))


def erb_number_to_hz(cam: Any) -> Any:
    """Frequency in Hz of an ERB number in Cam, the inverse of `hz_to_erb_number`."""
    return _as_given(cam, (10 ** (_array(cam) / 21.366) - 1) / 0.004368)


def pa_to_db_spl(pressure: Any) -> Any:
    """Level in dB SPL of an RMS pressure in pascal; minus infinity for 0."""
    with np.errstate(divide="ignore"):
        return _as_given(pressure, 20 * np.log10(_array(pressure) / P0))


def db_spl_to_pa(level_db: Any) -> Any:
    """RMS pressure in pascal of a level in dB SPL."""
    return _as_given(level_db, P0 * 10 ** (_array(level_db) / 20))


def pascal_per_unit(full_scale_db_spl: float) -> float:
    """Pascal per sample unit when a full-scale sine (peak 1.0) has this RMS level in dB SPL."""
    return math.sqrt(2) * P0 * 10 ** (full_scale_db_spl / 20)


_EDITIONS = {"iso532-3": "iso532_3_sone", "iso532-2": "iso532_2_sone"}


def _sone_table(edition: str) -> tuple[np.ndarray, np.ndarray]:
    if edition not in _EDITIONS:
        raise ValueError(f"edition {edition!r} is not known: use one of {', '.join(_EDITIONS)}")
    rows = table("moore_sone_phon")
    return rows["phon"], np.log10(rows[_EDITIONS[edition]])


def sone_to_phon(n: Any, edition: str = "iso532-3") -> Any:
    """Loudness level in phon of a loudness in sone, from 0 to 120 phon.

    Phon is linear in log10(sone) between the rows of the standard's table (Table 5 of ISO
    532-3:2023 or ISO 532-2:2017) and clamped at its ends; NaN stays NaN. The table, because
    40 + 10 log2(n) is more than 8 phon off at 20 phon.
    """
    phon, log_sone = _sone_table(edition)
    sone = _array(n)
    level = np.interp(np.log10(np.maximum(sone, 1e-30)), log_sone, phon)
    return _as_given(n, np.where(np.isnan(sone), np.nan, level))


def phon_to_sone(level: Any, edition: str = "iso532-3") -> Any:
    """Loudness in sone of a loudness level in phon: `sone_to_phon` reversed, 0 to 120 phon."""
    phon, log_sone = _sone_table(edition)
    return _as_given(level, 10 ** np.interp(_array(level), phon, log_sone))
