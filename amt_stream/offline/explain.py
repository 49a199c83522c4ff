"""Which bands make a sound loud, rough and tonal in each ear, and what less there would do."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from amt_stream.core.json_types import JsonDict
from amt_stream.core.safe_text import brief
from amt_stream.dsp.channel_layout import Layout
from amt_stream.dsp.design import nominal_midband
from amt_stream.meters.calibration import Calibration
from amt_stream.meters.frames import Frames
from amt_stream.meters.names import SIDES
from amt_stream.meters.presets import Preset
from amt_stream.meters.rows import JoinedRows, readings_of
from amt_stream.meters.rows.models import band_shares
from amt_stream.offline.jobs import each
from amt_stream.offline.measure import Report, measure
from amt_stream.offline.whole_sound import WholeSound, read_whole

if TYPE_CHECKING:
    import torch

WIDTHS = {"octave": 1, "third": 3}
"""Parts of an octave that a band may be, by name."""
LESS_DB = 3.0
CROSSOVER = 1 / 12
"""Octaves on each side of a band's edge over which its weight rises."""
LEAST_S = 1.0
START_S = 0.32
"""Until then the standard counts nothing of roughness, and less of the others."""
STEP_MS = 1000
RINGS_S = 1.0
"""Silence after the sound, so that its end does not ring into its beginning."""
HALF_DB = 20 * math.log10(2)
BOTH = "both"


@dataclass(frozen=True)
class Quality:
    """A quality of a whole sound: its name in a summary, and its unit."""

    key: str
    unit: str


QUALITIES = {
    "loudness": Quality("ecma_loudness_mean_sone", "sone_HMS"),
    "roughness": Quality("ecma_roughness_r10_asper", "asper"),
    "tonality": Quality("ecma_tonality_mean_tu", "tu_HMS"),
    "laeq": Quality("laeq_db", "dB"),
}
"""What `explain` explains, by name."""

SHARED = ("loudness", "roughness", "tonality")
"""Those with specific values, of which bands have shares."""


@dataclass(frozen=True)
class Explanation:
    """What each band of each ear contributes to a sound, and what 3 dB less there would do.

    bands: lowest, middle and highest frequency of each band in Hz, (band, 3)
    values: the single value of each quality of the sound, of both ears, by its name; None if there
        is none
    shares: shares of loudness, roughness and tonality of each band, (ear, band): parts of 1 of the
        value of both ears, or NaN if the sound has at most 0.02 of it
    shares_by_second: the same of each second of the sound, (second, ear, band)
    changes: change of each value, in its unit, with 3 dB less in a band, (place, band)
    calibrated: whether the calibration of the sound is known
    took_s: time that the measurements took
    remark: what makes its values uncertain: what is wrong with its length, that it is clipped; ""
    cut_off: whether sound is missing at its end
    """

    bands: NDArray[np.float64]
    values: dict[str, float | None]
    shares: dict[str, NDArray[np.float64]]
    shares_by_second: dict[str, NDArray[np.float64]]
    changes: dict[str, NDArray[np.float64]]
    calibrated: bool
    took_s: float
    remark: str = ""
    cut_off: bool = False

    @property
    def band_names(self) -> list[str]:
        """Nominal frequencies of the bands, such as "31.5"."""
        return [f"{nominal_midband(f):g}" for f in self.bands[:, 1]]

    @property
    def places(self) -> tuple[str, ...]:
        """Where there is less, in `changes`: in both ears, left, right; of one channel in both."""
        return (BOTH, *SIDES) if len(self.changes["laeq"]) > 1 else (BOTH,)

    @property
    def effects(self) -> dict[str, NDArray[np.float64]]:
        """`changes` in percent, of LAeq in dB; NaN where there is nothing that could change."""
        percent = {
            name: 1.0 if QUALITIES[name].unit == "dB" else 100 / value if value else math.nan
            for name, value in self.values.items()
        }
        return {name: percent[name] * change for name, change in self.changes.items()}

    def to_dict(self) -> JsonDict:
        """Everything as JSON has it; None for NaN."""
        return {
            "less_db": LESS_DB,
            "units": {name: of.unit for name, of in QUALITIES.items()},
            "values": self.values,
            "bands_hz": self.bands.tolist(),
            "places": list(self.places),
            "shares": {name: _listed(v) for name, v in self.shares.items()},
            "changes": {name: _listed(v) for name, v in self.changes.items()},
            "shares_by_second": {name: _listed(v) for name, v in self.shares_by_second.items()},
            "calibrated": self.calibrated,
            "took_s": round(self.took_s, 3),
            "remark": self.remark,
            "cut_off": self.cut_off,
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
    lowest_hz: float = band_shares.LOWEST_HZ,
    highest_hz: float = band_shares.HIGHEST_HZ,
    jobs: int = 1,
    report: Report = lambda done, runs: None,
    channels: Sequence[int] | None = None,
    layout: Layout | str | None = None,
) -> Explanation:
    """Find the share of each band and ear in a sound's qualities, and those with 3 dB less there.

    Loudness, roughness and tonality are those of ECMA-418-2. Shares are those of their specific
    values, averaged over time: of both ears together (`binaural_parts`), and of tonality at each
    time those of the ear with the higher one. For the changes, each band in turn is weakened by a
    filter without delay, and the whole sound is measured again: with less in both channels, and in
    each alone. The filters of all bands together weaken everything by 3 dB. The lowest band has all
    lower frequencies too, the highest all above.

    sound: an array or path, as for `measure`, of at least 1 s
    fs: sampling rate of an array in whole hertz; a file has its own
    calibration: level in dB SPL of a full-scale sine, or a `Calibration`; without it, that in the
        comment of a file, if there is one
    bands: "octave" or "third"
    field: "free" or "diffuse"
    lowest_hz, highest_hz: middle of the lowest and of the highest band; each band costs a run
    jobs: number of processes
    report: called after each run, with the number of runs so far and of all
    channels, layout: as for `measure`

    Raises SourceError for invalid sound, and ValueError for unknown bands and a sound too short.
    """
    began = time.monotonic()
    if bands not in WIDTHS:
        raise ValueError(f"bands is {brief(repr(bands))}: there are {', '.join(WIDTHS)}")
    models = Preset(("ecma",)).most_channels
    whole = read_whole(sound, fs, calibration, models, channels, layout)
    if len(whole.samples) < LEAST_S * whole.fs:
        raise ValueError(
            f"the sound has {len(whole.samples) / whole.fs:.2g} s, of which roughness does not "
            f"count the first {START_S:g} s: give {LEAST_S:g} s or more"
        )
    limits = band_shares.band_limits(WIDTHS[bands], lowest_hz, highest_hz)
    limits = limits[limits[:, 0] < whole.fs / 2]
    run = _run(whole, field)
    report(1, len(limits) + 1)
    ears = range(whole.samples.shape[1])
    values = _values(whole, [run for _ in ears])
    shares, by_second = _shares(run, band_shares.band_weights(limits))
    for name in SHARED:
        if (values[name] or 0.0) <= band_shares.LEAST_VALUE:
            shares[name].fill(np.nan)
            by_second[name].fill(np.nan)
    places = [{*ears}, *({ear} for ear in ears)][: 2 * len(ears) - 1]
    changes = {name: np.full((len(places), len(limits)), np.nan) for name in QUALITIES}
    again = each(partial(_with_less, whole, field, limits, run, places), range(len(limits)), jobs)
    for band, found in enumerate(again):
        report(band + 2, len(limits) + 1)
        for place, less in enumerate(found):
            for name, before in values.items():
                after = less[name]
                if before is not None and after is not None:
                    changes[name][place, band] = after - before
    took_s = time.monotonic() - began
    known = whole.calibrated, took_s, whole.remark, whole.cut_off
    return Explanation(limits, values, shares, by_second, changes, *known)


class _MeasuredSound(NamedTuple):
    """Frames of all metrics of a sound, and the LAeq of each of its channels in dB."""

    frames: list[Frames]
    laeq_db: list[float | None]


def _run(sound: WholeSound, field: str) -> _MeasuredSound:
    from amt_stream.offline.analysis import ArrayRecording, analyze

    # Half as large, so that a filter drives no sample beyond full scale, and just as loud.
    louder = [
        replace(c, full_scale_db_spl=c.full_scale_db_spl + HALF_DB) for c in sound.calibrations
    ]
    half, channels = sound.samples * np.float32(0.5), sound.samples.shape[1]
    models = Preset(("ecma",), {"field": field}).models(sound.fs, channels)
    recording = ArrayRecording(half, sound.fs)
    frames = [_slim(one) for one in analyze(recording, models, louder, tail=True)]
    columns = [f"laeq_{side}_db" for side in SIDES] if channels == 2 else ["laeq_db"]
    summary = measure(half, sound.fs, "spl", louder, columns=columns, step_ms=STEP_MS).summary
    return _MeasuredSound(frames, [summary[name] for name in columns])


def _slim(frames: Frames) -> Frames:
    """Without fluctuation strength, which is a third of the memory."""
    values = frames.values
    none = np.broadcast_to(np.float32(0), values.specific_f.shape)
    return replace(frames, values=values._replace(f=none[..., 0], specific_f=none))


def _values(sound: WholeSound, runs: Sequence[_MeasuredSound]) -> dict[str, float | None]:
    """The single values of a sound whose channels are those of several runs."""
    (readings,) = readings_of(["ecma"], len(runs)).values()
    readings.choose([])
    duration_s = len(sound.samples) / sound.fs
    rows = JoinedRows({"ecma": readings}, STEP_MS, sound.fs, duration_s=duration_s)
    for of_each in zip(*(run.frames for run in runs), strict=True):
        first = of_each[0].values
        fields = (
            np.stack([one.values[k][c] for c, one in enumerate(of_each)]) for k in range(len(first))
        )
        rows(replace(of_each[0], values=type(first)(*fields)))
    levels = [run.laeq_db[channel] for channel, run in enumerate(runs)]
    known = [level for level in levels if level is not None]
    summary = rows.summary() | {"laeq_db": max(known) if known else None}
    return {name: summary[of.key] for name, of in QUALITIES.items()}


def _with_less(
    sound: WholeSound,
    field: str,
    bands: NDArray[np.float64],
    run: _MeasuredSound,
    places: "Sequence[set[int]]",
    band: int,
) -> list[dict[str, float | None]]:
    """The values of a sound with 3 dB less in a band, of the channels of each place."""
    less = _run(weakened(sound, bands, band), field)
    channels = range(sound.samples.shape[1])
    return [_values(sound, [less if c in place else run for c in channels]) for place in places]


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
    run: _MeasuredSound, weights: NDArray[np.float64]
) -> tuple[dict[str, NDArray[np.float64]], dict[str, NDArray[np.float64]]]:
    """Shares (ear, band) of the whole sound, and (second, ear, band) of each second."""
    totals: dict[str, dict[int, NDArray[np.float64]]] = {name: {} for name in SHARED}
    for frames in run.frames:
        if frames.after_end:
            continue
        values, counted = frames.values, frames.time_s >= START_S
        seconds = np.ceil(frames.time_s - 1e-6).astype(int) - 1
        parts = {
            "loudness": band_shares.binaural_parts(values.specific_n),
            "roughness": band_shares.binaural_parts(values.specific_r),
            "tonality": band_shares.higher_parts(values.specific_t, values.t),
        }
        for second in np.unique(seconds[counted]).tolist():
            there = counted & (seconds == second)
            for name, of_frames in parts.items():
                found = of_frames[:, there].sum(1) @ weights
                totals[name][second] = totals[name].get(second, 0.0) + found
    by_second = {name: np.stack([*found.values()]) for name, found in totals.items()}
    whole = {name: band_shares.as_shares(found.sum(0)) for name, found in by_second.items()}
    return whole, {
        name: np.stack([*map(band_shares.as_shares, v)]) for name, v in by_second.items()
    }
