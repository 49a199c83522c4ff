"""One row of a model's batch: its input, faults and frames."""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from amt_stream.core.saved_state import Resumable
from amt_stream.dsp.functional.input_gate import SUSPECT
from amt_stream.engine.devices.zero_gate import LONGEST_S
from amt_stream.engine.history import Marks
from amt_stream.engine.microphone.channels import Columns
from amt_stream.engine.microphone.converter_ends import ConverterEnds
from amt_stream.engine.microphone.gaps import LONGEST_FILLED_GAP_S, Gap, Gaps, is_missing, is_silent
from amt_stream.engine.microphone.microphone_input import MicrophoneInput
from amt_stream.engine.models.position import Position
from amt_stream.engine.sources import LARGEST_SAMPLE
from amt_stream.meters.calibration import UNCALIBRATED, Calibration
from amt_stream.meters.frames import Fault, Frames
from amt_stream.meters.source_description import InputGain, SourceDescription

FEW = 4096
"""Array size up to which a dot product does not start threads."""


class Listener(Resumable):
    """One row of the batch that a model runs on: a microphone, or two as the ears of a listener.

    It has its own calibration, marks, gaps and counts, and gives its own `Frames`; the model, its
    blocks and the sample count are shared by all rows. Only the thread that runs the model may use
    it.

    columns: its channels among the `offered` ones of a block
    gain_db: gain applied before the model
    tell_gap: called after a gap of this row alone, with name, start, number of samples and faults
    description: what the source knows of its sound; by default computed sound
    places, measured: as for `MicrophoneInput`
    """

    kept: ClassVar[tuple[str, ...]] = ("frames", "non_finite", "broken", "marks")
    kept += ("_stretch", "_given", "input", "gaps", "ends")

    marks: Marks

    def __init__(
        self,
        columns: Columns,
        offered: int,
        calibration: Calibration | Sequence[Calibration] = UNCALIBRATED,
        gain_db: float = 0.0,
        name: str = "",
        tell_gap: Callable[[str, int, int, int], None] | None = None,
        places: Sequence[int] = (),
        measured: int = 0,
        description: SourceDescription | None = None,
    ) -> None:
        self.name, self._tell_gap = name, tell_gap
        about = description or SourceDescription.of_signal(offered)
        self.input = MicrophoneInput(
            columns, offered, calibration, gain_db, places, measured, about
        )
        ends = np.array(about.channel_ends)[columns] if about.channel_ends else about.clips_at
        self.ends = ConverterEnds(self.input.channels, ends)
        self.gaps = Gaps(self.input.channels, zeros_are_sound=about.kind != "device")
        self.frames = self.non_finite = self.broken = 0
        self._stretch = 0

    def begin(self, position: Position) -> None:
        """Begin at the first sample of a position, which all rows share."""
        ready, self._position = position.ready, position
        # An ear without sound is not measured; a programme may have a channel without sound.
        self.gaps.zeros.of_each = ready.in_pascal
        self.input.begin()
        self._given = position.given
        self.marks = Marks(ready.clock, position.begin + ready.start, ready.forget)

    def change_model(self) -> None:
        """Continue with another model."""
        ready, self._given = self._position.ready, self._position.given
        self.marks.clock, self.marks.forget = ready.clock, ready.forget
        self.marks.start = self._position.begin + ready.start

    def begin_anew(self) -> None:
        """Start a new stretch, after which readings settle."""
        self._stretch += 1
        self.marks.add(0, self._position.sample, self._position.sample)

    def know_gain(self, gains: Sequence[InputGain | None]) -> bool:
        """Take the gain of each channel's input, if known.

        True if the calibration holds no longer, or again; readings then settle.
        """
        gain = gains[np.arange(len(gains))[self.input.columns][0]]
        changed = gain is not None and self.input.know_gain(gain)
        if changed:
            self.begin_anew()
        return changed

    def hear(self, block: NDArray[np.float32], off: bool = False) -> None:
        """Take sound into the model's input: invalid samples become 0, mono goes to both ears.

        block: the next samples (time, channel)
        off: whether the model does not run: then only what is missing or invalid counts
        """
        part = block[:, self.input.columns]
        part = self.gaps.zeros.marked(part, round(LONGEST_S * self._position.ready.clock.fs))
        if off:
            if np.isnan(part).any():
                self._inspect(part)
            else:
                self.close_hole()
        elif self.input.feed(part) == SUSPECT:
            self.input.feed_checked(self._inspect(part))
        elif self.gaps.missing:
            self.close_hole()

    def _inspect(self, part: NDArray[np.float32]) -> NDArray[np.float32]:
        """The block with invalid samples replaced by 0, counted and marked."""
        position = self._position.sample
        missing = is_missing(part)
        if self.gaps.missing or missing.any():
            self._miss_some(part, missing, position)
        size = np.abs(part)
        sane = size <= LARGEST_SAMPLE  # False for NaN too
        wrong = ~sane & ~missing[:, None]
        self.non_finite += int(np.count_nonzero(wrong))
        self.marks.add_all(Fault.NON_FINITE, position + np.flatnonzero(wrong.any(axis=1)))
        clipped = self.ends.clipped(part, sane & ~missing[:, None], position)
        self.marks.add_all(Fault.CLIP, clipped)
        return np.where(sane & ~missing[:, None], part, np.float32(0.0))

    def _miss_some(
        self, part: NDArray[np.float32], missing: NDArray[np.bool_], position: int
    ) -> None:
        """Record which of the next samples are missing."""
        edges = np.flatnonzero(np.diff(missing, prepend=False, append=False)).tolist()
        if not missing[0]:
            self.close_hole()
        for start, stop in zip(edges[::2], edges[1::2], strict=True):
            self.gaps.open(position + start)
            silent = Fault.SILENT if is_silent(part[start:stop]) else 0
            self.miss(Fault.GAP | silent, position + start, position + stop)
            self.gaps.lost += stop - start
            if stop < len(missing):
                self.close_hole()

    def miss(self, fault: int, start: int, stop: int) -> None:
        """Record missing samples [start, stop): a new gap, or more of the present one."""
        self.marks.add(fault, start, stop)
        self.gaps.add(fault, start, stop)

    def close_hole(self) -> None:
        """End the present gap of this row, if any; after a long one the model restarts."""
        hole = self.gaps.close(LONGEST_FILLED_GAP_S * self._position.ready.clock.fs)
        if hole is not None and self._tell_gap is not None:
            self._tell_gap(self.name, hole.start, hole.stop - hole.start, hole.fault)

    def pieces(self, first: int, stop: int) -> Iterator[tuple[int, int]]:
        """The ranges of frames within [first, stop) that lie outside gaps."""
        position, ready = self._position, self._position.ready
        after, clock = ready.model.frames_stand_for_end, ready.clock
        frame_at = clock.first_after if after else clock.first_from
        return self.gaps.pieces(first, stop, position.end, frame_at)

    def count_broken(self, values: object, frames: int) -> None:
        """Count and mark frames in which the model gave no number."""
        ready, position = self._position.ready, self._position.sample
        if broken := count_broken(values, ready.model.out_time_dim):
            self.broken += broken
            span = max(ready.block, math.ceil(frames / ready.clock.ratio))
            self.marks.add(Fault.NON_FINITE, position - span, position)

    def make_frames(
        self,
        low: int,
        high: int,
        values: object,
        epoch: float,
        model: str,
        ended: int | None = None,
        cut: bool = False,
    ) -> Frames:
        """`Frames` [low, high) of these values, with times, marks and gaps.

        ended, cut: for frames after the end: where the sound ended, and whether it was cut off
        """
        ready, clock = self._position.ready, self._position.ready.clock
        skipped, self._given = low - self._given - 1, high - 1
        after: dict[str, object] = {}
        if ended is None:
            self.frames += high - low
        else:
            after = {"ended_s": ended / clock.fs, "cut": cut}
            if ready.model.frames_stand_for_end:
                part = (ended - clock.position(low - 1)) * clock.ratio
                after["part"] = max(0.0, float(part))
        gaps = self.gaps.passed()
        return self._timed(
            low,
            high,
            epoch,
            gaps,
            values=values,
            calibrated=self.input.calibrated,
            start_s=self.marks.start / clock.fs,
            gaps=tuple((gap.start, gap.stop) for gap in gaps),
            skipped=skipped,
            stretch=self._stretch,
            model=model,
            microphone=self.name,
            time_dim=ready.model.out_time_dim,
            period_s=1 / clock.frame_rate,
            memory_s=ready.forget / clock.fs,
            **after,
        )

    def _timed(self, low: int, high: int, epoch: float, passed: list[Gap], **given: Any) -> Frames:
        """Frames [low, high) after these gaps; without any mark, their times are computed later."""
        clock = self._position.ready.clock
        calm = None if passed else self.marks.calm(low, high, epoch, self.input.level)
        if calm is not None:
            return Frames.lazy(calm, **given)
        index = np.arange(low, high, dtype=np.int64)
        fault, settling, since_s = self.marks.rows(index)
        for gap in passed:
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
    """Number of frames with NaN or infinity; minus infinity is allowed, as the level of silence."""
    arrays, dims = (values, time_dim) if isinstance(values, tuple) else ((values,), (time_dim,))
    sane = list(map(_is_sane, arrays))
    broken = 0
    if not all(sane):
        for v, dim, whole in zip(arrays, dims, sane, strict=True):
            if not whole:
                wrong = np.moveaxis(np.isnan(v) | np.isposinf(v), dim, 0).reshape(v.shape[dim], -1)
                broken = max(broken, int(np.count_nonzero(wrong.any(axis=1))))
    return broken


def _is_sane(v: np.ndarray | None) -> bool:
    """Whether all values are finite (the usual case), or there are none; fast."""
    if v is None or v.dtype.kind != "f":
        return True
    if v.size <= FEW and v.flags.c_contiguous:
        return math.isfinite(np.vdot(v, v))
    with np.errstate(over="ignore", invalid="ignore"):
        return math.isfinite(v.sum())
