"""Readings of the Moore family of models: short-term and long-term loudness."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from amt_stream.core.json_types import JsonDict
from amt_stream.dsp.scales import sone_to_phon
from amt_stream.meters.accumulators import LoudnessMeter, Maximum
from amt_stream.meters.accumulators.loudness import RISE_S
from amt_stream.meters.accumulators.percentiles import PERCENTS
from amt_stream.meters.accumulators.window import WINDOW
from amt_stream.meters.frames import Frames
from amt_stream.meters.rows.block import all_of
from amt_stream.meters.rows.column import (
    EXCEEDED,
    HIGHEST,
    QUANTITIES,
    RENEWED,
    Column,
    Meaning,
    counting,
    rising,
)
from amt_stream.meters.rows.readings import MeteredReadings, Summary

LOUDNESS = ("stl", "ltl")
EDGES = ("stl_low", "stl_high", "ltl_low", "ltl_high")
"""Outputs of a model with a level uncertainty."""

SETTLE_S = {"stl": 0.4, "ltl": 7.5}
"""Seconds after a fault. From 10 phon on, loudness 50 dB higher is up to 14,000 times 0.05 phon:
9.6 time constants of a release, of 30 ms and after that of 0.75 s."""
SETTLE_2002_S = {"stl": 0.6, "ltl": 20.0}
"""Settling time with releases of 50 ms and 2 s."""

WORDS = {"stl": "short-term", "ltl": "long-term"}
BOUNDS = {"low": ", lower bound", "high": ", upper bound"}

NOW = "How loud the sound is at this moment"
REMEMBERED = "How loud the sound is as it is remembered"
MOORE = "Both ears together, by the method of ISO 532-3 (Moore et al. 2016, 2018)."
ABOUT = {
    "stl": f"{NOW}: rises with 22 ms, falls with 30 ms. {MOORE}",
    "ltl": f"{REMEMBERED}: rises with 99 ms, falls with 0.75 s. {MOORE}",
}
GM2002 = "Both ears together: Glasberg & Moore (2002) on the constants of ANSI S3.4-2007."
ABOUT_2002 = {
    "stl": f"{NOW}: rises with 22 ms, falls with 50 ms. {GM2002}",
    "ltl": f"{REMEMBERED}: rises with 99 ms, falls with 2 s. {GM2002}",
}


class LoudnessReadings(MeteredReadings):
    """Short-term and long-term loudness of a model of the Moore family.

    prefix: prefix of all names
    edition: edition of the table from sone to phon, as in `sone_to_phon`
    band: whether the model has an uncertainty band
    settle_s, about: settling times after a fault, and descriptions, of short-term and long-term
        loudness
    """

    kept = (*MeteredReadings.kept, "_maxima")

    rise_s: ClassVar[Mapping[str, float]] = {"loudness": RISE_S}

    def __init__(
        self,
        model: str = "moore2016",
        prefix: str = "",
        edition: str = "iso532-3",
        band: bool = False,
        settle_s: Mapping[str, float] = SETTLE_S,
        about: Mapping[str, str] = ABOUT,
    ) -> None:
        self._prefix, self._edition = prefix, edition
        self._settle_s, self._about = settle_s, about
        # Columns name their model, while `Readings` is not made yet.
        self.model = model
        self._outputs = (*LOUDNESS, *EDGES) if band else LOUDNESS
        ordered = [
            (name, unit)
            for names in (self._outputs[:2], self._outputs[2:])
            for unit in QUANTITIES
            for name in names
        ]
        of_the_moment = [
            replace(
                self._made(name, unit, "instantaneous"),
                settle_s=settle_s[_base(name)],
                rise_s=RISE_S,
            )
            for name, unit in ordered
        ]
        maxima = [
            counting(self._made(name, unit, "maximum"), settle_s[_base(name)])
            for name, unit in ordered
        ]
        percentiles = [self._percentile(f"{prefix}ltl_n{p}_phon", str(p)) for p in PERCENTS]
        wanted = ("max_stl_sone", "max_stl_phon", "max_ltl_sone", "max_ltl_phon", "ltl_n5_phon")
        self.headlines = tuple(f"{prefix}{name}" for name in wanted)
        chosen = ("max_ltl_phon", "ltl_n5_phon", "ltl_n10_phon", "ltl_n50_phon", "ltl_n90_phon")
        self.of_interval = tuple(f"{prefix}{name}" for name in chosen)
        usual = [column.name for column in of_the_moment]
        usual += [f"{prefix}max_ltl_sone", f"{prefix}ltl_n5_phon"]
        super().__init__(model, [*of_the_moment, *maxima, *percentiles], usual)

    def named(self, name: str) -> Column | None:
        pattern = rf"{self._prefix}ltl_n(\d\d?)(?:_({WINDOW}))?_phon"
        found = re.fullmatch(pattern, name)
        if found is None:
            return None
        return self._percentile(name, found[1], found[2])

    def _made(self, name: str, unit: str, statistic: str) -> Column:
        """The column of an output, as it is or the highest."""
        base, _, bound = name.partition("_")
        now, about = statistic == "instantaneous", self._about[base]
        highest, prefix = "" if now else "max_", self._prefix
        if bound:
            label = f"{WORDS[base].capitalize()}{BOUNDS[bound]}"
            about = (
                f"The{BOUNDS[bound][1:]} that follows from the uncertainty of the level (k = 2). "
                f"{about}"
            )
            words = label, "", about
        elif now:
            words = f"{QUANTITIES[unit].capitalize()}, {WORDS[base]}", base.upper(), about
        else:
            words = f"Highest, {WORDS[base]}", f"{base.upper()} max", f"{HIGHEST} {about}"
        column = Meaning(_quantity(name, unit), statistic, *words).column(
            f"{prefix}{highest}{name}_{unit}", unit, self.model, None, None, ""
        )
        bound_of = f"{prefix}{highest}{base}_{unit}" if bound else ""
        return replace(column, bound_of=bound_of)

    def _percentile(self, name: str, percent: str, window: str | None = None) -> Column:
        meaning = Meaning(
            _quantity("ltl", "phon"),
            f"exceeded {int(percent)} % of the time",
            f"Exceeded {percent} % of time",
            f"LTL N{percent}",
            f"{EXCEEDED.format(percent=percent)} {self._about['ltl']}",
            RENEWED,
        )
        column = meaning.column(name, "phon", self.model, None, window, "")
        return rising(counting(column, self._settle_s["ltl"], window), RISE_S)

    def renew(self) -> None:
        names = [column.name.removeprefix(self._prefix) for column in self.columns]
        self._meters = [LoudnessMeter(columns=[n for n in names if n.startswith("ltl_n")])]
        self.reset()

    def reset(self) -> None:
        # Beside the maxima of the meter, which end where the table from sone to phon ends.
        self._maxima = {name: Maximum() for name in self._outputs}
        super().reset()

    def take(self, frames: Frames) -> NDArray[np.float64]:
        sone = {name: getattr(frames.values, name) for name in self._outputs}
        phon = dict(zip(sone, self._phon(np.array(list(sone.values()))), strict=True))
        counted = self._counted_of(frames)
        (meter,) = self.meters
        readings = meter.update(frames.time_s, phon["stl"], phon["ltl"], counted["ltl"])
        found: dict[str, object] = dict(zip(meter.columns, readings, strict=True))
        for name in self._outputs:
            found[f"{name}_sone"], found[f"{name}_phon"] = sone[name], phon[name]
            values, there = sone[name], counted[_base(name)]
            if self.paused or not all_of(there):
                values = np.where(there & (not self.paused), values, np.float32(np.nan))
            found[f"max_{name}_sone"] = self._maxima[name].add(frames.time_s, values)
        return self.stacked([self._column(column, found) for column in self.columns], frames)

    def _counted_of(self, frames: Frames) -> dict[str, NDArray[np.bool_]]:
        """Which frames count for short-term and for long-term loudness."""
        slowest = self.counted(frames, max(self._settle_s.values()))
        if all_of(slowest):
            return dict.fromkeys(self._settle_s, slowest)
        return {name: self.counted(frames, s) for name, s in self._settle_s.items()}

    def tail(self, frames: Frames) -> None:
        if self.paused:
            return
        counted = self._counted_of(frames)
        for name in self._outputs:
            sone = getattr(frames.values, name)
            there = counted[_base(name)]
            self._maxima[name].add(frames.time_s, np.where(there, sone, np.float32(np.nan)))
        stl, ltl = (self._phon(getattr(frames.values, name)) for name in LOUDNESS)
        self._meters[0].tail(frames.time_s, stl, ltl, counted["ltl"])

    def _column(self, column: Column, found: JsonDict) -> Any:
        """A column (n,) from results by name; a maximum in phon comes from sone."""
        name = column.name.removeprefix(self._prefix)
        if name in found:
            return found[name]
        sone = found[name.removesuffix("phon") + "sone"]
        return np.where(np.isfinite(sone), self._phon(np.maximum(sone, 0.0)), np.nan)

    def summary(self) -> Summary:
        summary: Summary = {}
        for name, maximum in self._maxima.items():
            sone = maximum.known
            summary[f"max_{name}_sone"] = sone
            summary[f"max_{name}_phon"] = None if sone is None else float(self._phon(sone))
            if name in LOUDNESS:
                summary[f"t_max_{name}_s"] = maximum.time_s
        own = {*summary, "measured_s", "excluded_s"}
        summary |= {name: v for name, v in self._meters[0].reading().items() if name not in own}
        return {f"{self._prefix}{name}": value for name, value in summary.items()}

    def _phon(self, sone: Any) -> Any:
        return sone_to_phon(sone, self._edition)


def moore2016_readings(channels: int, band: bool = False) -> LoudnessReadings:
    """Make the readings of Moore2016, which has both ears for any number of channels."""
    return LoudnessReadings(band=band)


def gm2002_readings(channels: int) -> LoudnessReadings:
    """Make the readings of Glasberg2002, summed over both ears."""
    return LoudnessReadings("gm2002", "gm2002_", "ansi-s3.4", False, SETTLE_2002_S, ABOUT_2002)


def _base(name: str) -> str:
    """The loudness of a bound."""
    return name.partition("_")[0]


def _quantity(name: str, unit: str) -> str:
    output, _, bound = name.partition("_")
    return f"{WORDS[output]} {QUANTITIES[unit]}{BOUNDS.get(bound, '')}"
