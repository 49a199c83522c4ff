"""Watches where a device is recorded from, and the gain of its input."""

import math
import time

from amt_stream.engine.devices import alsa_mixer
from amt_stream.engine.devices.change_watch import ChangeWatch
from amt_stream.engine.devices.device_source import DeviceSource
from amt_stream.engine.devices.identity import card_of
from amt_stream.engine.devices.pulse_server import Placement, PulseSource, placement_of

MARKS = b"'change' on source-output", b"'new' on source-output", b"'change' on source #"

LOOK_S = 1.0
APART_S = 0.03
"""Least time between two looks, as a volume is turned in many steps."""
TURN_S = 0.05


class InputWatch:
    """What the system tells of an open device: by its sound server, or by the mixer of its card.

    Sound servers silently move a stream to another microphone when one is unplugged, and every
    program may turn the volume of a source. Other systems than Linux tell nothing.

    process: that records from it
    place: the sound server's source that it is meant to record from; None takes the first one that
        is known
    """

    def __init__(self, source: DeviceSource, process: int, place: str | None) -> None:
        self.place = place
        self._source, self._process = source, process
        # Where it records from, as the server said last, and as the source was told.
        self._now: Placement | None = None
        self._told: Placement | None = None
        self._seen = False
        self._look_at, self._looked_at = -math.inf, -math.inf
        self._watch = ChangeWatch(["pactl", "subscribe"], MARKS)
        device = source.device
        self._card = card_of(device.name, device.host_api)
        self._mixer = None
        if self._card is not None:
            self._mixer = alsa_mixer.watch_gain(self._card)
            self._mixer.changed.set()

    @property
    def settled(self) -> bool:
        """Whether only changes are looked at from now on."""
        return self._look_at == math.inf

    def is_known(self, within_s: float) -> bool:
        """Wait until the server knows where it records from; False after `within_s`."""
        until = time.monotonic() + within_s
        while placement_of(self._process, self.place) is None:
            if time.monotonic() > until:
                return False
            time.sleep(TURN_S)
        return True

    def look(self) -> str:
        """Tell the source what has changed.

        Returns the title of another source that the server has moved it to, or "".
        """
        self._source.settle_gain()
        if (moved := self._moved_to()) is not None:
            return moved.title
        if self._now is not None and self._now is not self._told:
            self._source.placed(self._now)
        self._told = self._now
        if self._card is not None and self._mixer is not None and self._mixer.changed.is_set():
            self._mixer.changed.clear()
            if (gain := alsa_mixer.read_gain(self._card)) is not None:
                self._source.know_gain(gain)
        return ""

    def _moved_to(self) -> PulseSource | None:
        """The source that the process was moved to, or None; asks the server after a change."""
        at = time.monotonic()
        due = self._watch.changed.is_set() or at >= self._look_at
        if not due or at < self._looked_at + APART_S:
            return None
        # Each look is a client that connects, which the watcher prints once it watches.
        watches = self._watch.heard or (self._look_at > -math.inf and not self._seen)
        self._watch.changed.clear()
        now = placement_of(self._process, self.place)
        self._now = now or self._now
        self._seen = self._seen or now is not None
        self._looked_at = time.monotonic()
        self._look_at = self._looked_at + LOOK_S
        if watches and (now is not None or not self._seen):
            self._look_at = math.inf
        if now is None:
            return None
        self.place = self.place or now.source.name
        return None if now.source.name == self.place else now.source

    @property
    def why_quiet(self) -> str:
        """Why nothing comes, if the sound server tells it, else ""."""
        suspended = self._now is not None and self._now.source.suspended
        return "the sound server has suspended it" if suspended else ""

    def close(self) -> None:
        self._watch.close()
        if self._mixer is not None:
            self._mixer.close()
