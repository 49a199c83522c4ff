"""What a person reads off Zwicker loudness: its maximum and percentiles, such as N5."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from amt_stream.meters.accumulators.percentiles import PercentileMeter, still_rising

FRAME_RATE = 500
LEAST_SONE = 1e-9

RISE_S = 0.5
"""Seven time constants of the slower of the two low-passes that loudness passes, 70 ms."""


class ZwickerMeter(PercentileMeter):
    """Maximum and percentiles in sone of the loudness of one channel, since the last reset.

    columns: readings that `update` gives after each frame: `nmax_sone`, any percentile, such as
        `n5_sone`, and those of the last so many seconds, minutes or hours, such as `n5_10min_sone`
        (see `RollingHistogram`)

    `update` takes the loudness of `ZwickerTimeVarying`, a frame per 2 ms. All readings are of the
    same frames: after the last reset, outside pauses, valid. In percentiles, frames before 0.5 s
    count only where they are not lower than all that came later. Those of a rolling window go on
    through a pause and a reset. Percentiles are counted in classes of 1/2000 of a doubling of
    loudness, so within 0.02 % of the exact, and lower values than 0.001 sone as 0; as columns they
    are renewed every 0.1 s. N5 is the value exceeded 5 % of the time; ISO 532-1 takes it over an
    interval that the user chooses.

    Raises ValueError for a column that it does not have.
    """

    kept = (*PercentileMeter.kept, "_measured")

    def __init__(self, columns: Sequence[str] = ()) -> None:
        examples = "nmax_sone", "n5_sone", "n5_10min_sone"
        # Of the logarithm to base 2, on which classes are even.
        classes = {"low": -10.0, "high": 30.0, "width": 0.0005}
        super().__init__(columns, examples, ("n", "_sone"), 1 / FRAME_RATE, **classes)

    def reset(self) -> None:
        super().reset()
        self._measured = 0

    def update(
        self,
        time_s: NDArray[np.float64],
        sone: NDArray[np.floating],
        valid: NDArray[np.bool_] | None = None,
    ) -> NDArray[np.float64]:
        """Take frames (n,) into account; gives the columns (column, n) after each.

        time_s: of the frames; sone: their loudness
        valid: which frames may count; all, where it is not given

        A column is not finite where there is nothing yet.
        """
        known = ~np.isnan(sone) if valid is None else valid & ~np.isnan(sone)
        count = int(np.count_nonzero(known))
        if not self.paused:
            self._measured += count
            self._excluded += len(known) - count
        heard = measured = np.log2(np.maximum(sone, LEAST_SONE))
        if self.paused or count < len(known):
            heard = np.where(known, heard, np.nan)
            there = known & (not self.paused)
            measured, sone = np.where(there, heard, np.nan), np.where(there, sone, np.nan)
        due, rising = self._renewals.due(time_s), still_rising(time_s, RISE_S)
        exceeded = self.percentiles.add(measured, heard, due, rising)
        found = {name: np.exp2(v) for name, v in exceeded.items()}
        found["nmax_sone"] = self.maximum.add(time_s, sone)
        return self.in_order(found, len(time_s))

    def reading(self) -> dict[str, float | None]:
        """All readings by name, in sone and seconds; None where there is none yet."""
        percentiles = self.percentile_readings("n{}_sone")
        return {
            "nmax_sone": self.maximum.known,
            "t_nmax_s": self.maximum.time_s,
            **{name: None if v is None else 2.0**v for name, v in percentiles.items()},
            "measured_s": self._measured / FRAME_RATE,
            "excluded_s": self._excluded / FRAME_RATE,
        }
