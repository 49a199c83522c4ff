"""A microphone that a separate process reads, which survives unplugging and stalls."""

import contextlib
import queue
import threading
import time

import numpy as np

from amt_stream.engine.devices import portaudio
from amt_stream.engine.devices.capture_process import CaptureMessage, CaptureProcess, NoAnswer
from amt_stream.engine.devices.delay_line import DelayLine, OnSound
from amt_stream.engine.devices.device_source import SILENT, DeviceSource, Reader
from amt_stream.engine.devices.identity import pinned
from amt_stream.engine.devices.input_watch import InputWatch
from amt_stream.engine.devices.listing import listed_again
from amt_stream.engine.devices.pulse_server import sources
from amt_stream.engine.inputs.continuity import Continuity
from amt_stream.engine.sources import Deliver, DeviceLost, SourceError
from amt_stream.meters.frames import Fault

TURN_S = 0.05
STALLED_S = 0.5
LOST_S = 1.0
FIRST_SOUND_S = 5.0
OWN_PAUSE_S = 0.3
RETRY_S = 0.5
SLOW_RETRY_S = 1.5
SLOW_AFTER_S = 10.0
PLACED_S = 1.0

RUNNING = "running"


class Captured(Reader):
    """A microphone in a separate process, and the thread that reads from it."""

    def __init__(self, source: DeviceSource, deliver: Deliver) -> None:
        self._source, self._deliver = source, deliver
        self._gate = source.gate(deliver, RUNNING)
        sound: OnSound = deliver if source.device.played else self._gate.take
        self.delay_s = source.slack_s
        self._line = DelayLine(sound, self.delay_s)
        self._settings = pinned(source.device.behind)
        self._continuity = Continuity(source.fs)
        self._held: list[CaptureMessage] = []
        self._nothing = np.zeros((0, source.channels), np.float32)
        self._stopping = threading.Event()
        self._lost_at: float | None = None
        self._watch: InputWatch | None = None
        self._place = source.device.behind
        process: CaptureProcess | None = CaptureProcess(self._settings)
        assert process is not None
        source.state = RUNNING
        try:
            self._open(process)
        except BaseException as error:
            self._close(process, kill=True)
            if not (isinstance(error, NoAnswer) and source.waits):
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
        """Samples missing at present, while the device is lost or gives exact zeros."""
        lost = self._lost_at is not None
        since = self._continuity.missing(portaudio.since_boot_s()) if lost else 0
        return since + super().missing

    @property
    def held_back_s(self) -> float:
        return super().held_back_s + self._line.age_s

    def _open(self, process: CaptureProcess) -> None:
        """Open the device in the process; raises SourceError if it is not available."""
        source, stopping = self._source, self._stopping.is_set
        behind = source.device.behind
        info = listed_again(process.ask("list", stopping)["devices"], source.device)
        if info is None or (behind is not None and behind not in {one.name for one in sources()}):
            raise SourceError(f"{source.name!r} is not there")
        try:
            answer = process.ask("open", stopping, **source.opening(info))
        except NoAnswer:
            raise
        except SourceError as error:
            raise source.refused(error) from error
        source.delay.claimed_s = answer["latency"]
        self._watch = InputWatch(source, process.pid, self._place)
        if not source.device.has_index and not self._watch.is_known(PLACED_S):
            raise SourceError(
                f"{source.name!r} cannot be recorded: ALSA does not record from the sound server, "
                "or pactl does not answer"
            )
        if other := self._watch.look():
            raise SourceError(f"the sound server records {other!r} and not {source.name!r}")

    def _close(self, process: CaptureProcess, kill: bool) -> None:
        if self._watch is not None:
            self._place = self._watch.place
            self._watch.close()
            self._watch = None
        process.close(kill)

    def _run(self, process: CaptureProcess | None) -> None:
        source = self._source
        lost = 0
        try:
            process = process or self._come_back()
            while process is not None:
                reason = self._listen(process)
                self._line.flush()
                self._close(process, kill=not self._stopping.is_set())
                if self._stopping.is_set():
                    break
                if not source.waits:  # set before the event, for those who react to it
                    source.error = DeviceLost(f"the device {source.name!r} was lost: {reason}")
                self._lose(reason)
                if not source.waits:
                    break
                self._held.clear()
                self._continuity.restart()
                process = self._come_back()
            lost = self.missing
        except Exception as error:
            source.error = error
            if process is not None:
                self._close(process, kill=True)
        self._deliver(None, lost, Fault.SILENT if self._gate.silent else 0)

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
            if self._watch is not None and (other := self._watch.look()):
                self._gate.interrupt(self._line.discard())
                return f"the sound server has moved it to {other!r}"
            self._line.pass_due()
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
                return self._why_quiet or f"nothing came for {silent_s:.1f} s"
            if silent_s > LOST_S:
                self._lose(self._why_quiet or f"nothing came for {silent_s:.1f} s")
        return ""

    @property
    def _why_quiet(self) -> str:
        return "" if self._watch is None else self._watch.why_quiet

    def _take(self, message: CaptureMessage) -> bool:
        """Check a block and pass it on; False if the stream must be discarded."""
        source = self._source
        samples = len(message.data) // (4 * source.captured)
        source.overflows += message.lost > 0
        known = message.lost + message.dropped
        verdict = self._continuity.take(message.time_s, samples, known, message.age_s)
        if verdict.what == "hold":
            self._held.append(message)
        elif verdict.what == "pass":
            if source.state not in (RUNNING, SILENT):
                self._come_to_life()
            missing = verdict.lost
            for block in (*self._held, message):
                if block.dropped:
                    self._line.put(block.time_s, self._nothing, block.dropped, Fault.OVERLOAD)
                sound = source.samples(block.data)
                self._line.put(block.time_s, sound, missing + block.lost, verdict.flags)
                missing = 0
            self._held.clear()
            source.delay.note(message.age_s)
        return verdict.what != "stale"

    def _stall(self, silent_s: float) -> None:
        if self._source.state == RUNNING:
            self._source.state = "stalled"
            text = f"{self._source.name!r} has delivered no sound for {silent_s:.1f} s"
            text += f": {self._why_quiet}" if self._why_quiet else ""
            self._source.note = text
            self._source.tell("stall", text)

    def _lose(self, reason: str) -> None:
        if self._lost_at is None:
            self._lost_at = time.monotonic()
            self._gate.interrupt()
            text = f"the device {self._source.name!r} was lost: {reason}"
            if self._source.waits:
                text += "; the measurement goes on when it is back"
            self._source.state, self._source.note = "lost", text
            self._source.tell("lost", text)

    def _come_to_life(self) -> None:
        source = self._source
        if self._lost_at is not None:
            lost_s = time.monotonic() - self._lost_at
            source.tell("back", f"the device {source.name!r} is back after {lost_s:.1f} s")
        source.note, source.state, self._lost_at = "", RUNNING, None
        if self._gate.silent:
            source.be_silent()

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
