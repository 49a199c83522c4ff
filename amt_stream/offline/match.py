"""The gains that make sounds equally loud, by one of several measures of loudness."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import numpy as np

from amt_stream.core.safe_text import brief
from amt_stream.core.words import counted
from amt_stream.dsp.channel_layout import Layout
from amt_stream.engine.sources import SourceError
from amt_stream.meters import catalog
from amt_stream.meters.calibration import Calibration
from amt_stream.meters.presets import Preset
from amt_stream.offline.measure import MeasureSettings, measure
from amt_stream.offline.whole_sound import WholeSound, read_whole

if TYPE_CHECKING:
    import torch

LARGEST_GAIN_DB = 60.0
TOLERANCE = 0.01
"""Difference of two levels, in phon, LU or dB, at which sounds count as equally loud.

Of loudness in sone, a level is 10 for each doubling, so this is 0.07 %.
"""
MOST_TRIALS = 12


@dataclass(frozen=True)
class LoudnessMeasure:
    """A single value of a whole sound, whose level grows by about 1 for each dB of gain.

    model: name in the catalog
    key: name in the summary of the model
    """

    model: str
    key: str
    title: str
    unit: str

    @property
    def in_pascal(self) -> bool:
        """Whether the model takes sound pressure, so that the calibration counts."""
        return catalog.any_in_pascal([self.model])

    @property
    def in_sone(self) -> bool:
        """Whether the value is a loudness, not a level."""
        return self.unit.startswith("sone")

    def level(self, value: float) -> float:
        """A level, of which a doubling of loudness adds 10; minus infinity for no loudness."""
        if not self.in_sone:
            return value
        return 10 * math.log2(value) if value > 0 else -math.inf

    def value(self, level: float) -> float:
        """The inverse of `level`."""
        return 2 ** (level / 10) if self.in_sone else level

    @property
    def has_field(self) -> bool:
        """Whether the value depends on the sound field."""
        return "field" in catalog.entry(self.model).settings


MEASURES = {
    "ltl": LoudnessMeasure("moore2016", "max_ltl_phon", "highest long-term loudness", "phon"),
    "zwicker": LoudnessMeasure("zwicker", "zwicker_n5_phon", "N5 of ISO 532-1", "phon"),
    "ecma": LoudnessMeasure(
        "ecma_loudness", "ecma_loudness_mean_sone", "loudness of ECMA-418-2", "sone_HMS"
    ),
    "lufs": LoudnessMeasure("bs1770", "integrated_lufs", "integrated loudness", "LUFS"),
    "laeq": LoudnessMeasure("spl", "laeq_db", "LAeq", "dB"),
}
"""The measures that `match` knows, by name."""


@dataclass(frozen=True)
class Match:
    """The gain that makes a sound as loud as the reference.

    gain_db: 0 for the reference itself
    before, after: the loudness without and with this gain, in the unit of the measure
    peak_dbfs: the highest sample with this gain; above 0 where integer formats would clip
    calibrated: whether the calibration of the sound is known
    remark: what makes its loudness uncertain: what is wrong with its length, that it is clipped; ""
    cut_off: whether sound is missing at its end
    """

    gain_db: float
    before: float
    after: float
    peak_dbfs: float
    calibrated: bool
    remark: str = ""
    cut_off: bool = False


def match(
    sounds: "Sequence[str | Path | np.ndarray | torch.Tensor]",
    fs: int | None = None,
    by: str = "ltl",
    calibration: float | Calibration | None = None,
    field: str = "free",
    channels: Sequence[int] | None = None,
    layout: Layout | str | None = None,
) -> list[Match]:
    """The gain of each sound that makes it as loud as the first one.

    Loudness models are not linear: the gain is searched until both values differ by at most 0.01,
    or 0.07 % of those in sone.

    sounds: two or more arrays or paths, as for `measure`
    fs: sampling rate of arrays in whole hertz; files have their own
    by: "ltl" (highest long-term loudness, Moore et al. 2016), "zwicker" (N5, ISO 532-1), "ecma"
        (power mean, ECMA-418-2), "lufs" (integrated loudness, ITU-R BS.1770), or "laeq"
    calibration: level in dB SPL of a full-scale sine, or a `Calibration`; without it, that in the
        comment of a file, if there is one
    field: "free", "diffuse" or "eardrum", for loudness models
    channels, layout: of every sound, as for `measure`

    Raises SourceError for invalid sound, and ValueError for an unknown measure, for a sound without
    loudness, and if no gain of at most 60 dB suffices.

    >>> tone = 0.1 * np.sin(2 * np.pi * 1000 * np.arange(48000) / 48000)
    >>> _, quieter = match([tone, tone / 2], 48000, by="laeq", calibration=100.0)
    >>> round(quieter.gain_db, 2)
    6.02
    """
    found = []
    given = MatchSettings(fs=fs, by=by, calibration=calibration, field=field)
    given |= {"channels": channels, "layout": layout}
    for one in match_each(sounds, **given):
        if isinstance(one, Exception):
            raise one
        found.append(one)
    return found


class MatchSettings(TypedDict, total=False):
    """Keyword arguments of `match`."""

    fs: int | None
    by: str
    calibration: float | Calibration | None
    field: str
    channels: Sequence[int] | None
    layout: Layout | str | None


def match_each(
    sounds: Sequence[Any], **settings: Unpack[MatchSettings]
) -> Iterator[Match | Exception]:
    """Yield what `match` gives; for a sound that cannot be matched, the reason.

    Raises as `match` does for an unknown measure, and for a reference that cannot be used.
    """
    by = settings.get("by", "ltl")
    if by not in MEASURES:
        raise ValueError(f"by is {brief(repr(by))}: there are {', '.join(MEASURES)}")
    if len(sounds) < 2:
        count = counted(len(sounds), "sound")
        raise ValueError(f"{count}: give the reference, and at least one more")
    search = _Search(MEASURES[by], settings)
    yield search.reference(sounds[0])
    for place, given in enumerate(sounds[1:], 2):
        try:
            yield search.matched(given, place)
        except (SourceError, ValueError) as error:
            yield error


class _Search:
    """Searches gains; the reference comes first."""

    def __init__(self, of: LoudnessMeasure, settings: MatchSettings) -> None:
        self._of, self._field, self._target = of, settings.get("field", "free"), math.nan
        self._read = partial(
            read_whole,
            fs=settings.get("fs"),
            calibration=settings.get("calibration"),
            models=Preset((of.model,)).most_channels,
            channels=settings.get("channels"),
            layout=settings.get("layout"),
        )

    def reference(self, given: Any) -> Match:
        sound, self._target = self._heard(given, 1)
        value = self._of.value(self._target)
        return _found(sound, 0.0, value, value)

    def matched(self, given: Any, place: int) -> Match:
        """The gain of a sound. Raises SourceError, and ValueError if there is none."""
        of, target = self._of, self._target
        sound, before = self._heard(given, place)
        gain_db, after = _gain_to(target, before, partial(_level, sound, of, self._field))
        if abs(after - target) > TOLERANCE:
            raise ValueError(
                f"{_name(given, place)} has {of.value(after):.2f} {of.unit} after {gain_db:+.1f} "
                f"dB of gain, and the reference {of.value(target):.2f}: they cannot be made "
                "equally loud"
            )
        values = of.value(before), of.value(after)
        return _found(sound, gain_db, *values)

    def _heard(self, given: Any, place: int) -> tuple[WholeSound, float]:
        of, sound = self._of, self._read(given)
        level = _level(sound, of, self._field, 0.0)
        if level == -math.inf or (of.unit == "phon" and level <= 0):
            name = _name(given, place)
            raise ValueError(f"{name} has no {of.title}: it is silent, too weak or too short")
        return sound, level


def _found(sound: WholeSound, gain_db: float, before: float, after: float) -> Match:
    known = sound.calibrated, sound.remark, sound.cut_off
    return Match(gain_db, before, after, sound.peak_dbfs + gain_db, *known)


def _name(given: object, place: int) -> str:
    return str(given) if isinstance(given, str | Path) else f"sound {place}"


def _level(sound: WholeSound, of: LoudnessMeasure, field: str, gain_db: float) -> float:
    """The level of the loudness of a sound with a gain; minus infinity if there is none."""
    samples, levels = sound.samples, sound.calibrations
    chosen: MeasureSettings = {"field": field} if of.has_field else {}
    if of.in_pascal:
        levels = [replace(c, full_scale_db_spl=c.full_scale_db_spl + gain_db) for c in levels]
    else:
        samples = samples * np.float32(10 ** (gain_db / 20))
        chosen["layout"] = sound.layout
    value: float | None = measure(samples, sound.fs, of.model, levels, **chosen).summary[of.key]
    return -math.inf if value is None else of.level(value)


def _gain_to(
    target: float, before: float, level_at: Callable[[float], float]
) -> tuple[float, float]:
    """The gain in dB at which the level is nearest to `target`, and the level there.

    Levels in phon and dB grow by about 1 for each dB, so the first guess is near; then a straight
    line between the nearest gains below and above gives the next one.
    """
    tried = {0.0: before}
    for _ in range(MOST_TRIALS):
        gain_db = min(tried, key=lambda one: abs(tried[one] - target))
        if abs(tried[gain_db] - target) <= TOLERANCE:
            break
        low = max((g for g, level in tried.items() if level < target), default=None)
        high = min((g for g, level in tried.items() if level > target), default=None)
        if low is None or high is None:
            following = gain_db + target - tried[gain_db]
        else:
            share = (target - tried[low]) / (tried[high] - tried[low])
            following = low + min(max(share, 0.05), 0.95) * (high - low)
        following = min(max(following, -LARGEST_GAIN_DB), LARGEST_GAIN_DB)
        if following in tried:
            break
        tried[following] = level_at(following)
    gain_db = min(tried, key=lambda one: abs(tried[one] - target))
    return gain_db, tried[gain_db]
