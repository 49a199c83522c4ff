"""PortAudio inputs: listing them, and streaming one; and playing a sound.

The only file that uses sounddevice. Run as a program it serves one device in a separate process
(`capture_process.py`); so it imports only the standard library, and starts in a tenth of a second.
"""

import contextlib
import json
import os
import queue
import signal
import struct
import sys
import threading
import time
from array import array
from collections.abc import Callable
from typing import Any, BinaryIO

HEADER = struct.Struct("<cIddqq")
"""Header of a message: kind, number of bytes that follow, time, age of the audio, samples that
PortAudio lost, and samples that were dropped here because the measuring program was too slow.

Kinds are b"B" block, b"H" heartbeat, b"R" reply to a request (JSON), b"E" end (a sentence).
"""

HEARTBEAT_S = 0.1
BACKLOG_S = 1.0
LEAVE_S = 0.3
PLAYED_AHEAD_S = 0.5
"""Sound that a player has ready: a pause of the computer shorter than that is not heard."""

OFFERED_RATES = (16000, 22050, 32000, 44100, 48000, 88200, 96000, 192000)

OnBlock = Callable[[Any, float, float, int], None]
"""Takes interleaved float32 samples, as bytes; their arrival by `since_boot_s`; the age of the
first one then; and the number of samples that PortAudio lost before them."""


def since_boot_s() -> float:
    """Seconds since the computer was started, including sleep if the system counts it."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if clock is None else time.clock_gettime(clock)


class PortAudioFailed(RuntimeError):
    """PortAudio is missing or has failed; the message says why."""


def _sounddevice() -> Any:
    try:
        import sounddevice
    except (ImportError, OSError) as error:
        raise PortAudioFailed(
            f"the microphone needs PortAudio, which is not there ({error}): on Debian or Ubuntu "
            "install libportaudio2"
        ) from error
    return sounddevice


def look_again() -> None:
    """Reload the list of devices; this closes all streams of the process."""
    sounddevice = _sounddevice()
    sounddevice._terminate()
    sounddevice._initialize()


def inputs() -> list[dict[str, Any]]:
    """The inputs, as PortAudio listed them when it was loaded: fields of `InputDevice`."""
    sounddevice = _sounddevice()
    apis = sounddevice.query_hostapis()
    default = sounddevice.default.device["input"]
    return [
        {
            "index": index,
            "name": info["name"],
            "host_api": apis[info["hostapi"]]["name"],
            "channels": info["max_input_channels"],
            "fs": round(info["default_samplerate"]),
            "default": index == default,
        }
        for index, info in enumerate(sounddevice.query_devices())
        if info["max_input_channels"] > 0
    ]


def rates_of(index: int, host_api: str, channels: int, rates: list[int]) -> list[int]:
    """Those of `rates` at which an input opens with `channels` channels."""
    sounddevice = _sounddevice()

    def does(fs: int) -> bool:
        try:
            sounddevice.check_input_settings(
                device=index,
                channels=channels,
                dtype="float32",
                samplerate=fs,
                extra_settings=_extra(sounddevice, host_api),
            )
        except (sounddevice.PortAudioError, ValueError):
            return False
        return True

    return [fs for fs in rates if does(fs)]


def _extra(sounddevice: object, host_api: str) -> Any:
    if sys.platform == "win32" and "WASAPI" in host_api:
        return sounddevice.WasapiSettings(auto_convert=True)
    return None


class InputStream:
    """An open input: calls `on_block` with each block, and `on_end` if it ends by itself.

    Raises PortAudioFailed if it cannot be opened.
    """

    def __init__(
        self,
        index: int,
        host_api: str,
        channels: int,
        fs: int,
        blocksize: int,
        latency: float,
        on_block: OnBlock,
        on_end: Callable[[], None],
    ) -> None:
        self._sounddevice = sounddevice = _sounddevice()
        self._fs, self._on_block, self._on_end = fs, on_block, on_end
        self._closing = False
        self._next_adc = 0.0
        self._stream: Any = None
        try:
            self._stream = sounddevice.RawInputStream(
                device=index,
                channels=channels,
                samplerate=fs,
                dtype="float32",
                blocksize=blocksize,
                latency=latency,
                extra_settings=_extra(sounddevice, host_api),
                callback=self._called,
                finished_callback=self._finished,
            )
            self._stream.start()
        except (sounddevice.PortAudioError, ValueError) as error:
            self.close()
            raise PortAudioFailed(str(error)) from error

    @property
    def latency(self) -> float:
        """Latency in seconds as PortAudio claims it. A JACK device has claimed 89,478,480."""
        return float(self._stream.latency)

    def close(self) -> None:
        """Close it; waits for as long as the sound server does not answer."""
        self._closing = True
        if self._stream is not None:
            with contextlib.suppress(self._sounddevice.PortAudioError):
                self._stream.abort()
            with contextlib.suppress(self._sounddevice.PortAudioError):
                self._stream.close()

    def _called(self, samples: Any, frames: int, times: Any, status: Any) -> None:
        now = since_boot_s()
        adc = times.inputBufferAdcTime
        lost = 0
        if status.input_overflow:
            # The flag says that samples were lost, not how many: use the converter's clock.
            missing = (adc - self._next_adc) * self._fs
            lost = round(missing) if 1.0 <= missing < self._fs else 1
        self._next_adc = adc + frames / self._fs
        self._on_block(samples, now, times.currentTime - adc, lost)

    def _finished(self) -> None:
        if not self._closing:
            self._on_end()


class PlayedStream:
    """A sound that an output repeats until it is closed.

    device: the output, by a part of its name; None for the default
    path: a file of float32 samples of one channel

    Raises PortAudioFailed if it cannot be opened.
    """

    def __init__(self, path: str, fs: int, device: str | None = None) -> None:
        self._sounddevice = sounddevice = _sounddevice()
        with open(path, "rb") as file:  # noqa: PTH123 (pathlib starts slowly)
            sound = array("f", file.read())
        self._at = self.interruptions = 0
        try:
            found = sounddevice.query_devices(device, "output")
            channels = min(2, found["max_output_channels"])
            frames = array("f", bytes(4 * channels * len(sound)))
            for channel in range(channels):
                frames[channel::channels] = sound
            self._sound = memoryview(frames).cast("B")
            self._stream = sounddevice.RawOutputStream(
                device=device,
                channels=channels,
                samplerate=fs,
                dtype="float32",
                latency=PLAYED_AHEAD_S,
                callback=self._called,
            )
            self._stream.start()
        except (sounddevice.PortAudioError, ValueError) as error:
            raise PortAudioFailed(str(error)) from error

    def close(self) -> None:
        """Stop it; waits for as long as the sound server does not answer."""
        with contextlib.suppress(self._sounddevice.PortAudioError):
            self._stream.abort()
            self._stream.close()

    def _called(self, out: Any, frames: int, times: Any, status: Any) -> None:
        self.interruptions += bool(status.output_underflow)
        whole = memoryview(out).cast("B")
        filled = 0
        while filled < len(whole):
            piece = self._sound[self._at : self._at + len(whole) - filled]
            whole[filled : filled + len(piece)] = piece
            filled += len(piece)
            self._at = (self._at + len(piece)) % len(self._sound)


class Outgoing:
    """Messages to the measuring program, written by a thread that may block.

    The audio callback never waits: if more than a second of audio is queued, blocks are dropped,
    and the next one says how many samples.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._waiting: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._lost = self._dropped = 0
        self._parent = os.getppid()
        self.frame_bytes = 4
        self.most_blocks = 100
        self.latency = 0.0
        threading.Thread(target=self._write, daemon=True).start()

    def block(self, samples: Any, now: float, age_s: float, lost: int) -> None:
        """Queue a block of audio; called by PortAudio."""
        data = bytes(samples)
        if self._waiting.qsize() > self.most_blocks:
            self._lost += lost
            self._dropped += len(data) // self.frame_bytes
            return
        header = HEADER.pack(b"B", len(data), now, age_s, lost + self._lost, self._dropped)
        self._lost = self._dropped = 0
        self._waiting.put(header + data)

    def say(self, kind: bytes, text: str) -> None:
        """Queue a reply or the end."""
        data = text.encode("utf-8", "replace")
        self._waiting.put(HEADER.pack(kind, len(data), since_boot_s(), 0.0, 0, 0) + data)

    def end(self) -> None:
        """The stream ended by itself; called by PortAudio."""
        self.say(b"E", "the sound system ended the stream")

    def _write(self) -> None:
        beat_at = time.monotonic()
        while True:
            wait = beat_at - time.monotonic()
            try:
                data = self._waiting.get(timeout=max(0.0, wait)) if wait > 0 else b""
            except queue.Empty:
                data = b""
            if time.monotonic() >= beat_at:
                data += HEADER.pack(b"H", 0, since_boot_s(), self.latency, 0, 0)
                beat_at = time.monotonic() + HEARTBEAT_S
            try:
                while data:
                    data = data[os.write(self._descriptor, data) :]
            except OSError:
                os._exit(0)  # the reader is gone
            if os.getppid() != self._parent:
                os._exit(0)


def _serve(requests: BinaryIO, out: Outgoing) -> None:
    """Answer requests, one JSON object per line, until they end."""
    stream: InputStream | PlayedStream | None = None
    for line in requests:
        asked = json.loads(line)
        try:
            match asked.pop("do"):
                case "list":
                    answer: dict[str, object] = {"devices": inputs()}
                case "rates":
                    answer = {"rates": rates_of(**asked)}
                case "play":
                    stream = PlayedStream(**asked)
                    answer = {}
                case "interruptions":
                    assert isinstance(stream, PlayedStream)
                    answer = {"count": stream.interruptions}
                case _:
                    blocks = asked["fs"] * BACKLOG_S / (asked["blocksize"] or 256)
                    out.most_blocks = round(blocks)
                    out.frame_bytes = 4 * asked["channels"]
                    stream = opened = InputStream(**asked, on_block=out.block, on_end=out.end)
                    out.latency = opened.latency
                    answer = {"latency": out.latency}
        except Exception as error:
            answer = {"error": str(error)}
        out.say(b"R", json.dumps(answer))
    # Closing hangs if the sound server is suspended.
    threading.Timer(LEAVE_S, os._exit, [0]).start()
    if stream is not None:
        stream.close()
    os._exit(0)


def main() -> None:
    """Serve the parent process, which passes `sys.path` as JSON in the only argument."""
    sys.path += [path for path in json.loads(sys.argv[1]) if path not in sys.path]
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # sound server libraries may abort
    # Keep the pipe clear of output and inheritance by anything that PortAudio starts.
    descriptor = os.dup(1)
    os.dup2(2, 1)
    _serve(sys.stdin.buffer, Outgoing(descriptor))


if __name__ == "__main__":
    main()
