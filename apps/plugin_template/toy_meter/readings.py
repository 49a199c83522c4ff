"""Its columns and its summary."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from amt_stream.meters.frames import Frames
from amt_stream.meters.rows import Column, Readings

if TYPE_CHECKING:
    from amt_stream.meters.plugin import MakesReadings


class MeanSquareReadings(Readings):
    """The mean square of the louder channel, in decibels, and the highest of it."""

    # What a person looks for in the summary: shown small in the pane.
    headlines = ("toymax_db",)

    # What a log keeps, so that a measurement that was broken off goes on with it.
    kept = (*Readings.kept, "_most")

    def __init__(self, channels: int) -> None:
        now = Column("toy_db", "dB", "level of the mean square over 10 ms", "toy")
        super().__init__("toy", [now], ["toy_db"])

    def renew(self) -> None:
        # Called by `super().__init__`, and when other columns or another part of the sound is
        # chosen.
        self._most = -np.inf

    def take(self, frames: Frames) -> NDArray[np.float64]:
        # The output of the model for one listener: (channel, frame).
        level = 10 * np.log10(np.maximum(frames.values.max(axis=0), 1e-20) / 4e-10)
        if not self.paused:
            # `counted` leaves out faults, and what lies outside of --from and --to.
            self._most = max(self._most, float(level[self.counted(frames)].max(initial=-np.inf)))
        return self.stacked([level], frames)

    def summary(self) -> dict[str, float | None]:
        return {"toymax_db": self._most if np.isfinite(self._most) else None}

    def reset(self) -> None:
        self.renew()


if TYPE_CHECKING:  # mypy says here if the entry could not make them
    _: MakesReadings = MeanSquareReadings
