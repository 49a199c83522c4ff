"""The share of each band and ear in loudness, tonality and roughness of ECMA-418-2."""

import numpy as np
from numpy.typing import NDArray

from amt_stream.dsp.design import OCTAVE, octave_midbands

LOWEST_HZ, HIGHEST_HZ = 31.5, 16_000.0
BARK = 0.5
"""Spacing of the bands of the model in Bark_HMS."""

LEAST_VALUE = 0.02
"""A quality of at most this many sone_HMS, asper, vacil_HMS or tu_HMS is inaudible, and which band
it is of is chance: none is named, and bands have no share."""


def band_limits(
    parts: int = 1, lowest_hz: float = LOWEST_HZ, highest_hz: float = HIGHEST_HZ
) -> NDArray[np.float64]:
    """Lowest, middle and highest frequency in Hz of octaves or parts of them (band, 3).

    Raises ValueError for frequencies that do not ascend, or outside 31.5 Hz to 16 kHz.
    """
    if not LOWEST_HZ <= lowest_hz < highest_hz <= HIGHEST_HZ:
        raise ValueError(
            f"bands from {lowest_hz:g} to {highest_hz:g} Hz: give two ascending frequencies "
            f"between {LOWEST_HZ:g} and {HIGHEST_HZ:g} Hz"
        )
    middle = octave_midbands(lowest_hz, highest_hz, parts)
    half = OCTAVE ** (0.5 / parts)
    return np.stack([middle / half, middle, middle * half], 1)


def band_weights(limits: NDArray[np.float64]) -> NDArray[np.float64]:
    """The part of each band of the model that lies in each of `limits` (53, band).

    Specific values count as even over half a Bark_HMS. The lowest of the bands has all lower
    frequencies too, the highest all higher ones.
    """
    from amt_stream.dsp.functional.ecma418.bands import BANDS, GROWTH, LOWEST_WIDTH

    edges = BARK * (0.5 + np.arange(BANDS + 1))
    inner = np.arcsinh(GROWTH / LOWEST_WIDTH * limits[1:, 0]) / GROWTH
    ends = np.concatenate([edges[:1], np.clip(inner, edges[0], edges[-1]), edges[-1:]])
    below = np.stack([np.clip((end - edges[:-1]) / np.diff(edges), 0, 1) for end in ends])
    return np.diff(below, axis=0).T


def binaural_parts(specific: NDArray[np.floating]) -> NDArray[np.float64]:
    """Specific loudness or roughness of both ears, as parts of each (ear, frame, band).

    In a band, the value of both ears is the root of the mean of both squares (ECMA-418-2:2025);
    an ear's part of it is that of its square. Of one channel it is the value itself.
    """
    square = np.square(np.nan_to_num(specific), dtype=np.float64)
    both = np.sqrt(square.mean(0))
    parts: NDArray[np.float64] = square / np.where(both > 0, len(square) * both, 1.0)
    return parts


def higher_parts(
    specific: NDArray[np.floating], value: NDArray[np.floating]
) -> NDArray[np.float64]:
    """Specific tonality (ear, frame, band) of the ear with the higher tonality (ear, frame).

    The other ear has none; where both are equal, each has half.
    """
    highest = np.nan_to_num(value) >= np.nan_to_num(value).max(0)
    of_ear = (highest / highest.sum(0))[..., None]
    parts: NDArray[np.float64] = np.nan_to_num(specific) * of_ear
    return parts


def as_shares(total: NDArray[np.float64]) -> NDArray[np.float64]:
    """Parts of 1 (ear, band) of a total; NaN if it is 0."""
    whole = total.sum()
    return total / whole if whole > 0 else np.full(total.shape, np.nan)
