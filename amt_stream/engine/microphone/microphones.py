"""Assignment of a source's channels to microphones."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral, Real

from amt_stream.core.safe_text import NAME_RULE, fits_tables
from amt_stream.engine.microphone.channels import refuse_more_than_two
from amt_stream.engine.sources import Source, SourceError
from amt_stream.meters.calibration import Calibration, one_each, uncalibrated


@dataclass(frozen=True)
class Microphone:
    """One of several microphones that an engine measures separately; two channels are two ears.

    channels: one or two channel numbers, counted from 1
    name: for readings and events; by default its channels, such as "3" or "1+2"
    calibration: one, or one for each ear; by default that of the engine
    gain_db: gain applied before a model; to compensate for an amplifier that was turned up after
        the calibration, give a negative gain
    """

    channels: tuple[int, ...]
    name: str = ""
    calibration: Calibration | Sequence[Calibration] | None = None
    gain_db: float = 0.0

    def __post_init__(self) -> None:
        refuse_no_gain(self.gain_db)
        channels: object = self.channels
        if isinstance(channels, str) or not isinstance(channels, Sequence) or not channels:
            raise TypeError(f"the channels of a microphone are {channels!r}: give (1,), or (1, 2)")
        object.__setattr__(self, "channels", tuple(channels))
        if not self.name:
            object.__setattr__(self, "name", "+".join(map(str, channels)))
        name: object = self.name
        if not (isinstance(name, str) and fits_tables(name)):
            raise ValueError(f"the name of a microphone is {name!r}: {NAME_RULE}")


def refuse_no_gain(gain_db: object) -> None:
    """Raise ValueError unless `gain_db` is a finite number."""
    if isinstance(gain_db, bool) or not (isinstance(gain_db, Real) and math.isfinite(gain_db)):
        raise ValueError(f"gain_db is {gain_db!r}: give a number of decibels")


def microphones_of_source(
    given: int | Sequence[Microphone | Sequence[int]], source: Source
) -> tuple[Microphone, ...]:
    """The requested microphones: a list, or a number of equal ones with one or two channels each.

    Raises ValueError or SourceError for microphones that the source does not have.
    """
    asked: object = given
    if type(asked) is not bool and isinstance(asked, Integral):
        asked = _even(int(asked), source)
    if isinstance(asked, str) or not isinstance(asked, Sequence) or not asked:
        raise TypeError(
            f"microphones is {given!r}: give their number, or the channels of each, as "
            "[(1, 2), (3,)]"
        )
    microphones = tuple(one if isinstance(one, Microphone) else Microphone(one) for one in asked)
    names = [one.name for one in microphones]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise ValueError(f"two microphones are called {twice[0]!r}: give each a name of its own")
    for one in microphones:
        refuse_more_than_two(one.channels, source.channels, source.name)
    return microphones


def named_microphones(
    named: Sequence[tuple[str, Sequence[int]]],
    channels: Sequence[int],
    calibration: Sequence[Calibration],
) -> list[Microphone]:
    """Microphones by name and channels, from one calibration or one per channel.

    If one ear of a microphone is not calibrated, the other counts as uncalibrated too.
    """
    known = dict(zip(channels, one_each(calibration, len(channels)), strict=True))
    microphones = []
    for name, own in named:
        found = [known[channel] for channel in own]
        known_all = all(one.calibrated for one in found)
        microphones.append(
            Microphone(tuple(own), name, found if known_all else uncalibrated(found))
        )
    return microphones


def _even(count: int, source: Source) -> list[tuple[int, ...]]:
    each = source.channels // max(1, count)
    if count < 1 or each * count != source.channels or each > 2:
        raise SourceError(
            f"microphones is {count}, and {source.name} has {source.channels} channels: give a "
            "number that leaves one or two channels for each, or the channels of each"
        )
    return [tuple(range(first, first + each)) for first in range(1, source.channels + 1, each)]
