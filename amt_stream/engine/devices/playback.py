"""Inputs that record what the computer plays, where the sound system offers them."""

import re
import sys
from typing import NamedTuple

from amt_stream.engine.devices.identity import pactl

THROUGH = ("pulse", "default", "pipewire")
"""ALSA names that record from a sound server, the most reliable first."""

_KNOWN = re.compile(r"\[loopback\]$|^monitor of |^(stereo mix|what u hear|blackhole|loopback)\b")

_SPECIFICATION = re.compile(r"(\d+)ch (\d+)Hz$")


class Monitor(NamedTuple):
    """A sound server's source that records one of its outputs."""

    source: str
    description: str
    output: str
    channels: int
    fs: int


def is_played(name: str, host_api: str) -> bool:
    """Whether an input is known by its name to record playback.

    WASAPI marks its own; the others are common drivers and virtual devices.
    """
    return host_api != "ALSA" and _KNOWN.search(name.casefold()) is not None


def monitors() -> list[Monitor]:
    """Monitors of a PulseAudio or PipeWire server, that of the default output first.

    Empty if there is no such server, or it does not answer at once.
    """
    if not sys.platform.startswith("linux"):
        return []
    found = [one for lines in _blocks(pactl("list", "sources")) if (one := _monitor(lines))]
    if not found:
        return []
    chosen = next((w[1] for line in pactl("info") if (w := _field(line))[0] == "Default Sink"), "")
    return sorted(found, key=lambda one: one.output != chosen)


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


def _blocks(lines: list[str]) -> list[list[str]]:
    """The indented lines of each source; a line without a tab starts another one."""
    blocks: list[list[str]] = []
    for line in lines:
        if line and not line.startswith("\t"):
            blocks.append([])
        elif blocks:
            blocks[-1].append(line)
    return blocks


def _field(line: str) -> tuple[str, str]:
    key, _, value = line.strip().partition(": ")
    return key, value


def _monitor(lines: list[str]) -> Monitor | None:
    # Deeper levels, such as ports, may repeat the same keys.
    fields = dict(_field(line) for line in lines if not line.startswith("\t\t"))
    name, output = fields.get("Name"), fields.get("Monitor of Sink", "n/a")
    form = _SPECIFICATION.search(fields.get("Sample Specification", ""))
    if not name or output == "n/a" or form is None:
        return None
    return Monitor(name, fields.get("Description", name), output, int(form[1]), int(form[2]))
