"""Holds back the newest sound of a device for as long as news of its input may take."""

from collections import deque
from collections.abc import Callable

from amt_stream.engine.devices.portaudio import since_boot_s
from amt_stream.engine.sources import Block

OnSound = Callable[[Block, int, int], None]
"""Takes a block, the samples missing before it, and its faults."""


class DelayLine:
    """Passes blocks on once they are old enough.

    What the system tells of an input comes later than the sound that it changes. Held back for so
    long, no sound of another gain or of another microphone is taken for the one that is measured.

    seconds: age of a block by its arrival when it is passed on

    All methods belong to the thread that captures.
    """

    def __init__(self, deliver: OnSound, seconds: float) -> None:
        self.age_s = 0.0
        """Age of the block that is passed on now."""
        self._deliver, self._seconds = deliver, seconds
        self._held: deque[tuple[float, Block, int, int]] = deque()

    def put(self, came_at: float, block: Block, lost: int, flags: int) -> None:
        """Take a block that came at a time by `since_boot_s`; the rest as of `OnSound`."""
        self._held.append((came_at, block, lost, flags))

    def pass_due(self) -> None:
        """Pass on what is old enough."""
        now = since_boot_s()
        while self._held and now - self._held[0][0] >= self._seconds:
            self._pass_first()

    def flush(self) -> None:
        """Pass on everything."""
        while self._held:
            self._pass_first()

    def discard(self) -> int:
        """Drop everything; returns the number of samples, with those missing before them."""
        held, self._held = self._held, deque()
        return sum(len(block) + lost for _, block, lost, _ in held)

    def _pass_first(self) -> None:
        came_at, block, lost, flags = self._held.popleft()
        self.age_s = since_boot_s() - came_at
        self._deliver(block, lost, flags)
        self.age_s = 0.0
