"""Which bands make a sound loud, rough and tonal, and what less in each of them would do."""

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from amt_stream.core.json_types import JsonDict
from amt_stream.core.safe_text import brief
from amt_stream.dsp.design import OCTAVE, nominal_midband, octave_midbands
from amt_stream.dsp.functional.ecma418 import GROWTH, LOWEST_WIDTH
from amt_stream.meters.calibration import Calibration
from amt_stream.meters.presets import Preset
from amt_stream.offline.jobs import each
from amt_stream.offline.measure import Measured, measure
from amt_stream.offline.whole_sound import WholeSound, read_whole

if TYPE_CHECKING:
    import torch

WIDTHS = {"octave": 1, "third": 3}
"""Parts of an octave that a band may be, by name."""
LESS_DB = 3.0
LOWEST_HZ, HIGHEST_HZ = 31.5, 16_000.0
CROSSOVER = 1 / 12
"""Octaves on each side of a band's edge over which its weight rises."""
LEAST_S = 1.0
START_S = 0.32
"""Until then the standard counts nothing of roughness, and less of the others."""
STEP_MS = 20
RINGS_S = 1.0
"""Silence after the sound, so that its end does not ring into its beginning."""
HALF_DB = 20 * math.log10(2)


@dataclass(frozen=True)
class Quality:
    """A quality of a whole sound.

    model: name in the catalog
    key: name in the summary of the model
    specific: output of the model that has the values in bands, if there is one
    """

    model: str
    key: str
    unit: str
    specific: str | None = None


QUALITIES = {
    "loudness": Quality("ecma", "ecma_loudness_mean_sone", "sone_HMS", "ecma_specific_loudness"),
    "roughness": Quality("ecma", "ecma_roughness_r10_asper", "asper", "ecma_specific_roughness"),
    "tonality": Quality("ecma", "ecma_tonality_mean_tu", "tu_HMS", "ecma_specific_tonality"),
    "laeq": Quality("spl", "laeq_db", "dB"),
}
"""What `explain` explains, by name."""

MODELS = tuple(dict.fromkeys(of.model for of in QUALITIES.values()))


@dataclass(frozen=True)
class Explanation:
    """What each band of a sound contributes, and what 3 dB less in it would do.

    bands: lowest, middle and highest frequency of each band in Hz, (band, 3)
    values: the single value of each quality of the sound, by its name; None if there is none
    shares: shares of loudness, roughness and tonality of each band, (channel, band): parts of 1, or
        NaN if the sound has nothing of it
    shares_by_second: the same of each second of the sound, (second, channel, band)
    changes: change of each value, in its unit, with 3 dB less in a band, (band,)
    calibrated: whether the calibration of the sound is known
    took_s: time that the measurements took
    """

    bands: NDArray[np.float64]
    values: dict[str, float | None]
    shares: dict[str, NDArray[np.float64]]
    shares_by_second: dict[str, NDArray[np.float64]]
    changes: dict[str, NDArray[np.float64]]
    calibrated: bool
    took_s: float

    @property
    def band_names(self) -> list[str]:
        """Nominal frequencies of the bands, such as "31.5"."""
        return [f"{nominal_midband(f):g}" for f in self.bands[:, 1]]

    def to_dict(self) -> JsonDict:
        """Everything as JSON has it; None for NaN."""
        return {
            "less_db": LESS_DB,
            "units": {name: of.unit for name, of in QUALITIES.items()},
            "values": self.values,
            "bands_hz": self.bands.tolist(),
            "shares": {name: _listed(v) for name, v in self.shares.items()},
            "changes": {name: _listed(v) for name, v in self.changes.items()},
            "shares_by_second": {name: _listed(v) for name, v in self.shares_by_second.items()},
            "calibrated": self.calibrated,
            "took_s": round(self.took_s, 3),
        }


def _listed(values: NDArray[np.float64]) -> object:
    numbers = values.round(6).astype(object)
    numbers[np.isnan(values)] = None
    return numbers.tolist()


def explain(
    sound: "str | Path | np.ndarray | torch.Tensor",
    fs: int | None = None,
    calibration: float | Calibration | None = None,
    bands: str = "octave",
    field: str = "free",
    lowest_hz: float = LOWEST_HZ,
    highest_hz: float = HIGHEST_HZ,
    jobs: int = 1,
) -> Explanation:
    """Find the share of each band in a sound's qualities, and measure it with 3 dB less there.

    Loudness, roughness and tonality are those of ECMA-418-2. Shares are those of their specific
    values, averaged over time. For the changes, each band in turn is weakened by a filter without
    delay, in all channels, and the whole sound is measured again. The filters of all bands together
    weaken everything by 3 dB. The lowest band has all lower frequencies too, the highest all above.

    sound: an array or path, as for `measure`, of one or two channels and at least 1 s
    fs: sampling rate of an array in whole hertz; a file has its own
    calibration: level in dB SPL of a full-scale sine, or a `Calibration`; without it, that in the
        comment of a file, if there is one
    bands: "octave" or "third"
    field: "free" or "diffuse"
    lowest_hz, highest_hz: middle of the lowest and of the highest band; each band costs a run
    jobs: number of processes

    Raises SourceError for invalid sound, and ValueError for unknown bands and a sound too short.
    """
    began = time.monotonic()
    if bands not in WIDTHS:
        raise ValueError(f"bands is {brief(repr(bands))}: there are {', '.join(WIDTHS)}")
    whole = read_whole(sound, fs, calibration, Preset(MODELS).most_channels)
    if len(whole.samples) < LEAST_S * whole.fs:
        raise ValueError(
            f"the sound has {len(whole.samples) / whole.fs:.2g} s, of which roughness does not "
            f"count the first {START_S:g} s: give {LEAST_S:g} s or more"
        )
    limits = _bands(whole.fs, WIDTHS[bands], lowest_hz, highest_hz)
    specific = [of.specific for of in QUALITIES.values() if of.specific is not None]
    measured = _measure(whole, field, specific)
    values = _values(measured)
    shares, by_second = {}, {}
    for name, of in QUALITIES.items():
        if of.specific is not None:
            shares[name], by_second[name] = _shares(measured, of.specific, limits)
            if not values[name]:
                # What the specific values have is rounding.
                shares[name].fill(np.nan)
                by_second[name].fill(np.nan)
    changes = {name: np.full(len(limits), np.nan) for name in QUALITIES}
    again = each(partial(_with_less, whole, field, limits), range(len(limits)), jobs)
    for band, less in enumerate(again):
        for name, before in values.items():
            after = less[name]
            if before is not None and after is not None:
                changes[name][band] = after - before
    took_s = time.monotonic() - began
    return Explanation(limits, values, shares, by_second, changes, whole.calibrated, took_s)


def _bands(fs: int, parts: int, lowest_hz: float, highest_hz: float) -> NDArray[np.float64]:
    """Lowest, middle and highest frequency of each band (band, 3)."""
    if not LOWEST_HZ <= lowest_hz < highest_hz <= HIGHEST_HZ:
        raise ValueError(
            f"bands from {lowest_hz:g} to {highest_hz:g} Hz: give two ascending frequencies "
            f"between {LOWEST_HZ:g} and {HIGHEST_HZ:g} Hz"
        )
    middle = octave_midbands(lowest_hz, highest_hz, parts)
    half = OCTAVE ** (0.5 / parts)
    middle = middle[middle / half < fs / 2]
    return np.stack([middle / half, middle, middle * half], 1)


def _measure(sound: WholeSound, field: str, outputs: list[str]) -> Measured:
    # Half as large, so that a filter drives no sample beyond full scale, and just as loud.
    louder = [
        replace(c, full_scale_db_spl=c.full_scale_db_spl + HALF_DB) for c in sound.calibrations
    ]
    half = sound.samples * np.float32(0.5)
    return measure(half, sound.fs, MODELS, louder, field=field, outputs=outputs, step_ms=STEP_MS)


def _values(measured: Measured) -> dict[str, float | None]:
    return {name: measured.summary[of.key] for name, of in QUALITIES.items()}


def _with_less(
    sound: WholeSound, field: str, bands: NDArray[np.float64], band: int
) -> dict[str, float | None]:
    """The values of a sound with 3 dB less in a band."""
    return _values(_measure(weakened(sound, bands, band), field, []))


def weakened(sound: WholeSound, bands: NDArray[np.float64], band: int) -> WholeSound:
    """A sound with 3 dB less in one of `bands` (band, 3), by a filter of zero phase."""
    length = len(sound.samples) + round(RINGS_S * sound.fs)
    frequencies: NDArray[np.float64] = np.fft.rfftfreq(length, 1 / sound.fs).astype(np.float64)
    weight = np.ones(len(frequencies)) if band == 0 else _above(bands[band, 0], frequencies)
    if band < len(bands) - 1:
        weight = weight - _above(bands[band, 2], frequencies)
    gain = 10 ** (-LESS_DB / 20 * weight)
    lines = np.fft.rfft(sound.samples, length, axis=0) * gain[:, None]
    samples = np.fft.irfft(lines, length, axis=0)[: len(sound.samples)]
    return replace(sound, samples=samples.astype(np.float32))


def _above(edge_hz: float, frequencies: NDArray[np.float64]) -> NDArray[np.float64]:
    """0 below an edge, 1 above it, and in between half a period of a cosine over log frequency."""
    octaves = np.log2(np.maximum(frequencies, 1e-3) / edge_hz)
    rise: NDArray[np.float64] = 0.5 + 0.5 * np.sin(np.pi / 2 * np.clip(octaves / CROSSOVER, -1, 1))
    return rise


def _shares(
    measured: Measured, output: str, bands: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Shares (channel, band) of the whole sound, and (second, channel, band) of each second.

    The values of the model's bands count as even over their half Bark_HMS.
    """
    values = np.nan_to_num(measured[output].astype(np.float64))
    bark = measured.axes[output][-1].values
    edges = np.append(bark - 0.25, bark[-1] + 0.25)
    inner = np.arcsinh(GROWTH / LOWEST_WIDTH * bands[1:, 0]) / GROWTH
    ends = np.concatenate([edges[:1], np.clip(inner, edges[0], edges[-1]), edges[-1:]])
    below = np.stack([np.clip((end - edges[:-1]) / np.diff(edges), 0, 1) for end in ends])
    in_bands = values @ np.diff(below, axis=0).T
    counted = measured.time_s >= START_S
    seconds = np.stack(
        [_of_one(in_bands[counted & chosen]) for chosen in _seconds(measured.time_s)]
    )
    return _of_one(in_bands[counted]), seconds


def _seconds(time_s: NDArray[np.float64]) -> Iterator[NDArray[np.bool_]]:
    number = np.ceil(time_s - 1e-6) - 1
    for second in range(int(number[-1]) + 1):
        yield number == second


def _of_one(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Values (row, channel, band) as shares of their sum (channel, band); NaN for a sum of 0."""
    total = values.sum(0)
    whole = total.sum()
    return total / whole if whole > 0 else np.full(total.shape, np.nan)
