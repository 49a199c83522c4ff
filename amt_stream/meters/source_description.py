"""What a reader or a device knows of its sound."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, Self

from amt_stream.core.json_types import JsonDict, JsonMap
from amt_stream.core.safe_text import brief
from amt_stream.core.words import counted
from amt_stream.dsp.channel_layout import Layout, usual_layout

Kind = Literal["device", "playback", "file", "stream", "signal", "array", "program"]

LEARNED = ("found_samples", "length", "cut_off", "offset", "input_gain")
"""Keys of what is known only while a source runs, or when it has ended."""

DEVICE_CLIPS_AT = 32767 / 32768
"""The largest value of a 16-bit converter; those of more bits end above it."""


@dataclass(frozen=True)
class InputGain:
    """The gain of a device's input, as the system tells it.

    percent: volume of each channel; () if unknown
    muted: whether it is switched to silence
    port: the connector or microphone that is chosen, "" if unknown
    turning: whether it has just changed, so that sound of another gain may still come
    """

    percent: tuple[float, ...] = ()
    muted: bool = False
    port: str = ""
    turning: bool = False

    def __str__(self) -> str:
        different = self.percent if len(set(self.percent)) > 1 else self.percent[:1]
        volumes = "/".join(f"{one:g}" for one in different)
        parts = [f"{volumes} %"] if volumes else []
        parts += ["muted"] if self.muted else []
        parts += [self.port] if self.port else []
        return ", ".join(parts)

    @property
    def in_words(self) -> str:
        """The gain without mute, which is none: as "50 %, analog-input-mic"."""
        return str(replace(self, muted=False))

    def beside(self, other: "InputGain") -> tuple[str, str]:
        """This gain and another in words, with the channels if only their number differs."""
        gains = self, other
        mine, theirs = (one.in_words for one in gains)
        if mine != theirs:
            return mine, theirs
        many, others = (counted(len(one.percent), "channel") for one in gains)
        return f"{mine} of {many}", f"{theirs} of {others}"

    def amplifies_as(self, other: "InputGain") -> bool:
        """Whether it amplifies as much as another, as far as both are known; mute is no gain."""
        volumes = self.percent, other.percent
        ports = self.port, other.port
        return all(a == b or not (a and b) for a, b in (volumes, ports))

    def to_dict(self) -> JsonDict:
        """Data for headers and files."""
        return {"percent": list(self.percent), "muted": self.muted, "port": self.port}

    @classmethod
    def from_dict(cls, given: JsonMap) -> Self:
        """Make a gain from `to_dict`. Raises TypeError or ValueError."""
        percent, muted, port = (given.get(key) for key in ("percent", "muted", "port"))
        known = isinstance(muted, bool) and isinstance(port, str)
        if not (known and isinstance(percent, list | tuple)):
            raise ValueError(f"an input gain is {brief(given)}: give percent, muted and port")
        return cls(tuple(map(float, percent)), bool(muted), str(port))


@dataclass(frozen=True)
class SourceDescription:
    """What a source knows of its sound; it travels with it to headers, reports and displays.

    Only readers of files, pipes and devices make one; what they do not know, nobody guesses.

    kind: "device" is a microphone, "playback" what the computer plays, "stream" a pipe, "signal"
        computed sound, "array" sound in memory, "program" a source that a program made
    encoding: how samples are stored, such as "PCM 16 bit" or "float"; "" if unknown
    clips_at: from which magnitude, as a fraction of full scale, a converter may have clipped; None
        for floating-point samples, which have no end
    channel_ends: like clips_at, of each channel, where they differ; infinity for no end
    has_offset: whether its samples may have a constant offset, which is no sound and is removed
    offset: of each channel, as a fraction of full scale, once it is known; () before, and NaN for a
        channel that is not measured
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
    offset: tuple[float, ...] = ()
    promised: int | None = None
    found: int | None = None
    incomplete: str = ""
    remark: str = ""
    gain: InputGain | None = None
    channel_ends: tuple[float, ...] = ()

    @classmethod
    def of_device(cls, channels: int, gain: InputGain | None = None, played: bool = False) -> Self:
        """Of a device, which clips at the end of its converter, in whatever format it delivers."""
        kind: Kind = "playback" if played else "device"
        return cls(kind, usual_layout(channels), "", DEVICE_CLIPS_AT, True, gain=gain)

    @classmethod
    def of_program(cls, channels: int, live: bool) -> Self:
        """Of a source that a program made, which says nothing else."""
        return cls("program", usual_layout(channels), "", DEVICE_CLIPS_AT if live else None)

    @classmethod
    def from_dict(cls, data: JsonMap, channels: int) -> Self:
        """What a header says, without the length; of computed sound if it says nothing.

        Raises KeyError, TypeError or ValueError for other data.
        """
        if not data:
            return cls.of_signal(channels)
        layout, gain = Layout.from_dict(data["layout"]), data.get("input_gain")
        more = {key: data.get(key, usual) for key, usual in (("encoding", ""), ("clips_at", None))}
        more |= {"has_offset": data.get("has_offset") is True}
        return cls(data["kind"], layout, **more, gain=gain and InputGain.from_dict(gain))

    @classmethod
    def of_signal(cls, channels: int) -> Self:
        """Of computed sound."""
        return cls("signal", usual_layout(channels), "float")

    def with_ends_of(self, sources: Sequence[tuple[Self, int]]) -> Self:
        """A copy whose channels are those of several sources, each with its number of channels."""
        ends = [math.inf if of.clips_at is None else of.clips_at for of, _ in sources]
        of_each = tuple(end for end, (_, n) in zip(ends, sources, strict=True) for _ in range(n))
        lowest = None if math.isinf(min(ends)) else min(ends)
        return replace(self, clips_at=lowest, channel_ends=of_each if len({*ends}) > 1 else ())

    def with_layout(self, layout: Layout) -> Self:
        """A copy with another layout."""
        return replace(self, layout=layout)

    def with_offset(self) -> Self:
        """A copy whose offset is sound, and is not removed."""
        return replace(self, has_offset=False)

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
        are = "is" if self.found == 1 else "are"
        said = counted(self.promised, "sample")
        return f"its header says {said}, but there {are} {self.found}"

    @property
    def in_words(self) -> str:
        """Encoding and layout, such as "PCM 16 bit, 5.1 (L R C LFE Ls Rs)"; "" if unknown."""
        return f"{self.encoding}, {self.layout}" if self.encoding else ""

    def to_dict(self) -> JsonDict:
        """Data for headers and summaries."""
        data: JsonDict = {"kind": self.kind}
        data |= {"encoding": self.encoding} if self.encoding else {}
        data["layout"] = self.layout.to_dict()
        data["has_offset"] = self.has_offset
        more: JsonDict = {"clips_at": self.clips_at, "promised_samples": self.promised}
        more |= {"found_samples": self.found, "length": self.length_words or None}
        more |= {"cut_off": True if self.cut_off else None}
        data |= {key: value for key, value in more.items() if value is not None}
        if self.offset:
            data["offset"] = [None if math.isnan(one) else round(one, 7) for one in self.offset]
        return data | ({} if self.gain is None else {"input_gain": self.gain.to_dict()})
