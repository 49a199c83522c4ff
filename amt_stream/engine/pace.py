"""Judges whether processing keeps up with the audio."""

from collections.abc import Sequence

from amt_stream.meters.specification import RUNGS

PATIENCE_S = 1.0
FEWEST = 4
MOST_S = 0.25
KEEPS_UP = 1.05
CALM_SHARE = 0.85


def refuse_no_rungs(ladder: Sequence[str]) -> None:
    """Raise ValueError for an unknown or repeated name."""
    if isinstance(ladder, str) or len(set(ladder)) < len(ladder) or not set(ladder) <= set(RUNGS):
        raise ValueError(f"ladder is {ladder!r}: give some of {RUNGS}, or () for none")


class Pace:
    """Judges the processing speed from the cost of each block.

    Processing is too slow if PATIENCE_S of continuous work processed less than KEEPS_UP times as
    much audio. So a burst that is processed faster than real time is no overload, and a single slow
    block, as when the process was suspended, counts at most MOST_S.
    """

    def __init__(self) -> None:
        self._busy_s = self._audio_s = 0.0
        self._blocks = 0
        self._calm_since: float | None = None
        self._second = (0.0, 0.0)

    def add(self, now: float, busy_s: float, audio_s: float) -> bool:
        """Count a processed block; True if the pace is too slow."""
        began, busy = self._second
        if now - began >= 1.0:
            if self._calm_since is None or busy > CALM_SHARE * (now - began):
                self._calm_since = now
            began, busy = now, 0.0
        self._second = began, busy + busy_s
        self._busy_s += min(busy_s, max(MOST_S, audio_s))
        self._audio_s += audio_s
        self._blocks += 1
        if self._busy_s < PATIENCE_S or self._blocks < FEWEST:
            return False
        slow = self._audio_s < KEEPS_UP * self._busy_s
        self.rest()
        if slow:
            self._calm_since = now
        return slow

    def rest(self) -> None:
        """Nothing waits to be processed."""
        self._busy_s = self._audio_s = 0.0
        self._blocks = 0

    def restart(self, now: float) -> None:
        """Start over after a change."""
        self.rest()
        self._calm_since, self._second = now, (now, 0.0)

    @property
    def calm_s(self) -> float:
        """For how long each complete second has had time to spare."""
        return 0.0 if self._calm_since is None else self._second[0] - self._calm_since
