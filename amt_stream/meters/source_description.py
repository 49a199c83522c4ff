"""What a reader or a device knows of its sound."""

from dataclasses import dataclass, replace
from typing import Literal, Self

from amt_stream.core.json_types import JsonDict, JsonMap
from amt_stream.dsp.channel_layout import Layout, usual_layout

Kind = Literal["device", "playback", "file", "stream", "signal", "array"]

OF_ITS_END = ("found_samples", "length", "cut_off")
"""Keys of what is known only when a source has ended."""

DEVICE_CLIPS_AT = 32767 / 32768
"""The largest value of a 16-bit converter; those of more bits end above it."""


@dataclass(frozen=True)
class InputGain:
    """The gain of a device's input, as the system tells it.

    percent: volume of each channel; () if unknown
    muted: whether it is switched to silence
    port: the connector or microphone that is chosen, "" if unknown
    """

    percent: tuple[float, ...] = ()
    muted: bool = False
    port: str = ""

    def __str__(self) -> str:
        volumes = ", ".join(f"{one:g} %" for one in dict.fromkeys(self.percent))
        parts = [f"volume {volumes}"] if volumes else []
        parts += ["muted"] if self.muted else []
        parts += [self.port] if self.port else []
        return ", ".join(parts)

    def to_dict(self) -> JsonDict:
        """Data for headers and files."""
        return {"percent": list(self.percent), "muted": self.muted, "port": self.port}


@dataclass(frozen=True)
class SourceDescription:
    """What a source knows of its sound; it travels with it to headers, reports and displays.

    Only readers of files, pipes and devices make one; what they do not know, nobody guesses.

    kind: "device" is a microphone, "playback" what the computer plays, "stream" a pipe, "signal"
        computed sound, "array" sound in memory
    encoding: how samples are stored, such as "PCM 16 bit" or "float"; "" if unknown
    clips_at: from which magnitude, as a fraction of full scale, a converter may have clipped; None
        for floating-point samples, which have no end
    has_offset: whether a constant offset of its samples is a fault, and no sound
    layout: position of each of its channels
    promised: samples that its header says; None if it says none
    found: samples that were there, once it has ended; None before
    incomplete: what is missing or was not read, in words, beside the number of samples
    remark: what else there is to say of its length
    gain: gain of a device's input, if the system tells it
    """

    kind: Kind
    layout: Layout
    encoding: str = ""
    clips_at: float | None = None
    has_offset: bool = False
    promised: int | None = None
    found: int | None = None
    incomplete: str = ""
    remark: str = ""
    gain: InputGain | None = None

    @classmethod
    def of_device(cls, channels: int, gain: InputGain | None = None, played: bool = False) -> Self:
        """Of a device, which clips at the end of its converter, in whatever format it delivers."""
        kind: Kind = "playback" if played else "device"
        return cls(kind, usual_layout(channels), "", DEVICE_CLIPS_AT, True, gain=gain)

    @classmethod
    def of_signal(cls, channels: int) -> Self:
        """Of computed sound."""
        return cls("signal", usual_layout(channels), "float")

    def with_layout(self, layout: Layout) -> Self:
        """A copy with another layout."""
        return replace(self, layout=layout)

    def ended(self, found: int) -> Self:
        """A copy that says how many samples there were."""
        return replace(self, found=found)

    @property
    def cut_off(self) -> str:
        """What is missing or was not read, in words, or ""."""
        is_short = (self.found or 0) < (self.promised or 0)
        return "; ".join(filter(None, (self._length if is_short else "", self.incomplete)))

    @property
    def length_words(self) -> str:
        """All that there is to say of its length, in words, or ""."""
        return "; ".join(filter(None, (self._length, self.incomplete, self.remark)))

    @property
    def _length(self) -> str:
        if self.promised is None or self.found in (None, self.promised):
            return ""
        return f"its header says {self.promised} samples, but there are {self.found}"

    @property
    def in_words(self) -> str:
        """Encoding and layout, such as "PCM 16 bit, 5.1 (L R C LFE Ls Rs)"; "" if unknown."""
        return f"{self.encoding}, {self.layout}" if self.encoding else ""

    @classmethod
    def from_dict(cls, data: JsonMap) -> Self:
        """What a header says, without the length. Raises KeyError or LayoutError for other data."""
        layout, gain = data["layout"], data.get("input_gain")
        return cls(
            data["kind"],
            Layout(tuple(layout["positions"]), layout["origin"]),
            data.get("encoding", ""),
            data.get("clips_at"),
            data.get("has_offset", False),
            gain=gain and InputGain(tuple(gain["percent"]), gain["muted"], gain["port"]),
        )

    def to_dict(self) -> JsonDict:
        """Data for headers and summaries."""
        data: JsonDict = {"kind": self.kind}
        data |= {"encoding": self.encoding} if self.encoding else {}
        data["layout"] = {"positions": list(self.layout.positions), "origin": self.layout.origin}
        more: JsonDict = {"clips_at": self.clips_at, "has_offset": self.has_offset or None}
        more |= {"promised_samples": self.promised}
        more |= {"found_samples": self.found, "length": self.length_words or None}
        more |= {"cut_off": True if self.cut_off else None}
        data |= {key: value for key, value in more.items() if value is not None}
        return data | ({} if self.gain is None else {"input_gain": self.gain.to_dict()})
