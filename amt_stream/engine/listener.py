"""One row of a batch: whose sound it is, what is wrong with it, and its frames."""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from amt_stream.calibration import UNCALIBRATED, Calibration, with_corrections
from amt_stream.engine.correcting import NO_LIMIT, Corrected, corrections_of
from amt_stream.engine.frames import Level, Marks
from amt_stream.engine.sources import LARGEST_SAMPLE
from amt_stream.frames import Fault, Frames
from amt_stream.functional.door import SILENCE, SUSPECT, let_in
from amt_stream.resumable import Resumable
from amt_stream.scales import P0

if TYPE_CHECKING:
    from amt_stream.engine.measurement import ReadyModel

CLIP_LEVEL = np.float32(32767 / 32768)  # the largest that a 16-bit converter can give
LONGEST_FILLED_GAP_S = 1.0
LOWEST_DB = -100.0
FEW = 4096
"""Numbers whose product with themselves is no work for several threads."""
FULL_SCALE_SINE = 0.5**0.5
"""Its rms."""

MISSING_BITS = np.uint32(0x7FC0_6A70)
MISSING = MISSING_BITS.view(np.float32)
"""Stands for a sample that is missing in some channels of a block and not in all: a NaN that no
device gives. A comparison does not tell it from another one: `is_missing` does."""


def is_missing(block: NDArray[np.float32]) -> NDArray[np.bool_]:
    """At which samples `block` (time, channel) has MISSING in some channel."""
    missing: NDArray[np.bool_] = np.any(block.view(np.uint32) == MISSING_BITS, axis=1)
    return missing


NO_HOLE = (-1, -1)


class Gap(NamedTuple):
    """Input samples [start, stop) that are missing, and with which faults."""

    fault: int
    start: int
    stop: int


class Listener(Resumable):
    """One row of the batch that a model runs on: a microphone, or two as the ears of somebody.

    It has a calibration, marks, gaps and counts of its own, and gives its own `Frames`; the model,
    its blocks and the count of samples are those of all rows. Everything here belongs to the
    thread that runs the model.

    columns: which channels it hears of the `offered` ones of a block
    gain_db: by how much its sound is made louder before the model hears it
    tell_gap: told of the samples that were missing in this row alone, once they have ended
    """

    kept: ClassVar[tuple[str, ...]] = ("frames", "lost", "non_finite", "clipped", "broken", "marks")
    kept += ("_stretch", "_zeros_run", "_level_db", "_given", "_energy", "gaps", "_passed")
    kept += ("_hole", "starts_anew", "_microphone")
    growing = ("gaps",)

    marks: Marks

    def __init__(
        self,
        columns: slice,
        offered: int,
        calibration: Calibration | Sequence[Calibration] = UNCALIBRATED,
        gain_db: float = 0.0,
        name: str = "",
        tell_gap: Callable[[str, int, int], None] | None = None,
    ) -> None:
        self._tell_gap = tell_gap
        self.channels = len(range(offered)[columns])
        self.name, self.columns = name, columns
        self.calibration, self.gain_db = each_ear(calibration), gain_db
        self.frames = 0
        self.lost = 0
        self.non_finite = 0
        self.clipped = 0
        self.broken = 0
        self._stretch = 0
        self._zeros_run = 0
        # Those that no frame has told of yet; the frames that some stood in have passed.
        self._gaps: list[Gap] = []
        self._passed = 0
        # Samples that are missing in this row alone, while they are.
        self._hole = NO_HOLE
        self.starts_anew = False
        self._corrected: Corrected | None = None

    def enter(self, ready: "ReadyModel", into: NDArray[np.float32]) -> None:
        """Hear a model from the next sample on, of whose input `into` (ear, time) is the row."""
        self._ready, self._input = ready, into
        self._energy = np.zeros(ready.rows)
        self._set_scale()

    def begin(self, position: int, given: int) -> None:
        """At the first sample, before which frames up to `given` are."""
        ready = self._ready
        # One channel is told as both ears.
        self._level: Level = _Level(np.zeros(max(2, ready.rows)), 1, 1.0)
        self._begin, self._given = position, given
        self.marks = Marks(ready.clock, position + ready.start, ready.forget)

    def change(self, given: int) -> None:
        """Go on with another model, where frames up to `given` are given."""
        ready, self._given = self._ready, given
        self.marks.clock = ready.clock
        self.marks.start, self.marks.forget = self._begin + ready.start, ready.forget

    def recalibrate(
        self,
        calibration: Calibration | Sequence[Calibration] | None,
        gain_db: float | None,
        keep_corrections: bool = False,
    ) -> None:
        """With another calibration or gain from here on; None leaves it."""
        if calibration is not None:
            before = [one.correction for one in self.calibration]
            self.calibration = each_ear(calibration)
            if keep_corrections:
                self.calibration = tuple(with_corrections(self.calibration, before))
        if gain_db is not None:
            self.gain_db = gain_db
        self._set_scale()

    def begin_anew(self, position: int) -> None:
        """A step from here on, after which readings settle."""
        self._stretch += 1
        self.marks.add(0, position, position)

    @property
    def _level_db(self) -> NDArray[np.float32]:
        """Of each ear, one as both (ear, 1)."""
        return self._level()

    @_level_db.setter
    def _level_db(self, given: NDArray[np.float32]) -> None:
        self._level = lambda: given

    @property
    def gaps(self) -> NDArray[np.int64]:
        """Fault, start and stop (n, 3) of those that no frame has told of."""
        return np.array(self._gaps, np.int64).reshape(-1, 3)

    @gaps.setter
    def gaps(self, given: NDArray[np.int64]) -> None:
        self._gaps = [Gap(*gap) for gap in given.tolist()]

    @property
    def form(self) -> str:
        """What it hears with, in words."""
        told = "; ".join(f"{c} ({c.full_scale_db_spl!r})" for c in self.calibration)
        return f"{told}, {self.gain_db:+g} dB" if self.gain_db else told

    @property
    def silent(self) -> bool:
        """Only exact zeros for more than a second [any-thread]."""
        return self._zeros_run > self._ready.clock.fs

    @property
    def missing(self) -> bool:
        """Whether there is no sound of this row just now [any-thread]."""
        return self._hole != NO_HOLE

    @property
    def _microphone(self) -> dict[str, NDArray[np.float64]]:
        """The state of what takes off a microphone's response, where something does."""
        return {} if self._corrected is None else self._corrected.memory

    @_microphone.setter
    def _microphone(self, given: dict[str, NDArray[np.float64]]) -> None:
        if self._corrected is not None:
            self._corrected.memory = given

    def be_silent(self) -> None:
        """What is let in next comes after silence."""
        if self._corrected is not None:
            self._corrected.reset()

    def fill(self, count: int) -> None:
        """Zeros for `count` samples that are missing; what a correction still holds goes on."""
        self._input[:, :count] = 0.0
        if self._corrected is not None:
            self._corrected.fill(self._input[:, :count], self._scale)

    def _set_scale(self) -> None:
        """What the model takes a full-scale sample for, in each ear."""
        ready = self._ready
        wanted = corrections_of(self.calibration, self.channels)
        if wanted != (() if self._corrected is None else self._corrected.corrections):
            self._corrected = Corrected(wanted, ready.clock.fs) if wanted else None
        self._let_in = let_in if self._corrected is None else self._corrected
        self._calibrated = not ready.in_pascal or all(c.calibrated for c in self.calibration)
        if ready.in_pascal:
            scale, self._reference = pascal_per_ear(self.calibration)[: ready.rows], P0
        else:
            scale, self._reference = np.ones((1, 1), np.float32), FULL_SCALE_SINE
        self._scale = np.float32(10.0 ** (self.gain_db / 20.0)) * scale

    def let_in(self, block: NDArray[np.float32], position: int) -> None:
        """The engine's door: what is no sample of sound stops here; mono goes to both ears.

        block: (time, channel) from the sample `position` on
        """
        part = block[:, self.columns]
        what = self._let_in(part, self._scale, CLIP_LEVEL, self._input, self._energy)
        if what == SUSPECT:
            sane = self.inspect(part, position)
            self._let_in(sane, self._scale, NO_LIMIT, self._input, self._energy)
        elif self._hole != NO_HOLE:
            self.close_hole()
        self._zeros_run = self._zeros_run + len(part) if what == SILENCE else 0

    def inspect(self, part: NDArray[np.float32], position: int) -> NDArray[np.float32]:
        """What is sound of it, with zeros for the rest, which is counted and marked."""
        missing = is_missing(part)
        if self._hole != NO_HOLE or missing.any():
            self._miss_some(missing, position)
        size = np.abs(part)
        sane = size <= LARGEST_SAMPLE  # false for NaN too
        clipped = sane & (size >= CLIP_LEVEL) & ~missing[:, None]
        wrong = ~sane & ~missing[:, None]
        self.non_finite += int(np.count_nonzero(wrong))
        self.clipped += int(np.count_nonzero(clipped))
        for fault, where in ((Fault.NON_FINITE, wrong), (Fault.CLIP, clipped)):
            self.marks.add_all(fault, position + np.flatnonzero(where.any(axis=1)))
        return np.where(sane & ~missing[:, None], part, np.float32(0.0))

    def _miss_some(self, missing: NDArray[np.bool_], position: int) -> None:
        """Note which of the next samples are missing, and no others."""
        edges = np.flatnonzero(np.diff(missing, prepend=False, append=False)).tolist()
        if not missing[0]:
            self.close_hole()
        for start, stop in zip(edges[::2], edges[1::2], strict=True):
            if self._hole == NO_HOLE:
                self._hole = position + start, position + start
            self.miss(Fault.GAP, position + start, position + stop)
            self.lost += stop - start
            if stop < len(missing):
                self.close_hole()

    def miss(self, fault: int, start: int, stop: int) -> None:
        """Samples [start, stop) are missing: a gap, or more of the one that has not ended."""
        if self._hole[1] == start:
            self._hole = self._hole[0], stop
        self.marks.add(fault, start, stop)
        before = self._gaps[-1] if self._gaps else None
        if self._hole[1] == stop and before is not None and before.stop == start:
            fault, start = fault | self._gaps.pop().fault, before.start
        self._gaps.append(Gap(fault, start, stop))

    def close_hole(self) -> None:
        """What was missing in this row, if it was, has ended; after long the model starts anew."""
        start, stop = self._hole
        if start < 0:
            return
        self._hole = NO_HOLE
        self.starts_anew |= stop - start > LONGEST_FILLED_GAP_S * self._ready.clock.fs
        if self._tell_gap is not None:
            self._tell_gap(self.name, start, stop - start)

    def take_level(self, heard: int) -> None:
        """Level of the input in this block, of which `heard` samples were sound."""
        self._level = _Level(self._energy, heard, self._reference)
        self._energy = np.zeros(self._ready.rows)

    def pieces(self, first: int, stop: int, end: int | None) -> Iterator[tuple[int, int]]:
        """Of frames [first, stop) those that stand in sound, one range after another.

        end: where the sound has ended, if it has
        """
        while self._passed < len(self._gaps) and first < stop:
            gap = self._gaps[self._passed]
            begin, behind = self._within(gap)
            if begin >= stop:
                break
            if first < begin:
                yield first, begin
            first = max(first, behind)
            # What is missing at the very end has nothing after it.
            if first >= stop or (gap.stop == end):
                return
            self._passed += 1
        if first < stop:
            yield first, stop

    def _within(self, gap: Gap) -> tuple[int, int]:
        """Range of frames that stand within a gap: of those that stand for their end, after it."""
        place = self._ready.clock
        after = self._ready.model.frames_stand_for_end
        index = place.first_after if after else place.first_from
        return index(gap.start), index(gap.stop)

    def made(
        self,
        values: Any,
        low: int,
        high: int,
        position: int,
        epoch: float,
        model: str,
        off: bool,
        ended: int | None = None,
        cut: bool = False,
    ) -> Frames:
        """Frames [low, high) of these values, with all that is known of them.

        position: samples so far; `off` where the model has not run
        ended: where the sound has ended, of frames after that, and whether it was `cut` off
        """
        ready, clock = self._ready, self._ready.clock
        if not off and (broken := count_broken(values, ready.model.out_time_dim)):
            self.broken += broken
            self.marks.add(Fault.NON_FINITE, position - ready.block, position)
        skipped, self._given = low - self._given - 1, high - 1
        after: dict[str, Any] = {}
        if ended is None:
            self.frames += high - low
        else:
            after = {"ended_s": ended / clock.fs, "cut": cut}
            if ready.model.frames_stand_for_end:
                part = (ended - clock.position(low - 1)) * clock.ratio
                after["part"] = max(0.0, float(part))
        told, self._gaps, self._passed = self._gaps[: self._passed], self._gaps[self._passed :], 0
        return self._timed(
            low,
            high,
            epoch,
            told,
            values=values,
            calibrated=self._calibrated,
            start_s=(self._begin + ready.start) / clock.fs,
            gaps=tuple((gap.start, gap.stop) for gap in told),
            skipped=skipped,
            stretch=self._stretch,
            model=model,
            row=self.name,
            time_dim=ready.model.out_time_dim,
            **after,
        )

    def _timed(self, low: int, high: int, epoch: float, told: list[Gap], **given: Any) -> Frames:
        """Frames [low, high), which tell of gaps; without any mark, their times are made later."""
        clock = self._ready.clock
        calm = None if told else self.marks.calm(low, high, epoch, self._level)
        if calm is not None:
            return Frames.lazy(calm, **given)
        index = np.arange(low, high, dtype=np.int64)
        fault, settling, since_s = self.marks.rows(index)
        for gap in told:
            fault[0] |= np.uint8(gap.fault)
        time_s = clock.time_s(index)
        return Frames(
            time_s=time_s,
            sample=clock.sample(index),
            utc=epoch + time_s,
            fault=fault,
            settling=settling,
            since_s=since_s,
            level_db=np.repeat(self._level(), len(index), axis=1),
            **given,
        )


class _Level:
    """Level of a block, reckoned when somebody wants it: the energy of `count` samples of each row.

    One row is told as two.
    """

    def __init__(self, energy: NDArray[np.float64], count: int, reference: float) -> None:
        self._energy, self._count, self._reference = energy, count, reference

    def __call__(self) -> NDArray[np.float32]:
        """In dB (row, 1), LOWEST_DB at least."""
        mean_square = self._energy / self._count / self._reference**2
        level = np.maximum(10.0 * np.log10(np.maximum(mean_square, 1e-20)), LOWEST_DB)
        rows = np.empty((max(2, len(level)), 1), np.float32)
        rows[:] = level[:, None]
        return rows


def each_ear(calibration: Calibration | Sequence[Calibration]) -> tuple[Calibration, ...]:
    """The calibration for both ears, or one for each, as a tuple."""
    if isinstance(calibration, Calibration):
        return (calibration,)
    given = tuple(calibration) if isinstance(calibration, Sequence) else (calibration,)
    for one in given:
        if not isinstance(one, Calibration):
            raise TypeError(f"the calibration is {one!r}: give a Calibration, or one for each ear")
    if len(given) not in (1, 2):
        raise ValueError(f"{len(given)} calibrations given: give one, or one for each ear")
    return given


def pascal_per_ear(calibration: Calibration | Sequence[Calibration]) -> NDArray[np.float32]:
    """Pascal per full scale `(1 or 2, 1)`, for both ears or for each."""
    return np.array([[c.pascal_per_unit] for c in each_ear(calibration)], np.float32)


def count_broken(values: Any, time_dim: Any) -> int:
    """How many frames hold NaN or infinity; minus infinity is the level of silence."""
    arrays, dims = (values, time_dim) if isinstance(values, tuple) else ((values,), (time_dim,))
    with np.errstate(over="ignore", invalid="ignore"):
        sane = list(map(_is_sane, arrays))
    broken = 0
    if not all(sane):
        for v, dim, whole in zip(arrays, dims, sane, strict=True):
            if not whole:
                wrong = np.moveaxis(np.isnan(v) | np.isposinf(v), dim, 0).reshape(v.shape[dim], -1)
                broken = max(broken, int(np.count_nonzero(wrong.any(axis=1))))
    return broken


def _is_sane(v: NDArray[Any] | None) -> bool:
    """True where all are finite numbers, which they nearly always are, or there are none; quick."""
    if v is None or v.dtype.kind != "f":
        return True
    if v.size > FEW or not v.flags.c_contiguous:
        return math.isfinite(v.sum())
    flat = v.ravel()
    return math.isfinite(flat.dot(flat))
