"""Frames of one model that wait to be taken together, as calls of readings are expensive."""

import math
from collections.abc import Iterator

from amt_stream.core.saved_state import Resumable
from amt_stream.meters.frames import Frames, in_one

HELD_S = 0.1
"""Most frames in seconds that wait."""


class FrameQueue(Resumable):
    """Joins consecutive frames of one model to blocks.

    reached_s: time of the last frame, or of the end of the sound once the frames after it came
    """

    kept = ("reached_s",)

    def __init__(self) -> None:
        self._held: list[Frames] = []
        self.reached_s = -math.inf

    def put(self, frames: Frames) -> Iterator[Frames]:
        """Take frames, and yield the blocks that they complete."""
        if frames.after_end:
            yield from self.rest()
            yield frames
            self.reached_s = max(self.reached_s, frames.ended_s)
            return
        if self._held and not frames.goes_on(self._held[-1]):
            yield from self.rest()
        self._held.append(frames)
        self.reached_s = frames.end_s
        if frames.later is None or self.reached_s - self._held[0].begin_s > HELD_S:
            yield from self.rest()

    def rest(self) -> Iterator[Frames]:
        """Yield the frames that wait as one block, if there are any."""
        held, self._held = self._held, []
        if held:
            yield in_one(held)
