"""What is told of a model: columns while it runs, a summary of all that was counted."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from amt_stream.core.json_types import JsonDict
from amt_stream.core.saved_state import Resumable
from amt_stream.meters import catalog
from amt_stream.meters.frames import Fault, Frames
from amt_stream.meters.rows.column import Column, NoSuchColumn, no_such_column

Summary = dict[str, float | None]
SIDES = ("left", "right")
SAME_TIME_S = 1e-6
"""Two times that differ by less are the same."""

WITHOUT = "lost and invalid samples, and what settles after them"


class Readings(Resumable, ABC):
    """The readings of one model.

    model: its name
    offered: the columns that can be had by name or pattern; a model may give more, such as levels
        of a rolling window (`named`)
    usual: names of those that are given where none are chosen

    What accumulates counts frames that heard sound which was there, from the first on. Those of the
    rise from silence can only be too low: percentiles, means and minima leave out what is lower
    there than all that comes after it. After a fault, or a reset of the model, each value counts
    once it has settled. `cover` takes a part of the sound. Neither a pause nor a reset of what was
    counted touches a filter.
    """

    kept: ClassVar[tuple[str, ...]] = ("paused",)

    headlines: tuple[str, ...] = ()
    """What a person looks for in a summary."""

    of_interval: tuple[str, ...] = ()
    """Names, or patterns, of columns that a table of intervals has by default."""

    rise_s: ClassVar[Mapping[str, float]] = {}
    """How long what rises from silence, by its name in a header, and has such statistics."""

    counts = True
    """Whether there are statistics."""

    keys: tuple[Column, ...] = ()
    """What says which cell a row is of, where a model gives a row for each of several."""

    cells: tuple[tuple[Any, ...], ...] = ((),)
    """The keys of each cell."""

    def __init__(self, model: str, offered: Sequence[Column], usual: Iterable[str]) -> None:
        self.model, self.offered = model, tuple(offered)
        self.from_s, self.to_s = 0.0, math.inf
        self.paused = False
        by_name = {column.name: column for column in self.offered}
        self.choose([by_name[name] for name in usual])

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns of `take`, in their order."""
        return self._columns

    @property
    def in_pascal(self) -> bool:
        """Whether the model takes pascal, as one does that is in no catalog."""
        known = catalog.entries().get(self.model)
        return known is None or known.input_unit == "pascal"

    @property
    def width(self) -> int:
        """How many numbers a frame gives: one for each column of each cell."""
        return len(self._columns) * len(self.cells)

    def matching(self, pattern: str) -> list[Column]:
        """The columns that a name, or a pattern with * or ?, stands for; none where it is not one.

        Raises ValueError for a rolling window that is too short or too long.
        """
        found = [column for column in self.offered if fnmatchcase(column.name, pattern)]
        named = None if found else self.named(pattern)
        return found if named is None else [named]

    def named(self, name: str) -> Column | None:
        """A column that is not among those offered, as of a rolling window; None for none."""
        return None

    def choose(self, columns: Sequence[Column]) -> None:
        """Give these columns from now on; what was counted is forgotten."""
        self._columns = tuple(columns)
        self.renew()

    def cover(self, from_s: float, to_s: float = math.inf) -> None:
        """Count what comes after `from_s`, and not after `to_s`."""
        self.from_s, self.to_s = from_s, to_s
        self.renew()

    def coverage(self) -> JsonDict:
        """What statistics are of, as a header tells it."""
        return {
            "from_s": self.from_s,
            "to_s": None if math.isinf(self.to_s) else self.to_s,
            "without": WITHOUT,
            **({"rise_s": dict(self.rise_s)} if self.rise_s else {}),
        }

    @abstractmethod
    def renew(self) -> None:
        """Make new meters for the columns and the part of the sound that are chosen."""

    @abstractmethod
    def take(self, frames: Frames) -> NDArray[np.float64]:
        """The columns (n, column), or (n, cell, column), after each frame.

        NaN or an infinity where there is no reading. Frames are counted unless `paused`.
        """

    def tail(self, frames: Frames) -> None:
        """Take what the model says of the sound after its end (`Frames.ended_s`).

        It counts in maxima, and with its energy; no time passes, so it is in no mean over time, no
        minimum and no percentile.
        """

    def shares(self, frames: Frames, counted: NDArray[np.bool_]) -> NDArray[np.float64]:
        """How much of the energy of each (n,) is of the sound, of those that count after its end.

        All of it: filters give it later. Of a sound that was cut off as it went on, and seems to go
        on, only that in the frame that it ended in; the others tell of no more than late peaks.
        """
        shares = counted.astype(np.float64)
        if frames.cut:
            shares[0] *= frames.part
            shares[1:] = 0.0
        return shares

    def skip(self, count: int) -> None:
        """So many frames are not there, before the next: their time passes, and is left out."""

    @abstractmethod
    def summary(self) -> Summary:
        """What was counted since the last `reset`, by name."""

    def counted_s(self) -> Summary:
        """How long it was, and how much was left out: `measured_s`, `excluded_s`."""
        return {}

    @abstractmethod
    def reset(self) -> None:
        """Forget what was counted."""

    def begin_interval(self) -> None:
        """Forget what was counted, of a sound that is measured on: its windows reach back."""
        self.reset()

    def stacked(self, columns: Sequence[np.ndarray], frames: Frames) -> NDArray[np.float64]:
        """Columns (n,) of these frames side by side, none of them included."""
        found = np.empty((len(frames), len(columns)))
        for place, column in enumerate(columns):
            found[:, place] = column
        return found

    def counted(self, frames: Frames, settle_s: float | None = None) -> NDArray[np.bool_]:
        """Which frames count, pauses apart: from so long after a fault on, or as the model says."""
        to_s = self.to_s + SAME_TIME_S
        # What ends at `from_s` came before it; a frame at 0 s belongs to the sound.
        after_s = self.from_s + SAME_TIME_S if self.from_s else -SAME_TIME_S
        if settle_s is None:
            calm = frames.settled and frames.calm_s >= 0
        else:
            calm = frames.calm_s >= settle_s
        if calm and frames.begin_s > after_s and min(frames.end_s, frames.ended_s) <= to_s:
            return np.ones(len(frames), np.bool_)
        time_s = frames.time_s
        # What comes after the end of the sound is of its last moment.
        there = (time_s > after_s) & (np.minimum(time_s, frames.ended_s) <= to_s)
        # Where sound stood still there may be a hole.
        there &= (frames.fault & Fault.STALL) == 0
        if settle_s is None:
            there &= ~(frames.settling & np.isfinite(frames.since_s))
        else:
            there &= frames.since_s >= settle_s
        return fully_heard(frames) & there


class Uncounted(Readings):
    """Readings that give columns alone: there are no statistics of them."""

    counts = False

    def renew(self) -> None:
        """There are no meters."""

    def reset(self) -> None:
        """There is nothing to forget."""

    def summary(self) -> Summary:
        return {}


def fully_heard(frames: Frames) -> NDArray[np.bool_]:
    """Which frames have heard all sound, and only sound that was there."""
    if frames.calm_s > -math.inf:
        return np.ones(len(frames), np.bool_)
    return (frames.fault & (Fault.GAP | Fault.NON_FINITE | Fault.OFF)) == 0


def all_of(there: NDArray[np.bool_]) -> bool:
    """As `there.all()`, in a tenth of the time where they are few."""
    return int(np.count_nonzero(there)) == there.size


def readings_of(
    names: Iterable[str],
    channels: int,
    band: bool = False,
    models: Mapping[str, object] | None = None,
    **options: object,
) -> dict[str, Readings]:
    """Those of models of the catalog, for so many channels.

    band: with the band of loudness, of those that give one
    models: the models themselves; one that gives cells is asked which
    options: for those whose readings take them, such as target_lufs=-23.0
    """
    given = models or {}
    return {
        name: catalog.entry(name).make_readings(
            channels, band=band, model=given.get(name), **options
        )
        for name in names
    }


def choose(
    readings: Mapping[str, Readings], patterns: Iterable[str] | None, also: Iterable[str] = ()
) -> None:
    """Give the columns that `patterns` name, in their order within each model, and no others.

    None stands for those that are given already; `also` come after them where they are not there. A
    pattern is a name, or a part of it with * or ?; a column of several models is given by each.
    Several in one text stand with commas between.

    Raises NoSuchColumn for a pattern that is no column of any model.
    """
    if isinstance(patterns, str):
        patterns = [pattern.strip() for pattern in patterns.split(",")]
    if patterns is None:
        patterns = [column.name for one in readings.values() for column in one.columns]
    wanted: dict[str, dict[str, Column]] = {name: {} for name in readings}
    for pattern in (*patterns, *also):
        if not isinstance(pattern, str):
            raise TypeError(f"a column is {pattern!r}: give names or patterns, such as 'ltl_*'")
        found = {name: one.matching(pattern) for name, one in readings.items()}
        if not any(found.values()):
            offered = [column.name for one in readings.values() for column in one.offered]
            raise NoSuchColumn(no_such_column(pattern, offered, _others_with(pattern, readings)))
        for name, columns in found.items():
            wanted[name] |= {column.name: column for column in columns}
    for name, one in readings.items():
        one.choose(list(wanted[name].values()))


def _others_with(pattern: str, readings: Mapping[str, Readings]) -> list[str]:
    """Models of the catalog, beside those of these readings, that have such a column."""
    others = [name for name in catalog.models_side_by_side() if name not in readings]
    return [
        name for name, one in readings_of(others, 2, band=True).items() if one.matching(pattern)
    ]


def column_named(name: str) -> Column | None:
    """The column of this name, of two channels, of a model that runs beside others."""
    return _column_named(name, catalog.models_side_by_side())


@cache
def _column_named(name: str, models: tuple[str, ...]) -> Column | None:
    for model in models:
        readings, offered = _widest(model)
        if (column := offered.get(name) or readings.named(name)) is not None:
            return column
    return None


@cache
def _widest(model: str) -> tuple[Readings, dict[str, Column]]:
    """Readings with all columns that a model may have."""
    from amt_stream.dsp.design import nominal_midband, octave_midbands

    bands = {
        name: SimpleNamespace(nominal=[*map(nominal_midband, octave_midbands(1.0, 8e4, fraction))])
        for name, fraction in (("octave", 1), ("third_octave", 3))
        if name == model
    }
    (readings,) = readings_of([model], 2, True, bands, target_lufs=0.0).values()
    return readings, {column.name: column for column in readings.offered}


def by_side(values: Sequence[float | None]) -> list[tuple[str, float | None]]:
    """The higher of two channels, then each with its side; of one channel just that."""
    there = [v for v in values if v is not None]
    highest = max(there) if there else None
    if len(values) == 1:
        return [("", highest)]
    return [("", highest), *((f"_{side}", v) for side, v in zip(SIDES, values, strict=True))]


def by_sides(channels: Sequence[NDArray[np.floating]]) -> NDArray[np.float64]:
    """Of values of one or two channels the higher ones and each of two: (1, ...) or (3, ...)."""
    if len(channels) == 1:
        return np.asarray(channels, np.float64)
    return np.stack([np.fmax(*channels), *channels], dtype=np.float64)


def place_of(side: str | None) -> int:
    """Where that has those of "_left" or "_right", or the higher ones."""
    return SIDES.index(side[1:]) + 1 if side else 0


def of_side(channels: Sequence[NDArray[np.floating]], side: str | None) -> NDArray[np.floating]:
    """The values (n,) of one of two channels by "_left" or "_right"; without, the higher ones."""
    if side:
        return channels[SIDES.index(side[1:])]
    return channels[0] if len(channels) == 1 else np.fmax(*channels)


def higher(channels: int) -> str:
    """What a column has that stands for both of two channels, in words."""
    return ", higher of both channels" if channels == 2 else ""
