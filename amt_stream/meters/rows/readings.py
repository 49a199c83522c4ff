"""Readings of a model: columns, and a summary of all counted sound."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache
from types import SimpleNamespace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from amt_stream.core.clock import SAME_TIME_S
from amt_stream.core.json_types import JsonDict
from amt_stream.core.saved_state import Resumable
from amt_stream.meters import catalog
from amt_stream.meters.audience import NO_AUDIENCE
from amt_stream.meters.frames import Fault, Frames, scalar_field
from amt_stream.meters.names import SIDES
from amt_stream.meters.rows.column import Column, NoSuchColumn, no_such_column
from amt_stream.meters.rows.models.annoyance import USUAL as JOINT

Summary = dict[str, float | None]

WITHOUT = "lost and invalid samples, and what settles after them"

RELATIVE, CALIBRATED = "relative", "calibrated"


class Earlier(NamedTuple):
    """The sound that a value includes from before its column was chosen.

    counted_s, missed_s: of a statistic: seconds of the measurement, and of these what was missed
    heard_s: of a rolling window: seconds of it that are known
    holes: begin and end (n, 2), in seconds, of what was not measured in these
    """

    counted_s: float = 0.0
    missed_s: float = 0.0
    heard_s: float = 0.0
    holes: NDArray[np.float64] = np.zeros((0, 2))


NOTHING = Earlier()


class Readings(Resumable, ABC):
    """The readings of one model.

    model: name of the model
    offered: columns that can be chosen by name or pattern; there may be more, such as levels of a
        rolling window (`named`)
    usual: names of the default columns

    Statistics count frames of valid sound, from the first on. Frames of the rise from silence can
    only be too low: percentiles, means and minima leave out values there that are lower than all
    later ones. After a fault or a reset of the model, values count once they have settled. As soon
    as there is calibrated sound, it alone counts. `cover` chooses a part of the sound. Pauses and
    resets of the statistics do not affect filters.
    """

    kept: ClassVar[tuple[str, ...]] = ("paused", "level")

    headlines: tuple[str, ...] = ()
    """Names of the main readings of a summary."""

    of_interval: tuple[str, ...] = ()
    """Names or patterns of the default columns of intervals."""

    rise_s: ClassVar[Mapping[str, float]] = {}
    """Duration of the rise from silence of readings with such statistics, by name in the header."""

    counts = True
    """Whether there are statistics."""

    keys: tuple[Column, ...] = ()
    """Key columns of cells, if a model has a row for each cell."""

    cells: tuple[tuple[Any, ...], ...] = ((),)
    """The keys of each cell."""

    def __init__(self, model: str, offered: Sequence[Column], usual: Iterable[str]) -> None:
        self.model, self.offered = model, tuple(offered)
        self.from_s, self.to_s = 0.0, math.inf
        self.paused = False
        self.level = ""
        """What counts: RELATIVE, uncalibrated sound; CALIBRATED sound; "" before the first."""
        by_name = {column.name: column for column in self.offered}
        self.choose([by_name[name] for name in usual])

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns of `take`, in order."""
        return self._columns

    @property
    def in_pascal(self) -> bool:
        """Whether the model takes pascal, as models outside the catalog do."""
        return catalog.is_in_pascal(self.model)

    @property
    def width(self) -> int:
        """Numbers per frame: one for each column of each cell."""
        return len(self._columns) * len(self.cells)

    def matching(self, pattern: str) -> list[Column]:
        """The columns that match a name, or a pattern with * or ?.

        Raises ValueError for a rolling window out of range.
        """
        found = [column for column in self.offered if fnmatchcase(column.name, pattern)]
        named = None if found else self.named(pattern)
        return found if named is None else [named]

    def named(self, name: str) -> Column | None:
        """A column that is not in `offered`, such as of a rolling window, or None."""
        return None

    def choose(self, columns: Sequence[Column]) -> None:
        """Choose these columns, and restart the statistics."""
        self._columns = tuple(columns)
        self.renew()

    def cover(self, from_s: float, to_s: float = math.inf) -> None:
        """Count only sound after `from_s` and up to `to_s`."""
        self.from_s, self.to_s = from_s, to_s
        self.renew()

    def coverage(self) -> JsonDict:
        """The sound that statistics cover, for headers."""
        return {
            "from_s": self.from_s,
            "to_s": None if math.isinf(self.to_s) else self.to_s,
            "without": WITHOUT,
            **({"rise_s": dict(self.rise_s)} if self.rise_s else {}),
        }

    @abstractmethod
    def renew(self) -> None:
        """Make new meters for the chosen columns and part of the sound."""

    @abstractmethod
    def take(self, frames: Frames) -> NDArray[np.float64]:
        """Count frames unless `paused`, and return the columns (n, column) or (n, cell, column).

        Without a reading, a value is NaN or infinite.
        """

    def judge(self, frames: Frames) -> None:
        """Decide whether these frames count, which come next: levels of two gains do not mix."""
        calibrated = frames.calibrated or self.level == CALIBRATED
        if calibrated and self.level == RELATIVE:
            self.reset()
        self.level = CALIBRATED if calibrated else RELATIVE

    def refined(self, frames: Frames) -> Frames:
        """The frames for `take` and `tail`: a model of several rates adds times between its own."""
        return frames

    def ranges(self, frames: Frames, taken: NDArray[np.float64]) -> NDArray[np.float64]:
        """The least and the greatest (2, n, column) within each frame.

        taken: what `take` gave of these frames

        They differ only in models whose frames have the extremes of all samples.
        """
        return np.stack([taken, taken])

    def tail(self, frames: Frames) -> None:
        """Take output of the model after the end of the sound (`Frames.ended_s`).

        It counts in maxima and in energy; it has no duration, so it is not in time means, minima or
        percentiles.
        """

    def shares(self, frames: Frames, counted: NDArray[np.bool_]) -> NDArray[np.float64]:
        """The share of energy (n,) that counts, of frames after the end of the sound.

        It is all energy, which filters deliver late. If the sound was cut off, only the frame in
        which it ended counts; later frames only have late peaks.
        """
        shares = counted.astype(np.float64)
        if frames.cut:
            shares[0] *= frames.part
            shares[1:] = 0.0
        return shares

    def skip(self, count: int) -> None:
        """Skip missing frames before the next one; their time is excluded."""

    @abstractmethod
    def summary(self) -> Summary:
        """The statistics since the last `reset`, by name."""

    def compile(self) -> None:
        """Compile the loops that only these readings have."""

    def remember(self) -> None:
        """Remember what rolling windows of columns need that are chosen while it runs."""

    def has(self, column: Column) -> bool:
        """Whether it is one of the chosen columns."""
        return any(one.name == column.name for one in self.columns)

    def earlier(self, column: Column) -> Earlier:
        """The sound so far that a column includes that a limit judges from now on."""
        known = self.counted_s()
        if not column.counted or not known:
            return Earlier()
        measured_s, excluded_s = (known[name] or 0.0 for name in ("measured_s", "excluded_s"))
        return Earlier(measured_s + excluded_s, excluded_s)

    def counted_s(self) -> Summary:
        """The counted and the excluded duration: `measured_s`, `excluded_s`."""
        return {}

    def measured_of(self) -> Summary:
        """The counted duration of statistics, by name, whose own meters know it."""
        return {}

    @abstractmethod
    def reset(self) -> None:
        """Forget what was counted."""

    def leave_out(self, time_s: float, out: bool) -> None:
        """Leave out the impulse that began at this time, or count it again, if there is one."""

    def begin_interval(self) -> None:
        """Restart the statistics of a running sound, with windows that reach back."""
        self.reset()

    def stacked(self, columns: Sequence[np.ndarray], frames: Frames) -> NDArray[np.float64]:
        """Stack columns (n,) of these frames; also without columns."""
        found = np.empty((len(frames), len(columns)))
        for place, column in enumerate(columns):
            found[:, place] = column
        return found

    def clipped(self, frames: Frames) -> NDArray[np.bool_]:
        """Which frames count and include clipped sound, so that statistics do."""
        if self.paused or frames.calm_s > -math.inf:
            return np.zeros(len(frames), np.bool_)
        clipped: NDArray[np.bool_] = self.counted(frames, -math.inf)
        return clipped & ((frames.fault & Fault.CLIP) > 0)

    def all_count(self, frames: Frames, settle_s: float | None = None) -> bool:
        """Whether it is known that all frames count, as `counted` says; the usual case."""
        if settle_s is None:
            calm = frames.settled and frames.calm_s >= 0
        else:
            calm = frames.calm_s >= settle_s
        if not calm or not (frames.calibrated or self.level != CALIBRATED):
            return False
        begin_s, end_s = frames.ends_s
        return begin_s > self._after_s and min(end_s, frames.ended_s) <= self.to_s + SAME_TIME_S

    @property
    def _after_s(self) -> float:
        """The time after which frames count.

        What ends at `from_s` came before it; a frame at 0 s belongs to the sound.
        """
        return self.from_s + SAME_TIME_S if self.from_s else -SAME_TIME_S

    def counted(self, frames: Frames, settle_s: float | None = None) -> NDArray[np.bool_]:
        """Which frames count, apart from pauses: `settle_s` after a fault, or as the model says."""
        if self.all_count(frames, settle_s):
            return np.ones(len(frames), np.bool_)
        if not frames.calibrated and self.level == CALIBRATED:
            return np.zeros(len(frames), np.bool_)
        to_s = self.to_s + SAME_TIME_S
        time_s = frames.time_s
        # Frames after the end of the sound count as its last moment.
        there = (time_s > self._after_s) & (np.minimum(time_s, frames.ended_s) <= to_s)
        # After a stall there may be a gap.
        there &= (frames.fault & Fault.STALL) == 0
        if settle_s is None:
            there &= ~(frames.settling & np.isfinite(frames.since_s))
        else:
            there &= frames.since_s >= settle_s
        return fully_heard(frames) & there


class Uncounted(Readings):
    """Readings with columns only, without statistics."""

    counts = False

    def renew(self) -> None:
        """Do nothing: there are no meters."""

    def reset(self) -> None:
        """Do nothing: there are no statistics."""

    def summary(self) -> Summary:
        return {}


class FieldReadings(Uncounted):
    """Readings of a model without a readings class: its outputs as columns.

    model: name of the model, the prefix of the columns' names if it is not empty
    fields: names of outputs with one number per frame; "value" is the output of a model without
        named outputs
    """

    def __init__(self, model: str, fields: Sequence[str]) -> None:
        self._fields = {f"{model}_{field}" if model else field: field for field in fields}
        columns = [Column(name, "", f"output {f}", model) for name, f in self._fields.items()]
        super().__init__(model, columns, self._fields)

    def take(self, frames: Frames) -> NDArray[np.float64]:
        fields = (self._fields[column.name] for column in self.columns)
        return self.stacked([scalar_field(frames.values, field) for field in fields], frames)


class MeteredReadings(Readings):
    """Readings with a meter for each channel, or one for all."""

    kept = (*Readings.kept, "_meters")

    _meters: Sequence[Any]

    @property
    def meters(self) -> Sequence[Any]:
        """The meters, paused if these readings are."""
        for meter in self._meters:
            meter.paused = self.paused
        return self._meters

    def reset(self) -> None:
        for meter in self._meters:
            meter.reset()

    def skip(self, count: int) -> None:
        for meter in self.meters:
            meter.skip(count)

    def counted_s(self) -> Summary:
        reading = self._meters[0].reading()
        return {name: reading[name] for name in ("measured_s", "excluded_s")}


def fully_heard(frames: Frames) -> NDArray[np.bool_]:
    """Which frames cover complete and valid sound."""
    if frames.calm_s > -math.inf:
        return np.ones(len(frames), np.bool_)
    return (frames.fault & (Fault.GAP | Fault.NON_FINITE | Fault.OFF)) == 0


def readings_of(
    names: Iterable[str],
    channels: int | Mapping[str, int],
    band: bool = False,
    models: Mapping[str, object] | None = None,
    **options: object,
) -> dict[str, Readings]:
    """Make the readings of models of the catalog for a number of channels, or for one of each.

    Models that together have all that annoyance is made of have it too.

    band: whether to include uncertainty bands, for models that have them
    models: the models, from which those with cells take their cells
    options: options of readings that take them, such as target_lufs=-23.0
    """
    given = models or {}
    found: dict[str, Readings] = {
        name: catalog.entry(name).make_readings(
            channels if isinstance(channels, int) else channels[name],
            band=band,
            model=given.get(name),
            **options,
        )
        for name in names
    }
    joint = [c for n in JOINT for one in found.values() if (c := one.named(n)) is not None]
    joint = [column for column in joint if not _lacking(column, found)]
    if joint:
        choose(found, None, [column.name for column in joint])
    return found


def _lacking(column: Column, readings: Mapping[str, Readings]) -> list[str]:
    """The columns that a column needs, and that these readings do not have."""
    return [n for n in column.needs if not any(one.matching(n) for one in readings.values())]


def choose(
    readings: Mapping[str, Readings], patterns: Iterable[str] | None, also: Iterable[str] = ()
) -> None:
    """Choose the columns that match `patterns`, in order within each model.

    None keeps the present choice; `also` are added if they are missing. A pattern is a name, or a
    name with * or ?; a column of several models is chosen in each. A text may have several
    patterns, separated by commas. Columns that a chosen one needs are chosen too.

    Raises NoSuchColumn if a pattern matches no column, or if a column needs one of another model.
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
        for column in (column for columns in found.values() for column in columns):
            for need in _lacking(column, readings):
                others = ", ".join(_others_with(need, readings))
                raise NoSuchColumn(f"{column.name} needs {need}: add a model that has it, {others}")
            for need in column.needs:
                for name, one in readings.items():
                    wanted[name] |= {needed.name: needed for needed in one.matching(need)}
        for name, columns in found.items():
            wanted[name] |= {column.name: column for column in columns}
    for name, one in readings.items():
        one.choose(list(wanted[name].values()))


def models_of(readings: Mapping[str, Readings], columns: Iterable[str]) -> frozenset[str]:
    """The models of columns by name, and of those that they are computed from."""
    own = {
        column.name: (model, column) for model, one in readings.items() for column in one.columns
    }
    found = [own[name] for name in columns if name in own]
    needs = [own[need][0] for _, column in found for need in column.needs if need in own]
    return frozenset([*(model for model, _ in found), *needs])


def _others_with(pattern: str, readings: Mapping[str, Readings]) -> list[str]:
    """Other models of the catalog that have such a column."""
    others = [name for name in catalog.models_side_by_side() if name not in readings]
    return [name for name, one in widest_readings(others).items() if one.matching(pattern)]


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
    (readings,) = widest_readings([model]).values()
    return readings, {column.name: column for column in readings.offered}


def widest_readings(models: Iterable[str]) -> dict[str, Readings]:
    """Readings with all columns that models may have, of two channels and at any rate."""
    from amt_stream.dsp.design import nominal_midband, octave_midbands

    models = tuple(models)
    bands = {
        name: SimpleNamespace(nominal=[*map(nominal_midband, octave_midbands(1.0, 8e4, fraction))])
        for name, fraction in (("octave", 1), ("third_octave", 3))
        if name in models
    }
    options = {"target_lufs": 0.0, "audience": NO_AUDIENCE}
    return readings_of(models, 2, True, bands, **options)


def by_side(values: Sequence[float | None]) -> list[tuple[str, float | None]]:
    """The higher of two channels, then each with its side; of one channel just that."""
    there = [v for v in values if v is not None]
    highest = max(there) if there else None
    if len(values) == 1:
        return [("", highest)]
    return [("", highest), *zip(SIDES, values, strict=True)]


def by_sides(channels: Sequence[NDArray[np.floating]]) -> NDArray[np.float64]:
    """For one channel its values (1, ...); for two the higher ones and each: (3, ...)."""
    if len(channels) == 1:
        return np.asarray(channels, np.float64)
    return np.stack([np.fmax(*channels), *channels], dtype=np.float64)


def higher(channels: int) -> str:
    """The description of a column that stands for both of two channels."""
    return ", higher of both channels" if channels == 2 else ""
