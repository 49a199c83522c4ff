"""A microphone as a source, which survives unplugging, stalls and unreported losses."""

import contextlib
import math
import queue
import threading
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from amt_stream.core.json_types import JsonDict
from amt_stream.engine.continuity import Continuity
from amt_stream.engine.devices import portaudio
from amt_stream.engine.devices.capture_process import CaptureMessage, CaptureProcess, NoAnswer
from amt_stream.engine.devices.identity import has_source, pinned
from amt_stream.engine.devices.listing import InputDevice, chosen, described, listed_again
from amt_stream.engine.devices.pulse_routing import PulseRouting
from amt_stream.engine.sources import Deliver, DeviceLost, Source, SourceError, channel_slice
from amt_stream.meters.frames import Fault

PREFERRED_FS = 48000
SANE_LATENCY_S = 10.0
LARGEST_BLOCK_S = 0.1

TURN_S = 0.05
STALLED_S = 0.5
LOST_S = 1.0
FIRST_SOUND_S = 5.0
OWN_PAUSE_S = 0.3
RETRY_S = 0.5
SLOW_RETRY_S = 1.5
SLOW_AFTER_S = 10.0

STALLED_IN_PROCESS_S = 5.0
PLACED_S = 1.0

OPEN: set[int] = set()
"""Microphones that are open in this process."""


class MicrophoneSource(Source):
    """An input device.

    `device` is an index, a name or part of one; `channels` one or two channel numbers as printed on
    the device (1, 2, ...), or all of them from 1 up; by default the first two, or the only one.
    `fs` defaults to 48000 Hz, or to the device's own rate if it does not support that.

    A separate process opens the device. If the device is lost, the source waits for it, identified
    by name, host API and other details, and continues when it is back; the samples in between count
    as missing. With wait=False the source ends with DeviceLost instead. A name such as "default"
    means the microphone that it stands for at opening.

    `played` records what the computer plays; `device` is then the name of an output, by default the
    default output.

    In an engine with run_in="callback" the device is opened in this process, so that the model can
    run in its callback; a lost device then ends the source.
    """

    silence_note = (
        "the microphone gives exact zeros: is it muted, or does the system not permit its use?"
    )

    def __init__(
        self,
        device: int | str | None = None,
        *,
        fs: int | None = None,
        channels: Sequence[int] | None = None,
        blocksize: int = 480,
        latency: float = 0.1,
        wait: bool = True,
        played: bool = False,
    ) -> None:
        with CaptureProcess() as process:
            info = chosen(described(process.ask("list")["devices"]), device, played)
            self.device = info
            self.name = str(info)
            picked = channels or range(1, min(2, info.channels) + 1)
            self._pick = _picked(picked, info.channels, repr(info.name))
            # A one-channel capture may be the mean of left and right: capture both and select.
            self._captured = min(info.channels, max(2, *picked))
            self.channels = len(picked)
            self.fs = self._choose_rate(process, fs)
        if info.played:
            self.silence_note = "nothing is playing, or it is muted"
        self._blocksize = min(blocksize, round(LARGEST_BLOCK_S * self.fs))
        self._asked_latency = self.slack_s = latency
        self._wait = wait
        self._claimed = latency
        self._lag = self._first_lag = math.nan
        self._running: _Captured | _InProcess | None = None

    def _choose_rate(self, process: CaptureProcess, fs: int | None) -> int:
        def of(*rates: int) -> list[int]:
            answer = process.ask(
                "rates",
                index=self.device.index,
                host_api=self.device.host_api,
                channels=self._captured,
                rates=rates,
            )
            found: list[int] = answer["rates"]
            return found

        if fs is not None:
            if of(fs):
                return fs
            offered = ", ".join(map(str, of(*portaudio.OFFERED_RATES)))
            raise SourceError(
                f"{self.name!r} does not run at {fs} Hz with {self._captured} channel(s); "
                f"it offers {offered or 'none of the usual rates'}"
            )
        # Playback is best recorded at its own rate, without resampling.
        own_first = (self.device.fs, PREFERRED_FS)
        for rate in of(*(own_first if self.device.played else own_first[::-1])):
            return rate
        raise SourceError(
            f"{self.name!r} opens neither at {PREFERRED_FS} nor at its own {self.device.fs} Hz: "
            "is another program using it?"
        )

    @property
    def latency_s(self) -> float:  # type: ignore[override]
        """Age of a sample on arrival, as PortAudio measures or claims it."""
        if 0.0 <= self._lag < SANE_LATENCY_S:
            return self._lag
        return self._claimed if 0.0 <= self._claimed < SANE_LATENCY_S else self._asked_latency

    @property
    def latency_growth_s(self) -> float:  # type: ignore[override]
        """How much this age has grown since the start, as audio piles up in the system."""
        growth = self._lag - self._first_lag
        return growth if abs(growth) < SANE_LATENCY_S else 0.0

    @property
    def missing(self) -> int:  # type: ignore[override]
        running = self._running
        return running.missing if running is not None else 0

    def start(self, deliver: Deliver) -> None:
        kind = _InProcess if self.run_in == "callback" else _Captured
        self._running = kind(self, deliver)

    def stop(self) -> None:
        running, self._running = self._running, None
        if running is not None:
            running.stop()

    def _opening(self, info: InputDevice) -> JsonDict:
        """Arguments of `portaudio.InputStream` for the device."""
        return {
            "index": info.index,
            "host_api": info.host_api,
            "channels": self._captured,
            "fs": self.fs,
            "blocksize": self._blocksize,
            "latency": self._asked_latency,
        }

    def _refused(self, error: Exception) -> SourceError:
        return SourceError(f"{self.name!r} cannot be opened at {self.fs} Hz: {error}")

    def _samples(self, data: Any) -> np.ndarray[Any, np.dtype[np.float32]]:
        return np.frombuffer(data, np.float32).reshape(-1, self._captured)[:, self._pick]

    def _aged(self, age_s: float) -> None:
        if math.isnan(self._first_lag):
            self._first_lag = self._lag = age_s
        self._lag += 0.01 * (age_s - self._lag)


def _picked(channels: Sequence[int], offered: int, name: str) -> slice:
    """The columns of one or two channels, or of all from 1 up."""
    if len(channels) > 2 and [*channels] == [*range(1, len(channels) + 1)]:
        channel_slice(channels[-1:], offered, name)
        return slice(0, len(channels))
    return channel_slice(channels, offered, name)


class _Captured:
    """A microphone in a separate process, and the thread that reads from it."""

    def __init__(self, source: MicrophoneSource, deliver: Deliver) -> None:
        self._source, self._deliver = source, deliver
        self._settings = pinned(source.device.behind)
        self._continuity = Continuity(source.fs)
        self._held: list[CaptureMessage] = []
        self._nothing = np.zeros((0, source.channels), np.float32)
        self._stopping = threading.Event()
        self._lost_at: float | None = None
        self._routing: PulseRouting | None = None
        self._place = source.device.behind
        process: CaptureProcess | None = CaptureProcess(self._settings)
        assert process is not None
        source.state = "running"
        try:
            self._open(process)
        except BaseException as error:
            self._close(process, kill=True)
            if not (isinstance(error, NoAnswer) and source._wait):
                raise
            self._lose(str(error))
            process = None
        self._thread = threading.Thread(target=self._run, args=(process,), name=source.name)
        self._thread.daemon = True
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread is not threading.current_thread():
            self._thread.join()

    @property
    def missing(self) -> int:
        """Samples missing at present, while the device is lost."""
        lost = self._lost_at is not None
        return self._continuity.missing(portaudio.since_boot_s()) if lost else 0

    def _open(self, process: CaptureProcess) -> None:
        """Open the device in the process; raises SourceError if it is not available."""
        source, stopping = self._source, self._stopping.is_set
        behind = source.device.behind
        info = listed_again(process.ask("list", stopping)["devices"], source.device)
        if info is None or (behind is not None and not has_source(behind)):
            raise SourceError(f"{source.name!r} is not there")
        try:
            answer = process.ask("open", stopping, **source._opening(info))
        except NoAnswer:
            raise
        except SourceError as error:
            raise source._refused(error) from error
        source._claimed = answer["latency"]
        self._routing = PulseRouting(process.pid, self._place)
        if not source.device.has_index and not self._routing.is_known(PLACED_S):
            raise SourceError(
                f"{source.name!r} cannot be recorded: ALSA does not record from the sound server, "
                "or pactl does not answer"
            )
        if place := self._routing.moved_to():
            raise SourceError(f"{source.name!r} is {place} now, and was {self._place}")

    def _close(self, process: CaptureProcess, kill: bool) -> None:
        if self._routing is not None:
            self._place = self._routing.place
            self._routing.close()
            self._routing = None
        process.close(kill)

    def _run(self, process: CaptureProcess | None) -> None:
        source = self._source
        lost = 0
        try:
            process = process or self._come_back()
            while process is not None:
                reason = self._listen(process)
                self._close(process, kill=not self._stopping.is_set())
                if self._stopping.is_set():
                    break
                if not source._wait:  # set before the event, for those who react to it
                    source.error = DeviceLost(f"the device {source.name!r} was lost: {reason}")
                self._lose(reason)
                if not source._wait:
                    break
                self._held.clear()
                self._continuity.restart()
                process = self._come_back()
            lost = self.missing
        except Exception as error:
            source.error = error
            if process is not None:
                self._close(process, kill=True)
        self._deliver(None, lost)

    def _listen(self, process: CaptureProcess) -> str:
        """Pass audio on until the process ends, is silent for too long, or stops; returns why."""
        sound_at = beat_at = turn_at = time.monotonic()
        sounded = False
        while not self._stopping.is_set():
            message: CaptureMessage | None
            try:
                message = process.messages.get(timeout=TURN_S)
            except queue.Empty:
                message = _NOTHING
            now = time.monotonic()
            if now - turn_at > OWN_PAUSE_S:
                sound_at = beat_at = now  # this program itself was suspended
            if message is None:
                return "its process has ended"
            if message.kind == b"E":
                return message.data.decode()
            if self._routing is not None and (place := self._routing.moved_to()):
                return f"the sound server has moved it to {place}"
            turn_at = time.monotonic()  # again, because asking the server takes time
            if message is not _NOTHING:
                beat_at = now
            if message.kind == b"B":
                sound_at, sounded = now, True
                if not self._take(message):
                    return "its delay kept growing"
            silent_s = max(now - sound_at, now - beat_at)
            if silent_s > STALLED_S:
                self._stall(silent_s)
            if silent_s > (LOST_S if sounded else FIRST_SOUND_S):
                return f"nothing came for {silent_s:.1f} s"
            if silent_s > LOST_S:
                self._lose(f"nothing came for {silent_s:.1f} s")
        return ""

    def _take(self, message: CaptureMessage) -> bool:
        """Check a block and pass it on; False if the stream must be discarded."""
        source = self._source
        samples = len(message.data) // (4 * source._captured)
        source.overflows += message.lost > 0
        known = message.lost + message.dropped
        verdict = self._continuity.take(message.time_s, samples, known, message.age_s)
        if verdict.what == "hold":
            self._held.append(message)
        elif verdict.what == "pass":
            if source.state != "running":
                self._come_to_life()
            missing = verdict.lost
            for block in (*self._held, message):
                if block.dropped:
                    self._deliver(self._nothing, block.dropped, Fault.OVERLOAD)
                self._deliver(source._samples(block.data), missing + block.lost, verdict.flags)
                missing = 0
            self._held.clear()
            source._aged(message.age_s)
        return verdict.what != "stale"

    def _stall(self, silent_s: float) -> None:
        if self._source.state == "running":
            self._source.state = "stalled"
            text = f"{self._source.name!r} has delivered no sound for {silent_s:.1f} s"
            self._source.note = text
            self._source.tell("stall", text)

    def _lose(self, reason: str) -> None:
        if self._lost_at is None:
            self._lost_at = time.monotonic()
            text = f"the device {self._source.name!r} was lost: {reason}"
            if self._source._wait:
                text += "; the measurement goes on when it is back"
            self._source.state, self._source.note = "lost", text
            self._source.tell("lost", text)

    def _come_to_life(self) -> None:
        source = self._source
        if self._lost_at is not None:
            lost_s = time.monotonic() - self._lost_at
            source.tell("back", f"the device {source.name!r} is back after {lost_s:.1f} s")
        source.note, source.state, self._lost_at = "", "running", None

    def _come_back(self) -> CaptureProcess | None:
        """Retry until the device is back and open; None when stopped."""
        began = time.monotonic()
        while not self._stopping.is_set():
            process = None
            with contextlib.suppress(SourceError):
                process = CaptureProcess(self._settings)
                self._open(process)
                return process
            if process is not None:
                self._close(process, kill=True)
            slow = time.monotonic() - began > SLOW_AFTER_S
            self._stopping.wait(SLOW_RETRY_S if slow else RETRY_S)
        return None


_NOTHING = CaptureMessage(b"", 0.0, 0.0, 0, b"")


class _InProcess:
    """A microphone opened in this process, which delivers from its callback."""

    missing = 0

    def __init__(self, source: MicrophoneSource, deliver: Deliver) -> None:
        self._source, self._deliver = source, deliver
        source.stall_s = STALLED_IN_PROCESS_S
        self._stream: portaudio.InputStream | None = None
        try:
            info = self._find()
            if info is None:
                raise SourceError(f"{source.name!r} is not there")
            OPEN.add(id(self))
            self._stream = portaudio.InputStream(
                **source._opening(info), on_block=self._on_block, on_end=self._on_end
            )
        except portaudio.PortAudioFailed as error:
            self.stop()
            raise source._refused(error) from error
        source._claimed = self._stream.latency

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
        OPEN.discard(id(self))
        if isinstance(self._source.error, DeviceLost) and not OPEN:
            # Otherwise PortAudio's list would keep the dead device and miss its return.
            portaudio.look_again()

    def _on_block(self, samples: object, now: float, age_s: float, lost: int) -> None:
        source = self._source
        source.overflows += lost > 0
        source._aged(age_s)
        self._deliver(source._samples(samples), lost)

    def _on_end(self) -> None:
        name = self._source.name
        self._source.error = DeviceLost(f"the device {name!r} was lost while it was in use")
        self._deliver(None)
