"""Which columns of one model still remember silence, a fault or a gap."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from amt_stream.core.saved_state import Resumable
from amt_stream.meters.frames import Frames
from amt_stream.meters.rows.column import Column


class Settling(Resumable):
    """Marks columns that settle.

    after_s: time of the first frame after the last missing one
    """

    kept = ("after_s",)

    def __init__(self, columns: Sequence[Column]) -> None:
        self.after_s = -math.inf
        settle_s = [column.settle_s for column in columns]
        self._settle_s = np.array([math.nan if s is None else s for s in settle_s])
        self._window_s = np.array([column.window_s for column in columns])
        # Time after a fault, and after a gap, until no column remembers it.
        self._calm_s = max((s for s in settle_s if s is not None), default=0.0)
        self._whole_s = self._window_s.max(initial=0.0)
        self._own_times = None not in settle_s

    def of(self, frames: Frames) -> NDArray[np.bool_] | bool:
        """Which columns settle or have an incomplete window.

        Either for each frame (frame, column), or for all at once.
        """
        if frames.end_s < frames.start_s:
            return True
        whole = frames.begin_s >= max(frames.start_s, self.after_s + self._whole_s)
        settled = frames.settled or self._own_times
        if whole and settled and frames.calm_s >= self._calm_s:
            return False
        found = frames.since_s[:, None] < self._settle_s
        found |= frames.settling[:, None] & np.isnan(self._settle_s)
        found |= frames.time_s[:, None] < self.after_s + self._window_s
        starting: NDArray[np.bool_] = frames.time_s < frames.start_s
        return found | starting[:, None]
