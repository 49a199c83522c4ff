"""The microphone, through PortAudio. The only file that knows sounddevice, and only when asked."""

import contextlib
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from amt_stream.engine.sources import Deliver, DeviceLost, Source, SourceError, channel_slice

PREFERRED_FS = 48000
SANE_LATENCY_S = 10.0
OPEN: set[int] = set()
OFFERED_RATES = (16000, 22050, 32000, 44100, 48000, 88200, 96000, 192000)


@dataclass(frozen=True)
class InputDevice:
    """An input as PortAudio lists it; `default` is the one that is used when none is named."""

    index: int
    name: str
    host_api: str
    channels: int
    fs: int
    default: bool


def _sounddevice() -> Any:
    try:
        import sounddevice
    except (ImportError, OSError) as error:
        raise SourceError(
            f"the microphone needs PortAudio, which is not there ({error}): on Debian or Ubuntu "
            "install libportaudio2"
        ) from error
    return sounddevice


def list_devices(rescan: bool = False) -> list[InputDevice]:
    """The inputs that PortAudio sees.

    PortAudio looks once, when it is loaded. `rescan` makes it look again; that would close every
    stream of this process, so it is left out while one is open.
    """
    sounddevice = _sounddevice()
    if rescan and not OPEN:
        _restart_portaudio(sounddevice)
    apis = sounddevice.query_hostapis()
    default = sounddevice.default.device["input"]
    return [
        InputDevice(
            index,
            info["name"],
            apis[info["hostapi"]]["name"],
            info["max_input_channels"],
            round(info["default_samplerate"]),
            index == default,
        )
        for index, info in enumerate(sounddevice.query_devices())
        if info["max_input_channels"] > 0
    ]


def _restart_portaudio(sounddevice: Any) -> None:
    sounddevice._terminate()
    sounddevice._initialize()


def find_device(wanted: int | str | None = None) -> InputDevice:
    """The input by index, or by part of its name; None is the default input."""
    devices = list_devices()
    offered = ", ".join(f"{d.index} {d.name!r}" for d in devices) or "none at all"
    if wanted is None:
        found = [d for d in devices if d.default] or devices[:1]
        if not found:
            raise SourceError("there is no microphone: PortAudio lists no input device")
        return found[0]
    if isinstance(wanted, int) or wanted.isdigit():
        found = [d for d in devices if d.index == int(wanted)]
    else:
        text = wanted.casefold()
        found = [d for d in devices if text in d.name.casefold()]
        found.sort(key=lambda d: d.name.casefold() != text)
    if not found:
        raise SourceError(f"there is no input device {wanted!r}; PortAudio lists {offered}")
    return found[0]


class MicrophoneSource(Source):
    """An input device.

    `device` is an index or part of a name; `channels` one or two channel numbers as printed on the
    box (1, 2, ...), by default the first two, or the only one. `fs` is asked of the device; by
    default 48000 Hz, or the device's own rate where it does not do that.
    """

    silence_note = (
        "the microphone gives exact zeros: is it muted, or does the system not permit its use?"
    )
    stall_s = 5.0

    def __init__(
        self,
        device: int | str | None = None,
        *,
        fs: int | None = None,
        channels: Sequence[int] | None = None,
        blocksize: int = 480,
        latency: float = 0.1,
    ) -> None:
        sounddevice = _sounddevice()
        info = find_device(device)
        self.device = info
        self.name = info.name
        chosen = channels or range(1, min(2, info.channels) + 1)
        self._pick = channel_slice(chosen, info.channels, repr(info.name))
        # A one-channel capture may be the mean of left and right: capture both and choose.
        self._captured = min(info.channels, max(2, *chosen))
        self.channels = len(chosen)
        self.fs = self._choose_rate(sounddevice, fs)
        self._blocksize, self._asked_latency = blocksize, latency
        self.slack_s = latency
        self._stream: Any = None
        self._stopping = False
        self._lag = self._first_lag = math.nan
        self._next_adc = math.nan

    def _choose_rate(self, sounddevice: Any, fs: int | None) -> int:
        if fs is not None:
            if self._does(sounddevice, fs):
                return fs
            offered = [str(f) for f in OFFERED_RATES if self._does(sounddevice, f)]
            raise SourceError(
                f"{self.name!r} does not run at {fs} Hz with {self._captured} channel(s); "
                f"it offers {', '.join(offered) or 'none of the usual rates'}"
            )
        for rate in (PREFERRED_FS, self.device.fs):
            if self._does(sounddevice, rate):
                return rate
        raise SourceError(
            f"{self.name!r} opens neither at {PREFERRED_FS} nor at its own {self.device.fs} Hz: "
            "is another program using it?"
        )

    def _does(self, sounddevice: Any, fs: int) -> bool:
        try:
            sounddevice.check_input_settings(
                device=self.device.index,
                channels=self._captured,
                dtype="float32",
                samplerate=fs,
                extra_settings=self._extra(sounddevice),
            )
        except (sounddevice.PortAudioError, ValueError):
            return False
        return True

    def _extra(self, sounddevice: Any) -> Any:
        if sys.platform == "win32" and "WASAPI" in self.device.host_api:
            return sounddevice.WasapiSettings(auto_convert=True)
        return None

    @property
    def latency_s(self) -> float:  # type: ignore[override]
        """Age of a sample when the callback gets it, as PortAudio measures or claims it."""
        if 0.0 <= self._lag < SANE_LATENCY_S:
            return self._lag
        claimed = self._stream.latency if self._stream is not None else self._asked_latency
        # A JACK device has claimed 89,478,480 s.
        return claimed if 0.0 <= claimed < SANE_LATENCY_S else self._asked_latency

    @property
    def latency_growth_s(self) -> float:  # type: ignore[override]
        """How much older samples come than at the start: sound piles up in the system."""
        growth = self._lag - self._first_lag
        return growth if abs(growth) < SANE_LATENCY_S else 0.0

    def start(self, deliver: Deliver) -> None:
        sounddevice = _sounddevice()

        def callback(indata: Any, frames: int, times: Any, status: Any) -> None:
            lost = 0
            adc = times.inputBufferAdcTime
            if status.input_overflow:
                self.overflows += 1
                # The flag says that samples went, not how many: ask the converter's clock.
                missing = (adc - self._next_adc) * self.fs
                lost = round(missing) if 1.0 <= missing < self.fs else 1
            self._next_adc = adc + frames / self.fs
            lag = times.currentTime - adc
            if math.isnan(self._first_lag):
                self._first_lag = self._lag = lag
            self._lag += 0.01 * (lag - self._lag)
            deliver(indata[:, self._pick], lost)

        def finished() -> None:
            if not self._stopping:
                self.error = DeviceLost(f"the device {self.name!r} was lost while it was in use")
                deliver(None)

        try:
            self._stream = sounddevice.InputStream(
                device=self.device.index,
                channels=self._captured,
                samplerate=self.fs,
                dtype="float32",
                blocksize=self._blocksize,
                latency=self._asked_latency,
                extra_settings=self._extra(sounddevice),
                callback=callback,
                finished_callback=finished,
            )
            OPEN.add(id(self))
            self._stream.start()
        except (sounddevice.PortAudioError, ValueError) as error:
            self.stop()
            raise SourceError(f"{self.name!r} cannot be opened: {error}") from error

    def stop(self) -> None:
        self._stopping = True
        if self._stream is None:
            return
        sounddevice = _sounddevice()
        with contextlib.suppress(sounddevice.PortAudioError):
            self._stream.abort()
        with contextlib.suppress(sounddevice.PortAudioError):
            self._stream.close()
        OPEN.discard(id(self))
        if isinstance(self.error, DeviceLost) and not OPEN:
            # Otherwise PortAudio's list keeps the dead device and misses it when it returns.
            with contextlib.suppress(sounddevice.PortAudioError):
                _restart_portaudio(sounddevice)
        self._stream = None
