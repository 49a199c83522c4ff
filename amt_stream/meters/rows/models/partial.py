"""Readings of partial loudness: a target in a background. Experimental."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from amt_stream.meters.accumulators.statistics import CountingRule
from amt_stream.meters.frames import Frames
from amt_stream.meters.rows.column import Column
from amt_stream.meters.rows.models.loudness import RATE, RISE_S, SETTLE_2002_S
from amt_stream.meters.rows.models.quantity import (
    ColumnWords,
    Quantity,
    QuantityReadings,
    Unit,
    Values,
)

METHOD = "Experimental: by the equations of Moore, Glasberg & Baer (1997), without listening data."
LEAST_SONE = 0.003
"""Loudness of a sound at the threshold of hearing; the share that a softer one loses says nothing.
"""

SETTLE_S = SETTLE_2002_S["ltl"]
AUDIBLE_SETTLE_S = 6.0
"""Until a mean of time constant 0.5 s has forgotten a sound 50 dB louder to 0.05 dB, 12 of them."""

NOT_AUDIBLE_DB = -99.9
"""What is lower has no target."""


def _loudness(of: str, words: str, about: str, settle_s: float, heard: bool = True) -> Quantity:
    """A loudness in sone, the present one and the highest."""
    name = of if of.startswith("partial") else of.removesuffix("_ltl")
    stem, _, time = name.partition("_")
    highest = f"{stem}_max_{time}_sone" if time else f"{stem}_max_sone"
    label = words[:1].upper() + words[1:]
    return Quantity(
        of,
        words,
        {"sone": Unit("sone")},
        {
            "now": ColumnWords(f"{name}_sone", "instantaneous", label, "", about),
            "max": ColumnWords.maximum(highest, f"Highest {words}", ""),
        },
        METHOD,
        settle_s,
        CountingRule(RATE, rise_s=RISE_S),
        near="audible_db" if heard else "",
    )


LATE = "long-term, both ears"
LOUDNESS = ("partial_stl", "partial_ltl", "target_ltl", "background_ltl")
QUANTITIES = (
    _loudness(
        "partial_stl",
        "partial loudness, short-term",
        "How loud the target is in the background at this moment, both ears.",
        SETTLE_2002_S["stl"],
    ),
    _loudness(
        "partial_ltl",
        "partial loudness, long-term",
        "How loud the target is in the background as it is remembered, both ears.",
        SETTLE_S,
    ),
    _loudness(
        "target_ltl",
        "loudness of the target",
        f"How loud the target would be without the background, {LATE}.",
        SETTLE_S,
        heard=False,
    ),
    _loudness(
        "background_ltl",
        "loudness of the background",
        f"How loud the background would be without the target, {LATE}.",
        SETTLE_S,
        heard=False,
    ),
    Quantity(
        "lost_share",
        "share of its loudness that a target loses in the background",
        {"": Unit("")},
        {
            "now": ColumnWords(
                "lost_share",
                "instantaneous",
                "Share of loudness lost",
                "",
                "1 - partial loudness over that of the target alone, both long-term; 0 to 1.",
                "none where the target alone is not audible",
            )
        },
        METHOD,
        SETTLE_S,
    ),
    Quantity(
        "audible_db",
        "audibility of a target above its masked threshold",
        {"db": Unit("dB")},
        {
            "now": ColumnWords(
                "audible_{unit}",
                "instantaneous",
                "Audibility of the target",
                "",
                "How far the target is above what the background masks, where it is farthest, of "
                "the mean of the last second.",
                "renewed every 50 ms; none without a target",
            ),
            "max": ColumnWords.maximum("audible_max_{unit}", "Highest audibility", ""),
            "exceeded": ColumnWords.percentile(
                "audible_n{percent}{window}_{unit}", "Audibility exceeded {percent} % of time", ""
            ),
        },
        METHOD,
        AUDIBLE_SETTLE_S,
        CountingRule(RATE, -100.0, 150.0, 0.05),
    ),
    Quantity(
        "audible_hz",
        "frequency at which a target is most audible",
        {"hz": Unit("Hz")},
        {
            "now": ColumnWords(
                "audible_{unit}",
                "instantaneous",
                "Most audible at",
                "",
                "Center of the auditory filter in which the target is farthest above what the "
                "background masks.",
                "none without a target",
            )
        },
        METHOD,
        AUDIBLE_SETTLE_S,
    ),
)


STORED = "over a stored background: right only if it is steady"


class PartialReadings(QuantityReadings):
    """Of `PartialLoudness`, for both ears.

    model: the model, which knows whether its background is a stored one
    """

    rise_s: ClassVar[Mapping[str, float]] = {"loudness": RISE_S}
    headlines = ("partial_max_ltl_sone", "audible_max_db", "audible_n50_db")
    of_interval = (*headlines, "target_max_sone", "background_max_sone")

    def __init__(self, channels: int, model: Any = None) -> None:
        self._over_stored = getattr(model, "stored", False)
        usual = [quantity.name("now", unit=next(iter(quantity.units))) for quantity in QUANTITIES]
        super().__init__("partial", 1, QUANTITIES, [*usual, "partial_max_ltl_sone"])

    def _columns_offered(self) -> list[Column]:
        offered = super()._columns_offered()
        if not self._over_stored:
            return offered
        notes = ["; ".join(filter(None, (one.note, STORED))) for one in offered]
        return [replace(one, note=note) for one, note in zip(offered, notes, strict=True)]

    def values(self, frames: Frames) -> Values:
        y = frames.values
        there, heard = y.audible_db > NOT_AUDIBLE_DB, y.target_ltl >= LEAST_SONE
        share = 1 - y.partial_ltl / np.where(heard, y.target_ltl, 1.0)
        values = {of: getattr(y, of) for of in LOUDNESS}
        values["lost_share"] = np.where(heard, np.clip(share, 0.0, 1.0), np.nan)
        for of in ("audible_db", "audible_hz"):
            values[of] = np.where(there, getattr(y, of), np.nan)
        return {of: one[None] for of, one in values.items()}
