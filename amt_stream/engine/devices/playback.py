"""What the computer plays, heard as an input, where a sound system offers that."""

import re
import sys
from typing import NamedTuple

from amt_stream.engine.devices.identity import pactl

THROUGH = ("pulse", "default", "pipewire")
"""Names of ALSA that record from a sound server, the surest first."""

_KNOWN = re.compile(r"\[loopback\]$|^monitor of |^(stereo mix|what u hear|blackhole|loopback)\b")

_SPECIFICATION = re.compile(r"(\d+)ch (\d+)Hz$")


class Monitor(NamedTuple):
    """A source of a sound server that hears what one of its outputs plays."""

    source: str
    description: str
    output: str
    channels: int
    fs: int


def is_played(name: str, host_api: str) -> bool:
    """Whether an input is known by its name to give what is played, and no microphone.

    WASAPI marks its own; others are those of drivers and virtual devices that many have.
    """
    return host_api != "ALSA" and _KNOWN.search(name.casefold()) is not None


def monitors() -> list[Monitor]:
    """Those of a PulseAudio or PipeWire server, of the default output first.

    None where there is no such server, or none that answers at once.
    """
    if not sys.platform.startswith("linux"):
        return []
    found = [one for told in _blocks(pactl("list", "sources")) if (one := _monitor(told))]
    if not found:
        return []
    chosen = next((w[1] for line in pactl("info") if (w := _told(line))[0] == "Default Sink"), "")
    return sorted(found, key=lambda one: one.output != chosen)


def no_playback() -> str:
    """Why there is nothing of what is played, and what helps, on this system."""
    if sys.platform == "darwin":
        help = "macOS offers none of its own: install a virtual device such as BlackHole"
    elif sys.platform == "win32":
        help = (
            "this PortAudio lists no loopback devices: switch on Stereo Mix, install a virtual "
            "cable, or give sounddevice a newer PortAudio"
        )
    else:
        help = "it is heard through PulseAudio or PipeWire, with pactl and ALSA's plugin for them"
    return f"there is no input that hears what the computer plays; {help}"


def _blocks(lines: list[str]) -> list[list[str]]:
    """What is told of each source: lines without a tab before them begin another one."""
    blocks: list[list[str]] = []
    for line in lines:
        if line and not line.startswith("\t"):
            blocks.append([])
        elif blocks:
            blocks[-1].append(line)
    return blocks


def _told(line: str) -> tuple[str, str]:
    key, _, value = line.strip().partition(": ")
    return key, value


def _monitor(lines: list[str]) -> Monitor | None:
    # Below the first level the same keys may come again, as those of ports.
    told = dict(_told(line) for line in lines if not line.startswith("\t\t"))
    name, output = told.get("Name"), told.get("Monitor of Sink", "n/a")
    form = _SPECIFICATION.search(told.get("Sample Specification", ""))
    if not name or output == "n/a" or form is None:
        return None
    return Monitor(name, told.get("Description", name), output, int(form[1]), int(form[2]))
