"""Readings of Zwicker's loudness and sharpness, of each channel and of the higher one."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from amt_stream.core.importing import refuse_without_torch
from amt_stream.dsp.scales import zwicker_phon
from amt_stream.meters.accumulators.statistics import CountingRule
from amt_stream.meters.frames import Frames
from amt_stream.meters.names import sides_of
from amt_stream.meters.rows.column import Column
from amt_stream.meters.rows.models.annoyance import annoyance_column
from amt_stream.meters.rows.models.quantity import (
    ColumnWords,
    Quantity,
    QuantityReadings,
    Unit,
    Values,
)

if TYPE_CHECKING:
    from amt_stream.meters.rows.models.sharpness import SharpnessOfCores, Weighting

SETTLE_S = 1.5
"""Seconds after a fault until a loudness level that has fallen by 50 dB is within 0.05 phon: 0.7 s,
of a tone of 25 Hz, whose filter rings, 1.2 s."""

RISE_S = 0.5
"""Seven time constants of the slower of the two low-passes that loudness passes, 70 ms."""

RATE = 500

LOUDNESS = Quantity(
    of="n",
    noun="{noun}",
    units={"sone": Unit("sone"), "phon": Unit("phon", zwicker_phon)},
    words={
        "now": ColumnWords(
            "zwicker_n{side}_{unit}",
            "instantaneous",
            "{Noun}",
            "N",
            "How loud the sound is at this moment: low-passes of 3.5 ms and 70 ms.",
        ),
        "max": ColumnWords.maximum("zwicker_nmax{side}_{unit}", "Highest loudness", "Nmax"),
        "exceeded": ColumnWords.percentile(
            "zwicker_n{percent}{window}{side}_{unit}", "Exceeded {percent} % of time", "N{percent}"
        ),
    },
    method="By the method of ISO 532-1 for sounds that vary in time.",
    settle_s=SETTLE_S,
    # Within 0.02 % of the exact value; below 0.001 sone is 0.
    rule=CountingRule(RATE, low=-10.0, high=30.0, width=0.0005, least=1e-9, rise_s=RISE_S),
)


def _sharpness(weighting: str, after: str) -> Quantity:
    """Sharpness by a weighting, that of DIN 45692 or of an author."""
    of = f"sharpness_{weighting}" if after else "sharpness"
    form, by = f"{of}{{}}{{{{side}}}}_acum".format, f" {after}" * bool(after)
    return Quantity(
        of,
        f"sharpness ({after})" if after else "sharpness",
        {"acum": Unit("acum")},
        {
            "now": ColumnWords(
                form(""),
                "instantaneous",
                f"Sharpness{by}",
                "S",
                "How much of the sound is high; narrow noise at 1 kHz has 1 acum.",
            ),
            "mean": ColumnWords(
                form("_mean"),
                "mean",
                f"Average sharpness{by}",
                "S mean",
                "The mean of all that was counted.",
            ),
            "max": ColumnWords.maximum(form("_max"), f"Highest sharpness{by}", "Smax"),
            "exceeded": ColumnWords.percentile(
                form("_s{percent}{window}"),
                f"Sharpness exceeded {{percent}} % of time{by}",
                "S{percent}",
            ),
        },
        f"By the weighting of {after}." if after else "By the method of DIN 45692.",
        SETTLE_S,
        # Within 0.0025 acum of the exact value.
        CountingRule(RATE, low=0.0, high=500.0, width=0.005, rise_s=RISE_S, averages=True),
        optional=True,
    )


WEIGHTINGS: "dict[str, Weighting]" = {
    "sharpness": "din",
    "sharpness_aures": "aures",
    "sharpness_bismarck": "bismarck",
}
SHARPNESS = (
    _sharpness("din", ""),
    _sharpness("aures", "Aures"),
    _sharpness("bismarck", "von Bismarck"),
)


class ZwickerReadings(QuantityReadings):
    """Zwicker's loudness: the higher one of two channels, and each of them.

    Sharpness is computed and in the summary only if it has a column.
    """

    rise_s: ClassVar[Mapping[str, float]] = {"loudness": RISE_S, "sharpness": RISE_S}

    headlines = ("zwicker_nmax_sone", "zwicker_n5_sone", "zwicker_n5_phon", "zwicker_n50_sone")
    of_interval = (*headlines, "zwicker_n10_sone", "zwicker_n90_sone")

    def __init__(self, channels: int) -> None:
        usual = [
            LOUDNESS.name("now", side=side, unit=unit)
            for side in sides_of(channels)
            for unit in LOUDNESS.units
        ]
        usual += ["zwicker_nmax_sone", "zwicker_n5_sone"]
        super().__init__("zwicker", channels, (LOUDNESS, *SHARPNESS), usual)

    def named(self, name: str) -> Column | None:
        return super().named(name) or annoyance_column(name, self._channels)

    def renew(self) -> None:
        super().renew()
        wanted = {of: WEIGHTINGS[of] for of in self._active if of in WEIGHTINGS}
        self._sharpness = _sharpness_of(wanted) if wanted else None

    def values(self, frames: Frames) -> Values:
        loudness = {LOUDNESS.of: frames.values.n}
        if self._sharpness is None:
            return loudness
        return loudness | self._sharpness(frames.values.core)


def _sharpness_of(weightings: "Mapping[str, Weighting]") -> "SharpnessOfCores":
    refuse_without_torch("sharpness")
    from amt_stream.meters.rows.models.sharpness import SharpnessOfCores

    return SharpnessOfCores(weightings)
