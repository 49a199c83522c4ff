"""One row of a batch: whose sound it is, what is wrong with it, and its frames."""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from amt_stream.core.saved_state import Resumable
from amt_stream.dsp.functional.input_gate import SUSPECT
from amt_stream.engine.gaps import LONGEST_FILLED_GAP_S, Gap, Gaps, is_missing
from amt_stream.engine.history import Marks
from amt_stream.engine.microphone_input import CLIP_LEVEL, MicrophoneInput
from amt_stream.engine.ready_model import ReadyModel
from amt_stream.engine.sources import LARGEST_SAMPLE
from amt_stream.meters.calibration import UNCALIBRATED, Calibration
from amt_stream.meters.frames import Fault, Frames

FEW = 4096
"""Numbers whose product with themselves is no work for several threads."""


class Listener(Resumable):
    """One row of the batch that a model runs on: a microphone, or two as the ears of somebody.

    It has a calibration, marks, gaps and counts of its own, and gives its own `Frames`; the model,
    its blocks and the count of samples are those of all rows. Everything here belongs to the
    thread that runs the model.

    columns: which channels it hears of the `offered` ones of a block
    gain_db: by how much its sound is made louder before the model hears it
    tell_gap: told of the samples that were missing in this row alone, once they have ended
    """

    kept: ClassVar[tuple[str, ...]] = ("frames", "non_finite", "clipped", "broken", "marks")
    kept += ("_stretch", "_given", "input", "gaps")

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
        self.name, self._tell_gap = name, tell_gap
        self.input = MicrophoneInput(columns, offered, calibration, gain_db)
        self.gaps = Gaps()
        self.frames = self.non_finite = self.clipped = self.broken = 0
        self._stretch = 0

    def enter(self, ready: ReadyModel, into: NDArray[np.float32]) -> None:
        """Hear a model from the next sample on, of whose input `into` (ear, time) is the row."""
        self._ready = ready
        self.input.enter(ready, into)

    def begin(self, position: int, given: int) -> None:
        """At the first sample, before which frames up to `given` are."""
        ready = self._ready
        self.input.begin()
        self._begin, self._given = position, given
        self.marks = Marks(ready.clock, position + ready.start, ready.forget)

    def change(self, given: int) -> None:
        """Go on with another model, where frames up to `given` are given."""
        ready, self._given = self._ready, given
        self.marks.clock = ready.clock
        self.marks.start, self.marks.forget = self._begin + ready.start, ready.forget

    def begin_anew(self, position: int) -> None:
        """A step from here on, after which readings settle."""
        self._stretch += 1
        self.marks.add(0, position, position)

    def let_in(self, block: NDArray[np.float32], position: int) -> None:
        """The engine's door: what is no sample of sound stops here; mono goes to both ears.

        block: (time, channel) from the sample `position` on
        """
        part = block[:, self.input.columns]
        if self.input.let_in(part) == SUSPECT:
            self.input.let_in_sane(self.inspect(part, position))
        elif self.gaps.missing:
            self.close_hole()

    def inspect(self, part: NDArray[np.float32], position: int) -> NDArray[np.float32]:
        """What is sound of it, with zeros for the rest, which is counted and marked."""
        missing = is_missing(part)
        if self.gaps.missing or missing.any():
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
            self.gaps.open(position + start)
            self.miss(Fault.GAP, position + start, position + stop)
            self.gaps.lost += stop - start
            if stop < len(missing):
                self.close_hole()

    def miss(self, fault: int, start: int, stop: int) -> None:
        """Samples [start, stop) are missing: a gap, or more of the one that has not ended."""
        self.marks.add(fault, start, stop)
        self.gaps.add(fault, start, stop)

    def close_hole(self) -> None:
        """What was missing in this row, if it was, has ended; after long the model starts anew."""
        hole = self.gaps.close(LONGEST_FILLED_GAP_S * self._ready.clock.fs)
        if hole is not None and self._tell_gap is not None:
            start, stop = hole
            self._tell_gap(self.name, start, stop - start)

    def pieces(self, first: int, stop: int, end: int | None) -> Iterator[tuple[int, int]]:
        """Of frames [first, stop) those that stand in sound, one range after another.

        end: where the sound has ended, if it has
        """
        return self.gaps.pieces(first, stop, end, self._within)

    def _within(self, gap: Gap) -> tuple[int, int]:
        """Range of frames that stand within a gap: of those that stand for their end, after it."""
        place = self._ready.clock
        after = self._ready.model.frames_stand_for_end
        index = place.first_after if after else place.first_from
        return index(gap.start), index(gap.stop)

    def made(
        self,
        values: object,
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
            heard = max(ready.block, math.ceil((high - low) / clock.ratio))
            self.marks.add(Fault.NON_FINITE, position - heard, position)
        skipped, self._given = low - self._given - 1, high - 1
        after: dict[str, object] = {}
        if ended is None:
            self.frames += high - low
        else:
            after = {"ended_s": ended / clock.fs, "cut": cut}
            if ready.model.frames_stand_for_end:
                part = (ended - clock.position(low - 1)) * clock.ratio
                after["part"] = max(0.0, float(part))
        told = self.gaps.passed()
        return self._timed(
            low,
            high,
            epoch,
            told,
            values=values,
            calibrated=self.input.calibrated,
            start_s=(self._begin + ready.start) / clock.fs,
            gaps=tuple((gap.start, gap.stop) for gap in told),
            skipped=skipped,
            stretch=self._stretch,
            model=model,
            microphone=self.name,
            time_dim=ready.model.out_time_dim,
            **after,
        )

    def _timed(self, low: int, high: int, epoch: float, told: list[Gap], **given: Any) -> Frames:
        """Frames [low, high), which tell of gaps; without any mark, their times are made later."""
        clock = self._ready.clock
        calm = None if told else self.marks.calm(low, high, epoch, self.input.level)
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
            level_db=self.input.level(index),
            **given,
        )


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


def _is_sane(v: np.ndarray | None) -> bool:
    """True where all are finite numbers, which they nearly always are, or there are none; quick."""
    if v is None or v.dtype.kind != "f":
        return True
    if v.size > FEW or not v.flags.c_contiguous:
        return math.isfinite(v.sum())
    flat = v.ravel()
    return math.isfinite(flat.dot(flat))
