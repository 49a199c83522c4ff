"""Columns and statistics of sharpness, from Zwicker's loudness."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from amt_stream.core.saved_state import Resumable
from amt_stream.meters.accumulators import SharpnessMeter
from amt_stream.meters.accumulators.percentiles import PERCENTS
from amt_stream.meters.accumulators.window import WINDOW
from amt_stream.meters.accumulators.zwicker import RISE_S
from amt_stream.meters.rows.column import (
    EXCEEDED,
    HIGHEST,
    RENEWED,
    Column,
    Meaning,
    counting,
    rising,
)
from amt_stream.meters.rows.readings import Summary, by_side, higher, of_side

NAME = re.compile(
    r"sharpness(?:_(?P<weighting>aures|bismarck))?"
    rf"(?:_(?P<statistic>mean|max|s(?P<percent>\d\d?)(?:_(?P<window>{WINDOW}))?))?"
    r"(?P<side>_left|_right)?_acum"
)
STEMS = ("sharpness", "sharpness_aures", "sharpness_bismarck")
STATISTICS = ("", "_mean", "_max", *(f"_s{p}" for p in PERCENTS))
AFTER = {"aures": "Aures", "bismarck": "von Bismarck"}
WORDS = {
    None: (
        "instantaneous",
        "Sharpness",
        "S",
        "How much of the sound is high; narrow noise at 1 kHz has 1 acum.",
    ),
    "mean": ("mean", "Average sharpness", "S mean", "The mean of all that was counted."),
    "max": ("maximum", "Highest sharpness", "Smax", HIGHEST),
}
"""Statistic, label, symbol and sentence; percentiles apart."""

Weighting = Literal["din", "aures", "bismarck"]


class Sharpnesses(Resumable):
    """Sharpness with the weightings of columns, and its meters for each channel.

    columns: names of the columns

    It is computed from core loudness, only if there are such columns.
    """

    kept = ("_meters",)

    def __init__(self, columns: Sequence[str], channels: int) -> None:
        self._parts = {}
        wanted: dict[Weighting, dict[str, None]] = {}
        for name in columns:
            found = NAME.fullmatch(name)
            assert found is not None
            weighting: Weighting = found["weighting"] or "din"  # type: ignore[assignment]
            of_meter = f"{found['statistic']}_acum" if found["statistic"] else None
            of_weighting = wanted.setdefault(weighting, {})
            if of_meter is not None:
                of_weighting[of_meter] = None
            self._parts[name] = (weighting, of_meter, found["side"])
        self._meters = {
            weighting: [SharpnessMeter(list(names)) for _ in range(channels)]
            for weighting, names in wanted.items()
        }
        if not wanted:
            return
        from amt_stream.dsp.stages import Sharpness, ZwickerLoudness

        self._tables = ZwickerLoudness().tables()
        self._stages = {weighting: Sharpness(weighting) for weighting in wanted}

    def has(self, column: str) -> bool:
        """Whether the weighting of a column is computed."""
        found = NAME.fullmatch(column)
        return found is not None and (found["weighting"] or "din") in self._meters

    def pause(self, paused: bool) -> None:
        for meter in self._all():
            meter.paused = paused

    def reset(self) -> None:
        for meter in self._all():
            meter.reset()

    def skip(self, count: int) -> None:
        for meter in self._all():
            meter.skip(count)

    def _all(self) -> list[SharpnessMeter]:
        return [meter for meters in self._meters.values() for meter in meters]

    def take(
        self,
        time_s: NDArray[np.float64],
        core: NDArray[np.floating] | None,
        counted: NDArray[np.bool_],
    ) -> dict[str, NDArray[np.floating]]:
        """The columns (n,) by name, from core loudness (channel, n, 20)."""
        if not self._parts:
            return {}
        each: dict[tuple[str, str | None], list[NDArray[np.floating]]] = {}
        for weighting, channels in self._acum(core).items():
            each[weighting, None] = list(channels)
            for meter, acum in zip(self._meters[weighting], channels, strict=True):
                columns = meter.update(time_s, acum, counted)
                for name, values in zip(meter.columns, columns, strict=True):
                    each.setdefault((weighting, name), []).append(values)
        return {
            name: of_side(each[weighting, of_meter], side)
            for name, (weighting, of_meter, side) in self._parts.items()
        }

    def tail(
        self,
        time_s: NDArray[np.float64],
        core: NDArray[np.floating] | None,
        counted: NDArray[np.bool_],
    ) -> None:
        """Take core loudness (channel, n, 20) after the end of the sound."""
        if not self._parts:
            return
        for weighting, channels in self._acum(core).items():
            for meter, acum in zip(self._meters[weighting], channels, strict=True):
                meter.tail(time_s, np.where(counted, acum, np.nan))

    def _acum(self, core: NDArray[np.floating] | None) -> dict[Weighting, NDArray[np.floating]]:
        """Sharpness (channel, n) by weighting; NaN without a value."""
        if core is None:
            raise ValueError(
                "sharpness needs core loudness, which these frames do not have: take them "
                "from ZwickerTimeVarying"
            )
        import torch

        from amt_stream.dsp.functional.threads import one_thread
        from amt_stream.dsp.functional.zwicker import loudness_pattern

        with torch.inference_mode():
            _, specific = loudness_pattern(torch.from_numpy(np.float32(core)), self._tables, True)
            assert specific is not None
            with one_thread(specific):
                found = {w: stage.transform(specific).numpy() for w, stage in self._stages.items()}
        return {w: np.where(acum == 0, np.nan, acum) for w, acum in found.items()}

    def summary(self) -> Summary:
        summary: Summary = {}
        for weighting, meters in self._meters.items():
            stem = "sharpness" if weighting == "din" else f"sharpness_{weighting}"
            readings = [meter.reading() for meter in meters]
            for name in readings[0]:
                if not name.endswith("_acum"):
                    continue
                for side, value in by_side([reading[name] for reading in readings]):
                    summary[f"{stem}_{name.removesuffix('_acum')}{side}_acum"] = value
        return summary


def sharpness_column(name: str, channels: int, settle_s: float) -> Column | None:
    """The column of this name for a number of channels, or None.

    settle_s: settling time after a fault in seconds
    """
    found = NAME.fullmatch(name)
    if found is None or (found["side"] and channels < 2):
        return None
    after, percent = AFTER.get(found["weighting"], ""), found["percent"]
    if percent:
        statistic, symbol = f"exceeded {percent} % of the time", f"S{percent}"
        label = f"Sharpness exceeded {percent} % of time"
        about = EXCEEDED.format(percent=percent)
    else:
        statistic, label, symbol, about = WORDS[found["statistic"]]
    method = f"By the weighting of {after}." if after else "By the method of DIN 45692."
    words = f"{label} {after}".rstrip(), symbol, f"{about} {method}", RENEWED if percent else ""
    meaning = Meaning("sharpness" + (f" ({after})" if after else ""), statistic, *words)
    given = name, "acum", "zwicker", found["side"], found["window"], higher(channels)
    column = rising(replace(meaning.column(*given), settle_s=settle_s), RISE_S)
    return counting(column, settle_s, found["window"]) if found["statistic"] else column
