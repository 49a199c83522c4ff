"""Lists input devices and selects one."""

import json
import re
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from amt_stream.core.json_types import JsonDict
from amt_stream.engine.devices.capture_process import CaptureProcess
from amt_stream.engine.devices.identity import identity_of, is_alias
from amt_stream.engine.devices.pulse_server import (
    PulseSource,
    default_sink,
    default_source,
    sources,
)
from amt_stream.engine.sources import SourceError

THROUGH = ("pulse", "default", "pipewire")
"""ALSA names that record from a sound server, the most reliable first."""

_KNOWN = re.compile(r"\[loopback\]$|^monitor of |^(stereo mix|what u hear|blackhole|loopback)\b")


@dataclass(frozen=True)
class InputDevice:
    """An input as PortAudio lists it; `default` marks the one used if none is named.

    `identity` is stable for a microphone across changes of index and name, as far as the system
    tells; "" if a name such as "default" may stand for any. `behind` is the sound server's source
    that such a name stands for. `title` is the one name by which all displays, files and events
    call it: the server's description of that source, or else `name`. `played` marks an input that
    records what the computer plays, which has no sound pressure. A source of a sound server shares
    the index of the name it is opened through.
    """

    index: int
    name: str
    host_api: str
    channels: int
    fs: int
    default: bool
    identity: str = ""
    behind: str | None = None
    played: bool = False
    title: str = ""

    def __post_init__(self) -> None:
        if not self.title:
            object.__setattr__(self, "title", self.name)

    @property
    def has_index(self) -> bool:
        """Whether it has an index of its own."""
        return self.behind is None or is_alias(self.name, self.host_api)

    @property
    def kept_by(self) -> frozenset[str]:
        """Identities under which its calibration may be stored; empty if it is ambiguous."""
        if self.played:
            return frozenset()
        return frozenset({self.identity} - {""})

    def __str__(self) -> str:
        return self.title

    @property
    def entry(self) -> str:
        """The title in a list, with the name by which it is chosen, if that is another one."""
        other = self.name if self.has_index else self.behind
        return self.title if other in (None, self.title) else f"{self.title} ({other})"


def list_devices() -> list[InputDevice]:
    """The inputs available now [any-thread].

    Looked up in a new process, so that streams are not disturbed and the list is up to date. Raises
    SourceError if PortAudio is missing, and if the sound system does not answer within 3 s.
    """
    with CaptureProcess() as process:
        return described(process.ask("list")["devices"])


def described(devices: Sequence[JsonDict]) -> list[InputDevice]:
    """The devices of a `CaptureProcess`, with details from the system."""
    if not any(is_alias(device["name"], device["host_api"]) for device in devices):
        return listed(devices, None)
    of_server = _sources()
    return [*listed(devices, default_source(), of_server), *_through_server(devices, of_server)]


def _sources() -> list[PulseSource]:
    """The sources of a sound server, the monitor of the default output first."""
    of_server = sources()
    output = default_sink() if of_server else None
    return sorted(of_server, key=lambda one: (not one.output, one.output != output))


def listed(
    devices: Sequence[JsonDict], source: str | None, of_server: Sequence[PulseSource] = ()
) -> list[InputDevice]:
    """The devices, with `source` as what stands behind a name such as "default"."""
    by_name = {one.name: one for one in of_server}

    def described(name: str, host_api: str, **more: Any) -> InputDevice:
        behind = source if is_alias(name, host_api) else None
        known = None if behind is None else by_name.get(behind)
        return InputDevice(
            name=name,
            host_api=host_api,
            **more,
            identity=identity_of(name, host_api, source),
            behind=behind,
            played=is_played(name, host_api) if known is None else bool(known.output),
            title=behind or "" if known is None else _title(known, of_server),
        )

    return [described(**device) for device in devices]


def _title(one: PulseSource, of_server: Sequence[PulseSource]) -> str:
    """Its description, with its name where another source has the same."""
    alone = sum(other.title == one.title for other in of_server) == 1
    return one.title if alone else f"{one.title} ({one.name})"


def _through_server(
    devices: Sequence[JsonDict], of_server: Sequence[PulseSource]
) -> list[InputDevice]:
    """Sources of a sound server, as inputs opened through a name such as "default"."""
    ways = {d["name"]: d for d in devices if is_alias(d["name"], d["host_api"])}
    through = next((ways[name] for name in THROUGH if name in ways), None)
    if through is None:
        return []
    return [
        InputDevice(
            index=through["index"],
            name=one.title,
            host_api=through["host_api"],
            channels=one.channels,
            fs=one.fs,
            default=False,
            identity=identity_of(through["name"], through["host_api"], one.name),
            behind=one.name,
            played=bool(one.output),
            title=_title(one, of_server),
        )
        for one in of_server
    ]


def listed_again(devices: Sequence[JsonDict], lost: InputDevice) -> InputDevice | None:
    """`lost` in the present list of a `CaptureProcess`: see `same_device`."""
    if lost.has_index:
        return same_device(listed(devices, lost.behind), lost)
    return same_device(_through_server(devices, sources()), lost)


def chosen(
    devices: Sequence[InputDevice], wanted: int | str | None, played: bool = False
) -> InputDevice:
    """The one of `devices` with this index, name or part of a name; None is the default.

    Raises SourceError if there is none, and if a part of a name fits several.

    played: only inputs that record what the computer plays; by default that of its default output
    """
    if played:
        devices = [d for d in devices if d.played]
        if not devices:
            raise SourceError(no_playback())
        if wanted is None:
            return devices[0]
    if wanted is None:
        found = [d for d in devices if d.default] or list(devices[:1])
        if not found:
            raise SourceError("there is no microphone: PortAudio lists no input device")
        return found[0]
    if isinstance(wanted, int) or re.fullmatch("[0-9]+", wanted):
        found = [d for d in devices if d.index == int(wanted) and d.has_index]
    else:
        text = wanted.casefold()
        found = _of_one_api([d for d in devices if d.name.casefold() == text])
        found = found or [d for d in devices if d.behind == wanted and not d.has_index]
        found = found or [d for d in devices if text in (d.title.casefold(), d.entry.casefold())]
        found = found or _of_one_api([d for d in devices if text in d.name.casefold()])
        # Prefer a microphone to playback, and an input of its own to the same one of a server.
        for is_better in (lambda d: not d.played, lambda d: d.has_index):
            if len(found) > 1:
                found = [*filter(is_better, found)] or found
    if not found:
        raise SourceError(
            f"there is no input device {wanted!r}; PortAudio lists {_in_words(devices)}"
        )
    if len(found) > 1:
        raise SourceError(
            f"several input devices are called {wanted!r}: {_in_words(found)}; give one by its "
            "whole name, its number, or the name in parentheses"
        )
    return found[0]


def _of_one_api(found: list[InputDevice]) -> list[InputDevice]:
    """Without duplicates of the same devices in other host APIs, as on Windows."""
    names = {d.name.casefold() for d in found}
    return [d for d in found if len(names) > 1 or d.host_api == found[0].host_api]


def _in_words(devices: Sequence[InputDevice]) -> str:
    return ", ".join(map(_in_short, devices)) or "none at all"


def _in_short(device: InputDevice) -> str:
    if device.has_index:
        return f"{device.index} {device.name!r} ({device.host_api})"
    return f"{device.name!r} ({device.behind})"


def same_device(devices: Sequence[InputDevice], lost: InputDevice) -> InputDevice | None:
    """The device that was lost, if it is back among `devices`; never another one.

    Compared by identity and host API, or by name if there is no identity. An alias is accepted as
    it is, because `pinned` makes it stand for the same source as before.
    """
    found = [
        device
        for device in devices
        if device.host_api == lost.host_api
        and device.identity == lost.identity
        and (device.name == lost.name or not is_alias(lost.name, lost.host_api))
    ]
    return found[0] if len(found) == 1 else None


def is_played(name: str, host_api: str) -> bool:
    """Whether an input is known by its name to record playback.

    WASAPI marks its own; the others are common drivers and virtual devices.
    """
    return host_api != "ALSA" and _KNOWN.search(name.casefold()) is not None


def no_playback() -> str:
    """Why playback cannot be recorded, and what helps on this system."""
    if sys.platform == "darwin":
        help = "macOS has none built in: install a virtual device such as BlackHole"
    elif sys.platform == "win32":
        help = (
            "this PortAudio lists no loopback devices: switch on Stereo Mix, install a virtual "
            "cable, or give sounddevice a newer PortAudio"
        )
    else:
        help = "it needs PulseAudio or PipeWire, pactl, and ALSA's plugin for them"
    return f"there is no input that records what the computer plays; {help}"


if __name__ == "__main__":  # for callers that must not wait for a sound system that hangs
    print(json.dumps([asdict(device) for device in list_devices()]))
