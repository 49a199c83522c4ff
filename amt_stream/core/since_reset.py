"""What is counted since a reset of readings, which can be undone for some time."""

import math
from collections.abc import Callable
from typing import Generic, TypeVar

State = TypeVar("State")

UNDO_S = 10.0
"""Seconds of sound within which a reset of readings can be undone."""


class SinceReset(Generic[State]):
    """A state since the last reset, and the state without it as long as it can be undone.

    Both take the same sound. A reset within UNDO_S after another one is undone together with it.

    now: the state since the last reset
    unreset: the state without the resets that can be undone; None if there are none
    reset_s: the time of the last reset in seconds of sound
    """

    def __init__(self, now: State) -> None:
        self.now = now
        self.unreset: State | None = None
        self.reset_s = -math.inf

    @property
    def states(self) -> list[State]:
        """The states that take the sound, first the one since the last reset."""
        return [self.now] if self.unreset is None else [self.now, self.unreset]

    def change(self, function: Callable[[State], State]) -> None:
        """Replace each state by `function` of it."""
        self.now = function(self.now)
        if self.unreset is not None:
            self.unreset = function(self.unreset)

    def reset(self, time_s: float, new: State) -> None:
        """Continue with a new state."""
        if self.unreset is None or not self.can_undo(time_s):
            self.unreset = self.now
        self.now, self.reset_s = new, time_s

    def can_undo(self, time_s: float) -> bool:
        """Whether there is a reset that can be undone at `time_s`."""
        return self.unreset is not None and time_s <= self.reset_s + UNDO_S

    def undo(self) -> None:
        """Continue with the state without the last resets, if it is still there."""
        if self.unreset is not None:
            self.now, self.unreset = self.unreset, None

    def forget(self) -> None:
        """Forget the state without the last resets."""
        self.unreset = None
