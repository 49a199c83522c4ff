"""A device that is opened in this process, for models that run in its callback."""

import os
import threading

from amt_stream.engine.devices import portaudio
from amt_stream.engine.devices.device_source import DeviceSource, Reader
from amt_stream.engine.devices.input_watch import InputWatch
from amt_stream.engine.devices.listing import InputDevice, listed_again
from amt_stream.engine.sources import Deliver, DeviceLost, SourceError
from amt_stream.meters.frames import Fault

STALLED_S = 5.0
LOOK_S = 0.01
"""Seconds between two looks at whether the system has told a change."""

OPEN: set[int] = set()
"""Devices that are open in this process."""


class InProcess(Reader):
    """A device opened in this process, which delivers from its callback."""

    def __init__(self, source: DeviceSource, deliver: Deliver) -> None:
        self._source, self._deliver = source, deliver
        self._gate = source.gate(deliver, "")
        self._pass = deliver if source.device.played else self._gate.take
        self._moved_to, self._ended = "", False
        self._over = threading.Event()
        self._watching: threading.Thread | None = None
        self._stream: portaudio.InputStream | None = None
        try:
            info = self._find()
            if info is None:
                raise SourceError(f"{source.name!r} is not there")
            OPEN.add(id(self))
            self._stream = portaudio.InputStream(
                **source.opening(info), on_block=self._on_block, on_end=self._on_end
            )
        except portaudio.PortAudioFailed as error:
            self.stop()
            raise source.refused(error) from error
        source.delay.claimed_s = self._stream.latency
        # A server knows streams by process: of several, each must know its source.
        if source.device.behind is not None or len(OPEN) == 1:
            self._watching = threading.Thread(target=self._watch, name="input", daemon=True)
            self._watching.start()

    @property
    def stall_s(self) -> float:  # type: ignore[override]
        """Withheld zeros are no stall."""
        return STALLED_S + self._gate.missing / self._source.fs + self._gate.holds_s

    def _find(self) -> InputDevice | None:
        lost = self._source.device
        if not lost.has_index:
            raise SourceError(
                f"{self._source.name!r} is recorded by a separate process: leave out "
                'run_in="callback"'
            )
        found = listed_again(portaudio.inputs(), lost)
        if found is None and not OPEN:
            portaudio.look_again()
            found = listed_again(portaudio.inputs(), lost)
        return found

    def stop(self) -> None:
        if self._stream is not None:
            self._stream.close()
        self._stream = None
        self._over.set()
        if self._watching is not None:
            self._watching.join()
        OPEN.discard(id(self))
        if isinstance(self._source.error, DeviceLost) and not OPEN:
            # Otherwise PortAudio's list would keep the dead device and miss its return.
            portaudio.look_again()

    def _watch(self) -> None:
        watch = InputWatch(self._source, os.getpid(), self._source.device.behind)
        try:
            while not (self._moved_to or self._over.wait(LOOK_S)):
                self._moved_to = watch.look()
        finally:
            watch.close()

    def _on_block(self, samples: object, now: float, age_s: float, lost: int) -> None:
        if self._moved_to:
            self._end(f"the sound server has moved it to {self._moved_to!r}")
            return
        source = self._source
        source.overflows += lost > 0
        source.delay.note(age_s)
        self._pass(source.samples(samples), lost)

    def _on_end(self) -> None:
        self._end("the sound system ended it")

    def _end(self, why: str) -> None:
        if not self._ended:
            self._ended = True
            text = f"the device {self._source.name!r} was lost while it was in use: {why}"
            self._source.error = DeviceLost(text)
            self._deliver(None, self.missing, Fault.SILENT if self._gate.silent else 0)
