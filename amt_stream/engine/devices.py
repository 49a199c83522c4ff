"""Which inputs there are, and which of them is meant."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from amt_stream.engine.capture import CaptureProcess
from amt_stream.engine.identity import default_source, identity_of, is_alias
from amt_stream.engine.sources import SourceError


@dataclass(frozen=True)
class InputDevice:
    """An input as PortAudio lists it; `default` is the one that is used when none is named.

    `identity` is the same for the same microphone whichever index and name it has got, as far as
    the system tells; "" where a name such as "default" may stand for any. `behind` is the source of
    the sound server that such a name stands for.
    """

    index: int
    name: str
    host_api: str
    channels: int
    fs: int
    default: bool
    identity: str = ""
    behind: str | None = None

    @property
    def kept_by(self) -> frozenset[str]:
        """What a calibration of it may be kept by: never a name that may stand for another."""
        own = set() if is_alias(self.name, self.host_api) else {self.name}
        return frozenset({self.identity, *own} - {""})

    def __str__(self) -> str:
        return self.name if self.behind is None else f"{self.name} ({self.behind})"


def list_devices() -> list[InputDevice]:
    """The inputs that there are just now [any-thread].

    They are looked up in a new process, so that no stream is disturbed and none that has come or
    gone is missed. Raises SourceError where PortAudio is not there, and where the sound system does
    not answer within 3 s.
    """
    with CaptureProcess() as process:
        return described(process.ask("list")["devices"])


def described(devices: Sequence[dict[str, Any]]) -> list[InputDevice]:
    """Devices as a `CaptureProcess` lists them, with what the system tells of each."""
    aliases = any(is_alias(device["name"], device["host_api"]) for device in devices)
    return listed(devices, default_source() if aliases else None)


def listed(devices: Sequence[dict[str, Any]], source: str | None) -> list[InputDevice]:
    """The same, where `source` is what stands behind a name such as "default"."""
    return [
        InputDevice(
            **device,
            identity=identity_of(device["name"], device["host_api"], source),
            behind=source if is_alias(device["name"], device["host_api"]) else None,
        )
        for device in devices
    ]


def find_device(wanted: int | str | None = None) -> InputDevice:
    """The input by index, by its name or part of it; None is the default input [any-thread].

    Raises SourceError where there is none, and where a part of a name fits several.
    """
    return chosen(list_devices(), wanted)


def chosen(devices: Sequence[InputDevice], wanted: int | str | None) -> InputDevice:
    """The one of `devices` that is meant: see `find_device`."""
    if wanted is None:
        found = [d for d in devices if d.default] or list(devices[:1])
        if not found:
            raise SourceError("there is no microphone: PortAudio lists no input device")
        return found[0]
    if isinstance(wanted, int) or re.fullmatch("[0-9]+", wanted):
        found = [d for d in devices if d.index == int(wanted)]
    else:
        text = wanted.casefold()
        found = _of_one_api([d for d in devices if d.name.casefold() == text])
        found = found or _of_one_api([d for d in devices if text in d.name.casefold()])
    if not found:
        raise SourceError(
            f"there is no input device {wanted!r}; PortAudio lists {_in_words(devices)}"
        )
    if len(found) > 1:
        raise SourceError(
            f"several input devices are called {wanted!r}: {_in_words(found)}; give one by its "
            "whole name, or its number"
        )
    return found[0]


def _of_one_api(found: list[InputDevice]) -> list[InputDevice]:
    """Without the same names that other systems have for the same devices, as on Windows."""
    names = {d.name.casefold() for d in found}
    return [d for d in found if len(names) > 1 or d.host_api == found[0].host_api]


def _in_words(devices: Sequence[InputDevice]) -> str:
    return ", ".join(f"{d.index} {d.name!r} ({d.host_api})" for d in devices) or "none at all"


def same_device(devices: Sequence[InputDevice], lost: InputDevice) -> InputDevice | None:
    """The device that was lost, if it is among `devices` again: never another one.

    Its identity tells, and its host API; where it has none, its name. A name that may stand for any
    microphone is taken as it is: `pinned` has it stand for the same source as before.
    """
    found = [
        device
        for device in devices
        if device.host_api == lost.host_api
        and device.identity == lost.identity
        and (device.name == lost.name or not is_alias(lost.name, lost.host_api))
    ]
    return found[0] if len(found) == 1 else None
