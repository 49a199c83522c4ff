"""Readings of the Moore family of models: short-term and long-term loudness."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from amt_stream.dsp.scales import sone_to_phon
from amt_stream.meters.accumulators import Events
from amt_stream.meters.accumulators.histogram import HIGHEST, LOWEST
from amt_stream.meters.accumulators.statistics import CountingRule
from amt_stream.meters.frames import Frames
from amt_stream.meters.rows.column import LONG_TERM, QUANTITIES, Column
from amt_stream.meters.rows.models.quantity import (
    ColumnWords,
    Quantity,
    QuantityReadings,
    Unit,
    Values,
)
from amt_stream.meters.rows.readings import Summary

LOUDNESS = ("stl", "ltl")
EDGES = ("stl_low", "stl_high", "ltl_low", "ltl_high")
"""Outputs of a model with a level uncertainty."""

LEVEL = LONG_TERM[-1]
"""Long-term loudness level, whose percentiles are counted: classes are even on that scale."""

RATE = 1000
RISE_S = 0.5
"""Five time constants of the rise of long-term loudness, after which it is within 1 %."""

LEVEL_RULE = CountingRule(RATE, LOWEST, HIGHEST, 0.05, rise_s=RISE_S)

EVENT_PHON = 20.0
"""Short-term loudness level at which an event of sound begins."""

SETTLE_S = {"stl": 0.4, "ltl": 7.5}
"""Seconds after a fault. From 10 phon on, loudness 50 dB higher is up to 14,000 times 0.05 phon:
9.6 time constants of a release, of 30 ms and after that of 0.75 s."""
SETTLE_2002_S = {"stl": 0.6, "ltl": 20.0}
"""Settling time with releases of 50 ms and 2 s."""

WORDS = {"stl": "short-term", "ltl": "long-term"}
BOUNDS = {"low": "lower bound", "high": "upper bound"}

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


class LoudnessReadings(QuantityReadings):
    """Short-term and long-term loudness of a model of the Moore family.

    prefix: prefix of all names
    edition: edition of the table from sone to phon, as in `sone_to_phon`
    band: whether the model has an uncertainty band
    settle_s, about: settling times after a fault, and descriptions, of short-term and long-term
        loudness
    """

    kept = (*QuantityReadings.kept, "_events")

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
        phon = Unit("phon", partial(_phon_of, edition=edition))
        loudness = {
            name: _loudness(prefix, name, phon, about[name], settle_s[name]) for name in LOUDNESS
        }
        bounds = [_bound(prefix, name, loudness) for name in (EDGES if band else ())]
        level = _level(prefix, about["ltl"], settle_s["ltl"])
        wanted = ("max_stl_sone", "max_stl_phon", "max_ltl_sone", "max_ltl_phon", "ltl_n5_phon")
        self.headlines = tuple(f"{prefix}{name}" for name in wanted)
        chosen = ("max_ltl_phon", "ltl_n5_phon", "ltl_n10_phon", "ltl_n50_phon", "ltl_n90_phon")
        self.of_interval = tuple(f"{prefix}{name}" for name in chosen)
        usual = [
            one.name("now", unit=unit)
            for names in (loudness.values(), bounds)
            for unit in ("sone", "phon")
            for one in names
        ]
        usual += [f"{prefix}max_ltl_sone", f"{prefix}ltl_n5_phon"]
        super().__init__(model, 1, [*loudness.values(), *bounds, level], usual)

    def ordered(self, offered: list[Column]) -> list[Column]:
        kinds, units = ("now", "max", "exceeded"), ("sone", "phon")

        def place(column: Column) -> tuple[int, bool, int]:
            return kinds.index(column.kind), bool(column.bound_of), units.index(column.unit)

        return sorted(offered, key=place)

    def values(self, frames: Frames) -> Values:
        values = {of: getattr(frames.values, of)[None] for of in self._active if of != LEVEL}
        self._levels = self._phon(np.concatenate([values["stl"], values["ltl"]]))
        return values | {LEVEL: self._levels[1:]}

    def take(self, frames: Frames) -> NDArray[np.float64]:
        found = super().take(frames)
        if not self.paused:
            self._add_events(frames)
        return found

    def tail(self, frames: Frames) -> None:
        super().tail(frames)
        if not self.paused:
            self._add_events(frames)

    def _add_events(self, frames: Frames) -> None:
        counted = self.counted(frames, self._active[LEVEL].settle_s)
        counted &= ~np.isnan(self._levels[1])
        self._events.add(frames.time_s, *np.where(counted, self._levels, np.nan))

    def reset(self) -> None:
        super().reset()
        self._events = Events(EVENT_PHON)

    def renew(self) -> None:
        super().renew()
        self._events = Events(EVENT_PHON)

    def _summary_of(self, quantity: Quantity, kind: str) -> Summary:
        found = super()._summary_of(quantity, kind)
        if quantity.of == LEVEL:
            last = self._events.last
            highest = None if last is None else last.maximum
            return {f"{self._prefix}event_max_ltl_phon": highest} | found
        if quantity.of in LOUDNESS:
            time_s = self._statistics.time_of_maximum_s(quantity.of)
            found[f"{self._prefix}t_max_{quantity.of}_s"] = time_s
        return found

    def _phon(self, sone: Any) -> Any:
        return sone_to_phon(sone, self._edition)


def moore2016_readings(channels: int, band: bool = False) -> LoudnessReadings:
    """Make the readings of Moore2016, which has both ears for any number of channels."""
    return LoudnessReadings(band=band)


def gm2002_readings(channels: int) -> LoudnessReadings:
    """Make the readings of Glasberg2002, summed over both ears."""
    return LoudnessReadings("gm2002", "gm2002_", "ansi-s3.4", False, SETTLE_2002_S, ABOUT_2002)


def _loudness(prefix: str, of: str, phon: Unit, about: str, settle_s: float) -> Quantity:
    """Short-term or long-term loudness."""
    return Quantity(
        of,
        f"{WORDS[of]} {{noun}}",
        {"sone": Unit("sone"), "phon": phon},
        {
            "now": ColumnWords(
                f"{prefix}{of}_{{unit}}", "instantaneous", f"{{Noun}}, {WORDS[of]}", of.upper()
            ),
            "max": ColumnWords.maximum(
                f"{prefix}max_{of}_{{unit}}", f"Highest, {WORDS[of]}", f"{of.upper()} max"
            ),
        },
        about,
        settle_s,
        CountingRule(RATE, rise_s=RISE_S),
    )


def _bound(prefix: str, of: str, loudness: Mapping[str, Quantity]) -> Quantity:
    base, _, which = of.partition("_")
    main, bound = loudness[base], BOUNDS[which]
    about = f"The {bound} that follows from the uncertainty of the level (k = 2)."
    label = f"{WORDS[base].capitalize()}, {bound}"
    words = {
        kind: ColumnWords(f"{prefix}{before}{of}_{{unit}}", statistic, label, "", about)
        for kind, before, statistic in (("now", "", "instantaneous"), ("max", "max_", "maximum"))
    }
    return replace(main, of=of, noun=f"{main.noun}, {bound}", words=words, bound_of=main)


def _level(prefix: str, about: str, settle_s: float) -> Quantity:
    """Percentiles of long-term loudness level, within 0.025 phon of the exact value."""
    form = f"{prefix}ltl_n{{percent}}{{window}}_phon"
    return Quantity(
        LEVEL,
        f"long-term {QUANTITIES['phon']}",
        {"phon": Unit("phon")},
        {
            "exceeded": ColumnWords.percentile(
                form, "Exceeded {percent} % of time", "LTL N{percent}"
            )
        },
        about,
        settle_s,
        LEVEL_RULE,
    )


def _phon_of(sone: Any, edition: str) -> Any:
    """Loudness level of a maximum too, which is infinite before the first value."""
    return np.where(np.isfinite(sone), sone_to_phon(np.maximum(sone, 0.0), edition), np.nan)
