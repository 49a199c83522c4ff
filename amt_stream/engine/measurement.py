"""Samples in, frames out: one model on one stream of sample positions."""

import math
import queue
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from amt_stream.calibration import Calibration
from amt_stream.checkpoints import fingerprint
from amt_stream.compose import Rebuffer
from amt_stream.contract import check_contract, rows_of, takes_pascal
from amt_stream.engine.frames import FrameClock, Level, Marks
from amt_stream.engine.place import HERE, Place
from amt_stream.engine.sources import LARGEST_SAMPLE
from amt_stream.frames import Fault, Frames
from amt_stream.functional.door import SILENCE, SUSPECT, let_in, make_ready
from amt_stream.hosted import HostedStream
from amt_stream.resumable import Resumable, SavedState, Unfitting
from amt_stream.scales import P0
from amt_stream.streaming import Stage, joined, map_fields

CLIP_LEVEL = np.float32(32767 / 32768)  # the largest that a 16-bit converter can give
NO_LIMIT = np.float32(np.inf)
LONGEST_FILLED_GAP_S = 1.0
LOWEST_DB = -100.0
FEW = 4096
"""Numbers whose product with themselves is no work for several threads."""
LATEST = 2**60
"""No sample is counted so far: a million years of sound."""
FULL_SCALE_SINE = 0.5**0.5
"""Its rms."""


class ReadyModel:
    """A model ready to run: its stream, the size of its blocks, the time of its frames.

    `heard` channels of the source go to its `rows`, one to both ears where it has two. The model is
    moved to `place`; sound and numbers stay on the CPU. Built outside inference mode, by whoever
    starts or swaps; used by the engine thread alone.
    """

    def __init__(
        self, model: Stage, fs: int, block_ms: float, heard: int = 2, place: Place = HERE
    ) -> None:
        name = type(model).__name__
        if not isinstance(model, Stage):
            raise TypeError(f"the model is {model!r}: give a Stage, such as Moore2016(fs={fs})")
        check_contract(model)
        if model.fs not in (None, fs):
            raise ValueError(
                f"{name} was built for {model.fs} Hz and the source gives {fs} Hz: "
                f"build it with fs={fs}"
            )
        if not 1.0 <= block_ms <= 1000.0:
            raise ValueError(f"block_ms is {block_ms}: give 1 to 1000 ms")
        blocks = max(1, round(block_ms * 1e-3 * fs / model.block_size))
        self.model, self.fingerprint = model, fingerprint(model)
        self.block_ms = block_ms
        self.block = self.usual_block = blocks * model.block_size
        lead = 1 / model.ratio if model.frames_stand_for_end else Fraction(0)
        self.clock = FrameClock(model.ratio, model.latency - lead, fs)
        self.frames = int(self.block * model.ratio)
        self.start = round(model.settle_s * fs)
        self.forget = round(max(model.settle_s, model.forget_s) * fs)
        self.heard, self.in_pascal = heard, takes_pascal(model)
        self.rows = rows_of(model, heard)
        if heard > self.rows or (heard < self.rows and not self.in_pascal):
            raise ValueError(
                f"{name} was built for {self.rows} channels and is to hear {heard}: build it with "
                f"channels={heard}, or choose {self.rows} of them"
            )
        self.place = place
        place.take(model)
        self.stream = place.stream(model, (1, self.rows))
        self.door = Rebuffer(self.stream, blocks)
        self._silence = self._blocks(torch.zeros(1, self.rows, model.block_size))
        self.fields = scalar_fields(self._silence)

    def _blocks(self, x: torch.Tensor) -> Any:
        with torch.inference_mode():
            return self.place.stream(self.model, (1, self.rows))(x)

    def warm(self) -> None:
        """Run blocks of noise and of silence, so that nothing is compiled once it is live."""
        generator = torch.Generator().manual_seed(0)
        noise = torch.randn(1, self.rows, self.block, generator=generator)
        for x in (noise, noise, torch.zeros_like(noise)):
            self._blocks(x)
        if isinstance(self.stream, HostedStream):
            self.stream.capture(self.block)

    def of(self, model: Stage) -> "ReadyModel":
        """Another model, ready for the same sound in the same blocks."""
        return ReadyModel(model, self.clock.fs, self.block_ms, self.heard, self.place)

    def lasting(self, samples: int) -> "ReadyModel":
        """The same model on the same stream, in blocks of about another length."""
        blocks = max(1, round(samples / self.model.block_size))
        other = copy(self)
        other.block = blocks * self.model.block_size
        other.frames = int(other.block * self.model.ratio)
        other.block_ms = 1000.0 * other.block / self.clock.fs
        other.door = Rebuffer(self.stream, blocks)
        return other

    def take_over(self, before: "ReadyModel") -> None:
        """Go on from the state of one like it, between two blocks, and be saved as that one."""
        self.fingerprint, self.usual_block = before.fingerprint, before.usual_block
        if self.stream is not before.stream:
            for key, buffer in self.stream.state.items():
                buffer.copy_(before.stream.state[key])

    def nothing(self) -> Any:
        """What stands for a block's output where the model has not run: NaN."""
        blocks = [self._silence] * (self.block // self.model.block_size)
        y = joined(*blocks, dims=self.model.out_time_dim)
        return map_fields(lambda v: v.fill_(math.nan) if v.is_floating_point() else v, y)


class Gap(NamedTuple):
    """Input samples [start, stop) that are missing, and with which faults."""

    fault: int
    start: int
    stop: int


class Measurement(Resumable):
    """Feeds a model with what arrives and emits `Frames`; its sample count is the only clock.

    Everything here belongs to one thread, the one that calls `take`.
    """

    kept: ClassVar[tuple[str, ...]] = ("block", "position", "rows", "lost", "non_finite", "clipped")
    kept += (
        "marks",
        "_stretch",
        "_zeros_run",
        "_level_db",
        "_origin",
        "_index",
        "_first",
        "_given",
    )
    kept += ("_energy", "_heard", "memory", "broken", "gaps", "_passed")
    growing = ("gaps",)

    def __init__(
        self,
        ready: ReadyModel,
        calibration: Calibration | Sequence[Calibration],
        columns: slice,
        emit: Callable[[Frames], None],
        epoch: Callable[[float], float],
        model_changed: Callable[[ReadyModel], None],
        name: str = "",
        begin: int = 0,
    ) -> None:
        if begin < 0 or begin % ready.model.block_size:
            raise ValueError(
                f"first_sample is {begin}: give a multiple of {ready.model.block_size} samples, "
                f"the block of {type(ready.model).__name__}"
            )
        make_ready()
        self.name = name
        self.position = self._begin = begin
        self.rows = 0
        self.lost = 0
        self.non_finite = 0
        self.clipped = 0
        self.broken = 0
        self.off = False
        self.late = False
        self.commands: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._columns = columns
        self._emit_frames, self._epoch, self._model_changed = emit, epoch, model_changed
        self._stretch = 0
        self._zeros_run = 0
        # One channel is told as both ears.
        self._level: Level = _Level(np.zeros(max(2, ready.rows)), 1, 1.0)
        self._end: int | None = None
        # Those that no frame has told of yet; the frames that some stood in have passed.
        self._gaps: list[Gap] = []
        self._passed = 0
        self._next_model: ReadyModel | None = None
        self.calibration = each_ear(calibration)
        self._set_model(ready)
        self._first = ready.clock.first_from(begin)
        self._given = max(self._first, self._index) - 1
        self.marks = Marks(ready.clock, begin + ready.start, ready.forget)

    @property
    def _level_db(self) -> NDArray[np.float32]:
        """Of each row, one channel as both ears (row, 1)."""
        return self._level()

    @_level_db.setter
    def _level_db(self, given: NDArray[np.float32]) -> None:
        self._level = lambda: given

    @property
    def _form(self) -> dict[str, str]:
        """What it measures with, in words."""
        return {
            "model": self.ready.fingerprint,
            "blocks": f"{self.ready.usual_block} samples of {self.ready.heard} channels",
            "calibration": "; ".join(f"{c} ({c.full_scale_db_spl!r})" for c in self.calibration),
        }

    @property
    def gaps(self) -> NDArray[np.int64]:
        """Fault, start and stop (n, 3) of those that no frame has told of."""
        return np.array(self._gaps, np.int64).reshape(-1, 3)

    @gaps.setter
    def gaps(self, given: NDArray[np.int64]) -> None:
        self._gaps = [Gap(*gap) for gap in given.tolist()]

    @property
    def block(self) -> int:
        """Samples of a block, which may be longer than the usual ones for a while."""
        return self.ready.block

    @block.setter
    def block(self, samples: int) -> None:
        usual = self.ready
        if samples != usual.block:
            longer = usual.lasting(min(samples, usual.clock.fs))
            self._set_model(longer)
            self.refuse_state(samples == longer.block, "block")
            self.exchange(longer, usual)

    @property
    def memory(self) -> dict[str, NDArray[Any]]:
        """The model's state, and what waits for its next block, by name."""
        door = self.ready.door
        waiting = {"held": door.held, "count": door.count}
        return {
            name: v.cpu().numpy().copy() for name, v in (waiting | self.ready.stream.state).items()
        }

    @memory.setter
    def memory(self, given: Mapping[str, NDArray[Any]]) -> None:
        door = self.ready.door
        waiting = {"held": door.held, "count": door.count}
        with torch.no_grad():
            for name, buffer in (waiting | self.ready.stream.state).items():
                buffer.copy_(torch.from_numpy(given[name]))

    def state_dict(self) -> SavedState:
        """The state, to be taken up by one with an equal model and calibration [engine-thread]."""
        return {**self._form, **super().state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where `state` was saved [before start]."""
        saved = dict(state)
        for name, mine in self._form.items():
            was = saved.pop(name, None)
            if was != mine:
                raise Unfitting(f"the {name} was {was}, and is {mine}: go on with the same")
        super().load_state_dict(saved)
        self.refuse_state(LATEST > self.position >= self._origin >= 0, "position")
        fits = int(self.ready.door.count) == (self.position - self._origin) % self.ready.block
        self.refuse_state(fits, "position")

    @property
    def samples(self) -> int:
        """Input samples so far, lost ones included [any-thread]."""
        return self.position if self._end is None else self._end

    @property
    def silent(self) -> bool:
        """Only exact zeros for more than a second [any-thread]."""
        return self._zeros_run > self.ready.clock.fs

    def _set_model(self, ready: ReadyModel) -> None:
        self.ready = ready
        self._origin = self.position
        self._index = int(self.position * ready.clock.ratio)
        self._input = np.zeros((ready.rows, ready.block), np.float32)
        self._tensor = torch.from_numpy(self._input)[None]
        self._energy = np.zeros(ready.rows)
        self._heard = 0
        self._set_scale()

    def _set_scale(self) -> None:
        """What the model takes a full-scale sample for, in each of its rows."""
        self._calibrated = not self.ready.in_pascal or all(c.calibrated for c in self.calibration)
        if self.ready.in_pascal:
            self._scale, self._reference = pascal_per_ear(self.calibration)[: self.ready.rows], P0
        else:
            self._scale, self._reference = np.ones((1, 1), np.float32), FULL_SCALE_SINE

    def reset(self) -> None:
        """The model back to silence; the clock goes on [engine-thread]."""
        self.ready.stream.reset()
        self._begin_anew()

    def recalibrate(self, calibration: Calibration | Sequence[Calibration]) -> None:
        """One for both ears, or one each, from here on [engine-thread].

        A step in level, so readings settle anew.
        """
        self.calibration = each_ear(calibration)
        self._set_scale()
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._stretch += 1
        self.marks.add(0, self.position, self.position)

    def swap(self, ready: ReadyModel) -> None:
        """Go on with another model from the next place where its blocks fit [engine-thread].

        It hears as many channels, in the same unit.
        """
        self._next_model = ready

    def exchange(self, before: ReadyModel, after: ReadyModel) -> None:
        """From the next block on `after` in the place of `before`, where that runs [any-thread].

        It has the same states, and goes on from them: nothing has to settle.
        """
        self.commands.put(partial(self._exchange, before, after))

    def _exchange(self, before: ReadyModel, after: ReadyModel) -> None:
        if self.ready is before:
            after.take_over(before)
            self._set_model(after)

    def switch_off(self) -> None:
        """Give NaN, marked as off, and run no model [engine-thread]."""
        self.off = True
        self.ready.stream.reset()

    def switch_on(self) -> None:
        """Run the model again, from silence [engine-thread]."""
        self.off = False

    @property
    def wanted(self) -> int:
        """Samples that are still missing in the block under way."""
        return self.ready.block - (self.position - self._origin) % self.ready.block

    def take(self, chunk: NDArray[np.float32], lost: int = 0, flags: int = 0) -> None:
        """Process samples `(time, channel)`, before which `lost` are missing [engine-thread]."""
        if lost:
            self._cross_gap(lost, flags)
        elif flags:
            self.marks.add(flags, self.position, self.position + 1)
        if self.late:
            self.marks.add(Fault.OVERLOAD, self.position, self.position + len(chunk))
        at = 0
        while at < len(chunk):
            n = self._room(len(chunk) - at)
            self._let_in(chunk[at : at + n, self._columns], n)
            self._push(n)
            at += n

    def flush(self) -> None:
        """Push zeros until the frame at the very end is out, if anything came [engine-thread]."""
        if self.position == self._begin:
            return
        self._end = self.position
        while self._index < self.ready.clock.first_after(self._end):
            self._fill(self.wanted)

    def _room(self, samples: int) -> int:
        """How many of `samples` fit into this block; commands are carried out at its start."""
        wanted = self.wanted
        if wanted == self.ready.block:
            while not self.commands.empty():
                self.commands.get()()
            if self._next_model is not None:
                self._change_model(self._next_model)
            wanted = self.wanted
        return min(samples, wanted)

    def _change_model(self, ready: ReadyModel) -> None:
        if self.position % ready.model.block_size:
            return
        self._next_model = None
        reached = self.ready.clock.position(max(self._index, self._first) - 1)
        self._set_model(ready)
        # Rows that the old model has already given must not come again.
        self._first = max(ready.clock.first_from(self._begin), ready.clock.first_after(reached))
        self._given = max(self._first, self._index) - 1
        self.marks.clock = ready.clock
        self.marks.start, self.marks.forget = self._begin + ready.start, ready.forget
        self._begin_anew()
        self._model_changed(ready)

    def _cross_gap(self, lost: int, flags: int) -> None:
        """Zeros for what is missing; a long gap is jumped, and the model starts anew after it.

        In an overload a gap is jumped too, or its zeros would cost what the sound would have.
        """
        fault, end = flags | Fault.GAP, self.position + lost
        self._gaps.append(Gap(fault, self.position, end))
        self.marks.add(fault, self.position, end)
        long = lost > LONGEST_FILLED_GAP_S * self.ready.clock.fs
        if long or flags & Fault.OVERLOAD:
            # What the model still holds of the sound before it.
            self._miss(min(lost, max(0, math.ceil(self.ready.clock.latency))))
            self._miss(min(end - self.position, self.wanted % self.ready.block))
            skipped = (end - self.position) // self.ready.block * self.ready.block
            self.position += skipped
            self.lost += skipped
            self._index += int(skipped * self.ready.clock.ratio)
        if long:
            self.ready.stream.reset()
        self._miss(end - self.position)

    def _miss(self, count: int) -> None:
        # The position first: whoever reads both meanwhile must not find more lost than there was.
        self._fill(count)
        self.lost += count

    def _fill(self, count: int) -> None:
        while count > 0:
            n = self._room(count)
            self._input[:, :n] = 0.0
            self._push(n)
            count -= n

    def _let_in(self, block: NDArray[np.float32], n: int) -> None:
        """The engine's door: what is no sample of sound stops here; mono goes to both ears."""
        if self.off:
            return
        what = let_in(block, self._scale, CLIP_LEVEL, self._input, self._energy)
        if what == SUSPECT:
            let_in(self._inspect(block), self._scale, NO_LIMIT, self._input, self._energy)
        self._zeros_run = self._zeros_run + n if what == SILENCE else 0

    def _inspect(self, block: NDArray[np.float32]) -> NDArray[np.float32]:
        size = np.abs(block)
        sane = size <= LARGEST_SAMPLE  # false for NaN too
        clipped = sane & (size >= CLIP_LEVEL)
        self.non_finite += int(np.count_nonzero(~sane))
        self.clipped += int(np.count_nonzero(clipped))
        for fault, where in ((Fault.NON_FINITE, ~sane), (Fault.CLIP, clipped)):
            self.marks.add_all(fault, self.position + np.flatnonzero(where.any(axis=1)))
        return np.where(sane, block, np.float32(0.0))

    def _push(self, n: int) -> None:
        if self.off:
            self._pass_by(n)
            return
        self.position += n
        if self._end is None:
            self._heard += n
        if n == self.ready.block:
            y = self.ready.stream(self._tensor)
        else:
            y = self.ready.door.push(self._tensor[..., :n])  # it copies what it keeps
        if y is not None:
            self._take_level()
            self._emit(y)

    def _pass_by(self, n: int) -> None:
        """As `_push`, without the model."""
        self.marks.add(Fault.OFF | Fault.OVERLOAD, self.position, self.position + n)
        self.position += n
        if self.wanted == self.ready.block:
            self._emit(self.ready.nothing())

    def _take_level(self) -> None:
        """Level of the input in this block; in a flush there is none and the last one stays."""
        if self._heard:
            self._level = _Level(self._energy, self._heard, self._reference)
            self._energy = np.zeros(self.ready.rows)
        self._heard = 0

    def _emit(self, y: Any) -> None:
        clock = self.ready.clock
        start = self._index
        self._index += self.ready.frames
        first, stop = max(self._first, start), self._index
        if self._end is not None:
            stop = min(stop, clock.first_after(self._end))
        for low, high in self._pieces(first, stop):
            self._give(y, start, low, high)

    def _pieces(self, first: int, stop: int) -> Iterator[tuple[int, int]]:
        """Of frames [first, stop) those that stand in sound, one range after another."""
        while self._passed < len(self._gaps) and first < stop:
            gap = self._gaps[self._passed]
            begin, end = self._within(gap)
            if begin >= stop:
                break
            if first < begin:
                yield first, begin
            first = max(first, end)
            # What is missing at the very end has nothing after it.
            if first >= stop or (gap.stop == self._end):
                return
            self._passed += 1
        if first < stop:
            yield first, stop

    def _within(self, gap: Gap) -> tuple[int, int]:
        """Range of frames that stand within a gap: of those that stand for their end, after it."""
        place = self.ready.clock
        after = self.ready.model.frames_stand_for_end
        index = place.first_after if after else place.first_from
        return index(gap.start), index(gap.stop)

    def _give(self, y: Any, start: int, low: int, high: int) -> None:
        """Hand on frames [low, high) of the output, which begins with frame `start`."""
        clock, dims = self.ready.clock, self.ready.model.out_time_dim
        whole = low == start and high == start + self.ready.frames
        values = as_arrays(y, dims, None if whole else slice(low - start, high - start))
        if not self.off and (broken := count_broken(values, dims)):
            self.broken += broken
            self.marks.add(Fault.NON_FINITE, self.position - self.ready.block, self.position)
        skipped, self._given = low - self._given - 1, high - 1
        self.rows += high - low
        epoch = self._epoch(self.position / clock.fs)
        told, self._gaps, self._passed = self._gaps[: self._passed], self._gaps[self._passed :], 0
        frames = self._timed(
            low,
            high,
            epoch,
            told,
            values=values,
            calibrated=self._calibrated,
            start_s=(self._begin + self.ready.start) / clock.fs,
            gaps=tuple((gap.start, gap.stop) for gap in told),
            skipped=skipped,
            stretch=self._stretch,
            model=self.name,
        )
        self._emit_frames(frames)

    def _timed(self, low: int, high: int, epoch: float, told: list[Gap], **given: Any) -> Frames:
        """Frames [low, high), which tell of gaps; without any mark, their times are made later."""
        dims = self.ready.model.out_time_dim
        calm = None if told else self.marks.calm(low, high, epoch, self._level, dims)
        if calm is not None:
            return Frames.lazy(calm, **given)
        index = np.arange(low, high, dtype=np.int64)
        fault, settling, since_s = self.marks.rows(index)
        for gap in told:
            fault[0] |= np.uint8(gap.fault)
        time_s = self.ready.clock.time_s(index)
        return Frames(
            time_s=time_s,
            sample=self.ready.clock.sample(index),
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


def as_arrays(y: Any, time_dim: Any, rows: slice | None) -> Any:
    """The output's rows, or all of them, as numpy arrays of their own, the batch row removed."""

    def own(tensor: torch.Tensor, dim: int) -> NDArray[Any]:
        array = tensor.numpy()[0]
        return (array if rows is None else array[(..., rows, *[slice(None)] * (-1 - dim))]).copy()

    if isinstance(y, torch.Tensor):
        return own(y, time_dim)
    return type(y)(*[None if v is None else own(v, d) for v, d in zip(y, time_dim, strict=True)])


def count_broken(values: Any, time_dim: Any) -> int:
    """How many frames hold NaN or infinity; minus infinity is the level of silence."""
    arrays, dims = (values, time_dim) if isinstance(values, tuple) else ((values,), (time_dim,))
    broken = 0
    with np.errstate(over="ignore", invalid="ignore"):
        for v, dim in zip(arrays, dims, strict=True):
            if v is not None and v.dtype.kind == "f" and not _is_sane(v):
                wrong = np.moveaxis(np.isnan(v) | np.isposinf(v), dim, 0).reshape(v.shape[dim], -1)
                broken = max(broken, int(np.count_nonzero(wrong.any(axis=1))))
    return broken


def _is_sane(v: NDArray[Any]) -> bool:
    """True only where all are finite numbers, which they always are; quick, with few of them."""
    if v.size > FEW or not v.flags.c_contiguous:
        return math.isfinite(v.sum())
    flat = v.ravel()
    return math.isfinite(flat.dot(flat))


def scalar_fields(y: Any) -> tuple[str, ...]:
    """Names of the outputs that are one number per frame."""
    if isinstance(y, torch.Tensor):
        return ("value",) if y.dim() == 2 else ()
    return tuple(
        name for name, v in zip(y._fields, y, strict=True) if v is not None and v.dim() == 2
    )
