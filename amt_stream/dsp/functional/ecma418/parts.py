"""Single values of frames of specific ones (ECMA-418-2:2025, 6.2.8, 8.1.1, clauses 7 and 9)."""

import numpy as np
from torch import Tensor

from amt_stream.dsp.functional.compiler.dispatch import Array, array, kernel
from amt_stream.dsp.functional.compiler.operators import on_host
from amt_stream.dsp.functional.compiler.shapes import fit, signal_axes
from amt_stream.dsp.functional.ecma418.bands import BANDS, EPSILON, TONALITY, WIDTH


def _loudness_like(x: Tensor) -> tuple[Tensor, Tensor]:
    specific = x.new_empty(*x.shape[:-3], *x.shape[-2:])
    return x.new_empty(specific.shape[:-1]), specific


@on_host(_loudness_like)
def loudness_of_parts(x: Tensor) -> tuple[Tensor, Tensor]:
    """Loudness in sone_HMS (..., frame), then of each band (..., frame, 53).

    x: tonal and noise loudness, and frequency (..., 3, frame, 53)
    """
    _refuse("loudness_of_parts", x)
    n, specific = _loudness_like(x)
    _loudness(_rows(x), _rows(n, 0), _rows(specific, 1))
    return n, specific


def _tonality_like(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    n, specific = _loudness_like(x)
    return n, n.new_empty(n.shape), specific


@on_host(_tonality_like)
def tonality_of_parts(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The highest tonality in tu_HMS and its frequency (..., frame), then each band's tonality.

    x: as in `loudness_of_parts`
    """
    _refuse("tonality_of_parts", x)
    t, hz, specific = _tonality_like(x)
    _tonality(_rows(x), _rows(t, 0), _rows(hz, 0), _rows(specific, 1))
    return t, hz, specific


@on_host(_tonality_like)
def roughness_of_parts(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Roughness in asper and the rate of the roughest band (..., frame), then each band's.

    x: specific roughness and modulation rates (..., 2, frame, 53)
    """
    _refuse("roughness_of_parts", x, 2)
    r, hz, specific = _tonality_like(x)
    _roughness(_rows(x), _rows(r, 0), _rows(hz, 0), _rows(specific, 1))
    return r, hz, specific


@on_host(lambda x: x.new_empty(x.shape[:-1]))
def total_of_bands(x: Tensor) -> Tensor:
    """The sum over bands of specific values (..., frame, 53), by their width in Bark_HMS."""
    lead, frames, _ = signal_axes("total_of_bands", "x", x, 2)
    fit("total_of_bands", x.dtype, ("x", x, (*lead, frames, BANDS)))
    total = x.new_empty(x.shape[:-1])
    _total(_rows(x, 1), _rows(total, 0))
    return total


def _refuse(function: str, x: Tensor, parts: int = 3) -> None:
    lead, _, frames, _ = signal_axes(function, "x", x, 3)
    fit(function, x.dtype, ("x", x, (*lead, parts, frames, BANDS)))


def _rows(x: Tensor, axes: int = 2) -> Array:
    """Parts (..., part, frame, 53) as rows of these, or values (..., frame) or (..., frame, 53)."""
    y = array(x)
    return y.reshape(-1, *y.shape[-1 - axes :])


@kernel
def _loudness(x: Array, n: Array, specific: Array) -> None:
    for row in range(x.shape[0]):
        for frame in range(x.shape[2]):
            tonal, noise, out = x[row, 0, frame], x[row, 1, frame], specific[row, frame]
            most = tonal[0] + noise[0]
            for band in range(out.size):
                v = tonal[band] + noise[band]
                most = v if v > most or v != v else most
            e, total = 0.2918 / (most + EPSILON) + 0.5459, 0.0
            for band in range(out.size):
                high, low = tonal[band] + 0.0, 0.5331 * noise[band]
                if high < low:
                    high, low = low, high
                ratio = low / max(high, EPSILON**2)
                ratio = ratio if ratio > EPSILON**2 or ratio != ratio else EPSILON**2
                value = high * (1 + ratio**e) ** (1 / e)
                out[band] = value
                total += value
            n[row, frame] = WIDTH * total


@kernel
def _tonality(x: Array, t: Array, hz: Array, specific: Array) -> None:
    for row in range(x.shape[0]):
        for frame in range(x.shape[2]):
            tonal, noise, out = x[row, 0, frame], x[row, 1, frame], specific[row, frame]
            at, total = 0, 0.0
            for band in range(out.size):
                total += noise[band]
                if tonal[band] > tonal[at] or tonal[band] != tonal[band]:
                    at = band
            seen = -np.expm1(-35 * (tonal[at] / (total + EPSILON) - 0.003))
            factor = TONALITY * (seen if seen > 0 or seen != seen else 0.0)
            for band in range(out.size):
                out[band] = factor * tonal[band]
            at = at if factor > 0 else 0
            t[row, frame], hz[row, frame] = out[at], x[row, 2, frame, at]


@kernel
def _total(specific: Array, out: Array) -> None:
    for row in range(out.shape[0]):
        for frame in range(out.shape[1]):
            total = 0.0
            for band in range(specific.shape[2]):
                total += specific[row, frame, band]
            out[row, frame] = WIDTH * total


@kernel
def _roughness(x: Array, r: Array, hz: Array, specific: Array) -> None:
    for row in range(x.shape[0]):
        for frame in range(x.shape[2]):
            given, out, at = x[row, 0, frame], specific[row, frame], 0
            for band in range(out.size):
                out[band] = given[band]
                if given[band] > given[at]:
                    at = band
            hz[row, frame] = x[row, 1, frame, at]
    _total(specific, r)
