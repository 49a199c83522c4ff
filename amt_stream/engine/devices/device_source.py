"""An input device as a source: what is known of it, and what it reports."""

import math
import time
from dataclasses import replace
from typing import Any

import numpy as np

from amt_stream.core.json_types import JsonDict
from amt_stream.engine.devices.listing import InputDevice
from amt_stream.engine.devices.pulse_server import Placement
from amt_stream.engine.devices.zero_gate import ZeroGate
from amt_stream.engine.microphone.channels import Columns, number_of
from amt_stream.engine.sources import Deliver, Source, SourceError
from amt_stream.meters.source_description import InputGain, SourceDescription

SANE_LATENCY_S = 10.0
LARGEST_BLOCK_S = 0.1

TURNING_S = 0.05
"""Seconds after a change of gain in which older sound may come, besides the latency."""

SILENT = "silent"
"""The state of a device that gives exact zeros."""

UNKNOWN = "is it muted, or does the system not permit its use?"
"""Why a microphone gives exact zeros, if the system does not tell."""


class Reader:
    """Reads an opened device, and delivers its sound; fields as of a `Source`.

    delay_s: for how long it holds back all sound
    """

    delay_s = 0.0
    stall_s: float = math.inf

    _gate: ZeroGate

    @property
    def missing(self) -> int:
        return self._gate.missing

    @property
    def holds_s(self) -> float:
        return self._gate.holds_s

    @property
    def held_back_s(self) -> float:
        return self._gate.held_back_s

    def stop(self) -> None:
        raise NotImplementedError


class ArrivalDelay:
    """How old sound is on arrival, as the system measures it, or else claims."""

    def __init__(self, asked_s: float) -> None:
        self.claimed_s = self._asked_s = asked_s
        self._lag = self._first_lag = math.nan

    @property
    def seconds(self) -> float:
        """The age of a sample, as PortAudio measures or claims it."""
        for known in (self._lag, self.claimed_s):
            if 0.0 <= known < SANE_LATENCY_S:
                return known
        return self._asked_s

    @property
    def growth_s(self) -> float:
        """How much this age has grown since the start, as audio piles up in the system."""
        growth = self._lag - self._first_lag
        return growth if abs(growth) < SANE_LATENCY_S else 0.0

    def note(self, age_s: float) -> None:
        """Note the age of a block."""
        if math.isnan(self._first_lag):
            self._first_lag = self._lag = age_s
        self._lag += 0.01 * (age_s - self._lag)


def _of_reader(name: str, otherwise: float) -> Any:
    """A property of the reader; `otherwise` while the device is not read."""
    return property(lambda self: otherwise if self.reader is None else getattr(self.reader, name))


class DeviceSource(Source):
    """What all ways to read a device share.

    captured: number of channels that are read from it
    pick: the columns of these that are delivered
    waits: whether a lost device is waited for
    reader: reads it, while it runs
    """

    def __init__(
        self, device: InputDevice, captured: int, pick: Columns, blocksize: int, latency: float
    ) -> None:
        self.device, self.name = device, device.title
        self.captured, self.pick = captured, pick
        self.channels = number_of(pick, captured)
        self.slack_s = latency
        self.reader: Reader | None = None
        self.delay = ArrivalDelay(latency)
        self.description = SourceDescription.of_device(self.channels, played=device.played)
        self._blocksize, self._muted, self._turning_until = blocksize, "", 0.0
        self._dead_note = ""

    @property
    def latency_s(self) -> float:  # type: ignore[override]
        return self.delay.seconds + self._held_s

    @property
    def latency_growth_s(self) -> float:  # type: ignore[override]
        return self.delay.growth_s

    waits = True
    _held_s: float = _of_reader("delay_s", 0.0)
    missing = _of_reader("missing", 0)
    stall_s = _of_reader("stall_s", math.inf)
    holds_s = _of_reader("holds_s", 0.0)
    held_back_s = _of_reader("held_back_s", 0.0)

    @property
    def silence_note(self) -> str:  # type: ignore[override]
        """Of what is played, digital silence is sound; that of all channels is `be_silent`."""
        return "nothing is playing, or it is muted" if self.device.played else self._dead_note

    def opening(self, info: InputDevice) -> JsonDict:
        """Arguments of `portaudio.InputStream` for the device, as it is listed now."""
        return {
            "index": info.index,
            "host_api": info.host_api,
            "channels": self.captured,
            "fs": self.fs,
            "blocksize": min(self._blocksize, round(LARGEST_BLOCK_S * self.fs)),
            "latency": self.slack_s,
        }

    def refused(self, error: Exception) -> SourceError:
        """The error of a device that does not open."""
        return SourceError(f"{self.name!r} cannot be opened at {self.fs} Hz: {error}")

    def samples(self, data: Any) -> np.ndarray[Any, np.dtype[np.float32]]:
        """The delivered channels of interleaved samples."""
        return np.frombuffer(data, np.float32).reshape(-1, self.captured)[:, self.pick]

    def gate(self, deliver: Deliver, state: str) -> ZeroGate:
        """A gate that keeps exact zeros from `deliver`, and reports them.

        state: of this source while it gives sound
        """

        def sound_again(seconds: float) -> None:
            self.state, self.note = state, ""
            self.tell("back", f"{self.name!r} gives sound again after {seconds:.1f} s of zeros")

        return ZeroGate(
            self.fs, self.channels, deliver, self._fall_silent, sound_again, self._tell_dead
        )

    def be_silent(self) -> None:
        """Enter the state of a device that gives exact zeros."""
        why = f"{self._muted} is muted in the sound server" if self._muted else UNKNOWN
        self.state, self.note = SILENT, f"{self.name!r} gives exact zeros: {why}"

    def _fall_silent(self) -> None:
        self.be_silent()
        self.tell(SILENT, self.note)

    def _tell_dead(self, columns: list[int]) -> None:
        picked = np.arange(1, self.captured + 1)[self.pick]
        numbers = ", ".join(str(picked[c]) for c in columns)
        which = f"channels {numbers} of {self.name!r} give" if len(columns) > 1 else ""
        which = which or f"channel {numbers} of {self.name!r} gives"
        zeros = f"{which} exact zeros, while the others give sound"
        self._dead_note = f"{zeros}: mend it, or measure other channels"
        self.tell("dead_channel", self._dead_note)

    def placed(self, placement: Placement) -> None:
        """Note where a sound server records it from, and with which gain."""
        self._muted = placement.muted
        if self.state == SILENT:
            self.be_silent()
        others = placement.others
        records = "record" if len(others) > 1 else "records"
        more = f"{' and '.join(others)} {records} from it too" if others else ""
        self.know_gain(placement.gain, more)

    def know_gain(self, gain: InputGain, more: str = "") -> None:
        """Note the gain of its input, and tell a change; `more` may say who did it."""
        before = self.description.gain
        if before is not None and gain == replace(before, turning=False):
            return
        turned = before is not None and not gain.amplifies_as(before)
        if before is not None and turned:
            words = before.beside(gain)
            text = f"the input gain of {self.name!r} was turned from {words[0]} to {words[1]}"
            self.tell("gain", f"{text}; {more}" if more else text)
            self._turning_until = time.monotonic() + self.latency_s + TURNING_S
        self._set_gain(replace(gain, turning=turned and self._held_s > 0))

    def forget_gain(self) -> None:
        """Begin without knowing the gain, so that the first gain is reported."""
        self.description = replace(self.description, gain=None)

    def settle_gain(self) -> None:
        """Note that no sound of an earlier gain can come any more, once that is so."""
        gain = self.description.gain
        if gain is not None and gain.turning and time.monotonic() > self._turning_until:
            self._set_gain(replace(gain, turning=False))

    def _set_gain(self, gain: InputGain) -> None:
        self.description = replace(self.description, gain=gain)
        self.tell_gain(gain, range(self.channels))
