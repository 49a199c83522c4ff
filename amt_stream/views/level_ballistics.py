"""How the needle of a level meter moves."""

import math

FALL_DB_S = 20.0
SILENCE_DB = -99.9


class LevelBallistics:
    """A level that rises at once and falls by 20 dB/s, its maximum, and whether it clipped.

    Times are those of the sound; if time jumps back, it starts again.

    hold_s: seconds for which the maximum is held
    """

    def __init__(self, hold_s: float = 2.0) -> None:
        self._hold_s = hold_s
        self.clear()

    def clear(self) -> None:
        self.level = self.held = -math.inf
        self.clipped = False
        self._time_s = self._held_s = -math.inf

    def follow(self, time_s: float, level: float, clipped: bool = False) -> None:
        if time_s < self._time_s:
            self.clear()
        if time_s > self._time_s > -math.inf:
            self.level -= FALL_DB_S * (time_s - self._time_s)
        self.level = max(self.level, level)
        if level >= self.held or time_s - self._held_s > self._hold_s:
            self.held, self._held_s = self.level, time_s
        self.clipped |= clipped
        self._time_s = time_s

    @property
    def text(self) -> str:
        if self.level == -math.inf:
            return "-"
        return "silence" if self.level <= SILENCE_DB else f"{self.level:.1f}"
