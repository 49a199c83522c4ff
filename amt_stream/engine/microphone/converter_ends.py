"""Finds samples at the ends of a converter's range, where it may have clipped."""

import math
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from amt_stream.core.saved_state import Resumable
from amt_stream.engine.sources import LARGEST_SAMPLE
from amt_stream.meters.source_description import SourceDescription

TOO_LARGE = np.nextafter(np.float32(LARGEST_SAMPLE), np.float32(np.inf))
"""From here on a sample is invalid."""


def suspect_from(description: SourceDescription) -> np.float32:
    """The magnitude from which a sample may be clipped, or is invalid."""
    return TOO_LARGE if description.clips_at is None else np.float32(description.clips_at)


def fits_together(chunk: NDArray[np.float32], suspect_from: np.float32) -> bool:
    """Whether no sample is clipped or invalid: each such fault is marked in its own block."""
    return bool(chunk.max(initial=0.0) < suspect_from and chunk.min(initial=0.0) > -suspect_from)


class ConverterEnds(Resumable):
    """Finds runs of two or more samples of a channel at the same end of its converter's range.

    The sound may have been louder there. A single such sample may be right: it is the top of a
    tone of full scale.

    clips_at: of all channels or of each, see `SourceDescription`; None finds nothing
    count: samples in such runs so far, of all channels
    """

    kept: ClassVar[tuple[str, ...]] = ("count", "_last", "_in_run")

    def __init__(self, channels: int, clips_at: float | NDArray[np.floating] | None) -> None:
        self._clips_at = np.asarray(math.inf if clips_at is None else clips_at, np.float32)
        self.count = 0
        # The last sample of each channel at an end, counted from 1, negative at the lower end; and
        # whether it is in a run.
        self._last = np.zeros(channels, np.int64)
        self._in_run = np.zeros(channels, np.bool_)

    def clipped(
        self, block: NDArray[np.float32], valid: NDArray[np.bool_], position: int
    ) -> NDArray[np.int64]:
        """The positions of samples that are in runs, ascending.

        block, valid: (time, channel), from the sample `position` on. The sample before it is
        among them if a run began there
        """
        at_end = valid & (np.abs(block) >= self._clips_at)
        if not at_end.any():
            return np.zeros(0, np.int64)
        numbers = np.arange(position + 1, position + 1 + len(block))
        ends = np.where(block < 0, -1, 1) * np.where(at_end, numbers[:, None], 0)
        follows = np.abs(self._last) == position
        signs = np.sign(np.concatenate([np.where(follows, self._last, 0)[None], ends]))
        pairs = (signs[1:] == signs[:-1]) & (signs[1:] != 0)
        runs = np.zeros(signs.shape, np.bool_)
        runs[1:] = pairs
        runs[:-1] |= pairs
        runs[0] &= ~self._in_run
        self.count += int(np.count_nonzero(runs))
        for channel in np.flatnonzero(at_end.any(axis=0)):
            last = int(np.flatnonzero(at_end[:, channel])[-1])
            self._last[channel] = ends[last, channel]
            self._in_run[channel] = runs[last + 1, channel]
        found: NDArray[np.int64] = position - 1 + np.flatnonzero(runs.any(axis=1))
        return found
