"""What a PulseAudio or PipeWire server tells of its sources, by pactl."""

import math
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from amt_stream.core.processes import printed_by
from amt_stream.meters.source_description import InputGain

ANSWER_S = 0.5
LISTED_S = 2.0
"""Seconds for the answer of a server that is known to run, as its inputs have just been listed."""

_FULL = 65536
"""pactl's number for 100 %."""

_SPECIFICATION = re.compile(r"(\d+)ch (\d+)Hz$")
_VOLUME = re.compile(r": (\d+) /")


class PulseSource(NamedTuple):
    """A source of the server.

    title: its description, for people
    output: name of the output that it records; "" for a microphone
    volume: of each channel, as a fraction; () if unknown
    port: the connector or microphone that is chosen, "" if there is none
    master: name of the source that it filters or remaps; "" for a device
    module: number of the module that made it
    """

    name: str
    title: str
    output: str
    channels: int
    fs: int
    number: str = ""
    volume: tuple[float, ...] = ()
    muted: bool = False
    port: str = ""
    master: str = ""
    module: str = ""
    suspended: bool = False


class Recording(NamedTuple):
    """A stream that records from a source, given by its number; fields as in `PulseSource`."""

    source: str
    process: str
    program: str
    volume: tuple[float, ...]
    muted: bool
    module: str


class Placement(NamedTuple):
    """Where the stream of a process records from, and with which gain.

    muted: what is muted, in words: "it" is the source itself; "" if nothing is
    others: other programs that record from the source
    """

    source: PulseSource
    gain: InputGain
    muted: str
    others: tuple[str, ...]


def pactl(*arguments: str, within_s: float = ANSWER_S) -> list[str]:
    """The output lines of pactl; [] if it is missing or does not answer in time."""
    return printed_by(["pactl", *arguments], within_s) if sys.platform.startswith("linux") else []


def default_source() -> str | None:
    """The name of the default source; None without a server, or if it does not answer at once."""
    return os.environ.get("PULSE_SOURCE") or _default("Source")


def default_sink() -> str | None:
    """The name of the default output; None without a server."""
    return _default("Sink")


def _default(kind: str) -> str | None:
    names = (_field(line) for line in pactl("info", within_s=LISTED_S))
    return next((name for key, name in names if key == f"Default {kind}" and name), None)


def sources() -> list[PulseSource]:
    """All sources; empty without a server."""
    found = (_source(*block) for block in _blocks(pactl("list", "sources", within_s=LISTED_S)))
    return [one for one in found if one is not None]


def placement_of(process: int, place: str | None = None) -> Placement | None:
    """Where a process records from; None if unknown.

    place: name of the source, if the process may have several streams
    """
    listed = (_source(*block) for block in _blocks(pactl("list", "sources")))
    by_number = {one.number: one for one in listed if one is not None}
    recordings = [_recording(block) for _, block in _blocks(pactl("list", "source-outputs"))]
    mine = [r for r in recordings if r.process == str(process) and r.source in by_number]
    if not mine:
        return None
    there = (one for one in mine if by_number[one.source].name == place)
    stream = next(there, mine[0])
    source = by_number[stream.source]
    others = dict.fromkeys(
        r.program for r in recordings if r.source == source.number and r not in mine and r.program
    )
    stages = [stream, *_chain(source, [*by_number.values()], recordings)]
    muted = next((_words(one, source) for one in stages if one.muted), "")
    gain = InputGain(_percent([one.volume for one in stages]), bool(muted), source.port)
    return Placement(source, gain, muted, tuple(others))


def _words(stage: PulseSource | Recording, source: PulseSource) -> str:
    if isinstance(stage, PulseSource):
        return "it" if stage is source else repr(stage.title)
    return "the recording of this program" if stage.process else "the stream that it is made of"


def _chain(
    source: PulseSource, all_sources: Sequence[PulseSource], recordings: Sequence[Recording]
) -> Iterator[PulseSource | Recording]:
    """A source, and what it records from: a remapped one has the gain of its master too."""
    for _ in range(len(all_sources)):  # masters in a circle would never end
        yield source
        if not source.master:
            return
        yield from (one for one in recordings if one.module == source.module)
        master = next((one for one in all_sources if one.name == source.master), None)
        if master is None:
            return
        source = master


def _percent(volumes: Sequence[tuple[float, ...]]) -> tuple[float, ...]:
    """The product of volumes in percent, of each channel where all have as many."""
    known = [volume for volume in volumes if volume]
    most = max(map(len, known), default=0)
    if any(len(volume) < most for volume in known):
        known = [(max(volume),) for volume in known]
    return tuple(round(100 * math.prod(each), 2) for each in zip(*known, strict=True))


def _blocks(lines: Sequence[str]) -> Iterator[tuple[str, dict[str, str]]]:
    """Number and fields of each object; properties are fields too."""
    number, fields = "", dict[str, str]()
    for line in lines:
        if line and not line.startswith("\t"):
            if number:
                yield number, fields
            number, fields = line.rpartition("#")[2], {}
        elif line.startswith("\t\t"):
            key, equals, value = line.strip().partition(" = ")
            if equals:
                fields.setdefault(key, value.strip('"'))
        else:
            fields.update([_field(line)])
    if number:
        yield number, fields


def _field(line: str) -> tuple[str, str]:
    key, _, value = line.strip().partition(": ")
    return key, value


def _volume(fields: Mapping[str, str]) -> tuple[float, ...]:
    return tuple(int(one) / _FULL for one in _VOLUME.findall(fields.get("Volume", "")))


def _source(number: str, fields: Mapping[str, str]) -> PulseSource | None:
    name = fields.get("Name")
    form = _SPECIFICATION.search(fields.get("Sample Specification", ""))
    if not name or form is None:
        return None
    output = fields.get("Monitor of Sink", "n/a")
    return PulseSource(
        name,
        fields.get("Description", name),
        "" if output == "n/a" else output,
        int(form[1]),
        int(form[2]),
        number,
        _volume(fields),
        fields.get("Mute") == "yes",
        fields.get("Active Port", ""),
        fields.get("device.master_device", ""),
        fields.get("Owner Module", ""),
        fields.get("State") == "SUSPENDED",
    )


def _recording(fields: Mapping[str, str]) -> Recording:
    return Recording(
        fields.get("Source", ""),
        fields.get("application.process.id", ""),
        fields.get("application.name", ""),
        _volume(fields),
        fields.get("Mute") == "yes",
        fields.get("Owner Module", "n/a"),
    )
