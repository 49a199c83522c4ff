"""Watches where a device is recorded from, and the gain of its input."""

from amt_stream.engine.devices import alsa_mixer
from amt_stream.engine.devices.device_source import DeviceSource
from amt_stream.engine.devices.identity import card_of
from amt_stream.engine.devices.pulse_routing import PulseRouting
from amt_stream.engine.devices.pulse_server import Placement


class InputWatch:
    """What the system tells of an open device: by its sound server, or by the mixer of its card.

    Other systems than Linux tell nothing.

    process: that records from it
    place: the sound server's source that it is meant to record from; None takes the first one
    """

    def __init__(self, source: DeviceSource, process: int, place: str | None) -> None:
        self._source = source
        self._routing = PulseRouting(process, place)
        self._placed: Placement | None = None
        device = source.device
        self._card = card_of(device.name, device.host_api)
        self._mixer = None
        if self._card is not None:
            self._mixer = alsa_mixer.watch_gain(self._card)
            self._mixer.changed.set()

    @property
    def place(self) -> str | None:
        """The sound server's source that it records from; None if unknown."""
        return self._routing.place

    @property
    def settled(self) -> bool:
        """Whether only changes are looked at from now on."""
        return self._routing.settled

    def is_known(self, within_s: float) -> bool:
        """Wait until the server knows where it records from; False after `within_s`."""
        return self._routing.is_known(within_s)

    def look(self) -> str:
        """Tell the source what has changed.

        Returns the title of another source that the server has moved it to, or "".
        """
        self._source.settle_gain()
        if (moved := self._routing.moved_to()) is not None:
            return moved.title
        now = self._routing.now
        if now is not None and now is not self._placed:
            self._source.placed(now)
        self._placed = now
        if self._card is not None and self._mixer is not None and self._mixer.changed.is_set():
            self._mixer.changed.clear()
            if (gain := alsa_mixer.read_gain(self._card)) is not None:
                self._source.know_gain(gain)
        return ""

    @property
    def why_quiet(self) -> str:
        """Why nothing comes, if the sound server tells it, else ""."""
        now = self._routing.now
        suspended = now is not None and now.source.suspended
        return "the sound server has suspended it" if suspended else ""

    def close(self) -> None:
        """Stop watching."""
        self._routing.close()
        if self._mixer is not None:
            self._mixer.close()
