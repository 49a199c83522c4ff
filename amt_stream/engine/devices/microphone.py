"""A microphone as a source, which survives unplugging, stalls and unreported losses."""

from collections.abc import Sequence

from amt_stream.engine.devices import portaudio
from amt_stream.engine.devices.capture_process import CaptureProcess
from amt_stream.engine.devices.captured import Captured
from amt_stream.engine.devices.device_source import DeviceSource
from amt_stream.engine.devices.in_process import InProcess
from amt_stream.engine.devices.listing import chosen, described
from amt_stream.engine.microphone.channels import block_columns, channel_numbers
from amt_stream.engine.sources import Deliver, SourceError

PREFERRED_FS = 48000


class MicrophoneSource(DeviceSource):
    """An input device.

    `device` is an index, a name or part of one; `channels` are channel numbers as printed on the
    device (1, 2, ...); by default the first two, or the only one.
    `fs` defaults to 48000 Hz, or to the device's own rate if it does not support that.

    A separate process opens the device. If the device is lost, the source waits for it, identified
    by name, host API and other details, and continues when it is back; the samples in between count
    as missing. With wait=False the source ends with DeviceLost instead. A name such as "default"
    means the microphone that it stands for at opening.

    Exact zeros of all channels that last longer than half a second are no sound: they count as
    missing, and the source is "silent".

    `played` records what the computer plays; `device` is then the name of an output, by default the
    default output. Its zeros are sound.

    In an engine with run_in="callback" the device is opened in this process, so that the model can
    run in its callback; a lost device then ends the source.
    """

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
            picked = channels or range(1, min(2, info.channels) + 1)
            pick = block_columns(channel_numbers(picked, info.channels, repr(info.title)))
            # A one-channel capture may be the mean of left and right: capture both and select.
            captured = min(info.channels, max(2, *picked))
            super().__init__(info, captured, pick, blocksize, latency)
            self.fs = self._choose_rate(process, fs)
        self.waits = wait

    def _choose_rate(self, process: CaptureProcess, fs: int | None) -> int:
        def of(*rates: int) -> list[int]:
            answer = process.ask(
                "rates",
                index=self.device.index,
                host_api=self.device.host_api,
                channels=self.captured,
                rates=rates,
            )
            found: list[int] = answer["rates"]
            return found

        if fs is not None:
            if of(fs):
                return fs
            offered = ", ".join(map(str, of(*portaudio.OFFERED_RATES)))
            raise SourceError(
                f"{self.name!r} does not run at {fs} Hz with {self.captured} channel(s); "
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

    def start(self, deliver: Deliver) -> None:
        self.forget_gain()
        kind = InProcess if self.run_in == "callback" else Captured
        self.reader = kind(self, deliver)

    def stop(self) -> None:
        reader, self.reader = self.reader, None
        if reader is not None:
            reader.stop()
