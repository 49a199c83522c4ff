"""Its columns and its summary."""

import numpy as np

from amt_stream.rows import Column, Readings


class MeanSquareReadings(Readings):
    """The mean square of the louder channel, in decibels, and the highest of it."""

    headlines = ("toymax_db",)

    def __init__(self, channels: int) -> None:
        now = Column("toy_db", "dB", "level of the mean square over 10 ms", "toy")
        super().__init__("toy", [now], ["toy_db"])

    def renew(self) -> None:
        self._most = -np.inf

    def take(self, frames):
        level = 10 * np.log10(np.maximum(frames.values.max(axis=0), 1e-20) / 4e-10)
        if not self.paused:
            self._most = max(self._most, level[self.counted(frames)].max(initial=-np.inf))
        return level[:, None].astype(np.float64)

    def summary(self):
        return {"toymax_db": float(self._most) if np.isfinite(self._most) else None}

    def reset(self) -> None:
        self.renew()
