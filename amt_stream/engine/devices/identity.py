"""Identifies microphones by more than PortAudio's name for them."""

import os
import re
import subprocess
import sys
from pathlib import Path

from amt_stream.core.processes import outside_environment

ANSWER_S = 0.5

ALIASES = frozenset({"default", "sysdefault", "pulse", "pipewire", "jack", "front", "dsnoop"})
"""ALSA names that may stand for any microphone."""

_CARD = re.compile(r" ?\((hw|plughw):(\d+)(,\d+)\)")


def is_alias(name: str, host_api: str) -> bool:
    """Whether a name stands for whichever microphone the system has chosen."""
    return host_api == "ALSA" and name in ALIASES


def default_source() -> str | None:
    """The default source of a PulseAudio or PipeWire server, by name.

    None if there is no such server, or it does not answer at once.
    """
    if not sys.platform.startswith("linux"):
        return None
    if chosen := os.environ.get("PULSE_SOURCE"):
        return chosen
    for line in pactl("info"):
        key, _, name = line.partition(": ")
        if key == "Default Source" and name:
            return name
    return None


def has_source(name: str) -> bool:
    """Whether the server has a source of this name at present."""
    return any(line.split("\t")[1:2] == [name] for line in pactl("list", "short", "sources"))


def pactl_settings() -> dict[str, str]:
    """The environment of pactl; without it pactl prints in the user's language."""
    return {**outside_environment(), "LC_ALL": "C"}


def pactl(*arguments: str) -> list[str]:
    """The output lines of pactl; [] if it is missing or does not answer."""
    try:
        done = subprocess.run(
            ["pactl", *arguments],
            check=False,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=pactl_settings(),
            timeout=ANSWER_S,
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    return done.stdout.decode(errors="replace").splitlines()


def pinned(source: str | None) -> dict[str, str]:
    """Environment settings with which the name "default" stands for this source only."""
    return {} if source is None else {"PULSE_SOURCE": source, "PIPEWIRE_NODE": source}


def identity_of(
    name: str, host_api: str, source: str | None, system: Path = Path("/sys/class/sound")
) -> str:
    """The identity that a calibration is stored under: stable for a microphone, "" if unknown.

    The name itself; for ALSA cards without the card number but with details of the card; for an
    alias the `source` behind it.
    """
    if is_alias(name, host_api):
        return "" if source is None else f"PulseAudio source {source}"
    found = _CARD.search(name) if host_api == "ALSA" else None
    if found is None:
        return name
    card = _card(system / f"card{found[2]}" / "device")
    return f"{name[: found.start()]} ({found[1]}{found[3]}{card}){name[found.end() :]}"


def _card(link: Path) -> str:
    """Serial number of a USB card with vendor and product, or the port where it is plugged in."""
    try:
        place = link.resolve(strict=True)
    except OSError:
        return ""
    found = {}
    for key in ("idVendor", "idProduct", "serial"):
        try:
            found[key] = (place.parent / key).read_text(encoding="utf-8", errors="replace").strip()
        except OSError:
            found[key] = ""
    if found["serial"]:
        return f", {found['idVendor']}:{found['idProduct']} {found['serial']}"
    return f", at {place.name}"
