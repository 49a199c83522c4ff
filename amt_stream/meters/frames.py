"""Frames: the output of a model for a piece of sound, with times and faults."""

import enum
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from amt_stream.core.json_types import JsonDict
from amt_stream.core.saved_state import SavedState


class Fault(enum.IntFlag):
    """Faults of the input of a frame, or of its processing.

    GAP         samples are missing: lost by the source, or the ring buffer was full
    CLIP        samples are at the end of the converter's range, so the sound may have been louder:
                levels and loudness are at least what is shown
    NON_FINITE  samples were NaN, infinite or absurdly large, and were replaced by 0
    OVERLOAD    sound or rows came too late: with GAP, the ring buffer was full; alone, sound
                stopped and then continued without loss, a model was too slow for its callback, or a
                slow sink missed rows before these. Sound delivered faster than real time is no
                overload while there is room
    STALL       sound stopped, and it is unknown whether its samples are late or lost: they come, or
                a GAP follows within a second
    OFF         the model was switched off because processing did not keep up: its values are NaN,
                and no sound is missing
    SILENT      with GAP: a device gave exact zeros, as a muted one does, so there was no sound, or
                not of both ears
    """

    GAP = 1
    CLIP = 2
    NON_FINITE = 4
    OVERLOAD = 8
    STALL = 16
    OFF = 32
    SILENT = 64


UNHEARD = np.uint8(Fault.GAP | Fault.NON_FINITE | Fault.STALL)
"""Faults of sound that no model measured."""


DEVICE, BUFFER, SILENT, INTERRUPTED = "device", "buffer", "silent", "interrupted"
"""Causes of a gap, as in `Event.cause`."""
CAUSES = DEVICE, BUFFER, SILENT, INTERRUPTED
STALLED, OUTPUT = "stalled", "output"

MISSING_WORDS = {
    DEVICE: "lost by the device or the sound server",
    BUFFER: "dropped by this program, whose buffer was full",
    SILENT: "without sound from the device",
    INTERRUPTED: "while this program did not run",
    STALLED: "delayed, and not counted",
    OUTPUT: "missed by this output, which was too slow",
}
"""What happened to the sound, by cause."""

MISSING_SHOWN_S = 0.0005


def cause_of_gap(fault: int) -> str:
    """The cause of a gap from its bits of `Fault`."""
    if fault & Fault.SILENT:
        return SILENT
    return BUFFER if fault & Fault.OVERLOAD else DEVICE


def missing_words(seconds: Mapping[str, float]) -> str:
    """The time for each cause in words; "" if nothing is missing.

    seconds: by cause, a key of MISSING_WORDS
    """
    lost = {cause: s for cause, s in seconds.items() if s > MISSING_SHOWN_S}
    return ", ".join(
        f"{s:.{2 if s < 10 else 1}f} s {MISSING_WORDS[cause]}" for cause, s in lost.items()
    )


@dataclass(frozen=True, slots=True)
class Event:
    """An event of a measurement.

    kind: one word, such as "gap"
    sample, time_s: begin, by the count of input samples, as in `Frames`
    utc: Unix time
    samples: number of samples, such as those of a gap
    text: one sentence, such as the cause of a gap
    microphone: name of the microphone, if there are several and not all are concerned
    cause: of a gap: "device" if the device or the sound server lost the samples, "buffer" if this
        program dropped them as its buffer was full, "silent" if the device gave no sound,
        "interrupted" if this program did not run. Of an overload, in words that follow "because"
    """

    kind: str
    sample: int
    time_s: float
    utc: float
    samples: int = 0
    text: str = ""
    microphone: str = ""
    cause: str = ""

    def __post_init__(self) -> None:
        # Bytes of an argument or a file name that are not UTF-8: no log could be written with them.
        for name in ("text", "microphone"):
            given = getattr(self, name)
            object.__setattr__(self, name, given.encode(errors="backslashreplace").decode())


LIMITS = "limits"
"""The kind of events after which other limits judge."""

COUNTING = ("paused", "continued", "readings_reset", "reset_undone")
"""Kinds of events that change which sound is counted."""

LEFT_OUT, TAKEN_IN = "impulse_left_out", "impulse_counted"

IMPULSE_COUNTING = (LEFT_OUT, TAKEN_IN)
"""Kinds of events that change whether the impulse that began at their time is counted."""

LEFT_OUT_S = "left_out_impulses_s"
"""In the header of an analysis: times of the impulses that were left out."""


def impulse_event(counts: bool, time_s: float, text: str = "", microphone: str = "") -> Event:
    """For `Engine.tell_event`: the impulse that began at this time counts, or is left out.

    text: why
    """
    kind = TAKEN_IN if counts else LEFT_OUT
    return Event(kind, 0, float(time_s), 0.0, text=text, microphone=microphone)


@dataclass(frozen=True, slots=True, eq=False)
class Chunk:
    """Uncalibrated samples as the engine received them, for recordings.

    samples: `(time, channel)`, all channels of the source, fractions of full scale, read-only
    sample, utc: sample count and Unix time of the first sample
    lost: number of samples missing before it, which the sample count includes
    flags: bits of `Fault` of this block
    missed: number of samples before it that this sink missed because it was too slow, without
        `lost`
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
    """A sink that also gets events, in its thread, between frames."""

    def __call__(self, frames: "Frames") -> Any: ...

    def event(self, event: Event) -> Any: ...


@runtime_checkable
class HearsSound(Protocol):
    """A sink that also gets the sound, in its thread, each chunk before its frames."""

    def __call__(self, frames: "Frames") -> Any: ...

    def sound(self, chunk: Chunk) -> Any: ...


@runtime_checkable
class HearsEnd(Protocol):
    """A sink with a method that is called at the end, in its thread.

    end_s: duration of the sound in seconds if it has ended, else None
    """

    def __call__(self, frames: "Frames") -> Any: ...

    def ended(self, end_s: float | None) -> Any: ...


@runtime_checkable
class HasNote(Protocol):
    """A sink with a note, one sentence or "", which `Health.note` and an `Event` report."""

    @property
    def note(self) -> str: ...


@runtime_checkable
class NeedsModels(Protocol):
    """A sink that needs some models: the engine never switches them off in an overload.

    needed: their names at present, as in `Frames.model`
    """

    def __call__(self, frames: "Frames") -> Any: ...

    @property
    def needed(self) -> Collection[str]: ...


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """The state of an engine between blocks, from which another continues (`Engine(restore=)`).

    sample: number of input samples processed; the sink has received all frames up to it
    utc: Unix time of that sample
    state: numbers, texts and arrays by name; it must not be changed
    """

    sample: int
    utc: float
    state: SavedState


@runtime_checkable
class HearsSnapshots(Protocol):
    """A sink that also gets snapshots, about once a second and at the end, between frames."""

    def __call__(self, frames: "Frames") -> Any: ...

    def snapshot(self, snapshot: Snapshot) -> Any: ...


class Later(Protocol):
    """Makes arrays of frames (names in LATER) on demand.

    ends_s: first and last value of `time_s`
    calm_s: first value of `since_s`, if no frame has a fault
    settled: whether no frame is settling
    epoch: Unix time of the first sample of the sound, according to the last frame
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
        """This and the following frames as one, or None if they cannot be joined."""


LATER = ("time_s", "sample", "utc", "fault", "settling", "since_s", "level_db")


@dataclass(frozen=True, eq=False)
class Frames:
    """A block of n rows, one per frame of the model.

    `values` is the model's output without the batch axis: its NamedTuple of arrays, with time on
    the axis that the model declares. `sample` is the input sample of a row, and `time_s` its time
    in seconds, both by sample count. `level_db` `(2, n)` is the level of both ears in dB SPL over
    the block of input that completed these rows, or over the last one if the source has ended (-100
    for digital silence); for a model that takes fractions of full scale it is that of its channels,
    at least two, in dB re a full-scale sine. `model` is the name of the model if the engine runs
    several, and `microphone` that of the microphone if there are several. `stretch` increases with
    a reset or swap of the model and with another calibration.

    There are no frames within missing samples. `gaps` are those before the first frame, as pairs of
    the first sample and the one after the last, and that frame has GAP; `skipped` is the number of
    frames without rows there. `missed` is the number of frames before these that this sink missed
    because it was too slow. Otherwise frames are consecutive.

    `since_s` is the time of each frame since the end of the last disturbance: a fault, or a reset,
    swap or calibration; infinite if there was none. Frames before `start_s` still rise from the
    silence before the start. `settling` says that a model remembers either. `time_dim` is the axis
    of time of each array in `values`.

    `period_s` is the time between frames, and `memory_s` the time for which a model remembers a
    fault.

    `ended_s` is the end of the sound for frames after it, and infinite for others. Frames after the
    end are of silence, which completes the model's output for the sound (`Stage.tail_s`); a sink
    gets them if its attribute `hears_tail` is true. In the first of them, the share `part` is still
    sound, if a frame covers a piece of it. If the sound was `cut` off, later frames only show its
    peaks.
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
    period_s: float = 0.0
    memory_s: float = 0.0

    later: Later | None = field(default=None, repr=False)
    """Makes the arrays that do not exist yet."""

    def __post_init__(self) -> None:
        """Frames not made by `lazy`, such as by `dataclasses.replace`, have all arrays."""
        vars(self)["later"] = None

    @classmethod
    def lazy(cls, later: Later, **given: object) -> Self:
        """Make frames whose arrays are made on first use."""
        frames = object.__new__(cls)
        vars(frames).update(given, later=later)
        return frames

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name not in LATER:
                raise AttributeError(f"Frames has no attribute {name!r}", name=name, obj=self)
            made = vars(self)[name] = self.later.make(name)
            return made

    def __len__(self) -> int:
        return len(self.time_s) if self.later is None else len(self.later)

    def goes_on(self, before: "Frames") -> bool:
        """Whether these directly follow others, with equal marks."""
        mine, theirs = self.later, before.later
        if mine is None or theirs is None or self.skipped or self.missed or self.gaps:
            return False
        return _MARKS(self) == _MARKS(before) and theirs.joined(mine) is not None

    @property
    def after_end(self) -> bool:
        """Whether these are after the end of the sound."""
        return self.ended_s < math.inf

    @property
    def ends_s(self) -> tuple[float, float]:
        """First and last value of `time_s`."""
        if self.later is None:
            return float(self.time_s[0]), float(self.time_s[-1])
        return self.later.ends_s

    @property
    def begin_s(self) -> float:
        """First value of `time_s`."""
        return self.ends_s[0]

    @property
    def end_s(self) -> float:
        """Last value of `time_s`."""
        return self.ends_s[1]

    @property
    def calm_s(self) -> float:
        """First and lowest value of `since_s` if it is known that no frame has a fault.

        Else minus infinity; the arrays have the values.
        """
        return -math.inf if self.later is None else self.later.calm_s

    @property
    def settled(self) -> bool:
        """Whether it is known that no frame is `settling`."""
        return self.later is not None and self.later.settled

    @property
    def end_utc(self) -> float:
        """Last value of `utc`."""
        if self.later is None:
            return float(self.utc[-1])
        return self.later.epoch + self.later.ends_s[1]

    def moment(self, kind: str, text: str = "") -> Event:
        """Make an event at the last frame."""
        return Event(kind, int(self.sample[-1]), self.end_s, self.end_utc, text=text)

    def between(self, start: int, stop: int) -> "Frames":
        """A slice of consecutive rows; the first one has the gaps before all."""
        several = isinstance(self.values, tuple) and not isinstance(self.time_dim, tuple)
        dims = (0,) * len(self.values) if several else self.time_dim
        some = mapped(lambda v, dim: cut_along(v, dim, start, stop), self.values, dims)
        changes: JsonDict = {
            name: cut_along(getattr(self, name), -1, start, stop) for name in LATER
        }
        changes |= {} if start == 0 else {"gaps": (), "skipped": 0, "missed": 0}
        return replace(self, values=some, later=None, **changes)

    def copy(self) -> "Frames":
        """A copy with copied arrays."""
        there = vars(self).copy()  # once, as another thread may make an array
        there |= {name: there[name].copy() for name in LATER if name in there}
        frames = object.__new__(Frames)
        vars(frames).update(there, values=mapped(lambda v: v.copy(), self.values))
        return frames


_MARKS = attrgetter("calibrated", "stretch", "start_s", "model", "microphone", "memory_s")
"""Which must agree where frames are joined."""


def mapped(f: Callable[..., np.ndarray], values: Any, *others: Any) -> Any:
    """`f` of an array, or of each array of a NamedTuple."""
    if not isinstance(values, tuple):
        return f(values, *others)
    kind: Any = type(values)
    return kind(
        *(None if v is None else f(v, *rest) for v, *rest in zip(values, *others, strict=True))
    )


def cut_along(values: np.ndarray, dim: int, start: int, stop: int) -> np.ndarray:
    """Values from `start` up to `stop` along an axis."""
    return values[(slice(None),) * (dim % values.ndim) + (slice(start, stop),)]


def joined_along(time_dim: Any, first: Any, *others: Any) -> Any:
    """Outputs of consecutive blocks as one, each array along its axis of time."""
    return mapped(lambda v, dim, *more: np.concatenate([v, *more], dim), first, time_dim, *others)


class Joined:
    """Makes the arrays of consecutive frames that were joined."""

    def __init__(self, parts: Sequence[Later]) -> None:
        self.parts, self.whole = parts, parts[0]
        for part in parts[1:]:
            whole = self.whole.joined(part)
            if whole is None:
                raise ValueError("these frames are not consecutive")
            self.whole = whole
        self.ends_s = self.whole.ends_s
        self.calm_s, self.settled = self.whole.calm_s, self.whole.settled
        self.epoch = parts[-1].epoch

    def __len__(self) -> int:
        return len(self.whole)

    def make(self, name: str) -> np.ndarray:
        """Make an array; UTC and level come from each part."""
        if name in ("utc", "level_db"):
            return np.concatenate([part.make(name) for part in self.parts], axis=-1)
        return self.whole.make(name)

    def joined(self, after: object) -> None:
        """Refuse: joined frames are not joined again."""


def in_one(frames: Sequence[Frames]) -> Frames:
    """Join consecutive lazy frames of one model without marks to one block."""
    first = frames[0]
    if len(frames) == 1:
        return first
    later = Joined([one.later for one in frames if one.later is not None])
    others = [one.values for one in frames[1:]]
    values = joined_along(first.time_dim, first.values, *others)
    marks = {name: v for name, v in vars(first).copy().items() if name not in (*LATER, "later")}
    return Frames.lazy(later, **marks | {"values": values})


def scalar_field(values: object, name: str) -> NDArray[np.float32]:
    """Field `name` of a model's output; a model without named fields has one, "value"."""
    return values if name == "value" and isinstance(values, np.ndarray) else getattr(values, name)
