"""The frames of one model that rows still need, as one array."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from amt_stream.core.saved_state import Resumable
from amt_stream.meters.frames import Fault

TIME, MARKS, CLIP_S, CLIP, HEAD = range(5)
"""Columns of the table before the values."""

ANY_FAULT = np.uint8(sum(Fault))
UNCALIBRATED = np.uint8(128)
"""The mark for uncalibrated frames, besides the bits of `Fault`."""


SoFar = tuple[NDArray[np.float64] | float, NDArray[np.bool_] | bool]
"""`ClippedSound.so_far` at each of several frames, or at all of them."""


class OfFrames(NamedTuple):
    """What rows have of the frames of one model.

    values: (row, value)
    marks: bits of `Fault` and UNCALIBRATED (row,), of all frames since the row before
    settling: which columns settle (row, column)
    clip_s, clip: what `ClippedSound.so_far` is at each row
    ranges: the least and the greatest values since the row before, if asked for
    """

    values: NDArray[np.float64]
    marks: NDArray[np.uint8]
    settling: NDArray[np.bool_]
    clip_s: NDArray[np.float64]
    clip: NDArray[np.bool_]
    ranges: Sequence[NDArray[np.float64]] = ()


class FrameTable(Resumable):
    """Time, marks, values and settling columns of each frame from that of the last row on.

    width: numbers per frame
    count: columns, of which each has a mark for settling

    epoch_s: Unix time of the first sample, according to the last frame
    """

    kept = ("_rows", "epoch_s")
    growing = ("_rows",)

    def __init__(self, width: int, count: int) -> None:
        # In one array, which is faster than six: of each frame its time, its marks, the time of the
        # last clipped one up to it, whether one was counted, its values and its settling columns.
        # The first row has the values of the last row, at the beginning none.
        self._width, self._count = width, count
        self._rows = np.zeros((1, HEAD + width + count))
        self._rows[0, HEAD : HEAD + width] = math.nan
        self._rows[0, [TIME, CLIP_S]] = -math.inf
        self._ranges: NDArray[np.float64] | None = None
        self._faulty = False
        self.epoch_s = math.nan

    @property
    def last_s(self) -> float:
        """Time of the last frame, -inf before the first."""
        return float(self._rows[-1, TIME])

    @property
    def calibrated(self) -> bool:
        """Whether the last frame is calibrated."""
        return not int(self._rows[-1, MARKS]) & int(UNCALIBRATED)

    @property
    def has_ranges(self) -> bool:
        """Whether it stores the least and the greatest in each frame."""
        return self._ranges is not None

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        super().load_state_dict(state)
        self.refuse_state(len(self._rows) > 0, "_rows")
        self._faulty = True
        if self._ranges is not None:
            self.give_ranges()

    def continue_with(self, before: Self, places: NDArray[np.int64]) -> None:
        """Continue a table of the same model with other columns.

        places: (2, column): a column here, and the same one in `before`
        """
        rows, ranges, width = before._rows, before._ranges, self._width
        self._rows = np.zeros((len(rows), HEAD + width + self._count))
        self._rows[:, :HEAD], self._rows[:, HEAD : HEAD + width] = rows[:, :HEAD], math.nan
        for now, then in ((HEAD, HEAD), (HEAD + width, HEAD + before._width)):
            self._rows[:, now + places[0]] = rows[:, then + places[1]]
        self._faulty, self.epoch_s = before._faulty, before.epoch_s
        if ranges is not None:
            self.give_ranges()
            assert self._ranges is not None
            self._ranges[:, :, places[0]] = ranges[:, :, places[1]]

    def give_ranges(self) -> None:
        """Store the least and the greatest in each frame, besides its values."""
        self._ranges = np.stack([self._rows[:, HEAD : HEAD + self._width]] * 2)

    def begin(self, mark: np.uint8) -> None:
        """Set the marks of rows before the first frame."""
        self._rows[0, MARKS] = mark

    def append(
        self,
        time_s: NDArray[np.float64],
        marks: NDArray[np.uint8] | np.uint8,
        clipped: SoFar,
        values: NDArray[np.float64],
        settling: NDArray[np.bool_] | bool,
        ranges: NDArray[np.float64] | None,
    ) -> None:
        """Append frames; `marks`, `clipped` and `settling` may be one for all of them."""
        before, count = self._rows, len(time_s)
        self._rows = np.empty((len(before) + count, before.shape[1]))
        self._rows[: len(before)], rows = before, self._rows[len(before) :]
        rows[:, TIME], rows[:, MARKS] = time_s, marks
        rows[:, CLIP_S], rows[:, CLIP] = clipped
        rows[:, HEAD : HEAD + self._width] = values.reshape(count, -1)
        rows[:, HEAD + self._width :] = settling
        self._faulty |= isinstance(marks, np.ndarray)
        if self._ranges is not None and ranges is not None:
            self._ranges = np.concatenate([self._ranges, ranges], axis=1)

    def until(self, time_s: NDArray[np.float64]) -> OfFrames:
        """Take what rows at `time_s` have, and forget frames before the last of them."""
        places = self._rows[:, TIME].searchsorted(time_s, side="right") - 1
        last, found = int(places[-1]), self._rows[places]
        marks = found[:, MARKS].astype(np.uint8)
        rest = self._rows[last:]
        if self._faulty:
            faults = self._rows[: last + 1, MARKS].astype(np.uint8) & ANY_FAULT
            for at in faults.nonzero()[0]:
                marks[np.searchsorted(places, at)] |= faults[at]
            rest = rest.copy()
            # Used by now.
            rest[0, MARKS] = int(rest[0, MARKS]) & ~int(ANY_FAULT)
            self._faulty = bool((rest[:, MARKS].astype(np.uint8) & ANY_FAULT).any())
        self._rows = rest
        ranges: Sequence[NDArray[np.float64]] = ()
        if self._ranges is not None:
            ranges = _extremes(self._ranges, places)
            self._ranges = self._ranges[:, last:]
        values, settling = found[:, HEAD : HEAD + self._width], found[:, HEAD + self._width :] > 0
        return OfFrames(values, marks, settling, found[:, CLIP_S], found[:, CLIP] > 0, ranges)


def _extremes(
    ranges: NDArray[np.float64], places: NDArray[np.int64]
) -> Sequence[NDArray[np.float64]]:
    """The least and the greatest (row, column) of all frames since the row before.

    ranges: of each frame (2, frame, column), the first one being that of the last row
    places: frames of the rows; a row without a frame of its own repeats the last one
    """
    known = np.where(np.isfinite(ranges[:, : places[-1] + 1]), ranges[:, : places[-1] + 1], np.nan)
    begin = np.minimum(np.concatenate([[0], places[:-1]]) + 1, places)
    return [
        pick(pick.reduceat(one, begin), one[places])
        for pick, one in zip((np.fmin, np.fmax), known, strict=True)
    ]
