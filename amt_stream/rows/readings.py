"""What is told of each model beside the others: columns while it runs, a summary at the end."""

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from amt_stream import catalog
from amt_stream.frames import Fault, Frames
from amt_stream.metering import (
    PERCENTS,
    Histogram,
    LoudnessMeter,
    Maximum,
    ProgrammeLoudness,
    SoundLevelMeter,
)
from amt_stream.metering.rolling import level_db
from amt_stream.metering.sound_level import LEVELS
from amt_stream.rows.row import EDGES
from amt_stream.scales import sone_to_phon, zwicker_phon

Summary = dict[str, float | None]
SIDES = ("left", "right")
LOUDNESS = ("stl", "ltl")


class Readings(Protocol):
    """The readings of one model.

    `take` gives those of some frames, (n, column), NaN or an infinity where there is none, and
    counts them unless `paused`. `summary` tells what was counted since the last `reset`, of which
    `headlines` are what a person looks for. Neither touches a filter.
    """

    columns: tuple[str, ...]
    headlines: tuple[str, ...]
    paused: bool

    def take(self, frames: Frames) -> NDArray[np.floating]: ...

    def summary(self) -> Summary: ...

    def reset(self) -> None: ...


def heard(frames: Frames) -> NDArray[np.bool_]:
    """Which frames have heard only sound that was there."""
    return (frames.fault & (Fault.GAP | Fault.NON_FINITE)) == 0


class LoudnessReadings:
    """Short-term and long-term loudness of a model of the Moore family.

    prefix: of all names; edition: of the table from sone to phon, as of `sone_to_phon`
    band: the model gives their band too, from the uncertainty of the level
    """

    def __init__(self, prefix: str = "", edition: str = "iso532-3", band: bool = False) -> None:
        self._names = (*LOUDNESS, *EDGES) if band else LOUDNESS
        self.columns = tuple(
            f"{prefix}{name}_{unit}"
            for names in (self._names[:2], self._names[2:])
            for unit in ("sone", "phon")
            for name in names
        )
        wanted = ("max_stl_sone", "max_stl_phon", "max_ltl_sone", "max_ltl_phon", "ltl_n5_phon")
        self.headlines = tuple(f"{prefix}{name}" for name in wanted)
        self.paused = False
        self._prefix, self._edition = prefix, edition
        self.reset()

    def reset(self) -> None:
        # Beside the maxima of the meter, which end where the table from sone to phon ends.
        self._maxima = {name: Maximum() for name in self._names}
        self._meter = LoudnessMeter()

    def take(self, frames: Frames) -> NDArray[np.floating]:
        sone = np.stack([getattr(frames.values, name) for name in self._names], axis=1)
        phon = sone_to_phon(sone, self._edition)
        there = heard(frames) & (not self.paused)
        for maximum, column in zip(self._maxima.values(), sone.T, strict=True):
            maximum.add(frames.time_s[there], column[there])
        self._meter.paused = self.paused
        self._meter.update(frames.time_s, phon[:, 0], phon[:, 1], there)
        return np.concatenate([sone[:, :2], phon[:, :2], sone[:, 2:], phon[:, 2:]], axis=1)

    def summary(self) -> Summary:
        told: Summary = {}
        for name, maximum in self._maxima.items():
            sone = None if maximum.time_s is None else maximum.value
            told[f"max_{name}_sone"] = sone
            told[f"max_{name}_phon"] = _or_none(self._phon, sone)
            if name in LOUDNESS:
                told[f"t_max_{name}_s"] = maximum.time_s
        reading = self._meter.reading()
        told["event_max_ltl_phon"] = reading["event_max_ltl_phon"]
        told |= {f"ltl_n{p}_phon": reading[f"ltl_n{p}_phon"] for p in PERCENTS}
        return {f"{self._prefix}{name}": value for name, value in told.items()}

    def _phon(self, sone: float) -> float:
        return float(sone_to_phon(sone, self._edition))


class ZwickerReadings:
    """Loudness after Zwicker: of each channel, and the higher of two, which stands for both."""

    headlines: tuple[str, ...] = (
        "zwicker_nmax_sone",
        "zwicker_n5_sone",
        "zwicker_n5_phon",
        "zwicker_n50_sone",
    )

    def __init__(self, channels: int) -> None:
        sides = [f"_{side}" for side in SIDES] if channels == 2 else []
        self.columns = tuple(
            f"zwicker_n{side}_{unit}" for side in ["", *sides] for unit in ("sone", "phon")
        )
        self.paused = False
        self._channels = channels
        self.reset()

    def reset(self) -> None:
        self._maxima = [Maximum() for _ in range(self._channels)]
        # Of doublings of loudness, so narrow that N5 is within 0.02 % of exact.
        self._histograms = [Histogram(-10.0, 10.0, 0.0005) for _ in range(self._channels)]

    def take(self, frames: Frames) -> NDArray[np.floating]:
        sone = frames.values.n
        phon = zwicker_phon(sone)
        there = heard(frames) & (not self.paused)
        doublings = np.log2(np.maximum(sone, np.float32(1e-9)))
        for channel, maximum in enumerate(self._maxima):
            maximum.add(frames.time_s[there], sone[channel, there])
            self._histograms[channel].add(doublings[channel, there])
        rows = [sone.max(axis=0), phon.max(axis=0)]
        if len(sone) == 2:
            rows += [sone[0], phon[0], sone[1], phon[1]]
        return np.stack(rows, axis=1)

    def summary(self) -> Summary:
        found = {"nmax": [m.value if m.time_s is not None else None for m in self._maxima]}
        for p in PERCENTS:
            found[f"n{p}"] = [_or_none(np.exp2, h.exceeded(p)) for h in self._histograms]
        told: Summary = {}
        for name, sone in found.items():
            for side, value in by_side(sone):
                told[f"zwicker_{name}{side}_sone"] = value
                told[f"zwicker_{name}{side}_phon"] = _or_none(zwicker_phon, value)
        return told


class ProgrammeReadings:
    """Momentary and short-term loudness of a programme; integrated, range and peak at the end."""

    columns: tuple[str, ...] = ("momentary_lufs", "short_term_lufs")
    headlines: tuple[str, ...] = (
        "integrated_lufs",
        "lra_lu",
        "true_peak_dbtp",
        "max_momentary_lufs",
        "max_short_term_lufs",
    )

    def __init__(self, channels: int = 2) -> None:
        self.paused = False
        self._meter = ProgrammeLoudness()

    def reset(self) -> None:
        self._meter.reset()

    def take(self, frames: Frames) -> NDArray[np.floating]:
        found = frames.values
        self._meter.paused = self.paused
        readings = self._meter.update(
            found.energy, found.true_peak, found.sample_peak, heard(frames)
        )
        return readings.T

    def summary(self) -> Summary:
        left_out = (*self.columns, "measured_s", "excluded_s")
        return {name: v for name, v in self._meter.reading().items() if name not in left_out}


class SoundLevelReadings:
    """Sound levels: the higher of two channels, which stands for both, and LAF of each."""

    headlines: tuple[str, ...] = (
        "laeq_db",
        "lafmax_db",
        "lcpeak_db",
        "l10_db",
        "l50_db",
        "l90_db",
    )

    def __init__(self, channels: int) -> None:
        sides = [f"laf_{side}_db" for side in SIDES] if channels == 2 else []
        self.columns: tuple[str, ...] = (*(f"{name}_db" for name in LEVELS), *sides)
        self.paused = False
        self._meters = [SoundLevelMeter() for _ in range(channels)]

    def reset(self) -> None:
        for meter in self._meters:
            meter.reset()

    def take(self, frames: Frames) -> NDArray[np.floating]:
        there = heard(frames)
        for meter, *values in zip(self._meters, *frames.values, strict=True):
            meter.paused = self.paused
            meter.update(*values, there)
        level = level_db(np.where(there, frames.values.power, np.nan))
        sides = level[:, 0] if len(level) == 2 else level[:0, 0]
        return np.concatenate([level.max(axis=0), sides]).T

    def summary(self) -> Summary:
        readings = [meter.reading() for meter in self._meters]
        told: Summary = {}
        for name in readings[0]:
            stem = name.removesuffix("_db")
            if name.endswith("_s") or name in self.columns:
                continue
            for side, value in by_side([reading[name] for reading in readings]):
                told[f"{stem}{side}_db"] = value
        return told


def moore2016_readings(channels: int, band: bool = False) -> LoudnessReadings:
    """Of Moore2016, which hears both ears whatever the channels."""
    return LoudnessReadings(band=band)


def gm2002_readings(channels: int) -> LoudnessReadings:
    """Of Glasberg2002, in sum over both ears."""
    return LoudnessReadings("gm2002_", "ansi-s3.4")


def readings_of(names: Iterable[str], channels: int, band: bool = False) -> dict[str, Readings]:
    """Those of several models, for so many channels; with the band of the one that gives it."""
    found = {}
    for name in names:
        entry = catalog.entry(name)
        options = {"band": True} if band and "uncertainty_db" in entry.takes else {}
        found[name] = entry.load("readings")(channels, **options)
    return found


def by_side(values: Sequence[float | None]) -> list[tuple[str, float | None]]:
    """The higher of two channels, then each with its side; of one channel just that."""
    there = [v for v in values if v is not None]
    highest = max(there) if there else None
    if len(values) == 1:
        return [("", highest)]
    return [("", highest), *((f"_{side}", v) for side, v in zip(SIDES, values, strict=True))]


def _or_none(function: Callable[[float], float], value: float | None) -> float | None:
    return None if value is None else float(function(value))
