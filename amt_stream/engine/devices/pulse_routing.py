"""Which source a sound server records from, with which gain, and whether that has changed."""

import math
import time

from amt_stream.engine.devices.change_watch import ChangeWatch
from amt_stream.engine.devices.pulse_server import Placement, PulseSource, placement_of

MARKS = b"'change' on source-output", b"'new' on source-output", b"'change' on source #"

LOOK_S = 1.0
APART_S = 0.03
"""Least time between two looks, as a volume is turned in many steps."""
TURN_S = 0.05


class PulseRouting:
    """Watches which source a process records from, and its gain.

    Sound servers silently move a stream to another microphone when one is unplugged, and every
    program may turn the volume of a source.
    """

    def __init__(self, process: int, place: str | None) -> None:
        """For a process meant to record from `place`; None takes the first source that is known."""
        self.place = place
        self.now: Placement | None = None
        """Where it records from, as the server said last."""
        self._process = process
        self._seen = False
        self._look_at, self._looked_at = -math.inf, -math.inf
        self._watch = ChangeWatch(["pactl", "subscribe"], MARKS)

    @property
    def settled(self) -> bool:
        """Whether only changes are looked at from now on."""
        return self._look_at == math.inf

    def moved_to(self) -> PulseSource | None:
        """The source that the process was moved to, or None; asks the server after a change."""
        at = time.monotonic()
        due = self._watch.changed.is_set() or at >= self._look_at
        if not due or at < self._looked_at + APART_S:
            return None
        # Each look is a client that connects, which the watcher prints once it watches.
        watches = self._watch.heard or (self._look_at > -math.inf and not self._seen)
        self._watch.changed.clear()
        now = placement_of(self._process, self.place)
        self.now = now or self.now
        self._seen = self._seen or now is not None
        self._looked_at = time.monotonic()
        self._look_at = self._looked_at + LOOK_S
        if watches and (now is not None or not self._seen):
            self._look_at = math.inf
        if now is None:
            return None
        self.place = self.place or now.source.name
        return None if now.source.name == self.place else now.source

    def is_known(self, within_s: float) -> bool:
        """Wait until the server knows the source of the process; False after `within_s`."""
        until = time.monotonic() + within_s
        while placement_of(self._process, self.place) is None:
            if time.monotonic() > until:
                return False
            time.sleep(TURN_S)
        return True

    def close(self) -> None:
        """Stop watching."""
        self._watch.close()
