"""Frames: what a model gave of a stretch of sound, when, and what was wrong with it."""

import enum
import math
from collections.abc import Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from amt_stream.core.json_types import JsonDict
from amt_stream.core.saved_state import SavedState


class Fault(enum.IntFlag):
    """What was wrong with the input that a frame has heard, or with the way it came.

    GAP         samples are missing: the source lost them, or they found no room in the ring
    CLIP        samples reach full scale, so what was louder is cut off
    NON_FINITE  samples were NaN, infinite or beyond all sound, and were taken as 0
    OVERLOAD    sound or rows came too late: with GAP, sound that found no room; alone, sound that
                came to a halt and then went on whole, a model too slow for its callback, or rows
                that a slow sink missed before these. Sound handed in faster than it sounds is no
                overload as long as it finds room
    STALL       sound stood still, and it is not known yet whether the samples of that time will
                still come or are lost: they come, or a GAP tells of them within a second
    OFF         the model rested, as processing did not keep up: its values are NaN, and no sound is
                missing
    """

    GAP = 1
    CLIP = 2
    NON_FINITE = 4
    OVERLOAD = 8
    STALL = 16
    OFF = 32


@dataclass(frozen=True, slots=True)
class Event:
    """What happened to a measurement, at a place in its sound.

    kind: one word, as "gap"
    sample, time_s: of the input, where it begins; by the sample count, as those of `Frames`
    utc: seconds since 1970
    samples: how many it spans, as those that are missing
    text: one sentence to read, as the cause of a gap
    microphone: the name of the one that it happened to, where several are heard and not to all
    """

    kind: str
    sample: int
    time_s: float
    utc: float
    samples: int = 0
    text: str = ""
    microphone: str = ""

    def __post_init__(self) -> None:
        # Bytes of an argument or a file name that are not UTF-8: no log could be written with them.
        for name in ("text", "microphone"):
            given = getattr(self, name)
            object.__setattr__(self, name, given.encode(errors="backslashreplace").decode())


UNDO_S = 10.0
"""So much sound after a reset of readings, it can be undone."""


COUNTING = ("paused", "continued", "readings_reset", "reset_undone")
"""Kinds of events that tell which part of the sound is counted."""


def undone_with(earlier_s: float, later_s: float) -> bool:
    """Whether a reset of readings is undone with the one after it: if it still could be then.

    earlier_s, later_s: when they were, by their events, in seconds
    """
    return later_s <= earlier_s + UNDO_S


@dataclass(frozen=True, slots=True, eq=False)
class Chunk:
    """Samples as the engine let them in, before any calibration: what a recording keeps.

    samples: `(time, channel)`, all channels of the source, fractions of full scale, read-only
    sample, utc: of the first of them, as those of an `Event`
    lost: how many are missing before it, by which the sample count has gone on
    flags: bits of `Fault` that the source, or the way here, has given this block
    missed: samples between the chunk before and this one that did not reach this sink, because it
        was too slow; lost ones not included
    """

    samples: NDArray[np.float32]
    sample: int
    utc: float
    lost: int = 0
    flags: int = 0
    missed: int = 0

    def __len__(self) -> int:
        return len(self.samples)


@runtime_checkable
class HearsEvents(Protocol):
    """A sink that is told of events too, in its own thread, between frames."""

    def __call__(self, frames: "Frames") -> Any: ...

    def event(self, event: Event) -> Any: ...


@runtime_checkable
class HearsSound(Protocol):
    """A sink that hears the sound too, in its own thread, each chunk before its frames."""

    def __call__(self, frames: "Frames") -> Any: ...

    def sound(self, chunk: Chunk) -> Any: ...


@runtime_checkable
class HearsEnd(Protocol):
    """A sink that is told in its own thread that nothing more comes.

    end_s: seconds of the whole sound where it has ended by itself, else None
    """

    def __call__(self, frames: "Frames") -> Any: ...

    def ended(self, end_s: float | None) -> Any: ...


@runtime_checkable
class HasNote(Protocol):
    """A sink with one sentence worth reading, or "": `Health.note` and an `Event` tell it."""

    @property
    def note(self) -> str: ...


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """What an engine holds between two blocks, for another one to go on with (`Engine(restore=)`).

    sample: of the input, up to which all of it was heard; whoever gets this has had every frame
        that the models gave until then
    utc: of that sample, seconds since 1970
    state: numbers, words and arrays by name; whoever gets it may keep it, and not change it
    """

    sample: int
    utc: float
    state: SavedState


@runtime_checkable
class HearsSnapshots(Protocol):
    """A sink that is given a snapshot too, about once a second and at the end, between frames."""

    def __call__(self, frames: "Frames") -> Any: ...

    def snapshot(self, snapshot: Snapshot) -> Any: ...


class Later(Protocol):
    """Makes arrays of frames, of the names in LATER, when somebody wants them.

    ends_s: the first of `time_s` and the last
    calm_s: the first of `since_s`, where none of them has a fault
    settled: whether none of them settles
    epoch: UTC of the first sample of the sound, as the last of them has it
    """

    @property
    def ends_s(self) -> tuple[float, float]: ...

    @property
    def calm_s(self) -> float: ...

    @property
    def settled(self) -> bool: ...

    @property
    def epoch(self) -> float: ...

    def __len__(self) -> int: ...

    def make(self, name: str) -> np.ndarray: ...

    def joined(self, after: Any) -> "Later | None":
        """This and what comes after it in one, in time and marks; None where they are none."""


LATER = ("time_s", "sample", "utc", "fault", "settling", "since_s", "level_db")


@dataclass(frozen=True, slots=True, eq=False)
class Frames:
    """A block of n rows, one per frame of the model.

    `values` is the model's output with the batch row removed: its NamedTuple of arrays, time on the
    axis that the model declares. `sample` is the input sample that a row stands for, `time_s` the
    same in seconds, both by sample count. `level_db` `(2, n)` is the level of both ears in dB SPL
    over the block of input that completed these rows, or over the last one where the source has
    ended (-100 for digital silence); of a model that takes fractions of full scale it is that of
    its channels, two at least, in dB relative to a full-scale sine. `model` is the name of the
    model where the engine runs several, `microphone` that of the microphone where it hears
    several. `stretch` counts on with a reset or swap of the model and with another calibration.

    No frame stands within samples that are missing. `gaps` are those before the first of these, as
    pairs of the first sample and the one after the last, and that frame says GAP; `skipped` frames
    would have stood there. `missed` frames before these did not reach this sink because it was too
    slow. Otherwise frames follow one another.

    `since_s` is how long before the time of each the last thing ended that unsettles: a fault, or a
    reset, swap or calibration; infinite where there was none. Frames before `start_s` still rise
    from the silence before the start. `settling` says that a model remembers either. `time_dim` is
    the axis of time in `values`, one for each of its arrays.

    `ended_s` is when the sound ended, of frames that come after its end, and infinite of all
    others. Those are of silence, fed so that the model says all that it has to say of the sound
    (`Stage.tail_s`); a sink gets them where its attribute `hears_tail` is true. Of the first of
    them the share `part` is still sound, where a frame takes in a stretch of it. Where the sound
    was going on and was `cut` off, what comes after that tells of its peaks alone.
    """

    time_s: NDArray[np.float64]
    sample: NDArray[np.int64]
    utc: NDArray[np.float64]
    values: Any
    fault: NDArray[np.uint8]
    settling: NDArray[np.bool_]
    since_s: NDArray[np.float64]
    level_db: NDArray[np.float32]
    calibrated: bool
    start_s: float = 0.0
    gaps: tuple[tuple[int, int], ...] = ()
    skipped: int = 0
    missed: int = 0
    stretch: int = 0
    model: str = ""
    microphone: str = ""
    time_dim: Any = 0
    ended_s: float = math.inf
    part: float = 0.0
    cut: bool = False

    later: Later | None = field(default=None, repr=False)
    """What makes those arrays that are not there yet."""

    def __post_init__(self) -> None:
        """Frames not made by `lazy`, as by `dataclasses.replace`, are what their arrays say."""
        object.__setattr__(self, "later", None)

    @classmethod
    def lazy(cls, later: Later, **given: object) -> Self:
        """Frames whose arrays are made when they are asked for, and are the same then."""
        frames = object.__new__(cls)
        for name, value in (_DEFAULTS | given).items():
            object.__setattr__(frames, name, value)
        object.__setattr__(frames, "later", later)
        return frames

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name not in LATER:
                raise AttributeError(f"Frames has no attribute {name!r}", name=name, obj=self)
            made = self.later.make(name)
            object.__setattr__(self, name, made)
            return made

    def __len__(self) -> int:
        return len(self.time_s) if self.later is None else len(self.later)

    def goes_on(self, before: "Frames") -> bool:
        """Whether these follow others without anything that only one of them says."""
        mine, theirs = self.later, before.later
        if mine is None or theirs is None or self.skipped or self.missed or self.gaps:
            return False
        alike = (self.calibrated, self.stretch, self.start_s, self.model, self.microphone)
        theirs_too = (
            before.calibrated,
            before.stretch,
            before.start_s,
            before.model,
            before.microphone,
        )
        if alike != theirs_too:
            return False
        return theirs.joined(mine) is not None

    @property
    def after_end(self) -> bool:
        """Whether these come after the end of the sound."""
        return self.ended_s < math.inf

    @property
    def begin_s(self) -> float:
        """The first of `time_s`."""
        return float(self.time_s[0]) if self.later is None else self.later.ends_s[0]

    @property
    def end_s(self) -> float:
        """The last of `time_s`."""
        return float(self.time_s[-1]) if self.later is None else self.later.ends_s[1]

    @property
    def calm_s(self) -> float:
        """The first of `since_s`, the least, where it is known that none has a fault.

        Else minus infinity, and the arrays tell.
        """
        return -math.inf if self.later is None else self.later.calm_s

    @property
    def settled(self) -> bool:
        """Whether it is known that none is `settling`."""
        return self.later is not None and self.later.settled

    @property
    def end_utc(self) -> float:
        """The last of `utc`."""
        if self.later is None:
            return float(self.utc[-1])
        return self.later.epoch + self.later.ends_s[1]

    def moment(self, kind: str, text: str = "") -> Event:
        """An event at the last of these."""
        return Event(kind, int(self.sample[-1]), self.end_s, self.end_utc, text=text)

    def between(self, start: int, stop: int) -> "Frames":
        """Some of these rows, which follow one another; the first has the gaps before all."""
        values = self.values
        if isinstance(values, np.ndarray):
            some: Any = _cut(values, self.time_dim, start, stop)
        else:
            dims = self.time_dim if isinstance(self.time_dim, tuple) else [0] * len(values)
            parts = zip(values, dims, strict=True)
            some = type(values)(
                *(None if v is None else _cut(v, dim, start, stop) for v, dim in parts)
            )
        told: JsonDict = {name: _cut(getattr(self, name), -1, start, stop) for name in LATER}
        told |= {} if start == 0 else {"gaps": (), "skipped": 0, "missed": 0}
        return replace(self, values=some, later=None, **told)

    def copy(self) -> "Frames":
        """The same rows in arrays of their own."""
        values = self.values
        if isinstance(values, np.ndarray):
            own = values.copy()
        else:
            own = type(values)(*(None if v is None else v.copy() for v in values))
        frames = object.__new__(Frames)
        for name, slot in _SLOTS:
            try:
                value = slot(self)
            except AttributeError:  # not made yet
                continue
            object.__setattr__(frames, name, value.copy() if name in LATER else value)
        object.__setattr__(frames, "values", own)
        return frames


def _cut(values: np.ndarray, dim: int, start: int, stop: int) -> np.ndarray:
    return values[(slice(None),) * (dim % values.ndim) + (slice(start, stop),)]


_SLOTS = tuple((one.name, getattr(Frames, one.name).__get__) for one in fields(Frames))
"""Getters that do not make what is missing."""

_DEFAULTS = {one.name: one.default for one in fields(Frames) if one.default is not MISSING}


class Joined:
    """What makes the arrays of frames that follow one another as one."""

    def __init__(self, parts: Sequence[Later]) -> None:
        self.parts, self.whole = parts, parts[0]
        for part in parts[1:]:
            whole = self.whole.joined(part)
            if whole is None:
                raise ValueError("these frames do not follow one another")
            self.whole = whole
        self.ends_s = self.whole.ends_s
        self.calm_s, self.settled = self.whole.calm_s, self.whole.settled
        self.epoch = parts[-1].epoch

    def __len__(self) -> int:
        return len(self.whole)

    def make(self, name: str) -> np.ndarray:
        """Of UTC and level each part knows its own."""
        if name in ("utc", "level_db"):
            return np.concatenate([part.make(name) for part in self.parts], axis=-1)
        return self.whole.make(name)

    def joined(self, after: object) -> None:
        """These are not joined any more."""


def in_one(frames: Sequence[Frames]) -> Frames:
    """Lazy frames of one model that follow one another without marks, as one block."""
    first = frames[0]
    if len(frames) == 1:
        return first
    later = Joined([one.later for one in frames if one.later is not None])
    given = [one.values for one in frames]
    dims = first.time_dim
    if isinstance(first.values, np.ndarray):
        values: object = np.concatenate(given, axis=dims)
    else:
        values = type(first.values)(
            *[
                None if column[0] is None else np.concatenate(column, axis=dim)
                for dim, *column in zip(dims, *given, strict=True)
            ]
        )
    return Frames.lazy(
        later,
        values=values,
        calibrated=first.calibrated,
        start_s=first.start_s,
        gaps=first.gaps,
        skipped=first.skipped,
        missed=first.missed,
        stretch=first.stretch,
        model=first.model,
        microphone=first.microphone,
        time_dim=first.time_dim,
    )


def scalar_field(values: object, name: str) -> NDArray[np.float32]:
    """Column `name` of a model's output; a model without names has one, "value"."""
    return values if name == "value" and isinstance(values, np.ndarray) else getattr(values, name)
